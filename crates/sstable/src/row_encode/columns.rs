//! The columns of one kind, in storage order, and the ones of them that a row has.
//!
//! ```text
//! subset := missing:uvint                                   fewer than 64 columns: a bit for each missing one
//!         | missing_count:uvint  index:uvint *              else: of the present ones if they are less than half,
//!                                                           or of the missing ones
//! ```

use ilion_codec::Writer;
use ilion_rows::{Data, Row};
use ilion_schema::{Column, ColumnId, TableSchema};
use ilion_types::CqlType;

use crate::values::{FixedLen, Unstorable};

/// What the encoder must know of a column.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredColumn {
    pub(super) id: ColumnId,
    pub(super) is_complex: bool,
    pub(super) is_counter: bool,
    /// Complex columns always store the lengths of their values.
    pub(super) value_len: FixedLen,
}

impl StoredColumn {
    fn of(column: &Column) -> Self {
        let is_complex = column.is_complex();
        let fixed = column.ty.fixed_len().filter(|_| !is_complex);
        Self {
            id: column.id,
            is_complex,
            is_counter: column.ty == CqlType::Counter,
            value_len: fixed.and_then(|len| u32::try_from(len).ok()),
        }
    }

    /// Whether a value has a length that it may have.
    #[inline]
    pub(super) fn holds(&self, value: &[u8]) -> bool {
        self.value_len
            .is_none_or(|len| value.is_empty() || len as usize == value.len())
    }
}

/// A column of the row at hand: its place in storage order, then in the row.
type Chosen = (u16, u16);

/// Columns with this many bits or more have no bitmap.
const BITMAP_END: usize = 64;
/// In `place_of`: not a column of this kind, or dropped.
const NO_PLACE: u16 = u16::MAX;

#[derive(Debug, Default)]
pub(super) struct ColumnLayout {
    columns: Vec<StoredColumn>,
    /// Place in storage order, by column id.
    place_of: Vec<u16>,
    has_complex: bool,
    /// A bit for each column, if rows of them may be plain.
    bits_of_plain: Option<u64>,
    chosen: Vec<Chosen>,
}

