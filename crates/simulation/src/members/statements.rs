//! The requests of a run as CQL, and answers as replies.

use bytes::Bytes;
use ilion_query::{Awaited, ClientState, Consistency, Error, ExecuteOptions, Outcome, Value, Values};
use ilion_types::{Partitioner, Token};

use crate::command::{Command, is_cell};
use crate::members::node::Process;
use crate::request::{Reply, Request};

/// The role that all requests write.
pub(super) const ROLE: &str = "r";

/// The keyspace, with so many replicas, and its tables. A column `more` is there to be dropped.
pub(super) fn schema(replicas: usize) -> [String; 4] {
    [
        format!(
            "CREATE KEYSPACE ks WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {replicas}}}"
        ),
        "CREATE TABLE ks.registers (k bigint PRIMARY KEY, v bigint, more bigint)".to_owned(),
        "CREATE TABLE ks.counters (k bigint PRIMARY KEY, n counter)".to_owned(),
        "CREATE TABLE ks.cells (k bigint PRIMARY KEY, v bigint, more bigint)".to_owned(),
    ]
}

/// Executes a request. Returns its client's reply, and the error if the outcome is unknown.
pub(super) fn execute(node: &Process, request: Request) -> (Reply, Option<String>) {
    let answered = match request {
        Request::Change(command) => change(node, command),
        Request::Register(key) => {
            let table = if is_cell(key) { "cells" } else { "registers" };
            let text = format!("SELECT v FROM ks.{table} WHERE k = ?");
            let found = run(node, &text, &[signed(key)], Consistency::QUORUM);
            found.map(|cells| Reply::Register(last(&cells).map(i64::cast_unsigned)))
        }
        Request::Nearest(key) => nearest(node, key),
        Request::Counter(key) => {
            let text = "SELECT n FROM ks.counters WHERE k = ?";
            let found = run(node, text, &[signed(key)], Consistency::QUORUM);
            found.map(|cells| Reply::Counter(last(&cells).unwrap_or(0)))
        }
        Request::Scan(page_size) => scan(node, page_size),
        Request::Alter(kind) => alter(node, kind),
        Request::Role(number) => {
            let insert = |role: &str| {
                format!(
                    "INSERT INTO system_auth.roles (role, can_login, salted_hash) VALUES ('{role}', true, '{number}');"
                )
            };
            let text = format!(
                "BEGIN BATCH {} {} APPLY BATCH",
                insert(&number.to_string()),
                insert(ROLE)
            );
            run(node, &text, &[], Consistency::QUORUM).map(|_| Reply::Done(None))
        }
    };
    match answered {
        Ok(reply) => (reply, None),
        Err(error) if is_refusal(&error) => (Reply::Refused, None),
        Err(error) => (Reply::Unknown, Some(format!("{request:?}: {error}"))),
    }
}

/// Reads a cell at ONE. Refused, if the node did not have it all the time: then it asked others, which may be behind it.
fn nearest(node: &Process, key: u64) -> Result<Reply, Error> {
    if !is_here(node, key) {
        return Ok(Reply::Refused);
    }
    let text = "SELECT v FROM ks.cells WHERE k = ?";
    let cells = run(node, text, &[signed(key)], Consistency::ONE)?;
    Ok(match is_here(node, key) {
        true => Reply::Register(last(&cells).map(i64::cast_unsigned)),
        false => Reply::Refused,
    })
}

/// Whether the node may answer reads of the tablet that this key is in.
fn is_here(node: &Process, key: u64) -> bool {
    let Token::Murmur3(token) = Partitioner::Murmur3.token(&key.to_be_bytes()) else {
        return false;
    };
    let Some(state) = node.member.state() else {
        return false;
    };
    let tablet = state.tablets.of(token);
    let mut tablets = node.member.facts().tablets.into_iter();
    tablets.any(|here| here.tablet == tablet && here.is_ready)
}

/// Reads all cells at QUORUM, page by page.
fn scan(node: &Process, page_size: u32) -> Result<Reply, Error> {
    let (mut cells, mut paging_state) = (Vec::new(), None);
    loop {
        let options = ExecuteOptions {
            consistency: Consistency::QUORUM,
            page_size: Some(page_size),
            paging_state,
            ..ExecuteOptions::default()
        };
        let page = execute_with(node, "SELECT k, v FROM ks.cells", &options)?;
        let mut numbers = page.cells.iter().map(number);
        while let (Some(key), Some(value)) = (numbers.next(), numbers.next()) {
            cells.push((key.unwrap_or(0), value.unwrap_or(0)));
        }
        match page.paging_state {
            Some(state) => paging_state = Some(Bytes::from(state)),
            None => return Ok(Reply::Cells(cells)),
        }
    }
}

