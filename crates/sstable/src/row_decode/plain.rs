//! Plain partitions where they lie in the window of a stream (`ilion_rows::PlainRow`).
//!
//! What is not as expected, be it rare or damaged, is not plain: the decoder of all rows reads it then, and tells what is wrong.

use bytes::Bytes;
use ilion_codec::unsigned_vint_len;
use ilion_rows::{DecoratedKey, Flow, NO_TIMESTAMP, PlainRow, PlainVisitor};
use ilion_schema::ColumnId;
use ilion_types::{Partitioner, Token};
use smallvec::{SmallVec, smallvec};

use super::body::{CELL_USES_ROW_TIMESTAMP, HAS_ALL_COLUMNS, HAS_TIMESTAMP};
use super::columns::FileColumns;
use super::source::read_uvint;
use super::subset::BITMAP_COLUMNS;
use super::{END_OF_PARTITION, RowFormat};
use crate::DataStream;

/// The cells of a row, as many as were found in room for all columns.
struct Cells<'w> {
    room: SmallVec<[(ColumnId, &'w [u8]); 8]>,
    count: usize,
}

impl<'w> Cells<'w> {
    fn of(columns: &FileColumns) -> Self {
        Self {
            room: smallvec![(ColumnId(0), &[][..]); columns.columns.len()],
            count: 0,
        }
    }

    #[inline(always)]
    fn push(&mut self, column: ColumnId, value: &'w [u8]) -> Option<()> {
        *self.room.get_mut(self.count)? = (column, value);
        self.count += 1;
        Some(())
    }

    fn found(&self) -> &[(ColumnId, &'w [u8])] {
        &self.room[..self.count]
    }
}

/// What is known of the cells of a plain row.
#[derive(Clone, Copy)]
struct Together<'w> {
    /// When the row and all of them were written, as it is stored; nothing if they were not written together.
    delta: Option<u64>,
    /// They as they are stored, if they would be stored again like this.
    stored: Option<&'w [u8]>,
}

/// Plain partitions that were taken.
pub(crate) struct Visited {
    pub(crate) count: u64,
    /// The key of the last one.
    pub(crate) last: DecoratedKey,
    /// The visitor wants no more.
    pub(crate) is_over: bool,
}

/// Which partitions are to be shown, by their keys. A token that was computed for that is kept.
pub(crate) struct WantedKeys<'k, F> {
    partitioner: Partitioner,
    /// Whether a key is wanted; nothing: all are.
    is_wanted: Option<F>,
    /// The partition where the stream stands, if it is known.
    ahead: &'k mut Option<DecoratedKey>,
    /// Of the key that was asked about last.
    token: Option<Token>,
    /// Of the last one that was taken.
    taken: Option<Token>,
}

impl<'k, F: Fn(&Token, &[u8]) -> bool> WantedKeys<'k, F> {
    /// `ahead` is the key of the partition where the stream stands, if it is known, now and afterwards.
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

    #[inline]
    fn wants(&mut self, key: &[u8]) -> bool {
        let Some(is_wanted) = &self.is_wanted else {
            return true;
        };
        let known = self.ahead.take().filter(|ahead| ahead.key == key);
        let token = known.map_or_else(|| self.partitioner.token(key), |ahead| ahead.token);
        let is_wanted = is_wanted(&token, key);
        self.token = Some(token);
        is_wanted
    }

    /// The last one that was wanted is taken.
    #[inline]
    fn take(&mut self) {
        self.taken = self.token.take();
    }

    fn decorated(&self, token: Option<Token>, key: Bytes) -> DecoratedKey {
        match token {
            Some(token) => DecoratedKey { token, key },
            None => DecoratedKey::new(self.partitioner, key),
        }
    }

    /// Keeps the key of the partition where the stream will stand.
    #[inline]
    fn stop_at(&mut self, key: Option<Bytes>) {
        *self.ahead = match (self.token.take(), key) {
            (Some(token), Some(key)) => Some(DecoratedKey { token, key }),
            _ => None,
        };
    }

    fn last(&mut self, key: Bytes) -> DecoratedKey {
        let token = self.taken.take();
        self.decorated(token, key)
    }
}

/// Bytes that are left.
struct Rest<'w>(&'w [u8]);

impl<'w> Rest<'w> {
    #[inline(always)]
    fn u8(&mut self) -> Option<u8> {
        let (byte, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*byte)
    }

    /// The key of a partition that begins here.
    #[inline(always)]
    fn key(&mut self) -> Option<&'w [u8]> {
        let len = self.take(2)?.first_chunk()?;
        self.take(usize::from(u16::from_be_bytes(*len)))
    }

    #[inline(always)]
    fn take(&mut self, len: usize) -> Option<&'w [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    #[inline(always)]
    fn uvint(&mut self) -> Option<u64> {
        let (value, len) = read_uvint(self.0)?;
        self.0 = &self.0[len..];
        Some(value)
    }

    /// Moves past an unsigned vint, of which the first byte tells the length.
    #[inline(always)]
    fn skip_uvint(&mut self) -> Option<()> {
        let more = self.u8()?.leading_ones();
        self.take(more as usize).map(drop)
    }

    #[inline(always)]
    fn taken_by_uvint(&mut self) -> Option<&'w [u8]> {
        let len = usize::try_from(self.uvint()?).ok()?;
        self.take(len)
    }
}

