//! Names of types.

use super::{Parser, Result};
use crate::ast::{CqlTypeName, NativeType, QualifiedName};
use crate::fault::Fault;
use crate::keyword::{Class, Keyword};
use crate::token::Kind;

/// Words that are not allowed as unquoted names of user types, beside native types.
pub(crate) const RESERVED_TYPE_NAMES: [&str; 6] =
    ["byte", "complex", "enum", "interval", "macaddr", "bitstring"];

impl Parser<'_> {
    /// Any type. `frozen` does not count as a level, as in the limits of types, so that a statement may have the deepest type
    /// that is allowed. `frozen` of `frozen` counts; otherwise `frozen<frozen<..` could nest without bound.
    pub(crate) fn type_name(&mut self) -> Result<CqlTypeName> {
        let is_frozen =
            |at: usize| self.peek(at) == Kind::Keyword(Keyword::Frozen) && self.peek(at + 1) == Kind::Less;
        match is_frozen(0) && !is_frozen(2) {
            true => self.type_name_inside(),
            false => self.nested(Self::type_name_inside),
        }
    }

    fn type_name_inside(&mut self) -> Result<CqlTypeName> {
        match self.kind() {
            Kind::String | Kind::DollarString => self.string().map(CqlTypeName::Custom),
            Kind::Keyword(Keyword::Set) => self.parameterized(Keyword::Set),
            Kind::Keyword(word) if self.peek(1) == Kind::Less => self.parameterized(word),
            Kind::Keyword(word) if self.peek(1) != Kind::Dot => match word.class() {
                Class::Native(native) => {
                    if !ends_type(self.peek(1)) {
                        return self.unexpected_at(1);
                    }
                    self.advance();
                    Ok(CqlTypeName::Native(native))
                }
                _ => self.user_type_name().map(CqlTypeName::User),
            },
            _ => self.user_type_name().map(CqlTypeName::User),
        }
    }

    /// A type with parameters in angle brackets.
    fn parameterized(&mut self, word: Keyword) -> Result<CqlTypeName> {
        if !matches!(
            word,
            Keyword::List | Keyword::Set | Keyword::Map | Keyword::Tuple | Keyword::Vector | Keyword::Frozen
        ) {
            return self.unexpected_at(1);
        }
        self.advance();
        self.expect(Kind::Less)?;
        let first = self.type_name()?;
        let parsed = match word {
            Keyword::List => CqlTypeName::List(Box::new(first)),
            Keyword::Set => CqlTypeName::Set(Box::new(first)),
            Keyword::Map => {
                self.expect(Kind::Comma)?;
                CqlTypeName::Map(Box::new(first), Box::new(self.type_name()?))
            }
            Keyword::Vector => {
                self.expect(Kind::Comma)?;
                CqlTypeName::Vector(Box::new(first), self.dimension()?)
            }
            Keyword::Frozen => frozen(first)?,
            _ => {
                let mut members = vec![first];
                while self.eat(Kind::Comma) {
                    members.push(self.type_name()?);
                }
                CqlTypeName::Tuple(members)
            }
        };
        self.expect(Kind::Greater)?;
        Ok(parsed)
    }

    fn dimension(&mut self) -> Result<u32> {
        let token = self.expect(Kind::Integer)?;
        let digits = self.slice(token);
        match digits.parse::<i32>().map(u32::try_from) {
            Ok(Ok(dimension)) if dimension > 0 => Ok(dimension),
            _ => Err(Fault::Invalid(format!(
                "vectors may only have positive dimensions; given {digits}"
            ))),
        }
    }

    /// The name of a user type, where other types are not allowed.
    pub(super) fn user_type_name(&mut self) -> Result<QualifiedName> {
        if self.peek(1) == Kind::Dot {
            let keyspace = self.identifier()?;
            self.advance();
            return Ok(QualifiedName {
                keyspace: Some(keyspace),
                name: self.bare_type_name()?,
            });
        }
        if let Kind::Keyword(word) = self.kind()
            && word.is_name()
            && !word.is_type_name()
        {
            // A keyword that cannot name a user type can only be a keyspace here.
            self.advance();
            self.expect(Kind::Dot)?;
        }
        Ok(QualifiedName {
            keyspace: None,
            name: self.bare_type_name()?,
        })
    }

    fn bare_type_name(&mut self) -> Result<String> {
        let token = self.token(0);
        let name = match token.kind {
            Kind::Keyword(word) if !word.is_type_name() => return self.unexpected(),
            _ => self.identifier()?,
        };
        if token.kind == Kind::Identifier && RESERVED_TYPE_NAMES.contains(&name.as_str()) {
            return Err(Fault::Rule(format!("Invalid (reserved) user type name {name}")));
        }
        Ok(name)
    }

    /// A type without parameters, for `CAST`.
    pub(super) fn native_type(&mut self) -> Result<NativeType> {
        if let Kind::Keyword(word) = self.kind()
            && let Class::Native(native) = word.class()
        {
            self.advance();
            return Ok(native);
        }
        self.unexpected()
    }
}

/// True if this token may follow a type. Compat: Cassandra looks at it to distinguish a native type from a keyspace.
fn ends_type(kind: Kind) -> bool {
    match kind {
        Kind::Keyword(word) => matches!(
            word,
            Keyword::Finalfunc
                | Keyword::From
                | Keyword::Initcond
                | Keyword::Language
                | Keyword::Masked
                | Keyword::Primary
                | Keyword::Static
                | Keyword::Stype
                | Keyword::To
        ),
        Kind::CloseParen | Kind::Comma | Kind::Greater | Kind::Semicolon | Kind::End => true,
        _ => false,
    }
}

fn frozen(inner: CqlTypeName) -> Result<CqlTypeName> {
    match inner {
        CqlTypeName::Native(_) | CqlTypeName::Custom(_) => Err(Fault::Rule(format!(
            "frozen<> is only allowed on collections, tuples, and user-defined types (got {inner})"
        ))),
        _ => Ok(CqlTypeName::Frozen(Box::new(inner))),
    }
}
