//! Class strings of types, as in Statistics.db and in the protocol's `custom` types.
//!
//! ```text
//! class := name [ '(' argument (',' argument)* ')' ]          argument := class | field | dimension
//! name  := 'org.apache.cassandra.db.marshal.' simple          (written in full, read without the package too)
//! UserType(keyspace, hex(name), hex(field):class, ...)        VectorType(class , dimension)
//! ```
//!
//! Printed forms have no spaces except around a vector's comma. Of nested frozen types, only the outermost collection or user type is
//! inside `FrozenType`. Not here: CQL type strings (`cql_name`).

use std::fmt::Write as _;
use std::sync::Arc;

use crate::cql_type::PACKAGE;
use crate::limits::TYPE_DEPTH_MAX;
use crate::partitioner::KEY_ORDER;
use crate::{CqlType, Error, Partitioner, UserType, hex};

/// Deepest nesting that is parsed: strings from disk or network must not exhaust the stack. `FrozenType` and `ReversedType` are
/// levels here, but not in [`TYPE_DEPTH_MAX`].
const DEPTH_MAX: usize = 2 * TYPE_DEPTH_MAX + 2;

impl CqlType {
    /// The class string of this type, without `ReversedType`.
    pub fn to_class(&self) -> String {
        let mut text = String::new();
        self.write_class(&mut text, Around::Nothing);
        text
    }

    /// The class string of a clustering column: inside `ReversedType` if `reversed` (DESC).
    pub fn to_clustering_class(&self, reversed: bool) -> String {
        let class = self.to_class();
        if reversed {
            format!("{PACKAGE}ReversedType({class})")
        } else {
            class
        }
    }

    /// The type of a class string, and whether it is inside `ReversedType`. Classes without a CQL name become
    /// [`CqlType::Custom`]: with their full name if Ilion knows them (`custom`), else with the unchanged string.
    ///
    /// Compat: `DateType` and `LegacyTimeUUIDType` are `timestamp` and `timeuuid` in Cassandra's schema.
    ///
    /// # Errors
    /// The string does not parse.
    pub fn from_class(text: &str) -> Result<(CqlType, bool), Error> {
        let mut parser = Parser { text, at: 0 };
        let parsed = parser.class(0, Around::Nothing)?;
        parser.end()?;
        Ok(parsed)
    }

    /// The type of partition keys in a partitioner's order: the first clustering column of hidden tables.
    pub fn partition_keys(partitioner: Partitioner) -> Self {
        Self::Custom(partitioner.class_of_keys().into())
    }

    /// True for a type of [`CqlType::partition_keys`].
    pub fn is_partition_keys(&self) -> bool {
        self.partitioner_of_keys().is_some()
    }

    /// The partitioner of a type of [`CqlType::partition_keys`].
    pub fn partitioner_of_keys(&self) -> Option<Partitioner> {
        match self {
            Self::Custom(class) => Partitioner::of_keys(class),
            _ => None,
        }
    }

    fn write_class(&self, out: &mut String, around: Around) {
        let wrap = around == Around::Nothing && self.is_markable() && !self.is_multi_cell();
        if wrap {
            out.push_str(PACKAGE);
            out.push_str("FrozenType(");
        }
        let inner = if wrap || matches!(self, Self::Tuple(_)) {
            Around::Frozen
        } else {
            around
        };
        self.write_bare(out, inner);
        if wrap {
            out.push(')');
        }
    }

    fn write_bare(&self, out: &mut String, inner: Around) {
        if let Self::Custom(class) = self {
            out.push_str(class);
            return;
        }
        out.push_str(PACKAGE);
        match self {
            Self::List { element, .. } => write_arguments(out, "ListType", [&**element], inner),
            Self::Set { element, .. } => write_arguments(out, "SetType", [&**element], inner),
            Self::Map { key, value, .. } => write_arguments(out, "MapType", [&**key, &**value], inner),
            Self::Tuple(types) => write_arguments(out, "TupleType", types.iter(), inner),
            Self::Udt { definition, .. } => write_user_type(out, definition, inner),
            Self::Vector { element, dimension } => {
                out.push_str("VectorType(");
                element.write_class(out, inner);
                let _ = write!(out, " , {dimension})");
            }
            scalar => out.push_str(scalar.scalar_class().unwrap_or("BytesType")),
        }
    }

