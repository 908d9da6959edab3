//! Settings with a few fixed values.

use ilion_audit::Category;
use ilion_types::Partitioner;

use crate::form::{Form, Names, Size, parse_size};

choices!(CommitLogSync, "When a write is acknowledged (`commitlog_sync`).", {
    /// After the commit log is synced; writes that wait share a sync.
    Batch = "batch",
    /// At once; the log is synced every `commitlog_sync_period`.
    Periodic = "periodic",
    /// After the sync that happens every `commitlog_sync_group_window`.
    Group = "group",
});

choices!(SaslMechanism, "How a password is shown to brokers of Kafka (`log_options`: `sasl`).", {
    /// The brokers get the password itself.
    Plain = "PLAIN",
    /// The brokers get a proof of the password, with SHA-256.
    ScramSha256 = "SCRAM-SHA-256",
    /// The brokers get a proof of the password, with SHA-512.
    ScramSha512 = "SCRAM-SHA-512",
});

choices!(LogFormat, "How lines of the log look (`log_format`).", {
    /// Text for people.
    Text = "text",
    /// Each line is a JSON object.
    Json = "json",
});

choices!(LogTarget, "A place for the log (in `log_to`).", {
    /// Standard error.
    Stderr = "stderr",
    /// Files in `log_directory`.
    File = "file",
    /// The journal of systemd.
    Journal = "journal",
});

/// Places for the log; `none` is the empty list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogTargets(Vec<LogTarget>);

impl LogTargets {
    /// The places, each of them once.
    pub fn targets(&self) -> impl Iterator<Item = LogTarget> + '_ {
        self.0.iter().copied()
    }
}

impl Form for LogTargets {
    fn parse(text: &str) -> Result<Self, String> {
        let names = Names::parse(text)?;
        let mut targets = Vec::new();
        for name in &names.0 {
            let target =
                LogTarget::parse(name).map_err(|expected| format!("{expected}, or several with commas"))?;
            if !targets.contains(&target) {
                targets.push(target);
            }
        }
        Ok(Self(targets))
    }

    fn print(&self) -> String {
        Names(self.0.iter().map(Form::print).collect()).print()
    }
}

choices!(SSTableFormat, "Format of the SSTables that are written (`sstable_format`).", {
    /// BIG of Cassandra 4.0 and later.
    Nb = "nb",
    /// BIG of Cassandra 5.0.
    Oa = "oa",
    /// BTI of Cassandra 5.0.
    Da = "da",
});

choices!(StorageCompatibility, "What becomes of the directory of an older Cassandra (`storage_compatibility_mode`).", {
    /// The older Cassandra can still open it.
    Cassandra4 = "CASSANDRA_4",
    /// It becomes a directory of Cassandra 5.0.
    None = "NONE",
});

choices!(SSTableLookup, "How partitions are found in SSTables (`sstable_lookup`).", {
    /// By the token map.
    TokenMap = "token_map",
    /// By Bloom filter, key cache, index summary and index.
    Summary = "summary",
    /// As `Summary`, but the summary is made from the whole index at the start.
    WholeIndex = "whole_index",
});

choices!(Authenticator, "Who may connect (`authenticator`).", {
    /// Everybody, without a login.
    AllowAll = "AllowAllAuthenticator",
    /// Roles with their passwords.
    Password = "PasswordAuthenticator",
    /// Roles that certificates stand for.
    MutualTls = "MutualTlsAuthenticator",
    /// As `MutualTls`, but clients without a certificate log in with a password.
    MutualTlsWithPasswordFallback = "MutualTlsWithPasswordFallbackAuthenticator",
});

choices!(CertificateValidator, "What in a certificate is the identity of a client (`authenticator`: `validator_class_name`).", {
    /// The first URI among the subject alternative names that starts with `spiffe://`.
    Spiffe = "SpiffeCertificateValidator",
    /// The common name of the subject.
    CommonName = "CommonNameCertificateValidator",
});

choices!(Authorizer, "Who may do what (`authorizer`).", {
    /// Everybody may do everything.
    AllowAll = "AllowAllAuthorizer",
    /// Roles may do what was granted to them.
    Cassandra = "CassandraAuthorizer",
});

choices!(NetworkAuthorizer, "Which data centers roles may use (`network_authorizer`).", {
    /// All data centers.
    AllowAll = "AllowAllNetworkAuthorizer",
    /// Those that `ACCESS TO DATACENTERS` names for the role.
    Cassandra = "CassandraNetworkAuthorizer",
});

