//! Who is asked, how often, and who refuses.

use std::sync::Arc;

use ilion_coordinator::testing::Shape;
use ilion_coordinator::{NamedFilter, PageSize, Read, ReadCommand, ReadOptions, ReplicaError, Topology};
use ilion_query::{Consistency, Error};
use ilion_rows::random::Dice;
use ilion_rows::{ClusteringFilter, DecoratedKey, KeyRange};
use ilion_types::Partitioner;
use parking_lot::Mutex;

use crate::client::{Asked, Change, Surprised, Watching};
use crate::world::{How, World, run};

/// Three nodes, and what node 1 asks of the others.
pub struct Watched {
    pub world: World,
    pub asked: Asked,
}

/// A table of 60 partitions with 10 rows each.
pub fn watched(factor: u32, options: ReadOptions) -> Watched {
    let asked = Asked::default();
    let shape = Shape::random(&mut Dice::new(9), 3, factor);
    let world = World::with_client(&shape, options, |client| {
        let asked = asked.clone();
        Arc::new(Watching { asked, client })
    });
    world.write(
        0,
        "CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c))",
        &How::default(),
    );
    for key in 0..60 {
        for row in 0..10 {
            let text = format!("INSERT INTO ks.t (k, c, v) VALUES ({key}, {row}, {})", key % 7);
            world.write(0, &text, &How::default());
        }
    }
    asked.take();
    Watched { world, asked }
}

impl Watched {
    /// Number of rows that a coordinator answers.
    pub fn rows(&self, at: usize, text: &str) -> u32 {
        let answered = run(&self.world.coordinators[at], text, &How::default()).unwrap();
        assert_eq!(
            Ok(&answered),
            run(&self.world.single, text, &How::default()).as_ref(),
            "{text}"
        );
        answered.rows()
    }

    pub fn replicas(&self, key: i32) -> Vec<u32> {
        let topology = self.world.cluster.topology();
        let key = partition(key);
        let tablet = topology.tablets().of(key.token.murmur3().unwrap());
        topology.replicas("ks", tablet).unwrap().to_vec()
    }
}

fn partition(key: i32) -> DecoratedKey {
    DecoratedKey::new(Partitioner::Murmur3, key.to_be_bytes().to_vec().into())
}

#[test]
fn a_read_by_key_asks_nobody_at_a_replica_and_one_node_elsewhere() {
    let watched = watched(2, ReadOptions::default());
    for key in 0..60 {
        for at in 0..3 {
            let text = format!("SELECT * FROM ks.t WHERE k = {key}");
            assert_eq!(watched.rows(at, &text), 10);
            let replicas = watched.replicas(key);
            let nodes: Vec<u32> = watched.asked.take().iter().map(|(node, _)| *node).collect();
            match replicas.contains(&(at as u32 + 1)) {
                true => assert!(nodes.is_empty(), "node {} asked {nodes:?}", at + 1),
                false => assert!(
                    nodes.len() == 1 && replicas.contains(&nodes[0]),
                    "{nodes:?} {replicas:?}"
                ),
            }
        }
    }
}

#[test]
fn a_range_read_asks_each_range_once_and_no_more_ranges_than_its_limit_needs() {
    let watched = watched(1, ReadOptions::default());
    assert_eq!(watched.rows(0, "SELECT * FROM ks.t LIMIT 1"), 1);
    assert!(
        watched.asked.take().len() <= 2,
        "one row lies in the first range, or in the second"
    );
    assert_eq!(watched.rows(0, "SELECT * FROM ks.t"), 600);
    let mut ranges: Vec<KeyRange> = Vec::new();
    for (_, command) in watched.asked.take() {
        let Read::Range { range, resume, .. } = command.read else {
            panic!("{command:?}");
        };
        if resume.is_none() {
            ranges.push(range);
        }
    }
    let holds = |range: &&KeyRange, key: &DecoratedKey| range.contains(key);
    for key in (0..60).map(partition) {
        let count = ranges.iter().filter(|range| holds(range, &key)).count();
        let is_here = watched.replicas(i32::from_be_bytes(key.key[..].try_into().unwrap())) == [1];
        assert_eq!(count, usize::from(!is_here), "asked for {key:?}");
    }
}

#[test]
fn pages_go_on_in_the_middle_of_a_wide_partition() {
    let page = PageSize {
        rows: 3,
        bytes: 1 << 20,
    };
    let options = ReadOptions {
        page_first: page,
        page_max: page,
        ..ReadOptions::default()
    };
    let watched = watched(1, options);
    let key = (0..60).find(|key| watched.replicas(*key) == [2]).unwrap();
    for order in ["ASC", "DESC"] {
        watched.asked.take();
        let text = format!("SELECT * FROM ks.t WHERE k = {key} ORDER BY c {order}");
        assert_eq!(watched.rows(0, &text), 10);
        // The head of a page counts as a row.
        assert_eq!(
            watched.asked.take().len(),
            6,
            "ten rows, two on a page, and an empty page"
        );
        let text = format!("{text} LIMIT 2");
        assert_eq!(watched.rows(0, &text), 2);
        assert_eq!(
            watched.asked.take().len(),
            1,
            "no page is asked for ahead of the first"
        );
    }
    watched.rows(0, "SELECT DISTINCT k FROM ks.t");
    let pages = watched.asked.take().len();
    assert!(
        pages < 100,
        "{pages} pages: the rest of a partition that is skipped is not asked for"
    );
}

