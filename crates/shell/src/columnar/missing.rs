//! The same functions in a program without these formats: all of them refuse.

use std::sync::Arc;

use ilion_env::ReadFile;
use ilion_protocol::{ColumnSpec, Rows};

use super::{FileCell, Kind};

const MISSING: &str = "This program was built without Parquet and Arrow. The packages of Ilion have them; \
    `cargo build --release -p ilion --features columnar` builds a program with them.";

/// Whether the program has these formats.
///
/// # Errors
/// Always.
pub fn check() -> Result<(), String> {
    Err(MISSING.to_owned())
}

/// Cannot be made.
pub enum PageWriter {}

impl PageWriter {
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn new(_kind: Kind, _columns: &[ColumnSpec]) -> Result<Self, String> {
        Err(MISSING.to_owned())
    }

    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn resume(_columns: &[ColumnSpec], _size_bytes: u64, _footer: &[u8]) -> Result<Self, String> {
        Err(MISSING.to_owned())
    }

    /// Is never called.
    ///
    /// # Errors
    /// None.
    pub fn footer(&self) -> Result<Option<Vec<u8>>, String> {
        match *self {}
    }

    /// Is never called.
    ///
    /// # Errors
    /// None.
    pub fn page(&mut self, _rows: &Rows) -> Result<Vec<u8>, String> {
        match *self {}
    }

    /// Is never called.
    ///
    /// # Errors
    /// None.
    pub fn finish(self) -> Result<Vec<u8>, String> {
        match self {}
    }
}

/// Cannot be made.
pub enum ParquetFile {}

impl ParquetFile {
    /// Refuses.
    ///
    /// # Errors
    /// Always.
    pub fn open(_file: Arc<dyn ReadFile>) -> Result<Self, String> {
        Err(MISSING.to_owned())
    }

    /// Is never called.
    pub fn column_names(&self) -> Vec<String> {
        match *self {}
    }

    /// Is never called.
    pub fn row_count(&self) -> u64 {
        match *self {}
    }

    /// Is never called.
    ///
    /// # Errors
    /// None.
    pub fn begin(&mut self, _columns: &[ColumnSpec], _skipped_rows: u64) -> Result<(), String> {
        match *self {}
    }

    /// Is never called.
    ///
    /// # Errors
    /// None.
    pub fn next_rows(&mut self) -> Result<Option<Vec<Vec<FileCell>>>, String> {
        match *self {}
    }
}
