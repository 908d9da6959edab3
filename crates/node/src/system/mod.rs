//! System tables that a node stores or computes. The server adds those about clients, its log and traces.
//!
//! | module | what |
//! | --- | --- |
//! | `counts` | batches, the process and roles, as tables of `system_views` |
//! | `estimates` | sizes of tables by range of the ring, computed when read |
//! | `indexes`, `sstable_indexes` | secondary indexes, as tables of `system_views` |
//! | `local` | `system.local`: this node, stored |
//! | `peers` | `system.peers` and `system.peers_v2`, computed when read |
//! | `settings` | `system_views.settings`, which can be updated |
//! | `views` | `system_views`, computed when read |
//! | `virtual_schema` | `system_virtual_schema`, computed when read |
//! | `statements`, `latencies` | `system_views.statements`, and the same by table as Cassandra has it |
//!
//! The tables of peers are empty on a single node. Cassandra's other virtual tables exist and are empty: Ilion has no hints, repairs,
//! streams and JMX.

mod counts;
mod estimates;
mod indexes;
mod latencies;
mod local;
mod peers;
mod settings;
mod sstable_indexes;
mod statements;
mod views;
mod virtual_schema;

use std::sync::{Arc, Weak};

use ilion_engine::{Engine, TableDetails, VirtualRow, VirtualTable};
use ilion_query::{AccessControl, BatchSizes, QueryProcessor};
use ilion_schema::TableId;
use ilion_settings::Settings;

use crate::costs::{OperationKind, RecentRates, StatementCosts};
use crate::live::LiveSettings;
use crate::peers::Peers;

use latencies::Pick;
use settings::SettingsTable;

pub use local::{CQL_VERSION, LocalError, LocalNode, NodeFacts, RELEASE_VERSION, STORAGE_PORT, Standing};

/// Gets a call after every change of the schema, before the client gets its answer.
pub trait SchemaListener: Send + Sync {
    /// The schema has changed.
    fn schema_changed(&self);

    /// True if this node sends SCHEMA_CHANGE events when it applies the record of a change. If false, it sends them when the statement that
    /// makes the change has been executed.
    fn is_announced_by_log(&self) -> bool {
        false
    }
}

/// A listener that does nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoListener;

impl SchemaListener for NoListener {
    fn schema_changed(&self) {}
}

/// A virtual table whose rows a function returns.
struct Computed<F>(F);

impl<F: Fn() -> Vec<VirtualRow> + Send + Sync> VirtualTable for Computed<F> {
    fn rows(&self) -> Vec<VirtualRow> {
        self.0()
    }
}

/// Registers the virtual tables about the engine and the settings.
pub(crate) fn register(engine: &Arc<Engine>, settings: &Settings) {
    let of_engine = |rows: fn(&Engine) -> Vec<VirtualRow>| {
        // The engine owns its virtual tables, so these hold it weakly.
        let engine: Weak<Engine> = Arc::downgrade(engine);
        move || engine.upgrade().map(|engine| rows(&engine)).unwrap_or_default()
    };
    register_computed(
        engine,
        "system_views",
        "disk_usage",
        of_engine(|engine| views::disk_usage(&engine.table_facts())),
    );
    register_computed(
        engine,
        "system_views",
        "snapshots",
        of_engine(|engine| views::snapshots(engine.snapshots().unwrap_or_default())),
    );
    register_computed(
        engine,
        "system_views",
        "sstable_tasks",
        of_engine(|engine| views::sstable_tasks(&engine.compactions())),
    );
    register_computed(
        engine,
        "system_views",
        "max_partition_size",
        of_engine(|engine| latencies::max_partition_size(&details(engine))),
    );
    register_computed(
        engine,
        "system_views",
        "max_sstable_size",
        of_engine(|engine| latencies::max_sstable_size(&details(engine))),
    );
    register_computed(
        engine,
        "system_views",
        "max_sstable_duration",
        of_engine(|engine| latencies::max_sstable_duration(&details(engine))),
    );
    let process = settings.clone();
    register_computed(engine, "system_views", "system_properties", move || {
        counts::properties(&process)
    });
    register_computed(engine, "system_views", "indexes", of_engine(indexes::all));
    register_computed(
        engine,
        "system_views",
        "sai_column_indexes",
        of_engine(indexes::attached),
    );
    register_computed(
        engine,
        "system_views",
        "sai_sstable_indexes",
        of_engine(sstable_indexes::indexes),
    );
    register_computed(
        engine,
        "system_views",
        "sai_sstable_index_segments",
        of_engine(sstable_indexes::segments),
    );
    let schema = "system_virtual_schema";
    register_computed(
        engine,
        schema,
        "keyspaces",
        of_engine(|engine| virtual_schema::keyspaces(&engine.schema())),
    );
    register_computed(
        engine,
        schema,
        "tables",
        of_engine(|engine| virtual_schema::tables(&engine.schema())),
    );
    register_computed(
        engine,
        schema,
        "columns",
        of_engine(|engine| virtual_schema::columns(&engine.schema())),
    );
}

