//! Changes as Avro: the envelope of `json`, binary and with a schema.
//!
//! [`AvroTable`] has the schemas of a table and encodes its changes. The schema follows from the table, so ALTER gives another one.
//! [`AvroFile`] puts encoded changes into an object container file.
//!
//! | module | |
//! | --- | --- |
//! | `names` | names that Avro permits |
//! | `schema` | the schema of the changes of a table |
//! | `value` | values and their types |
//! | `envelope` | a change as a value of the schema |
//! | `file` | object container files |

mod envelope;
mod file;
mod names;
mod schema;
mod value;

use std::sync::Arc;

use apache_avro::Schema;
use apache_avro::types::Value as Avro;
use apache_avro::writer::datum::GenericDatumWriter;
use ilion_schema::TableSchema;

use crate::Change;
use crate::json::key_columns;

pub use file::AvroFile;

/// The changes of a table as it was at one moment, as Avro.
pub struct AvroTable {
    table: Arc<TableSchema>,
    /// Names of the fields of all columns, in the order of `TableSchema::every_column`.
    fields: Vec<String>,
    envelope: Both,
    key: Both,
}

/// A schema, and its text.
struct Both {
    schema: Schema,
    text: String,
}

impl AvroTable {
    /// Makes the schemas of a table.
    ///
    /// # Errors
    /// Avro permits no such schema, which is a bug; text for people.
    pub fn of(table: &Arc<TableSchema>) -> Result<Self, String> {
        let columns = table.every_column();
        let fields = names::field_names(columns.iter().map(|column| column.name.as_str()), &schema::TAKEN);
        Ok(Self {
            envelope: Both::parse(schema::envelope(table, &fields).to_string())?,
            key: Both::parse(schema::key(table, &fields).to_string())?,
            table: Arc::clone(table),
            fields,
        })
    }

    /// Whether changes that were decoded with this table can be encoded.
    pub fn is_of(&self, table: &Arc<TableSchema>) -> bool {
        Arc::ptr_eq(&self.table, table)
    }

    /// The schema of changes, as JSON.
    pub fn envelope_schema(&self) -> &str {
        &self.envelope.text
    }

    /// The schema of partition keys, as JSON.
    pub fn key_schema(&self) -> &str {
        &self.key.text
    }

    /// A change as a datum of the schema of changes.
    ///
    /// # Errors
    /// A value is invalid for its column's type; the text is for people.
    pub fn encode(&self, change: &Change) -> Result<Vec<u8>, String> {
        let envelope = envelope::of_change(change, &self.fields)?;
        self.envelope.encode(envelope)
    }

    /// The partition key of a change as a datum of the schema of keys; `None` for a change of all partitions.
    ///
    /// # Errors
    /// A value is invalid for its column's type; the text is for people.
    pub fn encode_key(&self, change: &Change) -> Result<Option<Vec<u8>>, String> {
        let Some(key) = &change.key else {
            return Ok(None);
        };
        let columns = key_columns(&self.table, key)?.into_iter().zip(&self.fields);
        let fields = columns.map(|((column, part), field)| {
            let value = value::of_bytes(&column.ty, Some(part))?;
            Ok((field.clone(), value))
        });
        let fields: Result<Vec<(String, Avro)>, String> = fields.collect();
        self.key.encode(Avro::Record(fields?)).map(Some)
    }
}

impl Both {
    fn parse(text: String) -> Result<Self, String> {
        let schema = Schema::parse_str(&text).map_err(|error| error.to_string())?;
        Ok(Self { schema, text })
    }

    fn encode(&self, value: Avro) -> Result<Vec<u8>, String> {
        let writer = GenericDatumWriter::builder(&self.schema).build();
        let written = writer.and_then(|writer| writer.write_value_to_vec(value));
        written.map_err(|error| error.to_string())
    }
}
