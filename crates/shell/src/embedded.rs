//! [`Embedded`]: a session on a data directory, in this process. There is no login: a user who may read the files may read everything.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, mpsc};
use std::{iter, thread};

use ilion_codec::Reader;
use ilion_env::Env;
use ilion_node::{Counted, Node, OpenError, SchemaListener as _};
use ilion_protocol::{ColumnSpec, Rows, RowsMetadata};
use ilion_query::{
    BatchKind, BatchStatement, ClientState, Consistency, ExecuteOptions, Executed, Outcome, Prepared,
    ResultSet, Value, Values,
};
use ilion_server::error_response;
use ilion_settings::Settings;

use crate::row_batches::RowBatches;
use crate::session::{Answer, Body, Failure, How, Packing, RowFeed, Session, SessionTarget, WriteRow};

/// The rows of a request and their outcome.
type Written = (Vec<WriteRow>, Result<(), Failure>);

const WRITER_ENDED: &str = "the thread that writes rows has ended";

/// A session on a data directory.
pub struct Embedded {
    node: Node,
    client: ClientState,
    directory: String,
    /// The statement of `write_rows`.
    prepared: Option<Arc<Prepared>>,
}

impl Embedded {
    /// Opens a directory, created if absent.
    ///
    /// # Errors
    /// The directory is in use, damaged or belongs to another cluster, or the operating system refuses.
    pub fn open(env: Arc<dyn Env>, settings: &Settings) -> Result<Self, OpenError> {
        let node = Node::open(env, settings)?;
        Ok(Self::of(node, settings.directory.display().to_string()))
    }

    /// A session on an open node. `directory` is for people.
    pub(crate) fn of(node: Node, directory: String) -> Self {
        Self {
            node,
            client: ClientState::default(),
            directory,
            prepared: None,
        }
    }

    /// Executes, waits until writes are durable, and counts the costs for `system_views.statements`.
    fn execute_counted(
        &mut self,
        cql: &str,
        options: &ExecuteOptions,
    ) -> Result<Executed, ilion_query::Error> {
        let counted = Counted::begin(&self.node);
        let executed = self.execute_durably(cql, options);
        let shape = executed.as_ref().ok().and_then(|executed| executed.shape.clone());
        let shape = shape.unwrap_or_else(|| self.node.processor().shape_of(&self.client, cql, None));
        counted.finish(&self.node, &shape, executed.is_err());
        executed
    }

    fn execute_durably(
        &mut self,
        cql: &str,
        options: &ExecuteOptions,
    ) -> Result<Executed, ilion_query::Error> {
        let executed = self.node.processor().query(&mut self.client, cql, options)?;
        self.until_durable(executed)
    }

    /// Executes a prepared INSERT for rows, without waiting until they are durable.
    fn write(
        &mut self,
        prepared: &Arc<Prepared>,
        how: &How,
        rows: &[WriteRow],
    ) -> Result<Executed, ilion_query::Error> {
        let options = ExecuteOptions {
            consistency: Consistency(how.consistency.number()),
            ..ExecuteOptions::default()
        };
        let processor = self.node.processor();
        match rows {
            [row] => {
                let values = values(row);
                processor.execute(&mut self.client, prepared, &ExecuteOptions { values, ..options })
            }
            rows => {
                let statement = |row| (BatchStatement::Prepared(prepared.clone()), values(row));
                let statements = rows.iter().map(statement).collect();
                processor.batch(&mut self.client, BatchKind::Unlogged, statements, &options)
            }
        }
    }

    /// Writes batches; the log is synced once for all of them.
    fn write_group(
        &mut self,
        prepared: &Arc<Prepared>,
        how: &How,
        group: Vec<Vec<WriteRow>>,
    ) -> Vec<Written> {
        let executed: Vec<_> = group
            .iter()
            .map(|batch| self.write(prepared, how, batch))
            .collect();
        let outcomes = executed.into_iter().map(|executed| {
            let durable = executed.and_then(|executed| self.until_durable(executed));
            durable.map(drop).map_err(refused)
        });
        group.into_iter().zip(outcomes).collect()
    }

    fn until_durable(&self, executed: Executed) -> Result<Executed, ilion_query::Error> {
        match self.node.wait_durable(&executed) {
            Ok(()) => Ok(executed),
            Err(error) => Err(ilion_query::Error::ServerError(error.to_string())),
        }
    }
}

