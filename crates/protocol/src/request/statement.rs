//! QUERY, PREPARE and EXECUTE.
//!
//! ```text
//! query   := text: long string, params
//! prepare := text: long string, v5: flags: i32 (0x01: keyspace: string)
//! execute := id: short bytes, v5: result_metadata_id: short bytes, params
//! ```

use bytes::Bytes;

use crate::error::Error;
use crate::notation::{Input, put_i32, try_long_string, try_short_bytes, try_string};
use crate::request::QueryParams;
use crate::version::Version;

const PREPARE_WITH_KEYSPACE: i32 = 0x01;

/// QUERY: executes CQL text.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Query {
    /// The CQL text.
    pub text: String,
    /// Its parameters.
    pub params: QueryParams,
}

/// PREPARE: prepares CQL text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Prepare {
    /// The CQL text.
    pub text: String,
    /// Overrides the keyspace of the connection (v5).
    pub keyspace: Option<String>,
}

/// EXECUTE: executes a prepared statement.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Execute {
    /// The id in the answer to PREPARE.
    pub id: Bytes,
    /// The result metadata that the client knows (v5; empty before).
    pub result_metadata_id: Bytes,
    /// Its parameters.
    pub params: QueryParams,
}

impl Query {
    pub(super) fn encode(&self, out: &mut Vec<u8>, version: Version) -> Result<(), Error> {
        try_long_string(out, "the query text", &self.text)?;
        self.params.encode(out, version)
    }

    pub(super) fn decode(input: &mut Input<'_>, version: Version) -> Result<Self, Error> {
        let text = input.long_string()?;
        let params = QueryParams::decode(input, version)?;
        Ok(Self { text, params })
    }
}

impl Prepare {
    pub(super) fn encode(&self, out: &mut Vec<u8>, version: Version) -> Result<(), Error> {
        try_long_string(out, "the query text", &self.text)?;
        match (&self.keyspace, version) {
            (Some(keyspace), Version::V5) => {
                put_i32(out, PREPARE_WITH_KEYSPACE);
                try_string(out, "the keyspace", keyspace)
            }
            (None, Version::V5) => {
                put_i32(out, 0);
                Ok(())
            }
            (Some(_), _) => Err(Error::refused("a keyspace in PREPARE needs protocol v5")),
            (None, _) => Ok(()),
        }
    }

    pub(super) fn decode(input: &mut Input<'_>, version: Version) -> Result<Self, Error> {
        let text = input.long_string()?;
        let flags = if version >= Version::V5 { input.i32()? } else { 0 };
        let keyspace = match flags & PREPARE_WITH_KEYSPACE {
            0 => None,
            _ => Some(input.string()?),
        };
        Ok(Self { text, keyspace })
    }
}

impl Execute {
    pub(super) fn encode(&self, out: &mut Vec<u8>, version: Version) -> Result<(), Error> {
        try_short_bytes(out, "the statement id", &self.id)?;
        if version >= Version::V5 {
            try_short_bytes(out, "the result metadata id", &self.result_metadata_id)?;
        }
        self.params.encode(out, version)
    }

    pub(super) fn decode(input: &mut Input<'_>, version: Version) -> Result<Self, Error> {
        let id = input.short_bytes()?;
        let result_metadata_id = input.result_metadata_id(version)?;
        let params = QueryParams::decode(input, version)?;
        Ok(Self {
            id,
            result_metadata_id,
            params,
        })
    }
}
