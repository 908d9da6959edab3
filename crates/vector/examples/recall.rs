//! Measures how many of the ten nearest vectors a search finds, and the cost of builds and searches.
//!
//! ```text
//! cargo run --release -p ilion-vector --example recall -- [VECTORS] [DIMENSIONS] [QUERIES] [THREADS]
//! ```
//!
//! Uses random vectors, spread evenly or in clusters, with each similarity; for dot products, also vectors of very different
//! lengths. The environment variables `BREADTH`, `SPREAD` and `SLACK` (one value or several: `0.05,0.1`) override the extent of
//! searches; `ONLY` (such as `uniform/COSINE`) selects one case.

use std::error::Error;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use ilion_vector::{FileGraph, Graph, MemoryGraph, Nearest, Options, Reach, Similarity, search, write};

const LIMIT: usize = 10;

/// Xorshift64*: the same data every time.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// Between -1 and 1.
    fn uniform(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
    }

    fn vector(&mut self, dimensions: usize) -> Vec<f32> {
        (0..dimensions).map(|_| self.uniform()).collect()
    }
}

/// Vectors and queries of one kind.
fn data(kind: &str, count: usize, dimensions: usize, random: &mut Random) -> Vec<Vec<f32>> {
    if kind == "uniform" {
        return (0..count).map(|_| random.vector(dimensions)).collect();
    }
    if kind == "lengths" {
        let long = |random: &mut Random| {
            let length = 6.0 + random.uniform() * 5.0;
            random
                .vector(dimensions)
                .into_iter()
                .map(|value| value * length)
                .collect()
        };
        return (0..count).map(|_| long(random)).collect();
    }
    let centres: Vec<Vec<f32>> = (0..count / 200 + 1).map(|_| random.vector(dimensions)).collect();
    let near = |random: &mut Random| {
        let centre = &centres[random.next() as usize % centres.len()];
        centre
            .iter()
            .map(|value| value + random.uniform() * 0.3)
            .collect()
    };
    (0..count).map(|_| near(random)).collect()
}

fn score(similarity: Similarity, a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    match similarity {
        Similarity::Cosine => (1.0 + dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()) / 2.0,
        Similarity::DotProduct => (1.0 + dot(a, b)) / 2.0,
        Similarity::Euclidean => 1.0 / (1.0 + a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f32>()),
    }
}

fn nearest(similarity: Similarity, vectors: &[Vec<f32>], query: &[f32]) -> Vec<u32> {
    let mut scored: Vec<(f32, u32)> = (0..)
        .zip(vectors)
        .map(|(ordinal, vector)| (score(similarity, vector, query), ordinal))
        .collect();
    scored.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    scored.truncate(LIMIT);
    scored.into_iter().map(|(_, ordinal)| ordinal).collect()
}

fn build(options: Options, vectors: &[Vec<f32>], threads: usize) -> MemoryGraph {
    let graph = MemoryGraph::new(options);
    let next = AtomicU32::new(0);
    let work = || {
        loop {
            let ordinal = next.fetch_add(1, Relaxed);
            let Some(vector) = vectors.get(ordinal as usize) else {
                return;
            };
            if let Err(error) = graph.insert(ordinal, vector) {
                eprintln!("{error}");
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(work);
        }
        work();
    });
    graph
}

fn measure<G: Graph>(
    what: &str,
    graph: &G,
    queries: &[Vec<f32>],
    expected: &[Vec<u32>],
    reach: Reach,
) -> Result<(), Box<dyn Error>> {
    let (mut hits, mut measured) = (0, 0);
    let started = busy();
    for query in queries {
        search(graph, query, LIMIT, &|_| true, reach)?;
    }
    let micros = (busy() - started).as_micros() as usize / queries.len();
    for (query, expected) in queries.iter().zip(expected) {
        let mut nearest = Nearest::of(graph, query, LIMIT, None, reach)?;
        for _ in 0..LIMIT {
            let found = nearest.next(&|_| true)?;
            hits += usize::from(found.is_some_and(|(ordinal, _)| expected.contains(&ordinal)));
        }
        measured += nearest.measured();
    }
    let recall = hits as f64 / (queries.len() * LIMIT) as f64;
    println!(
        "  {what:6} recall {recall:.3}  {micros} us of CPU a search  {} vectors measured",
        measured / queries.len()
    );
    Ok(())
}

/// CPU time of this thread; wall time where that is not available.
fn busy() -> Duration {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let nanos = told.and_then(|text| text.split(' ').next()?.parse().ok());
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    nanos.map_or_else(|| START.elapsed(), Duration::from_nanos)
}

fn number(name: &str) -> Option<f32> {
    std::env::var(name).ok()?.parse().ok()
}

/// The extents of searches: from the options, or from the environment.
fn reaches(options: &Options) -> Vec<Reach> {
    let default = Reach::of(options);
    let breadth = number("BREADTH").map_or(default.breadth, |breadth| breadth as usize);
    let list = |name: &str, default: f32| {
        let text = std::env::var(name).unwrap_or_default();
        let given: Vec<f32> = text.split(',').filter_map(|number| number.parse().ok()).collect();
        if given.is_empty() { vec![default] } else { given }
    };
    let mut reaches = Vec::new();
    for slack in list("SLACK", default.slack) {
        for spread in list("SPREAD", default.spread) {
            reaches.push(Reach {
                breadth,
                slack,
                spread,
            });
        }
    }
    reaches
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<usize> = std::env::args()
        .skip(1)
        .map(|text| text.parse())
        .collect::<Result<_, _>>()?;
    let argument = |at: usize, default: usize| arguments.get(at).copied().unwrap_or(default);
    let (count, dimensions) = (argument(0, 100_000), argument(1, 128));
    let (query_count, threads) = (argument(2, 200), argument(3, 1));
    for kind in ["uniform", "clustered", "lengths"] {
        for similarity in Similarity::ALL {
            let name = format!("{kind}/{}", similarity.name());
            if kind == "lengths" && similarity != Similarity::DotProduct {
                continue;
            }
            if std::env::var("ONLY").is_ok_and(|only| !name.starts_with(&only)) {
                continue;
            }
            let options = Options {
                similarity,
                maximum_node_connections: number("CONNECTIONS").unwrap_or(16.0) as u16,
                construction_beam_width: number("BEAM").unwrap_or(100.0) as u16,
                ..Options::default()
            };
            let mut random = Random(0x5DEE_CE66_D1CE_B00C);
            let mut vectors = data(kind, count + query_count, dimensions, &mut random);
            let queries = vectors.split_off(count);
            let expected: Vec<Vec<u32>> = queries
                .iter()
                .map(|query| nearest(similarity, &vectors, query))
                .collect();
            let started = busy();
            let graph = build(options, &vectors, threads);
            let built = (busy() - started).as_millis();
            let mut bytes = Vec::new();
            let started = busy();
            write(&graph, b"", &mut bytes)?;
            println!(
                "{name}: {count} x {dimensions}, built in {built} ms by each of {threads} threads, written in {} ms, {} bytes",
                (busy() - started).as_millis(),
                bytes.len()
            );
            let file = FileGraph::open(Arc::new(bytes))?;
            for reach in reaches(&options) {
                println!("  {reach:?}");
                measure("memory", &graph, &queries, &expected, reach)?;
                measure("file", &file, &queries, &expected, reach)?;
            }
        }
    }
    Ok(())
}
