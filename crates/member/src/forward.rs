//! Commands that a node hands to another one, since it is no replica of their partitions: the messages, and the way.
//!
//! ```text
//! request := version: u8, tablet: u32, counter: u8, schema epoch: u64, time left: u64 (micros), command     (big-endian)
//! answer := JSON of `Message`
//! ```
//! Messages have no checksum: the transport must find flipped bits.

use std::sync::Arc;

use bytes::Bytes;
use ilion_cluster::Node;
use ilion_codec::{Error as CodecError, Reader, Writer};
use ilion_query::{ColumnSpec, Error, Executed, Outcome, ResultSet};
use serde::{Deserialize, Serialize};

const VERSION: u8 = 1;

/// How a node has others execute commands, and copies tablets from them.
pub trait MemberClient: Send + Sync {
    /// Sends a request, and waits for the answer until a time of this node's monotonic clock. [`crate::Member::execute_for`] answers it.
    ///
    /// # Errors
    /// See [`NotHanded`].
    fn execute(&self, node: Node, request: Bytes, ends_nanos: u64) -> Result<Bytes, NotHanded>;

    /// Asks for tablets, and returns the parts of the answer as they come, until they are not wanted any more.
    /// [`crate::Member::copy_for`] makes them. If parts are missing, the last item is an error with the reason.
    fn copy<'a>(&'a self, node: Node, request: Bytes, is_wanted: &'a dyn Fn() -> bool) -> Parts<'a>;
}

/// The parts of an answer.
pub type Parts<'a> = Box<dyn Iterator<Item = Result<Bytes, String>> + 'a>;

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NotHanded {
    /// The node has not got the request.
    Before(String),
    /// It may have got it.
    Unknown(String),
}

/// A command for another node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Handed {
    pub tablet: u32,
    pub is_counter: bool,
    pub schema_epoch: u64,
    pub left_micros: u64,
    /// The command, as it is logged.
    pub body: Bytes,
}

/// What became of a command that was handed over.
pub(crate) enum Answered {
    Executed(Result<Executed, Error>),
    /// Nothing was logged: another replica must be asked.
    NotHere(String),
    /// It is not known whether it was logged.
    Unknown,
}

/// The form of [`Answered`] in messages.
#[derive(Serialize, Deserialize)]
enum Message {
    Void {
        warnings: Vec<String>,
    },
    Rows {
        columns: Vec<ColumnSpec>,
        row_count: u32,
        cells: Vec<u8>,
        warnings: Vec<String>,
    },
    Failed(Error),
    NotHere(String),
    Unknown,
}

impl Handed {
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Writer::new();
        out.u8(VERSION);
        out.u32(self.tablet);
        out.u8(u8::from(self.is_counter));
        out.u64(self.schema_epoch);
        out.u64(self.left_micros);
        out.bytes(&self.body);
        out.into_vec()
    }

    pub fn decode(bytes: &Bytes) -> Result<Self, CodecError> {
        let input = &mut Reader::new(bytes);
        if input.u8()? != VERSION {
            return Err(Reader::new(bytes).error("a request of version 1 (a newer Ilion sent this)"));
        }
        let tablet = input.u32()?;
        let is_counter = input.u8()? == 1;
        let schema_epoch = input.u64()?;
        let left_micros = input.u64()?;
        let body = bytes.slice_ref(input.rest());
        Ok(Self {
            tablet,
            is_counter,
            schema_epoch,
            left_micros,
            body,
        })
    }
}

impl Answered {
    pub fn encode(self) -> Vec<u8> {
        let message = match self {
            Self::NotHere(reason) => Message::NotHere(reason),
            Self::Unknown => Message::Unknown,
            Self::Executed(Err(error)) => Message::Failed(error),
            Self::Executed(Ok(executed)) => {
                let warnings = executed.warnings;
                match executed.outcome {
                    Outcome::Rows(rows) => Message::Rows {
                        columns: rows.columns.to_vec(),
                        row_count: rows.row_count,
                        cells: rows.cells.into_vec(),
                        warnings,
                    },
                    _ => Message::Void { warnings },
                }
            }
        };
        // Cannot fail: only maps with keys that are no text are an error, and there are none.
        serde_json::to_vec(&message).unwrap_or_default()
    }
}

/// Reads an answer. The error says what is wrong with it: the node may have executed the command.
pub(crate) fn decode_answer(bytes: &[u8]) -> Result<Answered, String> {
    let message: Message = serde_json::from_slice(bytes).map_err(|error| error.to_string())?;
    let executed = |outcome, warnings| {
        let executed = Executed {
            warnings,
            ..Executed::of(outcome)
        };
        Answered::Executed(Ok(executed))
    };
    Ok(match message {
        Message::NotHere(reason) => Answered::NotHere(reason),
        Message::Unknown => Answered::Unknown,
        Message::Failed(error) => Answered::Executed(Err(error)),
        Message::Void { warnings } => executed(Outcome::Void, warnings),
        Message::Rows {
            columns,
            row_count,
            cells,
            warnings,
        } => {
            let mut rope = ilion_codec::Rope::default();
            rope.push(&Bytes::from(cells));
            let rows = ResultSet {
                columns: Arc::from(columns),
                metadata_id: None,
                row_count,
                cells: rope,
                paging_state: None,
            };
            executed(Outcome::Rows(rows), warnings)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_back_and_damage_does_no_harm() {
        let handed = Handed {
            tablet: 3,
            is_counter: true,
            schema_epoch: 9,
            left_micros: 1_000_000,
            body: Bytes::from_static(b"command"),
        };
        let bytes = Bytes::from(handed.encode());
        assert_eq!(Handed::decode(&bytes), Ok(handed));
        for end in 0..22 {
            assert!(Handed::decode(&bytes.slice(..end)).is_err());
        }
        let answer = Answered::Executed(Err(Error::Invalid("no".to_owned()))).encode();
        let read = decode_answer(&answer);
        assert!(matches!(read, Ok(Answered::Executed(Err(Error::Invalid(reason)))) if reason == "no"));
        for end in 0..answer.len() {
            assert!(decode_answer(&answer[..end]).is_err());
        }
    }

    #[test]
    fn another_node_learns_that_a_command_was_overtaken_by_its_kind_and_not_by_its_words() {
        let pass = |error: Error| decode_answer(&Answered::Executed(Err(error)).encode());
        let read = pass(Error::Overtaken);
        assert!(matches!(read, Ok(Answered::Executed(Err(Error::Overtaken)))));
        let same_words = Error::Overloaded(Error::Overtaken.to_string());
        let read = pass(same_words.clone());
        assert!(matches!(read, Ok(Answered::Executed(Err(error))) if error == same_words));
    }
}