/// Registers `settings`, which can be updated.
pub(crate) fn register_settings(engine: &Engine, settings: &Arc<LiveSettings>) {
    let id = TableId::of_system_table("system_views", "settings");
    engine.register_virtual_table(id, Arc::new(SettingsTable(settings.clone())));
}

/// Registers the virtual tables about costs of statements, and the one about caches.
pub(crate) fn register_costs(engine: &Arc<Engine>, costs: &Arc<StatementCosts>, rates: &Arc<RecentRates>) {
    let id = TableId::of_system_table("system_views", "statements");
    engine.register_virtual_table(id, Arc::new(StatementsTable(costs.clone())));
    let (reads, scans, writes) = (OperationKind::Reads, OperationKind::Scans, OperationKind::Writes);
    let times: [(&str, OperationKind, Pick); 6] = [
        ("coordinator_read_latency", reads, |table| {
            table.reads.latency.clone()
        }),
        ("coordinator_scan_latency", scans, |table| {
            table.scans.latency.clone()
        }),
        ("coordinator_write_latency", writes, |table| {
            table.writes.latency.clone()
        }),
        ("local_read_latency", reads, |table| {
            table.reads.local_latency.clone()
        }),
        ("local_scan_latency", scans, |table| {
            table.scans.local_latency.clone()
        }),
        ("local_write_latency", writes, |table| {
            table.writes.local_latency.clone()
        }),
    ];
    let stored = |engine: &Arc<Engine>| {
        let engine = Arc::downgrade(engine);
        move || {
            engine
                .upgrade()
                .map_or_else(Vec::new, |engine| latencies::stored(&engine))
        }
    };
    for (name, kind, of) in times {
        let (costs, rates, stored) = (costs.clone(), rates.clone(), stored(engine));
        register_computed(engine, "system_views", name, move || {
            latencies::latency(&costs, &rates, stored(), of, kind)
        });
    }
    let (weak, of_caches) = (Arc::downgrade(engine), rates.clone());
    register_computed(engine, "system_views", "caches", move || {
        let facts = weak.upgrade().map(|engine| engine.facts());
        facts.map_or_else(Vec::new, |facts| views::caches(&facts, &of_caches))
    });
    let counts: [(&str, Pick); 2] = [
        ("tombstones_per_read", |table| table.all_reads().tombstones),
        ("rows_per_read", |table| table.all_reads().rows),
    ];
    for (name, of) in counts {
        let (costs, stored) = (costs.clone(), stored(engine));
        register_computed(engine, "system_views", name, move || {
            latencies::count(&costs, stored(), of)
        });
    }
}

fn details(engine: &Engine) -> Vec<TableDetails> {
    let ids = engine.tables().into_iter().map(|store| store.schema().id);
    ids.filter_map(|id| engine.table_details(id).ok()).collect()
}

