//! Arguments of the throughput benchmark.

use clap::builder::RangedU64ValueParser;

use ilion_client::LoginArgs;
use ilion_protocol::Consistency;

/// What to run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Workload {
    /// INSERT of whole rows; creates keyspace and table first.
    Write,
    /// UPDATE of all counters of a row; creates keyspace and table first.
    Count,
    /// SELECT of whole rows by random keys.
    Read,
    /// SELECT of the whole table by token ranges, paged.
    Scan,
}

impl Workload {
    /// The word on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Write => "write",
            Self::Count => "count",
            Self::Read => "read",
            Self::Scan => "scan",
        }
    }
}

/// Arguments of the throughput benchmark.
#[derive(Clone, Debug, clap::Args)]
pub struct BenchArgs {
    /// What to run.
    #[arg(skip = Workload::Write)]
    pub workload: Workload,
    /// The server's address.
    #[arg(long, default_value = "127.0.0.1")]
    pub host: String,
    /// The server's CQL port.
    #[arg(long, default_value_t = 9042)]
    pub port: u16,
    #[command(flatten)]
    pub login: LoginArgs,
    /// Operations to measure [default: one for each key]. Scan: passes over the table [default: 1].
    #[arg(long)]
    pub operations: Option<u64>,
    /// Operations of the same kind before the measurement. Scan: passes.
    #[arg(long, default_value_t = 0)]
    pub warm_up: u64,
    /// Connections, each with a thread of its own.
    #[arg(long, default_value_t = 4, value_parser = RangedU64ValueParser::<u16>::new().range(1..=1024))]
    pub clients: u16,
    /// Requests under way on each connection.
    #[arg(long, default_value_t = 16, value_parser = RangedU64ValueParser::<u16>::new().range(1..=32768))]
    pub in_flight: u16,
    /// Bytes in each of the five columns.
    #[arg(long, default_value_t = 34, value_parser = RangedU64ValueParser::<u32>::new().range(1..=2_000_000))]
    pub value_size: u32,
    /// The consistency level of all requests.
    #[arg(long, default_value = "ONE", value_name = "LEVEL", value_parser = parse_consistency)]
    pub consistency: Consistency,
    /// Write: INSERT .. IF NOT EXISTS, a lightweight transaction.
    #[arg(long)]
    pub if_not_exists: bool,
    /// Rows in the table.
    #[arg(long, default_value_t = 100_000, value_parser = RangedU64ValueParser::<u64>::new().range(1..))]
    pub keys: u64,
    /// Seed of the rows: another seed makes other keys and values.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Keyspace of the tables `standard1` and `counter1`; created with replication factor 1 if it does not exist.
    #[arg(long, default_value = "ilion_bench", value_parser = parse_identifier)]
    pub keyspace: String,
    /// Scan: rows in a page.
    #[arg(long, default_value_t = 1000, value_parser = RangedU64ValueParser::<u32>::new().range(1..))]
    pub page_rows: u32,
    /// Scan: number of token ranges into which the ring is cut.
    #[arg(long, default_value_t = 64, value_parser = RangedU64ValueParser::<u32>::new().range(1..=1_000_000))]
    pub ranges: u32,
    /// Id of the server's process on this machine: adds its CPU and memory to the result.
    #[arg(long)]
    pub pid: Option<u32>,
    /// Prints JSON.
    #[arg(long)]
    pub json: bool,
}

/// The statement that creates the keyspace of a benchmark.
pub fn create_keyspace(name: &str) -> String {
    format!(
        "CREATE KEYSPACE IF NOT EXISTS {name} WITH replication = \
         {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
}

/// The name of a consistency level, as cqlsh writes it.
fn parse_consistency(text: &str) -> Result<Consistency, String> {
    let mut all = Consistency::ALL.into_iter();
    let found = all.find(|level| text.eq_ignore_ascii_case(&level.to_string()));
    found.ok_or_else(|| "use a consistency level, such as ONE, LOCAL_QUORUM or QUORUM".to_owned())
}

/// A name that needs no quotes in CQL.
pub fn parse_identifier(text: &str) -> Result<String, String> {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
    match text.starts_with(|c: char| c.is_ascii_lowercase()) && text.chars().all(is_word) {
        true => Ok(text.to_owned()),
        false => Err("use lower-case letters, digits and underscores, a letter first".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        bench: BenchArgs,
    }

    fn parse(words: &[&str]) -> Result<BenchArgs, clap::Error> {
        Cli::try_parse_from([&["bench"], words].concat()).map(|cli| cli.bench)
    }

    #[test]
    fn nothing_has_to_be_said() {
        let args = parse(&[]).unwrap();
        assert_eq!((args.clients, args.in_flight, args.value_size), (4, 16, 34));
    }

    #[test]
    fn levels_are_named_as_in_cqlsh() {
        let args = parse(&["--consistency", "local_quorum"]).unwrap();
        assert_eq!(args.consistency, Consistency::LocalQuorum);
        assert!(parse(&["--consistency", "most"]).is_err());
    }

    #[test]
    fn nonsense_is_refused_before_anything_runs() {
        for words in &[
            ["--clients", "0"],
            ["--value-size", "0"],
            ["--keys", "0"],
            ["--keyspace", "a;b"],
        ] {
            assert!(parse(words).is_err(), "{words:?}");
        }
    }
}
