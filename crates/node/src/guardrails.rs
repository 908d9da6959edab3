//! Guardrails from the settings.

use std::time::Duration;

use ilion_query::{Flag, Guardrails, Threshold, ValueLists};

use ilion_settings::{Limit, Names, Settings, Size};

/// Converts the settings to guardrails.
pub(crate) fn guardrails(settings: &Settings) -> Guardrails {
    Guardrails {
        keyspaces: threshold(
            settings.keyspaces_warn_threshold,
            settings.keyspaces_fail_threshold,
        ),
        tables: threshold(settings.tables_warn_threshold, settings.tables_fail_threshold),
        columns_per_table: threshold(
            settings.columns_per_table_warn_threshold,
            settings.columns_per_table_fail_threshold,
        ),
        materialized_views_per_table: threshold(
            settings.materialized_views_per_table_warn_threshold,
            settings.materialized_views_per_table_fail_threshold,
        ),
        secondary_indexes_per_table: threshold(
            settings.secondary_indexes_per_table_warn_threshold,
            settings.secondary_indexes_per_table_fail_threshold,
        ),
        sai_sstable_indexes_per_query: threshold(
            settings.sai_sstable_indexes_per_query_warn_threshold,
            settings.sai_sstable_indexes_per_query_fail_threshold,
        ),
        sai_string_term_size: size_threshold(
            settings.sai_string_term_size_warn_threshold,
            settings.sai_string_term_size_fail_threshold,
        ),
        sai_frozen_term_size: size_threshold(
            settings.sai_frozen_term_size_warn_threshold,
            settings.sai_frozen_term_size_fail_threshold,
        ),
        sai_vector_term_size: size_threshold(
            settings.sai_vector_term_size_warn_threshold,
            settings.sai_vector_term_size_fail_threshold,
        ),
        fields_per_udt: threshold(
            settings.fields_per_udt_warn_threshold,
            settings.fields_per_udt_fail_threshold,
        ),
        vector_dimensions: threshold(
            settings.vector_dimensions_warn_threshold,
            settings.vector_dimensions_fail_threshold,
        ),
        page_size: threshold(
            settings.page_size_warn_threshold,
            settings.page_size_fail_threshold,
        ),
        partition_keys_in_select: threshold(
            settings.partition_keys_in_select_warn_threshold,
            settings.partition_keys_in_select_fail_threshold,
        ),
        in_select_cartesian_product: threshold(
            settings.in_select_cartesian_product_warn_threshold,
            settings.in_select_cartesian_product_fail_threshold,
        ),
        items_per_collection: threshold(
            settings.items_per_collection_warn_threshold,
            settings.items_per_collection_fail_threshold,
        ),
        collection_size: size_threshold(
            settings.collection_size_warn_threshold,
            settings.collection_size_fail_threshold,
        ),
        column_value_size: size_threshold(
            settings.column_value_size_warn_threshold,
            settings.column_value_size_fail_threshold,
        ),
        minimum_replication_factor: threshold(
            settings.minimum_replication_factor_warn_threshold,
            settings.minimum_replication_factor_fail_threshold,
        ),
        maximum_replication_factor: threshold(
            settings.maximum_replication_factor_warn_threshold,
            settings.maximum_replication_factor_fail_threshold,
        ),
        maximum_timestamp: time_threshold(
            settings.maximum_timestamp_warn_threshold,
            settings.maximum_timestamp_fail_threshold,
        ),
        minimum_timestamp: time_threshold(
            settings.minimum_timestamp_warn_threshold,
            settings.minimum_timestamp_fail_threshold,
        ),
        unlogged_batch_across_partitions: threshold(
            settings.unlogged_batch_across_partitions_warn_threshold,
            Limit(None),
        ),
        table_properties: ValueLists {
            ignored: settings.table_properties_ignored.0.clone(),
            ..lists(
                &settings.table_properties_warned,
                &settings.table_properties_disallowed,
            )
        },
        read_consistency_levels: lists(
            &settings.read_consistency_levels_warned,
            &settings.read_consistency_levels_disallowed,
        ),
        write_consistency_levels: lists(
            &settings.write_consistency_levels_warned,
            &settings.write_consistency_levels_disallowed,
        ),
        intersect_filtering_query: Flag {
            warned: settings.intersect_filtering_query_warned,
            enabled: settings.intersect_filtering_query_enabled,
        },
        zero_ttl_on_twcs: Flag {
            warned: settings.zero_ttl_on_twcs_warned,
            enabled: settings.zero_ttl_on_twcs_enabled,
        },
        vector_type_enabled: settings.vector_type_enabled,
        use_statements_enabled: settings.use_statements_enabled,
        drop_compact_storage_enabled: settings.drop_compact_storage_enabled,
        secondary_indexes_enabled: settings.secondary_indexes_enabled,
        non_partition_restricted_index_query_enabled: settings.non_partition_restricted_index_query_enabled,
        group_by_enabled: settings.group_by_enabled,
        drop_truncate_table_enabled: settings.drop_truncate_table_enabled,
        drop_keyspace_enabled: settings.drop_keyspace_enabled,
        alter_table_enabled: settings.alter_table_enabled,
        user_timestamps_enabled: settings.user_timestamps_enabled,
        uncompressed_tables_enabled: settings.uncompressed_tables_enabled,
        compact_tables_enabled: settings.compact_tables_enabled,
        read_before_write_list_operations_enabled: settings.read_before_write_list_operations_enabled,
        simplestrategy_enabled: settings.simplestrategy_enabled,
    }
}

fn threshold(warn: Limit, fail: Limit) -> Threshold {
    Threshold {
        warn: warn.0,
        fail: fail.0,
    }
}

fn size_threshold(warn: Option<Size>, fail: Option<Size>) -> Threshold {
    Threshold {
        warn: warn.map(|size| size.0),
        fail: fail.map(|size| size.0),
    }
}

fn time_threshold(warn: Option<Duration>, fail: Option<Duration>) -> Threshold {
    let micros = |limit: Duration| u64::try_from(limit.as_micros()).unwrap_or(u64::MAX);
    Threshold {
        warn: warn.map(micros),
        fail: fail.map(micros),
    }
}

fn lists(warned: &Names, disallowed: &Names) -> ValueLists {
    ValueLists {
        warned: warned.0.clone(),
        ignored: Vec::new(),
        disallowed: disallowed.0.clone(),
    }
}
