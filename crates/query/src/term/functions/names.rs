//! The names of the native functions, for completion.

/// Native functions and aggregates, by name. Older names of the same functions are missing.
#[rustfmt::skip]
pub const FUNCTION_NAMES: [&str; 77] = [
    "abs", "ascii_as_blob", "avg", "bigint_as_blob", "blob_as_ascii", "blob_as_bigint", "blob_as_boolean",
    "blob_as_date", "blob_as_decimal", "blob_as_double", "blob_as_duration", "blob_as_float", "blob_as_inet",
    "blob_as_int", "blob_as_smallint", "blob_as_text", "blob_as_time", "blob_as_timestamp",
    "blob_as_timeuuid", "blob_as_tinyint", "blob_as_uuid", "blob_as_varint", "boolean_as_blob",
    "collection_avg", "collection_count", "collection_max", "collection_min", "collection_sum", "count",
    "current_date", "current_time", "current_timestamp", "current_timeuuid", "date_as_blob",
    "decimal_as_blob", "double_as_blob", "duration_as_blob", "exp", "float_as_blob", "floor", "from_json",
    "inet_as_blob", "int_as_blob", "log", "log10", "map_keys", "map_values", "mask_default", "mask_hash",
    "mask_inner", "mask_null", "mask_outer", "mask_replace", "max", "max_timeuuid", "min", "min_timeuuid",
    "now", "round", "similarity_cosine", "similarity_dot_product", "similarity_euclidean", "smallint_as_blob",
    "sum", "text_as_blob", "time_as_blob", "timestamp_as_blob", "timeuuid_as_blob", "tinyint_as_blob",
    "to_date", "to_json", "to_timestamp", "to_unix_timestamp", "token", "uuid", "uuid_as_blob",
    "varint_as_blob",
];
