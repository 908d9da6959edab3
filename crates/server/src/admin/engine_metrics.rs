//! Counters of the engine as Prometheus metrics, computed at each scrape.

use std::fmt;
use std::sync::Arc;

use ilion_engine::{CacheFacts, Engine, EngineFacts, TableFacts};
use ilion_env::RequestIo;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::counter::ConstCounter;
use prometheus_client::metrics::gauge::ConstGauge;

/// Collects the metrics of an engine.
pub(super) struct EngineMetrics(pub Arc<Engine>);

/// Name, help text and value.
type Metric = (&'static str, &'static str, u64);

impl fmt::Debug for EngineMetrics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EngineMetrics")
    }
}

impl Collector for EngineMetrics {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let facts = self.0.facts();
        let of_work = of_flushes_and_compactions(&facts);
        let counters = of_work.into_iter().chain(of_look_ups(&facts));
        let counters = counters
            .chain(of_files(&self.0.io()))
            .chain(of_commit_log(&facts));
        for (name, help, value) in counters {
            encode_counter(&mut encoder, name, help, value)?;
        }
        let gauges = sizes(&facts).into_iter().chain(of_tables(&self.0.table_facts()));
        for (name, help, value) in gauges {
            encode_gauge(&mut encoder, name, help, value)?;
        }
        for cache in facts.caches.iter().filter(|cache| is_of_rows_or_counters(cache)) {
            encode_cache(&mut encoder, cache)?;
        }
        encode_gauge(
            &mut encoder,
            "set_aside",
            "Tables and other objects of the schema that the start could not open",
            self.0.set_aside().len() as u64,
        )?;
        // If a directory cannot be listed, the flush or compaction that needs it logs the error.
        if let Ok(bytes) = self.0.snapshots_only_bytes() {
            encode_gauge(
                &mut encoder,
                "snapshots_bytes",
                "Bytes of SSTables that only snapshots have",
                bytes.values().sum(),
            )?;
        }
        let is_stalled = u64::from(self.0.stalled().is_some());
        encode_gauge(
            &mut encoder,
            "flushes_failing",
            "1 while memtables cannot be flushed (a full disk, too few file descriptors), which is tried again",
            is_stalled,
        )?;
        let is_refusing = u64::from(self.0.failure().is_some());
        encode_gauge(
            &mut encoder,
            "writes_refused",
            "1 if writes are refused for good",
            is_refusing,
        )
    }
}

fn of_flushes_and_compactions(facts: &EngineFacts) -> [Metric; 6] {
    [
        ("flushes", "Memtables written to disk", facts.flushes),
        (
            "flushed_bytes",
            "Bytes of SSTables that flushes wrote",
            facts.flushed_bytes,
        ),
        ("compactions", "Compactions done", facts.compactions),
        (
            "compactions_failed",
            "Compactions that failed",
            facts.compactions_failed,
        ),
        (
            "compacted_bytes_in",
            "Bytes that compactions read",
            facts.compacted_bytes_in,
        ),
        (
            "compacted_bytes_out",
            "Bytes that compactions wrote",
            facts.compacted_bytes_out,
        ),
    ]
}

fn of_look_ups(facts: &EngineFacts) -> [Metric; 8] {
    let lookups = &facts.lookups;
    [
        (
            "chunk_cache_hits",
            "Reads that the chunk cache answered",
            facts.chunk_cache_hits,
        ),
        (
            "chunk_cache_misses",
            "Reads that went to disk",
            facts.chunk_cache_misses,
        ),
        (
            "key_cache_hits",
            "Look-ups that the key cache answered",
            facts.key_cache_hits,
        ),
        (
            "key_cache_misses",
            "Look-ups that the key cache was asked for in vain",
            facts.key_cache_misses,
        ),
        (
            "lookups_by_token_map",
            "Look-ups of partitions that token maps answered",
            lookups.by_token_map,
        ),
        (
            "lookups_by_index",
            "Look-ups of partitions that walked over an index",
            lookups.by_index,
        ),
        (
            "token_map_false_positives",
            "Partitions that a token map took for another one",
            lookups.token_map_false_positives,
        ),
        (
            "bloom_filter_false_positives",
            "Keys that a Bloom filter let pass in vain",
            lookups.filter_false_positives,
        ),
    ]
}

