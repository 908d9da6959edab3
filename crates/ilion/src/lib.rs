//! Ilion: a Cassandra-compatible column-family store.
