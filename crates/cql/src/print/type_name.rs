//! Prints types.

use std::fmt::{Display, Formatter, Result};

use super::{List, QualifiedType};
use crate::ast::{CqlTypeName, NativeType};
use crate::quote::Text;

impl Display for NativeType {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        out.write_str(self.name())
    }
}

impl Display for CqlTypeName {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Native(native) => native.fmt(out),
            Self::List(member) => write!(out, "list<{member}>"),
            Self::Set(member) => write!(out, "set<{member}>"),
            Self::Map(key, value) => write!(out, "map<{key}, {value}>"),
            Self::Tuple(members) => write!(out, "tuple<{}>", List(members)),
            Self::Vector(member, dimension) => write!(out, "vector<{member}, {dimension}>"),
            Self::Frozen(inner) => write!(out, "frozen<{inner}>"),
            Self::Custom(class) => Text(class).fmt(out),
            Self::User(name) => QualifiedType(name).fmt(out),
        }
    }
}
