//! `system_traces`: stores traces as rows that expire.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ilion_env::Env;
use ilion_node::STORAGE_PORT;
use ilion_node::values::{inet, int, text, timestamp, uuid};
use ilion_query::{Store, StoreError};
use ilion_rows::{
    Cell, Clustering, ColumnData, ComplexColumn, Data, DecoratedKey, DeletionTime, Liveness, Mutation,
    PartitionUpdate, Row,
};
use ilion_schema::TableSchema;
use uuid::Uuid;

use crate::traces::{Trace, TraceStore};

/// Ticks of 100 ns from 1582-10-15, the epoch of version 1 UUIDs, to 1970-01-01.
const UUID_TICKS_BEFORE_EPOCH: u64 = 0x01B2_1DD2_1381_4000;

/// Stores traces in the tables from which drivers and cqlsh read them.
pub struct StoredTraces {
    env: Arc<dyn Env>,
    store: Arc<dyn Store>,
    /// Address of this node in the rows.
    node: SocketAddr,
    ttl_secs: u32,
}

impl TraceStore for StoredTraces {
    fn store(&self, trace: Trace) {
        if let Err(error) = self.apply(&trace) {
            tracing::warn!(%error, "a trace could not be stored");
        }
    }
}

impl StoredTraces {
    /// Stores traces of this node for `ttl`; zero means for ever.
    pub fn new(env: Arc<dyn Env>, store: Arc<dyn Store>, node: SocketAddr, ttl: Duration) -> Self {
        Self {
            env,
            store,
            node,
            ttl_secs: u32::try_from(ttl.as_secs()).unwrap_or(u32::MAX),
        }
    }

    fn apply(&self, trace: &Trace) -> Result<(), StoreError> {
        let now_micros = self.store.unique_micros();
        let schema = self.store.schema();
        let table = |name: &str| {
            let table = schema.table("system_traces", name).cloned();
            table.ok_or_else(|| StoreError::Internal(format!("system_traces.{name} is not there")))
        };
        let writer = TraceRows {
            now_micros,
            expires_secs: u32::try_from(self.store.now_micros() / 1_000_000)
                .unwrap_or(u32::MAX)
                .saturating_add(self.ttl_secs),
            ttl_secs: self.ttl_secs,
            key: uuid(trace.id),
        };
        let (sessions, events) = (table("sessions")?, table("events")?);
        let mutations = vec![
            self.mutation(&events, &writer, self.events(&events, trace, &writer)),
            self.mutation(&sessions, &writer, vec![self.session(&sessions, trace, &writer)]),
        ];
        self.store.apply(mutations)?;
        Ok(())
    }

    fn mutation(&self, table: &Arc<TableSchema>, writer: &TraceRows, rows: Vec<Row>) -> Mutation {
        Mutation {
            table: table.clone(),
            key: DecoratedKey::new(table.partitioner(self.store.partitioner()), writer.key.clone()),
            update: PartitionUpdate {
                rows,
                ..PartitionUpdate::default()
            },
        }
    }

    fn session(&self, table: &TableSchema, trace: &Trace, writer: &TraceRows) -> Row {
        let duration = i32::try_from(trace.duration_micros).unwrap_or(i32::MAX);
        let cells = [
            ("client", inet(trace.client)),
            ("command", text("QUERY")),
            ("coordinator", inet(self.node.ip())),
            ("coordinator_port", int(STORAGE_PORT)),
            ("duration", int(duration)),
            ("request", text(trace.request)),
            ("started_at", timestamp(trace.started_micros / 1000)),
        ];
        let mut row = writer.row(table, Clustering::empty(), &cells);
        if let Some(column) = table.column_named("parameters") {
            let data = Data::Complex(Box::new(writer.map_of(&trace.parameters)));
            row.columns.push(ColumnData {
                column: column.id,
                data,
            });
            row.columns.sort_by_key(|data| data.column);
        }
        row
    }

