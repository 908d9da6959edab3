//! The consistency levels that a statement may be executed with.
//!
//! Compat: `ConsistencyLevel` of Cassandra 5.0. One node has all data, so every possible level is reached.

use ilion_schema::TableSchema;

use crate::{Consistency, Error, ExecuteOptions};

/// Checks the level of a SELECT.
pub(crate) fn check_read(options: &ExecuteOptions) -> Result<(), Error> {
    if options.consistency == Consistency::ANY {
        return Err(Error::invalid(
            "ANY ConsistencyLevel is only supported for writes",
        ));
    }
    Ok(())
}

/// Checks the level of an unconditional write.
pub(crate) fn check_write(options: &ExecuteOptions) -> Result<(), Error> {
    if options.consistency.is_serial() {
        return Err(Error::invalid(
            "You must use conditional updates for serializable writes",
        ));
    }
    Ok(())
}

/// Checks the level of a counter update.
pub(crate) fn check_counter(options: &ExecuteOptions, table: &TableSchema) -> Result<(), Error> {
    if options.consistency == Consistency::ANY {
        return Err(Error::invalid(format!(
            "Consistency level ANY is not yet supported for counter table {}",
            table.name
        )));
    }
    if options.consistency.is_serial() {
        return Err(Error::invalid(
            "Counter operations are inherently non-serializable",
        ));
    }
    Ok(())
}

/// Checks the levels of a conditional write.
pub(crate) fn check_condition(options: &ExecuteOptions) -> Result<(), Error> {
    if options.serial_consistency.is_some_and(|level| !level.is_serial()) {
        return Err(Error::invalid(
            "Invalid consistency for conditional update. Must be one of SERIAL or LOCAL_SERIAL",
        ));
    }
    if options.consistency.is_serial() {
        return Err(Error::invalid(format!(
            "{} is not supported as conditional update commit consistency. Use ANY if you mean \"make sure it is \
             accepted but I don't care how many replicas commit it for non-SERIAL reads\"",
            options.consistency
        )));
    }
    Ok(())
}
