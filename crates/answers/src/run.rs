//! Runs a script against a server: records, checks.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use anyhow::Context;
use ilion_env::{Env, RealEnv};
use ilion_protocol::Consistency;

use crate::client::{Circumstances, Client};
use crate::script::{Clock, Script, Statement};
use crate::show::show;

/// The keyspace in which a script runs.
const KEYSPACE: &str = "ks";
/// The superuser of a server with logins; its password is its name.
const SUPERUSER: &str = "cassandra";

/// Longest build of an index of a script, in seconds.
const BUILD_SECS_MAX: i64 = 60;

/// An answer that differs from the script.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// Line of the statement.
    pub line: usize,
    /// Text of the statement.
    pub text: String,
    /// The answer in the script.
    pub expected: Vec<String>,
    /// The answer of the server.
    pub answered: Vec<String>,
}

/// Prints the statement, then the lines of both answers.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  {}", self.line, self.text)?;
        let expected = self.expected.iter().map(|line| ('-', line));
        let answered = self.answered.iter().map(|line| ('+', line));
        for (mark, line) in expected.chain(answered) {
            write!(f, "\n    {mark} {line}")?;
        }
        Ok(())
    }
}

/// How a script is run against a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Replicas {
    /// How many nodes have each row of the script's keyspace.
    pub count: u32,
    /// The consistency level of its statements.
    pub level: Consistency,
}

impl Default for Replicas {
    /// Those of a single node.
    fn default() -> Self {
        Self {
            count: 1,
            level: Consistency::One,
        }
    }
}

/// The result of a check.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// Number of statements.
    pub statements: usize,
    /// Number of statements with an answer of Ilion's own.
    pub own_answers: usize,
    /// Answers that differ.
    pub differences: Vec<Difference>,
}

/// Runs a script against a real Cassandra, and writes the answers into it. Removes answers of Ilion's own that are the same now.
///
/// # Errors
/// The server cannot be reached, or breaks the protocol.
pub fn record(script: &mut Script, address: &str) -> anyhow::Result<()> {
    let mut session = Session::open(address, Replicas::default())?;
    for statement in script.statements_mut() {
        statement.answer = session.ask(&statement.for_cassandra())?;
        if statement.own_answer == statement.answer {
            statement.own_answer.clear();
        }
    }
    session.close()
}

/// Runs a script against Ilion, and writes the answers that differ into it.
///
/// # Errors
/// The server cannot be reached, or breaks the protocol.
pub fn differ(script: &mut Script, address: &str) -> anyhow::Result<()> {
    let mut session = Session::open(address, Replicas::default())?;
    for statement in script.statements_mut() {
        let answered = session.ask(statement)?;
        statement.own_answer.clear();
        if answered != statement.answer {
            statement.own_answer = answered;
        }
    }
    session.close()
}

/// Runs a script against Ilion, and compares the answers.
///
/// # Errors
/// The server cannot be reached, or breaks the protocol.
pub fn check(script: &Script, address: &str) -> anyhow::Result<Tally> {
    check_replicas(script, address, Replicas::default())
}

/// Like [`check`], on a cluster.
///
/// # Errors
/// The server cannot be reached, or breaks the protocol.
pub fn check_replicas(script: &Script, address: &str, replicas: Replicas) -> anyhow::Result<Tally> {
    let mut session = Session::open(address, replicas)?;
    let mut tally = Tally::default();
    for statement in script.statements() {
        tally.statements += 1;
        tally.own_answers += usize::from(!statement.own_answer.is_empty());
        let answered = session.ask_when_built(statement)?;
        if answered != statement.expected() {
            tally.differences.push(Difference {
                line: statement.line,
                text: statement.text.clone(),
                expected: statement.expected().to_vec(),
                answered,
            });
        }
    }
    session.close()?;
    Ok(tally)
}

/// The state of a running script: connections, timestamps and a clock.
struct Session {
    address: String,
    replicas: Replicas,
    /// Connections by role. Without logins there is one.
    clients: BTreeMap<String, Client>,
    env: Arc<RealEnv>,
    /// The last write timestamp. It is near the real time, since conditional writes use the server's clock.
    micros: i64,
    begin_secs: i32,
    clock: Clock,
}

