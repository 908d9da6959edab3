//! The arguments of a verb: options, values, and the node to connect to.

use std::fmt;
use std::io::ErrorKind;
use std::net::IpAddr;
use std::path::PathBuf;

use ilion_server::admin::{AdminClient, ClientError};
use ilion_settings::parse_address;
use serde::de::DeserializeOwned;
use serde_json::Value;

use super::shape::{Flag, Shape};
use crate::Failure;
use crate::ask::{self, client};
use crate::bar::{Shown, while_node_works};
use crate::cli::{AdminArguments, LoginArguments};

/// Actions whose progress bar shows compactions, index builds and checks.
const LONG: [&str; 9] = [
    "cleanup",
    "compact",
    "compact-keys",
    "garbage",
    "index/rebuild",
    "refresh",
    "rewrite",
    "scrub",
    "verify",
];

/// Actions whose progress bar shows flushes.
const FLUSHES: [&str; 2] = ["drain", "flush"];

/// The node to connect to, and the login there. `None` if an option was not given.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectOptions {
    address: Option<IpAddr>,
    port: Option<u16>,
    username: Option<String>,
    password: Option<String>,
    password_file: Option<String>,
}

/// Separates the options that name the node, which may be anywhere among the words, from the other words.
///
/// # Errors
/// Such an option has no value, or a value that is no address or port.
pub fn take_connect_options(words: Vec<String>) -> Result<(ConnectOptions, Vec<String>), Failure> {
    let mut place = ConnectOptions::default();
    let mut rest = Vec::new();
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        if word == "--" {
            rest.push(word);
            rest.extend(words);
            break;
        }
        let (name, attached) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
            _ => (&*word, None),
        };
        let is_of_place = [
            "-h",
            "--host",
            "-p",
            "--port",
            "-u",
            "--username",
            "-pw",
            "--password",
            "-pwf",
            "--password-file",
        ]
        .contains(&name);
        if ["-pp", "--print-port"].contains(&name) {
            return Err(Failure::nodetool(
                "-pp is not supported: Ilion prints addresses of nodes without their ports",
            ));
        }
        if !is_of_place {
            rest.push(word);
            continue;
        }
        let missing = || Failure::nodetool(format!("Required values for option '{name}' not provided"));
        let value = attached.or_else(|| words.next()).ok_or_else(missing)?;
        match name {
            "-h" | "--host" => {
                let parsed = parse_address(&value);
                place.address = Some(
                    parsed
                        .map_err(|expected| Failure::nodetool(format!("-h {value}: expected {expected}")))?,
                );
            }
            "-p" | "--port" => {
                let wrong = |_| Failure::nodetool(format!("port: can not convert \"{value}\" to a number"));
                place.port = Some(value.parse().map_err(wrong)?);
            }
            "-u" | "--username" => place.username = Some(value),
            "-pw" | "--password" => place.password = Some(value),
            _ => place.password_file = Some(value),
        }
    }
    Ok((place, rest))
}

impl ConnectOptions {
    /// The node and login, as options for a command of `ilion`.
    pub fn arguments(&self) -> Vec<String> {
        let pairs = [
            ("--admin-address", self.address.map(|address| address.to_string())),
            ("--admin-port", self.port.map(|port| port.to_string())),
            ("--username", self.username.clone()),
            ("--password", self.password.clone()),
            ("--password-file", self.password_file.clone()),
        ];
        let given = pairs.into_iter().filter_map(|(name, value)| Some((name, value?)));
        given.flat_map(|(name, value)| [name.to_owned(), value]).collect()
    }

    /// The node and login. What the options do not give comes from the environment, or is the default.
    fn admin(&self) -> Result<AdminArguments, Failure> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
        let address = match (self.address, variable("ILION_ADMIN_ADDRESS")) {
            (Some(address), _) => address,
            (None, Some(text)) => parse_address(&text)
                .map_err(|expected| Failure::nodetool(format!("ILION_ADMIN_ADDRESS: expected {expected}")))?,
            (None, None) => IpAddr::from([127, 0, 0, 1]),
        };
        let port = match (self.port, variable("ILION_ADMIN_PORT")) {
            (Some(port), _) => port,
            (None, Some(text)) => text
                .parse()
                .map_err(|_| Failure::nodetool(format!("ILION_ADMIN_PORT: {text} is no port")))?,
            (None, None) => 9043,
        };
        Ok(AdminArguments {
            admin_address: address,
            admin_port: port,
            admin_token_file: variable("ILION_ADMIN_TOKEN_FILE").map(PathBuf::from),
            login: self.login(&variable),
            admin_ca: variable("ILION_ADMIN_CA").map(PathBuf::from),
            admin_host_name: variable("ILION_ADMIN_HOST_NAME"),
            json: false,
        })
    }

    /// The login. The environment adds what the options do not give, but no password if an option gives a password or its file.
    fn login(&self, variable: &impl Fn(&str) -> Option<String>) -> LoginArguments {
        let username = self.username.clone().or_else(|| variable("ILION_USERNAME"));
        let (password, file) = match (&self.password, &self.password_file) {
            (None, None) => (variable("ILION_PASSWORD"), variable("ILION_PASSWORD_FILE")),
            given => (given.0.clone(), given.1.clone()),
        };
        LoginArguments {
            username,
            password,
            password_file: file.map(PathBuf::from),
        }
    }
}

/// The failure for a keyspace that does not exist. Compat: the message of `NodeTool`.
pub fn missing_keyspace(keyspace: &str) -> Failure {
    Failure::nodetool(format!("Keyspace [{keyspace}] does not exist."))
}

