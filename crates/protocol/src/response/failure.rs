//! Fields of errors about replicas: the kind of write, and which replicas failed and why.
//!
//! ```text
//! failures := v4: count: i32; v5: n: i32, n x (node: inetaddr, reason: u16)
//! ```

use std::net::IpAddr;

use crate::error::Error;
use crate::notation::{Input, put_i32, put_inet_address, put_size, put_u16};
use crate::response::prepared::decode_count;
use crate::version::Version;

/// The kind of a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteType {
    /// One partition.
    Simple,
    /// A logged batch.
    Batch,
    /// An unlogged batch.
    UnloggedBatch,
    /// A counter.
    Counter,
    /// The log of a logged batch.
    BatchLog,
    /// A conditional write.
    Cas,
    /// A materialized view.
    View,
    /// The CDC log.
    Cdc,
}

/// Which replicas failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Failures {
    /// The number of failed replicas (v4).
    Count(i32),
    /// The addresses of failed replicas, each with its reason (v5). v4 gets their number.
    Reasons(Vec<(IpAddr, FailureReason)>),
}

/// Why a replica failed: the number on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FailureReason(pub u16);

impl WriteType {
    /// All kinds of writes.
    pub const ALL: [Self; 8] = [
        Self::Simple,
        Self::Batch,
        Self::UnloggedBatch,
        Self::Counter,
        Self::BatchLog,
        Self::Cas,
        Self::View,
        Self::Cdc,
    ];

    /// The word on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Simple => "SIMPLE",
            Self::Batch => "BATCH",
            Self::UnloggedBatch => "UNLOGGED_BATCH",
            Self::Counter => "COUNTER",
            Self::BatchLog => "BATCH_LOG",
            Self::Cas => "CAS",
            Self::View => "VIEW",
            Self::Cdc => "CDC",
        }
    }

    pub(super) fn decode(input: &mut Input<'_>) -> Result<Self, Error> {
        let name = input.string()?;
        Self::ALL
            .into_iter()
            .find(|write_type| write_type.name() == name)
            .ok_or_else(|| Error::refused(format!("unknown write type: {name}")))
    }
}

impl Failures {
    fn count(&self) -> usize {
        match self {
            Self::Count(count) => usize::try_from(*count).unwrap_or(0),
            Self::Reasons(reasons) => reasons.len(),
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>, version: Version) {
        match self {
            Self::Reasons(reasons) if version >= Version::V5 => {
                put_size(out, reasons.len());
                for &(node, reason) in reasons {
                    put_inet_address(out, node);
                    put_u16(out, reason.0);
                }
            }
            // v5 needs addresses, and a count has none: send an empty list.
            Self::Count(_) if version >= Version::V5 => put_i32(out, 0),
            other => put_size(out, other.count()),
        }
    }

    pub(super) fn decode(input: &mut Input<'_>, version: Version) -> Result<Self, Error> {
        if version < Version::V5 {
            return Ok(Self::Count(input.i32()?));
        }
        let count = decode_count(input)?;
        let mut reasons = Vec::with_capacity(input.reader().capacity_for(count, 1 + 4 + 2));
        for _ in 0..count {
            reasons.push((input.inet_address()?, FailureReason(input.u16()?)));
        }
        Ok(Self::Reasons(reasons))
    }
}
