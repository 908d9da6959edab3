//! Object container files of Avro, from data that are encoded already.
//!
//! ```text
//! file  := head block*
//! head  := "Obj" 0x01, schema and codec (here: none), marker: [u8; 16]        (the library writes it)
//! block := count: long, size: long, datum*, marker
//! ```

use apache_avro::types::Value as Avro;
use apache_avro::writer::datum::GenericDatumWriter;
use apache_avro::{Schema, Writer};

/// A block with this many bytes is full.
const BLOCK_BYTES: usize = 64 << 10;

/// A file that is written from its beginning to its end, block by block.
pub struct AvroFile {
    marker: [u8; 16],
    block: Vec<u8>,
    count: usize,
}

impl AvroFile {
    /// Begins a file of data of a schema; returns also its head. The marker is random.
    ///
    /// # Errors
    /// The schema is invalid; text for people.
    pub fn begin(schema: &str, marker: [u8; 16]) -> Result<(Self, Vec<u8>), String> {
        let head = || {
            let schema = Schema::parse_str(schema)?;
            let writer = Writer::builder().schema(&schema).writer(Vec::new());
            writer.marker(marker).build()?.into_inner()
        };
        let head = head().map_err(|error| error.to_string())?;
        let file = Self {
            marker,
            block: Vec::new(),
            count: 0,
        };
        Ok((file, head))
    }

    /// Adds a datum to the block.
    pub fn add(&mut self, datum: &[u8]) {
        self.block.extend_from_slice(datum);
        self.count += 1;
    }

    /// Whether the block is to be written before more are added.
    pub fn is_full(&self) -> bool {
        self.block.len() >= BLOCK_BYTES
    }

    /// Takes the block; empty if nothing was added.
    pub fn take_block(&mut self) -> Vec<u8> {
        if self.count == 0 {
            return Vec::new();
        }
        let mut block = long(self.count);
        block.extend(long(self.block.len()));
        block.append(&mut self.block);
        block.extend_from_slice(&self.marker);
        self.count = 0;
        block
    }
}

#[expect(clippy::expect_used, reason = "a long has no values that cannot be encoded")]
fn long(number: usize) -> Vec<u8> {
    let number = i64::try_from(number).expect("sizes of memory are less than 2^63");
    let writer = GenericDatumWriter::builder(&Schema::Long).build();
    let written = writer.and_then(|writer| writer.write_value_to_vec(Avro::Long(number)));
    written.expect("a long is a long")
}