/// A verb with its arguments.
#[derive(Clone, Debug)]
pub struct Call {
    verb: &'static str,
    place: ConnectOptions,
    /// Long names of the given options, with their values; `None` for options that take no value.
    options: Vec<(&'static str, Option<String>)>,
    /// The other arguments.
    pub values: Vec<String>,
}

impl Call {
    /// Parses the words behind a verb.
    ///
    /// # Errors
    /// An option is unknown or has no value, or there are too few or too many arguments.
    pub fn parse(verb: Shape, place: ConnectOptions, words: &[String]) -> Result<Self, Failure> {
        let mut call = Self {
            verb: verb.name,
            place,
            options: Vec::new(),
            values: Vec::new(),
        };
        let mut words = words.iter();
        let mut takes_options = true;
        while let Some(word) = words.next() {
            if takes_options && word == "--" {
                takes_options = false;
                continue;
            }
            if !takes_options || !is_option(word) {
                call.values.push(word.clone());
                continue;
            }
            let (name, attached) = match word.split_once('=') {
                Some((name, value)) if name.starts_with("--") => (name, Some(value.to_owned())),
                _ => (&**word, None),
            };
            let known = verb.options.iter().find(|option| option.is(name));
            let Some(Flag { long, value, .. }) = known else {
                return Err(unexpected(word));
            };
            let value = match value {
                None => None,
                Some(_) => Some(attached.or_else(|| words.next().cloned()).ok_or_else(|| {
                    Failure::nodetool(format!("Required values for option '{name}' not provided"))
                })?),
            };
            call.options.push((long, value));
        }
        let (least, most) = verb.value_counts();
        if call.values.len() < least {
            let missing = verb.value_names().nth(call.values.len()).unwrap_or_default();
            return Err(Failure::nodetool(format!(
                "Required parameters are missing: {missing}"
            )));
        }
        if let Some(more) = most.and_then(|most| call.values.get(most)) {
            return Err(unexpected(more));
        }
        Ok(call)
    }

    /// Whether an option is given.
    pub fn has(&self, long: &str) -> bool {
        self.options.iter().any(|(name, _)| *name == long)
    }

    /// The value of an option.
    pub fn option(&self, long: &str) -> Option<&str> {
        let found = self.options.iter().rev().find(|(name, _)| *name == long);
        found.and_then(|(_, value)| value.as_deref())
    }

    /// The value at an index; `None` if there are fewer values.
    pub fn value(&self, index: usize) -> Option<&str> {
        self.values.get(index).map(String::as_str)
    }

    /// The value at an index, as a number. Requires: the verb needs this many values.
    pub fn number<T: std::str::FromStr>(&self, index: usize) -> Result<T, Failure> {
        let text = self.value(index).unwrap_or_default();
        let wrong = |_| Failure::nodetool(format!("can not convert \"{text}\" to a number"));
        text.parse().map_err(wrong)
    }

    fn client(&self) -> Result<AdminClient, Failure> {
        client(&self.place.admin()?)
    }

    /// Requests a report.
    pub fn get<T: DeserializeOwned>(
        &self,
        action: &str,
        parts: &[(&str, Option<&str>)],
    ) -> Result<T, Failure> {
        let asked = self.client()?.get(&ask::path(action, parts));
        asked.map_err(Failure::of_client)
    }

    /// Requests an action, with a progress bar if it may take long.
    pub fn post(&self, action: &str, parts: &[(&str, Option<&str>)]) -> Result<Value, Failure> {
        let (client, path) = (self.client()?, ask::path(action, parts));
        let shown = match action {
            action if LONG.contains(&action) => Some(Shown::Compactions),
            action if FLUSHES.contains(&action) => Some(Shown::Flushes),
            _ => None,
        };
        let asked = match shown {
            Some(shown) => while_node_works(self.verb, &client, shown, || client.post(&path)),
            None => client.post(&path),
        };
        asked.map_err(Failure::of_client)
    }

    /// Stops the node, which may end before it answers. Compat: like `StopDaemon`, takes a broken connection for a success.
    pub fn stop_node(&self) -> Result<(), Failure> {
        let client = self.client()?;
        // An unencrypted request to an encrypted port also breaks the connection. This first request finds that out.
        client
            .get::<Value>(&ask::path("node", &[]))
            .map_err(Failure::of_client)?;
        match client.post(&ask::path("stop-node", &[])) {
            Ok(_) => Ok(()),
            Err(ClientError::Unreachable { source, .. })
                if [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset].contains(&source.kind()) =>
            {
                Ok(())
            }
            Err(error) => Err(Failure::of_client(error)),
        }
    }

    /// Changes settings of the node.
    pub fn set(&self, assignments: &[(&str, String)]) -> Result<(), Failure> {
        let lines: Vec<String> = assignments
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        self.post("settings", &[("assignments", Some(&lines.join("\n")))])
            .map(drop)
    }
}

/// True for words that begin with a dash, except negative numbers, which are values.
fn is_option(word: &str) -> bool {
    let rest = word.strip_prefix('-');
    rest.is_some_and(|rest| !rest.is_empty() && !rest.starts_with(|first: char| first.is_ascii_digit()))
}

fn unexpected(word: &str) -> Failure {
    Failure::nodetool(format!("Found unexpected parameters: [{word}]"))
}

/// For tests.
impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verb)?;
        for (name, value) in &self.options {
            write!(f, " {name}")?;
            if let Some(value) = value {
                write!(f, " {value}")?;
            }
        }
        for value in &self.values {
            write!(f, " {value}")?;
        }
        let address = self.place.address.unwrap_or(IpAddr::from([127, 0, 0, 1]));
        write!(f, " at {address}:{}", self.place.port.unwrap_or(9043))
    }
}
