//! A range read of the SSTables of a sorted view, as one source.
//!
//! The view gives the SSTable that has the next partition. So an SSTable is opened only when the read reaches one of its partitions. Keys
//! are compared only inside groups of the view, whose partitions are merged.

use std::sync::Arc;

use bytes::Bytes;
use ilion_rows::{
    AlikeRows, Bound, ClusteringComparator, ClusteringFilter, Cursor, DecoratedKey, Direction, Flow,
    KeyRange, MergeCursor, PartitionHead, PlainRow, PlainRun, PlainVisitor, ReadError, Unfiltered,
};
use ilion_schema::TableSchema;
use ilion_sstable::{RangeCursor, SortedView, Spot};
use ilion_types::Token;
use smallvec::SmallVec;

use crate::sorted::Sorted;
use crate::source::Held;
use crate::view::View;

/// Expected number of SSTables that a read of few rows opens.
const PARTS_FORESEEN: usize = 4;
/// Upper limit of the partitions of one SSTable that are shown at once.
const STRETCH_MAX: usize = 1024;

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
    /// Open SSTables, except those that the merge of the current group holds.
    parts: Vec<Part>,
    current: Current,
}

enum Current {
    None,
    /// The current partition comes from the part at this index.
    One(usize),
    Group(Box<MergeCursor<Part>>),
}

/// An open SSTable, and how many partitions may be taken from it.
struct Part {
    source: usize,
    /// Boxed, because parts are moved into merges and back.
    cursor: Box<Held<RangeCursor>>,
    left: usize,
}

impl Cursor for Part {
    fn next_partition(&mut self) -> Result<Option<PartitionHead>, ReadError> {
        match self.left.checked_sub(1) {
            None => Ok(None),
            Some(left) => {
                self.left = left;
                self.cursor.next_partition()
            }
        }
    }

    ilion_rows::cursor_methods!(forward cursor: next_unfiltered plain_rows);

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

    /// The part of a source, if it is open.
    #[inline]
    fn find(&self, source: usize) -> Option<usize> {
        self.parts.iter().position(|part| part.source == source)
    }

    /// The part of a source, positioned before the next group; opened if it is not open. `None` if the source is gone.
    fn part(&mut self, source: usize) -> Option<usize> {
        self.find(source).or_else(|| self.open_part(source))
    }

    #[inline(never)]
    fn open_part(&mut self, source: usize) -> Option<usize> {
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
        self.parts.push(Part {
            source,
            cursor: Box::new(Held::new(cursor, live.clone())),
            left: 0,
        });
        Some(self.parts.len() - 1)
    }

    /// The part that has the next partitions, and how many of them follow each other there. `None` if they must be merged, if they may be
    /// before the range or are behind it, or if their SSTable is gone.
    fn stretch(&mut self) -> Result<Option<(usize, usize)>, ReadError> {
        if self.is_first || matches!(self.current, Current::Group(_)) {
            return Ok(None);
        }
        let Some(source) = self.order().only_source(self.spot) else {
            return Ok(None);
        };
        let at = match self.find(source) {
            Some(at) => at,
            None if self.is_beyond()? => return Ok(None),
            None => match self.open_part(source) {
                Some(at) => at,
                None => return Ok(None),
            },
        };
        let order = self.order();
        let mut spot = order.next(self.spot);
        let mut count = 1;
        while count < STRETCH_MAX && order.only_source(spot) == Some(source) {
            spot = order.next(spot);
            count += 1;
        }
        Ok(Some((at, count)))
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
                .extend(merge.into_sources().map(|part| Part { left: 0, ..part }));
        }
        Ok(head)
    }

    /// False if the partition is before the range, which partitions of the first group may be.
    fn is_wanted(&self, head: &PartitionHead) -> bool {
        !self.is_edge || self.read.range.start.compare(&head.key).is_lt()
    }
}

/// The next step of the scan.
enum Step {
    Partition(PartitionHead),
    /// The group must be merged, or its SSTable is gone.
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

    fn lower_bound(&self) -> Option<DecoratedKey> {
        if matches!(self.current, Current::Group(_)) {
            return None;
        }
        // The read of the partition will meet the damage again, and report it.
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
        let mut whole: Option<PlainRun> = None;
        while let Some((at, count)) = self.stretch()? {
            let mut visitor = AtMost {
                visitor: &mut *visitor,
                left: count,
                is_over: false,
            };
            let Some(run) = self.parts[at].cursor.plain_partitions(before, &mut visitor)? else {
                break;
            };
            let is_over = visitor.is_over;
            for _ in 0..run.count {
                self.spot = self.order().next(self.spot);
            }
            self.current = Current::One(at);
            let taken = whole.map_or(0, |whole| whole.count);
            whole = Some(PlainRun {
                count: taken + run.count,
                last: run.last,
                is_over,
            });
            if is_over || run.count < count as u64 {
                break;
            }
        }
        Ok(whole)
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
