//! Prints definitions of keyspaces, user types, indexes and triggers.

use std::fmt::{Display, Formatter, Result};

use super::{List, QualifiedType, separated, when};
use crate::ast::{
    AlterKeyspace, AlterType, CqlTypeName, CreateIndex, CreateKeyspace, CreateTrigger, CreateType,
    DropKeyspace, DropTrigger, Identifier, IndexTarget, IndexTargetKind, Properties, PropertyValue,
    TypeChange,
};
use crate::quote::{Name, Text};

impl Display for Properties {
    /// Prints the properties without the word `WITH`.
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        separated(out, &self.0, " AND ", |out, (name, value)| {
            write!(out, "{} = {value}", Name(name))
        })
    }
}

impl Display for PropertyValue {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::Text(text) => Text(text).fmt(out),
            Self::Map(entries) => text_map(out, entries),
        }
    }
}

/// `{'a': 'b'}`
pub(super) fn text_map(out: &mut Formatter<'_>, entries: &[(String, String)]) -> Result {
    out.write_str("{")?;
    separated(out, entries, ", ", |out, (key, value)| {
        write!(out, "{}: {}", Text(key), Text(value))
    })?;
    out.write_str("}")
}

impl Display for CreateKeyspace {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let if_not_exists = when(self.if_not_exists, "IF NOT EXISTS ");
        write!(
            out,
            "CREATE KEYSPACE {if_not_exists}{} WITH {}",
            Name(&self.keyspace),
            self.properties
        )
    }
}

impl Display for AlterKeyspace {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let if_exists = when(self.if_exists, "IF EXISTS ");
        write!(
            out,
            "ALTER KEYSPACE {if_exists}{} WITH {}",
            Name(&self.keyspace),
            self.properties
        )
    }
}

impl Display for DropKeyspace {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(
            out,
            "DROP KEYSPACE {}{}",
            when(self.if_exists, "IF EXISTS "),
            Name(&self.keyspace)
        )
    }
}

impl Display for CreateType {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let if_not_exists = when(self.if_not_exists, "IF NOT EXISTS ");
        write!(out, "CREATE TYPE {if_not_exists}{} (", QualifiedType(&self.name))?;
        names_and_types(out, &self.fields)?;
        out.write_str(")")
    }
}

/// `a int, b text`
pub(super) fn names_and_types(out: &mut Formatter<'_>, pairs: &[(Identifier, CqlTypeName)]) -> Result {
    separated(out, pairs, ", ", |out, (name, type_name)| {
        write!(out, "{} {type_name}", Name(name))
    })
}

/// `a TO b AND c TO d`
pub(super) fn renames(out: &mut Formatter<'_>, pairs: &[(Identifier, Identifier)]) -> Result {
    separated(out, pairs, " AND ", |out, (from, to)| {
        write!(out, "{} TO {}", Name(from), Name(to))
    })
}

impl Display for AlterType {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(
            out,
            "ALTER TYPE {}{} ",
            when(self.if_exists, "IF EXISTS "),
            QualifiedType(&self.name)
        )?;
        match &self.change {
            TypeChange::AddField {
                if_not_exists,
                field,
                type_name,
            } => {
                write!(
                    out,
                    "ADD {}{} {type_name}",
                    when(*if_not_exists, "IF NOT EXISTS "),
                    Name(field)
                )
            }
            TypeChange::RenameFields {
                if_exists,
                renames: pairs,
            } => {
                write!(out, "RENAME {}", when(*if_exists, "IF EXISTS "))?;
                renames(out, pairs)
            }
            TypeChange::AlterField { field, type_name } => {
                write!(out, "ALTER {} TYPE {type_name}", Name(field))
            }
        }
    }
}

impl Display for CreateIndex {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let custom = when(self.is_custom, "CUSTOM ");
        let if_not_exists = when(self.if_not_exists, "IF NOT EXISTS ");
        write!(out, "CREATE {custom}INDEX {if_not_exists}")?;
        if let Some(name) = &self.name {
            write!(out, "{} ", Name(name))?;
        }
        write!(out, "ON {} ({})", self.table, List(&self.targets))?;
        if let Some(class) = &self.using {
            write!(out, " USING {}", Text(class))?;
        }
        if !self.properties.is_empty() {
            write!(out, " WITH {}", self.properties)?;
        }
        Ok(())
    }
}

impl Display for IndexTarget {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let column = Name(&self.column);
        match self.kind {
            IndexTargetKind::Simple => column.fmt(out),
            IndexTargetKind::Values => write!(out, "values({column})"),
            IndexTargetKind::Keys => write!(out, "keys({column})"),
            IndexTargetKind::Entries => write!(out, "entries({column})"),
            IndexTargetKind::Full => write!(out, "full({column})"),
        }
    }
}

impl Display for CreateTrigger {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let if_not_exists = when(self.if_not_exists, "IF NOT EXISTS ");
        let (name, class) = (Name(&self.name), Text(&self.class));
        write!(
            out,
            "CREATE TRIGGER {if_not_exists}{name} ON {} USING {class}",
            self.table
        )
    }
}

impl Display for DropTrigger {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let if_exists = when(self.if_exists, "IF EXISTS ");
        write!(
            out,
            "DROP TRIGGER {if_exists}{} ON {}",
            Name(&self.name),
            self.table
        )
    }
}
