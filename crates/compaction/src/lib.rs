//! Compaction strategies and tasks.
