//! Columns as Rust values.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher, Hash};
use std::net::IpAddr;
use std::time::{Duration as StdDuration, SystemTime};

use ilion_types::{CqlType, Decimal, Duration, Uuid, Value};
use num_bigint::BigInt;

use crate::tuples::for_tuples;
use crate::{Date, Time};

/// The type of the names of fields.
static NAME: CqlType = CqlType::Text;

/// A Rust type as which columns can be read.
///
/// | CQL | Rust |
/// | --- | --- |
/// | `ascii`, `text` | `String` |
/// | `blob` | `Vec<u8>` |
/// | `boolean` | `bool` |
/// | `tinyint`, `smallint`, `int`, `bigint` | the integer of that size or a larger one: `i8`, `i16`, `i32`, `i64` |
/// | `counter` | `i64` |
/// | `varint`, `decimal`, `duration` | [`BigInt`], [`Decimal`], [`Duration`] |
/// | `float`, `double` | `f32`, `f64` |
/// | `date` | [`Date`] |
/// | `time` | [`Time`], or `i64` in nanoseconds |
/// | `timestamp` | [`SystemTime`], or `i64` in milliseconds since 1970 |
/// | `uuid`, `timeuuid` | [`Uuid`] |
/// | `inet` | [`IpAddr`] |
/// | `list`, `set`, `vector` | `Vec<T>`; for sets also `HashSet<T>` and `BTreeSet<T>` |
/// | `map` | `HashMap<K, V>`, `BTreeMap<K, V>` |
/// | `tuple` | a tuple of Rust |
/// | user type | a tuple with its fields in their order, or a map from their names, as `BTreeMap<String, Value>` |
/// | any | [`Value`]; `Option<T>`, if it may be null |
///
/// A list, set or map without elements is null in CQL; it is read as an empty one.
///
/// A type of your own:
/// ```
/// use ilion::{CqlType, FromValue, Value};
///
/// struct Celsius(f32);
///
/// impl FromValue for Celsius {
///     fn from_value(ty: &CqlType, value: Value) -> Result<Self, Value> {
///         f32::from_value(ty, value).map(Celsius)
///     }
/// }
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
/// # database.execute("CREATE TABLE k.weather (day date PRIMARY KEY, high float)", ())?;
/// # database.execute("INSERT INTO k.weather (day, high) VALUES ('2026-11-27', 4.5)", ())?;
/// let row = database.query_one("SELECT high FROM k.weather", ())?;
/// assert_eq!(row.get::<Celsius>("high")?.0, 4.5);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait FromValue: Sized {
    /// Converts the value of a column of this type.
    ///
    /// ```
    /// use ilion::{CqlType, FromValue, Value};
    ///
    /// assert_eq!(i64::from_value(&CqlType::Int, Value::Int(7)), Ok(7));
    /// assert_eq!(String::from_value(&CqlType::Int, Value::Int(7)), Err(Value::Int(7)));
    /// ```
    ///
    /// # Errors
    /// The value, or a value inside it, has another type; the error is that value.
    fn from_value(ty: &CqlType, value: Value) -> Result<Self, Value>;
}

impl FromValue for Value {
    fn from_value(_: &CqlType, value: Value) -> Result<Self, Value> {
        Ok(value)
    }
}

impl<T: FromValue> FromValue for Option<T> {
    fn from_value(ty: &CqlType, value: Value) -> Result<Self, Value> {
        match value {
            Value::Null => Ok(None),
            value => T::from_value(ty, value).map(Some),
        }
    }
}

macro_rules! from_values {
    ($($rust:ty => $($pattern:pat => $make:expr),+);+ $(;)?) => {$(
        impl FromValue for $rust {
            fn from_value(_: &CqlType, value: Value) -> Result<Self, Value> {
                match value {
                    $($pattern => Ok($make),)+
                    other => Err(other),
                }
            }
        }
    )+};
}

from_values!(
    String => Value::Text(text) => text;
    Vec<u8> => Value::Blob(bytes) => bytes;
    bool => Value::Boolean(value) => value;
    i8 => Value::TinyInt(value) => value;
    i16 =>
        Value::SmallInt(value) => value,
        Value::TinyInt(value) => value.into();
    i32 =>
        Value::Int(value) => value,
        Value::SmallInt(value) => value.into(),
        Value::TinyInt(value) => value.into();
    i64 =>
        Value::BigInt(value) | Value::Counter(value) | Value::Timestamp(value) | Value::Time(value) => value,
        Value::Int(value) => value.into(),
        Value::SmallInt(value) => value.into(),
        Value::TinyInt(value) => value.into();
    f32 => Value::Float(value) => value;
    f64 =>
        Value::Double(value) => value,
        Value::Float(value) => value.into();
    Uuid => Value::Uuid(value) | Value::TimeUuid(value) => value;
    IpAddr => Value::Inet(value) => value;
    BigInt => Value::Varint(value) => value;
    Decimal => Value::Decimal(value) => value;
    Duration => Value::Duration(value) => value;
    Date => Value::Date(value) => Date::of_value(value);
);

impl FromValue for Time {
    fn from_value(_: &CqlType, value: Value) -> Result<Self, Value> {
        match value {
            Value::Time(nanos) => Time::from_nanos(nanos).ok_or(value),
            other => Err(other),
        }
    }
}

