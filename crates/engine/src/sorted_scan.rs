//! A range read of the SSTables of a sorted view, as one source.
//!
//! The view returns the SSTable that has the next partition. So an SSTable is opened only when the read reaches one of its partitions.
//! Keys are compared only inside groups of the view, whose partitions are merged.
//!
//! An SSTable is open as a glance or as a cursor, never as both. A glance ([`Glance`]) shows a few plain partitions and costs little to
//! open. Everything else is read by a cursor: groups, partitions that are not plain, long stretches of one SSTable.

use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{
    AlikeRows, Bound, ClusteringComparator, ClusteringFilter, Cursor, DecoratedKey, Direction, Flow,
    KeyRange, MergeCursor, PartitionHead, PlainRow, PlainRun, PlainVisitor, ReadError, Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_sstable::{Glance, RangeCursor, SOURCES_MAX, SortedView, Spot};
use ilion_types::Token;
use smallvec::SmallVec;

use crate::sorted::Sorted;
use crate::source::{Held, touch};
use crate::view::View;

/// Expected number of SSTables that a read of few rows opens.
const PARTS_FORESEEN: usize = 4;
/// Upper limit of the partitions of one SSTable that are shown at once.
const STRETCH_MAX: usize = 1024;
/// This many partitions of one SSTable in a row are read by a cursor, which recognises rows that are laid out alike.
const CURSOR_FROM: usize = 16;
/// How many partitions ahead a read searches for the next SSTables to open, after it has taken [`ROWS_BEFORE_AHEAD`] rows from glances: the
/// processor then waits for the memory of several SSTables at once.
const PARTITIONS_AHEAD: usize = 12;
const ROWS_BEFORE_AHEAD: usize = 4;

/// The table, range and filter of the read.
pub(crate) struct SortedRead {
    pub table: Arc<TableSchema>,
    pub range: KeyRange,
    pub filter: Arc<ClusteringFilter>,
    pub comparator: ClusteringComparator,
}

/// The cursor over the partitions.
pub(crate) struct SortedScan {
    view: Arc<View>,
    sorted: Arc<Sorted>,
    read: SortedRead,
    /// The next group.
    spot: Spot,
    /// True if the next group is the first one, which may have partitions before the range.
    is_first: bool,
    /// True if the current group is the first one.
    is_edge: bool,
    /// SSTables that are open as cursors, except those whose cursors are in the merge of the current group.
    parts: Vec<OpenSSTable>,
    glances: Glances,
    current: Current,
}

enum Current {
    None,
    /// The current partition comes from the part at this index.
    One(usize),
    Group(Box<MergeCursor<OpenSSTable>>),
}

/// SSTables that are open as glances.
struct Glances {
    open: Vec<OpenGlance>,
    /// For each source, its index in `open` plus one; 0 if it has no glance.
    slots: [u8; SOURCES_MAX],
    /// Number of partitions that were taken from glances.
    taken: usize,
}

struct OpenGlance {
    source: usize,
    /// Place of the SSTable among those of the view.
    place: usize,
    glance: Glance,
    /// The SSTable was asked for a partition, so it is counted as touched.
    is_touched: bool,
}

impl Glances {
    fn new() -> Self {
        Self {
            open: Vec::new(),
            slots: [0; SOURCES_MAX],
            taken: 0,
        }
    }

    #[inline]
    fn find(&self, source: usize) -> Option<usize> {
        usize::from(self.slots[source]).checked_sub(1)
    }

    fn add(&mut self, glance: OpenGlance) -> usize {
        let source = glance.source;
        self.open.push(glance);
        self.slots[source] = slot(self.open.len());
        self.open.len() - 1
    }

    /// Closes the glance of a source. Returns true if there was one whose SSTable is counted as touched.
    fn close(&mut self, source: usize) -> bool {
        let Some(at) = self.find(source) else {
            return false;
        };
        self.slots[source] = 0;
        let closed = self.open.swap_remove(at);
        if let Some(moved) = self.open.get(at) {
            self.slots[moved.source] = slot(at + 1);
        }
        closed.is_touched
    }
}

/// The number as 8 bits, which suffice for all sources.
fn slot(number: usize) -> u8 {
    u8::try_from(number).unwrap_or(u8::MAX)
}

/// How an SSTable is open, with its index in `parts` or in the open glances.
enum Open {
    Cursor(usize),
    Glance(usize),
}

/// Partitions of single groups that follow each other in one SSTable.
#[derive(Clone, Copy)]
struct Stretch {
    source: usize,
    count: usize,
}

/// An SSTable that is open as a cursor, and how many partitions may be taken from it.
struct OpenSSTable {
    source: usize,
    /// Boxed, because parts are moved into merges and back.
    cursor: Box<Held<RangeCursor>>,
    left: usize,
}

impl Cursor for OpenSSTable {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        match self.left.checked_sub(1) {
            None => Ok(None),
            Some(left) => {
                self.left = left;
                self.cursor.next_partition()
            }
        }
    }

    ilion_rows::cursor_methods!(forward cursor: next_unfiltered plain_rows skip_deleted);

    ilion_rows::cursor_methods!(without: lower_bound peek plain_partitions);
}

