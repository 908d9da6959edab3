//! Reads the mutations of a record one after the other.

use std::sync::Arc;

use bytes::Bytes;
use ilion_codec::{Error, Reader};
use ilion_schema::{TableId, TableSchema};
use uuid::Uuid;

use super::VERSION;
use super::decode::{Decoder, Head, KnownNames};
use crate::Mutation;

/// A mutation of a record, or the note that it was skipped.
#[derive(Clone, Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "nearly all are mutations, and they are taken out at once"
)]
pub enum Decoded {
    /// A mutation, with the table's current columns; its update may be empty.
    Mutation(Mutation),
    /// A mutation of a table that does not exist (any more) was skipped.
    NoSuchTable(TableId),
}

/// Reads the mutations of one record, or of several.
#[derive(Clone, Debug)]
pub struct MutationReader {
    record: Bytes,
    offset: usize,
    known: KnownNames,
}

/// Reads a record of exactly one mutation.
///
/// # Errors
/// The bytes are not exactly one mutation; offsets count from the start of `record`.
pub fn decode_mutation(
    record: &Bytes,
    resolve: &dyn Fn(TableId) -> Option<Arc<TableSchema>>,
) -> Result<Decoded, Error> {
    let mut reader = MutationReader::new(record.clone());
    let wrong_count = |offset| Error {
        offset,
        expected: "exactly one mutation",
    };
    let decoded = reader.next_mutation(resolve)?.ok_or(wrong_count(0))?;
    if reader.offset != record.len() {
        return Err(wrong_count(reader.offset));
    }
    Ok(decoded)
}

/// The table of the first mutation of a record and the code of its token ([`ilion_types::Token::code`]), without reading the rest; `None`
/// if the bytes do not begin with a mutation.
pub fn peek_place(record: &[u8]) -> Option<(TableId, u64)> {
    let mut input = Reader::new(record);
    input.skip(size_of::<u32>() + size_of_val(&VERSION)).ok()?;
    let table = TableId(Uuid::from_bytes(input.uuid_bytes().ok()?));
    let head = Head::decode(&mut input).ok()?;
    let key = input.bytes_vint().ok()?;
    Some((table, head.partitioner.token(key).code()))
}

impl MutationReader {
    /// Starts at the first mutation of `record`.
    pub fn new(record: Bytes) -> Self {
        Self {
            record,
            offset: 0,
            known: KnownNames::default(),
        }
    }

    /// Goes on at the first mutation of another record. That takes less time than a new reader: a mutation that has the same columns as the
    /// one before, and the same schema, finds them already resolved.
    pub fn restart(&mut self, record: Bytes) {
        self.record = record;
        self.offset = 0;
    }

    /// The next mutation; `None` at the end of the record.
    ///
    /// # Errors
    /// The bytes are not a mutation; offsets count from the start of the record. After an error, the next call continues with the
    /// next mutation if the size of the damaged one could be read, else it returns `None`.
    pub fn next_mutation(
        &mut self,
        resolve: &dyn Fn(TableId) -> Option<Arc<TableSchema>>,
    ) -> Result<Option<Decoded>, Error> {
        if self.offset == self.record.len() {
            return Ok(None);
        }
        let mut reader = Reader::new(&self.record);
        reader.skip(self.offset)?;
        self.offset = self.record.len();
        let size = reader.u32()? as usize;
        let start = reader.offset();
        if size > reader.remaining() {
            return Err(reader.error("a whole mutation"));
        }
        self.offset = start + size;
        let mut body = Reader::new(&self.record[..self.offset]);
        body.skip(start)?;
        decode_body(&self.record, &mut self.known, &mut body, resolve).map(Some)
    }
}

fn decode_body(
    record: &Bytes,
    known: &mut KnownNames,
    input: &mut Reader<'_>,
    resolve: &dyn Fn(TableId) -> Option<Arc<TableSchema>>,
) -> Result<Decoded, Error> {
    if input.peek_u8()? != VERSION {
        return Err(input.error("a mutation of version 1 (a newer Ilion wrote this)"));
    }
    input.skip(1)?;
    let id = TableId(Uuid::from_bytes(input.uuid_bytes()?));
    let Some(table) = resolve(id) else {
        return Ok(Decoded::NoSuchTable(id));
    };
    let (key, update) = Decoder::run(record, &table, known, input)?;
    Ok(Decoded::Mutation(Mutation { table, key, update }))
}