impl FromValue for SystemTime {
    fn from_value(_: &CqlType, value: Value) -> Result<Self, Value> {
        let Value::Timestamp(millis) = value else {
            return Err(value);
        };
        let distance = StdDuration::from_millis(millis.unsigned_abs());
        let time = match millis {
            0.. => Self::UNIX_EPOCH.checked_add(distance),
            _ => Self::UNIX_EPOCH.checked_sub(distance),
        };
        time.ok_or(value)
    }
}

/// The elements of a list, set or vector, or the components of a tuple or user type, each with its type. Fails with a value of another
/// type.
pub(crate) fn elements(ty: &CqlType, value: Value) -> Result<Vec<(&CqlType, Value)>, Value> {
    match (value, ty) {
        (Value::Null, CqlType::List { .. } | CqlType::Set { .. }) => Ok(Vec::new()),
        (Value::List(values), CqlType::List { element, .. })
        | (Value::Set(values), CqlType::Set { element, .. })
        | (Value::Vector(values), CqlType::Vector { element, .. }) => {
            Ok(values.into_iter().map(|value| (&**element, value)).collect())
        }
        (value, _) => components(ty, value),
    }
}

/// The components of a tuple or the fields of a user type; null for missing ones. Fails with a value of another type.
fn components(ty: &CqlType, value: Value) -> Result<Vec<(&CqlType, Value)>, Value> {
    let (types, values): (Vec<&CqlType>, _) = match (value, ty) {
        (Value::Tuple(values), CqlType::Tuple(types)) => (types.iter().collect(), values),
        (Value::Udt(values), CqlType::Udt { definition, .. }) => {
            (definition.fields.iter().map(|(_, ty)| ty).collect(), values)
        }
        (other, _) => return Err(other),
    };
    let values = values.into_iter().chain(std::iter::repeat(Value::Null));
    Ok(types.into_iter().zip(values).collect())
}

/// A key or value of a map, with its type.
pub(crate) type Typed<'t> = (&'t CqlType, Value);

/// The entries of a map, or the fields of a user type by name.
pub(crate) fn entries(ty: &CqlType, value: Value) -> Result<Vec<(Typed<'_>, Typed<'_>)>, Value> {
    match (value, ty) {
        (Value::Null, CqlType::Map { .. }) => Ok(Vec::new()),
        (Value::Map(entries), CqlType::Map { key, value, .. }) => Ok(entries
            .into_iter()
            .map(|(one, other)| ((&**key, one), (&**value, other)))
            .collect()),
        (value @ Value::Udt(_), CqlType::Udt { definition, .. }) => {
            let names = definition.fields.iter().map(|(name, _)| name.clone());
            let names = names.map(|name| (&NAME, Value::Text(name)));
            Ok(names.zip(components(ty, value)?).collect())
        }
        (other, _) => Err(other),
    }
}

/// Reads all elements as a collection.
fn collect<T: FromValue, C: FromIterator<T>>(ty: &CqlType, value: Value) -> Result<C, Value> {
    elements(ty, value)?
        .into_iter()
        .map(|(ty, value)| T::from_value(ty, value))
        .collect()
}

/// Reads all entries as a map.
fn collect_map<K: FromValue, V: FromValue, C: FromIterator<(K, V)>>(
    ty: &CqlType,
    value: Value,
) -> Result<C, Value> {
    entries(ty, value)?
        .into_iter()
        .map(|((key_type, key), (value_type, value))| {
            Ok((K::from_value(key_type, key)?, V::from_value(value_type, value)?))
        })
        .collect()
}

impl<T: FromValue> FromValue for Vec<T> {
    fn from_value(ty: &CqlType, value: Value) -> Result<Self, Value> {
        collect(ty, value)
    }
}

impl<T: FromValue + Eq + Hash, S: BuildHasher + Default> FromValue for HashSet<T, S> {
    fn from_value(ty: &CqlType, value: Value) -> Result<Self, Value> {
        collect(ty, value)
    }
}

impl<T: FromValue + Ord> FromValue for BTreeSet<T> {
    fn from_value(ty: &CqlType, value: Value) -> Result<Self, Value> {
        collect(ty, value)
    }
}

impl<K: FromValue + Eq + Hash, V: FromValue, S: BuildHasher + Default> FromValue for HashMap<K, V, S> {
    fn from_value(ty: &CqlType, value: Value) -> Result<Self, Value> {
        collect_map(ty, value)
    }
}

impl<K: FromValue + Ord, V: FromValue> FromValue for BTreeMap<K, V> {
    fn from_value(ty: &CqlType, value: Value) -> Result<Self, Value> {
        collect_map(ty, value)
    }
}

macro_rules! tuple_from_value {
    ($($name:ident $index:tt),+) => {
        impl<$($name: FromValue),+> FromValue for ($($name,)+) {
            fn from_value(ty: &CqlType, value: Value) -> Result<Self, Value> {
                const COUNT: usize = [$($index),+].len();
                let components = components(ty, value)?;
                if components.len() != COUNT {
                    return Err(Value::Tuple(components.into_iter().map(|(_, value)| value).collect()));
                }
                let mut components = components.into_iter();
                Ok(($({
                    let (ty, value) = components.next().ok_or(Value::Null)?;
                    $name::from_value(ty, value)?
                },)+))
            }
        }
    };
}

for_tuples!(tuple_from_value);
