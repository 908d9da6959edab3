//! Cassandra SSTable files, read and write.
