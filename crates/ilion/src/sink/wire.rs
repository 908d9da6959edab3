//! The format of keys and values of records: JSON; or Avro, if there is a registry of schemas.
//!
//! ```text
//! key or value := 0x00, number of the schema: u32 (big-endian), datum          (Avro, as Confluent's serializers write it)
//! ```

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ilion_kafka::Registry;

use super::line::Schemas;
use super::source::tell;
use crate::Failure;

/// First byte of a key or value in Avro; the number of its schema follows.
const MAGIC: u8 = 0;

/// The format of keys and values of a topic.
pub enum Wire {
    /// JSON, as the node prints it.
    Json,
    /// Avro, with schemas in a registry.
    Avro(Box<Avro>),
}

/// Registers schemas for the subjects of a topic.
pub struct Avro {
    registry: Registry,
    topic: String,
    numbers: Option<Numbers>,
}

/// Numbers of schemas in the registry.
#[derive(Clone, Copy)]
struct Numbers {
    key: u32,
    value: u32,
}

impl Wire {
    /// Avro if there is a registry, else JSON.
    pub fn new(registry: Option<Registry>, topic: &str) -> Self {
        match registry {
            None => Self::Json,
            Some(registry) => Self::Avro(Box::new(Avro {
                registry,
                topic: topic.to_owned(),
                numbers: None,
            })),
        }
    }

    /// The name of the format in the request to the node.
    pub fn format(&self) -> &'static str {
        match self {
            Self::Json => "keyed",
            Self::Avro(_) => "avro",
        }
    }

    /// Registers the schemas of the changes that follow. Does nothing for JSON.
    pub fn adopt(&mut self, schemas: &Schemas) -> Result<(), Failure> {
        let Self::Avro(avro) = self else {
            return Ok(());
        };
        let Avro {
            registry,
            topic,
            numbers,
        } = &mut **avro;
        let mut register = |part: &str, schema: &str| {
            let subject = format!("{topic}-{part}");
            registry
                .register(&subject, schema, &mut tell)
                .map_err(Failure::of)
        };
        *numbers = Some(Numbers {
            key: register("key", &schemas.key)?,
            value: register("value", &schemas.envelope)?,
        });
        Ok(())
    }

    /// Key and value of the record of a change.
    pub fn record(&self, key: Option<&str>, envelope: &str) -> Result<(Option<Vec<u8>>, Vec<u8>), Failure> {
        let Self::Avro(avro) = self else {
            return Ok((
                key.map(|key| key.as_bytes().to_vec()),
                envelope.as_bytes().to_vec(),
            ));
        };
        let numbers = avro
            .numbers
            .ok_or_else(|| Failure::Failed("the node sent a change before its schema".to_owned()))?;
        let key = key.map(|key| numbered(numbers.key, key)).transpose()?;
        Ok((key, numbered(numbers.value, envelope)?))
    }
}

/// A datum in base64 behind the number of its schema.
fn numbered(number: u32, datum: &str) -> Result<Vec<u8>, Failure> {
    let mut record = vec![MAGIC];
    record.extend_from_slice(&number.to_be_bytes());
    let decoded = STANDARD.decode_vec(datum, &mut record);
    decoded.map_err(|error| Failure::Failed(format!("the node sent a change that is no base64: {error}")))?;
    Ok(record)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datum_stands_behind_the_number_of_its_schema() {
        assert_eq!(numbered(258, "Agg=").unwrap(), [0, 0, 0, 1, 2, 2, 8]);
        assert!(numbered(1, "{}").is_err());
    }
}