fn of_files(io: &RequestIo) -> [Metric; 5] {
    [
        ("disk_reads", "Reads of files", io.reads),
        ("disk_read_bytes", "Bytes read from files", io.bytes_read),
        ("disk_writes", "Writes to files", io.writes),
        ("disk_written_bytes", "Bytes written to files", io.bytes_written),
        ("disk_syncs", "Syncs of files", io.syncs),
    ]
}

fn of_commit_log(facts: &EngineFacts) -> [Metric; 3] {
    let log = &facts.commit_log;
    [
        (
            "commit_log_records",
            "Records appended to the commit log",
            log.appends,
        ),
        (
            "commit_log_appended_bytes",
            "Bytes appended to the commit log",
            log.appended_bytes,
        ),
        ("commit_log_syncs", "Syncs of the commit log", log.syncs),
    ]
}

fn sizes(facts: &EngineFacts) -> [Metric; 14] {
    let lost = &facts.log_losses;
    [
        (
            "commit_log_lost_places",
            "Damaged places that the start found in the commit log",
            lost.places,
        ),
        (
            "commit_log_lost_bytes",
            "Bytes of these, as far as that is known",
            lost.bytes,
        ),
        (
            "commit_log_given_up_records",
            "Records of the commit log that the start gave up, since they were decided by what was lost",
            lost.records_given_up,
        ),
        (
            "commit_log_gaps",
            "Times that the start found segments of the commit log missing",
            lost.gaps,
        ),
        (
            "clock_behind_seconds",
            "How far the clock stands before the newest timestamp that the node gave",
            facts.clock_behind_micros / 1_000_000,
        ),
        ("memtable_bytes", "Memory of memtables", facts.memtable_bytes),
        (
            "memtable_bytes_max",
            "What memtables may come to",
            facts.memtable_bytes_max,
        ),
        (
            "chunk_cache_bytes",
            "Memory of the chunk cache",
            facts.chunk_cache_bytes,
        ),
        (
            "key_cache_bytes",
            "Memory of the key cache",
            facts.key_cache_bytes,
        ),
        ("token_map_bytes", "Bytes of token maps", facts.token_map_bytes),
        (
            "index_page_bytes",
            "Memory of pages of token maps, cell maps and indexes that were read",
            facts.index_page_bytes,
        ),
        (
            "index_page_bytes_max",
            "What these pages may take",
            facts.index_page_bytes_max,
        ),
        (
            "commit_log_bytes",
            "Size of the commit log's files",
            facts.commit_log.size_bytes,
        ),
        (
            "compactions_running",
            "Compactions that go on",
            facts.compactions_running,
        ),
    ]
}

fn of_tables(tables: &[TableFacts]) -> [Metric; 4] {
    let sum = |of: fn(&TableFacts) -> u64| tables.iter().map(of).sum();
    let debts = tables.iter().map(|table| table.compaction_debt);
    [
        ("sstables", "SSTables", sum(|table| table.sstables)),
        (
            "sstable_bytes",
            "Bytes of SSTables",
            sum(|table| table.sstable_bytes),
        ),
        (
            "compactions_pending",
            "Compactions that are due",
            sum(|table| table.pending_compactions),
        ),
        (
            "compaction_debt",
            "SSTables that a read of the table that is furthest behind may touch only for that",
            debts.max().unwrap_or(0),
        ),
    ]
}

/// True for the caches of rows and counters: the chunk cache and the key cache have metrics of their own.
fn is_of_rows_or_counters(cache: &CacheFacts) -> bool {
    !["chunks", "keys"].contains(&cache.name)
}

fn encode_cache(encoder: &mut DescriptorEncoder<'_>, cache: &CacheFacts) -> fmt::Result {
    let name = |end: &str| format!("{}_cache_{end}", cache.name.trim_end_matches('s'));
    encode_counter(
        encoder,
        &name("hits"),
        "Look-ups that the cache answered",
        cache.hits,
    )?;
    encode_counter(encoder, &name("misses"), "Look-ups that it did not", cache.misses)?;
    encode_gauge(encoder, &name("bytes"), "Memory of the cache", cache.bytes)
}

pub(super) fn encode_counter(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: u64,
) -> fmt::Result {
    let metric = ConstCounter::new(value);
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}

pub(super) fn encode_gauge(
    encoder: &mut DescriptorEncoder<'_>,
    name: &str,
    help: &str,
    value: u64,
) -> fmt::Result {
    let metric = ConstGauge::new(i64::try_from(value).unwrap_or(i64::MAX));
    metric.encode(encoder.encode_descriptor(name, help, None, metric.metric_type())?)
}
