//! Offline tools and the benchmark.
