//! Shows plain partitions and rows in the window of a stream (`ilion_rows::PlainRow`).
//!
//! Rows that are rare or damaged are not plain here; the general decoder reads them, and reports errors.

use std::ops::Range;

use bytes::Bytes;
use ilion_codec::unsigned_vint_len;
use ilion_rows::{Bound, DecoratedKey, Flow, NO_TIMESTAMP, PlainRow, PlainRun, PlainVisitor};
use ilion_schema::ColumnId;
use ilion_types::{Partitioner, Token};
use smallvec::{SmallVec, smallvec};

use super::pattern::Patterns;
use crate::DataStream;
use crate::row::decode::RowFormat;
use crate::row::decode::columns::UsualColumn;
use crate::row::format::BITMAP_COLUMNS;
use crate::row::format::cell_flag;
use crate::row::format::state::{RowFlags, RowState};
use crate::row::format::unfiltered_flag::END_OF_PARTITION;
use crate::row::rest::Rest;

/// Column and value of a cell.
type Shown<'w> = (ColumnId, &'w [u8]);

/// The content of a row, without its clustering.
#[derive(Clone, Copy)]
struct RowContent<'w> {
    /// Number of cells.
    count: usize,
    /// The timestamp of the row and its cells; `None` if their timestamps differ or the row has none.
    timestamp_micros: Option<i64>,
    /// The cells as stored; `None` if a current writer would store them in another form.
    stored: Option<&'w [u8]>,
    /// True if the row is usual: all columns, written at once, no empty value.
    is_usual: bool,
}

/// A partition that the visitor took.
struct ShownPartition<'w> {
    /// The bytes behind the partition.
    rest: Rest<'w>,
    /// See [`RowContent::is_usual`].
    is_usual: bool,
    /// True if the visitor stopped.
    is_over: bool,
}

/// Partitions that the visitor took.
#[derive(Debug, Default)]
pub(crate) struct Few {
    pub(crate) count: usize,
    /// Number of their bytes.
    pub(crate) len: usize,
    /// Byte range of the key of the last partition.
    pub(crate) last_key: Range<usize>,
    /// True if the visitor stopped.
    pub(crate) is_over: bool,
}

/// Selects partitions by their keys. Keeps the token that was computed for the test.
pub(crate) struct WantedKeys<'k, F> {
    partitioner: Partitioner,
    /// Whether a key is selected; `None` selects all.
    is_wanted: Option<F>,
    /// The key of the partition at the stream's position, if it is known.
    ahead: &'k mut Option<DecoratedKey>,
    /// Token of the last key tested.
    token: Option<Token>,
    /// Token of the last key taken.
    taken: Option<Token>,
}

impl<'k, F: Fn(&Token, &[u8]) -> bool> WantedKeys<'k, F> {
    /// `ahead` is the key of the partition at the stream's position, if known; the visit updates it.
    pub(crate) fn new(
        partitioner: Partitioner,
        is_wanted: Option<F>,
        ahead: &'k mut Option<DecoratedKey>,
    ) -> Self {
        Self {
            partitioner,
            is_wanted,
            ahead,
            token: None,
            taken: None,
        }
    }

    #[inline(always)]
    fn wants(&mut self, key: &[u8]) -> bool {
        match self.is_wanted {
            None => true,
            Some(_) => self.tests(key),
        }
    }

    fn tests(&mut self, key: &[u8]) -> bool {
        let Some(is_wanted) = &self.is_wanted else {
            return true;
        };
        let known = self.ahead.take().filter(|ahead| ahead.key == key);
        let token = known.map_or_else(|| self.partitioner.token(key), |ahead| ahead.token);
        let is_wanted = is_wanted(&token, key);
        self.token = Some(token);
        is_wanted
    }

    /// Records that the visitor took the partition of the last key tested.
    #[inline(always)]
    fn take(&mut self) {
        if self.token.is_some() {
            self.taken = self.token.take();
        }
    }

    /// Sets the key of the partition at the stream's new position.
    #[inline]
    fn stop_at(&mut self, key: Option<Bytes>) {
        *self.ahead = match (self.token.take(), key) {
            (Some(token), Some(key)) => Some(DecoratedKey { token, key }),
            _ => None,
        };
    }

    fn last(&mut self, key: Bytes) -> DecoratedKey {
        match self.taken.take() {
            Some(token) => DecoratedKey { token, key },
            None => DecoratedKey::new(self.partitioner, key),
        }
    }
}

