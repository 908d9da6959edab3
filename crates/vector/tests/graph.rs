//! Tests of the guarantees of a graph, in memory and in a file.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod data;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use data::{Random, clustered, nearest, score, uniform};
use ilion_vector::{
    Error, FileGraph, Graph, MemoryGraph, Nearest, Options, Reach, Similarity, search, write,
};
use proptest::prelude::*;

const REACH: Reach = Reach {
    breadth: 100,
    slack: 0.1,
    spread: 0.5,
};

fn options(similarity: Similarity) -> Options {
    Options {
        similarity,
        ..Options::default()
    }
}

fn memory(similarity: Similarity, vectors: &[Vec<f32>]) -> MemoryGraph {
    let graph = MemoryGraph::new(options(similarity));
    for (ordinal, vector) in (0..).zip(vectors) {
        graph.insert(ordinal, vector).unwrap();
    }
    graph
}

fn file(graph: &MemoryGraph) -> FileGraph {
    let mut bytes = Vec::new();
    write(graph, b"label", &mut bytes).unwrap();
    let file = FileGraph::open(Arc::new(bytes)).unwrap();
    file.verify().unwrap();
    assert_eq!(file.label(), b"label");
    file
}

/// All results, in order.
fn all<G: Graph>(graph: &G, query: &[f32], accept: &dyn Fn(u32) -> bool) -> Vec<(u32, f32)> {
    let mut nearest = Nearest::of(graph, query, 3, None, REACH).unwrap();
    std::iter::from_fn(|| nearest.next(accept).unwrap()).collect()
}

#[test]
fn an_empty_graph_has_nothing_near() {
    let graph = memory(Similarity::Cosine, &[]);
    assert_eq!(search(&graph, &[1.0, 2.0], 5, &|_| true, REACH).unwrap(), []);
    assert_eq!(
        search(&file(&graph), &[1.0, 2.0], 5, &|_| true, REACH).unwrap(),
        []
    );
}

#[test]
fn scores_are_those_of_the_cql_functions() {
    let vectors = clustered(3000, 24, &mut Random(1));
    let query = &vectors[77].clone();
    for similarity in Similarity::ALL {
        let graph = memory(similarity, &vectors);
        for found in [
            search(&graph, query, 20, &|_| true, REACH).unwrap(),
            search(&file(&graph), query, 20, &|_| true, REACH).unwrap(),
        ] {
            for (ordinal, given) in found {
                let expected = score(similarity, query, &vectors[ordinal as usize]);
                assert!(
                    (given - expected).abs() < 1e-5,
                    "{similarity:?} {given} {expected}"
                );
            }
        }
    }
}

#[test]
fn a_filter_leaves_the_nearest_that_pass_it() {
    let vectors = uniform(4000, 16, &mut Random(2));
    let graph = memory(Similarity::Euclidean, &vectors);
    let file = file(&graph);
    for part in [2, 50, 1000] {
        let accept = |ordinal: u32| ordinal.is_multiple_of(part);
        let mut expected = nearest(Similarity::Euclidean, &vectors, &vectors[1], vectors.len());
        expected.retain(|ordinal| accept(*ordinal));
        expected.truncate(4);
        let ordinals =
            |found: Vec<(u32, f32)>| found.into_iter().map(|(ordinal, _)| ordinal).collect::<Vec<_>>();
        assert_eq!(
            ordinals(search(&graph, &vectors[1], 4, &accept, REACH).unwrap()),
            expected
        );
        assert_eq!(
            ordinals(search(&file, &vectors[1], 4, &accept, REACH).unwrap()),
            expected
        );
    }
}

#[test]
fn a_filter_that_nothing_passes_ends_the_search() {
    let graph = memory(Similarity::Euclidean, &uniform(3000, 8, &mut Random(3)));
    assert_eq!(search(&graph, &[0.0; 8], 10, &|_| false, REACH).unwrap(), []);
    assert_eq!(
        search(&file(&graph), &[0.0; 8], 10, &|_| false, REACH).unwrap(),
        []
    );
}

#[test]
fn going_on_gives_every_ordinal_once_and_about_best_first() {
    let vectors = clustered(3000, 16, &mut Random(4));
    for similarity in Similarity::ALL {
        let graph = memory(similarity, &vectors);
        for found in [
            all(&graph, &vectors[5], &|_| true),
            all(&file(&graph), &vectors[5], &|_| true),
        ] {
            let ordinals: BTreeSet<u32> = found.iter().map(|(ordinal, _)| *ordinal).collect();
            assert_eq!((found.len(), ordinals.len()), (3000, 3000));
            let inversions = found.windows(2).filter(|pair| pair[0].1 < pair[1].1).count();
            assert!(inversions < 60, "{similarity:?}: {inversions}");
        }
    }
}

#[test]
fn equal_vectors_are_all_found() {
    let mut vectors = vec![vec![0.5; 8]; 3000];
    vectors.extend(uniform(2000, 8, &mut Random(5)));
    let graph = memory(Similarity::Cosine, &vectors);
    assert_eq!(graph.ordinal_count(), 5000);
    assert_eq!(graph.node_count(), 2001);
    let file = file(&graph);
    assert_eq!(file.ordinal_count(), 5000);
    for found in [
        search(&graph, &[1.0; 8], 3000, &|_| true, REACH).unwrap(),
        search(&file, &[1.0; 8], 3000, &|_| true, REACH).unwrap(),
    ] {
        let ordinals: BTreeSet<u32> = found.into_iter().map(|(ordinal, _)| ordinal).collect();
        assert_eq!(ordinals, (0..3000).collect());
    }
}