choices!(CidrAuthorizer, "Which addresses roles may be used from (`cidr_authorizer`).", {
    /// All addresses.
    AllowAll = "AllowAllCIDRAuthorizer",
    /// Those of the groups that `ACCESS FROM CIDRS` names for the role.
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
    /// The server does not request a certificate.
    NotAsked = "false",
    /// The server refuses clients without a certificate that the truststore accepts.
    Required = "true",
    /// As `Required`, but clients may have no certificate.
    Optional = "optional",
});

/// Which connections between nodes are encrypted (`server_encryption_options`: `internode_encryption`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum InternodeEncryption {
    /// No connections.
    #[default]
    None,
    /// All connections.
    All,
}

impl Form for InternodeEncryption {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "none" => Ok(Self::None),
            "all" => Ok(Self::All),
            "dc" | "rack" => Err(
                "all or none (with dc or rack, some connections would not be encrypted, and a node could not tell who may \
                 leave the encryption away)"
                    .to_owned(),
            ),
            _ => Err("all or none".to_owned()),
        }
    }

    fn print(&self) -> String {
        match self {
            Self::None => "none".to_owned(),
            Self::All => "all".to_owned(),
        }
    }
}

choices!(AuditLogger, "Where the audit log goes (`audit_logging_options`: `logger`).", {
    /// To files, as JSON lines.
    File = "FileAuditLogger",
    /// To chronicle queues, which Ilion does not support.
    Bin = "BinAuditLogger",
    /// Nowhere.
    NoOp = "NoOpAuditLogger",
});

/// How long a file of the audit log is written before the next one begins (`audit_logging_options`: `roll_cycle`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RollCycle {
    name: &'static str,
    /// Length of the period in seconds.
    pub period_secs: u32,
}

impl RollCycle {
    /// Compat: names and lengths of `RollCycles` of Chronicle Queue, without the cycles for its tests. There, names with the same length
    /// differ in how many entries fit into a file.
    const ALL: [Self; 20] = [
        Self::new("MINUTELY", 60),
        Self::new("FIVE_MINUTELY", 5 * 60),
        Self::new("TEN_MINUTELY", 10 * 60),
        Self::new("TWENTY_MINUTELY", 20 * 60),
        Self::new("HALF_HOURLY", 30 * 60),
        Self::new("HOURLY", 3600),
        Self::new("FAST_HOURLY", 3600),
        Self::new("LARGE_HOURLY", 3600),
        Self::new("LARGE_HOURLY_SPARSE", 3600),
        Self::new("LARGE_HOURLY_XSPARSE", 3600),
        Self::new("TWO_HOURLY", 2 * 3600),
        Self::new("FOUR_HOURLY", 4 * 3600),
        Self::new("SIX_HOURLY", 6 * 3600),
        Self::new("DAILY", 86_400),
        Self::new("FAST_DAILY", 86_400),
        Self::new("SMALL_DAILY", 86_400),
        Self::new("LARGE_DAILY", 86_400),
        Self::new("XLARGE_DAILY", 86_400),
        Self::new("HUGE_DAILY", 86_400),
        Self::new("HUGE_DAILY_XSPARSE", 86_400),
    ];

    const fn new(name: &'static str, period_secs: u32) -> Self {
        Self { name, period_secs }
    }
}

impl Form for RollCycle {
    fn parse(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|cycle| cycle.name == text);
        found.ok_or_else(|| format!("one of {}", Self::ALL.map(|cycle| cycle.name).join(", ")))
    }

    fn print(&self) -> String {
        self.name.to_owned()
    }
}

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

/// Size of the blocks of a row index, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize(pub u32);

/// Compat: the largest value of `column_index_size`.
const BLOCK_BYTES_MAX: u32 = 2_147_483_646;

impl Form for BlockSize {
    fn parse(text: &str) -> Result<Self, String> {
        let bytes = parse_size(text)
            .ok()
            .and_then(|Size(bytes)| u32::try_from(bytes).ok());
        let bytes = bytes.filter(|bytes| (1..=BLOCK_BYTES_MAX).contains(bytes));
        bytes
            .map(Self)
            .ok_or_else(|| format!("a size like 64KiB, from 1B to {BLOCK_BYTES_MAX}B"))
    }

    fn print(&self) -> String {
        Size(self.0.into()).print()
    }
}
