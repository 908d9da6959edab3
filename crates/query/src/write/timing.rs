//! USING: timestamp and TTL of a write.

use bytes::Bytes;
use ilion_cql::ast;
use ilion_rows::{Cell, DeletionTime, Liveness, NO_TIMESTAMP, NO_TTL};
use ilion_schema::{TableSchema, is_system_keyspace};
use ilion_types::CqlType;

use crate::context::{Execution, PlanContext};
use crate::guardrails::check_timestamp;
use crate::term::Term;
use crate::{ColumnSpec, Error, Value};

/// Twenty years.
const TTL_SECS_MAX: i32 = 20 * 365 * 24 * 60 * 60;

/// A planned USING.
#[derive(Clone, Debug, Default)]
pub(super) struct Timing {
    timestamp: Option<Term>,
    ttl: Option<Term>,
}

/// The timestamps and the expiry of a statement's cells.
#[derive(Clone, Copy, Debug)]
pub(super) struct WriteTime {
    timestamp_micros: i64,
    /// The timestamp for deletions of rows, ranges, partitions and whole collections.
    deletion_micros: i64,
    ttl_secs: u32,
    now_secs: u32,
}

impl Timing {
    pub(super) fn plan(
        using: &ast::Using,
        table: &TableSchema,
        context: &PlanContext<'_>,
    ) -> Result<Self, Error> {
        let plan = |ast: &Option<ast::Term>, name: &str, ty: CqlType| {
            let receiver = ColumnSpec::of(table, name, ty);
            ast.as_ref()
                .map(|term| Term::plan(term, &receiver, context))
                .transpose()
        };
        Ok(Self {
            timestamp: plan(&using.timestamp, "[timestamp]", CqlType::BigInt)?,
            ttl: plan(&using.ttl, "[ttl]", CqlType::Int)?,
        })
    }

    pub(super) fn has_timestamp(&self) -> bool {
        self.timestamp.is_some()
    }

    pub(super) fn has_ttl(&self) -> bool {
        self.ttl.is_some()
    }

    /// The timestamp for this execution; `default_micros` if the statement has none of its own.
    pub(super) fn timestamp_micros(
        &self,
        table: &TableSchema,
        default_micros: i64,
        execution: &Execution<'_>,
    ) -> Result<i64, Error> {
        let given_micros = match &self.timestamp {
            Some(term) => evaluate_timestamp(term, execution)?,
            None => None,
        };
        let timestamp_micros = given_micros.unwrap_or(default_micros);
        if timestamp_micros == NO_TIMESTAMP {
            return Err(Error::Invalid(format!(
                "Out of bound timestamp, must be in [{}, {}]",
                i64::MIN + 1,
                i64::MAX
            )));
        }
        if self.has_timestamp() && !is_system_keyspace(&table.keyspace) {
            check_timestamp(timestamp_micros, &table.name, execution)?;
        }
        Ok(timestamp_micros)
    }

    /// The times for this execution, with the timestamp of [`Self::timestamp_micros`].
    pub(super) fn evaluate(
        &self,
        table: &TableSchema,
        timestamp_micros: i64,
        execution: &Execution<'_>,
    ) -> Result<WriteTime, Error> {
        Ok(WriteTime {
            timestamp_micros,
            deletion_micros: timestamp_micros,
            ttl_secs: self.ttl(table, execution)?,
            now_secs: execution.ttl_now_secs(),
        })
    }

    fn ttl(&self, table: &TableSchema, execution: &Execution<'_>) -> Result<u32, Error> {
        let default = table.options.default_time_to_live_secs;
        let Some(term) = &self.ttl else {
            check_expiry(default, "default ", table, execution)?;
            return Ok(default);
        };
        let bytes = match term.evaluate(execution)? {
            Value::Null => return Ok(NO_TTL),
            Value::Unset => return Ok(default),
            Value::Bytes(bytes) => bytes,
        };
        // An empty int counts as null.
        let Ok(bytes) = <[u8; 4]>::try_from(&*bytes) else {
            return Ok(NO_TTL);
        };
        let ttl = i32::from_be_bytes(bytes);
        let Ok(ttl_secs) = u32::try_from(ttl) else {
            return Err(Error::Invalid(format!(
                "A TTL must be greater or equal to 0, but was {ttl}"
            )));
        };
        if ttl > TTL_SECS_MAX {
            return Err(Error::Invalid(format!(
                "ttl is too large. requested ({ttl}) maximum ({TTL_SECS_MAX})"
            )));
        }
        check_expiry(ttl_secs, "", table, execution)?;
        Ok(ttl_secs)
    }
}

