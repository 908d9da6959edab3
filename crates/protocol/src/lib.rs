//! The native protocol v3, v4, v5, both directions.
