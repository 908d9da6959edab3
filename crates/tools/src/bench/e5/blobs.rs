//! The rows of experiment 5 in both schemas, and their statements.

use std::sync::Arc;

use serde::Serialize;

use crate::bench::dataset::{Dataset, KEY_BYTES, mix};
use crate::bench::job::{Cells, Job};

/// The layout of the blobs of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Schema {
    /// All blobs of a key are columns of one row.
    Columns,
    /// All blobs of a key are rows of one partition.
    Rows,
}

impl Schema {
    /// The name in tables and reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Columns => "columns",
            Self::Rows => "rows",
        }
    }
}

/// All blobs, and their table.
#[derive(Clone, Debug)]
pub struct Blobs {
    /// Keyspace and table.
    pub table: String,
    /// Their layout.
    pub schema: Schema,
    /// Blobs of each key.
    pub columns: u16,
    /// Number of keys.
    pub rows: u64,
    /// Keys and values.
    pub dataset: Dataset,
}

impl Blobs {
    /// The statement that creates the table.
    pub fn create_text(&self, with: &str) -> String {
        let table = &self.table;
        match self.schema {
            Schema::Rows => {
                format!("CREATE TABLE {table} (k blob, c int, v blob, PRIMARY KEY (k, c)){with}")
            }
            Schema::Columns => {
                let columns: Vec<String> = self.names().map(|name| format!("{name} blob")).collect();
                format!(
                    "CREATE TABLE {table} (k blob PRIMARY KEY, {}){with}",
                    columns.join(", ")
                )
            }
        }
    }

    /// Number of statements that write all blobs.
    pub fn writes(&self) -> u64 {
        match self.schema {
            Schema::Columns => self.rows,
            Schema::Rows => self.rows * u64::from(self.columns),
        }
    }

    fn names(&self) -> impl Iterator<Item = String> {
        (0..self.columns).map(|column| format!("v{column:03}"))
    }

    /// The column that is read: neither the first nor the last of three or more.
    fn asked(&self) -> u16 {
        self.columns * 2 / 3
    }
}

/// INSERT of one row: all blobs of a key, or one blob.
pub struct BlobWrites(pub Arc<Blobs>);

impl BlobWrites {
    /// The key and the column of an operation.
    fn place(&self, number: u64) -> (u64, u16) {
        let columns = u64::from(self.0.columns);
        let column = u16::try_from(number % columns).unwrap_or(0);
        (number / columns, column)
    }
}

impl Job for BlobWrites {
    fn text(&self) -> String {
        let table = &self.0.table;
        match self.0.schema {
            Schema::Rows => format!("INSERT INTO {table} (k, c, v) VALUES (?, ?, ?)"),
            Schema::Columns => {
                let names: Vec<String> = self.0.names().collect();
                let marks = vec!["?"; names.len()].join(", ");
                format!(
                    "INSERT INTO {table} (k, {}) VALUES (?, {marks})",
                    names.join(", ")
                )
            }
        }
    }

    fn sizes(&self) -> Vec<usize> {
        let value = self.0.dataset.value_bytes();
        match self.0.schema {
            Schema::Rows => vec![KEY_BYTES, 4, value],
            Schema::Columns => {
                let mut sizes = vec![KEY_BYTES];
                sizes.resize(1 + usize::from(self.0.columns), value);
                sizes
            }
        }
    }

    fn fill(&self, number: u64, index: usize, place: &mut [u8]) {
        let dataset = &self.0.dataset;
        match (self.0.schema, index) {
            (Schema::Columns, 0) => place.copy_from_slice(&dataset.key(number)),
            (Schema::Columns, index) => dataset.fill(number, index - 1, place),
            (Schema::Rows, 0) => place.copy_from_slice(&dataset.key(self.place(number).0)),
            (Schema::Rows, 1) => place.copy_from_slice(&i32::from(self.place(number).1).to_be_bytes()),
            (Schema::Rows, _) => {
                let (row, column) = self.place(number);
                dataset.fill(row, usize::from(column), place);
            }
        }
    }

