//! The settings of a database without a server.

use std::path::PathBuf;
use std::time::Duration;

use ilion_settings::{Loaded, Settings};

/// Prefixes of the names of settings that only a server uses.
const FOR_SERVERS: [&str; 20] = [
    "admin_",
    "audit_logging_options_",
    "authenticator",
    "authorizer",
    "broadcast_rpc_address",
    "cidr_authorizer",
    "client_encryption_options_",
    "init_directory",
    "listen_address",
    "log_directory",
    "log_format",
    "log_level",
    "log_to",
    "native_transport_",
    "network_authorizer",
    "otlp_",
    "role_manager",
    "rpc_address",
    "server_encryption_options_",
    "storage_port",
];

/// The settings of a program that embeds the database: SELECTs have no timeout.
pub(crate) fn embedded_settings(directory: PathBuf) -> Settings {
    Settings {
        directory,
        read_request_timeout: Duration::ZERO,
        range_request_timeout: Duration::ZERO,
        ..Settings::default()
    }
}

/// The settings of [`embedded_settings`], changed by name.
///
/// # Errors
/// A name is unknown, a value cannot be used, or the setting has no effect without a server.
pub(crate) fn named_settings<'a>(
    directory: PathBuf,
    named: impl IntoIterator<Item = (&'a str, &'a str)>,
) -> Result<Settings, String> {
    let mut loaded = Loaded {
        settings: embedded_settings(directory.clone()),
        warnings: Vec::new(),
    };
    for (name, value) in named {
        if FOR_SERVERS.iter().any(|start| name.starts_with(start)) {
            return Err(format!(
                "setting {name}: it is for a server, and there is none in this process"
            ));
        }
        loaded
            .set(name, value, || format!("setting {name}"))
            .map_err(|error| error.to_string())?;
        if let Some(passed_over) = loaded.warnings.pop() {
            return Err(passed_over);
        }
    }
    if loaded.settings.directory != directory {
        return Err("setting directory: it is named already".to_owned());
    }
    Ok(loaded.settings)
}
