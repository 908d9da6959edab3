//! Partitions as text: the notation of tests and of `sstable dump`.
//!
//! ```text
//! table k int pk, c int ck desc, s text static, v text, m map<int, text>
//!
//! partition 1 token=-4069959284402364209 del@3
//!   static s='x'@10
//!   row 7 live@10 v='a'@12 ttl=60 m=del@9/100 m[1]='b'@10
//!   row 5 del@12
//!   [4, 2) del@20
//! ```
//!
//! * A key or clustering of several columns is written `1:'a'`. A row of a table without clustering columns has no clustering.
//! * The number after `@` is the timestamp in microseconds. The local time of a deletion is written after `/` in seconds,
//!   unless it is the second of its timestamp. In the same way, the expiration of a cell or liveness is written after
//!   `ttl=N/`, unless it is timestamp plus TTL.
//! * `v=del@5` is a cell tombstone; for a complex column, it is the deletion of the whole column.
//! * Paths: `m[key]`, `s[element]` (no value), `u.field`, `l[time UUID]`, where `l[#3]` is the UUID of 3 ticks.
//! * A counter is a list of shards, `n=01:clock:count`, separated by commas. `L` or `R` in front means local or remote. The
//!   id has 32 digits, or two if all its bytes are the same. `n=+5` is an increment.
//! * Values are CQL constants. `0x...` can replace a value of any type, by its bytes; values of frozen collections, tuples and
//!   similar types are always written in this form.
//! * Ranges: `[` and `]` include, `(` and `)` exclude, `*` is unbounded. A range of a cursor is printed at its first end in the
//!   order of reading.
//! * Parsing a printed text returns the same data, apart from the order of reading. `#` starts a comment.

mod parse;
mod print;
mod scan;
mod table;
#[cfg(test)]
mod tests;

pub use parse::{parse_mutations, parse_partitions};
pub use print::{print_cursor, print_mutation, print_partition};
pub use scan::NotationError;
pub use table::parse_table;

/// The default local time of a deletion.
fn default_secs(micros: i64) -> u32 {
    u32::try_from(micros.max(0) / 1_000_000).unwrap_or(u32::MAX - 1)
}

/// The default expiration of a cell or liveness that was written at `micros`.
fn default_end_secs(micros: i64, ttl_secs: u32) -> u32 {
    default_secs(micros).saturating_add(ttl_secs)
}

/// The path of a list element in its short form, `l[#ticks]`.
fn uuid_of_ticks(ticks: u64) -> [u8; 16] {
    *ilion_types::time_uuid_from_ticks(ticks, 0).as_bytes()
}
