//! Prints tables and views.

use std::fmt::{Display, Formatter, Result};

use super::data::where_clause;
use super::definition::renames;
use super::{List, Names, QualifiedFunction, separated, when};
use crate::ast::{
    AlterTable, AlterView, ColumnDefinition, ColumnMask, CreateTable, CreateTableLike, CreateView, Direction,
    Identifier, PrimaryKey, Properties, TableChange,
};
use crate::quote::Name;

impl Display for CreateTable {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let if_not_exists = when(self.if_not_exists, "IF NOT EXISTS ");
        write!(
            out,
            "CREATE TABLE {if_not_exists}{} ({}",
            self.table,
            List(&self.columns)
        )?;
        if let Some(key) = &self.primary_key {
            write!(out, "{}{key}", when(!self.columns.is_empty(), ", "))?;
        }
        out.write_str(")")?;
        with_clauses(
            out,
            self.compact_storage,
            &self.clustering_order,
            &self.properties,
        )
    }
}

/// ` WITH ..`; empty if there are no clauses.
fn with_clauses(
    out: &mut Formatter<'_>,
    compact_storage: bool,
    clustering_order: &[(Identifier, Direction)],
    properties: &Properties,
) -> Result {
    let mut lead = " WITH ";
    if compact_storage {
        write!(out, "{lead}COMPACT STORAGE")?;
        lead = " AND ";
    }
    if !clustering_order.is_empty() {
        write!(out, "{lead}CLUSTERING ORDER BY (")?;
        separated(out, clustering_order, ", ", |out, (column, direction)| {
            write!(out, "{} {direction}", Name(column))
        })?;
        out.write_str(")")?;
        lead = " AND ";
    }
    if !properties.is_empty() {
        write!(out, "{lead}{properties}")?;
    }
    Ok(())
}

impl Display for ColumnDefinition {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(
            out,
            "{} {}{}",
            Name(&self.name),
            self.type_name,
            when(self.is_static, " STATIC")
        )?;
        match &self.mask {
            Some(mask) => write!(out, " {mask}"),
            None => Ok(()),
        }
    }
}

impl Display for ColumnMask {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(
            out,
            "MASKED WITH {}({})",
            QualifiedFunction(&self.function),
            List(&self.arguments)
        )
    }
}

impl Display for PrimaryKey {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self.partition_key.as_slice() {
            [only] => write!(out, "PRIMARY KEY ({}", Name(only))?,
            several => write!(out, "PRIMARY KEY (({})", Names(several))?,
        }
        if !self.clustering.is_empty() {
            write!(out, ", {}", Names(&self.clustering))?;
        }
        out.write_str(")")
    }
}

impl Display for CreateTableLike {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let if_not_exists = when(self.if_not_exists, "IF NOT EXISTS ");
        write!(
            out,
            "CREATE TABLE {if_not_exists}{} LIKE {}",
            self.table, self.source
        )?;
        out.write_str(when(self.with_indexes, " WITH INDEXES"))?;
        if !self.properties.is_empty() {
            write!(
                out,
                " {} {}",
                if self.with_indexes { "AND" } else { "WITH" },
                self.properties
            )?;
        }
        Ok(())
    }
}

impl Display for AlterTable {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        write!(
            out,
            "ALTER TABLE {}{} {}",
            when(self.if_exists, "IF EXISTS "),
            self.table,
            self.change
        )
    }
}

impl Display for TableChange {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        match self {
            Self::AddColumns {
                if_not_exists,
                columns,
            } => {
                write!(out, "ADD {}", when(*if_not_exists, "IF NOT EXISTS "))?;
                match columns.as_slice() {
                    [only] => only.fmt(out),
                    several => write!(out, "({})", List(several)),
                }
            }
            Self::DropColumns {
                if_exists,
                columns,
                timestamp_micros,
            } => {
                write!(out, "DROP {}", when(*if_exists, "IF EXISTS "))?;
                match columns.as_slice() {
                    [only] => Name(only).fmt(out)?,
                    several => write!(out, "({})", Names(several))?,
                }
                match timestamp_micros {
                    Some(micros) => write!(out, " USING TIMESTAMP {micros}"),
                    None => Ok(()),
                }
            }
            Self::RenameColumns {
                if_exists,
                renames: pairs,
            } => {
                write!(out, "RENAME {}", when(*if_exists, "IF EXISTS "))?;
                renames(out, pairs)
            }
            Self::AlterColumnType { column, type_name } => {
                write!(out, "ALTER {} TYPE {type_name}", Name(column))
            }
            Self::AlterColumnMask {
                if_exists,
                column,
                mask,
            } => {
                write!(out, "ALTER {}{} ", when(*if_exists, "IF EXISTS "), Name(column))?;
                match mask {
                    Some(mask) => mask.fmt(out),
                    None => out.write_str("DROP MASKED"),
                }
            }
            Self::DropCompactStorage => out.write_str("DROP COMPACT STORAGE"),
            Self::Properties(properties) => write!(out, "WITH {properties}"),
        }
    }
}

impl Display for CreateView {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let if_not_exists = when(self.if_not_exists, "IF NOT EXISTS ");
        write!(out, "CREATE MATERIALIZED VIEW {if_not_exists}{} AS ", self.view)?;
        write!(out, "SELECT {} FROM {}", self.selection, self.base)?;
        where_clause(out, &self.relations)?;
        write!(out, " {}", self.primary_key)?;
        with_clauses(out, false, &self.clustering_order, &self.properties)
    }
}

impl Display for AlterView {
    fn fmt(&self, out: &mut Formatter<'_>) -> Result {
        let if_exists = when(self.if_exists, "IF EXISTS ");
        write!(
            out,
            "ALTER MATERIALIZED VIEW {if_exists}{} WITH {}",
            self.view, self.properties
        )
    }
}