    fn events(&self, table: &TableSchema, trace: &Trace, writer: &TraceRows) -> Vec<Row> {
        let node = self.env.time_uuid();
        let mut ticks = 0;
        let events = trace.events.iter().map(|event| {
            let elapsed_micros = event.elapsed_nanos / 1000;
            // The ids of events must ascend, and drivers show the times of the ids.
            let at = u64::try_from(trace.started_micros).unwrap_or(0) + elapsed_micros;
            ticks = (at * 10 + UUID_TICKS_BEFORE_EPOCH).max(ticks + 1);
            let cells = [
                ("activity", text(&event.activity)),
                ("source", inet(self.node.ip())),
                (
                    "source_elapsed",
                    int(i32::try_from(elapsed_micros).unwrap_or(i32::MAX)),
                ),
                ("source_port", int(STORAGE_PORT)),
                ("thread", text(&trace.thread)),
            ];
            writer.row(table, Clustering::of([uuid(uuid_at(ticks, node))]), &cells)
        });
        events.collect()
    }
}

/// A version 1 UUID with this time; clock sequence and node are those of `like`.
fn uuid_at(ticks: u64, like: Uuid) -> Uuid {
    let low = (ticks & 0xFFFF_FFFF) as u32;
    let middle = (ticks >> 32 & 0xFFFF) as u16;
    let high = (ticks >> 48 & 0x0FFF) as u16 | 0x1000;
    let (_, _, _, rest) = like.as_fields();
    Uuid::from_fields(low, middle, high, rest)
}

/// Builds rows that expire.
struct TraceRows {
    now_micros: i64,
    expires_secs: u32,
    ttl_secs: u32,
    key: Bytes,
}

impl TraceRows {
    fn cell(&self, value: Bytes) -> Cell {
        match self.ttl_secs {
            0 => Cell::live(self.now_micros, value),
            ttl_secs => Cell {
                ttl_secs,
                local_deletion_secs: self.expires_secs,
                ..Cell::live(self.now_micros, value)
            },
        }
    }

    fn row(&self, table: &TableSchema, clustering: Clustering, cells: &[(&str, Bytes)]) -> Row {
        let cells = cells.iter().filter_map(|(name, value)| {
            Some(ColumnData {
                column: table.column_named(name)?.id,
                data: Data::Simple(self.cell(value.clone())),
            })
        });
        let mut columns: Vec<ColumnData> = cells.collect();
        columns.sort_by_key(|data| data.column);
        Row {
            liveness: self.liveness(),
            columns,
            ..Row::empty(clustering)
        }
    }

    fn liveness(&self) -> Liveness {
        match self.ttl_secs {
            0 => Liveness::live(self.now_micros),
            ttl_secs => Liveness {
                ttl_secs,
                expires_secs: self.expires_secs,
                ..Liveness::live(self.now_micros)
            },
        }
    }

    fn map_of(&self, entries: &[(String, String)]) -> ComplexColumn {
        let mut cells: Vec<(Bytes, Cell)> = entries
            .iter()
            .map(|(key, value)| (text(key), self.cell(text(value))))
            .collect();
        cells.sort_by(|(a, _), (b, _)| a.cmp(b));
        ComplexColumn {
            deletion: DeletionTime::LIVE,
            cells,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_events_ascend_with_their_time() {
        let like = Uuid::from_u128(0x1234_5678_0000_1000_8abc_0123_4567_89ab);
        let at = |micros: u64| uuid_at(micros * 10 + UUID_TICKS_BEFORE_EPOCH, like);
        let id = at(1_700_000_000_123_456);
        assert_eq!(id.get_version_num(), 1);
        let (secs, nanos) = id.get_timestamp().unwrap().to_unix();
        assert_eq!((secs, nanos), (1_700_000_000, 123_456_000));
        assert_eq!(&id.as_bytes()[8..], &like.as_bytes()[8..]);
    }
}
