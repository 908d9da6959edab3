//! Executes requests of an open session: one function for each opcode.

use std::net::IpAddr;
use std::sync::Arc;

use ilion_env::{parking, spectrogram};
use ilion_node::SchemaListener;
use ilion_protocol::{
    Batch, BatchKind, BindMetadata, CustomPayload, ErrorResponse, Event, Execute, Prepare, Query,
    QueryParams, Request, RequestFrame, Response, ResultBody, RowsMetadata, SchemaChange, StatementSource,
    Supported, Version,
};
use ilion_query::{
    Awaited, BatchStatement, ClientState, Consistency, Decided, Error, ExecuteOptions, Executed, Outcome,
    Prepared, ResultSet, Shape, StatementWeight, Value, Values,
};
use uuid::Uuid;

use crate::answer::{Metadata, Reply, convert_columns};
use crate::error_table::error_response;
use crate::schema_events::schema_change;
use crate::session::{ConnectionStage, Session};
use crate::statements::Statements;
use crate::subject::Subject;
use crate::weight::weigh;

/// An answer, not yet encoded, with its warnings, events and position in the commit log.
pub(crate) struct Answered {
    pub reply: Reply,
    pub awaited: Option<Awaited>,
    pub warnings: Vec<String>,
    pub events: Vec<Event>,
    /// The statement of the request.
    pub subject: Subject,
    /// The id of the trace; `None` if the client did not request one.
    pub tracing_id: Option<Uuid>,
    pub payload: CustomPayload,
}

impl Answered {
    pub fn of(reply: Reply) -> Self {
        Self {
            reply,
            awaited: None,
            warnings: Vec::new(),
            events: Vec::new(),
            subject: Subject::None,
            tracing_id: None,
            payload: CustomPayload::new(),
        }
    }
}

/// Selects the queue of a request.
pub(crate) fn weigh_request(statements: &dyn Statements, request: &Request) -> StatementWeight {
    match request {
        Request::Query(query) => weigh(&query.text),
        Request::Execute(execute) => statements
            .prepared(&execute.id)
            .map_or(StatementWeight::Point, |prepared| prepared.weight),
        _ => StatementWeight::Point,
    }
}

/// Executes requests.
pub(crate) struct Requests {
    pub statements: Arc<dyn Statements>,
    pub schema_listener: Arc<dyn SchemaListener>,
    /// The address of the replica that errors name.
    pub node: IpAddr,
}

impl Requests {
    pub fn answer(&self, session: &Session, client: &mut ClientState, frame: &RequestFrame) -> Answered {
        if let Err(error) = expect_in_stage(session.stage(), &frame.request) {
            return Answered::of(Reply::error(error));
        }
        let answered = match &frame.request {
            Request::Options => return Answered::of(supported()),
            Request::Register(register) => {
                session.register(&register.events);
                return Answered::of(Reply::Response(Response::Ready));
            }
            // A session keeps its identity. Compat: without logins any AUTH_RESPONSE is a success.
            Request::AuthResponse(_) if client.identity.role().is_some() => {
                return Answered::of(Reply::error(ErrorResponse::protocol(
                    "Unexpected message AUTH_RESPONSE, the connection is already authenticated",
                )));
            }
            Request::AuthResponse(_) => {
                return Answered::of(Reply::Response(Response::AuthSuccess(None)));
            }
            // Unreachable: `expect_in_stage` has refused a second STARTUP.
            Request::Startup(_) => return Answered::of(Reply::error(second_startup())),
            Request::Prepare(prepare) => self.prepare(session, client, prepare),
            Request::Query(query) => self.query(client, query),
            Request::Execute(execute) => self.execute(session, client, execute, frame.version),
            Request::Batch(batch) => self.batch(client, batch),
        };
        answered.unwrap_or_else(|error| self.refused(error))
    }

    fn query(&self, client: &mut ClientState, query: &Query) -> Result<Answered, Error> {
        let options = options_of(&query.params);
        let mut subject = None;
        let mut executed = decided().unwrap_or_else(|| self.statements.query(client, &query.text, &options));
        if let Ok(executed) = &mut executed {
            subject = executed.shape.take();
        }
        let answered = self.answered_or_refused(executed);
        let keyspace = options.keyspace.as_deref();
        let subject = subject.unwrap_or_else(|| self.statements.shape_of(client, &query.text, keyspace));
        Ok(Answered {
            subject: Subject::Text(subject),
            ..answered
        })
    }

    fn execute(
        &self,
        session: &Session,
        client: &mut ClientState,
        execute: &Execute,
        version: Version,
    ) -> Result<Answered, Error> {
        let prepared = self.statements.prepared(&execute.id);
        // A command was executed, even if its statement was forgotten since.
        if let Some(decided) = decided() {
            let answered = self.answered_or_refused(decided);
            let subject = prepared.map_or(answered.subject, Subject::Prepared);
            return Ok(Answered { subject, ..answered });
        }
        let prepared = prepared.ok_or_else(|| unprepared(&execute.id))?;
        let options = options_of(&execute.params);
        let answered = match self.statements.execute(client, &prepared, &options) {
            Ok(executed) => self.answered(executed, |result| {
                match metadata_of(&result, &prepared, execute, version, session) {
                    Some(metadata) => Reply::PreparedRows { metadata, result },
                    None => Reply::error(error_response(unprepared(&execute.id), self.node)),
                }
            }),
            Err(error) => self.refused(error),
        };
        Ok(Answered {
            subject: Subject::Prepared(prepared),
            ..answered
        })
    }

