//! Partitions as text: what tests say and `sstable dump` prints.
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
//! * A key or clustering of several columns is written `1:'a'`; a row of a table without clustering columns has none.
//! * `@` is followed by the timestamp in micros. A deletion happened at the second of its timestamp, or at the local second
//!   after `/`. After `ttl=` stands when the cell or liveness ends, if that is not its timestamp plus its TTL.
//! * `v=del@5` is a cell tombstone; of a complex column, the deletion of all of it.
//! * Paths: `m[key]`, `s[element]` (no value), `u.field`, `l[time UUID]`, where `l[#3]` is the UUID of 3 ticks.
//! * A counter is its shards, `n=01:clock:count`, several joined by commas, with `L` or `R` in front if local or remote; the id
//!   is 32 digits, or two if all its bytes are the same. `n=+5` is an increment.
//! * Values are CQL constants. `0x...` stands for the bytes of any type, and for the values of frozen collections and the like.
//! * Ranges: `[` and `]` include, `(` and `)` do not, `*` is no bound. From a cursor, a range is printed where it was met first.
//! * What is printed is parsed back as it was, but for the order of reading. `#` starts a comment.

mod parse;
mod print;
mod scan;
mod table;
#[cfg(test)]
mod tests;

pub use parse::parse_mutations;
pub use print::{print_cursor, print_mutation, print_partition, print_row};
pub use scan::NotationError;
pub use table::parse_table;

/// The local second of a deletion of which only the timestamp is written.
fn default_secs(micros: i64) -> u32 {
    u32::try_from(micros.max(0) / 1_000_000).unwrap_or(u32::MAX - 1)
}

/// When something written at `micros` ends, unless that is written.
fn default_end_secs(micros: i64, ttl_secs: u32) -> u32 {
    default_secs(micros).saturating_add(ttl_secs)
}

/// The short form of a list's path.
fn uuid_of_ticks(ticks: u64) -> [u8; 16] {
    *ilion_types::time_uuid_from_ticks(ticks, 0).as_bytes()
}
