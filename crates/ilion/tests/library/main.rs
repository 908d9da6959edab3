//! The library as programs use it.

mod batches;
mod clock;
mod custom_index;
mod database;
mod log_losses;
mod values;
