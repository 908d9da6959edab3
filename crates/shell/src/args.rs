//! The arguments of `ilion cql`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use ilion_client::{LoginArgs, Target, Trust};

use crate::format::Format;

const DEFAULT_HOST: &str = "127.0.0.1";
const DEFAULT_PORT: u16 = 9042;

/// Arguments of `ilion cql`.
#[derive(Args, Clone)]
#[command(
    after_help = "Exit codes: 0 success; 1 no connection, or the input cannot be read; 2 a statement failed, or wrong arguments."
)]
pub struct ShellArgs {
    /// The server, as HOST, HOST:PORT or `[IPV6]:PORT` [default: 127.0.0.1:9042].
    #[arg(value_name = "HOST[:PORT]", conflicts_with = "local")]
    pub host: Option<String>,
    /// The server's port, as cqlsh has it [default: 9042].
    #[arg(value_name = "PORT", requires = "host")]
    pub port: Option<u16>,
    /// Executes in this process, on a data directory that no node has open; created if absent.
    #[arg(long, value_name = "DIR", group = "local")]
    pub data: Option<PathBuf>,
    /// Reads the SSTables in this folder, in this process, and changes nothing in it: a data directory, a snapshot, or any copy of them.
    #[arg(long, value_name = "DIR", group = "local")]
    pub sstables: Option<PathBuf>,
    /// With --sstables: the statements that create the tables [default: schema.cql in the folder].
    #[arg(long, value_name = "FILE", requires = "sstables")]
    pub schema: Option<PathBuf>,
    /// With --data or --sstables: a setting by its name in the settings file; may be repeated.
    #[arg(long, value_name = "NAME=VALUE", requires = "local")]
    pub set: Vec<String>,
    /// Executes these statements and commands, and ends.
    #[arg(short, long, value_name = "STATEMENT", conflicts_with = "file")]
    pub execute: Option<String>,
    /// Executes the statements and commands of a file, and ends.
    #[arg(short, long, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// The keyspace to begin in.
    #[arg(short, long, value_name = "NAME")]
    pub keyspace: Option<String>,
    /// The role to log in as.
    #[arg(short, long, value_name = "ROLE", conflicts_with = "local")]
    pub username: Option<String>,
    /// Its password [default: that of the variable ILION_PASSWORD; without that, it is asked for].
    #[arg(short, long, requires = "username")]
    pub password: Option<String>,
    /// Encrypts the connection (TLS), and trusts servers whose certificate was issued by one in this PEM file.
    #[arg(long, value_name = "FILE", value_parser = Trust::read, conflicts_with = "local")]
    pub tls_ca: Option<Trust>,
    /// How rows are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Writes results to this file, which is replaced.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// How long the shell waits for an answer, in seconds.
    #[arg(long, value_name = "SECS", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..))]
    pub request_timeout: u32,
    /// Never uses colours [default: colours if the output is a terminal and NO_COLOR is not set].
    #[arg(long)]
    pub no_color: bool,
}

impl ShellArgs {
    /// The server to connect to, and who logs in there.
    ///
    /// # Errors
    /// The address makes no sense.
    pub fn target(&self, password: Option<String>) -> Result<Target, String> {
        let (host, port) = parse_address(self.host.as_deref().unwrap_or(DEFAULT_HOST))?;
        let port = match (port, self.port) {
            (Some(_), Some(_)) => return Err("the port is given twice".to_owned()),
            (port, other) => port.or(other).unwrap_or(DEFAULT_PORT),
        };
        let login = LoginArgs {
            tls_ca: self.tls_ca.clone(),
            user: self.username.clone(),
            password,
        };
        let timeout = Duration::from_secs(u64::from(self.request_timeout));
        Ok(Target::new(&host, port, &login).with_silence_max(timeout))
    }
}

/// Host and port.
fn parse_address(text: &str) -> Result<(String, Option<u16>), String> {
    let parse_port = |port: &str| port.parse::<u16>().map_err(|_| format!("{port} is no port"));
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest
            .split_once(']')
            .ok_or(format!("{text} lacks a closing bracket"))?;
        let port = rest.strip_prefix(':').map(parse_port).transpose()?;
        return Ok((host.to_owned(), port));
    }
    match text.split_once(':') {
        // More than one colon: an IPv6 address without a port.
        Some((_, rest)) if rest.contains(':') => Ok((text.to_owned(), None)),
        Some((host, port)) => Ok((host.to_owned(), Some(parse_port(port)?))),
        None => Ok((text.to_owned(), None)),
    }
}

#[cfg(test)]
mod tests {
    use super::parse_address;

    #[test]
    fn addresses_may_have_ports() {
        let host = |text: &str| text.to_owned();
        assert_eq!(parse_address("db"), Ok((host("db"), None)));
        assert_eq!(parse_address("db:9142"), Ok((host("db"), Some(9142))));
        assert_eq!(parse_address("::1"), Ok((host("::1"), None)));
        assert_eq!(parse_address("[::1]:9142"), Ok((host("::1"), Some(9142))));
        assert_eq!(parse_address("db:x"), Err(host("x is no port")));
        assert!(parse_address("[::1").is_err());
    }
}
