//! SSTables: written, read, damaged. One binary, since each one costs a link, and their tests would wait for each other.
//!
//! `support` finds fixtures and reads and writes whole SSTables; `random_tables`, `projection`, `rewrite` and `shown` are for some of
//! the tests only.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

mod alike;
mod cell_map;
mod checksums_of_others;
mod cut_files;
mod damage;
mod damage_of_ours;
mod damaged_tries;
mod deleted_runs;
mod dropped_columns;
mod entries;
mod fixtures;
mod old_versions;
mod plain;
mod plain_clustered;
mod plain_rows;
mod projection;
mod random_tables;
mod rewrite;
mod round_trip;
mod shown;
mod slices;
mod spec;
mod support;
mod token_map;
mod verify;
