//! `ilion audit-log`: shows and switches the audit log of a running node.

use ilion_server::admin::AuditLogReport;

use crate::Failure;
use crate::ask::{post, report, say};
use crate::cli::{AuditLogArguments, Switch};

/// Switches the audit log, or prints its state.
pub fn run(arguments: &AuditLogArguments) -> Result<(), Failure> {
    let given = [
        ("logger", arguments.logger.as_deref()),
        ("included_keyspaces", arguments.included_keyspaces.as_deref()),
        ("excluded_keyspaces", arguments.excluded_keyspaces.as_deref()),
        ("included_categories", arguments.included_categories.as_deref()),
        ("excluded_categories", arguments.excluded_categories.as_deref()),
        ("included_users", arguments.included_users.as_deref()),
        ("excluded_users", arguments.excluded_users.as_deref()),
    ];
    let on = match arguments.switch {
        Some(Switch::On) => "true",
        // Without `on`, these options would have no effect.
        _ if given.iter().any(|(_, value)| value.is_some()) => {
            return Err(Failure::Usage(
                "logger and filters are options of audit-log on".to_owned(),
            ));
        }
        Some(Switch::Off) => "false",
        None => return report::<AuditLogReport>(&arguments.admin, "/admin/audit-log"),
    };
    let mut parts = vec![("on", Some(on))];
    parts.extend(given);
    // Compat: nodetool prints nothing.
    let done = post(&arguments.admin, "audit-log", &parts)?;
    if arguments.admin.json {
        say(&done.to_string());
    }
    Ok(())
}