impl ColumnLayout {
    pub(super) fn of<'t>(table: &TableSchema, columns: impl Iterator<Item = &'t Column>) -> Self {
        let mut layout = Self {
            columns: Vec::new(),
            place_of: vec![NO_PLACE; usize::from(table.column_id_end())],
            has_complex: false,
            bits_of_plain: None,
            chosen: Vec::new(),
        };
        for (place, column) in (0..NO_PLACE).zip(columns) {
            let ColumnId(id) = column.id;
            layout.place_of[usize::from(id)] = place;
            layout.has_complex |= column.is_complex();
            layout.columns.push(StoredColumn::of(column));
        }
        let is_plain = layout
            .columns
            .iter()
            .all(|column| !column.is_complex && !column.is_counter);
        if is_plain && layout.columns.len() < BITMAP_END {
            layout.bits_of_plain = Some((1 << layout.columns.len()) - 1);
        }
        layout
    }

    /// A bit for each column, if all are simple, no counters, and few enough.
    #[inline]
    pub(super) fn bits_of_plain(&self) -> Option<u64> {
        self.bits_of_plain
    }

    /// All in storage order, if they are simple, no counters, and few enough.
    #[inline]
    pub(super) fn all_plain(&self) -> Option<&[StoredColumn]> {
        self.bits_of_plain.map(|_| &self.columns[..])
    }

    /// How many there are.
    #[inline]
    pub(super) fn len(&self) -> usize {
        self.columns.len()
    }

    /// Where a column stands; nothing if it is not of this kind, or was dropped.
    #[inline]
    pub(super) fn place_of(&self, column: ColumnId) -> Option<u16> {
        let place = *self.place_of.get(usize::from(column.0))?;
        (place != NO_PLACE).then_some(place)
    }

    /// In storage order.
    #[inline]
    pub(super) fn all(&self) -> impl Iterator<Item = &StoredColumn> {
        self.columns.iter()
    }

    /// The columns whose bits are not set, in storage order.
    #[inline]
    pub(super) fn without(&self, missing: u64) -> impl Iterator<Item = &StoredColumn> {
        let columns = self.columns.iter().enumerate();
        columns.filter_map(move |(place, column)| (missing >> place & 1 == 0).then_some(column))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    pub(super) fn has_complex(&self) -> bool {
        self.has_complex
    }

    /// Picks the columns that are stored, in storage order: not those that were dropped since the row was written, and
    /// not complex ones with nothing in them.
    #[inline]
    pub(super) fn choose(&mut self, row: &Row) -> Result<(), Unstorable> {
        self.chosen.clear();
        let mut is_sorted = true;
        for (index, entry) in (0..=u16::MAX).zip(&row.columns) {
            let place = *self
                .place_of
                .get(usize::from(entry.column.0))
                .ok_or(Unstorable::UnknownColumn)?;
            let Some(column) = self.columns.get(usize::from(place)) else {
                continue;
            };
            match &entry.data {
                Data::Simple(_) if column.is_complex => return Err(Unstorable::WrongShape),
                Data::Complex(_) if !column.is_complex => return Err(Unstorable::WrongShape),
                Data::Complex(complex) if complex.cells.is_empty() && complex.deletion.is_live() => continue,
                _ => {}
            }
            is_sorted &= self.chosen.last().is_none_or(|last| last.0 < place);
            self.chosen.push((place, index));
        }
        if !is_sorted {
            self.chosen.sort_unstable();
            if self.chosen.is_sorted_by(|a, b| a.0 < b.0) {
                return Ok(());
            }
            return Err(Unstorable::TwoOfAColumn);
        }
        Ok(())
    }

    #[inline]
    pub(super) fn chosen(&self) -> &[Chosen] {
        &self.chosen
    }

    #[inline]
    pub(super) fn has_chosen_all(&self) -> bool {
        self.chosen.len() == self.columns.len()
    }

    /// The chosen columns of the row that they were chosen from.
    #[inline]
    pub(super) fn chosen_of<'a>(
        &'a self,
        row: &'a Row,
    ) -> impl Iterator<Item = (&'a StoredColumn, &'a Data)> {
        self.chosen.iter().map(|(place, index)| {
            let column = &self.columns[usize::from(*place)];
            (column, &row.columns[usize::from(*index)].data)
        })
    }

    /// Appends which columns are there; not all are.
    #[inline]
    pub(super) fn encode_subset(&self, out: &mut Writer) {
        encode_subset(self.columns.len(), self.chosen.iter().map(|chosen| chosen.0), out);
    }

    /// Appends that no column is there.
    pub(super) fn encode_empty_subset(&self, out: &mut Writer) {
        encode_subset(self.columns.len(), [].into_iter(), out);
    }
}

#[inline]
fn encode_subset(count: usize, present: impl ExactSizeIterator<Item = u16> + Clone, out: &mut Writer) {
    if count < BITMAP_END {
        let all = (1u64 << count) - 1;
        out.uvint(present.fold(all, |missing, place| missing & !(1 << place)));
        return;
    }
    let present_count = present.len();
    out.uvint((count - present_count) as u64);
    if present_count < count / 2 {
        present.for_each(|place| out.uvint(u64::from(place)));
        return;
    }
    let mut present = present.peekable();
    for place in 0..count as u64 {
        if present.next_if(|present| u64::from(*present) == place).is_none() {
            out.uvint(place);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subset(count: usize, present: &[u16]) -> Vec<u8> {
        let mut out = Writer::new();
        encode_subset(count, present.iter().copied(), &mut out);
        out.into_vec()
    }

    #[test]
    fn subsets_are_stored_as_in_the_notes() {
        assert_eq!(subset(2, &[]), [3]);
        assert_eq!(subset(2, &[1]), [1]);
        assert_eq!(
            subset(63, &[0]),
            [0xFF, 0x7F, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFE]
        );
        assert_eq!(subset(70, &[3, 10, 69]), [0x43, 3, 0x0A, 0x45]);
        let present: Vec<u16> = (0..70).filter(|place| ![5, 6, 40].contains(place)).collect();
        assert_eq!(subset(70, &present), [3, 5, 6, 0x28]);
    }
}