impl RowFormat {
    /// Space for the cells of a row.
    fn room<'w>(&self) -> SmallVec<[Shown<'w>; 8]> {
        smallvec![(ColumnId(0), &[][..]); self.regulars.columns.len()]
    }

    /// Shows the visitor the partitions from the stream's position on, while they are plain, in the window, and selected by
    /// their keys. Afterwards the stream is behind the last partition taken.
    pub(crate) fn visit_plain<F: Fn(&Token, &[u8]) -> bool>(
        &self,
        stream: &mut DataStream,
        patterns: &mut Patterns,
        keys: &mut WantedKeys<'_, F>,
        visitor: &mut dyn PlainVisitor,
    ) -> Option<PlainRun> {
        let window = stream.window().0;
        let at_hand = stream.rest().len();
        let mut left = Rest(&window[window.len() - at_hand..]);
        let (mut count, mut last, mut is_over) = (0, None, false);
        let mut room = self.room();
        let cells = &mut room[..];
        let mut key;
        loop {
            if keys.is_wanted.is_none()
                && let Some(rows) = patterns.alike(left.0, None)
            {
                let (taken, flow) = visitor.rows(&rows);
                let (layout, following) = (rows.layout(), rows.first(taken).len());
                if let (Some(place), Some(before)) = (layout.key.clone(), taken.checked_sub(1)) {
                    last = Some(&left.0[before * layout.len..][place]);
                }
                count += taken as u64;
                left = Rest(&left.0[following..]);
                is_over = flow == Flow::Last;
                if flow != Flow::Next {
                    key = None;
                    break;
                }
                continue;
            }
            let mut rest = left;
            key = rest.key();
            let Some(wanted) = key.filter(|key| keys.wants(key)) else {
                break;
            };
            let token = keys.token.as_ref();
            let Some(shown) = self.show_partition(wanted, token, rest, cells, visitor) else {
                break;
            };
            keys.take();
            if shown.is_usual {
                patterns.note(left.before(shown.rest), self, true);
            }
            left = shown.rest;
            last = key;
            count += 1;
            is_over = shown.is_over;
            if is_over {
                break;
            }
        }
        keys.stop_at(key.map(|key| window.slice_ref(key)));
        let last = last.map(|key| keys.last(window.slice_ref(key)));
        let consumed = at_hand - left.0.len();
        drop(room);
        stream.consume(consumed);
        Some(PlainRun {
            count,
            last: last?,
            is_over,
        })
    }

    /// As [`Self::visit_plain`], but for the start of `bytes`, and at most `most` partitions. Layouts are not compared, since few
    /// partitions are expected. `is_wanted` selects by token and key; `None` selects all.
    pub(crate) fn visit_few(
        &self,
        bytes: &[u8],
        most: usize,
        partitioner: Partitioner,
        is_wanted: Option<impl Fn(&Token, &[u8]) -> bool>,
        visitor: &mut dyn PlainVisitor,
    ) -> Few {
        let mut room = self.room();
        let (mut few, mut left) = (Few::default(), Rest(bytes));
        while few.count < most && !few.is_over {
            let mut rest = left;
            let Some(key) = rest.key() else {
                break;
            };
            let key_end = bytes.len() - rest.0.len();
            let token = is_wanted.as_ref().map(|_| partitioner.token(key));
            if let (Some(is_wanted), Some(token)) = (&is_wanted, &token)
                && !is_wanted(token, key)
            {
                break;
            }
            let Some(shown) = self.show_partition(key, token.as_ref(), rest, &mut room, visitor) else {
                break;
            };
            few = Few {
                count: few.count + 1,
                len: bytes.len() - shown.rest.0.len(),
                last_key: key_end - key.len()..key_end,
                is_over: shown.is_over,
            };
            left = shown.rest;
        }
        few
    }

    /// True if the bytes end within their first partition. The result is only meaningful if that partition is plain.
    pub(crate) fn is_cut_off(&self, bytes: &[u8]) -> bool {
        let mut rest = Rest(bytes);
        let mut whole = || {
            rest.key()?;
            rest.take(self.times.live_partition_len())?;
            rest.u8()?;
            rest.taken_by_uvint()?;
            rest.u8()
        };
        whole().is_none()
    }

    /// Shows the visitor the partition with this key, if it is plain and complete; `rest` starts behind the key. Returns `None`
    /// if the partition was not taken.
    #[inline(always)]
    fn show_partition<'w>(
        &self,
        key: &'w [u8],
        token: Option<&Token>,
        mut rest: Rest<'w>,
        cells: &mut [Shown<'w>],
        visitor: &mut dyn PlainVisitor,
    ) -> Option<ShownPartition<'w>> {
        let found = self.plain_partition(&mut rest, cells)?;
        let flow = visitor.row(&PlainRow {
            key,
            token,
            clustering: &[],
            timestamp_micros: found.timestamp_micros,
            cells: &cells[..found.count],
            stored: found.stored,
        });
        if flow == Flow::Leave {
            return None;
        }
        Some(ShownPartition {
            rest,
            is_usual: found.is_usual,
            is_over: flow == Flow::Last,
        })
    }

    /// Shows the visitor the rows of a partition from the stream's position on, while they are plain, in the window, and before
    /// the end. Afterwards the stream is behind the last row taken. Returns the number of rows taken, and true if reading more bytes
    /// would not help.
    pub(crate) fn visit_rows(
        &self,
        stream: &mut DataStream,
        patterns: &mut Patterns,
        key: &DecoratedKey,
        end: Option<&Bound>,
        visitor: &mut dyn PlainVisitor,
    ) -> (u64, bool) {
        let at_hand = stream.rest().len();
        if stream.keeps_apart(at_hand) {
            return (0, true);
        }
        let mut left = Rest(stream.rest());
        let mut room = self.room();
        let cells = &mut room[..];
        let mut values: SmallVec<[Option<&[u8]>; 4]> = smallvec![None; self.comparator.len()];
        let clustering = &mut values[..];
        let (mut count, mut is_over) = (0, true);
        let is_behind = |clustering: &[Option<&[u8]>]| {
            end.is_some_and(|end| self.comparator.compare_bound_to_values(end, clustering).is_lt())
        };
        loop {
            if let Some(rows) = patterns.alike(left.0, Some(key)) {
                let found = rows.count();
                let before_end = match end {
                    None => found,
                    Some(_) => rows.partition_point(|clustering| !is_behind(clustering)),
                };
                let (taken, flow) = visitor.rows(&rows.first(before_end));
                left = Rest(&left.0[rows.first(taken).len()..]);
                count += taken as u64;
                if flow != Flow::Next || before_end < found {
                    break;
                }
                continue;
            }
            let mut rest = left;
            let Some(found) = self.clustered_row(&mut rest, clustering, cells) else {
                is_over = false;
                break;
            };
            if is_behind(clustering) {
                break;
            }
            let flow = visitor.row(&PlainRow {
                key: &key.key,
                token: Some(&key.token),
                clustering,
                timestamp_micros: found.timestamp_micros,
                cells: &cells[..found.count],
                stored: found.stored,
            });
            if flow == Flow::Leave {
                break;
            }
            if found.is_usual {
                patterns.note(left.before(rest), self, false);
            }
            left = rest;
            count += 1;
            if flow == Flow::Last {
                break;
            }
        }
        let consumed = at_hand - left.0.len();
        drop((room, values));
        stream.consume(consumed);
        (count, is_over)
    }

    /// Reads the rest of a partition behind its key, if the partition is plain and complete.
    #[inline(always)]
    fn plain_partition<'w>(&self, rest: &mut Rest<'w>, cells: &mut [Shown<'w>]) -> Option<RowContent<'w>> {
        if !self
            .times
            .is_live_partition(rest.take(self.times.live_partition_len())?)
        {
            return None;
        }
        let flags = RowFlags::at_hand(rest)?;
        let body = Rest(rest.taken_by_uvint()?);
        if rest.u8()? != END_OF_PARTITION {
            return None;
        }
        self.seen_body(flags, body, cells)
    }

    /// The content of a row, with cells sorted by id; `None` if the row is not plain or not live.
    #[inline(always)]
    fn seen_body<'w>(
        &self,
        flags: RowFlags,
        body: Rest<'w>,
        cells: &mut [Shown<'w>],
    ) -> Option<RowContent<'w>> {
        let found = match flags {
            RowFlags::USUAL => self
                .usual_body(body, cells)
                .or_else(|| self.plain_body(flags, body, cells)),
            _ => self.plain_body(flags, body, cells),
        };
        Some(self.by_id(found?, cells))
    }

    /// Sorts the cells by id. If the file has another order (for example after ALTER TABLE ADD of a column whose name comes
    /// before others), rows are shown one by one, and encoded again when they are written.
    #[inline(always)]
    fn by_id<'w>(&self, found: RowContent<'w>, cells: &mut [Shown<'w>]) -> RowContent<'w> {
        if self.regulars.ids_ascend {
            return found;
        }
        cells[..found.count].sort_unstable_by_key(|(id, _)| *id);
        RowContent {
            stored: None,
            is_usual: false,
            ..found
        }
    }

    /// The row that starts here, if it is plain and complete.
    #[inline(always)]
    fn clustered_row<'w>(
        &self,
        rest: &mut Rest<'w>,
        clustering: &mut [Option<&'w [u8]>],
        cells: &mut [Shown<'w>],
    ) -> Option<RowContent<'w>> {
        let flags = RowFlags::at_hand(rest)?;
        if !flags.is_plain() {
            return None;
        }
        let mut places = clustering.iter_mut();
        self.clustering.values_at_hand(rest, |value, _| {
            if let Some(place) = places.next() {
                *place = value;
            }
        })?;
        let body = Rest(rest.taken_by_uvint()?);
        self.seen_body(flags, body, cells)
    }

    /// The content of a usual row: all columns, written at one time, no empty value. Handles only such rows, and keeps its state in
    /// registers.
    #[inline(always)]
    fn usual_body<'w>(&self, mut body: Rest<'w>, cells: &mut [Shown<'w>]) -> Option<RowContent<'w>> {
        let columns = self.regulars.usual.as_deref()?;
        body.skip_uvint()?;
        let micros = self.times.timestamp_of(body.uvint()?);
        let stored = body.0;
        let is_usual = usual_cells(columns, stored, cells) && micros != NO_TIMESTAMP;
        is_usual.then_some(RowContent {
            count: columns.len(),
            timestamp_micros: Some(micros),
            stored: Some(stored),
            is_usual: true,
        })
    }

    /// The content of a row; `None` if it is not plain or not live.
    #[inline(never)]
    fn plain_body<'w>(
        &self,
        flags: RowFlags,
        mut body: Rest<'w>,
        room: &mut [Shown<'w>],
    ) -> Option<RowContent<'w>> {
        if !flags.is_plain() {
            return None;
        }
        body.skip_uvint()?;
        let row_micros = RowState::plain_at_hand(flags, &self.times, &mut body)?;
        let columns = &self.regulars.columns[..];
        let missing = match flags.has_all_columns() {
            true => 0,
            false if columns.len() >= BITMAP_COLUMNS => return None,
            false => body.uvint().filter(|missing| missing >> columns.len() == 0)?,
        };
        let stored = body.0;
        let (mut count, mut is_together, mut is_usual) = (0, true, self.regulars.lens_are_same);
        let mut places = room.iter_mut();
        for (index, column) in columns.iter().enumerate() {
            if missing != 0 && missing >> index & 1 == 1 {
                continue;
            }
            let before = body.0.len();
            let cell = body.common_cell(column.fixed_len)?;
            let value = cell.value;
            is_together &= cell.delta.is_none();
            // Plain only if a current writer would store the same bytes: empty values by a flag, lengths in their shortest form.
            let len_len = match column.fixed_len {
                Some(_) => 0,
                None => unsigned_vint_len(value.len() as u64),
            };
            is_usual &= !value.is_empty() && before - body.0.len() == 1 + len_len + value.len();
            *places.next()? = (column.simple_id?, value);
            count += 1;
        }
        let timestamp_micros = row_micros.filter(|_| is_together);
        let lives = row_micros.is_some() || count > 0;
        (lives && body.0.is_empty()).then_some(RowContent {
            count,
            timestamp_micros,
            stored: (is_usual && timestamp_micros.is_some()).then_some(stored),
            is_usual: false,
        })
    }
}

