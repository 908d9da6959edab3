//! Keyspaces, tables, columns, user types, options; schema changes; DESCRIBE.