    /// True for types that may be inside `FrozenType`: unfrozen they have several cells.
    fn is_markable(&self) -> bool {
        self.is_collection() || matches!(self, Self::Udt { .. })
    }

    fn scalar_class(&self) -> Option<&'static str> {
        SCALARS.iter().find(|(_, ty)| ty == self).map(|(class, _)| *class)
    }
}

/// Whether a type is inside a frozen type, where `FrozenType` is omitted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Around {
    Nothing,
    Frozen,
}

const SCALARS: [(&str, CqlType); 21] = [
    ("AsciiType", CqlType::Ascii),
    ("LongType", CqlType::BigInt),
    ("BytesType", CqlType::Blob),
    ("BooleanType", CqlType::Boolean),
    ("CounterColumnType", CqlType::Counter),
    ("SimpleDateType", CqlType::Date),
    ("DecimalType", CqlType::Decimal),
    ("DoubleType", CqlType::Double),
    ("DurationType", CqlType::Duration),
    ("EmptyType", CqlType::Empty),
    ("FloatType", CqlType::Float),
    ("InetAddressType", CqlType::Inet),
    ("Int32Type", CqlType::Int),
    ("ShortType", CqlType::SmallInt),
    ("UTF8Type", CqlType::Text),
    ("TimeType", CqlType::Time),
    ("TimestampType", CqlType::Timestamp),
    ("TimeUUIDType", CqlType::TimeUuid),
    ("ByteType", CqlType::TinyInt),
    ("UUIDType", CqlType::Uuid),
    ("IntegerType", CqlType::Varint),
];

/// The full name of a class; for the class of partition keys, also of the partitioner's class in it.
fn full_order(class: &str) -> String {
    let full = match class.starts_with(PACKAGE) {
        true => class.to_owned(),
        false => format!("{PACKAGE}{class}"),
    };
    let argument = full
        .strip_prefix(PACKAGE)
        .and_then(|rest| rest.strip_prefix(KEY_ORDER)?.strip_suffix(')'));
    match argument.map(Partitioner::from_class) {
        Some(Ok(partitioner)) => partitioner.class_of_keys(),
        _ => full,
    }
}

/// The aliases of a `DynamicCompositeType`, without the parentheses.
pub(crate) fn parse_aliases(text: &str) -> Result<Vec<(u8, CqlType)>, Error> {
    if text.trim().is_empty() {
        return Ok(Vec::new());
    }
    let text = format!("{text})");
    let mut parser = Parser { text: &text, at: 0 };
    let aliases = parser.aliases(0)?;
    parser.end()?;
    Ok(aliases)
}

fn write_arguments<'a>(
    out: &mut String,
    name: &str,
    types: impl IntoIterator<Item = &'a CqlType>,
    around: Around,
) {
    out.push_str(name);
    let mut separator = '(';
    for ty in types {
        out.push(separator);
        ty.write_class(out, around);
        separator = ',';
    }
    out.push(')');
}

fn write_user_type(out: &mut String, definition: &UserType, inner: Around) {
    out.push_str("UserType(");
    out.push_str(&definition.keyspace);
    out.push(',');
    hex::print_into(definition.name.as_bytes(), out);
    for (name, ty) in &definition.fields {
        out.push(',');
        hex::print_into(name.as_bytes(), out);
        out.push(':');
        ty.write_class(out, inner);
    }
    out.push(')');
}

/// The class string of a composite partition key.
pub fn composite_class<'a>(components: impl IntoIterator<Item = &'a CqlType>) -> String {
    let mut text = PACKAGE.to_owned();
    write_arguments(&mut text, "CompositeType", components, Around::Nothing);
    text
}

/// The component types of a partition key's class string: those of `CompositeType(...)`, or the single type.
///
/// # Errors
/// The string does not parse.
pub fn partition_key_types(class: &str) -> Result<Vec<CqlType>, Error> {
    let simple = class.strip_prefix(PACKAGE).unwrap_or(class);
    let Some(arguments) = simple.strip_prefix("CompositeType") else {
        return Ok(vec![CqlType::from_class(class)?.0]);
    };
    let mut parser = Parser {
        text: arguments,
        at: 0,
    };
    let types = parser.class_list(0, Around::Nothing)?;
    parser.end()?;
    Ok(types)
}

