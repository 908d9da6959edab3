//! CQL types and values; partitioners and tokens.
