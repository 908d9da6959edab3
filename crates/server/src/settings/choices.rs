//! Settings with a few fixed values.

use ilion_types::Partitioner;

use super::form::Form;

choices!(CommitLogSync, "When a write is acknowledged (`commitlog_sync`).", {
    /// After the commit log is synced; writes that wait share a sync.
    Batch = "batch",
    /// At once; the log is synced every `commitlog_sync_period`.
    Periodic = "periodic",
    /// After the sync that happens every `commitlog_sync_group_window`.
    Group = "group",
});

choices!(SSTableFormat, "Format of the SSTables that are written (`sstable_format`).", {
    /// BIG of Cassandra 4.0 and later.
    Nb = "nb",
    /// BIG of Cassandra 5.0.
    Oa = "oa",
    /// BTI of Cassandra 5.0.
    Da = "da",
});

choices!(StorageCompatibility, "What becomes of the directory of an older Cassandra (`storage_compatibility_mode`).", {
    /// It stays one that it can open.
    Cassandra4 = "CASSANDRA_4",
    /// It becomes one of 5.0.
    None = "NONE",
});

choices!(SSTableLookup, "How partitions are found in SSTables (`sstable_lookup`).", {
    /// By the token map.
    TokenMap = "token_map",
    /// By Bloom filter, key cache, index summary and index.
    Summary = "summary",
    /// The same, with a summary made from the whole index at the start.
    WholeIndex = "whole_index",
});

choices!(Authenticator, "Who may connect (`authenticator`).", {
    /// Everybody.
    AllowAll = "AllowAllAuthenticator",
    /// Roles with their passwords.
    Password = "PasswordAuthenticator",
    /// Roles that certificates stand for.
    MutualTls = "MutualTlsAuthenticator",
    /// The same; clients without a certificate log in with a password.
    MutualTlsWithPasswordFallback = "MutualTlsWithPasswordFallbackAuthenticator",
});

choices!(CertificateValidator, "What in a certificate is the identity of a client (`authenticator`: `validator_class_name`).", {
    /// The first URI among its other names that starts with `spiffe://`.
    Spiffe = "SpiffeCertificateValidator",
    /// The common name of its subject.
    CommonName = "CommonNameCertificateValidator",
});

choices!(Authorizer, "Who may do what (`authorizer`).", {
    /// Everybody everything.
    AllowAll = "AllowAllAuthorizer",
    /// Roles what was granted to them.
    Cassandra = "CassandraAuthorizer",
});

choices!(NetworkAuthorizer, "Which data centers roles may use (`network_authorizer`).", {
    /// All.
    AllowAll = "AllowAllNetworkAuthorizer",
    /// Those of `ACCESS TO DATACENTERS`.
    Cassandra = "CassandraNetworkAuthorizer",
});

choices!(CidrAuthorizer, "Which addresses roles may be used from (`cidr_authorizer`).", {
    /// All.
    AllowAll = "AllowAllCIDRAuthorizer",
    /// Those of `ACCESS FROM CIDRS`.
    Cassandra = "CassandraCIDRAuthorizer",
});

choices!(CidrMode, "What happens at other addresses (`cidr_authorizer_mode`).", {
    /// The login is logged.
    Monitor = "MONITOR",
    /// Statements are refused.
    Enforce = "ENFORCE",
});

choices!(RoleManager, "Where roles are kept (`role_manager`).", {
    /// In `system_auth`.
    Cassandra = "CassandraRoleManager",
});

choices!(ClientCertificates, "Whether clients show certificates (`client_encryption_options`: `require_client_auth`).", {
    /// They are not asked for one.
    NotAsked = "false",
    /// Without one that the truststore vouches for, a client is refused.
    Required = "true",
    /// As `Required`, but clients without any are taken.
    Optional = "optional",
});

impl Form for Partitioner {
    fn parse(text: &str) -> Result<Self, String> {
        Self::from_class(text)
            .ok()
            .filter(|partitioner| *partitioner != Self::Local)
            .ok_or_else(|| "one of Murmur3Partitioner, RandomPartitioner, ByteOrderedPartitioner".to_owned())
    }

    fn print(&self) -> String {
        self.class_name().to_owned()
    }
}