impl SortedScan {
    /// # Errors
    /// A token map of the view is damaged or cannot be read.
    pub(crate) fn new(
        view: &Arc<View>,
        sorted: &Arc<Sorted>,
        read: SortedRead,
    ) -> Result<Self, ilion_sstable::Error> {
        let spot = sorted.order.view.seek(&read.range.start)?;
        Ok(Self {
            view: view.clone(),
            sorted: sorted.clone(),
            read,
            spot,
            is_first: true,
            is_edge: false,
            parts: Vec::with_capacity(PARTS_FORESEEN),
            glances: Glances::new(),
            current: Current::None,
        })
    }

    fn order(&self) -> &SortedView {
        &self.sorted.order.view
    }

    /// A lower bound of the tokens from the next group on. If a map is damaged, the view is marked as broken.
    fn floor(&self) -> Result<Option<Token>, ReadError> {
        self.order().floor(self.spot).map_err(|error| {
            self.sorted.order.give_up();
            error.into()
        })
    }

    /// Opens a glance of a source. If the read has gone on for a while, opens glances of the next SSTables, too.
    fn open_glances(&mut self, source: usize) -> Result<Option<usize>, ReadError> {
        let Some(at) = self.open_glance(source)? else {
            return Ok(None);
        };
        if self.glances.taken < ROWS_BEFORE_AHEAD || self.read.range.end.token().is_some() {
            return Ok(Some(at));
        }
        let ahead: SmallVec<[usize; PARTITIONS_AHEAD]> =
            self.order().sources_ahead(self.spot, PARTITIONS_AHEAD).collect();
        for source in ahead {
            if self.glances.find(source).is_none() && self.find(source).is_none() {
                // The read may end before it needs this SSTable; if not, it meets the error again.
                let _ = self.open_glance(source);
            }
        }
        let opened = &mut self.glances.open[at..];
        for OpenGlance { place, glance, .. } in &mut *opened {
            glance.begin_cached(&self.view.sstables[*place].sstable);
        }
        let bytes = opened.iter().map(|open| open.glance.first_byte());
        std::hint::black_box(bytes.fold(0, |all, byte| all ^ byte));
        Ok(Some(at))
    }

    /// The part of a source, if it is open.
    #[inline]
    fn find(&self, source: usize) -> Option<usize> {
        self.parts.iter().position(|part| part.source == source)
    }

    /// The part of a source, positioned before the next group; opened if it is not open. `None` if the source is gone.
    fn part(&mut self, source: usize) -> Option<usize> {
        self.find(source).or_else(|| self.open_part(source))
    }

    /// Opens a cursor; a glance of the source is closed.
    #[inline(never)]
    fn open_part(&mut self, source: usize) -> Option<usize> {
        let is_touched = self.glances.close(source);
        let live = &self.view.sstables[self.sorted.place(source)?];
        let read = &self.read;
        let cursor = live.sstable.cursor_in(
            self.order(),
            self.spot,
            source,
            &read.table,
            read.range.end.clone(),
            read.filter.clone(),
        );
        let held = match is_touched {
            true => Held::touched(cursor, live.clone()),
            false => Held::new(cursor, live.clone()),
        };
        self.parts.push(OpenSSTable {
            source,
            cursor: Box::new(held),
            left: 0,
        });
        Some(self.parts.len() - 1)
    }

    /// Opens a glance; `None` if the source is gone or has to be read by a cursor.
    fn open_glance(&mut self, source: usize) -> Result<Option<usize>, ReadError> {
        let Some(place) = self.sorted.place(source) else {
            return Ok(None);
        };
        let live = &self.view.sstables[place];
        let from = (self.order(), self.spot, source);
        let glance = Glance::open(&live.sstable, from, &self.read.table, &self.read.filter)?;
        Ok(glance.map(|glance| {
            self.glances.add(OpenGlance {
                source,
                place,
                glance,
                is_touched: false,
            })
        }))
    }

