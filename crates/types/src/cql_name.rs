//! CQL type strings: `int`, `frozen<list<int>>`, `map<text, int>`, `"Address"`, `vector<float, 3>`, `'custom class'`.
//!
//! Printed as in `system_schema` and DESCRIBE: comma and space, `frozen` at every frozen level, names quoted if necessary. Not
//! here: class strings (`class`).

use std::fmt;
use std::sync::Arc;

use crate::limits::TYPE_DEPTH_MAX;
use crate::{CqlType, Error, UserType};

/// Deepest nesting that is parsed: `frozen<...>` is a level here, but not in [`TYPE_DEPTH_MAX`].
const DEPTH_MAX: usize = 2 * TYPE_DEPTH_MAX;

const SCALARS: [(&str, CqlType); 22] = [
    ("ascii", CqlType::Ascii),
    ("bigint", CqlType::BigInt),
    ("blob", CqlType::Blob),
    ("boolean", CqlType::Boolean),
    ("counter", CqlType::Counter),
    ("date", CqlType::Date),
    ("decimal", CqlType::Decimal),
    ("double", CqlType::Double),
    ("duration", CqlType::Duration),
    ("empty", CqlType::Empty),
    ("float", CqlType::Float),
    ("inet", CqlType::Inet),
    ("int", CqlType::Int),
    ("smallint", CqlType::SmallInt),
    ("text", CqlType::Text),
    ("time", CqlType::Time),
    ("timestamp", CqlType::Timestamp),
    ("timeuuid", CqlType::TimeUuid),
    ("tinyint", CqlType::TinyInt),
    ("uuid", CqlType::Uuid),
    ("varchar", CqlType::Text),
    ("varint", CqlType::Varint),
];

/// Names that need quotes. Compat: `ReservedKeywords` of Cassandra 5.0, which differ from those of its grammar (`ilion_cql`).
const RESERVED: [&str; 62] = [
    "add",
    "allow",
    "alter",
    "and",
    "apply",
    "asc",
    "authorize",
    "batch",
    "begin",
    "by",
    "columnfamily",
    "create",
    "default",
    "delete",
    "desc",
    "describe",
    "drop",
    "entries",
    "execute",
    "from",
    "full",
    "grant",
    "if",
    "in",
    "index",
    "infinity",
    "insert",
    "into",
    "is",
    "keyspace",
    "limit",
    "materialized",
    "mbean",
    "mbeans",
    "modify",
    "nan",
    "norecursive",
    "not",
    "null",
    "of",
    "on",
    "or",
    "order",
    "primary",
    "rename",
    "replace",
    "revoke",
    "schema",
    "select",
    "set",
    "table",
    "to",
    "token",
    "truncate",
    "unlogged",
    "unset",
    "update",
    "use",
    "using",
    "view",
    "where",
    "with",
];

/// The name in CQL: quoted unless it is a lower-case identifier and not reserved.
pub fn quote_name(name: &str) -> std::borrow::Cow<'_, str> {
    let plain = name.starts_with(|c: char| c.is_ascii_lowercase())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        && !RESERVED.contains(&name);
    if plain {
        name.into()
    } else {
        format!("\"{}\"", name.replace('"', "\"\"")).into()
    }
}

/// Words that name types, or are reserved for types, where a type name is expected.
const TYPE_WORDS: [&str; 12] = [
    "bitstring",
    "byte",
    "complex",
    "enum",
    "frozen",
    "interval",
    "list",
    "macaddr",
    "map",
    "set",
    "tuple",
    "vector",
];

/// The name of a user type in CQL: like [`quote_name`], and also quoted if it is the name of another type.
///
/// Compat: Cassandra does not quote `"int"`, and reads it as the native type at its next start.
pub fn quote_type_name(name: &str) -> std::borrow::Cow<'_, str> {
    if CqlType::scalar(name).is_some() || TYPE_WORDS.contains(&name) {
        return format!("\"{name}\"").into();
    }
    quote_name(name)
}

/// Prints the CQL type string.
impl fmt::Display for CqlType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let framed = matches!(self, Self::Tuple(_))
            || ((self.is_collection() || matches!(self, Self::Udt { .. })) && !self.is_multi_cell());
        if framed {
            f.write_str("frozen<")?;
        }
        match self {
            Self::List { element, .. } => write!(f, "list<{element}>"),
            Self::Set { element, .. } => write!(f, "set<{element}>"),
            Self::Map { key, value, .. } => write!(f, "map<{key}, {value}>"),
            Self::Tuple(types) => write_tuple(f, types),
            Self::Udt { definition, .. } => f.write_str(&quote_type_name(&definition.name)),
            Self::Vector { element, dimension } => write!(f, "vector<{element}, {dimension}>"),
            Self::Custom(class) => write!(f, "'{}'", class.replace('\'', "''")),
            scalar => f.write_str(scalar.scalar_name().unwrap_or("blob")),
        }?;
        if framed { f.write_str(">") } else { Ok(()) }
    }
}

fn write_tuple(f: &mut fmt::Formatter<'_>, types: &[CqlType]) -> fmt::Result {
    f.write_str("tuple<")?;
    for (index, ty) in types.iter().enumerate() {
        let separator = if index == 0 { "" } else { ", " };
        write!(f, "{separator}{ty}")?;
    }
    f.write_str(">")
}