impl Session for Embedded {
    fn execute(&mut self, cql: &str, how: &How) -> Result<Answer, Failure> {
        if how.is_traced {
            return Err(Failure::Impossible("traces need a server"));
        }
        let options = ExecuteOptions {
            consistency: Consistency(how.consistency.number()),
            serial_consistency: Some(Consistency(how.serial_consistency.number())),
            page_size: how.page_size,
            paging_state: how.paging_state.clone(),
            ..ExecuteOptions::default()
        };
        let executed = self.execute_counted(cql, &options).map_err(refused)?;
        let body = match executed.outcome {
            Outcome::Void => Body::Done,
            Outcome::Rows(result) => Body::Rows(rows_of(result)),
            Outcome::SetKeyspace(keyspace) => {
                self.client.keyspace = Some(keyspace.clone());
                Body::Keyspace(keyspace)
            }
            Outcome::SchemaChange(changes) if changes.is_empty() => Body::Done,
            Outcome::SchemaChange(_) => {
                self.node.local().schema_changed();
                Body::SchemaChanged
            }
        };
        Ok(Answer {
            body,
            warnings: executed.warnings,
            trace: None,
        })
    }

    fn prepare(&mut self, cql: &str) -> Result<Vec<ColumnSpec>, Failure> {
        let prepared = self
            .node
            .processor()
            .prepare(&self.client, cql, None)
            .map_err(refused)?;
        let columns = prepared.variables.iter().map(column_of).collect();
        self.prepared = Some(prepared);
        Ok(columns)
    }

    fn write_rows(&mut self, how: &How, packing: &Packing, rows: &mut dyn RowFeed) -> Result<(), Failure> {
        let prepared = self
            .prepared
            .clone()
            .ok_or(Failure::Impossible("nothing was prepared"))?;
        let mut batches = RowBatches::new(rows, packing);
        // One thread reads rows and makes them values, the other writes them, in the same order.
        thread::scope(|scope| {
            let (to_writer, groups) = mpsc::sync_channel::<Vec<Vec<WriteRow>>>(1);
            let (to_reader, outcomes) = mpsc::channel();
            scope.spawn(move || {
                for group in groups {
                    if to_reader.send(self.write_group(&prepared, how, group)).is_err() {
                        return;
                    }
                }
            });
            let mut under_way = 0;
            loop {
                let next = iter::from_fn(|| batches.next());
                let group: Vec<_> = next.take(packing.requests_max).collect();
                let is_empty = group.is_empty();
                if is_empty && under_way == 0 {
                    return Ok(());
                }
                if !is_empty {
                    to_writer
                        .send(group)
                        .map_err(|_| Failure::Impossible(WRITER_ENDED))?;
                    under_way += 1;
                }
                // While the writer has a group, the next one is read. At the end, refused batches can give further rows.
                while under_way > usize::from(!is_empty) {
                    let written: Vec<Written> =
                        outcomes.recv().map_err(|_| Failure::Impossible(WRITER_ENDED))?;
                    under_way -= 1;
                    for (batch, outcome) in written {
                        batches.done(batch, outcome);
                    }
                }
            }
        })
    }

    fn log_in(&mut self, _role: &str, _password: &str) -> Result<(), Failure> {
        Err(Failure::Impossible(
            "LOGIN needs a server: on a data directory, nobody logs in.",
        ))
    }

    fn target(&self) -> SessionTarget {
        SessionTarget::Directory(self.directory.clone())
    }
}

fn values(row: &WriteRow) -> Values {
    let value = |index| row.values.value_bytes(index).map_or(Value::Null, Value::Bytes);
    Values::Positional((0..row.values.len()).map(value).collect())
}

/// The failure that a server would report for this error.
fn refused(error: ilion_query::Error) -> Failure {
    Failure::Refused(Box::new(error_response(error, IpAddr::V4(Ipv4Addr::LOCALHOST))))
}

fn column_of(column: &ilion_query::ColumnSpec) -> ColumnSpec {
    ColumnSpec {
        keyspace: column.keyspace.clone(),
        table: column.table.clone(),
        name: column.name.clone(),
        cql_type: column.ty.clone(),
    }
}

fn rows_of(result: ResultSet) -> Rows {
    let columns = result.columns.iter().map(column_of);
    let metadata = RowsMetadata {
        paging_state: result.paging_state.map(Into::into),
        ..RowsMetadata::new(columns.collect())
    };
    let width = metadata.column_count;
    let cells = result.cells.into_vec();
    let mut reader = Reader::new(&cells);
    let rows = (0..result.row_count).map(|_| {
        let cells = (0..width).map(|_| reader.bytes32_or_null().unwrap_or_default());
        cells.collect::<Vec<_>>()
    });
    Rows::new(metadata, rows)
}
