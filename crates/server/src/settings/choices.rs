//! Settings with a few fixed values.

use ilion_audit::Category;
use ilion_types::Partitioner;

use super::form::{Form, Names};

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

choices!(AuditLogger, "Where the audit log goes (`audit_logging_options`: `logger`).", {
    /// To files, as JSON lines.
    File = "FileAuditLogger",
    /// To chronicle queues: not built.
    Bin = "BinAuditLogger",
    /// Nowhere.
    NoOp = "NoOpAuditLogger",
});

choices!(RollCycle, "The period of a file of the audit log (`audit_logging_options`: `roll_cycle`).", {
    /// An hour.
    FastHourly = "FAST_HOURLY",
    /// An hour.
    Hourly = "HOURLY",
    /// A minute.
    Minutely = "MINUTELY",
    /// A day.
    Daily = "DAILY",
    /// A day.
    FastDaily = "FAST_DAILY",
    /// A day.
    LargeDaily = "LARGE_DAILY",
    /// A day.
    XLargeDaily = "XLARGE_DAILY",
    /// A day.
    HugeDaily = "HUGE_DAILY",
});

/// Categories of the audit log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Categories(pub Vec<Category>);

impl Form for Categories {
    fn parse(text: &str) -> Result<Self, String> {
        let of_name = |name: &String| {
            Category::of_name(name).ok_or_else(|| {
                let names = Category::ALL.map(Category::name).join(", ");
                format!("a list of {names}")
            })
        };
        let Names(names) = Names::parse(text)?;
        names.iter().map(of_name).collect::<Result<_, _>>().map(Self)
    }

    fn print(&self) -> String {
        let names = self.0.iter().map(|category| category.name().to_owned());
        Names(names.collect()).print()
    }
}

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
