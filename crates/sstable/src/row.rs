//! Rows and markers of Data.db. Whoever changes the row format changes it here, and nowhere else.
//!
//! | module | what |
//! | --- | --- |
//! | [`mod@format`] | the grammar, flags, times, subsets of columns, clustering values; both directions |
//! | [`encode`] | rows to bytes: a careful way for every row, and a fast one for the usual row |
//! | [`decode`] | bytes to rows, with the cell map and with only some columns wanted |
//! | [`seen`] | rows that are read where they lie, and patterns of rows that are laid out alike |
//! | [`source`] | where decoders take bytes from; errors name file and offset |
//! | `rest` | bytes at hand, taken in registers |

pub(crate) mod decode;
pub(crate) mod encode;
pub mod format;
mod rest;
pub(crate) mod seen;
pub(crate) mod source;

pub(crate) use rest::{key_at_hand, read_uvint};
