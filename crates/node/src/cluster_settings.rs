//! Settings that a cluster does not allow, and those that a single node does not. Pure.

use ilion_settings::{InternodeEncryption, LogPlace, Settings};
use ilion_types::Partitioner;

/// Refuses settings that a node of a cluster does not support yet. Call it only if the setting `log` is not local.
///
/// # Errors
/// The operator must change the setting that the text names.
pub fn refused_in_a_cluster(settings: &Settings) -> Result<(), String> {
    let refusals = [
        (
            settings.partitioner != Partitioner::Murmur3,
            "partitioner: org.apache.cassandra.dht.Murmur3Partitioner",
            "the ring of a cluster is cut into slices of its tokens",
        ),
        (
            settings.commitlog_archive_directory.is_some(),
            "commitlog_archive_directory: auto",
            "it archives a local commit log",
        ),
        (
            settings.initial_token.is_some(),
            "initial_token: auto",
            "a new node takes slices of the ring: num_tokens of them",
        ),
        (
            settings.native_transport_port == 0 || settings.storage_port == 0,
            "native_transport_port and storage_port",
            "nodes tell each other and their clients their ports",
        ),
        (
            settings.init_directory.is_some(),
            "init_directory: auto",
            "each node would execute the statements; execute them once, by a client",
        ),
    ];
    match refusals.into_iter().find(|(is_refused, ..)| *is_refused) {
        None => Ok(()),
        Some((_, needed, reason)) => Err(format!("log: {LOG} needs {needed}: {reason}")),
    }
}

/// How messages name a log that is not local.
const LOG: &str = "kafka://...";

/// Refuses settings of the log that contradict each other, for a single node and for a cluster.
///
/// # Errors
/// The operator must change the settings that the text names.
pub(crate) fn check_log_options(settings: &Settings) -> Result<(), String> {
    if settings.log_options_sasl_username.is_some() != settings.log_options_sasl_password_file.is_some() {
        return Err("log_options: sasl_username and sasl_password_file need each other".to_owned());
    }
    if settings.down_max.is_zero() {
        return Err("down_max: expected a duration above 0s".to_owned());
    }
    match settings.log {
        LogPlace::Local => Ok(()),
        LogPlace::Kafka(_) => refused_in_a_cluster(settings),
    }
}

/// Refuses settings that only a cluster allows, for a single node.
///
/// # Errors
/// The operator must change the settings that the text names.
pub(crate) fn refused_alone(settings: &Settings) -> Result<(), String> {
    if settings.log != LogPlace::Local {
        return Err(format!(
            "log: {LOG} is for `ilion serve`: a node of a cluster needs a server"
        ));
    }
    match settings.server_encryption_options_internode_encryption {
        InternodeEncryption::None => Ok(()),
        InternodeEncryption::All => Err(
            "server_encryption_options: all is refused: a single node has no connections to other nodes"
                .to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use ilion_settings::Loaded;

    use super::*;

    fn checked(text: &str) -> Result<(), String> {
        let mut loaded = Loaded::default();
        loaded
            .add_text("ilion.yaml", text)
            .map_err(|error| error.to_string())?;
        check_log_options(&loaded.settings)
    }

    #[test]
    fn a_cluster_refuses_by_name_what_it_does_not_have() {
        for (setting, named) in [
            (
                "partitioner: org.apache.cassandra.dht.ByteOrderedPartitioner",
                "Murmur3Partitioner",
            ),
            ("partitioner: RandomPartitioner", "Murmur3Partitioner"),
            (
                "commitlog_archive_directory: /a",
                "commitlog_archive_directory: auto",
            ),
            ("init_directory: /a", "init_directory: auto"),
        ] {
            let refused = checked(&format!("log: kafka://b1:9092/ilion\n{setting}\n"));
            let refused = refused.expect_err(setting);
            assert!(refused.contains(named), "{setting}: {refused}");
            assert_eq!(
                checked(&format!("{setting}\n")),
                Ok(()),
                "a single node accepts it"
            );
        }
        assert_eq!(checked("log: kafka://b1:9092/ilion\n"), Ok(()));
    }

    #[test]
    fn options_of_the_log_need_each_other() {
        let problem = checked("log_options: {sasl_username: u}\n").unwrap_err();
        assert!(problem.contains("sasl_password_file"), "{problem}");
        assert_eq!(
            checked("log_options: {sasl_username: u, sasl_password_file: /p}\n"),
            Ok(())
        );
        assert!(checked("down_max: 0s\n").unwrap_err().starts_with("down_max"));
    }

    #[test]
    fn a_node_alone_refuses_what_is_of_a_cluster() {
        let mut loaded = Loaded::default();
        loaded.set_assignment("log=kafka://b1/ilion").unwrap();
        let refused = refused_alone(&loaded.settings).unwrap_err();
        assert!(refused.contains("ilion serve"), "{refused}");
        let settings = Settings {
            server_encryption_options_internode_encryption: InternodeEncryption::All,
            ..Settings::default()
        };
        let refused = refused_alone(&settings).unwrap_err();
        assert!(refused.starts_with("server_encryption_options"), "{refused}");
        assert_eq!(refused_alone(&Settings::default()), Ok(()));
    }
}
