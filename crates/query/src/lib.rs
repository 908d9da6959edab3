//! CQL execution.
