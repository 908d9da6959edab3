//! Table options with Cassandra 5.0's names and defaults (`org.apache.cassandra.schema.TableParams`).
//!
//! `parse` parses the options of a statement, `java_double` prints numbers; the other modules each parse the values of one option.

pub(crate) mod caching;
pub(crate) mod compaction;
pub(crate) mod compression;
pub(crate) mod java_double;
mod parse;
mod retry;
mod unified;

use std::collections::BTreeMap;

use bytes::Bytes;

/// `WITH caching = {...}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CachingOptions {
    /// Key cache: `ALL` or `NONE`.
    pub keys: bool,
    /// Row cache: number of rows cached at the start of each partition; `None` is `NONE`, `Some(u32::MAX)` is `ALL`.
    pub rows_per_partition: Option<u32>,
}

/// The options after `WITH`. Maps are sorted by key, as Cassandra prints them.
#[derive(Clone, Debug, PartialEq)]
pub struct TableOptions {
    /// Speculative retry of writes; stored, but without effect on a single node.
    pub additional_write_policy: String,
    /// Whether DROP and TRUNCATE take a snapshot first.
    pub allow_auto_snapshot: bool,
    /// False-positive chance of the Bloom filter, in (0, 1]; 1 means no filter.
    pub bloom_filter_fp_chance: f64,
    /// What is cached.
    pub caching: CachingOptions,
    /// Whether writes are kept for consumers of change data capture.
    pub cdc: bool,
    /// Comment.
    pub comment: String,
    /// Compaction class (full name under key `class`) and its options.
    pub compaction: BTreeMap<String, String>,
    /// Compressor class (full name under key `class`), `chunk_length_in_kb`, ...; empty if not compressed.
    pub compression: BTreeMap<String, String>,
    /// Chance that a read checks a chunk's CRC; Ilion always checks.
    pub crc_check_chance: f64,
    /// TTL in seconds of writes without one; 0 means no expiry.
    pub default_time_to_live_secs: u32,
    /// Extensions, which Ilion does not interpret.
    pub extensions: BTreeMap<String, Bytes>,
    /// Seconds before a tombstone may be purged.
    pub gc_grace_secs: u32,
    /// Whether new SSTables are hard-linked into `backups/`.
    pub incremental_backups: bool,
    /// Upper bound of the index summary's interval.
    pub max_index_interval: u32,
    /// Name of the memtable configuration.
    pub memtable: String,
    /// Longest time between flushes, in milliseconds; 0 means no limit.
    pub memtable_flush_period_ms: u32,
    /// Lower bound of the index summary's interval.
    pub min_index_interval: u32,
    /// `BLOCKING` or `NONE`; stored, but without effect on a single node.
    pub read_repair: String,
    /// Speculative retry of reads; stored, but without effect on a single node.
    pub speculative_retry: String,
}

impl Default for TableOptions {
    fn default() -> Self {
        let map = |pairs: &[(&str, &str)]| {
            pairs
                .iter()
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        Self {
            additional_write_policy: "99p".to_owned(),
            allow_auto_snapshot: true,
            bloom_filter_fp_chance: 0.01,
            caching: CachingOptions {
                keys: true,
                rows_per_partition: None,
            },
            cdc: false,
            comment: String::new(),
            compaction: map(&[
                (
                    "class",
                    "org.apache.cassandra.db.compaction.SizeTieredCompactionStrategy",
                ),
                ("max_threshold", "32"),
                ("min_threshold", "4"),
            ]),
            compression: map(&[
                ("chunk_length_in_kb", "16"),
                ("class", "org.apache.cassandra.io.compress.LZ4Compressor"),
            ]),
            crc_check_chance: 1.0,
            default_time_to_live_secs: 0,
            extensions: BTreeMap::new(),
            gc_grace_secs: 864_000,
            incremental_backups: true,
            max_index_interval: 2048,
            memtable: "default".to_owned(),
            memtable_flush_period_ms: 0,
            min_index_interval: 128,
            read_repair: "BLOCKING".to_owned(),
            speculative_retry: "99p".to_owned(),
        }
    }
}
