//! Rows as types that implement serde's `Deserialize` (feature `serde`).
//!
//! A row is a map from names of columns, or a sequence in their order. A column is what its type is; [`Row::deserialize`] has the table.
//! Not here: bind values. They are `ToValues`.

use ilion_types::{CqlType, Value};
use serde::de::value::{MapDeserializer, SeqDeserializer, StringDeserializer};
use serde::de::{
    DeserializeOwned, DeserializeSeed, Deserializer, Error as _, IntoDeserializer, MapAccess, SeqAccess,
    Visitor,
};
use serde::forward_to_deserialize_any;

use crate::from_value::{elements, entries};
use crate::{Error, Row, Rows};

impl Row {
    /// Reads the row as a type that implements serde's `Deserialize`.
    ///
    /// A struct or map is read by names of columns: columns without a field are not looked at, and a missing column is an error unless the
    /// field is an `Option` or has a default. A tuple or sequence is read by position.
    ///
    /// | CQL | as serde sees it |
    /// | --- | --- |
    /// | `ascii`, `text` | text; also the name of a variant of an enum without fields |
    /// | `boolean`, `float`, `double` | the same |
    /// | `tinyint`, `smallint`, `int`, `bigint`, `counter` | an integer; any integer type of Rust, if the value fits |
    /// | `varint` | text; an integer up to 128 bits, if the type asks for one |
    /// | `decimal`, `duration`, `inet`, `uuid`, `timeuuid`, `date` | text as CQL prints it: `1.50`, `1h30m`, `127.0.0.1`, `2026-11-27` |
    /// | `time` | text, `13:30:54.234000000`; nanoseconds, if the type asks for an integer |
    /// | `timestamp` | text, `2026-11-27T13:30:54.234Z`; milliseconds since 1970, if the type asks for an integer |
    /// | `blob` | bytes, or a sequence of them: `Vec<u8>` |
    /// | `list`, `set`, `vector`, `tuple` | a sequence: `Vec<T>`, `HashSet<T>`, `BTreeSet<T>`, a tuple |
    /// | `map` | a map |
    /// | user type | a struct or map by names of fields, or a tuple of all fields in their order |
    /// | null | `None`; an empty list, set or map, which are null in CQL, is also an empty one |
    ///
    /// # Errors
    /// A column has no value of the type of its field, or a field has no column.
    ///
    /// ```
    /// use serde::Deserialize;
    ///
    /// #[derive(Debug, PartialEq, Deserialize)]
    /// #[serde(rename_all = "lowercase")]
    /// enum State {
    ///     Open,
    ///     Shipped,
    /// }
    ///
    /// #[derive(Debug, PartialEq, Deserialize)]
    /// struct Order {
    ///     id: u32,
    ///     state: State,
    ///     tags: Vec<String>,
    ///     note: Option<String>,
    /// }
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// # database.execute("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", ())?;
    /// # database.execute("CREATE TABLE k.orders (id int PRIMARY KEY, state text, tags set<text>, note text)", ())?;
    /// # database.execute("INSERT INTO k.orders (id, state, tags) VALUES (7, 'shipped', {'gift'})", ())?;
    /// let order: Order = database.query_one("SELECT * FROM k.orders WHERE id = 7", ())?.deserialize()?;
    /// assert_eq!(order, Order { id: 7, state: State::Shipped, tags: vec!["gift".to_owned()], note: None });
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn deserialize<T: DeserializeOwned>(&self) -> Result<T, Error> {
        T::deserialize(OfRow(self)).map_err(Failure::into_error)
    }
}

impl Rows {
    /// The rows as values of a type that implements serde's `Deserialize`, as by [`Row::deserialize`].
    ///
    /// ```
    /// # let directory = tempfile::tempdir()?;
    /// # let database = ilion::Database::open(directory.path())?;
    /// #[derive(serde::Deserialize)]
    /// struct Keyspace {
    ///     keyspace_name: String,
    ///     durable_writes: bool,
    /// }
    ///
    /// for keyspace in database.execute("SELECT * FROM system_schema.keyspaces", ())?.deserialize::<Keyspace>() {
    ///     let Keyspace { keyspace_name, durable_writes } = keyspace?;
    ///     println!("{keyspace_name}: {durable_writes}");
    /// }
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn deserialize<T: DeserializeOwned>(self) -> impl Iterator<Item = Result<T, Error>> {
        self.map(|row| row?.deserialize())
    }
}

/// Why a row is no value of the type.
#[derive(Debug)]
struct Failure {
    /// `None` if the row as a whole does not fit.
    column: Option<String>,
    problem: String,
}

impl Failure {
    fn in_column(self, name: &str) -> Self {
        Self {
            column: Some(name.to_owned()),
            problem: self.problem,
        }
    }

    fn into_error(self) -> Error {
        match self.column {
            Some(name) => Error::Column {
                name,
                problem: self.problem,
            },
            None => Error::Row(self.problem),
        }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.problem)
    }
}

impl std::error::Error for Failure {}

impl serde::de::Error for Failure {
    fn custom<T: std::fmt::Display>(problem: T) -> Self {
        Self {
            column: None,
            problem: problem.to_string(),
        }
    }
}

/// A row for serde.
struct OfRow<'r>(&'r Row);

/// The columns of a row, one after another.
struct Columns<'r> {
    row: &'r Row,
    next: usize,
}

