//! What the server keeps in tables of its own.
//!
//! | module | what |
//! | --- | --- |
//! | `indexes`, `sstable_indexes` | secondary indexes, as tables of `system_views` |
//! | `local` | `system.local`: this node, stored |
//! | `views` | `system_views`, computed when read |
//! | `virtual_schema` | `system_virtual_schema`, computed when read |
//! | `statements`, `latencies` | `system_views.statements`, and the same by table as Cassandra has it |
//! | `traces` | `system_traces`, stored |
//! | `values` | serialized values |
//!
//! `system.peers` and `system.peers_v2` stay empty: there is one node. Virtual tables of Cassandra that are not listed in
//! [`register`] are there and empty.

mod indexes;
mod latencies;
mod local;
mod sstable_indexes;
mod statements;
mod traces;
mod values;
mod views;
mod virtual_schema;

use std::sync::{Arc, Weak};

use ilion_engine::{Engine, VirtualRow, VirtualTable};
use ilion_schema::TableId;

use crate::costs::{Histogram, StatementCosts, TableCosts};
use crate::server::Clients;
use crate::settings::Settings;

pub(crate) use traces::StoredTraces;

pub use local::{CQL_VERSION, LocalError, LocalNode, NodeFacts, RELEASE_VERSION};

/// Told of every change of the schema, before the client is.
pub trait SchemaListener: Send + Sync {
    /// The schema has changed.
    fn schema_changed(&self);
}

/// Nobody wants to know.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoListener;

impl SchemaListener for NoListener {
    fn schema_changed(&self) {}
}

/// A virtual table whose rows a function computes.
struct Computed<F>(F);

impl<F: Fn() -> Vec<VirtualRow> + Send + Sync> VirtualTable for Computed<F> {
    fn rows(&self) -> Vec<VirtualRow> {
        self.0()
    }
}

/// Lets the engine compute what it and the settings have to say.
pub fn register(engine: &Arc<Engine>, settings: &Settings) {
    let of_engine = |rows: fn(&Engine) -> Vec<VirtualRow>| {
        // The engine keeps its tables, so they may not keep the engine.
        let engine: Weak<Engine> = Arc::downgrade(engine);
        move || engine.upgrade().map(|engine| rows(&engine)).unwrap_or_default()
    };
    let settings = settings.clone();
    add(engine, "system_views", "settings", move || {
        views::settings(&settings)
    });
    add(
        engine,
        "system_views",
        "caches",
        of_engine(|engine| views::caches(&engine.facts())),
    );
    add(
        engine,
        "system_views",
        "disk_usage",
        of_engine(|engine| views::disk_usage(&engine.table_facts())),
    );
    add(
        engine,
        "system_views",
        "sstable_tasks",
        of_engine(|engine| views::sstable_tasks(&engine.compactions())),
    );
    add(
        engine,
        "system_views",
        "max_partition_size",
        of_engine(|engine| {
            let ids = engine.tables().into_iter().map(|store| store.schema().id);
            let details: Vec<_> = ids.filter_map(|id| engine.table_details(id).ok()).collect();
            latencies::max_partition_size(&details)
        }),
    );
    add(engine, "system_views", "indexes", of_engine(indexes::all));
    add(
        engine,
        "system_views",
        "sai_column_indexes",
        of_engine(indexes::attached),
    );
    add(
        engine,
        "system_views",
        "sai_sstable_indexes",
        of_engine(sstable_indexes::indexes),
    );
    add(
        engine,
        "system_views",
        "sai_sstable_index_segments",
        of_engine(sstable_indexes::segments),
    );
    let schema = "system_virtual_schema";
    add(
        engine,
        schema,
        "keyspaces",
        of_engine(|engine| virtual_schema::keyspaces(&engine.schema())),
    );
    add(
        engine,
        schema,
        "tables",
        of_engine(|engine| virtual_schema::tables(&engine.schema())),
    );
    add(
        engine,
        schema,
        "columns",
        of_engine(|engine| virtual_schema::columns(&engine.schema())),
    );
}

/// Lets the engine tell what statements cost, until it is told to forget it.
pub fn register_costs(engine: &Engine, costs: &Arc<StatementCosts>) {
    let id = TableId::of_system_table("system_views", "statements");
    engine.register_virtual_table(id, Arc::new(Statements(costs.clone())));
    type Times = fn(&TableCosts) -> &Histogram;
    let reads: Times = |table| &table.reads.latency;
    let writes: Times = |table| &table.writes.latency;
    let times = [
        ("coordinator_read_latency", reads),
        ("coordinator_write_latency", writes),
        ("local_read_latency", reads),
        ("local_write_latency", writes),
    ];
    for (name, of) in times {
        let costs = costs.clone();
        add(engine, "system_views", name, move || {
            latencies::latency(&costs, of)
        });
    }
    let costs = costs.clone();
    add(engine, "system_views", "tombstones_per_read", move || {
        latencies::tombstones_per_read(&costs)
    });
}

struct Statements(Arc<StatementCosts>);

impl VirtualTable for Statements {
    fn rows(&self) -> Vec<VirtualRow> {
        statements::statements(&self.0.list())
    }

    fn clear(&self) -> bool {
        self.0.reset();
        true
    }

    fn is_clearable(&self) -> bool {
        true
    }
}

/// Lets the engine compute what the server has to say.
pub fn register_clients(engine: &Arc<Engine>, clients: &Clients) {
    let connected = clients.clone();
    add(engine, "system_views", "clients", move || {
        views::clients(&connected.list())
    });
    let pools = clients.clone();
    add(engine, "system_views", "thread_pools", move || {
        views::thread_pools(&pools.pools())
    });
}

fn add<F>(engine: &Engine, keyspace: &str, table: &str, rows: F)
where
    F: Fn() -> Vec<VirtualRow> + Send + Sync + 'static,
{
    let id = TableId::of_system_table(keyspace, table);
    engine.register_virtual_table(id, Arc::new(Computed(rows)));
}
