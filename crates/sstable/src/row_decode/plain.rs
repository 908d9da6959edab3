//! Plain partitions where they lie in the window of a stream (`ilion_rows::PlainRow`).
//!
//! What is not as expected, be it rare or damaged, is not plain: the decoder of all rows reads it then, and tells what is wrong.

use bytes::Bytes;
use ilion_rows::{Flow, PlainRow, PlainVisitor};
use ilion_schema::ColumnId;
use smallvec::SmallVec;

use super::body::{CELL_USES_ROW_TIMESTAMP, HAS_ALL_COLUMNS, HAS_TIMESTAMP};
use super::columns::FileColumns;
use super::source::read_uvint;
use super::subset::BITMAP_COLUMNS;
use super::{END_OF_PARTITION, RowFormat};
use crate::DataStream;

type Cells<'w> = SmallVec<[(ColumnId, &'w [u8]); 8]>;

/// Plain partitions that were taken.
pub(crate) struct Visited {
    pub(crate) count: u64,
    /// The key of the last one.
    pub(crate) last: Bytes,
    /// The visitor wants no more.
    pub(crate) is_over: bool,
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
    pub(crate) fn visit_plain(
        &self,
        stream: &mut DataStream,
        is_wanted: impl Fn(&[u8]) -> bool,
        visitor: &mut dyn PlainVisitor,
    ) -> Option<Visited> {
        let window = stream.window().0.clone();
        let at_hand = stream.rest().len();
        let mut rest = Rest(&window[window.len() - at_hand..]);
        let (mut count, mut last, mut is_over) = (0, None, false);
        let mut cells = Cells::new();
        let mut left = at_hand;
        while let Some(key) = rest.key().filter(|key| is_wanted(key)) {
            if self.plain_partition(&mut rest, &mut cells).is_none() {
                break;
            }
            let flow = visitor.row(&PlainRow { key, cells: &cells });
            if flow == Flow::Leave {
                break;
            }
            left = rest.0.len();
            last = Some(key);
            count += 1;
            is_over = flow == Flow::Last;
            if is_over {
                break;
            }
        }
        stream.consume(at_hand - left);
        Some(Visited {
            count,
            // A copy: a slice would keep the window's memory from being used again.
            last: Bytes::copy_from_slice(last?),
            is_over,
        })
    }

    /// The cells of the partition that goes on behind its key, if it is plain and all of it is there.
    #[inline(always)]
    fn plain_partition<'w>(&self, rest: &mut Rest<'w>, cells: &mut Cells<'w>) -> Option<()> {
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
        cells.clear();
        plain_body(&self.regulars, flags, Rest(body), cells)
    }
}

/// The cells of a row; nothing if they are not plain, or it does not live.
#[inline(always)]
fn plain_body<'w>(columns: &FileColumns, flags: u8, mut body: Rest<'w>, cells: &mut Cells<'w>) -> Option<()> {
    body.skip_uvint()?;
    if flags & HAS_TIMESTAMP != 0 {
        body.skip_uvint()?;
    }
    let columns = &columns.columns;
    let missing = match flags & HAS_ALL_COLUMNS {
        0 if columns.len() >= BITMAP_COLUMNS => return None,
        0 => body.uvint().filter(|missing| missing >> columns.len() == 0)?,
        _ => 0,
    };
    for (index, column) in columns.iter().enumerate() {
        if missing != 0 && missing >> index & 1 == 1 {
            continue;
        }
        match body.u8()? {
            CELL_USES_ROW_TIMESTAMP => {}
            0 => body.skip_uvint()?,
            _ => return None,
        }
        let value = match column.fixed_len {
            Some(len) => body.take(len)?,
            None => body.taken_by_uvint()?,
        };
        cells.push((column.plain?, value));
    }
    let lives = flags & HAS_TIMESTAMP != 0 || !cells.is_empty();
    (lives && body.0.is_empty()).then_some(())
}