impl CqlType {
    fn scalar_name(&self) -> Option<&'static str> {
        SCALARS.iter().find(|(_, ty)| ty == self).map(|(name, _)| *name)
    }

    /// The scalar type of a lower-case CQL name; `None` for other names.
    pub fn scalar(name: &str) -> Option<CqlType> {
        SCALARS
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, ty)| ty.clone())
    }

    /// Parses a CQL type string. `user_type` finds the user types of `keyspace` by name.
    ///
    /// Types inside `frozen`, tuples, vectors and user types are frozen, even if the text does not say so.
    ///
    /// # Errors
    /// The text does not parse, or names an unknown type or a type of another keyspace.
    pub fn parse_cql(
        text: &str,
        keyspace: &str,
        user_type: &dyn Fn(&str) -> Option<Arc<UserType>>,
    ) -> Result<CqlType, Error> {
        let mut parser = Parser {
            text,
            rest: text,
            keyspace,
            user_type,
        };
        let ty = parser.any(0)?;
        if parser.rest.trim_start().is_empty() {
            Ok(ty)
        } else {
            Err(parser.error("the end"))
        }
    }
}

struct Parser<'a> {
    text: &'a str,
    rest: &'a str,
    keyspace: &'a str,
    user_type: &'a dyn Fn(&str) -> Option<Arc<UserType>>,
}

impl Parser<'_> {
    fn any(&mut self, depth: usize) -> Result<CqlType, Error> {
        if depth > DEPTH_MAX {
            return Err(self.error("fewer nested types"));
        }
        self.rest = self.rest.trim_start();
        match self.rest.chars().next() {
            Some('"') => {
                let name = self.quoted('"')?;
                self.user_type_named(name)
            }
            Some('\'') => {
                let class = self.quoted('\'')?;
                Ok(CqlType::from_class(&class)?.0)
            }
            _ => {
                let name = self.word()?;
                if self.accept('<') {
                    self.generic(&name, depth + 1)
                } else {
                    self.plain(name)
                }
            }
        }
    }

    fn plain(&mut self, name: String) -> Result<CqlType, Error> {
        match CqlType::scalar(&name) {
            Some(ty) if !self.rest.starts_with('.') => Ok(ty),
            _ => self.user_type_named(name),
        }
    }

    /// Parses the rest of the name of a user type, which may be `keyspace.name`; `name` is the first word.
    fn user_type_named(&mut self, name: String) -> Result<CqlType, Error> {
        let mut name = name;
        if self.accept('.') {
            if name != self.keyspace {
                return Err(Error::InvalidType(format!(
                    "Statement on keyspace {} cannot refer to a user type in keyspace {name}; \
                     user types can only be used in the keyspace they are defined in",
                    self.keyspace
                )));
            }
            name = if self.rest.starts_with('"') {
                self.quoted('"')?
            } else {
                self.word()?
            };
        }
        match (self.user_type)(&name) {
            Some(definition) => Ok(CqlType::Udt {
                definition,
                frozen: false,
            }),
            None => Err(Error::InvalidType(format!(
                "Unknown type {}.{name}",
                self.keyspace
            ))),
        }
    }

    fn generic(&mut self, name: &str, depth: usize) -> Result<CqlType, Error> {
        let frozen = false;
        let ty = match name {
            "frozen" => self.any(depth)?.freeze(),
            "list" => CqlType::List {
                element: Arc::new(self.any(depth)?),
                frozen,
            },
            "set" => CqlType::Set {
                element: Arc::new(self.any(depth)?),
                frozen,
            },
            "map" => {
                let key = Arc::new(self.any(depth)?);
                self.expect(',')?;
                let value = Arc::new(self.any(depth)?);
                CqlType::Map { key, value, frozen }
            }
            "tuple" => {
                let mut types = vec![self.any(depth)?.freeze()];
                while self.accept(',') {
                    types.push(self.any(depth)?.freeze());
                }
                CqlType::Tuple(types.into())
            }
            "vector" => self.vector(depth)?,
            _ => return Err(self.error("a generic type")),
        };
        self.expect('>')?;
        Ok(ty)
    }

    fn vector(&mut self, depth: usize) -> Result<CqlType, Error> {
        let element = self.any(depth)?.freeze();
        self.expect(',')?;
        let dimension = self.word()?.parse().ok().filter(|dimension| *dimension > 0);
        Ok(CqlType::Vector {
            element: Arc::new(element),
            dimension: dimension
                .ok_or_else(|| Error::InvalidType("vectors may only have positive dimensions".into()))?,
        })
    }

    /// Parses an unquoted name or number; returns it in lower case.
    fn word(&mut self) -> Result<String, Error> {
        self.rest = self.rest.trim_start();
        let end = self
            .rest
            .find(|c: char| !c.is_ascii_alphanumeric() && c != '_')
            .unwrap_or(self.rest.len());
        if end == 0 {
            return Err(self.error("a type name"));
        }
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest;
        Ok(word.to_ascii_lowercase())
    }

    /// Parses a quoted text, in which a doubled quote means one quote.
    fn quoted(&mut self, quote: char) -> Result<String, Error> {
        let mut name = String::new();
        let mut chars = self.rest.char_indices().skip(1).peekable();
        while let Some((at, c)) = chars.next() {
            if c != quote {
                name.push(c);
            } else if chars.next_if(|(_, next)| *next == quote).is_some() {
                name.push(quote);
            } else {
                self.rest = &self.rest[at + 1..];
                return Ok(name);
            }
        }
        Err(self.error("a closing quote"))
    }

    fn accept(&mut self, wanted: char) -> bool {
        match self.rest.trim_start().strip_prefix(wanted) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, wanted: char) -> Result<(), Error> {
        if self.accept(wanted) {
            Ok(())
        } else {
            Err(self.error(&format!("'{wanted}'")))
        }
    }

    fn error(&self, expected: &str) -> Error {
        Error::InvalidType(format!(
            "Invalid type '{}': expected {expected} at '{}'",
            self.text, self.rest
        ))
    }
}
