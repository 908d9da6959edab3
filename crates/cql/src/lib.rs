//! CQL text to syntax tree and back.
//!
//! The language is CQL 3.4.7, as in Cassandra 5.0. `parse` takes the text of one statement, cuts it into tokens (`lexer`), and
//! parses these by recursive descent (`parser`, one file per family of statements) to a tree (`ast`). If that fails, `fault`
//! builds the message that Cassandra would send. `print` turns trees into CQL that parses to an equal tree.
//!
//! | module | |
//! | --- | --- |
//! | `ast` | the tree |
//! | `token`, `keyword`, `lexer` | text to tokens |
//! | `parser` | tokens to tree |
//! | `fault`, `error` | errors of texts that are not CQL |
//! | `print`, `quote` | tree to text |
//! | `split` | scripts to statements |
//! | `outline` | tokens of unfinished texts by class, for shells |
//! | `secret` | texts without the passwords in them |
//! | `shape` | statements without their values |
//!
//! A new statement touches `ast`, `parser::statement` and its family's file, `print::statement`, and `testdata`.

pub mod ast;
mod error;
mod fault;
mod keyword;
mod lexer;
mod outline;
mod parser;
mod print;
mod quote;
mod secret;
mod shape;
mod split;
mod token;

pub use error::{Error, ErrorKind};
pub use outline::{Class, Outline, Piece, outline};
pub use quote::{is_reserved, quote_identifier};
pub use secret::hide_secrets;
pub use shape::shape;
pub use split::split_statements;

use ast::{CqlTypeName, Identifier, Statement, Term};
use fault::Fault;
use parser::Parser;

/// A statement and the markers in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Parsed {
    /// The statement.
    pub statement: Statement,
    /// The bind markers in the order of the text; `BindMarker::index` counts into this list.
    pub markers: Vec<Marker>,
}

/// A placeholder for a value that comes with the execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// The name in `:name`; `None` for `?`. Several markers may have the same name.
    pub name: Option<Identifier>,
}

/// Parses one statement, with optional semicolons after it.
///
/// # Errors
/// The text is not one statement of CQL; its author must change it.
pub fn parse(text: &str) -> Result<Parsed, Error> {
    let (statement, parser) = parse_whole(text, Parser::statement)?;
    Ok(Parsed {
        statement,
        markers: parser.markers,
    })
}

/// Parses a type, such as `map<text, frozen<list<int>>>`.
///
/// # Errors
/// The text is not one type.
pub fn parse_type(text: &str) -> Result<CqlTypeName, Error> {
    parse_whole(text, Parser::type_name).map(|(type_name, _)| type_name)
}

/// Parses a term, such as a literal; its markers are numbered from 0.
///
/// # Errors
/// The text is not one term.
pub fn parse_term(text: &str) -> Result<Term, Error> {
    parse_whole(text, Parser::term).map(|(term, _)| term)
}

fn parse_whole<'a, T>(
    text: &'a str,
    parse: impl FnOnce(&mut Parser<'a>) -> parser::Result<T>,
) -> Result<(T, Parser<'a>), Error> {
    if u32::try_from(text.len()).is_err() {
        return Err(Fault::Rule("Statement is longer than 4 GiB".into()).into_error(""));
    }
    let mut parser = Parser::new(text);
    match parse(&mut parser).and_then(|parsed| parser.end().map(|()| parsed)) {
        Ok(parsed) => Ok((parsed, parser)),
        Err(fault) => Err(fault.into_error(&secret::mask_secrets(text))),
    }
}