#[test]
fn what_was_removed_is_not_found_but_may_come_again() {
    let mut vectors = uniform(2000, 8, &mut Random(15));
    vectors[7] = vectors[3].clone();
    let graph = memory(Similarity::Euclidean, &vectors);
    for ordinal in 0..1000 {
        let removed = graph.remove(&vectors[ordinal as usize], |other| other == ordinal);
        assert_eq!(removed, 1);
    }
    assert_eq!(graph.remove(&vectors[3], |_| true), 0);
    assert_eq!(graph.remove(&[0.0; 8], |_| true), 0);
    graph.insert(5000, &vectors[3]).unwrap();
    let best = |found: Vec<(u32, f32)>| found.first().map(|(ordinal, _)| *ordinal);
    for found in [
        all(&graph, &vectors[3], &|_| true),
        all(&file(&graph), &vectors[3], &|_| true),
    ] {
        assert_eq!(found.len(), 1001);
        assert_eq!(best(found), Some(5000));
    }
}

#[test]
fn ordinals_may_be_any_numbers() {
    let graph = MemoryGraph::new(options(Similarity::Euclidean));
    for ordinal in [u32::MAX, 0, 1 << 31] {
        graph.insert(ordinal, &[ordinal as f32]).unwrap();
    }
    let found = search(&file(&graph), &[0.0], 3, &|_| true, REACH).unwrap();
    assert_eq!(
        found.iter().map(|(ordinal, _)| *ordinal).collect::<Vec<_>>(),
        [0, 1 << 31, u32::MAX]
    );
}

#[test]
fn vectors_and_queries_that_do_not_fit_are_refused() {
    let graph = memory(Similarity::Cosine, &[vec![1.0, 2.0]]);
    for wrong in [&[1.0_f32, 2.0, 3.0][..], &[0.0, 0.0], &[f32::NAN, 1.0]] {
        assert!(matches!(graph.insert(9, wrong), Err(Error::Refused(_))));
        assert!(matches!(
            search(&graph, wrong, 1, &|_| true, REACH),
            Err(Error::Refused(_))
        ));
    }
    assert_eq!(graph.ordinal_count(), 1);
}

#[test]
fn what_was_inserted_is_found_while_others_insert() {
    const THREADS: u32 = 4;
    const EACH: u32 = 400;
    let vectors = clustered((THREADS * EACH) as usize, 12, &mut Random(6));
    let graph = MemoryGraph::new(options(Similarity::Euclidean));
    let (checked, done) = (AtomicU32::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (graph, vectors, checked) = (&graph, &vectors, &checked);
            scope.spawn(move || {
                for ordinal in (0..EACH).map(|number| number * THREADS + thread) {
                    let vector = &vectors[ordinal as usize];
                    graph.insert(ordinal, vector).unwrap();
                    let found = search(graph, vector, 1, &|_| true, REACH).unwrap();
                    assert_eq!(found[0].0, ordinal);
                    checked.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        scope.spawn(|| {
            while !done.load(Ordering::Relaxed) {
                search(&graph, &vectors[0], 5, &|_| true, REACH).unwrap();
                if checked.load(Ordering::Relaxed) == THREADS * EACH {
                    done.store(true, Ordering::Relaxed);
                }
            }
        });
    });
    assert_eq!(
        all(&graph, &vectors[0], &|_| true).len(),
        (THREADS * EACH) as usize
    );
}

#[test]
fn a_graph_of_the_same_vectors_is_the_same_file() {
    let vectors = uniform(500, 8, &mut Random(11));
    let bytes = || {
        let mut bytes = Vec::new();
        write(&memory(Similarity::Cosine, &vectors), b"", &mut bytes).unwrap();
        bytes
    };
    assert!(bytes() == bytes());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]

    /// For any vectors, all results together are those of a scan.
    #[test]
    fn nothing_is_lost_and_nothing_invented(
        points in prop::collection::vec(prop::collection::vec(-2_i8..3, 3), 0..120),
        connections in 1_u16..5,
        beam in 1_u16..8,
        similarity in prop::sample::select(Similarity::ALL.to_vec()),
    ) {
        let graph = MemoryGraph::new(Options {
            similarity,
            maximum_node_connections: connections,
            construction_beam_width: beam,
            ..Options::default()
        });
        let mut inserted = BTreeSet::new();
        for (ordinal, point) in (0..).zip(&points) {
            let vector: Vec<f32> = point.iter().map(|value| f32::from(*value)).collect();
            if graph.insert(ordinal, &vector).is_ok() {
                inserted.insert(ordinal);
            }
        }
        let file = file(&graph);
        let narrow = Reach { breadth: 1, slack: 0.0, spread: 0.5, };
        for given in [given(&graph, narrow), given(&file, narrow)] {
            prop_assert_eq!(given.len(), inserted.len());
            prop_assert_eq!(given.into_iter().collect::<BTreeSet<_>>(), inserted.clone());
        }
    }
}

/// All ordinals by a walk, even of few nodes.
fn given<G: Graph>(graph: &G, reach: Reach) -> Vec<u32> {
    let mut nearest = Nearest::of(graph, &[1.0, 0.5, -1.0], 1, None, reach).unwrap();
    std::iter::from_fn(|| nearest.next(&|_| true).unwrap().map(|(ordinal, _)| ordinal)).collect()
}
