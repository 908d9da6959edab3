//! Which prepared statements a schema change invalidates, so that clients prepare them again.
//!
//! Compat: `QueryProcessor.StatementInvalidatingListener` and `TableMetadata.changeAffectsPreparedStatements` of Cassandra 5.0.

use ilion_schema::{Diff, TableSchema, Transition};

use crate::planned::Planned;

/// The effects of a change that statements may depend on.
pub(crate) struct Invalidated<'d> {
    tables: Vec<&'d TableSchema>,
    /// Tables whose indexes changed, by keyspace and name.
    indexed: Vec<(&'d str, &'d str)>,
    /// Functions and aggregates that changed, by keyspace and name.
    functions: Vec<(&'d str, &'d str)>,
}

impl<'d> Invalidated<'d> {
    /// The effects of a change with these differences.
    pub fn by(diffs: &'d [Diff]) -> Self {
        let mut found = Self {
            tables: Vec::new(),
            indexed: Vec::new(),
            functions: Vec::new(),
        };
        for diff in diffs {
            match diff {
                Diff::Table(Transition::Dropped(table)) => found.tables.push(table),
                Diff::Table(Transition::Updated { old, new }) if is_seen_by_statements(old, new) => {
                    found.tables.push(old);
                }
                Diff::Index(keyspace, index) => found.indexed.push((keyspace, &index.object().table)),
                Diff::Function(keyspace, function) => {
                    found.functions.push((keyspace, &function.object().name));
                }
                Diff::Aggregate(keyspace, aggregate) => {
                    found.functions.push((keyspace, &aggregate.object().name));
                }
                _ => {}
            }
        }
        found
    }

    /// True if no statement can depend on the change.
    pub fn is_empty(&self) -> bool {
        self.tables.is_empty() && self.indexed.is_empty() && self.functions.is_empty()
    }

    /// True if the statement depends on the change.
    pub fn has(&self, planned: &Planned) -> bool {
        let has_table = |table: &TableSchema| {
            self.tables.iter().any(|changed| changed.id == table.id)
                || self.indexed.contains(&(&*table.keyspace, &*table.name))
        };
        let calls = |(keyspace, name): &(&str, &str)| {
            let mut called = planned.functions.iter();
            called.any(|(of, function)| of == keyspace && function == name)
        };
        planned.plan.tables().any(|table| has_table(table)) || self.functions.iter().any(calls)
    }
}

fn is_seen_by_statements(old: &TableSchema, new: &TableSchema) -> bool {
    old.every_column() != new.every_column()
        || old.flags != new.flags
        || old.options.default_time_to_live_secs != new.options.default_time_to_live_secs
        || old.options.gc_grace_secs != new.options.gc_grace_secs
}