/// Parses class strings. Spaces are allowed between tokens.
struct Parser<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Parser<'a> {
    fn class(&mut self, depth: usize, around: Around) -> Result<(CqlType, bool), Error> {
        if depth > DEPTH_MAX {
            return Err(self.error("types nested too deeply"));
        }
        let start = self.skip_spaces();
        let name = self.name();
        let simple = name.strip_prefix(PACKAGE).unwrap_or(name);
        if let Some((_, ty)) = SCALARS.iter().find(|(class, _)| *class == simple) {
            self.skip_empty_parentheses();
            return Ok((ty.clone(), false));
        }
        let depth = depth + 1;
        let ty = match simple {
            "ReversedType" => return Ok((self.single(depth, around)?, true)),
            "FrozenType" => self.single(depth, Around::Frozen)?,
            "ListType" => CqlType::List {
                element: Arc::new(self.single(depth, around)?),
                frozen: around == Around::Frozen,
            },
            "SetType" => CqlType::Set {
                element: Arc::new(self.single(depth, around)?),
                frozen: around == Around::Frozen,
            },
            "MapType" => self.map(depth, around)?,
            "TupleType" => CqlType::Tuple(self.class_list(depth, Around::Frozen)?.into()),
            "UserType" => self.user_type(depth, around)?,
            "VectorType" => self.vector(depth)?,
            "DateType" => self.old_name_of(CqlType::Timestamp),
            "LegacyTimeUUIDType" => self.old_name_of(CqlType::TimeUuid),
            "CompositeType" => {
                let types = self.class_list(depth, Around::Nothing)?;
                CqlType::Custom(composite_class(&types).into())
            }
            "DynamicCompositeType" => self.dynamic_composite(depth)?,
            "" => return Err(self.error("a class name")),
            _ => self.custom(start, simple)?,
        };
        Ok((ty, false))
    }

    /// `(class)`
    fn single(&mut self, depth: usize, around: Around) -> Result<CqlType, Error> {
        let mut types = self.class_list(depth, around)?;
        match (types.pop(), types.is_empty()) {
            (Some(ty), true) => Ok(ty),
            _ => Err(self.error("one type argument")),
        }
    }

    /// `(class, class...)`
    fn class_list(&mut self, depth: usize, around: Around) -> Result<Vec<CqlType>, Error> {
        let mut types = Vec::new();
        self.expect('(')?;
        loop {
            types.push(self.class(depth, around)?.0);
            if !self.more()? {
                return Ok(types);
            }
        }
    }

    fn map(&mut self, depth: usize, around: Around) -> Result<CqlType, Error> {
        let types = self.class_list(depth, around)?;
        let Ok([key, value]) = <[CqlType; 2]>::try_from(types) else {
            return Err(self.error("two type arguments"));
        };
        Ok(CqlType::Map {
            key: Arc::new(key),
            value: Arc::new(value),
            frozen: around == Around::Frozen,
        })
    }

    fn vector(&mut self, depth: usize) -> Result<CqlType, Error> {
        self.expect('(')?;
        let (element, _) = self.class(depth, Around::Frozen)?;
        self.expect(',')?;
        self.skip_spaces();
        let dimension = self.name().parse().ok().filter(|dimension| *dimension > 0);
        let dimension = dimension.ok_or_else(|| self.error("a vector dimension"))?;
        self.expect(')')?;
        Ok(CqlType::Vector {
            element: Arc::new(element),
            dimension,
        })
    }

    fn user_type(&mut self, depth: usize, around: Around) -> Result<CqlType, Error> {
        self.expect('(')?;
        self.skip_spaces();
        let keyspace = self.name().to_owned();
        self.expect(',')?;
        let name = self.hex_name()?;
        let mut fields = Vec::new();
        while self.more()? {
            let field = self.hex_name()?;
            self.expect(':')?;
            // Inside a user type all types are frozen, with or without `FrozenType`.
            fields.push((field, self.class(depth, Around::Frozen)?.0));
        }
        Ok(CqlType::Udt {
            definition: Arc::new(UserType {
                keyspace,
                name,
                fields,
            }),
            frozen: around == Around::Frozen,
        })
    }

    fn hex_name(&mut self) -> Result<String, Error> {
        self.skip_spaces();
        let digits = self.name();
        hex::parse(digits)
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .ok_or_else(|| self.error("a name in hex"))
    }

    fn old_name_of(&mut self, ty: CqlType) -> CqlType {
        self.skip_empty_parentheses();
        ty
    }

    /// `DynamicCompositeType[(alias=>class, ...)]`
    fn dynamic_composite(&mut self, depth: usize) -> Result<CqlType, Error> {
        let mut aliases = Vec::new();
        if self.peek() == Some('(') {
            self.at += 1;
            self.skip_spaces();
            if self.peek() == Some(')') {
                self.at += 1;
            } else {
                aliases = self.aliases(depth)?;
            }
        }
        let mut text = format!("{PACKAGE}DynamicCompositeType(");
        for (index, (alias, ty)) in aliases.iter().enumerate() {
            let separator = if index == 0 { "" } else { "," };
            let _ = write!(text, "{separator}{}=>{}", char::from(*alias), ty.to_class());
        }
        text.push(')');
        Ok(CqlType::Custom(text.into()))
    }

    /// `alias=>class, ...)`
    fn aliases(&mut self, depth: usize) -> Result<Vec<(u8, CqlType)>, Error> {
        let mut aliases = Vec::new();
        loop {
            self.skip_spaces();
            let [alias] = self.name().as_bytes() else {
                return Err(self.error("an alias of one character"));
            };
            self.expect('=')?;
            self.expect('>')?;
            aliases.push((*alias, self.class(depth, Around::Nothing)?.0));
            if !self.more()? {
                return Ok(aliases);
            }
        }
    }

    /// Keeps a class with its arguments as text; a known class gets its full name.
    fn custom(&mut self, start: usize, simple: &str) -> Result<CqlType, Error> {
        if self.peek() == Some('(') {
            let mut open = 0usize;
            let len = self.text[self.at..].find(|c| {
                match c {
                    '(' => open += 1,
                    ')' => open -= 1,
                    _ => {}
                }
                open == 0
            });
            self.at += len.ok_or_else(|| self.error("a closing parenthesis"))? + 1;
        }
        let text = &self.text[start..self.at];
        Ok(CqlType::Custom(match simple {
            "LexicalUUIDType" => format!("{PACKAGE}LexicalUUIDType").into(),
            "PartitionerDefinedOrder" => full_order(text).into(),
            _ => text.into(),
        }))
    }

    fn skip_empty_parentheses(&mut self) {
        if self.text[self.at..].starts_with("()") {
            self.at += 2;
        }
    }

    /// Consumes the separator after an argument. Returns true for a comma, false for the closing parenthesis.
    fn more(&mut self) -> Result<bool, Error> {
        self.skip_spaces();
        let found = match self.peek() {
            Some(',') => true,
            Some(')') => false,
            _ => return Err(self.error("',' or ')'")),
        };
        self.at += 1;
        Ok(found)
    }

    fn name(&mut self) -> &'a str {
        let rest = &self.text[self.at..];
        let len = rest.find(['(', ')', ',', ':', ' ', '=']).unwrap_or(rest.len());
        self.at += len;
        &rest[..len]
    }

    fn peek(&self) -> Option<char> {
        self.text[self.at..].chars().next()
    }

    fn skip_spaces(&mut self) -> usize {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches(' ').len();
        self.at
    }

    fn expect(&mut self, wanted: char) -> Result<(), Error> {
        self.skip_spaces();
        if self.peek() != Some(wanted) {
            return Err(self.error(&format!("'{wanted}'")));
        }
        self.at += wanted.len_utf8();
        Ok(())
    }

    fn end(&mut self) -> Result<(), Error> {
        self.skip_spaces();
        if self.at == self.text.len() {
            Ok(())
        } else {
            Err(self.error("the end"))
        }
    }

    fn error(&self, expected: &str) -> Error {
        Error::InvalidType(format!(
            "Syntax error parsing '{}' at char {}: expected {expected}",
            self.text, self.at
        ))
    }
}