    fn prepare(
        &self,
        session: &Session,
        client: &mut ClientState,
        prepare: &Prepare,
    ) -> Result<Answered, Error> {
        let keyspace = prepare.keyspace.as_deref();
        let prepared = self.statements.prepare(client, &prepare.text, keyspace)?;
        if prepared.has_changed {
            session
                .sent_metadata
                .note(prepared.id, prepared.result_metadata_id);
        }
        let warnings = prepared.warning(client, keyspace).into_iter().collect();
        let result = match &prepared.result_columns {
            Some(columns) => RowsMetadata::new(convert_columns(columns)),
            None => RowsMetadata::none(),
        };
        let reply = Reply::result(ResultBody::Prepared(ilion_protocol::Prepared {
            id: prepared.id.to_vec().into(),
            result_metadata_id: prepared.result_metadata_id.to_vec().into(),
            bind: BindMetadata {
                columns: convert_columns(&prepared.variables),
                partition_key_indexes: prepared.partition_key_indexes.clone(),
            },
            result,
        }));
        Ok(Answered {
            warnings,
            ..Answered::of(reply)
        })
    }

    fn batch(&self, client: &mut ClientState, batch: &Batch) -> Result<Answered, Error> {
        let (mut statements, mut forgotten) = (Vec::with_capacity(batch.statements.len()), None);
        for statement in &batch.statements {
            let source = match &statement.source {
                StatementSource::Text(text) => BatchStatement::Text(text.clone()),
                StatementSource::Prepared(id) => match self.member_of_batch(id, statements.last()) {
                    Some(prepared) => BatchStatement::Prepared(prepared),
                    None => {
                        forgotten.get_or_insert(unprepared(id));
                        continue;
                    }
                },
            };
            statements.push((source, values_of(&statement.values)));
        }
        let kind = match batch.kind {
            BatchKind::Logged => ilion_query::BatchKind::Logged,
            BatchKind::Unlogged => ilion_query::BatchKind::Unlogged,
            BatchKind::Counter => ilion_query::BatchKind::Counter,
        };
        let options = ExecuteOptions {
            consistency: Consistency(batch.consistency.number()),
            serial_consistency: batch.serial_consistency.map(|level| Consistency(level.number())),
            timestamp_micros: batch.timestamp_micros,
            now_secs: batch.now_secs,
            keyspace: batch.keyspace.clone(),
            may_park: true,
            ..ExecuteOptions::default()
        };
        let subject = self.subject_of_batch(client, kind, &statements, &options);
        // As for EXECUTE.
        if let Some(decided) = decided() {
            let answered = self.answered_or_refused(decided);
            return Ok(Answered { subject, ..answered });
        }
        if let Some(unprepared) = forgotten {
            return Err(unprepared);
        }
        let before = spectrogram::set_statement(subject.id().unwrap_or_default());
        let executed = self.statements.batch(client, kind, statements, &options);
        spectrogram::set_statement(before);
        let answered = self.answered_or_refused(executed);
        Ok(Answered { subject, ..answered })
    }

    fn subject_of_batch(
        &self,
        client: &ClientState,
        kind: ilion_query::BatchKind,
        statements: &[(BatchStatement, Values)],
        options: &ExecuteOptions,
    ) -> Subject {
        let of_text = |cql: &str| self.statements.shape_of(client, cql, options.keyspace.as_deref());
        let shapes = statements.iter().map(|(statement, _)| statement.shape(of_text));
        Subject::Batch {
            kind: kind.prefix(),
            members: Shape::members_of_batch(shapes),
        }
    }

    /// A prepared statement; the one before it in the batch is often the same.
    fn member_of_batch(&self, id: &[u8], last: Option<&(BatchStatement, Values)>) -> Option<Arc<Prepared>> {
        match last {
            Some((BatchStatement::Prepared(last), _)) if last.id == *id => Some(last.clone()),
            _ => self.statements.prepared(id),
        }
    }

    fn answered_or_refused(&self, executed: Result<Executed, Error>) -> Answered {
        match executed {
            Ok(executed) => self.answered(executed, Reply::Rows),
            Err(error) => self.refused(error),
        }
    }

    fn refused(&self, error: Error) -> Answered {
        Answered::of(Reply::error(error_response(error, self.node)))
    }