impl<'r> Columns<'r> {
    fn name(&self, index: usize) -> Option<&'r str> {
        self.row.column_names().nth(index)
    }

    /// Reads the value of the next column, whose name is known to exist.
    fn read<'de, S: DeserializeSeed<'de>>(&mut self, name: &str, seed: S) -> Result<S::Value, Failure> {
        let index = self.next;
        self.next += 1;
        let (ty, value) = self.row.typed(index).map_err(Failure::custom)?;
        seed.deserialize(OfValue { ty, value })
            .map_err(|failure| failure.in_column(name))
    }
}

impl<'de> MapAccess<'de> for Columns<'_> {
    type Error = Failure;

    fn next_key_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Failure> {
        let name = self.name(self.next);
        name.map(|name| seed.deserialize(name.into_deserializer()))
            .transpose()
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Failure> {
        let name = self.name(self.next).unwrap_or_default();
        self.read(name, seed)
    }
}

impl<'de> SeqAccess<'de> for Columns<'_> {
    type Error = Failure;

    fn next_element_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<Option<S::Value>, Failure> {
        let name = self.name(self.next);
        name.map(|name| self.read(name, seed)).transpose()
    }
}

impl<'de> Deserializer<'de> for OfRow<'_> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_map(Columns { row: self.0, next: 0 })
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_seq(Columns { row: self.0, next: 0 })
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, count: usize, visitor: V) -> Result<V::Value, Failure> {
        let columns = self.0.column_names().len();
        if columns != count {
            return Err(Failure::custom(format!(
                "it has {columns} columns, and {count} were expected"
            )));
        }
        self.deserialize_seq(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        count: usize,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.deserialize_tuple(count, visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_some(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct map struct enum identifier
        ignored_any
    }
}

/// The value of a column, or a value inside one, for serde.
struct OfValue<'t> {
    ty: &'t CqlType,
    value: Value,
}

impl<'t> OfValue<'t> {
    fn new((ty, value): (&'t CqlType, Value)) -> Self {
        Self { ty, value }
    }

    /// The text that CQL prints.
    fn text(&self) -> Result<String, Failure> {
        let bytes = self.value.to_bytes(self.ty).map_err(Failure::custom)?;
        self.ty.print_plain(&bytes).map_err(Failure::custom)
    }

    /// As [`Deserializer::deserialize_any`], for types that ask for an integer.
    fn number<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match &self.value {
            Value::Timestamp(number) | Value::Time(number) => visitor.visit_i64(*number),
            Value::Varint(number) => match (i64::try_from(number), i128::try_from(number)) {
                (Ok(number), _) => visitor.visit_i64(number),
                (_, Ok(number)) => visitor.visit_i128(number),
                _ => Err(Failure::custom(format!("{number} has more than 128 bits"))),
            },
            _ => self.deserialize_any(visitor),
        }
    }

    fn sequence<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match elements(self.ty, self.value) {
            Ok(elements) => {
                let mut sequence = SeqDeserializer::new(elements.into_iter().map(OfValue::new));
                let value = visitor.visit_seq(&mut sequence)?;
                sequence.end()?;
                Ok(value)
            }
            Err(value) => OfValue { ty: self.ty, value }.deserialize_any(visitor),
        }
    }

    fn map<'de, V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match entries(self.ty, self.value) {
            Ok(entries) => {
                let entries = entries
                    .into_iter()
                    .map(|(key, value)| (OfValue::new(key), OfValue::new(value)));
                visitor.visit_map(MapDeserializer::new(entries))
            }
            Err(value) => OfValue { ty: self.ty, value }.deserialize_any(visitor),
        }
    }
}

impl IntoDeserializer<'_, Failure> for OfValue<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

macro_rules! numbers {
    ($($method:ident)+) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
            self.number(visitor)
        }
    )+};
}

impl<'de> Deserializer<'de> for OfValue<'_> {
    type Error = Failure;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.value {
            Value::Null => visitor.visit_unit(),
            Value::Text(text) => visitor.visit_string(text),
            Value::Blob(bytes) => visitor.visit_byte_buf(bytes),
            Value::Boolean(value) => visitor.visit_bool(value),
            Value::TinyInt(number) => visitor.visit_i8(number),
            Value::SmallInt(number) => visitor.visit_i16(number),
            Value::Int(number) => visitor.visit_i32(number),
            Value::BigInt(number) | Value::Counter(number) => visitor.visit_i64(number),
            Value::Float(number) => visitor.visit_f32(number),
            Value::Double(number) => visitor.visit_f64(number),
            Value::List(_) | Value::Set(_) | Value::Vector(_) | Value::Tuple(_) => self.sequence(visitor),
            Value::Map(_) | Value::Udt(_) => self.map(visitor),
            _ => visitor.visit_string(self.text()?),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.value {
            Value::Null => visitor.visit_none(),
            _ => visitor.visit_some(self),
        }
    }

    numbers! {
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64 deserialize_i128
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64 deserialize_u128
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        match self.value {
            Value::Blob(bytes) => visitor.visit_seq(SeqDeserializer::new(bytes.into_iter())),
            _ => self.sequence(visitor),
        }
    }

    fn deserialize_tuple<V: Visitor<'de>>(self, _: usize, visitor: V) -> Result<V::Value, Failure> {
        self.sequence(visitor)
    }

    fn deserialize_tuple_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: usize,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.sequence(visitor)
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        self.map(visitor)
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        self.map(visitor)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        visitor: V,
    ) -> Result<V::Value, Failure> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Failure> {
        match self.value {
            Value::Text(text) => visitor.visit_enum(StringDeserializer::new(text)),
            _ => self.deserialize_any(visitor),
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Failure> {
        visitor.visit_unit()
    }

    forward_to_deserialize_any! {
        bool f32 f64 char str string bytes byte_buf unit unit_struct identifier
    }
}
