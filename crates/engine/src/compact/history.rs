//! `system.compaction_history`: a row for each compaction, kept for a week.

use bytes::Bytes;
use ilion_commitlog::Kind;
use ilion_rows::{
    Cell, Clustering, ColumnData, ComplexColumn, Data, DecoratedKey, DeletionTime, Liveness, Mutation,
    PartitionUpdate, Row,
};
use ilion_schema::{TableId, TableSchema};
use ilion_types::encode_map;

use super::Compaction;
use super::joined::Joined;
use crate::shared::Shared;
use crate::tasks::CompactionFacts;

const KEYSPACE: &str = "system";
const TABLE: &str = "compaction_history";

impl Shared {
    /// Adds a compaction to the history. Compat: compactions of the history table itself are left out, or they would never end.
    pub(super) fn remember_compaction(
        &self,
        compaction: &Compaction<'_>,
        bytes_in: u64,
        bytes_out: u64,
        joined: &Joined,
    ) {
        let compacted = compaction.inputs.store.schema();
        if (compacted.keyspace.as_str(), compacted.name.as_str()) == (KEYSPACE, TABLE) {
            return;
        }
        let Some(store) = self.table(TableId::of_system_table(KEYSPACE, TABLE)) else {
            return;
        };
        let task = &compaction.registered.task;
        let facts = CompactionFacts::of(task);
        let table = store.schema();
        let bigint =
            |value: u64| Bytes::copy_from_slice(&i64::try_from(value).unwrap_or(i64::MAX).to_be_bytes());
        let kind = encode_map([(b"compaction_type".as_slice(), facts.kind.as_bytes())]);
        let cells = [
            ("bytes_in", bigint(bytes_in)),
            ("bytes_out", bigint(bytes_out)),
            ("columnfamily_name", Bytes::from(facts.table)),
            (
                "compacted_at",
                Bytes::copy_from_slice(&(self.env.now_micros() / 1000).to_be_bytes()),
            ),
            ("compaction_properties", Bytes::from(kind)),
            ("keyspace_name", Bytes::from(facts.keyspace)),
        ];
        let mut row = self.expiring_row(&table, &cells);
        row.columns
            .extend(self.expiring_map(&table, "rows_merged", &joined.counts()));
        row.columns.sort_by_key(|data| data.column);
        let mutation = Mutation {
            key: DecoratedKey::new(
                table.partitioner(self.options.partitioner),
                Bytes::copy_from_slice(facts.id.as_bytes()),
            ),
            update: PartitionUpdate {
                rows: vec![row],
                ..PartitionUpdate::default()
            },
            table,
        };
        // Only logged, since the compaction itself has succeeded.
        if let Err(error) = self.write(Kind::Mutation, std::slice::from_ref(&mutation)) {
            tracing::warn!(%error, "a compaction was not written into system.compaction_history");
        }
    }

    /// A `map<int, bigint>`; `None` if it is empty, or the table does not have it.
    fn expiring_map(&self, table: &TableSchema, column: &str, pairs: &[(u32, u64)]) -> Option<ColumnData> {
        let column = table.column_named(column)?.id;
        let (now_micros, ttl_secs, expires_secs) = self.expiry(table);
        let cell = |(key, value): &(u32, u64)| {
            let value = i64::try_from(*value).unwrap_or(i64::MAX);
            let cell = Cell {
                ttl_secs,
                local_deletion_secs: expires_secs,
                ..Cell::live(now_micros, Bytes::copy_from_slice(&value.to_be_bytes()))
            };
            (Bytes::copy_from_slice(&key.to_be_bytes()), cell)
        };
        let cells: Vec<(Bytes, Cell)> = pairs.iter().map(cell).collect();
        (!cells.is_empty()).then_some(ColumnData {
            column,
            data: Data::Complex(Box::new(ComplexColumn {
                deletion: DeletionTime::LIVE,
                cells,
            })),
        })
    }

    /// The time, the table's time to live, and when a row that is written now expires.
    fn expiry(&self, table: &TableSchema) -> (i64, u32, u32) {
        let now_micros = self.env.unique_micros();
        let ttl_secs = table.options.default_time_to_live_secs;
        let expires_secs = u32::try_from(now_micros / 1_000_000)
            .unwrap_or(u32::MAX)
            .saturating_add(ttl_secs);
        (now_micros, ttl_secs, expires_secs)
    }

    fn expiring_row(&self, table: &TableSchema, cells: &[(&str, Bytes)]) -> Row {
        let (now_micros, ttl_secs, expires_secs) = self.expiry(table);
        let columns: Vec<ColumnData> = cells
            .iter()
            .filter_map(|(name, value)| {
                let cell = Cell {
                    ttl_secs,
                    local_deletion_secs: expires_secs,
                    ..Cell::live(now_micros, value.clone())
                };
                Some(ColumnData {
                    column: table.column_named(name)?.id,
                    data: Data::Simple(cell),
                })
            })
            .collect();
        Row {
            liveness: Liveness {
                ttl_secs,
                expires_secs,
                ..Liveness::live(now_micros)
            },
            columns,
            ..Row::empty(Clustering::of([]))
        }
    }
}
