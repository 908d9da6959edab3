//! Three nodes in one process answer the scripts of `tests/cql` as a single node does. Clients talk to one of the nodes.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail where the test fails"
)]

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use ilion_answers::{Difference, Script, all_scripts, check};
use ilion_coordinator::testing::{Shape, TestCluster};
use ilion_coordinator::{PageSize, ReadOptions};
use ilion_engine::{Engine, EngineOptions};
use ilion_env::RealEnv;
use ilion_index::IndexClasses;
use ilion_query::{ClusterFacts, EngineStore, Store};
use ilion_server::settings::{Loaded, Settings};
use ilion_server::{Node, ServerOptions};

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
    let facts = ClusterFacts {
        name: String::new(),
        snitch: String::new(),
        ranges: Vec::new(),
    };
    let engine = Arc::new(Engine::open(RealEnv::new(), options).unwrap());
    Arc::new(EngineStore::new(engine, facts))
}

/// Compares the answers of a coordinator in a cluster whose keyspaces have so many replicas.
fn replay(factor: u32) {
    let directory = tempfile::tempdir().unwrap();
    let mut loaded = Loaded::default();
    // The settings of a stock Cassandra, which gave these answers.
    let compaction = "SizeTieredCompactionStrategy; max_threshold=32; min_threshold=4";
    loaded.set("default_compaction", compaction, String::new).unwrap();
    let settings = Settings {
        directory: directory.path().join("1"),
        native_transport_port: 0,
        ..loaded.settings
    };
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
    // Small pages, so that many reads have several.
    let page = PageSize {
        rows: 3,
        bytes: 1 << 20,
    };
    let options = ReadOptions {
        page_first: page,
        page_max: PageSize { rows: 50, ..page },
        ..ReadOptions::default()
    };
    let over = |engine: Arc<dyn Store>| -> Arc<dyn Store> {
        let stores = [engine].into_iter().chain(others).collect();
        let cluster = TestCluster::new(stores, &shape);
        Arc::new(cluster.coordinator(1, Arc::new(cluster.client()), options))
    };
    let node = Node::open_over(RealEnv::new(), &settings, IndexClasses::own(), over).unwrap();
    let server = node.serve(&ServerOptions::of(&settings)).unwrap();
    let address = server.address().to_string();
    let (mut count, mut of_views, mut report) = (0, 0, String::new());
    for path in all_scripts().unwrap() {
        if is_about_views(&path) {
            continue;
        }
        let tally = check(&Script::read(&path).unwrap(), &address).unwrap();
        count += tally.statements;
        for one in tally.differences {
            match needs_view(&one) {
                true => of_views += 1,
                false => writeln!(report, "{}:{one}", path.display()).unwrap(),
            }
        }
    }
    assert!(report.is_empty(), "{report}");
    // Statements of other scripts that need a materialized view, which a cluster refuses.
    assert_eq!(of_views, VIEW_STATEMENTS);
    assert!(count > 3000, "{count} statements are compared");
}

/// Whether every statement of a script needs a materialized view.
fn is_about_views(path: &Path) -> bool {
    path.file_stem()
        .is_some_and(|name| name == "views" || name == "views_empty")
}

/// Whether a statement makes or names a materialized view.
fn needs_view(difference: &Difference) -> bool {
    let lines = [&difference.text].into_iter().chain(&difference.expected);
    let is_of_view = |line: &String| line.to_lowercase().contains("materialized");
    lines.into_iter().any(is_of_view)
}

const VIEW_STATEMENTS: usize = 10;
