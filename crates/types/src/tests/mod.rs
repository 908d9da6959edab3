//! Laws and vectors that span modules.

mod fixtures;
mod names;
mod notation;
mod order;
mod round_trip;
