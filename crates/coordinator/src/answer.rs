//! [`Answer`]: what a replica answers, and [`ReplicaError`]: why it does not.
//!
//! ```text
//! answer   := version: u8 (1), content
//! content  := 0, partitions: bytes, option<resume>
//!           | 1, list<place>, is_last: u8
//!           | 2, list<place, score: f32>, is_last: u8
//!           | 3, estimate
//!           | 4, message: bytes (refused) | 5 (timed out) | 6, message: bytes (failed)
//! ```
//! Partitions are mutations (`rows::encode_mutation`) in the order of keys: rows and deletions as the replica merged them, columns by
//! name. Rows ascend, whatever the direction of the read. They are decoded with the coordinator's table (`page`).

use bytes::Bytes;
use ilion_codec::{Error, Writer};
use ilion_index::{Estimate, Place};

use crate::command::{Resume, VERSION};
use crate::fields::{
    Input, decode_estimate, decode_place, encode_estimate, encode_list, encode_option, encode_place,
};

/// Compat: Cassandra's message if no replica has answered.
pub(crate) const TIMED_OUT: &str = "Operation timed out - received only 0 responses.";

/// What a replica found.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    /// Partitions, as mutations one after the other.
    Partitions {
        /// Their bytes.
        partitions: Bytes,
        /// Where the next page begins; `None`: this is the last one.
        resume: Option<Resume>,
    },
    /// Rows that may match, in the order of the table.
    Candidates {
        /// The rows.
        places: Vec<Place>,
        /// True if there are no more.
        is_last: bool,
    },
    /// Rows by the nearness of their vectors.
    Ranked {
        /// The rows with their scores.
        places: Vec<(Place, f32)>,
        /// True if there are no more.
        is_last: bool,
    },
    /// About how many rows a search may give.
    Estimate(Estimate),
}

/// Why a replica did not answer. Another replica may answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ReplicaError {
    /// It cannot be reached, or the connection broke.
    #[error("it cannot be reached: {0}")]
    Unreachable(String),
    /// It must not answer: it is none of the replicas, its state is too old, or it does not know the table or the command.
    #[error("it refused: {0}")]
    Refused(String),
    /// It did not answer in time.
    #[error("it did not answer in time")]
    TimedOut,
    /// Its read failed, or its answer breaks the rules.
    #[error("its read failed: {0}")]
    Failed(String),
}

/// The bytes of an answer.
pub fn encode_answer(answer: &Result<Answer, ReplicaError>) -> Vec<u8> {
    let mut out = Writer::new();
    out.u8(VERSION);
    match answer {
        Ok(Answer::Partitions { partitions, resume }) => {
            out.u8(0);
            out.bytes_vint(partitions);
            encode_option(resume.as_ref(), &mut out, Resume::encode);
        }
        Ok(Answer::Candidates { places, is_last }) => {
            out.u8(1);
            encode_list(places, &mut out, encode_place);
            out.bool(*is_last);
        }
        Ok(Answer::Ranked { places, is_last }) => {
            out.u8(2);
            encode_list(places, &mut out, |(place, score), out| {
                encode_place(place, out);
                out.u32(score.to_bits());
            });
            out.bool(*is_last);
        }
        Ok(Answer::Estimate(estimate)) => {
            out.u8(3);
            encode_estimate(estimate, &mut out);
        }
        Err(ReplicaError::Unreachable(reason) | ReplicaError::Refused(reason)) => {
            out.u8(4);
            out.bytes_vint(reason.as_bytes());
        }
        Err(ReplicaError::TimedOut) => out.u8(5),
        Err(ReplicaError::Failed(reason)) => {
            out.u8(6);
            out.bytes_vint(reason.as_bytes());
        }
    }
    out.into_vec()
}

/// Reads the bytes of an answer. Invalid bytes are a failure of the replica.
///
/// # Errors
/// The replica did not answer, or its bytes are damaged.
pub fn decode_answer(bytes: &Bytes) -> Result<Answer, ReplicaError> {
    decode(bytes).unwrap_or_else(|error| Err(ReplicaError::Failed(format!("a damaged answer {error}"))))
}

fn decode(bytes: &Bytes) -> Result<Result<Answer, ReplicaError>, Error> {
    let mut input = Input::new(bytes);
    if input.reader.u8()? != VERSION {
        return Err(input.reader.error("an answer of version 1 before this"));
    }
    let answer = match input.reader.u8()? {
        0 => {
            let partitions = input.bytes()?;
            let resume = input.option(Resume::decode)?;
            Ok(Answer::Partitions { partitions, resume })
        }
        1 => {
            let places = input.list(decode_place)?;
            let is_last = input.reader.bool()?;
            Ok(Answer::Candidates { places, is_last })
        }
        2 => {
            let places = input.list(|input| {
                let place = decode_place(input)?;
                let score = f32::from_bits(input.reader.u32()?);
                Ok((place, score))
            })?;
            let is_last = input.reader.bool()?;
            Ok(Answer::Ranked { places, is_last })
        }
        3 => Ok(Answer::Estimate(decode_estimate(&mut input)?)),
        4 => Err(ReplicaError::Refused(input.name()?)),
        5 => Err(ReplicaError::TimedOut),
        6 => Err(ReplicaError::Failed(input.name()?)),
        _ => return Err(input.reader.error("the kind of an answer before this")),
    };
    input.end()?;
    Ok(answer)
}
