//! CQL constants to serialized bytes: the kinds of constants that a type accepts, and the value of their text.
//!
//! Not here: literals of collections, tuples and user types, which the caller builds from constants; the message with the column's
//! name, which the caller builds from [`ConstantKind::name`] and the error.

use std::net::IpAddr;

use num_bigint::BigInt;
use uuid::Uuid;

use crate::calendar::{parse_date, parse_time, parse_timestamp};
use crate::custom::KnownClass;
use crate::float_text::{parse_double, parse_float};
use crate::value::encode_inet;
use crate::{CqlType, Decimal, Duration, Error, encode_varint, hex, tuple_text};

/// How a constant was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConstantKind {
    /// `'...'`
    String,
    /// Digits only.
    Integer,
    /// A number with a point or exponent; `NaN`, `Infinity`.
    Float,
    /// `true`, `false`
    Boolean,
    /// 36 characters.
    Uuid,
    /// `0x...`
    Hex,
    /// `1h30m`
    Duration,
}

impl ConstantKind {
    /// The name of the kind in messages: `Invalid STRING constant (abc) for "v" of type int`.
    pub fn name(self) -> &'static str {
        match self {
            Self::String => "STRING",
            Self::Integer => "INTEGER",
            Self::Float => "FLOAT",
            Self::Boolean => "BOOLEAN",
            Self::Uuid => "UUID",
            Self::Hex => "HEX",
            Self::Duration => "DURATION",
        }
    }
}

/// Maximum number of digits of an integer literal: parsing takes quadratic time.
const VARINT_DIGITS_MAX: usize = 100_000;

impl CqlType {
    /// True if this type accepts a constant of this kind.
    pub fn accepts_constant(&self, kind: ConstantKind) -> bool {
        match kind {
            ConstantKind::String => matches!(
                self,
                Self::Ascii
                    | Self::Text
                    | Self::Inet
                    | Self::Date
                    | Self::Time
                    | Self::Timestamp
                    | Self::Custom(_)
            ),
            ConstantKind::Integer => matches!(
                self,
                Self::BigInt
                    | Self::Counter
                    | Self::Date
                    | Self::Decimal
                    | Self::Double
                    | Self::Duration
                    | Self::Float
                    | Self::Int
                    | Self::SmallInt
                    | Self::Time
                    | Self::Timestamp
                    | Self::TinyInt
                    | Self::Varint
            ),
            ConstantKind::Float => matches!(self, Self::Decimal | Self::Double | Self::Float),
            ConstantKind::Boolean => matches!(self, Self::Boolean),
            ConstantKind::Uuid => matches!(self, Self::Uuid | Self::TimeUuid),
            ConstantKind::Hex => matches!(self, Self::Blob),
            ConstantKind::Duration => matches!(self, Self::Duration),
        }
    }

    /// The serialized value of a scalar's text (`AbstractType.fromString`), as in tools and CSV files.
    ///
    /// # Errors
    /// The text is not a value of this type.
    pub fn parse_plain(&self, text: &str) -> Result<Vec<u8>, Error> {
        match self {
            Self::Text => Ok(text.as_bytes().to_vec()),
            Self::Ascii if text.is_ascii() => Ok(text.as_bytes().to_vec()),
            Self::Ascii => Err(Error::literal(format!(
                "Invalid ASCII character in string literal: '{text}'"
            ))),
            Self::Blob => parse_blob(text),
            Self::Custom(class) => {
                KnownClass::of(class).map_or_else(|| parse_blob(text), |known| known.parse(text))
            }
            Self::Date => parse_date(text).map(|date| date.to_be_bytes().to_vec()),
            Self::Time => parse_time(text).map(|time| time.to_be_bytes().to_vec()),
            _ if text.is_empty() => Ok(Vec::new()),
            Self::Tuple(types) => tuple_text::parse(text, self, types),
            Self::Int => parse_number::<i32, 4>(text, "int", i32::to_be_bytes),
            Self::BigInt | Self::Counter => parse_number::<i64, 8>(text, "long", i64::to_be_bytes),
            Self::SmallInt => parse_number::<i16, 2>(text, "short", i16::to_be_bytes),
            Self::TinyInt => parse_number::<i8, 1>(text, "byte", i8::to_be_bytes),
            Self::Varint => parse_varint(text),
            Self::Decimal => {
                let mut out = Vec::new();
                text.parse::<Decimal>()?.encode(&mut out);
                Ok(out)
            }
            Self::Float => parse_float(text)
                .map(|value| value.to_be_bytes().to_vec())
                .ok_or_else(|| unable("float", text)),
            Self::Double => parse_double(text)
                .map(|value| value.to_be_bytes().to_vec())
                .ok_or_else(|| unable("double", text)),
            Self::Boolean => parse_boolean(text),
            Self::Timestamp => parse_timestamp(text).map(|millis| millis.to_be_bytes().to_vec()),
            Self::Uuid | Self::TimeUuid => self.parse_uuid(text),
            Self::Inet => parse_inet(text),
            Self::Duration => {
                let mut out = Vec::new();
                text.parse::<Duration>()?.encode(&mut out);
                Ok(out)
            }
            _ => Err(Error::literal(format!(
                "no value of type {self} is written as '{text}'"
            ))),
        }
    }

