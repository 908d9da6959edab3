//! DESCRIBE: the server's answer, printed. Compat: as cqlsh prints it.

use std::io;

use ilion_protocol::Rows;
use ilion_types::Value;

use crate::cell::texts_of;
use crate::columnize::columnize;
use crate::command::Described;
use crate::session::{Body, Failure, How};
use crate::shell::Shell;

impl Shell<'_> {
    /// Sends DESCRIBE to the server, and prints the answer.
    pub(crate) fn describe(&mut self, what: Described, cql: &str) -> io::Result<()> {
        let answer = match self.session.execute(cql, &How::default()) {
            Ok(answer) => answer,
            Err(Failure::Refused(error)) => return self.complain(&error.message),
            Err(failure) => return self.complain_of(&failure),
        };
        if let Body::Rows(rows) = &answer.body {
            match what {
                Described::Keyspaces => {
                    self.output.say("")?;
                    let names: Vec<String> = column(rows, "name").collect();
                    columnize(&names)
                        .iter()
                        .try_for_each(|line| self.output.say(line))?;
                    self.output.say("")?;
                }
                Described::Names => self.describe_names(rows)?,
                Described::Cluster => self.describe_cluster(rows)?,
                Described::Element => {
                    for statement in column(rows, "create_statement") {
                        self.output.result("")?;
                        self.output.result(&statement)?;
                    }
                }
            }
        }
        self.warn(&answer.warnings)
    }

    fn describe_names(&mut self, rows: &Rows) -> io::Result<()> {
        let pairs: Vec<(String, String)> = column(rows, "keyspace_name").zip(column(rows, "name")).collect();
        for group in pairs.chunk_by(|left, right| left.0 == right.0) {
            self.output.say("")?;
            if self.keyspace.is_none() {
                let keyspace = &group[0].0;
                self.output.say(&format!("Keyspace {keyspace}"))?;
                self.output
                    .say(&format!("---------{}", "-".repeat(keyspace.chars().count())))?;
            }
            let names: Vec<String> = group.iter().map(|(_, name)| name.clone()).collect();
            columnize(&names)
                .iter()
                .try_for_each(|line| self.output.say(line))?;
        }
        match pairs.is_empty() {
            true => Ok(()),
            false => self.output.say(""),
        }
    }

    fn describe_cluster(&mut self, rows: &Rows) -> io::Result<()> {
        let named = |name| column(rows, name).next().unwrap_or_default();
        self.output.say(&format!("\nCluster: {}", named("cluster")))?;
        self.output
            .say(&format!("Partitioner: {}", named("partitioner")))?;
        self.output.say(&format!("Snitch: {}\n", named("snitch")))?;
        let ownership = ownership(rows);
        if !ownership.is_empty() {
            self.output.say("Range ownership:")?;
            for (token, nodes) in ownership {
                self.output
                    .say(&format!(" {token:>39}  [{}]", nodes.join(", ")))?;
            }
            self.output.say("")?;
        }
        Ok(())
    }
}

/// The values of a column as texts.
fn column(rows: &Rows, name: &str) -> impl Iterator<Item = String> {
    let columns = rows.metadata.columns.as_deref().unwrap_or_default();
    let index = columns.iter().position(|column| &*column.name == name);
    let rows = texts_of(rows).into_iter();
    rows.map(move |row| {
        index
            .and_then(|index| row.get(index).cloned())
            .unwrap_or_default()
    })
}

/// The nodes of each range, if the answer has them.
fn ownership(rows: &Rows) -> Vec<(String, Vec<String>)> {
    let columns = rows.metadata.columns.as_deref().unwrap_or_default();
    let Some(index) = columns
        .iter()
        .position(|column| &*column.name == "range_ownership")
    else {
        return Vec::new();
    };
    let cell = rows
        .rows()
        .next()
        .and_then(|row| row.get(index).copied().flatten().map(<[u8]>::to_vec));
    let value = cell.and_then(|bytes| Value::decode(&columns[index].cql_type, &bytes).ok());
    let Some(Value::Map(entries)) = value else {
        return Vec::new();
    };
    let text = |value: &Value| match value {
        Value::Text(text) => text.to_string(),
        other => format!("{other:?}"),
    };
    let nodes = |value: &Value| match value {
        Value::List(nodes) => nodes.iter().map(text).collect(),
        other => vec![text(other)],
    };
    entries
        .iter()
        .map(|(token, hosts)| (text(token), nodes(hosts)))
        .collect()
}
