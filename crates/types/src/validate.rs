//! Checks whether bytes are a value of a type (`AbstractType.validate`). The messages mean the same as Cassandra's.

use ilion_codec::Reader;

use crate::custom::KnownClass;
use crate::elements::{Elements, collection_elements, map_entries, tuple_components, vector_elements};
use crate::{CqlType, Duration, Error};

impl CqlType {
    /// Checks a serialized value of a client or file. Empty values are valid for most types.
    ///
    /// # Errors
    /// The bytes are not a value of this type.
    pub fn validate(&self, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Self::Int => len_or_empty(bytes, 4, "Expected 4 or 0 byte int"),
            Self::BigInt | Self::Counter => len_or_empty(bytes, 8, "Expected 8 or 0 byte long"),
            Self::Text => match std::str::from_utf8(bytes) {
                Ok(_) => Ok(()),
                Err(_) => Err(Error::bytes("String didn't validate.")),
            },
            Self::Ascii => match bytes.iter().find(|byte| !byte.is_ascii()) {
                None => Ok(()),
                Some(byte) => Err(Error::bytes(format!("Invalid byte for ascii: {byte:x}"))),
            },
            Self::Blob | Self::Varint => Ok(()),
            Self::Custom(class) => KnownClass::of(class).map_or(Ok(()), |known| known.validate(bytes)),
            Self::Boolean => len_or_empty(bytes, 1, "Expected 1 or 0 byte value"),
            Self::Timestamp => len_or_empty(bytes, 8, "Expected 8 or 0 byte long for date"),
            Self::Float => len_or_empty(bytes, 4, "Expected 4 or 0 byte value for a float"),
            Self::Double => len_or_empty(bytes, 8, "Expected 8 or 0 byte value for a double"),
            Self::SmallInt => len_exactly(bytes, 2, "Expected 2 bytes for a smallint"),
            Self::TinyInt => len_exactly(bytes, 1, "Expected 1 byte for a tinyint"),
            Self::Date => len_exactly(bytes, 4, "Expected 4 byte long for date"),
            Self::Time => len_exactly(bytes, 8, "Expected 8 byte long for time"),
            Self::Uuid => len_or_empty(bytes, 16, "UUID should be 16 or 0 bytes"),
            Self::TimeUuid => validate_time_uuid(bytes),
            Self::Decimal => match bytes.len() {
                1..=3 => Err(wrong_len("Expected 0 or at least 4 bytes", bytes)),
                _ => Ok(()),
            },
            Self::Inet => match bytes.len() {
                0 | 4 | 16 => Ok(()),
                _ => Err(Error::bytes(format!(
                    "Expected 4 or 16 byte inetaddress; got {}",
                    crate::hex::print(bytes)
                ))),
            },
            Self::Duration => Duration::decode(bytes).map(drop),
            Self::Empty => len_exactly(bytes, 0, "EmptyType only accept empty values"),
            _ => self.validate_compound(bytes),
        }
    }

    fn validate_compound(&self, bytes: &[u8]) -> Result<(), Error> {
        match self {
            Self::List { element, .. } => validate_elements(bytes, element, "list"),
            Self::Set { element, .. } => validate_elements(bytes, element, "set"),
            Self::Map { key, value, .. } => validate_map(bytes, key, value),
            Self::Tuple(types) => validate_components(bytes, types.iter(), "tuple"),
            Self::Udt { definition, .. } => {
                validate_components(bytes, definition.fields.iter().map(|(_, ty)| ty), "UDT")
            }
            Self::Vector { element, dimension } => self.validate_vector(bytes, element, *dimension),
            _ => Ok(()),
        }
    }

    fn validate_vector(&self, bytes: &[u8], element: &CqlType, dimension: u32) -> Result<(), Error> {
        if bytes.is_empty() {
            return Err(Error::bytes(format!("Invalid empty vector value for {self}")));
        }
        let mut elements = vector_elements(bytes, element, dimension);
        for part in elements.by_ref() {
            let part = part.map_err(|_| Error::bytes(format!("Not enough bytes to read a {self}")))?;
            element.validate(part)?;
        }
        match elements.trailing_len() {
            0 => Ok(()),
            extra => Err(Error::bytes(format!(
                "Unexpected {extra} extraneous bytes after {self} value"
            ))),
        }
    }
}

