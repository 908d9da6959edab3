//! [`Flight`]: many writes under way on one connection.

use ilion_client::{Connection, request_frame};
use ilion_protocol::{
    Batch, BatchKind, BatchStatement, Execute, Prepared, QueryParams, Request, Response, ResponseFrame,
    StatementSource, encode_request,
};

use crate::row_batches::RowBatches;
use crate::session::{Failure, How, WriteRow};

/// About this many bytes of requests are sent with one system call.
const SEND_BYTES: usize = 64 << 10;

/// The rows whose answers are awaited, by the streams of their requests.
pub struct Flight {
    batches: Vec<Option<Vec<WriteRow>>>,
    free: Vec<i16>,
}

impl Flight {
    /// A flight with room for this many requests; at most as many as there are streams.
    pub fn new(requests_max: usize) -> Self {
        let streams = i16::try_from(requests_max.max(1)).unwrap_or(i16::MAX);
        Self {
            batches: (0..streams).map(|_| None).collect(),
            free: (0..streams).collect(),
        }
    }

    /// Executes the prepared statement for all rows.
    ///
    /// # Errors
    /// The connection broke.
    pub fn run(
        &mut self,
        connection: &mut Connection,
        prepared: &Prepared,
        how: &How,
        rows: &mut RowBatches<'_>,
    ) -> Result<(), Failure> {
        let lost = |error: anyhow::Error| Failure::Lost(format!("{error:#}"));
        loop {
            while connection.output.len() < SEND_BYTES {
                let Some(stream) = self.free.pop() else {
                    break;
                };
                let Some(batch) = rows.next() else {
                    self.free.push(stream);
                    break;
                };
                let request = request_frame(connection.version(), stream, request(prepared, how, &batch));
                match encode_request(&mut connection.output, &request, None) {
                    Ok(()) => self.batches[usize::from(stream.unsigned_abs())] = Some(batch),
                    Err(error) => {
                        self.free.push(stream);
                        rows.done(batch, Err(Failure::Lost(error.to_string())));
                    }
                }
            }
            if !connection.output.is_empty() {
                connection.send().map_err(lost)?;
            }
            if self.free.len() == self.batches.len() {
                return Ok(());
            }
            connection.receive().map_err(lost)?;
            while let Some(frame) = connection.next_frame().map_err(lost)? {
                let answer =
                    ResponseFrame::decode(&frame).map_err(|error| Failure::Lost(error.to_string()))?;
                self.land(answer, rows)?;
            }
        }
    }

    /// Gives the rows of a request back with their outcome.
    fn land(&mut self, answer: ResponseFrame, rows: &mut RowBatches<'_>) -> Result<(), Failure> {
        let slot = usize::try_from(answer.stream)
            .ok()
            .and_then(|slot| self.batches.get_mut(slot));
        let Some(batch) = slot.and_then(Option::take) else {
            let stream = answer.stream;
            return Err(Failure::Lost(format!(
                "the server answered stream {stream}, on which nothing was asked"
            )));
        };
        self.free.push(answer.stream);
        let outcome = match answer.response {
            Response::Error(error) => Err(Failure::Refused(Box::new(error))),
            _ => Ok(()),
        };
        rows.done(batch, outcome);
        Ok(())
    }

    /// The rows of all requests whose answers will not come.
    pub fn under_way(&mut self) -> impl Iterator<Item = Vec<WriteRow>> {
        self.batches.iter_mut().filter_map(Option::take)
    }
}

fn request(prepared: &Prepared, how: &How, batch: &[WriteRow]) -> Request {
    match batch {
        [row] => Request::Execute(Execute {
            id: prepared.id.clone(),
            result_metadata_id: prepared.result_metadata_id.clone(),
            params: QueryParams {
                consistency: how.consistency,
                values: row.values.clone(),
                skip_metadata: true,
                ..QueryParams::default()
            },
        }),
        rows => Request::Batch(Batch {
            kind: BatchKind::Unlogged,
            statements: rows.iter().map(|row| statement(prepared, row)).collect(),
            consistency: how.consistency,
            ..Batch::default()
        }),
    }
}

fn statement(prepared: &Prepared, row: &WriteRow) -> BatchStatement {
    BatchStatement {
        source: StatementSource::Prepared(prepared.id.clone()),
        values: row.values.clone(),
    }
}
