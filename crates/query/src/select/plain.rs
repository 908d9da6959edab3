//! Plain rows, answered where they lie (`ilion_rows::PlainRow`): from the bytes of a source to those of the answer.

use ilion_codec::SHARED_MIN;
use ilion_rows::{Flow, PlainRow, PlainVisitor, may_be_plain};
use ilion_schema::{Column, ColumnId, ColumnKind, TableSchema};
use ilion_types::decode_composite;

use super::rows_out::RowsOut;

/// What is answered of plain rows.
#[derive(Debug)]
pub(super) struct PlainSelection(Vec<Selected>);

#[derive(Debug)]
enum Selected {
    /// All of the partition key.
    Key,
    KeyComponent(usize),
    Cell(ColumnId),
}

impl PlainSelection {
    /// Of columns as they are; nothing if rows of the table are never plain.
    pub fn of(columns: &[Column], table: &TableSchema) -> Option<Self> {
        let is_composite = table.partition_key().len() > 1;
        let selected = |column: &Column| match column.kind {
            ColumnKind::PartitionKey if is_composite => Selected::KeyComponent(usize::from(column.position)),
            ColumnKind::PartitionKey => Selected::Key,
            _ => Selected::Cell(column.id),
        };
        may_be_plain(table).then(|| Self(columns.iter().map(selected).collect()))
    }

    /// Appends the row; false if it was left alone, since it is damaged, or has a value that should not be copied.
    #[inline]
    fn write(&self, row: &PlainRow<'_>, out: &mut RowsOut) -> bool {
        if row.cells.iter().any(|(_, value)| value.len() >= SHARED_MIN) {
            return false;
        }
        let start = out.cells.end().len();
        for selected in &self.0 {
            match selected {
                Selected::Key => out.value(Some(row.key)),
                Selected::Cell(column) => out.value(row.cell(*column)),
                Selected::KeyComponent(index) => match decode_composite(row.key) {
                    Ok(components) => out.value(components.get(*index).copied()),
                    Err(_) => {
                        out.cells.end().truncate(start);
                        return false;
                    }
                },
            }
        }
        out.end_row();
        true
    }
}

/// Takes plain rows into a page.
pub(super) struct PlainPage<'p> {
    pub selection: &'p PlainSelection,
    pub out: &'p mut RowsOut,
    /// So many rows the page then has.
    pub rows_max: u32,
    /// It ends when it has so many bytes.
    pub bytes_max: usize,
}

impl PlainVisitor for PlainPage<'_> {
    #[inline]
    fn row(&mut self, row: &PlainRow<'_>) -> Flow {
        if !self.selection.write(row, self.out) {
            return Flow::Leave;
        }
        match self.out.row_count >= self.rows_max || self.out.cells.len() >= self.bytes_max {
            true => Flow::Last,
            false => Flow::Next,
        }
    }
}

/// When to look for plain rows: once there were none for some times, each further time doubles the number of rows before the next
/// look.
#[derive(Debug, Default)]
pub(super) struct PlainLuck {
    /// Looks in a row that were in vain.
    misses: u32,
    /// Rows until the next look.
    wait: u32,
}

/// So many looks in vain say nothing: each source begins with a partition that is read as any is.
const MISSES_FREE: u32 = 8;
/// The rows between two looks are doubled so many times.
const DOUBLINGS_MAX: u32 = 6;

impl PlainLuck {
    /// True if it is time to look.
    pub fn is_due(&mut self) -> bool {
        let is_due = self.wait == 0;
        self.wait = self.wait.saturating_sub(1);
        is_due
    }

    /// What a look has found.
    pub fn note(&mut self, is_found: bool) {
        if is_found {
            *self = Self::default();
        } else {
            self.misses = (self.misses + 1).min(MISSES_FREE + DOUBLINGS_MAX);
            self.wait = (1 << self.misses.saturating_sub(MISSES_FREE)) - 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::PlainLuck;

    #[test]
    fn looks_in_vain_become_rare() {
        let mut luck = PlainLuck::default();
        let mut looks = 0;
        for _ in 0..1000 {
            if luck.is_due() {
                looks += 1;
                luck.note(false);
            }
        }
        assert!((20..35).contains(&looks), "{looks}");
        while !luck.is_due() {}
        luck.note(true);
        assert!(luck.is_due());
    }
}
