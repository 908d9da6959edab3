//! System tables about clients, the log and traces. Those about the engine and the settings are in the crate `node`.
//!
//! | module | what |
//! | --- | --- |
//! | `clients` | clients, prepared statements, thread pools and queries, as tables of `system_views` |
//! | `logs` | `system_views.system_logs` |
//! | `traces` | `system_traces`, stored |
//! | `traffic` | `system_views.internode_inbound` and `internode_outbound`, computed when read |

mod clients;
mod logs;
mod traces;
mod traffic;

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};

use ilion_cluster::{ClusterView, Node, Traffic};
use ilion_engine::{Engine, VirtualRow};
use ilion_node::{Peers, register_computed};
use ilion_query::QueryProcessor;
use ilion_schema::TableId;

use crate::clients::Clients;
use crate::cluster_probe::ClusterProbe;
use logs::LogsTable;

pub(crate) use traces::StoredTraces;

/// Registers `system_logs`, of the log of this process.
pub(crate) fn register_logs(engine: &Engine) {
    let id = TableId::of_system_table("system_views", "system_logs");
    engine.register_virtual_table(id, Arc::new(LogsTable));
}

/// Registers the tables of the connections to other nodes, for a node of a cluster.
pub(crate) fn register_traffic(engine: &Engine, peers: &Arc<Peers>, probe: Weak<dyn ClusterProbe>) {
    type Rows = fn(&ClusterView, &BTreeMap<Node, Traffic>) -> Vec<VirtualRow>;
    let tables: [(&str, Rows); 2] = [
        ("internode_inbound", traffic::inbound),
        ("internode_outbound", traffic::outbound),
    ];
    for (name, rows) in tables {
        let (peers, probe) = (peers.clone(), probe.clone());
        register_computed(engine, "system_views", name, move || {
            let traffic = probe.upgrade().map(|probe| probe.traffic());
            rows(&peers.view(), &traffic.unwrap_or_default())
        });
    }
}

/// Registers the virtual tables about clients and thread pools.
pub(crate) fn register_clients(engine: &Arc<Engine>, processor: &Arc<QueryProcessor>, clients: &Clients) {
    let connected = clients.clone();
    register_computed(engine, "system_views", "clients", move || {
        clients::clients(&connected.list())
    });
    let (pools, weak) = (clients.clone(), Arc::downgrade(engine));
    register_computed(engine, "system_views", "thread_pools", move || {
        let mut all = pools.pools().to_vec();
        if let Some(engine) = weak.upgrade() {
            let pending = engine
                .table_facts()
                .iter()
                .map(|table| table.pending_compactions)
                .sum();
            all.extend(clients::engine_pools(&engine.facts(), pending));
        }
        clients::thread_pools(&all)
    });
    let (running, clock) = (clients.clone(), engine.env().clone());
    register_computed(engine, "system_views", "queries", move || {
        clients::queries(running.running(), clock.monotonic_nanos())
    });
    let (counted, processor) = (clients.clone(), Arc::downgrade(processor));
    register_computed(engine, "system_views", "cql_metrics", move || {
        let (regular, prepared) = counted.statement_counts();
        let known = processor.upgrade().map(|processor| processor.prepared_counts());
        clients::cql(regular, prepared, known.unwrap_or_default())
    });
}
