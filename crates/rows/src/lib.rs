//! The data model and its laws.