    fn check(&self, _number: u64, _rows: &[Cells<'_>]) -> Result<u64, String> {
        Ok(1)
    }
}

/// SELECT of one blob of a key.
pub struct BlobReads {
    blobs: Arc<Blobs>,
    /// Shuffled keys, so that consecutive reads are not neighbours in the file.
    order: Vec<u64>,
}

impl BlobReads {
    /// Reads one blob of each key in turn.
    pub fn one(blobs: &Arc<Blobs>) -> Self {
        let mut order: Vec<u64> = (0..blobs.rows).collect();
        order.sort_by_key(|row| mix(*row ^ 0x51ed));
        Self {
            blobs: blobs.clone(),
            order,
        }
    }

    #[expect(clippy::cast_possible_truncation, reason = "below the length")]
    fn row(&self, number: u64) -> u64 {
        self.order[(number % self.order.len() as u64) as usize]
    }
}

impl Job for BlobReads {
    fn text(&self) -> String {
        let Blobs { table, .. } = &*self.blobs;
        let asked = self.blobs.asked();
        match self.blobs.schema {
            Schema::Columns => format!("SELECT v{asked:03} FROM {table} WHERE k = ?"),
            Schema::Rows => format!("SELECT v FROM {table} WHERE k = ? AND c = {asked}"),
        }
    }

    fn sizes(&self) -> Vec<usize> {
        vec![KEY_BYTES]
    }

    fn fill(&self, number: u64, _index: usize, place: &mut [u8]) {
        place.copy_from_slice(&self.blobs.dataset.key(self.row(number)));
    }

    fn check(&self, number: u64, rows: &[Cells<'_>]) -> Result<u64, String> {
        let row = self.row(number);
        let [cells] = rows else {
            return Err(format!("key {row}: {} rows came back", rows.len()));
        };
        let column = usize::from(self.blobs.asked());
        match cells[..] {
            [Some(value)] if self.blobs.dataset.is_value(row, column, value) => Ok(1),
            _ => Err(format!("key {row}: blob {column} is not what was written")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blobs(schema: Schema) -> Arc<Blobs> {
        Arc::new(Blobs {
            table: "ks.t".to_owned(),
            schema,
            columns: 3,
            rows: 5,
            dataset: Dataset::new(1, 20),
        })
    }

    #[test]
    fn both_schemas_have_the_same_blobs() {
        let (columns, rows) = (blobs(Schema::Columns), blobs(Schema::Rows));
        assert_eq!((columns.writes(), rows.writes()), (5, 15));
        let (mut of_columns, mut of_rows) = ([0; 20], [0; 20]);
        BlobWrites(columns.clone()).fill(2, 1 + 1, &mut of_columns);
        BlobWrites(rows.clone()).fill(2 * 3 + 1, 2, &mut of_rows);
        assert_eq!(of_columns, of_rows);
        assert_eq!(
            BlobWrites(columns).text(),
            "INSERT INTO ks.t (k, v000, v001, v002) VALUES (?, ?, ?, ?)"
        );
        assert_eq!(
            BlobReads::one(&rows).text(),
            "SELECT v FROM ks.t WHERE k = ? AND c = 2"
        );
    }

    #[test]
    fn another_blob_than_the_one_asked_for_is_an_error() {
        let blobs = blobs(Schema::Columns);
        let reads = BlobReads::one(&blobs);
        let (mut right, mut wrong) = ([0; 20], [0; 20]);
        blobs.dataset.fill(reads.row(7), 2, &mut right);
        blobs.dataset.fill(reads.row(7), 1, &mut wrong);
        assert_eq!(reads.check(7, &[vec![Some(&right)]]), Ok(1));
        assert!(reads.check(7, &[vec![Some(&wrong)]]).is_err());
        assert!(reads.check(7, &[vec![None]]).is_err());
        assert!(reads.check(7, &[]).is_err());
    }
}
