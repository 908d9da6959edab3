//! The commit log.