    /// The next partitions, as far as they follow each other in one SSTable. `None` if they must be merged, or may be before the range.
    fn stretch(&self) -> Option<Stretch> {
        if self.is_first || matches!(self.current, Current::Group(_)) {
            return None;
        }
        let (source, count) = self.order().stretch(self.spot, STRETCH_MAX)?;
        Some(Stretch { source, count })
    }

    /// Opens the SSTable of a stretch. `None` if it is gone or the stretch is behind the range; or if `is_begun` and a glance would have to
    /// be closed, since the last key of this call may be in the chunk of that glance.
    fn open(&mut self, stretch: Stretch, is_begun: bool) -> Result<Option<Open>, ReadError> {
        let source = stretch.source;
        if let Some(at) = self.find(source) {
            return Ok(Some(Open::Cursor(at)));
        }
        let is_long = stretch.count >= CURSOR_FROM;
        match self.glances.find(source) {
            Some(at) if !is_long => return Ok(Some(Open::Glance(at))),
            Some(_) if is_begun => return Ok(None),
            Some(_) => {}
            None if self.is_beyond()? => return Ok(None),
            None if !is_long => {
                if let Some(at) = self.open_glances(source)? {
                    return Ok(Some(Open::Glance(at)));
                }
            }
            None => {}
        }
        Ok(self.open_part(source).map(Open::Cursor))
    }

    /// Shows the visitor partitions of an open cursor; `None` if none was taken.
    fn show_by_cursor(
        &mut self,
        at: usize,
        most: usize,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        let mut visitor = AtMost {
            visitor,
            left: most,
            is_over: false,
        };
        let run = self.parts[at].cursor.plain_partitions(before, &mut visitor)?;
        Ok(run.map(|run| PlainRun {
            is_over: visitor.is_over,
            ..run
        }))
    }

    /// True if all partitions from the next group on are behind the range.
    fn is_beyond(&self) -> Result<bool, ReadError> {
        match self.read.range.end.token() {
            None => Ok(false),
            Some(end) => Ok(self.floor()?.is_none_or(|floor| floor > *end)),
        }
    }

    /// Moves to the next group. Returns its partition if it has only one.
    fn begin_group(&mut self) -> Result<Step, ReadError> {
        self.is_edge = std::mem::replace(&mut self.is_first, false);
        let spot = self.spot;
        let Some(source) = self.order().only_source(spot) else {
            return self.begin_merge();
        };
        if self.find(source).is_none() && self.is_beyond()? {
            return Ok(Step::End);
        }
        let part = self.part(source);
        self.spot = self.order().next(spot);
        let Some(at) = part else {
            return Ok(Step::Nothing);
        };
        self.parts[at].left = 1;
        let head = self.parts[at].next_partition()?;
        self.current = Current::One(at);
        Ok(head.map_or(Step::End, Step::Partition))
    }

    /// Starts the merge of the partitions of the next group.
    fn begin_merge(&mut self) -> Result<Step, ReadError> {
        if self.order().is_end(self.spot) || self.is_beyond()? {
            return Ok(Step::End);
        }
        let sources: SmallVec<[usize; 8]> = self.order().sources(self.spot).collect();
        for source in sources {
            if let Some(at) = self.part(source) {
                self.parts[at].left += 1;
            }
        }
        self.spot = self.order().next(self.spot);
        let members = self.parts.extract_if(.., |part| part.left > 0).collect();
        let direction = Direction::of(self.read.filter.reversed);
        let (table, comparator) = (self.read.table.clone(), self.read.comparator.clone());
        self.current = Current::Group(Box::new(MergeCursor::ordered(
            members, table, comparator, direction,
        )));
        Ok(Step::Nothing)
    }

    /// The next partition of the merged group. At its end, the parts return to `parts`.
    fn next_of_group(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        let Current::Group(merge) = &mut self.current else {
            return Ok(None);
        };
        let head = merge.next_partition()?;
        if head.is_none()
            && let Current::Group(merge) = std::mem::replace(&mut self.current, Current::None)
        {
            self.parts
                .extend(merge.into_sources().map(|part| OpenSSTable { left: 0, ..part }));
        }
        Ok(head)
    }

    /// False if the partition is before the range, which is possible in the first group only.
    fn is_wanted(&self, head: &PartitionHead) -> bool {
        !self.is_edge || self.read.range.start.compare(&head.key).is_lt()
    }
}

/// The next step of the scan.
enum Step {
    Partition(PartitionHead),
    /// The next group must be merged, or its SSTable is gone.
    Nothing,
    /// No partition is left in the range.
    End,
}

