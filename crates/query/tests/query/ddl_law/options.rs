//! Options of tables, with allowed and forbidden values.

use super::statements::Statements;

impl Statements {
    pub(super) fn option(&mut self) -> String {
        let chunk = self.pick(&[
            "1", "4", "16", "64", "65536", "131072", "1048576", "2097152", "0", "-1", "3", "x",
        ]);
        let compressor = self.pick(&[
            "LZ4Compressor",
            "SnappyCompressor",
            "DeflateCompressor",
            "ZstdCompressor",
            "NoopCompressor",
            "org.apache.cassandra.io.compress.LZ4Compressor",
            "FooCompressor",
            "",
        ]);
        let number = self.pick(&[
            "0",
            "1",
            "-1",
            "0.01",
            "1.5",
            "1e-300",
            "NaN",
            "Infinity",
            "2147483647",
            "2147483648",
            "9223372036854775807",
            "630720000",
            "630720001",
        ]);
        let text = self.pick(&[
            "",
            "it''s",
            "\u{1F600}",
            "99PERCENTILE",
            "0PERCENTILE",
            "NONE",
            "10ms",
            "BLOCKING",
        ]);
        match self.random.below(18) {
            0..3 => format!("compression = {{'class': '{compressor}', 'chunk_length_in_kb': '{chunk}'}}"),
            3 => format!("compression = {{'class': '{compressor}', 'min_compress_ratio': '{number}'}}"),
            4 => "compression = {'enabled': 'false'}".to_owned(),
            5 => format!("gc_grace_seconds = {number}"),
            6 => format!("bloom_filter_fp_chance = {number}"),
            7 => format!("default_time_to_live = {number}"),
            8 => format!("comment = '{text}'"),
            9 => format!("comment = '{}'", "c".repeat(100_000)),
            10 => format!("speculative_retry = '{text}'"),
            11 => format!("crc_check_chance = {number}"),
            12 => format!("caching = {{'keys': 'ALL', 'rows_per_partition': '{number}'}}"),
            13 => format!("min_index_interval = {number}"),
            14 => format!("memtable_flush_period_in_ms = {number}"),
            15 => {
                let strategy = self.pick(&[
                    "SizeTieredCompactionStrategy",
                    "LeveledCompactionStrategy",
                    "TimeWindowCompactionStrategy",
                    "UnifiedCompactionStrategy",
                    "FooStrategy",
                ]);
                format!("compaction = {{'class': '{strategy}', 'tombstone_threshold': '{number}'}}")
            }
            16 => format!("additional_write_policy = '{text}'"),
            _ => format!("extensions = {{'x': '{text}'}}"),
        }
    }
}
