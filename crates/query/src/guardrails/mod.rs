//! Guardrails: what the operator limits or switches off, under Cassandra's names and with its messages.
//!
//! A limit has two thresholds: above the first the client is warned, above the second the statement is refused. Compat:
//! `org.apache.cassandra.db.guardrails` of Cassandra 5.0. Not guarded are the server's own keyspaces.
//!
//! | module | what |
//! | --- | --- |
//! | `definition` | statements that change the schema |
//! | `value` | sizes of what is written |
//! | `terms` | sizes of what storage-attached indexes hold |

mod definition;
mod terms;
mod value;

use crate::context::Execution;
use crate::{Consistency, Error};

pub(crate) use definition::{check_change, check_removal};
pub(crate) use value::check_values;

/// When to warn, and when to refuse; nothing is never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Threshold {
    /// Above this the client is warned.
    pub warn: Option<u64>,
    /// Above this the statement is refused.
    pub fail: Option<u64>,
}

/// Values of an option that are warned of or refused.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueLists {
    /// The client is warned.
    pub warned: Vec<String>,
    /// The statement is refused.
    pub disallowed: Vec<String>,
}

impl ValueLists {
    fn is_empty(&self) -> bool {
        self.warned.is_empty() && self.disallowed.is_empty()
    }
}

/// What the operator limits. By default nothing but what Cassandra limits by default.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(
    missing_docs,
    reason = "each is called as the setting that it comes from, which documents it"
)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting of its own")]
pub struct Guardrails {
    pub keyspaces: Threshold,
    pub tables: Threshold,
    pub columns_per_table: Threshold,
    pub materialized_views_per_table: Threshold,
    pub secondary_indexes_per_table: Threshold,
    /// Files of an index that one query reads.
    pub sai_sstable_indexes_per_query: Threshold,
    pub sai_string_term_size: Threshold,
    pub sai_frozen_term_size: Threshold,
    pub sai_vector_term_size: Threshold,
    pub fields_per_udt: Threshold,
    pub vector_dimensions: Threshold,
    pub page_size: Threshold,
    pub partition_keys_in_select: Threshold,
    pub in_select_cartesian_product: Threshold,
    pub collection_size: Threshold,
    pub items_per_collection: Threshold,
    pub column_value_size: Threshold,
    /// Below these values.
    pub minimum_replication_factor: Threshold,
    pub maximum_replication_factor: Threshold,
    pub table_properties: ValueLists,
    pub read_consistency_levels: ValueLists,
    pub write_consistency_levels: ValueLists,
    pub secondary_indexes_enabled: bool,
    pub non_partition_restricted_index_query_enabled: bool,
    pub group_by_enabled: bool,
    pub drop_truncate_table_enabled: bool,
    pub drop_keyspace_enabled: bool,
    pub alter_table_enabled: bool,
    pub user_timestamps_enabled: bool,
    pub uncompressed_tables_enabled: bool,
    pub compact_tables_enabled: bool,
    pub read_before_write_list_operations_enabled: bool,
    pub simplestrategy_enabled: bool,
}

impl Default for Guardrails {
    fn default() -> Self {
        Self {
            keyspaces: Threshold::default(),
            tables: Threshold::default(),
            columns_per_table: Threshold::default(),
            materialized_views_per_table: Threshold::default(),
            secondary_indexes_per_table: Threshold::default(),
            sai_sstable_indexes_per_query: Threshold {
                warn: Some(32),
                fail: None,
            },
            sai_string_term_size: Threshold::default(),
            sai_frozen_term_size: Threshold::default(),
            sai_vector_term_size: Threshold::default(),
            fields_per_udt: Threshold::default(),
            vector_dimensions: Threshold::default(),
            page_size: Threshold::default(),
            partition_keys_in_select: Threshold::default(),
            in_select_cartesian_product: Threshold::default(),
            collection_size: Threshold::default(),
            items_per_collection: Threshold::default(),
            column_value_size: Threshold::default(),
            minimum_replication_factor: Threshold::default(),
            maximum_replication_factor: Threshold::default(),
            table_properties: ValueLists::default(),
            read_consistency_levels: ValueLists::default(),
            write_consistency_levels: ValueLists::default(),
            secondary_indexes_enabled: true,
            non_partition_restricted_index_query_enabled: true,
            group_by_enabled: true,
            drop_truncate_table_enabled: true,
            drop_keyspace_enabled: true,
            alter_table_enabled: true,
            user_timestamps_enabled: true,
            uncompressed_tables_enabled: true,
            compact_tables_enabled: true,
            read_before_write_list_operations_enabled: true,
            simplestrategy_enabled: true,
        }
    }
}