#[test]
fn an_index_search_asks_each_range_of_one_replica_only() {
    for index in [
        "CREATE INDEX i ON ks.t (v)",
        "CREATE INDEX i ON ks.t (v) USING 'sai'",
    ] {
        let watched = watched(2, ReadOptions::default());
        watched.world.write(0, index, &How::default());
        watched.world.wait_built();
        watched.asked.take();
        assert_eq!(watched.rows(0, "SELECT * FROM ks.t WHERE v = 3"), 90);
        let searched: Vec<KeyRange> = watched.asked.take().into_iter().filter_map(searched).collect();
        assert!(!searched.is_empty());
        for key in (0..60).map(partition) {
            let count = searched.iter().filter(|range| range.contains(&key)).count();
            assert!(count <= 1, "{key:?} was searched {count} times");
        }
        // A search inside of a partition asks no other range.
        for key in 0..60 {
            watched.rows(0, &format!("SELECT * FROM ks.t WHERE k = {key} AND v = 3"));
            let asked: Vec<_> = watched
                .asked
                .take()
                .into_iter()
                .filter_map(searched_range)
                .collect();
            assert!(asked.len() <= 1, "{asked:?}");
        }
    }
}

fn searched((_, command): (u32, ReadCommand)) -> Option<KeyRange> {
    match command.read {
        Read::Search {
            range, from: None, ..
        } => Some(range),
        _ => None,
    }
}

fn searched_range((_, command): (u32, ReadCommand)) -> Option<KeyRange> {
    match command.read {
        Read::Search { range, .. } => Some(range),
        _ => None,
    }
}

#[test]
fn the_nearest_vectors_of_all_nodes_are_merged() {
    let watched = watched(1, ReadOptions::default());
    let world = &watched.world;
    world.write(
        0,
        "CREATE TABLE ks.v (k int PRIMARY KEY, e vector<float, 2>)",
        &How::default(),
    );
    world.write(0, "CREATE INDEX e ON ks.v (e) USING 'sai'", &How::default());
    world.wait_built();
    for key in 0..150 {
        let text = format!(
            "INSERT INTO ks.v (k, e) VALUES ({key}, [{}, {}])",
            key % 13,
            key % 17 + 1
        );
        world.write(0, &text, &How::default());
    }
    watched.asked.take();
    for at in 0..3 {
        let text = "SELECT k, similarity_cosine(e, [3, 4]) FROM ks.v ORDER BY e ANN OF [3, 4] LIMIT 20";
        assert_eq!(watched.rows(at, text), 20);
        let kinds = watched.asked.take();
        let nearest = kinds
            .iter()
            .filter(|(_, command)| matches!(command.read, Read::Nearest { .. }));
        assert_eq!(nearest.count(), 2, "each other node ranks its own");
    }
}

#[test]
fn a_node_that_is_down_or_not_ready_is_not_asked() {
    let watched = watched(3, ReadOptions::default());
    watched.world.cluster.set_ready(1, false);
    watched.world.cluster.set_alive(2, false);
    assert_eq!(watched.rows(0, "SELECT * FROM ks.t"), 600);
    assert_eq!(watched.rows(0, "SELECT * FROM ks.t WHERE k = 5"), 10);
    let nodes = watched.asked.nodes();
    assert!(
        !nodes.is_empty() && nodes.iter().all(|node| *node == 3),
        "{nodes:?}"
    );
}

#[test]
fn without_a_replica_a_read_is_unavailable_with_the_numbers_of_its_level() {
    let watched = watched(3, ReadOptions::default());
    watched.world.cluster.set_ready(1, false);
    watched.world.cluster.set_alive(2, false);
    watched.world.cluster.set_alive(3, false);
    for text in [
        "SELECT * FROM ks.t WHERE k = 5",
        "SELECT * FROM ks.t",
        "SELECT count(*) FROM ks.t",
    ] {
        for (level, required) in [
            (Consistency::ONE, 1),
            (Consistency::QUORUM, 2),
            (Consistency::ALL, 3),
        ] {
            let how = How {
                level,
                ..How::default()
            };
            let unavailable = Error::Unavailable {
                consistency: level,
                required,
                alive: 0,
            };
            assert_eq!(
                run(&watched.world.coordinators[0], text, &how),
                Err(unavailable),
                "{text}"
            );
        }
    }
}

