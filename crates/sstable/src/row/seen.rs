//! Plain rows that are read in place, without building a row ([`ilion_rows::PlainRow`]).
//!
//! | module | what |
//! | --- | --- |
//! | `visit` | shows plain rows and partitions to a visitor |
//! | `pattern` | finds rows of one layout by comparing the bytes that determine the layout |

mod pattern;
mod visit;

pub(crate) use pattern::Patterns;
pub(crate) use visit::WantedKeys;