/// The value of USING TIMESTAMP; `None` if it is unset.
pub(crate) fn evaluate_timestamp(term: &Term, execution: &Execution<'_>) -> Result<Option<i64>, Error> {
    match term.evaluate(execution)? {
        Value::Unset => Ok(None),
        Value::Null => Err(Error::invalid("Invalid null value of timestamp")),
        Value::Bytes(bytes) => match <[u8; 8]>::try_from(&*bytes) {
            Ok(bytes) => Ok(Some(i64::from_be_bytes(bytes))),
            Err(_) => Err(Error::invalid("Invalid timestamp value")),
        },
    }
}

/// Refuses an expiry that is too late to be stored. Compat: the `REJECT` policy of `ExpirationDateOverflowHandling`.
fn check_expiry(
    ttl_secs: u32,
    which: &str,
    table: &TableSchema,
    execution: &Execution<'_>,
) -> Result<(), Error> {
    let expiry_max = execution.query_options.expiry_secs_max;
    let ends = u64::from(execution.ttl_now_secs()) + u64::from(ttl_secs);
    if ttl_secs == NO_TTL || ends <= u64::from(expiry_max) {
        return Ok(());
    }
    let last = CqlType::Timestamp.print_literal(&(i64::from(expiry_max) * 1000).to_be_bytes())?;
    let last = last.trim_matches('\'').replace(".000Z", "+00:00");
    Err(Error::Invalid(format!(
        "Request on table {}.{} with {which}ttl of {ttl_secs} seconds exceeds maximum supported expiration date of {last}. \
         In order to avoid this use a lower TTL, change the expiration date overflow policy or upgrade to a version where \
         this limitation is fixed. See CASSANDRA-14092 and CASSANDRA-14227 for more details.",
        table.keyspace, table.name
    )))
}

impl WriteTime {
    /// The times of a conditional write. It has the timestamp of the store, even if members of the batch give one. Deletions are one
    /// microsecond older, so that a batch may replace a row.
    #[must_use]
    pub(super) fn of_condition(self, timestamp_micros: i64) -> Self {
        Self {
            timestamp_micros,
            ..self
        }
        .with_older_deletions()
    }

    /// The same times, but deletions are one microsecond older than other writes.
    #[must_use]
    pub(super) fn with_older_deletions(self) -> Self {
        Self {
            deletion_micros: self.timestamp_micros - 1,
            ..self
        }
    }

    /// A cell with this value.
    #[inline]
    pub(super) fn cell(&self, value: Bytes) -> Cell {
        if self.ttl_secs == NO_TTL {
            Cell::live(self.timestamp_micros, value)
        } else {
            Cell::expiring(self.timestamp_micros, self.ttl_secs, self.expires_secs(), value)
        }
    }

    /// The cell of a counter, which never expires.
    pub(super) fn counter_cell(&self, context: Bytes) -> Cell {
        Cell::live(self.timestamp_micros, context)
    }

    /// A deleted cell.
    pub(super) fn tombstone(&self) -> Cell {
        Cell::tombstone(self.timestamp_micros, self.now_secs)
    }

    /// The liveness of an inserted row.
    #[inline]
    pub(super) fn liveness(&self) -> Liveness {
        if self.ttl_secs == NO_TTL {
            Liveness::live(self.timestamp_micros)
        } else {
            Liveness::expiring(self.timestamp_micros, self.ttl_secs, self.expires_secs())
        }
    }

    /// The deletion of a row, range, partition or collection.
    pub(super) fn deletion(&self) -> DeletionTime {
        DeletionTime::new(self.deletion_micros, self.now_secs)
    }

    /// The deletion of a collection before it is written as a whole: one microsecond older than its new cells.
    pub(super) fn overwrite_deletion(&self) -> DeletionTime {
        let before = self.timestamp_micros.saturating_sub(1).max(NO_TIMESTAMP + 1);
        DeletionTime::new(before, self.now_secs)
    }

    fn expires_secs(&self) -> u32 {
        self.now_secs.saturating_add(self.ttl_secs)
    }
}
