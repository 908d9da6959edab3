//! Options of the audit log, from the settings. Pure.

use ilion_audit::{Category, Choice, Filter, Limits, Options, WhenFull};

use ilion_settings::{AuditLogger, Categories, Names, Settings};

/// Refuses a logger that Ilion does not have, if the log is enabled.
///
/// # Errors
/// The text says what the operator can do.
pub(crate) fn check_audit_logger(settings: &Settings) -> Result<(), String> {
    let is_wanted = settings.audit_logging_options_enabled;
    match settings.audit_logging_options_logger {
        AuditLogger::Bin if is_wanted => Err(NO_BIN_LOGGER.to_owned()),
        _ => Ok(()),
    }
}

/// Refuses to switch the log on with a logger that writes no log.
///
/// # Errors
/// The text says what the operator can do.
pub(crate) fn check_switched_on(settings: &Settings) -> Result<(), String> {
    match settings.audit_logging_options_logger {
        AuditLogger::File => Ok(()),
        AuditLogger::Bin => Err(NO_BIN_LOGGER.to_owned()),
        AuditLogger::NoOp => {
            Err("logger: NoOpAuditLogger writes no log; give --logger FileAuditLogger".to_owned())
        }
    }
}

/// Why BinAuditLogger is refused.
const NO_BIN_LOGGER: &str = "audit_logging_options: logger: BinAuditLogger is not built: it writes chronicle queues of Java; use \
                             FileAuditLogger, which writes JSON lines";

/// The options of the log.
pub(crate) fn audit_options(settings: &Settings) -> Options {
    Options {
        directory: settings.audit_path(),
        when_full: match settings.audit_logging_options_block {
            true => WhenFull::Wait,
            false => WhenFull::Drop,
        },
        queue_bytes_max: usize::try_from(settings.audit_logging_options_max_queue_weight.0)
            .unwrap_or(usize::MAX),
        limits: Limits {
            period_secs: settings.audit_logging_options_roll_cycle.period_secs,
            log_bytes_max: settings.audit_logging_options_max_log_size.0,
        },
        filter: Filter {
            keyspaces: choice(
                &settings.audit_logging_options_included_keyspaces,
                &settings.audit_logging_options_excluded_keyspaces,
            ),
            categories: choice(
                &names_of(&settings.audit_logging_options_included_categories),
                &names_of(&settings.audit_logging_options_excluded_categories),
            ),
            users: choice(
                &settings.audit_logging_options_included_users,
                &settings.audit_logging_options_excluded_users,
            ),
        },
    }
}

fn choice(included: &Names, excluded: &Names) -> Choice {
    Choice::new(included.0.clone(), excluded.0.clone())
}

fn names_of(categories: &Categories) -> Names {
    let categories = categories.0.iter().copied();
    Names(categories.map(Category::name).map(str::to_owned).collect())
}
