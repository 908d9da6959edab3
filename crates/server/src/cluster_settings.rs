//! Which settings a node of a cluster refuses, and which a single node does. Pure.

use ilion_types::Partitioner;

use crate::settings::{self, InternodeEncryption, LogPlace, Settings};

/// Refuses what a cluster does not have yet.
///
/// # Errors
/// The setting, and why.
pub fn refused_in_a_cluster(settings: &Settings) -> Result<(), String> {
    let rules = [
        (
            settings.authenticator != settings::Authenticator::AllowAll,
            "authenticator: in a cluster, AllowAllAuthenticator is the only one so far, since roles would be each node's own",
        ),
        (
            settings.partitioner != Partitioner::Murmur3,
            "partitioner: a cluster has the Murmur3Partitioner",
        ),
        (
            settings.cdc_enabled,
            "cdc_enabled: a cluster has no change data capture yet; its logs are in Kafka",
        ),
        (
            settings.native_transport_port == 0 || settings.storage_port == 0,
            "native_transport_port, storage_port: the nodes of a cluster tell each other their ports, so they must be given",
        ),
        (!(1..=4096).contains(&settings.tablets), "tablets: 1 to 4096"),
    ];
    let refused = rules.into_iter().find(|(is_set, _)| *is_set);
    refused.map_or(Ok(()), |(_, reason)| Err(reason.to_owned()))
}

/// Refuses settings of clusters that would protect something, since a single node does not do it.
///
/// # Errors
/// The setting, and why.
pub(crate) fn refused_alone(settings: &Settings) -> Result<(), String> {
    if let LogPlace::Kafka(url) = &settings.log {
        return Err(format!(
            "log: {url} is for `ilion serve`: a node of a cluster needs a server"
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
    use super::*;

    type Change = fn(&mut Settings);

    #[test]
    fn what_a_cluster_does_not_have_is_refused_by_name() {
        let right = Settings::default();
        assert_eq!(refused_in_a_cluster(&right), Ok(()));
        let wrong: [(&str, Change); 5] = [
            ("authenticator", |settings| {
                settings.authenticator = settings::Authenticator::Password
            }),
            ("partitioner", |settings| {
                settings.partitioner = Partitioner::Random
            }),
            ("cdc_enabled", |settings| settings.cdc_enabled = true),
            ("native_transport_port", |settings| {
                settings.native_transport_port = 0
            }),
            ("tablets", |settings| settings.tablets = 0),
        ];
        for (name, change) in wrong {
            let mut settings = right.clone();
            change(&mut settings);
            assert!(refused_in_a_cluster(&settings).unwrap_err().starts_with(name));
        }
    }

    #[test]
    fn a_single_node_refuses_logs_of_a_cluster_and_encryption_between_nodes() {
        let mut settings = Settings {
            log: LogPlace::Kafka("kafka://a:1/p".to_owned()),
            ..Settings::default()
        };
        assert!(refused_alone(&settings).unwrap_err().contains("kafka://a:1/p"));
        settings.log = LogPlace::Local;
        assert_eq!(refused_alone(&settings), Ok(()));
        settings.server_encryption_options_internode_encryption = InternodeEncryption::All;
        assert!(
            refused_alone(&settings)
                .unwrap_err()
                .contains("server_encryption_options")
        );
    }
}
