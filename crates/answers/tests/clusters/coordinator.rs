//! Three nodes in one process answer the scripts of `tests/cql` as a single node does. Clients talk to one of the nodes.

use std::path::Path;
use std::sync::Arc;

use ilion_answers::Replicas;
use ilion_coordinator::testing::{Shape, TestCluster};
use ilion_engine::{Engine, EngineOptions};
use ilion_env::RealEnv;
use ilion_node::Opening;
use ilion_query::{ClusterFacts, EngineStore, Store};
use ilion_server::{ServerNode, ServerOptions};

use crate::compare::{all_answers_are_right, settings, small_pages};

#[test]
fn three_nodes_with_one_replica_each_answer_as_one_node() {
    replay(1);
}

#[test]
fn three_nodes_with_all_data_each_answer_as_one_node() {
    replay(3);
}

/// A node without clients.
fn silent_node(directory: &Path) -> Arc<dyn Store> {
    let options = EngineOptions::below(directory);
    let engine = Arc::new(Engine::open(RealEnv::new(), options).unwrap());
    Arc::new(EngineStore::new(engine, ClusterFacts::default()))
}

/// Compares the answers of a coordinator in a cluster whose keyspaces have so many replicas.
fn replay(factor: u32) {
    let directory = tempfile::tempdir().unwrap();
    let settings = settings(&directory.path().join("1"));
    let others = [
        silent_node(&directory.path().join("2")),
        silent_node(&directory.path().join("3")),
    ];
    let shape = Shape {
        tablets: 16,
        factor,
        slices: vec![vec![0, 3, 4, 5, 9, 12], vec![1, 2, 7, 10, 15]],
        lateness: None,
    };
    let over = |_: &Arc<Engine>, engine: Arc<dyn Store>| -> Result<Arc<dyn Store>, _> {
        let stores = [engine].into_iter().chain(others).collect();
        let cluster = TestCluster::new(stores, &shape);
        Ok(Arc::new(cluster.coordinator(
            1,
            Arc::new(cluster.client()),
            small_pages(),
        )))
    };
    let node = ServerNode::open_over(RealEnv::new(), &settings, Opening::default(), over).unwrap();
    let server = node.serve(&ServerOptions::of(&settings)).unwrap();
    let address = server.address().to_string();
    all_answers_are_right(&address, Replicas::default());
}
