//! `system_schema`: the tables that store the schema (see `rows`).

use super::definition::{Definition, keyspace as keyspace_of, table};
use crate::{Keyspace, Release, Replication};

const TABLES: [Definition; 11] = [
    table(
        "keyspaces",
        "keyspace definitions",
        "keyspace_name text pk; durable_writes boolean; replication frozen<map<text, text>>",
    ),
    table(
        "tables",
        "table definitions",
        "keyspace_name text pk; table_name text ck; additional_write_policy text; allow_auto_snapshot boolean; \
         bloom_filter_fp_chance double; caching frozen<map<text, text>>; cdc boolean; comment text; \
         compaction frozen<map<text, text>>; compression frozen<map<text, text>>; crc_check_chance double; \
         dclocal_read_repair_chance double; default_time_to_live int; extensions frozen<map<text, blob>>; \
         flags frozen<set<text>>; gc_grace_seconds int; id uuid; incremental_backups boolean; \
         max_index_interval int; memtable text; memtable_flush_period_in_ms int; min_index_interval int; \
         read_repair text; read_repair_chance double; speculative_retry text",
    ),
    table(
        "columns",
        "column definitions",
        "keyspace_name text pk; table_name text ck; column_name text ck; clustering_order text; \
         column_name_bytes blob; kind text; position int; type text",
    ),
    table(
        "column_masks",
        "column dynamic data masks",
        "keyspace_name text pk; table_name text ck; column_name text ck; \
         function_argument_nulls frozen<list<boolean>>; function_argument_types frozen<list<text>>; \
         function_argument_values frozen<list<text>>; function_keyspace text; function_name text",
    ),
    table(
        "dropped_columns",
        "dropped column registry",
        "keyspace_name text pk; table_name text ck; column_name text ck; dropped_time timestamp; kind text; \
         type text",
    ),
    table(
        "triggers",
        "trigger definitions",
        "keyspace_name text pk; table_name text ck; trigger_name text ck; options frozen<map<text, text>>",
    ),
    table(
        "views",
        "view definitions",
        "keyspace_name text pk; view_name text ck; additional_write_policy text; allow_auto_snapshot boolean; \
         base_table_id uuid; base_table_name text; bloom_filter_fp_chance double; \
         caching frozen<map<text, text>>; cdc boolean; comment text; compaction frozen<map<text, text>>; \
         compression frozen<map<text, text>>; crc_check_chance double; dclocal_read_repair_chance double; \
         default_time_to_live int; extensions frozen<map<text, blob>>; gc_grace_seconds int; id uuid; \
         include_all_columns boolean; incremental_backups boolean; max_index_interval int; memtable text; \
         memtable_flush_period_in_ms int; min_index_interval int; read_repair text; read_repair_chance double; \
         speculative_retry text; where_clause text",
    ),
    table(
        "indexes",
        "secondary index definitions",
        "keyspace_name text pk; table_name text ck; index_name text ck; kind text; \
         options frozen<map<text, text>>",
    ),
    table(
        "types",
        "user defined type definitions",
        "keyspace_name text pk; type_name text ck; field_names frozen<list<text>>; \
         field_types frozen<list<text>>",
    ),
    table(
        "functions",
        "user defined function definitions",
        "keyspace_name text pk; function_name text ck; argument_types frozen<list<text>> ck; \
         argument_names frozen<list<text>>; body text; called_on_null_input boolean; language text; \
         return_type text",
    ),
    table(
        "aggregates",
        "user defined aggregate definitions",
        "keyspace_name text pk; aggregate_name text ck; argument_types frozen<list<text>> ck; final_func text; \
         initcond text; return_type text; state_func text; state_type text",
    ),
];

pub(super) fn keyspace(release: Release) -> Keyspace {
    keyspace_of(
        release,
        "system_schema",
        Replication::local(),
        &TABLES,
        |builder| {
            builder.options.gc_grace_secs = 7 * 86_400;
            builder.options.memtable_flush_period_ms = 3_600_000;
        },
    )
}

/// A column's static name; `None` if the table of `system_schema` does not have the column.
pub fn schema_column_named(table: &str, column: &str) -> Option<&'static str> {
    let definition = TABLES.iter().find(|definition| definition.name == table)?;
    let mut names = definition
        .columns
        .split(';')
        .filter_map(|column| column.split_whitespace().next());
    names.find(|name| *name == column)
}