impl Cursor for SortedScan {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        loop {
            let head = match self.next_of_group()? {
                Some(head) => head,
                None => match self.begin_group()? {
                    Step::Partition(head) => head,
                    Step::Nothing => continue,
                    Step::End => {
                        self.current = Current::None;
                        self.spot = self.order().end();
                        return Ok(None);
                    }
                },
            };
            if self.is_wanted(&head) {
                return Ok(Some(head));
            }
        }
    }

    fn next_unfiltered(&mut self) -> Result<Option<Unfiltered>, ReadError> {
        match &mut self.current {
            Current::None => Ok(None),
            Current::One(at) => self.parts[*at].next_unfiltered(),
            Current::Group(merge) => merge.next_unfiltered(),
        }
    }

    fn skip_deleted(&mut self, before: Option<&Bound>) -> Result<(), ReadError> {
        match &mut self.current {
            Current::None => Ok(()),
            Current::One(at) => self.parts[*at].skip_deleted(before),
            Current::Group(merge) => merge.skip_deleted(before),
        }
    }

    fn lower_bound(&self) -> Option<DecoratedKey> {
        if matches!(self.current, Current::Group(_)) {
            return None;
        }
        // A damaged map is not reported here: the read of the partition meets the damage again.
        let token = self.floor().ok()??;
        Some(DecoratedKey {
            token,
            key: Bytes::new(),
        })
    }

    /// Shows partitions of one SSTable after another: from each as many as follow each other in the view.
    fn plain_partitions(
        &mut self,
        before: Option<&DecoratedKey>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<Option<PlainRun>, ReadError> {
        let (mut count, mut is_over) = (0, false);
        // The last key comes from the last run of a cursor, or from the last glance.
        let (mut last_run, mut last_glance) = (None, None);
        while let Some(stretch) = self.stretch() {
            let taken = match self.open(stretch, count > 0)? {
                None => break,
                Some(Open::Glance(at)) => {
                    let open = &mut self.glances.open[at];
                    let live = &self.view.sstables[open.place];
                    if !std::mem::replace(&mut open.is_touched, true) {
                        touch(live);
                    }
                    let until = (&self.read.range.end, before);
                    let (taken, stopped) = open.glance.show(&live.sstable, stretch.count, until, visitor)?;
                    if taken == 0 {
                        break;
                    }
                    self.glances.taken += taken;
                    (last_glance, is_over) = (Some(at), stopped);
                    self.current = Current::None;
                    taken
                }
                Some(Open::Cursor(at)) => {
                    let Some(run) = self.show_by_cursor(at, stretch.count, before, visitor)? else {
                        break;
                    };
                    (last_glance, is_over) = (None, run.is_over);
                    self.current = Current::One(at);
                    let taken = usize::try_from(run.count).unwrap_or(usize::MAX);
                    last_run = Some(run);
                    taken
                }
            };
            self.spot = self.order().skip(self.spot, taken);
            count += taken as u64;
            // The rest of the stretch may be in another chunk, or behind `before`.
            if is_over || (taken < stretch.count && before.is_some()) {
                break;
            }
        }
        let last = match last_glance {
            None => last_run.map(|run| run.last),
            Some(at) => {
                let OpenGlance { place, glance, .. } = &self.glances.open[at];
                Some(glance.last_key(&self.view.sstables[*place].sstable))
            }
        };
        Ok(last.map(|last| PlainRun { count, last, is_over }))
    }

    fn plain_rows(
        &mut self,
        key: &DecoratedKey,
        before: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> Result<u64, ReadError> {
        match &mut self.current {
            Current::None => Ok(0),
            Current::One(at) => self.parts[*at].plain_rows(key, before, visitor),
            Current::Group(merge) => merge.plain_rows(key, before, visitor),
        }
    }

    ilion_rows::cursor_methods!(without: peek);
}

/// Shows a visitor at most `left` rows.
struct AtMost<'v> {
    visitor: &'v mut dyn PlainVisitor,
    left: usize,
    /// True if the visitor wants no more rows.
    is_over: bool,
}

impl AtMost<'_> {
    /// Counts rows that were taken, and returns the flow for the source.
    fn flow(&mut self, taken: usize, flow: Flow) -> Flow {
        self.left = self.left.saturating_sub(taken);
        self.is_over = flow == Flow::Last;
        match flow {
            Flow::Next if self.left == 0 => Flow::Last,
            flow => flow,
        }
    }
}

impl PlainVisitor for AtMost<'_> {
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        let flow = self.visitor.row(row);
        self.flow(usize::from(flow != Flow::Leave), flow)
    }

    fn rows(&mut self, rows: &AlikeRows<'_>) -> (usize, Flow) {
        let (taken, flow) = self.visitor.rows(&rows.first(self.left));
        (taken, self.flow(taken, flow))
    }
}
