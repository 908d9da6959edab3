//! [`Flight`]: many writes under way on one connection.

use ilion_client::{Connection, request_frame};
use ilion_protocol::{
    Execute, Prepared, QueryParams, Request, Response, ResponseFrame, Value, Values, encode_request,
};

use crate::session::{Failure, How, RowFeed, WriteRow};

/// About this many bytes of requests are sent with one system call.
const SEND_BYTES: usize = 64 << 10;

/// The rows whose answers are awaited, by the streams of their requests.
pub struct Flight {
    rows: Vec<Option<WriteRow>>,
    free: Vec<i16>,
}

impl Flight {
    /// A flight with room for this many rows; at most as many as there are streams.
    pub fn new(in_flight: usize) -> Self {
        let streams = i16::try_from(in_flight.max(1)).unwrap_or(i16::MAX);
        Self {
            rows: (0..streams).map(|_| None).collect(),
            free: (0..streams).collect(),
        }
    }

    /// Executes the prepared statement for all rows of a feed.
    ///
    /// # Errors
    /// The connection broke.
    pub fn run(
        &mut self,
        connection: &mut Connection,
        prepared: &Prepared,
        how: &How,
        rows: &mut dyn RowFeed,
    ) -> Result<(), Failure> {
        let lost = |error: anyhow::Error| Failure::Lost(format!("{error:#}"));
        let mut has_more = true;
        loop {
            while has_more && connection.output.len() < SEND_BYTES {
                let Some(stream) = self.free.pop() else {
                    break;
                };
                let Some(row) = rows.next() else {
                    self.free.push(stream);
                    has_more = false;
                    break;
                };
                let request = request_frame(connection.version(), stream, execute(prepared, how, &row));
                match encode_request(&mut connection.output, &request, None) {
                    Ok(()) => self.rows[usize::from(stream.unsigned_abs())] = Some(row),
                    Err(error) => {
                        self.free.push(stream);
                        rows.done(row, Err(Failure::Lost(error.to_string())));
                    }
                }
            }
            if !connection.output.is_empty() {
                connection.send().map_err(lost)?;
            }
            if self.free.len() == self.rows.len() {
                if !has_more {
                    return Ok(());
                }
                continue;
            }
            connection.receive().map_err(lost)?;
            while let Some(frame) = connection.next_frame().map_err(lost)? {
                let answer =
                    ResponseFrame::decode(&frame).map_err(|error| Failure::Lost(error.to_string()))?;
                self.land(answer, rows)?;
            }
        }
    }

    /// Gives a row back with its outcome.
    fn land(&mut self, answer: ResponseFrame, rows: &mut dyn RowFeed) -> Result<(), Failure> {
        let slot = usize::try_from(answer.stream)
            .ok()
            .and_then(|slot| self.rows.get_mut(slot));
        let Some(row) = slot.and_then(Option::take) else {
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
        rows.done(row, outcome);
        Ok(())
    }

    /// Gives back all rows whose answers will not come.
    pub fn give_up(&mut self, rows: &mut dyn RowFeed) {
        for row in self.rows.iter_mut().filter_map(Option::take) {
            rows.lost(row);
        }
    }
}

fn execute(prepared: &Prepared, how: &How, row: &WriteRow) -> Request {
    let values: Values = row
        .values
        .iter()
        .map(|bytes| bytes.as_deref().map_or(Value::Null, Value::Bytes))
        .collect();
    Request::Execute(Execute {
        id: prepared.id.clone(),
        result_metadata_id: prepared.result_metadata_id.clone(),
        params: QueryParams {
            consistency: how.consistency,
            values,
            skip_metadata: true,
            ..QueryParams::default()
        },
    })
}
