//! Laws and vectors of several modules.

mod fixtures;
mod names;
mod notation;
mod order;
mod round_trip;
