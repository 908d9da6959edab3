//! What to do when schema or roles have changed before the turn of a statement came: plan it again.

use crate::Error;

/// How often a statement is executed at most if each time a schema change overtakes it in the log.
const OVERTAKEN_MAX: u32 = 5;

/// Executes a statement again, planned anew, if the schema changed before the statement's turn in the log.
///
/// # Errors
/// Those of the statement; [`Error::Overloaded`] if other changes always came first.
pub(crate) fn again_if_overtaken<T>(mut execute: impl FnMut() -> Result<T, Error>) -> Result<T, Error> {
    for _ in 1..OVERTAKEN_MAX {
        match execute() {
            Err(Error::Overtaken) => {}
            executed => return executed,
        }
    }
    execute().map_err(|error| match error {
        Error::Overtaken => Error::Overloaded(error.to_string()),
        other => other,
    })
}
