//! Tests how many of the nearest vectors a search finds: among random vectors, the hardest case, and among clustered ones.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod data;

use std::sync::Arc;

use data::{Random, clustered, nearest, uniform};
use ilion_vector::{FileGraph, Graph, MemoryGraph, OptimizeFor, Options, Reach, Similarity, search, write};

const LIMIT: usize = 10;
const VECTORS: usize = 5000;
const QUERIES: usize = 40;

fn recall<G: Graph>(graph: &G, reach: Reach, queries: &[Vec<f32>], expected: &[Vec<u32>]) -> f64 {
    let mut hits = 0;
    for (query, expected) in queries.iter().zip(expected) {
        let found = search(graph, query, LIMIT, &|_| true, reach).unwrap();
        assert_eq!(found.len(), LIMIT);
        assert!(found.is_sorted_by(|a, b| a.1 >= b.1));
        hits += found
            .iter()
            .filter(|(ordinal, _)| expected.contains(ordinal))
            .count();
    }
    hits as f64 / (queries.len() * LIMIT) as f64
}

fn check(options: Options, mut vectors: Vec<Vec<f32>>, at_least: f64) {
    let queries = vectors.split_off(VECTORS);
    let expected: Vec<Vec<u32>> = queries
        .iter()
        .map(|query| nearest(options.similarity, &vectors, query, LIMIT))
        .collect();
    let graph = MemoryGraph::new(options);
    for (ordinal, vector) in (0..).zip(&vectors) {
        graph.insert(ordinal, vector).unwrap();
    }
    let mut bytes = Vec::new();
    write(&graph, b"", &mut bytes).unwrap();
    let file = FileGraph::open(Arc::new(bytes)).unwrap();
    let reach = Reach::of(&options);
    let in_memory = recall(&graph, reach, &queries, &expected);
    let in_file = recall(&file, reach, &queries, &expected);
    assert!(in_memory >= at_least, "{options:?}: {in_memory} in memory");
    assert!(in_file >= at_least, "{options:?}: {in_file} in a file");
}

#[test]
fn of_clustered_vectors_nearly_all_are_found() {
    for similarity in Similarity::ALL {
        let options = Options {
            similarity,
            ..Options::default()
        };
        check(options, clustered(VECTORS + QUERIES, 32, &mut Random(7)), 0.97);
    }
}

#[test]
fn of_random_vectors_95_in_100_are_found() {
    for similarity in Similarity::ALL {
        let options = Options {
            similarity,
            ..Options::default()
        };
        check(options, uniform(VECTORS + QUERIES, 32, &mut Random(8)), 0.95);
    }
}

#[test]
fn vectors_of_very_different_lengths_are_found_by_their_products() {
    let options = Options {
        similarity: Similarity::DotProduct,
        ..Options::default()
    };
    let mut random = Random(9);
    let mut vectors = uniform(VECTORS + QUERIES, 32, &mut random);
    for vector in &mut vectors[..VECTORS] {
        let length = 1.0 + random.unit() * 10.0;
        vector.iter_mut().for_each(|value| *value *= length);
    }
    check(options, vectors, 0.95);
}

#[test]
fn an_index_for_recall_finds_more() {
    let options = Options {
        optimize_for: OptimizeFor::Recall,
        ..Options::default()
    };
    check(options, uniform(VECTORS + QUERIES, 32, &mut Random(10)), 0.99);
}

#[test]
fn a_graph_made_of_another_finds_as_much() {
    let options = Options::default();
    let mut vectors = clustered(VECTORS + QUERIES, 32, &mut Random(11));
    let queries = vectors.split_off(VECTORS);
    let graph = MemoryGraph::new(options);
    for (ordinal, vector) in (0..).zip(&vectors) {
        graph.insert(ordinal, vector).unwrap();
    }
    for part in [1, 2, 10] {
        let kept: Vec<Vec<f32>> = vectors.iter().step_by(part as usize).cloned().collect();
        let ordinals = |node: u32| {
            if node.is_multiple_of(part) {
                vec![node / part]
            } else {
                Vec::new()
            }
        };
        let adopted = MemoryGraph::adopt(&graph, ordinals);
        assert_eq!(
            (adopted.ordinal_count(), adopted.node_of(&kept[1])),
            (kept.len(), Some(1))
        );
        let expected: Vec<Vec<u32>> = queries
            .iter()
            .map(|query| nearest(options.similarity, &kept, query, LIMIT))
            .collect();
        // Narrow, so that it walks.
        let reach = Reach {
            breadth: 20,
            slack: 0.11,
            spread: 0.5,
        };
        let found = recall(&adopted, reach, &queries, &expected);
        assert!(found >= 0.95, "one in {part}: {found}");
    }
}
