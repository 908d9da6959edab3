//! Guardrails of reads.

use super::{Verdict, check, check_flag};
use crate::context::Execution;
use crate::{Consistency, Error};

const INTERSECTION: &str = "Filtering queries involving an intersection on multiple mutable (i.e. non-key) columns over \
    unrepaired data at read consistency levels that would require coordinator reconciliation may violate the guarantees of \
    those consistency levels.";

/// Refuses filtering by several mutable columns at levels that need several nodes, unless the operator allows it.
///
/// # Errors
/// The operator does not allow such filtering.
pub(crate) fn check_intersection(is_mutable: bool, execution: &Execution<'_>) -> Result<(), Error> {
    let level = execution.options.consistency;
    if !is_mutable || matches!(level, Consistency::ONE | Consistency::LOCAL_ONE) {
        return Ok(());
    }
    check_flag(
        "intersect_filtering_query",
        execution.query_options.guardrails.intersect_filtering_query,
        "Filtering query with intersection on mutable columns at consistency level requiring coordinator reconciliation",
        INTERSECTION,
        execution,
    )
}

/// Refuses a page size above the operator's limit.
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
        |verdict, limit| match verdict {
            Verdict::Warning => {
                format!(
                    "Query for table {table} with page size {page_size} exceeds warning threshold of {limit}."
                )
            }
            Verdict::Failure => format!(
                "Aborting query for table {table}, page size {page_size} exceeds fail threshold of {limit}."
            ),
        },
    )
}

/// Refuses more partitions in an IN than the operator allows.
///
/// # Errors
/// The IN has too many partitions.
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
        |verdict, limit| match verdict {
            Verdict::Warning => format!(
                "Query with partition keys in IN clause on table {table}, with number of partition keys {count} \
             exceeds warning threshold of {limit}."
            ),
            Verdict::Failure => format!(
                "Aborting query with partition keys in IN clause on table {table}, number of partition keys {count} \
             exceeds fail threshold of {limit}."
            ),
        },
    )
}

/// Refuses more combinations of IN values than the operator allows.
///
/// # Errors
/// The INs have too many combinations.
pub(crate) fn check_product(what: &str, count: usize, execution: &Execution<'_>) -> Result<(), Error> {
    let threshold = execution.query_options.guardrails.in_select_cartesian_product;
    let name = "in_select_cartesian_product";
    check(
        name,
        threshold,
        count as u64,
        execution,
        |verdict, limit| match verdict {
            Verdict::Warning => format!(
                "The cartesian product of the IN restrictions on {what} produces {count} values, this exceeds warning \
             threshold of {limit}."
            ),
            Verdict::Failure => format!(
                "Aborting query because the cartesian product of the IN restrictions on {what} produces {count} values, \
             this exceeds fail threshold of {limit}."
            ),
        },
    )
}

/// Refuses a search that reads more files of an index than the operator allows.
///
/// # Errors
/// The search reads too many files.
pub(crate) fn check_index_files(files: u64, index: &str, execution: &Execution<'_>) -> Result<(), Error> {
    let threshold = execution.query_options.guardrails.sai_sstable_indexes_per_query;
    check(
        "sai_sstable_indexes_per_query",
        threshold,
        files,
        execution,
        |verdict, limit| {
            format!(
                "The number of SSTable indexes queried on index {index} violated {verdict} threshold value {limit} with value \
                 {files}"
            )
        },
    )
}
