//! Which settings only a server uses. A database without a server refuses them, since they would have no effect.

use crate::canonical;
use crate::table::find;

/// Names of settings that only a server uses. A name that ends with `_` stands for all settings that begin with it.
const OF_SERVER: [&str; 25] = [
    "admin_",
    "audit_logging_options_",
    "authenticator",
    "authenticator_parameters_",
    "authorizer",
    "broadcast_rpc_address",
    "cidr_authorizer",
    "cidr_authorizer_parameters_",
    "client_encryption_options_",
    "init_directory",
    "listen_address",
    "log_directory",
    "log_format",
    "log_level",
    "log_to",
    "metrics_tables_max",
    "native_transport_",
    "network_authorizer",
    "otlp_",
    "role_manager",
    "rpc_address",
    "server_encryption_options_",
    "slow_query_log_timeout",
    "storage_port",
    "trace_type_query_ttl",
];

/// True if only a server uses the setting with this name; the name may be an old one.
pub fn is_of_server(name: &str) -> bool {
    let name = canonical(name);
    let name = find(name).map_or(name, |(setting, _)| setting.name);
    // The query layer cuts pages, with or without a server.
    name != "native_transport_max_page_size" && OF_SERVER.iter().any(|entry| covers(entry, name))
}

fn covers(entry: &str, name: &str) -> bool {
    match entry.ends_with('_') {
        true => name.starts_with(entry),
        false => name == entry,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SETTINGS;

    #[test]
    fn old_names_count_and_settings_of_the_query_layer_do_not() {
        for name in [
            "slow_query_log_timeout_in_ms",
            "native_transport_port",
            "native_transport_address",
        ] {
            assert!(is_of_server(name), "{name}");
        }
        for name in ["native_transport_max_page_size", "commitlog_sync", "cluster_name"] {
            assert!(!is_of_server(name), "{name}");
        }
    }

    #[test]
    fn every_entry_is_the_name_of_a_setting() {
        for entry in OF_SERVER {
            assert!(
                SETTINGS.iter().any(|setting| covers(entry, setting.name)),
                "{entry}"
            );
        }
    }
}
