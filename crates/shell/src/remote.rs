//! [`Remote`]: a session on a server, over the native protocol.

use ilion_client::{Connection, Target, request_frame};
use ilion_protocol::{
    ColumnSpec, ErrorDetail, ErrorResponse, Prepared, Query, QueryParams, Request, RequestFrame, Response,
    ResultBody, Version,
};

use crate::flight::Flight;
use crate::row_batches::RowBatches;
use crate::session::{Answer, Body, Failure, How, Packing, RowFeed, Session, SessionTarget};

/// A session on a server. If its connection breaks, the next statement opens another one.
pub struct Remote {
    target: Target,
    connection: Option<Connection>,
    /// The version of the protocol on the last connection.
    version: Version,
    /// The keyspace that USE has set.
    keyspace: Option<String>,
    /// The statement of `write_rows`.
    prepared: Option<Prepared>,
}

impl Remote {
    /// Connects and logs in.
    ///
    /// # Errors
    /// No server listens there, or it refuses the login.
    pub fn open(target: Target) -> anyhow::Result<Self> {
        let connection = Connection::open(&target)?;
        Ok(Self {
            target,
            version: connection.version(),
            connection: Some(connection),
            keyspace: None,
            prepared: None,
        })
    }

    /// The open connection, or a new one in the same keyspace.
    fn connection(&mut self) -> Result<&mut Connection, Failure> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => reopen(&self.target, self.keyspace.as_deref())?,
        };
        self.version = connection.version();
        Ok(self.connection.insert(connection))
    }
}

impl Session for Remote {
    fn execute(&mut self, cql: &str, how: &How) -> Result<Answer, Failure> {
        let connection = self.connection()?;
        let request = RequestFrame {
            tracing: how.is_traced,
            ..request_frame(connection.version(), 0, query(cql, how))
        };
        let frame = match connection.ask_frame(&request) {
            Ok(frame) => frame,
            Err(error) => {
                // A late answer would be taken for the answer to the next statement.
                self.connection = None;
                return Err(lost(&error));
            }
        };
        let body = match frame.response {
            Response::Result(ResultBody::Rows(rows)) => Body::Rows(rows),
            Response::Result(ResultBody::SetKeyspace(keyspace)) => {
                self.keyspace = Some(keyspace.clone());
                Body::Keyspace(keyspace)
            }
            Response::Result(ResultBody::SchemaChange(_)) => Body::SchemaChanged,
            Response::Result(_) => Body::Done,
            Response::Error(error) => return Err(Failure::Refused(Box::new(error))),
            other => {
                let message = format!("the server answered a statement with {}", other.opcode());
                return Err(Failure::Lost(message));
            }
        };
        Ok(Answer {
            body,
            warnings: frame.warnings,
            trace: frame.tracing_id,
        })
    }

    fn prepare(&mut self, cql: &str) -> Result<Vec<ColumnSpec>, Failure> {
        let prepared = self.connection()?.prepare(cql.to_owned());
        let prepared = prepared.map_err(|error| lost(&error))?;
        let columns = prepared.bind.columns.clone();
        self.prepared = Some(prepared);
        Ok(columns)
    }

    fn write_rows(&mut self, how: &How, packing: &Packing, rows: &mut dyn RowFeed) -> Result<(), Failure> {
        let prepared = match &self.prepared {
            Some(prepared) => prepared.clone(),
            None => return Err(Failure::Impossible("nothing was prepared")),
        };
        let mut flight = Flight::new(packing.requests_max);
        let mut batches = RowBatches::new(rows, packing);
        let outcome = flight.run(self.connection()?, &prepared, how, &mut batches);
        if outcome.is_err() {
            self.connection = None;
            batches.give_up(flight.under_way());
        }
        outcome
    }

    fn log_in(&mut self, role: &str, password: &str) -> Result<(), Failure> {
        let target = self.target.clone().with_credentials(role, password);
        let connection = reopen(&target, self.keyspace.as_deref())?;
        self.connection = Some(connection);
        self.target = target;
        Ok(())
    }

    fn target(&self) -> SessionTarget {
        SessionTarget::Server {
            address: self.target.address().to_owned(),
            protocol: self.version.number(),
        }
    }
}

fn query(cql: &str, how: &How) -> Request {
    Request::Query(Query {
        text: cql.to_owned(),
        params: QueryParams {
            consistency: how.consistency,
            serial_consistency: Some(how.serial_consistency),
            page_size: how.page_size,
            paging_state: how.paging_state.clone(),
            ..QueryParams::default()
        },
    })
}

/// Opens a connection in a keyspace.
fn reopen(target: &Target, keyspace: Option<&str>) -> Result<Connection, Failure> {
    let mut connection = Connection::open(target).map_err(|error| lost(&error))?;
    if let Some(keyspace) = keyspace {
        let cql = format!("USE {}", ilion_types::quote_name(keyspace));
        connection.query(&cql).map_err(|error| lost(&error))?;
    }
    Ok(connection)
}

/// The server's own error, if it sent one; otherwise what happened to the connection.
fn lost(error: &anyhow::Error) -> Failure {
    match error.downcast_ref::<ErrorResponse>() {
        Some(refusal) if !matches!(refusal.detail, ErrorDetail::Protocol) => {
            Failure::Refused(Box::new(refusal.clone()))
        }
        _ => Failure::Lost(format!("{error:#}")),
    }
}