    /// The serialized value of a text as [`Self::print_plain`] returns it (`AbstractType.fromString`), also for types that contain
    /// other types.
    ///
    /// # Errors
    /// The text is not a value of this type.
    pub fn parse_printed(&self, text: &str) -> Result<Vec<u8>, Error> {
        match self {
            Self::Udt { definition, .. } if !text.is_empty() => {
                let types: Vec<CqlType> = definition.fields.iter().map(|(_, ty)| ty.clone()).collect();
                tuple_text::parse(text, self, &types)
            }
            Self::Tuple(_) => self.parse_plain(text),
            // Compat: `CollectionType.fromString`, `VectorType.fromString`.
            _ if self.is_compound() => parse_blob(text),
            _ => self.parse_plain(text),
        }
    }

    fn parse_uuid(&self, text: &str) -> Result<Vec<u8>, Error> {
        let uuid = Uuid::try_parse(text).ok().filter(|_| text.len() == 36);
        let uuid = uuid.ok_or_else(|| unable("UUID", text))?;
        if *self == Self::TimeUuid && uuid.get_version_num() != 1 {
            return Err(Error::literal("TimeUUID supports only version 1 UUIDs"));
        }
        Ok(uuid.as_bytes().to_vec())
    }
}

fn unable(what: &str, text: &str) -> Error {
    Error::literal(format!("Unable to make {what} from '{text}'"))
}

fn parse_number<T: std::str::FromStr, const N: usize>(
    text: &str,
    what: &str,
    to_bytes: fn(T) -> [u8; N],
) -> Result<Vec<u8>, Error> {
    match text.parse() {
        Ok(value) => Ok(to_bytes(value).to_vec()),
        Err(_) => Err(unable(what, text)),
    }
}

fn parse_varint(text: &str) -> Result<Vec<u8>, Error> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let well_formed = digits.bytes().all(|byte| byte.is_ascii_digit()) && digits.len() <= VARINT_DIGITS_MAX;
    let value = BigInt::parse_bytes(text.as_bytes(), 10).filter(|_| well_formed);
    value
        .map(|value| encode_varint(&value))
        .ok_or_else(|| unable("int", text))
}

fn parse_boolean(text: &str) -> Result<Vec<u8>, Error> {
    if text.eq_ignore_ascii_case("true") {
        Ok(vec![1])
    } else if text.eq_ignore_ascii_case("false") {
        Ok(vec![0])
    } else {
        Err(unable("boolean", text))
    }
}

fn parse_blob(text: &str) -> Result<Vec<u8>, Error> {
    let digits = text
        .strip_prefix("0x")
        .or_else(|| text.strip_prefix("0X"))
        .unwrap_or(text);
    hex::parse(digits).ok_or_else(|| Error::literal(format!("cannot parse '{text}' as hex bytes")))
}

/// Parses an address. Names are refused, so that no DNS server is asked. Compat: an IPv4-mapped IPv6 address becomes IPv4.
fn parse_inet(text: &str) -> Result<Vec<u8>, Error> {
    let address: IpAddr = text.parse().map_err(|_| unable("inet address", text))?;
    let mut out = Vec::new();
    encode_inet(address.to_canonical(), &mut out);
    Ok(out)
}
