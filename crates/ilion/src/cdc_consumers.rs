//! `ilion cdc consumers`, `release`, `forget`: named consumers of changes, and the segments behind them.

use ilion_server::admin::{ConsumersReport, ReleaseReport};

use crate::Failure;
use crate::ask;
use crate::cli::{AdminArguments, CdcForgetArguments, CdcReleaseArguments};

/// Prints how far consumers are.
pub fn list(arguments: &AdminArguments) -> Result<(), Failure> {
    ask::report::<ConsumersReport>(arguments, "/admin/changes/consumers")
}

/// Removes segments that all consumers have processed.
pub fn release(arguments: &CdcReleaseArguments) -> Result<(), Failure> {
    let parts = [("before", arguments.before.as_deref())];
    let report: ReleaseReport = ask::post_report(&arguments.admin, "changes/release", &parts)?;
    ask::show(&arguments.admin, &report)
}

/// Forgets a consumer.
pub fn forget(arguments: &CdcForgetArguments) -> Result<(), Failure> {
    let parts = [("consumer", Some(arguments.consumer.as_str()))];
    ask::ask(&arguments.admin, "changes/forget", &parts, |done| {
        format!("forget: {} tables done", done["tables"])
    })
}