fn change(node: &Process, command: Command) -> Result<Reply, Error> {
    let done = |text: &str, values: &[u64]| {
        let values: Vec<i64> = values.iter().map(|value| signed(*value)).collect();
        run(node, text, &values, Consistency::QUORUM)
    };
    let cells = match command {
        Command::Barrier => return Ok(Reply::Refused),
        // The condition always holds. It makes the write a command, which the log orders; the clocks of nodes do not order writes.
        Command::Write(key, value) => {
            let text = "UPDATE ks.registers SET v = ? WHERE k = ? IF v != -1";
            return done(text, &[value, key]).map(|_| Reply::Done(None));
        }
        Command::CompareAndSet(key, None, value) => {
            let text = "UPDATE ks.registers SET v = ? WHERE k = ? IF v = null";
            done(text, &[value, key])?
        }
        Command::CompareAndSet(key, Some(expected), value) => match more(node, "registers") {
            None => done(
                "UPDATE ks.registers SET v = ? WHERE k = ? IF v = ?",
                &[value, key, expected],
            )?,
            Some(more) => {
                let text = format!("UPDATE ks.registers SET v = ?, {more} = ? WHERE k = ? IF v = ?");
                done(&text, &[value, value, key, expected])?
            }
        },
        Command::Add(key, amount) => {
            let text = "UPDATE ks.counters SET n = n + ? WHERE k = ?";
            return done(text, &[amount.cast_unsigned(), key]).map(|_| Reply::Done(None));
        }
        Command::Batch(keys, version) => {
            let more = more(node, "cells");
            let columns = more.as_ref().map_or("v".to_owned(), |more| format!("v, {more}"));
            let markers = more.as_ref().map_or("?", |_| "?, ?");
            let insert = format!("INSERT INTO ks.cells (k, {columns}) VALUES (?, {markers})");
            let mut values = vec![version];
            for key in keys {
                values.extend([key, version]);
                values.extend(more.as_ref().map(|_| version));
            }
            // The cells are in several tablets.
            let text = format!("BEGIN BATCH USING TIMESTAMP ? {insert} {insert} APPLY BATCH");
            return done(&text, &values).map(|_| Reply::Done(None));
        }
    };
    let is_applied = cells.first().is_some_and(|cell| cell.as_deref() == Some(&[1]));
    // A row that does not exist has no value.
    let found = cells.get(1..).and_then(last).map(i64::cast_unsigned);
    Ok(Reply::Done((!is_applied).then_some(found)))
}

fn alter(node: &Process, kind: u64) -> Result<Reply, Error> {
    let altered = |table: &str| match more(node, table) {
        Some(more) => format!("ALTER TABLE ks.{table} DROP {more}"),
        // A new name each time: cells of a dropped column that are newer than its drop may come back on some replicas if its name is used
        // again, as in Cassandra.
        None => format!(
            "ALTER TABLE ks.{table} ADD more{} bigint",
            node.local.random_uuid().simple()
        ),
    };
    let text = match kind {
        0 | 1 => altered("cells"),
        2 | 3 => altered("registers"),
        4 => "CREATE TABLE ks.other (k bigint PRIMARY KEY, v bigint)".to_owned(),
        _ => "DROP TABLE ks.other".to_owned(),
    };
    run(node, &text, &[], Consistency::QUORUM).map(|_| Reply::Done(None))
}

/// The column that `alter` adds and drops; `None` if the table does not have it now.
fn more(node: &Process, table: &str) -> Option<String> {
    let schema = node.local.schema();
    let columns = schema.table("ks", table)?.every_column();
    let more = columns.iter().find(|column| column.name.starts_with("more"));
    more.map(|column| column.name.to_string())
}

/// Executes a statement, and waits until it is acknowledged. Returns the cells of its rows, one row after another.
pub(super) fn run(
    node: &Process,
    text: &str,
    values: &[i64],
    consistency: Consistency,
) -> Result<Vec<Option<Vec<u8>>>, Error> {
    let values = values
        .iter()
        .map(|value| Value::Bytes(Bytes::copy_from_slice(&value.to_be_bytes())));
    let options = ExecuteOptions {
        values: Values::Positional(values.collect()),
        consistency,
        ..ExecuteOptions::default()
    };
    Ok(execute_with(node, text, &options)?.cells)
}

/// The rows of an answer.
#[derive(Default)]
struct Page {
    /// The cells, one row after another.
    cells: Vec<Option<Vec<u8>>>,
    paging_state: Option<Vec<u8>>,
}

fn execute_with(node: &Process, text: &str, options: &ExecuteOptions) -> Result<Page, Error> {
    let executed = node.cluster.query(&mut ClientState::default(), text, options)?;
    if let Some(Awaited::Cluster(write)) = executed.awaited {
        let (sender, done) = std::sync::mpsc::channel();
        write.on_done(Box::new(move |result| drop(sender.send(result))));
        loop {
            match done.try_recv() {
                Ok(result) => break result?,
                // The node has ended.
                Err(std::sync::mpsc::TryRecvError::Disconnected) => {
                    return Err(Error::Overloaded("no answer".to_owned()));
                }
                Err(std::sync::mpsc::TryRecvError::Empty) => drop(ilion_env::turns::give_turn()),
            }
        }
    }
    let Outcome::Rows(rows) = executed.outcome else {
        return Ok(Page::default());
    };
    let (bytes, paging_state) = (rows.cells.into_vec(), rows.paging_state);
    let mut reader = ilion_codec::Reader::new(&bytes);
    let mut cells = Vec::new();
    while !reader.is_empty() {
        match reader.bytes32_or_null() {
            Ok(value) => cells.push(value.map(<[u8]>::to_vec)),
            Err(error) => panic!("an answer does not decode: {error}"),
        }
    }
    Ok(Page { cells, paging_state })
}

/// The bigint in the last cell.
fn last(cells: &[Option<Vec<u8>>]) -> Option<i64> {
    number(cells.last()?).map(u64::cast_signed)
}

/// The bigint in a cell.
fn number(cell: &Option<Vec<u8>>) -> Option<u64> {
    let cell = cell.as_ref()?;
    Some(cell.as_slice().try_into().map_or(0, u64::from_be_bytes))
}

fn signed(value: u64) -> i64 {
    value.cast_signed()
}

/// True if the statement had no effect, and will have none.
fn is_refusal(error: &Error) -> bool {
    matches!(
        error,
        Error::Invalid(_) | Error::Syntax(_) | Error::Config(_) | Error::AlreadyExists { .. }
    )
}
