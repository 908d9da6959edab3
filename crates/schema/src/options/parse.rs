//! Parses table options from the properties of a statement, with Cassandra's ranges and messages.
//!
//! Compat: `TableAttributes` and `TableParams.validate` of Cassandra 5.0.

use crate::error::config;
use crate::{Error, Properties, TableOptions};

use super::java_double::java_double;
use super::{caching, compaction, compression, retry};

const KNOWN: [&str; 20] = [
    "additional_write_policy",
    "allow_auto_snapshot",
    "bloom_filter_fp_chance",
    "caching",
    "cdc",
    "comment",
    "compaction",
    "compression",
    "crc_check_chance",
    "default_time_to_live",
    "extensions",
    "gc_grace_seconds",
    "id",
    "incremental_backups",
    "max_index_interval",
    "memtable",
    "memtable_flush_period_in_ms",
    "min_index_interval",
    "read_repair",
    "speculative_retry",
];

/// Names of memtable configurations. Ilion has only one memtable, so it stores the name and does nothing else with it.
const MEMTABLES: [&str; 3] = ["default", "skiplist", "trie"];

/// `BloomCalculations.minSupportedBloomFilterFpChance`, as Java prints it.
const FP_CHANCE_MIN: &str = "6.71E-5";
const FP_CHANCE_MIN_VALUE: f64 = 6.71e-5;

/// Stands for the default chance of the table's compaction strategy.
const FP_CHANCE_OF_COMPACTION: f64 = -1.0;

/// Twenty years, in seconds.
const TTL_SECS_MAX: i32 = 630_720_000;

impl TableOptions {
    /// Options of a new table.
    ///
    /// # Errors
    /// A property is unknown or out of range.
    pub fn parse_new(properties: &Properties) -> Result<TableOptions, Error> {
        let mut options = TableOptions::default().with(properties)?;
        if !properties.0.contains_key("bloom_filter_fp_chance") {
            options.bloom_filter_fp_chance = options.default_fp_chance();
        }
        Ok(options)
    }

    /// These options after ALTER TABLE ... WITH.
    ///
    /// # Errors
    /// A property is unknown or out of range, or would change the table's id.
    pub fn altered(&self, properties: &Properties) -> Result<TableOptions, Error> {
        if properties.0.contains_key("id") {
            return config("Cannot alter table id.");
        }
        self.clone().with(properties)
    }

    fn with(mut self, properties: &Properties) -> Result<TableOptions, Error> {
        properties.only(&KNOWN)?;
        self.set_booleans(properties)?;
        self.set_numbers(properties)?;
        self.set_texts(properties)?;
        self.set_maps(properties)?;
        if properties.double("bloom_filter_fp_chance")? == Some(FP_CHANCE_OF_COMPACTION) {
            self.bloom_filter_fp_chance = self.default_fp_chance();
        }
        Ok(self)
    }

    /// Compat: the default of `AbstractCompactionStrategy`, by class.
    fn default_fp_chance(&self) -> f64 {
        match compaction::class_of(&self.compaction) {
            "LeveledCompactionStrategy" => 0.1,
            _ => 0.01,
        }
    }

    fn set_booleans(&mut self, properties: &Properties) -> Result<(), Error> {
        let set = |target: &mut bool, name| {
            *target = properties.boolean(name)?.unwrap_or(*target);
            Ok::<_, Error>(())
        };
        set(&mut self.allow_auto_snapshot, "allow_auto_snapshot")?;
        set(&mut self.incremental_backups, "incremental_backups")?;
        set(&mut self.cdc, "cdc")
    }

    fn set_numbers(&mut self, properties: &Properties) -> Result<(), Error> {
        let chance = properties.double("bloom_filter_fp_chance")?;
        if let Some(chance) = chance.filter(|chance| *chance != FP_CHANCE_OF_COMPACTION) {
            if !(chance > FP_CHANCE_MIN_VALUE && chance <= 1.0) {
                return config(format!(
                    "bloom_filter_fp_chance must be larger than {FP_CHANCE_MIN} and less than or equal to \
                     1.0 (got {})",
                    java_double(chance)
                ));
            }
            self.bloom_filter_fp_chance = chance;
        }
        if let Some(chance) = properties.double("crc_check_chance")? {
            if !(0.0..=1.0).contains(&chance) {
                return config(format!(
                    "crc_check_chance must be larger than or equal to 0 and smaller than or equal to 1.0 (got {})",
                    java_double(chance)
                ));
            }
            self.crc_check_chance = chance;
        }
        let at_least = |target: &mut u32, name, min: u32| {
            let Some(value) = properties.int(name)? else {
                return Ok(());
            };
            match u32::try_from(value).ok().filter(|value| *value >= min) {
                Some(value) => *target = value,
                None => {
                    return config(format!(
                        "{name} must be greater than or equal to {min} (got {value})"
                    ));
                }
            }
            Ok(())
        };
        at_least(&mut self.default_time_to_live_secs, "default_time_to_live", 0)?;
        at_least(&mut self.gc_grace_secs, "gc_grace_seconds", 0)?;
        at_least(
            &mut self.memtable_flush_period_ms,
            "memtable_flush_period_in_ms",
            0,
        )?;
        at_least(&mut self.min_index_interval, "min_index_interval", 1)?;
        // The real lower bound is the other interval; it is checked below.
        at_least(&mut self.max_index_interval, "max_index_interval", 0)?;
        self.check_relations()
    }

    fn check_relations(&self) -> Result<(), Error> {
        if self.default_time_to_live_secs > TTL_SECS_MAX.cast_unsigned() {
            return config(format!(
                "default_time_to_live must be less than or equal to {TTL_SECS_MAX} (got {})",
                self.default_time_to_live_secs
            ));
        }
        if self.max_index_interval < self.min_index_interval {
            return config(format!(
                "max_index_interval must be greater than or equal to min_index_interval ({}) (got {})",
                self.min_index_interval, self.max_index_interval
            ));
        }
        Ok(())
    }

    fn set_texts(&mut self, properties: &Properties) -> Result<(), Error> {
        if let Some(comment) = properties.text("comment")? {
            comment.clone_into(&mut self.comment);
        }
        if let Some(policy) = properties.text("speculative_retry")? {
            self.speculative_retry = retry::parse(policy)?;
        }
        if let Some(policy) = properties.text("additional_write_policy")? {
            self.additional_write_policy = retry::parse(policy)?;
        }
        if let Some(strategy) = properties.text("read_repair")? {
            self.read_repair = retry::parse_read_repair(strategy)?;
        }
        if let Some(name) = properties.text("memtable")? {
            if !MEMTABLES.contains(&name) {
                return config(format!("Memtable configuration \"{name}\" not found."));
            }
            name.clone_into(&mut self.memtable);
        }
        Ok(())
    }

    fn set_maps(&mut self, properties: &Properties) -> Result<(), Error> {
        if let Some(map) = properties.map("caching")? {
            self.caching = caching::parse(map)?;
        }
        if let Some(map) = properties.map("compaction")? {
            self.compaction = compaction::parse(map)?;
        }
        if let Some(map) = properties.map("compression")? {
            self.compression = compression::parse(map)?;
        }
        // Compat: only tools that write the schema set extensions; those in a statement are ignored.
        properties.map("extensions").map(drop)
    }
}