#[test]
fn a_replica_refuses_what_it_must_not_answer() {
    let watched = watched(1, ReadOptions::default());
    let cluster = &watched.world.cluster;
    let schema = watched.world.engines[1].schema();
    let table = schema.table("ks", "t").unwrap();
    let topology = cluster.topology();
    let key = (0..60).find(|key| watched.replicas(*key) == [2]).unwrap();
    let command = |key| ReadCommand {
        table: table.id,
        schema_epoch: topology.schema_epoch(),
        ring_version: topology.ring_version(),
        time_left_micros: 1_000_000,
        applied: Vec::new(),
        rows_per_partition: None,
        page: ReadOptions::default().page_first,
        read: Read::Partition {
            key: partition(key),
            filter: NamedFilter::of(&ClusteringFilter::all(), table),
            resume: None,
        },
    };
    let refusal = |command: &ReadCommand| match cluster.replica(2).unwrap().serve(command) {
        Ok(_) => String::new(),
        Err(ReplicaError::Refused(reason)) => reason,
        Err(other) => panic!("{other}"),
    };
    assert_eq!(refusal(&command(key)), "");
    let newer_ring = ReadCommand {
        ring_version: topology.ring_version() + 1,
        ..command(key)
    };
    assert_eq!(refusal(&newer_ring), "it knows an older ring only");
    let newer_schema = ReadCommand {
        schema_epoch: topology.schema_epoch() + 1,
        ..command(key)
    };
    assert_eq!(refusal(&newer_schema), "it knows an older schema only");
    let other = (0..60).find(|key| watched.replicas(*key) == [3]).unwrap();
    assert_eq!(refusal(&command(other)), "it is no replica of the tablet");
    let unknown = ReadCommand {
        table: ilion_schema::TableId(uuid::Uuid::from_u128(1)),
        ..command(key)
    };
    assert_eq!(refusal(&unknown), "the table does not exist here");
    cluster.set_ready(2, false);
    assert_eq!(refusal(&command(key)), "its copy of the tablet is not ready");
    cluster.set_ready(2, true);
    // A replica that has dropped the tablet refuses a coordinator that knows an older ring.
    let tablet = topology.tablets().of(partition(key).token.murmur3().unwrap());
    cluster.move_slices(vec![(tablet, 3)]);
    assert_eq!(refusal(&command(key)), "it is no replica of the tablet");
}

#[test]
fn materialized_views_are_refused_by_name() {
    let watched = watched(3, ReadOptions::default());
    let text = "CREATE MATERIALIZED VIEW ks.w AS SELECT * FROM ks.t WHERE k IS NOT NULL AND c IS NOT NULL \
                AND v IS NOT NULL PRIMARY KEY (v, k, c)";
    let refused = run(&watched.world.coordinators[0], text, &How::default()).unwrap_err();
    let reason = "Materialized views are not supported in a cluster yet".to_owned();
    assert_eq!(refused, Error::Invalid(reason));
}

#[test]
fn a_replica_that_refuses_since_the_ring_changed_is_asked_again() {
    let change = Arc::new(Mutex::new(None));
    let shape = Shape::random(&mut Dice::new(9), 3, 1);
    let world = World::with_client(&shape, ReadOptions::default(), |client| {
        let change = change.clone();
        Arc::new(Surprised { change, client })
    });
    world.write(0, "CREATE TABLE ks.t (k int PRIMARY KEY)", &How::default());
    for key in 0..4 {
        world.write(
            0,
            &format!("INSERT INTO ks.t (k) VALUES ({key})"),
            &How::default(),
        );
    }
    // A tablet without data changes its owner.
    let topology = world.cluster.topology();
    let of_key = |key| topology.tablets().of(partition(key).token.murmur3().unwrap());
    let with_data: Vec<u32> = (0..4).map(of_key).collect();
    let is_empty = |tablet: &u32| !with_data.contains(tablet);
    let moved = (0..topology.tablets().count())
        .filter(is_empty)
        .find(|tablet| owner(&topology, *tablet) == 2)
        .unwrap();
    for (text, to) in [("SELECT * FROM ks.t", 3), ("SELECT count(*) FROM ks.t", 2)] {
        let cluster = world.cluster.clone();
        let moves = move || cluster.move_slices(vec![(moved, to)]);
        *change.lock() = Some(Box::new(moves) as Change);
        let expected = run(&world.single, text, &How::default());
        let answered = run(&world.coordinators[0], text, &How::default());
        assert_eq!(answered, expected, "{text}");
        assert!(change.lock().is_none(), "the ring changed");
        assert_eq!(owner(&world.cluster.topology(), moved), to);
    }
}

fn owner(topology: &Topology, tablet: u32) -> u32 {
    topology.replicas("ks", tablet).unwrap()[0]
}