impl RowFormat {
    /// Shows the visitor the partitions from where the stream stands, as long as they are plain, at hand and wanted by their keys.
    /// The stream then stands behind the last one that was taken.
    pub(crate) fn visit_plain<F: Fn(&Token, &[u8]) -> bool>(
        &self,
        stream: &mut DataStream,
        mut keys: WantedKeys<'_, F>,
        visitor: &mut dyn PlainVisitor,
    ) -> Option<Visited> {
        let window = stream.window().0;
        let at_hand = stream.rest().len();
        let mut rest = Rest(&window[window.len() - at_hand..]);
        let (mut count, mut last, mut is_over) = (0, None, false);
        let mut cells = Cells::of(&self.regulars);
        let mut left = at_hand;
        let mut key = rest.key();
        while let Some(wanted) = key.filter(|key| keys.wants(key)) {
            let Some(together) = self.plain_partition(&mut rest, &mut cells) else {
                break;
            };
            let timestamp = together.delta.map(|delta| self.times.timestamp_of(delta));
            let flow = visitor.row(&PlainRow {
                key: wanted,
                token: keys.token.as_ref(),
                timestamp_micros: timestamp.filter(|timestamp| *timestamp != NO_TIMESTAMP),
                cells: cells.found(),
                stored: together.stored,
            });
            if flow == Flow::Leave {
                break;
            }
            keys.take();
            left = rest.0.len();
            last = key;
            count += 1;
            is_over = flow == Flow::Last;
            if is_over {
                break;
            }
            key = rest.key();
        }
        keys.stop_at(key.map(|key| window.slice_ref(key)));
        let last = last.map(|key| keys.last(window.slice_ref(key)));
        drop(cells);
        stream.consume(at_hand - left);
        Some(Visited {
            count,
            last: last?,
            is_over,
        })
    }

    /// The cells of the partition that goes on behind its key, if it is plain and all of it is there.
    #[inline(always)]
    fn plain_partition<'w>(&self, rest: &mut Rest<'w>, cells: &mut Cells<'w>) -> Option<Together<'w>> {
        if !self
            .times
            .is_live_partition(rest.take(self.times.live_partition_len())?)
        {
            return None;
        }
        let flags = rest.u8()?;
        if flags & !(HAS_TIMESTAMP | HAS_ALL_COLUMNS) != 0 {
            return None;
        }
        let body = rest.taken_by_uvint()?;
        if rest.u8()? != END_OF_PARTITION {
            return None;
        }
        cells.count = 0;
        plain_body(&self.regulars, flags, Rest(body), cells)
    }
}

/// The cells of a row; nothing if they are not plain, or it does not live.
#[inline(always)]
fn plain_body<'w>(
    columns: &FileColumns,
    flags: u8,
    mut body: Rest<'w>,
    cells: &mut Cells<'w>,
) -> Option<Together<'w>> {
    body.skip_uvint()?;
    let has_timestamp = flags & HAS_TIMESTAMP != 0;
    let mut delta = match has_timestamp {
        true => Some(body.uvint()?),
        false => None,
    };
    let missing = match flags & HAS_ALL_COLUMNS {
        0 if columns.columns.len() >= BITMAP_COLUMNS => return None,
        0 => body
            .uvint()
            .filter(|missing| missing >> columns.columns.len() == 0)?,
        _ => 0,
    };
    let stored = body.0;
    let mut is_usual = columns.lens_are_same;
    for (index, column) in columns.columns.iter().enumerate() {
        if missing != 0 && missing >> index & 1 == 1 {
            continue;
        }
        let value = match (body.0, column.fixed_len) {
            ([CELL_USES_ROW_TIMESTAMP, len @ 1..0x80, rest @ ..], None) => {
                let (value, rest) = rest.split_at_checked(usize::from(*len))?;
                body.0 = rest;
                value
            }
            (_, fixed_len) => {
                match body.u8()? {
                    CELL_USES_ROW_TIMESTAMP => {}
                    0 => {
                        delta = None;
                        body.skip_uvint()?;
                    }
                    _ => return None,
                }
                let from = body.0;
                let value = match fixed_len {
                    Some(len) => body.take(len)?,
                    None => body.taken_by_uvint()?,
                };
                // An empty value is told by a flag, and a length has as few bytes as it can.
                let len_len = from.len() - body.0.len() - value.len();
                is_usual &= !value.is_empty()
                    && (fixed_len.is_some() || len_len == unsigned_vint_len(value.len() as u64));
                value
            }
        };
        cells.push(column.plain?, value)?;
    }
    let lives = has_timestamp || cells.count > 0;
    (lives && body.0.is_empty()).then_some(Together {
        stored: (is_usual && delta.is_some()).then_some(stored),
        delta,
    })
}