    fn answered(&self, executed: Executed, rows: impl FnOnce(ResultSet) -> Reply) -> Answered {
        let mut events = Vec::new();
        let reply = match executed.outcome {
            Outcome::Void => Reply::void(),
            Outcome::Rows(result) => rows(result),
            Outcome::SetKeyspace(keyspace) => Reply::result(ResultBody::SetKeyspace(keyspace)),
            Outcome::SchemaChange(changes) => {
                let changes: Vec<SchemaChange> = changes.into_iter().map(schema_change).collect();
                let reply = match changes.first() {
                    Some(first) => {
                        self.schema_listener.schema_changed();
                        ResultBody::SchemaChange(first.clone())
                    }
                    None => ResultBody::Void,
                };
                if !self.schema_listener.is_announced_by_log() {
                    events = changes.into_iter().map(Event::Schema).collect();
                }
                Reply::result(reply)
            }
        };
        Answered {
            awaited: executed.awaited,
            warnings: executed.warnings,
            events,
            ..Answered::of(reply)
        }
    }
}

/// The answer to OPTIONS.
pub(crate) fn supported() -> Reply {
    Reply::Response(Response::Supported(Supported::of_ilion()))
}

/// Refuses a request that is not allowed in this stage. Compat: `ServerConnection.validateNewMessage` of Cassandra 5.0.
pub(crate) fn expect_in_stage(stage: ConnectionStage, request: &Request) -> Result<(), ErrorResponse> {
    let expected = match (stage, request) {
        (ConnectionStage::Established, Request::Startup(_) | Request::Options) => return Ok(()),
        (ConnectionStage::Established, _) => "STARTUP or OPTIONS",
        (ConnectionStage::Authenticating, Request::AuthResponse(_)) => return Ok(()),
        (ConnectionStage::Authenticating, _) => "SASL_RESPONSE",
        (ConnectionStage::Checking, _) => "nothing before the login is answered",
        (ConnectionStage::Refused, _) => "nothing after a refused certificate",
        (ConnectionStage::Ready, Request::Startup(_)) => return Err(second_startup()),
        (ConnectionStage::Ready, _) => return Ok(()),
    };
    Err(ErrorResponse::protocol(format!(
        "Unexpected message {}, expecting {expected}",
        request.opcode()
    )))
}

fn second_startup() -> ErrorResponse {
    ErrorResponse::protocol("Unexpected message STARTUP, the connection is already initialized")
}

fn unprepared(id: &[u8]) -> Error {
    Error::Unprepared { id: id.to_vec() }
}

/// The metadata to send with the rows. Returns `None` if the client wants no metadata, but may know other columns: then the client must
/// prepare the statement again.
///
/// Compat: as in `ExecuteMessage` of Cassandra 5.0, answers of conditional statements always have full metadata, since their
/// columns depend on the outcome and have no id. Unlike Cassandra before v5, a client is not assumed to know the columns that
/// another client prepared last: drivers that rely on that show values under wrong names.
fn metadata_of(
    result: &ResultSet,
    prepared: &Prepared,
    execute: &Execute,
    version: Version,
    session: &Session,
) -> Option<Metadata> {
    let Some(id) = result.metadata_id else {
        return Some(Metadata::Full);
    };
    if version >= Version::V5 {
        let is_known = execute.result_metadata_id == id[..];
        return Some(match (is_known, execute.params.skip_metadata) {
            (true, true) => Metadata::Skip,
            (true, false) => Metadata::Full,
            (false, _) => Metadata::Changed(id),
        });
    }
    if !execute.params.skip_metadata || prepared.result_columns.is_none() {
        return Some(Metadata::Full);
    }
    let is_known = if prepared.has_changed {
        session.sent_metadata.has(&prepared.id, &id)
    } else {
        prepared.result_metadata_id == id
    };
    is_known.then_some(Metadata::Skip)
}

fn options_of(params: &QueryParams) -> ExecuteOptions {
    ExecuteOptions {
        values: values_of(&params.values),
        consistency: Consistency(params.consistency.number()),
        serial_consistency: params.serial_consistency.map(|level| Consistency(level.number())),
        page_size: params.page_size,
        paging_state: params.paging_state.clone(),
        timestamp_micros: params.timestamp_micros,
        now_secs: params.now_secs,
        keyspace: params.keyspace.clone(),
        function_results: None,
        timeout: None,
        may_park: true,
    }
}

/// What came of the command of this request, if the request was parked for that. `None` also if the command must be sent again.
fn decided() -> Option<Result<Executed, Error>> {
    let Decided(decided) = parking::outcome()?;
    Some(decided).filter(|decided| !matches!(decided, Err(Error::Overtaken)))
}

fn values_of(values: &ilion_protocol::Values) -> Values {
    if values.is_empty() {
        return Values::None;
    }
    let given = (0..values.len()).map(|index| value_at(values, index));
    match values.names() {
        None => Values::Positional(given.collect()),
        Some(names) => Values::Named(names.iter().cloned().zip(given).collect()),
    }
}

fn value_at(values: &ilion_protocol::Values, index: usize) -> Value {
    match (values.value_bytes(index), values.value(index)) {
        (Some(bytes), _) => Value::Bytes(bytes),
        (None, Some(ilion_protocol::Value::Unset)) => Value::Unset,
        (None, _) => Value::Null,
    }
}
