//! The rows of the soak: statements, values, and checks of answers.
//!
//! The first eight bytes of a value are its version: 0 if the row was inserted, else the number of the operation that updated it, from 1.
//! The rest is a function of row, column and version. So the check accepts any version that may have been written, and no other value.

use std::sync::Arc;

use ilion_types::{Partitioner, Token};

use crate::bench::dataset::{COLUMN_COUNT, Dataset, KEY_BYTES};
use crate::bench::job::{Cells, Job};
use crate::bench::work::Plan;

const VERSION_BYTES: usize = 8;

/// The rows, and their table.
#[derive(Clone, Debug)]
pub struct SoakRows {
    /// Keyspace and table.
    pub table: String,
    /// Keys and values.
    pub dataset: Dataset,
    /// Number of rows when the mix begins.
    pub loaded: u64,
    /// The partitioner of the table.
    pub partitioner: Partitioner,
}

/// A statement of the soak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    Read,
    Insert,
    Scan,
    /// UPDATE of this column.
    Update(usize),
}

impl Text {
    /// All statements, in the order of [`Self::index`].
    pub fn all() -> impl Iterator<Item = Self> {
        let updates = (0..COLUMN_COUNT).map(Self::Update);
        [Self::Read, Self::Insert, Self::Scan].into_iter().chain(updates)
    }

    pub fn index(self) -> usize {
        match self {
            Self::Read => 0,
            Self::Insert => 1,
            Self::Scan => 2,
            Self::Update(column) => 3 + column,
        }
    }
}

/// One request.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    pub text: Text,
    pub row: u64,
    /// The version of the value that an update writes.
    pub version: u64,
    /// Most rows of a scan.
    pub limit: u32,
}

impl SoakRows {
    /// The statement that creates the table.
    pub fn create_text(&self, with: Option<&str>) -> String {
        let columns: Vec<String> = (0..COLUMN_COUNT)
            .map(|column| format!("\"C{column}\" blob"))
            .collect();
        let with = with.map_or_else(String::new, |with| format!(" WITH {with}"));
        let (table, columns) = (&self.table, columns.join(", "));
        format!("CREATE TABLE {table} (key blob PRIMARY KEY, {columns}){with}")
    }

    pub fn text(&self, text: Text) -> String {
        let (table, columns) = (&self.table, Plan::columns());
        match text {
            Text::Read => format!("SELECT key, {columns} FROM {table} WHERE key = ?"),
            Text::Insert => format!("INSERT INTO {table} (key, {columns}) VALUES (?, ?, ?, ?, ?, ?)"),
            Text::Scan => format!("SELECT key, {columns} FROM {table} WHERE token(key) >= ? LIMIT ?"),
            Text::Update(column) => format!("UPDATE {table} SET \"C{column}\" = ? WHERE key = ?"),
        }
    }

    /// Size of each bind value.
    pub fn sizes(&self, text: Text) -> Vec<usize> {
        let value = self.dataset.value_bytes();
        match text {
            Text::Read => vec![KEY_BYTES],
            Text::Insert => [&[KEY_BYTES][..], &[value; COLUMN_COUNT]].concat(),
            Text::Scan => vec![self.token(0).to_bytes().len(), 4],
            Text::Update(_) => vec![value, KEY_BYTES],
        }
    }

    /// Bytes that a client writes with a request.
    pub fn written_bytes(&self, text: Text) -> u64 {
        let sizes = self.sizes(text).into_iter().sum::<usize>() as u64;
        match text {
            Text::Insert | Text::Update(_) => sizes,
            Text::Read | Text::Scan => 0,
        }
    }

    /// Bytes of a row, without what a store adds.
    pub fn row_bytes(&self) -> u64 {
        self.written_bytes(Text::Insert)
    }

    fn token(&self, row: u64) -> Token {
        self.partitioner.token(&self.dataset.key(row))
    }

    /// Writes a bind value.
    pub fn fill(&self, asked: Asked, index: usize, place: &mut [u8]) {
        match (asked.text, index) {
            (Text::Scan, 0) => place.copy_from_slice(&self.token(asked.row).to_bytes()),
            (Text::Scan, _) => place.copy_from_slice(&asked.limit.to_be_bytes()),
            (Text::Insert, 1..) => self.fill_value(asked.row, index - 1, 0, place),
            (Text::Update(column), 0) => self.fill_value(asked.row, column, asked.version, place),
            _ => place.copy_from_slice(&self.dataset.key(asked.row)),
        }
    }

    fn fill_value(&self, row: u64, column: usize, version: u64, place: &mut [u8]) {
        let (head, rest) = place.split_at_mut(VERSION_BYTES);
        head.copy_from_slice(&version.to_be_bytes());
        self.dataset.fill(row ^ version.rotate_left(32), column, rest);
    }

