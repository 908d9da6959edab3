//! Parquet and Arrow files, if the program was built with them (feature `columnar`). Without them, everything here is refused.

#[cfg(feature = "columnar")]
mod built;
#[cfg(not(feature = "columnar"))]
mod missing;

#[cfg(feature = "columnar")]
pub use built::{PageWriter, ParquetFile, check};
#[cfg(not(feature = "columnar"))]
pub use missing::{PageWriter, ParquetFile, check};

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Parquet.
    Parquet,
    /// An IPC file of Arrow.
    Arrow,
}

/// A value of a file, or its text and why it is none of its column; `None` is null.
pub type FileCell = Result<Option<Vec<u8>>, (String, String)>;
