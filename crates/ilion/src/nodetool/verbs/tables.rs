//! Verbs about tables: statistics, samples, views, automatic compaction.

use super::super::tables;
use super::verb::{Verb, flag, own, valued};

/// Sorted by name.
pub const TABLES: &[Verb] = &[
    own(
        "cfhistograms",
        &[],
        &["keyspace?", "table?"],
        tables::histograms,
        "The old name of tablehistograms.",
    ),
    own(
        "cfstats",
        &[
            flag("-H", "--human-readable"),
            valued("-F", "--format", "format"),
            flag("-i", "--ignore"),
        ],
        &["tables*"],
        tables::stats,
        "The old name of tablestats.",
    ),
    own(
        "disableautocompaction",
        &[],
        &["keyspace?", "tables*"],
        tables::disable_autocompaction,
        "Switches automatic compaction of tables off.",
    ),
    own(
        "enableautocompaction",
        &[],
        &["keyspace?", "tables*"],
        tables::enable_autocompaction,
        "Switches automatic compaction of tables on.",
    ),
    own(
        "getcompactionthreshold",
        &[],
        &["keyspace", "table"],
        tables::get_thresholds,
        "How many SSTables a compaction of the table merges.",
    ),
    own(
        "profileload",
        &[
            valued("-k", "--k", "topCount"),
            valued("-s", "--size", "capacity"),
        ],
        &["keyspace?", "table?", "duration?"],
        tables::top_partitions,
        "Samples which partitions are read and written most; the same as toppartitions.",
    ),
    own(
        "refreshsizeestimates",
        &[],
        &[],
        tables::size_estimates,
        "Has no effect, because size_estimates is computed when it is read.",
    ),
    own(
        "setcompactionthreshold",
        &[],
        &["keyspace", "table", "minthreshold", "maxthreshold"],
        tables::set_thresholds,
        "Sets how many SSTables a compaction of the table merges, until the next start.",
    ),
    own(
        "statusautocompaction",
        &[flag("-a", "--all")],
        &["keyspace?", "tables*"],
        tables::status_autocompaction,
        "Whether automatic compaction is on.",
    ),
    own(
        "tablehistograms",
        &[],
        &["keyspace?", "table?"],
        tables::histograms,
        "Percentiles of latencies, SSTables per read, sizes and cells of partitions.",
    ),
    own(
        "tablestats",
        &[
            flag("-H", "--human-readable"),
            valued("-F", "--format", "format"),
            flag("-i", "--ignore"),
        ],
        &["tables*"],
        tables::stats,
        "Statistics of tables.",
    ),
    own(
        "toppartitions",
        &[
            valued("-k", "--k", "topCount"),
            valued("-s", "--size", "capacity"),
        ],
        &["keyspace?", "table?", "duration?"],
        tables::top_partitions,
        "Samples which partitions are read and written most.",
    ),
    own(
        "viewbuildstatus",
        &[],
        &["keyspace", "view?"],
        tables::view_build_status,
        "Whether a materialized view is built.",
    ),
];
