//! Rows that are read where they lie, without being built ([`ilion_rows::PlainRow`]).
//!
//! | module | what |
//! | --- | --- |
//! | `visit` | shows rows and partitions to a visitor as long as they are plain |
//! | `pattern` | many rows of one layout, found by comparing the bytes that say how a row is laid out |

mod pattern;
mod visit;

pub(crate) use pattern::Patterns;
pub(crate) use visit::WantedKeys;
