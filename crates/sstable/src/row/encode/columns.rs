//! The columns of a table that are static, or that are not, in storage order, and the ones of them that a row has.

use ilion_codec::Append;
use ilion_schema::{Column, ColumnId, TableSchema};
use ilion_types::CqlType;

use super::source::{Content, RowSource};
use crate::row::format::BITMAP_COLUMNS;
use crate::row::format::subset::encode_subset;
use crate::row::format::values::{FixedLen, Unstorable};

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
}

/// The most bytes that a vint takes.
pub(super) const VINT_BYTES_MAX: usize = 9;
/// The most bytes that a deletion inside a row takes.
const DELETION_BYTES_MAX: usize = 2 * VINT_BYTES_MAX;
/// The most bytes that a cell takes beside its path and its value: flags, three times, a length.
const CELL_HEAD_BYTES_MAX: usize = 1 + 4 * VINT_BYTES_MAX;

/// A column of the row at hand: its place in storage order, then in the row.
type Chosen = (u16, u16);

/// In `place_of`: not a column of this kind, or dropped.
const NO_PLACE: u16 = u16::MAX;

#[derive(Debug, Default)]
pub(super) struct ColumnLayout {
    columns: Vec<StoredColumn>,
    /// Place in storage order, by column id.
    place_of: Vec<u16>,
    has_complex: bool,
    /// All columns are simple, and no counters.
    is_simple: bool,
    chosen: Vec<Chosen>,
}

impl ColumnLayout {
    pub(super) fn of<'t>(table: &TableSchema, columns: impl Iterator<Item = &'t Column>) -> Self {
        let mut layout = Self {
            columns: Vec::new(),
            place_of: vec![NO_PLACE; usize::from(table.column_id_end())],
            has_complex: false,
            is_simple: true,
            chosen: Vec::new(),
        };
        for (place, column) in (0..NO_PLACE).zip(columns) {
            let ColumnId(id) = column.id;
            layout.place_of[usize::from(id)] = place;
            let column = StoredColumn::of(column);
            layout.has_complex |= column.is_complex;
            layout.is_simple &= !column.is_complex && !column.is_counter;
            layout.columns.push(column);
        }
        layout
    }

    /// All in storage order, if they are simple, no counters, and few enough for a bitmap.
    #[inline]
    pub(super) fn all_simple(&self) -> Option<&[StoredColumn]> {
        (self.is_simple && self.has_bitmap()).then_some(&self.columns[..])
    }

    /// Which columns a row has is stored as a bitmap.
    #[inline]
    pub(super) fn has_bitmap(&self) -> bool {
        self.columns.len() < BITMAP_COLUMNS
    }

    pub(super) fn is_empty(&self) -> bool {
        self.columns.is_empty()
    }

    pub(super) fn has_complex(&self) -> bool {
        self.has_complex
    }

    /// Picks the columns that are stored, in storage order: not those that were dropped since the row was written, and
    /// not complex ones with nothing in them. Returns the most bytes that they can take.
    #[inline]
    pub(super) fn choose(&mut self, row: &impl RowSource) -> Result<usize, Unstorable> {
        self.chosen.clear();
        let (mut is_sorted, mut most) = (true, 0);
        let columns = (0..=u16::MAX).map_while(|index| Some((index, row.column(usize::from(index))?)));
        for (index, (id, content)) in columns {
            let place = *self
                .place_of
                .get(usize::from(id.0))
                .ok_or(Unstorable::UnknownColumn)?;
            let Some(column) = self.columns.get(usize::from(place)) else {
                continue;
            };
            most += match content {
                Content::Simple(..) if column.is_complex => return Err(Unstorable::WrongShape),
                Content::Complex(_) if !column.is_complex => return Err(Unstorable::WrongShape),
                Content::Complex(complex) if complex.cells.is_empty() && complex.deletion.is_live() => {
                    continue;
                }
                Content::Simple(cell, _) => CELL_HEAD_BYTES_MAX + cell.value.len(),
                Content::Complex(complex) => {
                    let cells = complex.cells.iter();
                    let cells = cells.map(|(path, cell)| {
                        CELL_HEAD_BYTES_MAX + VINT_BYTES_MAX + path.len() + cell.value.len()
                    });
                    DELETION_BYTES_MAX + VINT_BYTES_MAX + cells.sum::<usize>()
                }
            };
            is_sorted &= self.chosen.last().is_none_or(|last| last.0 < place);
            self.chosen.push((place, index));
        }
        if !is_sorted {
            self.chosen.sort_unstable();
            if !self.chosen.is_sorted_by(|a, b| a.0 < b.0) {
                return Err(Unstorable::TwoOfAColumn);
            }
        }
        Ok(most)
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
        row: &'a impl RowSource,
    ) -> impl Iterator<Item = (&'a StoredColumn, Content<'a>)> {
        self.chosen.iter().filter_map(|(place, index)| {
            let column = &self.columns[usize::from(*place)];
            Some((column, row.column(usize::from(*index))?.1))
        })
    }

    /// Appends which columns are there; not all are.
    #[inline]
    pub(super) fn encode_subset(&self, out: &mut impl Append) {
        encode_subset(self.columns.len(), self.chosen.iter().map(|chosen| chosen.0), out);
    }

    /// Appends that no column is there.
    pub(super) fn encode_empty_subset(&self, out: &mut impl Append) {
        encode_subset(self.columns.len(), [].into_iter(), out);
    }
}