/// Fills `cells` with the cells of all columns. Returns false if bytes are left behind them, or a cell is not usual.
#[inline(always)]
fn usual_cells<'w>(columns: &[UsualColumn], mut rest: &'w [u8], cells: &mut [Shown<'w>]) -> bool {
    let mut places = cells.iter_mut();
    for column in columns {
        let len = match column.fixed_len {
            0 => {
                let (len, left) = match rest {
                    [cell_flag::USES_ROW_TIMESTAMP, len @ 1..0x80, left @ ..] => (usize::from(*len), left),
                    [cell_flag::USES_ROW_TIMESTAMP, high @ 0x80..0xC0, low, left @ ..] => {
                        let len = usize::from(high & 0x3F) << 8 | usize::from(*low);
                        // The length must have its shortest form.
                        if len < 0x80 {
                            return false;
                        }
                        (len, left)
                    }
                    _ => return false,
                };
                rest = left;
                len
            }
            len => {
                let [cell_flag::USES_ROW_TIMESTAMP, left @ ..] = rest else {
                    return false;
                };
                rest = left;
                len
            }
        };
        let (Some((value, left)), Some(place)) = (rest.split_at_checked(len), places.next()) else {
            return false;
        };
        *place = (column.id, value);
        rest = left;
    }
    rest.is_empty()
}
