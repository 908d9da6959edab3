//! Rows of CQL as Parquet and Arrow files, and rows of Parquet files.
//!
//! [`RowWriter`] turns pages of serialized values into the bytes of a file; [`RowReader`] reads the rows of a Parquet file as serialized
//! values. CQL types become the Arrow types that `to_arrow` of the Python package has (`python/src/ilion/arrow.py`), but Parquet has no
//! durations of months, days and nanoseconds: there they are text.
//!
//! | module | what |
//! | --- | --- |
//! | `arrow_type` | CQL types as types of Arrow; [`FileKind`] |
//! | `arrays` | values of a column as an array of Arrow |
//! | `cells` | an array of Arrow as values of a CQL type |
//! | `writer`, `parquet_writer` | [`RowWriter`] |
//! | `reader` | [`RowReader`] |
//!
//! When you add a type, change `arrow_type`, `arrays`, `cells` and `python/src/ilion/arrow.py`.

mod arrays;
mod arrow_type;
mod cells;
mod parquet_writer;
mod reader;
mod writer;

pub use arrow_type::FileKind;
pub use cells::{Cell, Wrong};
pub use reader::{Opened, RowReader};
pub use writer::RowWriter;

/// Why a file cannot be written or read.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file is no Parquet file, or it is damaged, or it has a feature that this program cannot read.
    #[error("{0}")]
    Parquet(#[from] parquet::errors::ParquetError),
    /// Arrays do not fit together.
    #[error("{0}")]
    Arrow(#[from] arrow_schema::ArrowError),
    /// The server sent a value that is none of its type.
    #[error("column {column}: {problem}")]
    Value {
        /// The column.
        column: String,
        /// What is wrong.
        problem: String,
    },
    /// The file has no such column.
    #[error("the file has no column {0}")]
    NoColumn(String),
}
