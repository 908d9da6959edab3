//! The secondary index interface.