impl Session {
    fn open(address: &str, replicas: Replicas) -> anyhow::Result<Self> {
        let env = RealEnv::new();
        let now_secs = i32::try_from(env.now_secs()).context("the clock is beyond 2038")?;
        let mut session = Self {
            address: address.to_owned(),
            replicas,
            clients: BTreeMap::new(),
            env,
            micros: 0,
            begin_secs: now_secs,
            clock: Clock::Secs(0),
        };
        session.forget()?;
        let replication = format!(
            "{{'class': 'SimpleStrategy', 'replication_factor': {}}}",
            replicas.count
        );
        session.must(&format!(
            "CREATE KEYSPACE {KEYSPACE} WITH replication = {replication}"
        ))?;
        session.must(&format!("USE {KEYSPACE}"))?;
        Ok(session)
    }

    fn close(mut self) -> anyhow::Result<()> {
        self.forget()
    }

    /// The connection of a role, which is opened if there is none.
    fn client(&mut self, role: &str) -> anyhow::Result<&mut Client> {
        if !self.clients.contains_key(role) {
            let client = Client::open(&self.address, role)?;
            self.clients.insert(role.to_owned(), client);
        }
        self.clients.get_mut(role).context("it was inserted")
    }

    /// Drops all keyspaces but those of the system, and all roles but the superuser.
    fn forget(&mut self) -> anyhow::Result<()> {
        let names = self.must("SELECT keyspace_name FROM system_schema.keyspaces")?;
        for name in names.iter().skip(1).map(|name| name.trim_matches('\'')) {
            if !name.starts_with("system") {
                self.must(&format!("DROP KEYSPACE \"{name}\""))?;
            }
        }
        // A server without logins answers with an error of one line, which is skipped.
        for line in self.tell("LIST ROLES")?.iter().skip(1) {
            let role = line.split(" | ").next().unwrap_or_default().trim_matches('\'');
            if role != SUPERUSER {
                self.must(&format!("DROP ROLE \"{role}\""))?;
            }
        }
        Ok(())
    }

    fn tell(&mut self, text: &str) -> anyhow::Result<Vec<String>> {
        self.ask(&Statement {
            text: text.to_owned(),
            ..Statement::default()
        })
    }

    fn must(&mut self, text: &str) -> anyhow::Result<Vec<String>> {
        let answer = self.tell(text)?;
        match answer.first() {
            Some(line) if line.starts_with("error") => anyhow::bail!("{text}: {line}"),
            _ => Ok(answer),
        }
    }

    /// Like [`Self::ask`]. A node that still builds an index of the script refuses to search it: then it is asked again, as clients do.
    fn ask_when_built(&mut self, statement: &Statement) -> anyhow::Result<Vec<String>> {
        let until = self.env.now_secs() + BUILD_SECS_MAX;
        loop {
            let answered = self.ask(statement)?;
            let is_building = answered.first().is_some_and(|line| {
                line.starts_with("error") && line.contains("not yet available: it is being built")
            });
            if !is_building || self.env.now_secs() > until {
                return Ok(answered);
            }
            std::thread::yield_now();
        }
    }

    fn ask(&mut self, statement: &Statement) -> anyhow::Result<Vec<String>> {
        let directives = &statement.directives;
        self.micros = self.env.now_micros().max(self.micros + 1);
        self.clock = directives.clock.unwrap_or(self.clock);
        let how = Circumstances {
            level: self.replicas.level,
            timestamp_micros: directives.timestamp.unwrap_or(self.micros),
            now_secs: match self.clock {
                Clock::Secs(secs) => Some(self.begin_secs + secs),
                Clock::Server => None,
            },
            page_size: directives.page.unwrap_or(5000),
            is_prepared: directives.is_prepared,
        };
        let role = directives.role.as_deref().unwrap_or(SUPERUSER);
        let pages = self
            .client(role)?
            .run(&statement.text, &how)
            .with_context(|| format!("line {}: {}", statement.line, statement.text))?;
        Ok(show(&pages, directives.is_unordered))
    }
}
