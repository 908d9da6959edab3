//! Laws and vectors that span modules.

mod names;
mod order;