/// Registers the estimates by range of the ring, and `gossip_info`.
pub(crate) fn register_ring(engine: &Arc<Engine>, local: &Arc<LocalNode>) {
    type Estimate = fn(&Engine, &dyn Fn(&str) -> Vec<estimates::Range>) -> Vec<VirtualRow>;
    let tables: [(&str, Estimate); 2] = [
        ("size_estimates", estimates::of_sizes),
        ("table_estimates", estimates::of_tables),
    ];
    for (name, rows) in tables {
        let (weak, node) = (Arc::downgrade(engine), Arc::downgrade(local));
        register_computed(engine, "system", name, move || {
            let (Some(engine), Some(node)) = (weak.upgrade(), node.upgrade()) else {
                return Vec::new();
            };
            match node.peers().map(|peers| peers.view()) {
                Some(view) => rows(&engine, &|keyspace| {
                    estimates::ranges_in(&view, &node.strategy(keyspace))
                }),
                None => {
                    let ranges = estimates::ranges_of(engine.partitioner(), &node.tokens());
                    rows(&engine, &|_| ranges.clone())
                }
            }
        });
    }
    // The local node owns the engine (through its store), so the engine's table holds it weakly.
    let node = Arc::downgrade(local);
    let weak = Arc::downgrade(engine);
    register_computed(engine, "system_views", "gossip_info", move || {
        let (Some(node), Some(engine)) = (node.upgrade(), weak.upgrade()) else {
            return Vec::new();
        };
        let bytes = engine.table_facts().iter().map(|table| table.sstable_bytes).sum();
        let mut rows = vec![node.gossip(bytes)];
        if let Some(peers) = node.peers() {
            rows.extend(peers::gossip(&peers.view(), RELEASE_VERSION));
        }
        rows
    });
}

/// Registers the tables of peers, for a node of a cluster.
pub(crate) fn register_peers(engine: &Engine, peers: &Arc<Peers>) {
    let of = |rows: fn(&ilion_cluster::ClusterView, &str) -> Vec<VirtualRow>| {
        let peers = peers.clone();
        move || rows(&peers.view(), RELEASE_VERSION)
    };
    register_computed(engine, "system", "peers", of(peers::peers));
    register_computed(engine, "system", "peers_v2", of(peers::peers_with_ports));
}

/// Registers the virtual tables about roles: the cached rows, and the checks of clients against groups of addresses.
pub(crate) fn register_access(engine: &Engine, processor: &QueryProcessor) {
    let tables: [(&str, AccessRows); 6] = [
        ("cidr_filtering_metrics_counts", |access| {
            counts::cidr_counts(access.cidr_counts())
        }),
        ("cidr_filtering_metrics_latencies", |access| {
            counts::cidr_latencies(access.cidr_counts())
        }),
        ("credentials_cache_keys", |access| {
            counts::keys(access.kept().credentials.iter().map(String::as_str))
        }),
        ("network_permissions_cache_keys", |access| {
            counts::keys(access.kept().datacenters.iter().map(String::as_str))
        }),
        ("permissions_cache_keys", |access| {
            counts::permission_keys(&access.kept())
        }),
        ("roles_cache_keys", |access| {
            counts::keys(access.kept().roles.iter().map(String::as_str))
        }),
    ];
    for (name, rows) in tables {
        let table = AccessTable {
            access: Arc::downgrade(processor.access()),
            rows,
            is_clearable: name.ends_with("_cache_keys"),
        };
        engine.register_virtual_table(TableId::of_system_table("system_views", name), Arc::new(table));
    }
}

type AccessRows = fn(&AccessControl) -> Vec<VirtualRow>;

/// A table about roles. Compat: tables of cached keys accept TRUNCATE. In Ilion it clears the caches of roles, permissions and passwords,
/// whichever of these tables is truncated.
struct AccessTable {
    /// Weak, since the access control holds the engine, which owns this table.
    access: Weak<AccessControl>,
    rows: AccessRows,
    is_clearable: bool,
}

impl VirtualTable for AccessTable {
    fn rows(&self) -> Vec<VirtualRow> {
        self.access
            .upgrade()
            .map_or_else(Vec::new, |access| (self.rows)(&access))
    }

    fn clear(&self) -> bool {
        if let Some(access) = self.access.upgrade().filter(|_| self.is_clearable) {
            access.forget();
        }
        self.is_clearable
    }

    fn is_clearable(&self) -> bool {
        self.is_clearable
    }
}

/// Registers `batch_metrics`.
pub(crate) fn register_batches(engine: &Engine, sizes: &Arc<BatchSizes>) {
    let sizes = sizes.clone();
    register_computed(engine, "system_views", "batch_metrics", move || {
        counts::batches(&sizes)
    });
}

struct StatementsTable(Arc<StatementCosts>);

impl VirtualTable for StatementsTable {
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

/// Registers a virtual table whose rows a function returns.
pub fn register_computed<F>(engine: &Engine, keyspace: &str, table: &str, rows: F)
where
    F: Fn() -> Vec<VirtualRow> + Send + Sync + 'static,
{
    let id = TableId::of_system_table(keyspace, table);
    engine.register_virtual_table(id, Arc::new(Computed(rows)));
}