fn wrong_len(expected: &str, bytes: &[u8]) -> Error {
    Error::bytes(format!("{expected} ({})", bytes.len()))
}

#[inline]
fn len_or_empty(bytes: &[u8], len: usize, expected: &str) -> Result<(), Error> {
    if bytes.len() == len || bytes.is_empty() {
        Ok(())
    } else {
        Err(wrong_len(expected, bytes))
    }
}

#[inline]
fn len_exactly(bytes: &[u8], len: usize, expected: &str) -> Result<(), Error> {
    if bytes.len() == len {
        Ok(())
    } else {
        Err(wrong_len(expected, bytes))
    }
}

fn validate_time_uuid(bytes: &[u8]) -> Result<(), Error> {
    len_or_empty(bytes, 16, "UUID should be 16 or 0 bytes")?;
    match bytes.get(6) {
        Some(byte) if byte >> 4 != 1 => Err(Error::bytes("Invalid version for TimeUUID type.")),
        _ => Ok(()),
    }
}

fn validate_elements(bytes: &[u8], element: &CqlType, kind: &'static str) -> Result<(), Error> {
    if bytes.is_empty() {
        return Err(too_short(kind));
    }
    let mut elements = collection_elements(bytes).map_err(|_| too_short(kind))?;
    for part in elements.by_ref() {
        element.validate(part.map_err(|_| null_or_short(kind))?)?;
    }
    no_trailing(&elements, kind)
}

fn validate_map(bytes: &[u8], key: &CqlType, value: &CqlType) -> Result<(), Error> {
    if bytes.is_empty() {
        return Err(too_short("map"));
    }
    let mut entries = map_entries(bytes).map_err(|_| too_short("map"))?;
    for entry in entries.by_ref() {
        let (key_bytes, value_bytes) = entry.map_err(|_| null_or_short("map"))?;
        key.validate(key_bytes)?;
        value.validate(value_bytes)?;
    }
    no_trailing(&entries.0, "map")
}

fn too_short(kind: &'static str) -> Error {
    Error::bytes(format!("Not enough bytes to read a {kind}"))
}

fn null_or_short(kind: &'static str) -> Error {
    Error::bytes(format!("Not enough bytes to read a {kind}, or null inside it"))
}

fn no_trailing(elements: &Elements<'_>, kind: &'static str) -> Result<(), Error> {
    if elements.has_trailing_bytes() {
        return Err(Error::bytes(format!(
            "Unexpected extraneous bytes after {kind} value"
        )));
    }
    Ok(())
}

fn validate_components<'t>(
    bytes: &[u8],
    types: impl Iterator<Item = &'t CqlType>,
    kind: &'static str,
) -> Result<(), Error> {
    let mut components = tuple_components(bytes);
    for ty in types {
        // A value may have fewer components than the type, since ALTER TYPE adds fields.
        let Some(component) = components.next() else {
            return Ok(());
        };
        if let Some(component) = component? {
            ty.validate(component)?;
        }
    }
    if components.next().is_some() {
        return Err(Error::bytes(format!(
            "Invalid remaining data after end of {kind} value"
        )));
    }
    Ok(())
}

impl Duration {
    /// Decodes the serialized form.
    ///
    /// # Errors
    /// There are not three vints, months or days exceed 32 bits, or signs differ.
    pub fn decode(bytes: &[u8]) -> Result<Self, Error> {
        if bytes.len() < 3 {
            return Err(wrong_len("Expected at least 3 bytes for a duration", bytes));
        }
        let mut reader = Reader::new(bytes);
        let mut part = || {
            reader
                .svint()
                .map_err(|_| Error::bytes("Not enough bytes to read a duration"))
        };
        let (months, days, nanos) = (part()?, part()?, part()?);
        if !reader.is_empty() {
            return Err(Error::bytes("Unexpected extraneous bytes after duration value"));
        }
        let bits32 = |value: i64, name: &str| {
            i32::try_from(value).map_err(|_| {
                Error::bytes(format!(
                    "The duration {name} must be a 32 bits integer but was: {value}"
                ))
            })
        };
        Self::new(bits32(months, "months")?, bits32(days, "days")?, nanos).ok_or_else(|| {
            Error::bytes(format!(
                "The duration months, days and nanoseconds must be all of the same sign ({months}, {days}, {nanos})"
            ))
        })
    }
}