    /// Checks an answer. Returns the number of rows, or what is wrong.
    pub fn check(&self, asked: Asked, rows: &[Cells<'_>]) -> Result<u64, String> {
        match asked.text {
            Text::Insert | Text::Update(_) => Ok(1),
            Text::Read => {
                let row = asked.row;
                match rows {
                    [cells] if self.check_row(cells)? == row => Ok(1),
                    // Its INSERT may not be executed yet.
                    [] if row >= self.loaded => Ok(0),
                    _ => Err(format!("row {row}: {} rows came back", rows.len())),
                }
            }
            Text::Scan => {
                let mut last = None;
                for cells in rows {
                    let token = self.token(self.check_row(cells)?);
                    if token < self.token(asked.row) || last.is_some_and(|last| token <= last) {
                        return Err(format!("token {token} came in the wrong place"));
                    }
                    last = Some(token);
                }
                // The first row exists if it was loaded; at the end of the ring a scan may return fewer rows than its limit.
                match rows.is_empty() && asked.row < self.loaded || rows.len() > asked.limit as usize {
                    true => Err(format!("{} rows from row {} on came back", rows.len(), asked.row)),
                    false => Ok(rows.len() as u64),
                }
            }
        }
    }

    /// Checks all cells. Returns the number of the row.
    fn check_row(&self, cells: &[Option<&[u8]>]) -> Result<u64, String> {
        let [Some(key), values @ ..] = cells else {
            return Err("a row without a key came back".to_owned());
        };
        let row = self.dataset.row_of(key);
        let row = row.ok_or_else(|| "a key that was never written came back".to_owned())?;
        let mut expected = vec![0; self.dataset.value_bytes()];
        for (column, value) in values.iter().enumerate() {
            let version = value.and_then(|value| value.first_chunk::<VERSION_BYTES>());
            let version = version.map(|bytes| u64::from_be_bytes(*bytes));
            self.fill_value(row, column, version.unwrap_or_default(), &mut expected);
            if *value != Some(&expected[..]) {
                return Err(format!("row {row}: column C{column} is not what was written"));
            }
        }
        match values.len() {
            COLUMN_COUNT => Ok(row),
            other => Err(format!("row {row}: {other} columns came back")),
        }
    }
}

/// INSERT of the rows that exist when the mix begins.
pub struct Inserts(pub Arc<SoakRows>);

impl Inserts {
    fn asked(number: u64) -> Asked {
        Asked {
            text: Text::Insert,
            row: number,
            version: 0,
            limit: 0,
        }
    }
}

impl Job for Inserts {
    fn text(&self) -> String {
        self.0.text(Text::Insert)
    }

    fn sizes(&self) -> Vec<usize> {
        self.0.sizes(Text::Insert)
    }

    fn fill(&self, number: u64, index: usize, place: &mut [u8]) {
        self.0.fill(Self::asked(number), index, place);
    }

    fn check(&self, _number: u64, _rows: &[Cells<'_>]) -> Result<u64, String> {
        Ok(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> SoakRows {
        SoakRows {
            table: "ks.t".to_owned(),
            dataset: Dataset::new(1, 20),
            loaded: 100,
            partitioner: Partitioner::Murmur3,
        }
    }

    fn asked(text: Text, row: u64, version: u64) -> Asked {
        Asked {
            text,
            row,
            version,
            limit: 3,
        }
    }

    /// The cells of a row after an insert, and an update of a column.
    fn cells(rows: &SoakRows, row: u64, updated: Option<(usize, u64)>) -> Vec<Vec<u8>> {
        let value = |text, version, index| {
            let asked = asked(text, row, version);
            let mut value = vec![0; rows.sizes(text)[index]];
            rows.fill(asked, index, &mut value);
            value
        };
        let mut cells: Vec<Vec<u8>> = (0..=COLUMN_COUNT)
            .map(|index| value(Text::Insert, 0, index))
            .collect();
        if let Some((column, version)) = updated {
            cells[column + 1] = value(Text::Update(column), version, 0);
        }
        cells
    }

    fn shown(cells: &[Vec<u8>]) -> Cells<'_> {
        cells.iter().map(|cell| Some(&cell[..])).collect()
    }

    #[test]
    fn every_version_that_was_written_passes_and_nothing_else() {
        let rows = rows();
        let read = asked(Text::Read, 7, 0);
        for updated in [None, Some((2, 99))] {
            let mut cells = cells(&rows, 7, updated);
            assert_eq!(rows.check(read, &[shown(&cells)]), Ok(1));
            assert!(rows.check(asked(Text::Read, 8, 0), &[shown(&cells)]).is_err());
            cells[3][7] ^= 1;
            assert!(
                rows.check(read, &[shown(&cells)]).is_err(),
                "another version's bytes"
            );
        }
        let mut lost = cells(&rows, 7, None);
        assert!(rows.check(read, &[]).is_err());
        lost.pop();
        assert!(rows.check(read, &[shown(&lost)]).is_err());
        // A row that is being inserted may be there or not.
        assert_eq!(rows.check(asked(Text::Read, 100, 0), &[]), Ok(0));
    }

    #[test]
    fn scans_are_in_order_from_their_row_on() {
        let rows = rows();
        let mut order: Vec<u64> = (0..100).collect();
        order.sort_by_key(|row| rows.token(*row));
        let all: Vec<Vec<Vec<u8>>> = order.iter().map(|row| cells(&rows, *row, None)).collect();
        let scan = asked(Text::Scan, order[10], 0);
        let take =
            |places: &[usize]| -> Vec<Cells<'_>> { places.iter().map(|at| shown(&all[*at])).collect() };
        assert_eq!(rows.check(scan, &take(&[10, 11, 12])), Ok(3));
        assert!(rows.check(scan, &take(&[10, 12, 11])).is_err());
        assert!(rows.check(scan, &take(&[9, 10])).is_err());
        assert!(rows.check(scan, &take(&[10, 11, 12, 13])).is_err());
        assert!(rows.check(scan, &[]).is_err());
    }
}
