//! The static or the regular columns of a table in storage order, and the columns of a row that are stored.

use ilion_codec::Append;
use ilion_schema::{Column, ColumnId, TableSchema};
use ilion_types::CqlType;

use super::source::{Content, RowSource};
use crate::row::format::subset::encode_subset;
use crate::row::format::values::{FixedLen, Unstorable};
use crate::row::format::{BITMAP_COLUMNS, VINT_BYTES_MAX};

/// A column of the table, with the facts that the encoder needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct StoredColumn {
    pub(super) id: ColumnId,
    pub(super) is_complex: bool,
    pub(super) is_counter: bool,
    /// `None` for complex columns, which always store the lengths of their values.
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

/// Maximum length of a deletion inside a row.
const DELETION_BYTES_MAX: usize = 2 * VINT_BYTES_MAX;
/// Maximum length of a cell without path and value: flags, three times, a length.
const CELL_HEAD_BYTES_MAX: usize = 1 + 4 * VINT_BYTES_MAX;

/// A column of the current row: its index in storage order, and its index in the row.
type Chosen = (u16, u16);

/// In `place_of`: a column of the other kind (static or regular), or a dropped one.
const NO_PLACE: u16 = u16::MAX;

#[derive(Debug, Default)]
pub(super) struct ColumnLayout {
    columns: Vec<StoredColumn>,
    /// Index in storage order, by column id.
    place_of: Vec<u16>,
    has_complex: bool,
    /// True if all columns are simple, and none is a counter.
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

    /// All columns in storage order, if they are simple, no counters, and few enough for a bitmap.
    #[inline]
    pub(super) fn all_simple(&self) -> Option<&[StoredColumn]> {
        (self.is_simple && self.has_bitmap()).then_some(&self.columns[..])
    }

    /// True if the columns of a row are stored as a bitmap.
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

    /// Chooses the columns to store, in storage order: without columns that were dropped since the row was written, and without
    /// empty complex columns. Returns an upper bound of their size in bytes.
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

    /// The chosen columns with their data. Requires: they were chosen for this row.
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

    /// Appends the subset of chosen columns. Requires: not all are chosen.
    #[inline]
    pub(super) fn encode_subset(&self, out: &mut impl Append) {
        encode_subset(self.columns.len(), self.chosen.iter().map(|chosen| chosen.0), out);
    }

    /// Appends the empty subset.
    pub(super) fn encode_empty_subset(&self, out: &mut impl Append) {
        encode_subset(self.columns.len(), [].into_iter(), out);
    }
}
