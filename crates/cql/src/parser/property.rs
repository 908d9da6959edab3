//! `WITH`: properties of keyspaces, tables, views, indexes, and options of roles.

use super::{Parser, Result};
use crate::ast::{Direction, Identifier, Literal, Properties, PropertyValue, Term};
use crate::fault::Fault;
use crate::keyword::Keyword;
use crate::token::Kind;

impl Parser<'_> {
    /// `WITH property (AND property)*`
    pub(super) fn required_properties(&mut self) -> Result<Properties> {
        self.expect_word(Keyword::With)?;
        let mut properties = Properties::default();
        self.joined_by_and(|parser| parser.property(&mut properties))?;
        Ok(properties)
    }

    /// An optional `WITH ..`.
    pub(super) fn optional_properties(&mut self) -> Result<Properties> {
        if self.at_word(Keyword::With) {
            self.required_properties()
        } else {
            Ok(Properties::default())
        }
    }

    /// `name = value`
    pub(super) fn property(&mut self, properties: &mut Properties) -> Result<()> {
        // Compat: name, sign and the first token of the value are checked together.
        if self.kind().is_name() && self.peek(1) != Kind::Equal {
            return self.unexpected_at(1);
        }
        if self.kind().is_name() && !is_property_value(self.peek(2)) {
            return self.unexpected_at(2);
        }
        let name = self.identifier()?;
        self.expect(Kind::Equal)?;
        let value = match self.kind() {
            Kind::OpenBrace => PropertyValue::Map(self.property_map()?),
            kind if kind.is_literal() => {
                let literal = self.literal()?;
                PropertyValue::Text(raw_text(literal).unwrap_or_default())
            }
            Kind::Keyword(word) if word.is_name() => PropertyValue::Text(self.identifier()?),
            _ => return self.unexpected(),
        };
        if properties.find(&name).is_some() {
            return Err(Fault::Rule(format!("Multiple definitions for property '{name}'")));
        }
        properties.0.push((name, value));
        Ok(())
    }

    /// `{'key': value, ..}` of constants, as text.
    pub(super) fn property_map(&mut self) -> Result<Vec<(String, String)>> {
        self.nested(Self::property_map_inside)
    }

    fn property_map_inside(&mut self) -> Result<Vec<(String, String)>> {
        self.expect(Kind::OpenBrace)?;
        let mut entries = Vec::new();
        if !self.at(Kind::CloseBrace) {
            let mut written = self.list(|parser| {
                let key = parser.term()?;
                parser.expect(Kind::Colon)?;
                Ok((key, parser.term()?))
            })?;
            for (key, value) in written.drain(..) {
                entries.push(property_entry(key, value)?);
            }
        }
        self.expect(Kind::CloseBrace)?;
        refuse_repeated(&entries)?;
        Ok(entries)
    }

    /// `CLUSTERING ORDER BY (a DESC, b ASC)`, after its first word.
    pub(super) fn clustering_order(&mut self) -> Result<Vec<(Identifier, Direction)>> {
        self.expect_word(Keyword::Order)?;
        self.expect_word(Keyword::By)?;
        self.parenthesized(|parser| {
            let column = parser.identifier()?;
            match parser.optional_direction() {
                Some(direction) => Ok((column, direction)),
                None => parser.unexpected(),
            }
        })
    }
}

fn is_property_value(kind: Kind) -> bool {
    let is_constant = kind.is_literal() && kind != Kind::Keyword(Keyword::Null);
    let is_word = matches!(kind, Kind::Keyword(word) if word.is_name());
    is_constant || is_word || kind == Kind::OpenBrace
}

fn property_entry(key: Term, value: Term) -> Result<(String, String)> {
    let (written_key, written_value) = (key.to_string(), value.to_string());
    let Some(key_text) = constant_text(&key) else {
        let hint = hint_at_markers(&key);
        return Err(Fault::Rule(format!("Invalid property name: {written_key}{hint}")));
    };
    let Some(value_text) = constant_text(&value) else {
        let hint = hint_at_markers(&value);
        return Err(Fault::Rule(format!(
            "Invalid property value: {written_value} for property: {written_key}{hint}"
        )));
    };
    Ok((key_text, value_text))
}

fn hint_at_markers(term: &Term) -> &'static str {
    match term {
        Term::Bind(_) => " (bind variables are not supported in DDL queries)",
        _ => "",
    }
}

fn refuse_repeated(entries: &[(String, String)]) -> Result<()> {
    let mut keys: Vec<&str> = entries.iter().map(|(key, _)| key.as_str()).collect();
    keys.sort_unstable();
    match keys
        .windows(2)
        .find(|pair| pair.first() == pair.last())
        .and_then(|pair| pair.first())
    {
        Some(key) => Err(Fault::Rule(format!("Multiple definition for property {key}"))),
        None => Ok(()),
    }
}

fn constant_text(term: &Term) -> Option<String> {
    match term {
        Term::Literal(literal) => raw_text(literal.clone()),
        _ => None,
    }
}

/// The text of a constant as a property; `None` for null.
fn raw_text(literal: Literal) -> Option<String> {
    Some(match literal {
        Literal::Null => return None,
        Literal::String(text)
        | Literal::Integer(text)
        | Literal::Float(text)
        | Literal::Uuid(text)
        | Literal::Duration(text) => text,
        Literal::Blob(digits) => format!("0x{digits}"),
        Literal::Boolean(value) => value.to_string(),
        Literal::NaN => "NaN".into(),
        Literal::Infinity => "Infinity".into(),
        Literal::NegativeInfinity => "-Infinity".into(),
    })
}
