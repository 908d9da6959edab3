//! Rust values as bind values.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::SystemTime;

use ilion_types::{CqlType, Decimal, Duration, Uuid, Value};
use num_bigint::BigInt;

use crate::tuples::for_tuples;
use crate::{Date, Time};

/// A Rust value for one bind marker. An integer fits every integer type that can hold it; other types are those of
/// [`FromValue`](crate::FromValue). `None` is null.
///
/// ```
/// use std::collections::BTreeMap;
///
/// # let directory = tempfile::tempdir()?;
/// # let database = ilion::Database::open(directory.path())?;
/// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
/// # database.execute("USE k", ())?;
/// database.execute("CREATE TYPE address (street text, zip int)", ())?;
/// database.execute("CREATE TABLE people (id bigint PRIMARY KEY, names list<text>, home address, phones map<text, text>)", ())?;
/// let phones = BTreeMap::from([("home", "555-0100")]);
/// database.execute(
///     "INSERT INTO people (id, names, home, phones) VALUES (?, ?, ?, ?)",
///     (1, ["Ann", "Lee"], ("Main Street", None::<i32>), phones),
/// )?;
/// let names: Vec<String> = database.query_one("SELECT names FROM people", ())?.get(0)?;
/// assert_eq!(names, ["Ann", "Lee"]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait ToValue {
    /// The value for a marker of this type.
    ///
    /// ```
    /// use ilion::{CqlType, ToValue, Value};
    ///
    /// assert_eq!(7_i64.to_value(&CqlType::TinyInt), Ok(Value::TinyInt(7)));
    /// assert!(700_i64.to_value(&CqlType::TinyInt).is_err());
    /// ```
    ///
    /// # Errors
    /// The value does not fit; the text is the reason.
    fn to_value(&self, ty: &CqlType) -> Result<Value, String>;
}

impl ToValue for Value {
    fn to_value(&self, _: &CqlType) -> Result<Value, String> {
        Ok(self.clone())
    }
}

impl<T: ToValue> ToValue for Option<T> {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        self.as_ref().map_or(Ok(Value::Null), |value| value.to_value(ty))
    }
}

impl<T: ToValue + ?Sized> ToValue for &T {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        (**self).to_value(ty)
    }
}

fn integer(value: i64, ty: &CqlType) -> Result<Value, String> {
    let out_of_range = || format!("{value} is out of range of {ty}");
    Ok(match ty {
        CqlType::TinyInt => Value::TinyInt(value.try_into().map_err(|_| out_of_range())?),
        CqlType::SmallInt => Value::SmallInt(value.try_into().map_err(|_| out_of_range())?),
        CqlType::Int => Value::Int(value.try_into().map_err(|_| out_of_range())?),
        CqlType::BigInt => Value::BigInt(value),
        CqlType::Counter => Value::Counter(value),
        CqlType::Timestamp => Value::Timestamp(value),
        CqlType::Time => Value::Time(value),
        CqlType::Varint => Value::Varint(BigInt::from(value)),
        _ => return Err(format!("the integer {value} is not a value of type {ty}")),
    })
}

macro_rules! integer_values {
    ($($integer:ty),+) => {$(
        impl ToValue for $integer {
            fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
                integer(i64::from(*self), ty)
            }
        }
    )+};
}

integer_values!(i8, i16, i32, i64, u16, u32);

impl ToValue for u64 {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        match (i64::try_from(*self), ty) {
            (Ok(value), _) => integer(value, ty),
            (Err(_), CqlType::Varint) => Ok(Value::Varint(BigInt::from(*self))),
            (Err(_), _) => Err(format!("{self} is out of range of {ty}")),
        }
    }
}

macro_rules! plain_values {
    ($($rust:ty => |$value:ident| $make:expr),+ $(,)?) => {$(
        impl ToValue for $rust {
            fn to_value(&self, _: &CqlType) -> Result<Value, String> {
                let $value = self;
                Ok($make)
            }
        }
    )+};
}

plain_values!(
    str => |text| Value::Text(text.to_owned()),
    String => |text| Value::Text(text.clone()),
    bool => |value| Value::Boolean(*value),
    [u8] => |bytes| Value::Blob(bytes.to_vec()),
    Vec<u8> => |bytes| Value::Blob(bytes.clone()),
    IpAddr => |address| Value::Inet(*address),
    Ipv4Addr => |address| Value::Inet(IpAddr::V4(*address)),
    Ipv6Addr => |address| Value::Inet(IpAddr::V6(*address)),
    BigInt => |value| Value::Varint(value.clone()),
    Decimal => |value| Value::Decimal(value.clone()),
    Duration => |value| Value::Duration(*value),
    Date => |day| Value::Date(day.value()),
    Time => |time| Value::Time(time.nanos()),
);

impl ToValue for f32 {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        Ok(match ty {
            CqlType::Double => Value::Double(f64::from(*self)),
            _ => Value::Float(*self),
        })
    }
}

impl ToValue for f64 {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        #[expect(clippy::cast_possible_truncation, reason = "the column holds no more digits")]
        Ok(match ty {
            CqlType::Float => Value::Float(*self as f32),
            _ => Value::Double(*self),
        })
    }
}

