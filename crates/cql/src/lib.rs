//! CQL text to syntax tree and back.
