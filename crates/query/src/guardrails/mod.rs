//! Guardrails: the operator's limits and switches, under Cassandra's names and with its messages.
//!
//! A limit has two thresholds: above the first the client is warned, above the second the statement is refused. Statements on
//! the server's own keyspaces are exempt, and so are superusers. Compat: `org.apache.cassandra.db.guardrails` of Cassandra 5.0.
//!
//! | module | what |
//! | --- | --- |
//! | `limits` | the settings |
//! | `definition` | statements that change the schema |
//! | `disk`, `disk_usage` | writes to a disk that is nearly full |
//! | `properties` | properties of tables, replication |
//! | `query` | reads |
//! | `time` | timestamps that statements give |
//! | `value` | sizes of written values |
//! | `terms` | sizes of values in storage-attached indexes |

mod definition;
mod disk;
mod disk_usage;
mod limits;
mod properties;
mod query;
mod terms;
mod time;
mod value;

use std::fmt;

use crate::context::Execution;
use crate::{Consistency, Error};

pub(crate) use definition::{check_change, check_removal};
pub(crate) use disk::check_disk;
pub use disk_usage::{DiskUsage, Fullness};
pub use limits::{Flag, Guardrails, Threshold, ValueLists};
pub(crate) use properties::{check_given, without_ignored};
pub(crate) use query::{
    check_index_files, check_intersection, check_page, check_partition_keys, check_product,
};
pub(crate) use time::check_timestamp;
pub(crate) use value::check_values;

/// The threshold that a value exceeds.
#[derive(Clone, Copy)]
pub(crate) enum Verdict {
    Warning,
    Failure,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Warning => "warning",
            Self::Failure => "failure",
        })
    }
}

impl Threshold {
    pub(crate) fn is_set(&self) -> bool {
        self.warn.is_some() || self.fail.is_some()
    }

    fn above(self, value: u64) -> Option<(Verdict, u64)> {
        self.passed(|limit| value > *limit)
    }

    fn below(self, value: u64) -> Option<(Verdict, u64)> {
        self.passed(|limit| value < *limit)
    }

    fn passed(self, is_passed: impl Fn(&u64) -> bool) -> Option<(Verdict, u64)> {
        let failure = self
            .fail
            .filter(&is_passed)
            .map(|limit| (Verdict::Failure, limit));
        failure.or_else(|| self.warn.filter(is_passed).map(|limit| (Verdict::Warning, limit)))
    }
}

fn violated(guardrail: &str, message: &str) -> String {
    format!("Guardrail {guardrail} violated: {message}")
}

/// Refuses a value above the second threshold, and warns above the first. `message` builds the text.
///
/// # Errors
/// The value is above the second threshold.
pub(crate) fn check(
    guardrail: &str,
    threshold: Threshold,
    value: u64,
    execution: &Execution<'_>,
    message: impl Fn(Verdict, u64) -> String,
) -> Result<(), Error> {
    tell(guardrail, threshold.above(value), execution, message)
}

fn tell(
    guardrail: &str,
    passed: Option<(Verdict, u64)>,
    execution: &Execution<'_>,
    message: impl Fn(Verdict, u64) -> String,
) -> Result<(), Error> {
    let Some((verdict, limit)) = passed else {
        return Ok(());
    };
    let told = violated(guardrail, &message(verdict, limit));
    match verdict {
        Verdict::Warning => {
            execution.warn(told);
            Ok(())
        }
        Verdict::Failure => Err(Error::Invalid(told)),
    }
}

/// Refuses a feature that the operator has switched off.
///
/// # Errors
/// The feature is switched off.
pub(crate) fn ensure(guardrail: &str, is_enabled: bool, feature: &str) -> Result<(), Error> {
    match is_enabled {
        true => Ok(()),
        false => Err(Error::Invalid(violated(
            guardrail,
            &format!("{feature} is not allowed"),
        ))),
    }
}

/// Refuses a feature that the operator has switched off, and warns of one that is discouraged.
///
/// # Errors
/// The feature is switched off.
pub(crate) fn check_flag(
    guardrail: &str,
    flag: Flag,
    feature: &str,
    reason: &str,
    execution: &Execution<'_>,
) -> Result<(), Error> {
    let said = |verdict: &str| violated(guardrail, &format!("{feature} is not {verdict}. {reason}"));
    if !flag.enabled {
        return Err(Error::Invalid(said("allowed")));
    }
    if flag.warned {
        execution.warn(said("recommended"));
    }
    Ok(())
}

/// Refuses values that are not allowed, and warns of those that are not recommended. `what` names the option.
///
/// # Errors
/// One value is not allowed.
pub(crate) fn check_lists(
    guardrail: &str,
    lists: &ValueLists,
    given: &[&str],
    what: &str,
    execution: &Execution<'_>,
) -> Result<(), Error> {
    let among = |list: &[String], lead: &str, verdict: &str, name: &str| {
        let found: Vec<&str> = given
            .iter()
            .copied()
            .filter(|value| is_among(value, list))
            .collect();
        (!found.is_empty()).then(|| {
            let (found, list) = (found.join(", "), list.join(", "));
            let message =
                format!("{lead} values [{found}] {verdict} for {what} ({name} values are: [{list}])");
            violated(guardrail, &message)
        })
    };
    if let Some(refused) = among(&lists.disallowed, "Provided", "are not allowed", "disallowed") {
        return Err(Error::Invalid(refused));
    }
    let ignored = "as they are not supported";
    [
        among(&lists.ignored, "Ignoring provided", ignored, "ignored"),
        among(&lists.warned, "Provided", "are not recommended", "warned"),
    ]
    .into_iter()
    .flatten()
    .for_each(|warning| execution.warn(warning));
    Ok(())
}

fn is_among(value: &str, list: &[String]) -> bool {
    list.iter().any(|listed| listed.eq_ignore_ascii_case(value))
}

/// Refuses a consistency level that the operator does not allow for reads.
///
/// # Errors
/// The level is not allowed.
pub(crate) fn check_read_level(level: Consistency, execution: &Execution<'_>) -> Result<(), Error> {
    let lists = &execution.query_options.guardrails.read_consistency_levels;
    check_level("read", lists, level, execution)
}

/// Refuses a consistency level that the operator does not allow for writes.
///
/// # Errors
/// The level is not allowed.
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