impl ToValue for Uuid {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        Ok(match ty {
            CqlType::TimeUuid => Value::TimeUuid(*self),
            _ => Value::Uuid(*self),
        })
    }
}

/// Milliseconds since 1970, rounded down, also before 1970.
impl ToValue for SystemTime {
    fn to_value(&self, _: &CqlType) -> Result<Value, String> {
        let millis = match self.duration_since(Self::UNIX_EPOCH) {
            Ok(since) => i64::try_from(since.as_millis()),
            Err(before) => {
                i64::try_from(before.duration().as_nanos().div_ceil(1_000_000)).map(|millis| -millis)
            }
        };
        millis
            .map(Value::Timestamp)
            .map_err(|_| "the time is too far from 1970".to_owned())
    }
}

/// Values for the elements of a list, set or vector.
fn list<'v, T: ToValue + 'v>(ty: &CqlType, values: impl Iterator<Item = &'v T>) -> Result<Value, String> {
    let all = |element: &CqlType| {
        values
            .enumerate()
            .map(|(index, value)| {
                let problem = |problem| format!("element {index}: {problem}");
                value.to_value(element).map_err(problem)
            })
            .collect::<Result<Vec<Value>, String>>()
    };
    match ty {
        CqlType::List { element, .. } => all(element).map(Value::List),
        CqlType::Set { element, .. } => all(element).map(Value::Set),
        CqlType::Vector { element, dimension } => {
            let values = all(element)?;
            if values.len() != *dimension as usize {
                return Err(format!(
                    "{ty} has {dimension} elements, {} were given",
                    values.len()
                ));
            }
            Ok(Value::Vector(values))
        }
        _ => Err(format!("a list is not a value of type {ty}")),
    }
}

impl<T: ToValue> ToValue for [T] {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        list(ty, self.iter())
    }
}

impl<T: ToValue> ToValue for Vec<T> {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        list(ty, self.iter())
    }
}

impl<T: ToValue, const N: usize> ToValue for [T; N] {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        list(ty, self.iter())
    }
}

impl<const N: usize> ToValue for [u8; N] {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        self.as_slice().to_value(ty)
    }
}

impl<T: ToValue, S> ToValue for HashSet<T, S> {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        list(ty, self.iter())
    }
}

impl<T: ToValue> ToValue for BTreeSet<T> {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        list(ty, self.iter())
    }
}

/// Values for the entries of a map, or for the fields of a user type by name; fields that are missing are null.
fn map<'v, K: ToValue + 'v, V: ToValue + 'v>(
    ty: &CqlType,
    entries: impl Iterator<Item = (&'v K, &'v V)>,
) -> Result<Value, String> {
    match ty {
        CqlType::Map {
            key: key_type,
            value: value_type,
            ..
        } => entries
            .map(|(key, value)| Ok((key.to_value(key_type)?, value.to_value(value_type)?)))
            .collect::<Result<_, _>>()
            .map(Value::Map),
        CqlType::Udt { definition, .. } => {
            let mut fields = vec![Value::Null; definition.fields.len()];
            for (name, value) in entries {
                let Value::Text(name) = name.to_value(&CqlType::Text)? else {
                    return Err(format!("the keys must be names of fields of {ty}"));
                };
                let position = definition.fields.iter().position(|(known, _)| *known == name);
                let index = position.ok_or_else(|| format!("{ty} has no field {name}"))?;
                let problem = |problem| format!("field {name}: {problem}");
                fields[index] = value.to_value(&definition.fields[index].1).map_err(problem)?;
            }
            Ok(Value::Udt(fields))
        }
        _ => Err(format!("a map is not a value of type {ty}")),
    }
}

impl<K: ToValue, V: ToValue, S> ToValue for HashMap<K, V, S> {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        map(ty, self.iter())
    }
}

impl<K: ToValue, V: ToValue> ToValue for BTreeMap<K, V> {
    fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
        map(ty, self.iter())
    }
}

/// Values for the components of a tuple, or for the fields of a user type in their order.
fn components(ty: &CqlType, values: &[&dyn ToValue]) -> Result<Value, String> {
    let types: Vec<&CqlType> = match ty {
        CqlType::Tuple(types) => types.iter().collect(),
        CqlType::Udt { definition, .. } => definition.fields.iter().map(|(_, ty)| ty).collect(),
        _ => return Err(format!("a tuple is not a value of type {ty}")),
    };
    if types.len() != values.len() {
        return Err(format!(
            "{ty} has {} components, {} were given",
            types.len(),
            values.len()
        ));
    }
    let pairs = types.into_iter().zip(values).enumerate();
    let values = pairs
        .map(|(index, (ty, value))| {
            let problem = |problem| format!("component {index}: {problem}");
            value.to_value(ty).map_err(problem)
        })
        .collect::<Result<_, _>>()?;
    Ok(match ty {
        CqlType::Tuple(_) => Value::Tuple(values),
        _ => Value::Udt(values),
    })
}

macro_rules! tuple_to_value {
    ($($name:ident $index:tt),+) => {
        impl<$($name: ToValue),+> ToValue for ($($name,)+) {
            fn to_value(&self, ty: &CqlType) -> Result<Value, String> {
                components(ty, &[$(&self.$index as &dyn ToValue),+])
            }
        }
    };
}

for_tuples!(tuple_to_value);
