//! Rows and markers of Data.db. The row format is defined here only.
//!
//! | module | what |
//! | --- | --- |
//! | [`mod@format`] | the grammar, flags, times, subsets of columns, clustering values; both directions |
//! | [`encode`] | encodes rows: a general way for every row, and a fast one for the usual row |
//! | [`decode`] | decodes rows, also with the cell map, and only the selected columns |
//! | [`seen`] | plain rows that are read in place, and patterns of rows with the same layout |
//! | [`source`] | the inputs of decoders; their errors name file and offset |
//! | `rest` | the rest of a byte slice that a decoder consumes; kept in registers |

pub(crate) mod decode;
pub(crate) mod encode;
pub mod format;
mod rest;
pub(crate) mod seen;
pub(crate) mod source;

pub(crate) use rest::{key_at_hand, read_uvint};
