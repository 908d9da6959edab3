//! Trees back to CQL.
//!
//! Law: printed text parses to an equal tree. So markers are printed in the order of their numbers, and names are quoted if
//! they could be read as something else.

mod data;
mod definition;
mod function;
mod role;
mod selection;
mod statement;
mod table;
mod term;
mod type_name;

use std::fmt::{Display, Formatter, Result};

use crate::ast::{Identifier, QualifiedName};
use crate::quote::{FunctionName, Name, TypeName};

/// Items, separated by `, `.
struct List<'a, T>(&'a [T]);

impl<T: Display> Display for List<'_, T> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        separated(out, self.0, ", ", |out, item| item.fmt(out))
    }
}

/// Names, separated by `, `.
struct Names<'a>(&'a [Identifier]);

impl Display for Names<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        separated(out, self.0, ", ", |out, name| Name(name).fmt(out))
    }
}

/// Writes items with a separator between them.
fn separated<T>(
    out: &mut Formatter<'_>,
    items: &[T],
    separator: &str,
    write: impl Fn(&mut Formatter<'_>, &T) -> Result,
) -> Result {
    for (index, item) in items.iter().enumerate() {
        if index > 0 {
            out.write_str(separator)?;
        }
        write(out, item)?;
    }
    Ok(())
}

/// The text if the condition holds, otherwise an empty one.
fn when(condition: bool, text: &'static str) -> &'static str {
    if condition { text } else { "" }
}

fn keyspace_prefix(out: &mut Formatter<'_>, name: &QualifiedName) -> Result {
    match &name.keyspace {
        Some(keyspace) => write!(out, "{}.", Name(keyspace)),
        None => Ok(()),
    }
}

impl Display for QualifiedName {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        keyspace_prefix(out, self)?;
        Name(&self.name).fmt(out)
    }
}

/// The name of a function.
struct QualifiedFunction<'a>(&'a QualifiedName);

impl Display for QualifiedFunction<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        keyspace_prefix(out, self.0)?;
        FunctionName(&self.0.name).fmt(out)
    }
}

/// The name of a user type.
struct QualifiedType<'a>(&'a QualifiedName);

impl Display for QualifiedType<'_> {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        keyspace_prefix(out, self.0)?;
        TypeName(&self.0.name).fmt(out)
    }
}