/// Whose side of a threshold a value is on.
enum Side {
    Warned(u64),
    Refused(u64),
}

impl Threshold {
    /// True if there is something to check.
    pub(crate) fn is_set(&self) -> bool {
        self.warn.is_some() || self.fail.is_some()
    }

    fn above(self, value: u64) -> Option<Side> {
        if let Some(fail) = self.fail.filter(|fail| value > *fail) {
            return Some(Side::Refused(fail));
        }
        self.warn.filter(|warn| value > *warn).map(Side::Warned)
    }

    fn below(self, value: u64) -> Option<Side> {
        if let Some(fail) = self.fail.filter(|fail| value < *fail) {
            return Some(Side::Refused(fail));
        }
        self.warn.filter(|warn| value < *warn).map(Side::Warned)
    }
}

fn violated(guardrail: &str, message: &str) -> String {
    format!("Guardrail {guardrail} violated: {message}")
}

/// Refuses a value above a threshold, or warns of it. `message` says it for a side and the threshold.
///
/// # Errors
/// It is above the second threshold.
pub(crate) fn check(
    guardrail: &str,
    threshold: Threshold,
    value: u64,
    execution: &Execution<'_>,
    message: impl Fn(&'static str, u64) -> String,
) -> Result<(), Error> {
    tell(guardrail, threshold.above(value), execution, message)
}

fn tell(
    guardrail: &str,
    side: Option<Side>,
    execution: &Execution<'_>,
    message: impl Fn(&'static str, u64) -> String,
) -> Result<(), Error> {
    match side {
        None => Ok(()),
        Some(Side::Warned(limit)) => {
            execution.warn(violated(guardrail, &message("warning", limit)));
            Ok(())
        }
        Some(Side::Refused(limit)) => Err(Error::Invalid(violated(guardrail, &message("failure", limit)))),
    }
}

/// Refuses what the operator has switched off.
///
/// # Errors
/// It is switched off.
pub(crate) fn ensure(guardrail: &str, is_enabled: bool, feature: &str) -> Result<(), Error> {
    match is_enabled {
        true => Ok(()),
        false => Err(Error::Invalid(violated(
            guardrail,
            &format!("{feature} is not allowed"),
        ))),
    }
}

/// Refuses values that are not allowed, and warns of those that are not recommended. `what` names them.
///
/// # Errors
/// One of them is not allowed.
pub(crate) fn check_lists(
    guardrail: &str,
    lists: &ValueLists,
    given: &[&str],
    what: &str,
    execution: &Execution<'_>,
) -> Result<(), Error> {
    let among = |list: &[String]| -> Vec<String> {
        let is_listed = |value: &&&str| list.iter().any(|listed| listed.eq_ignore_ascii_case(value));
        given
            .iter()
            .filter(is_listed)
            .map(|value| (*value).to_owned())
            .collect()
    };
    let disallowed = among(&lists.disallowed);
    if !disallowed.is_empty() {
        return Err(Error::Invalid(violated(
            guardrail,
            &format!(
                "Provided values [{}] are not allowed for {what} (disallowed values are: [{}])",
                disallowed.join(", "),
                lists.disallowed.join(", ")
            ),
        )));
    }
    let warned = among(&lists.warned);
    if !warned.is_empty() {
        execution.warn(violated(
            guardrail,
            &format!(
                "Provided values [{}] are not recommended for {what} (warned values are: [{}])",
                warned.join(", "),
                lists.warned.join(", ")
            ),
        ));
    }
    Ok(())
}

/// Refuses a page above the operator's limit.
///
/// # Errors
/// The page is too large.
pub(crate) fn check_page(page_size: u32, table: &str, execution: &Execution<'_>) -> Result<(), Error> {
    let threshold = execution.query_options.guardrails.page_size;
    check(
        "page_size",
        threshold,
        page_size.into(),
        execution,
        |side, limit| match side {
            "warning" => {
                format!(
                    "Query for table {table} with page size {page_size} exceeds warning threshold of {limit}."
                )
            }
            _ => format!(
                "Aborting query for table {table}, page size {page_size} exceeds fail threshold of {limit}."
            ),
        },
    )
}

/// Refuses more partitions in an IN than the operator allows.
///
/// # Errors
/// There are too many.
pub(crate) fn check_partition_keys(
    count: usize,
    table: &str,
    execution: &Execution<'_>,
) -> Result<(), Error> {
    let threshold = execution.query_options.guardrails.partition_keys_in_select;
    let name = "partition_keys_in_select";
    check(
        name,
        threshold,
        count as u64,
        execution,
        |side, limit| match side {
            "warning" => format!(
                "Query with partition keys in IN clause on table {table}, with number of partition keys {count} \
             exceeds warning threshold of {limit}."
            ),
            _ => format!(
                "Aborting query with partition keys in IN clause on table {table}, number of partition keys {count} \
             exceeds fail threshold of {limit}."
            ),
        },
    )
}

/// Refuses more combinations of INs than the operator allows.
///
/// # Errors
/// There are too many.
pub(crate) fn check_product(what: &str, count: usize, execution: &Execution<'_>) -> Result<(), Error> {
    let threshold = execution.query_options.guardrails.in_select_cartesian_product;
    let name = "in_select_cartesian_product";
    check(
        name,
        threshold,
        count as u64,
        execution,
        |side, limit| match side {
            "warning" => format!(
                "The cartesian product of the IN restrictions on {what} produces {count} values, this exceeds warning \
             threshold of {limit}."
            ),
            _ => format!(
                "Aborting query because the cartesian product of the IN restrictions on {what} produces {count} values, \
             this exceeds fail threshold of {limit}."
            ),
        },
    )
}

/// Refuses a consistency level of a read that the operator does not allow.
///
/// # Errors
/// It is not allowed.
pub(crate) fn check_read_level(level: Consistency, execution: &Execution<'_>) -> Result<(), Error> {
    let lists = &execution.query_options.guardrails.read_consistency_levels;
    check_level("read", lists, level, execution)
}

/// Refuses a consistency level of a write that the operator does not allow.
///
/// # Errors
/// It is not allowed.
pub(crate) fn check_write_level(level: Consistency, execution: &Execution<'_>) -> Result<(), Error> {
    let lists = &execution.query_options.guardrails.write_consistency_levels;
    check_level("write", lists, level, execution)
}

fn check_level(
    what: &str,
    lists: &ValueLists,
    level: Consistency,
    execution: &Execution<'_>,
) -> Result<(), Error> {
    if lists.is_empty() {
        return Ok(());
    }
    let name = format!("{what}_consistency_levels");
    let plural = format!("{what} consistency levels");
    check_lists(&name, lists, &[&level.to_string()], &plural, execution)
}

/// Refuses a search that reads more files of an index than the operator allows.
///
/// # Errors
/// There are too many.
pub(crate) fn check_index_files(files: u64, index: &str, execution: &Execution<'_>) -> Result<(), Error> {
    let threshold = execution.query_options.guardrails.sai_sstable_indexes_per_query;
    check(
        "sai_sstable_indexes_per_query",
        threshold,
        files,
        execution,
        |side, limit| {
            format!(
                "The number of SSTable indexes queried on index {index} violated {side} threshold value {limit} with value \
                 {files}"
            )
        },
    )
}
