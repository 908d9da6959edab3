//! Masks of columns: what roles without UNMASK see instead of a value.
//!
//! A mask is the name of a function, and its arguments after the first one, which is the value of the column. Planning a statement
//! finds the function by its name and the types of its arguments.
//!
//! Compat: `ColumnMask` of Cassandra 5.0.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

use bytes::Bytes;
use ilion_types::{CqlType, UserType, quote_name};

use crate::FunctionSchema;

/// The mask of a column.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ColumnMask {
    /// The keyspace of the function: `system`, or that of the table.
    pub keyspace: String,
    /// The name of the function.
    pub function: String,
    /// The arguments after the masked value.
    pub arguments: Vec<MaskArgument>,
}

/// An argument of a mask's function.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MaskArgument {
    /// The type that the function declares.
    pub ty: CqlType,
    /// The serialized value; `None` is null.
    pub value: Option<Bytes>,
}

impl ColumnMask {
    /// The types of all arguments of the function, for a column of type `masked`.
    pub fn argument_types(&self, masked: &CqlType) -> Vec<CqlType> {
        let others = self.arguments.iter().map(|argument| &argument.ty);
        [masked].into_iter().chain(others).cloned().collect()
    }

    /// True if the mask of a column of type `masked` calls this function of keyspace `keyspace`.
    pub(crate) fn calls(&self, keyspace: &str, function: &FunctionSchema, masked: &CqlType) -> bool {
        self.keyspace == keyspace && function.has_signature(&self.function, &self.argument_types(masked))
    }

    /// The mask with a new definition of a user type in the types of its arguments.
    pub(crate) fn with_udt(&self, new: &Arc<UserType>) -> Self {
        let mut altered = self.clone();
        for argument in &mut altered.arguments {
            argument.ty = argument.ty.with_udt(new);
        }
        altered
    }
}

impl MaskArgument {
    /// The type as which a value of type `ty` is printed in `system_schema`.
    ///
    /// Compat: a counter is hexadecimal (`CounterColumnType.getString`).
    pub(crate) fn text_type(ty: &CqlType) -> &CqlType {
        match ty {
            CqlType::Counter => &CqlType::Blob,
            other => other,
        }
    }
}

/// Prints the mask as in a statement: `system.mask_inner(1, null)`.
impl fmt::Display for ColumnMask {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}.{}(",
            quote_name(&self.keyspace),
            quote_name(&self.function)
        )?;
        for (index, argument) in self.arguments.iter().enumerate() {
            let separator = if index > 0 { ", " } else { "" };
            write!(out, "{separator}{argument}")?;
        }
        out.write_str(")")
    }
}

/// Prints the value as a CQL literal.
impl fmt::Display for MaskArgument {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value.as_ref().map(|value| self.ty.print_literal(value)) {
            None => out.write_str("null"),
            Some(Ok(literal)) => out.write_str(&literal),
            // Cannot happen, since values are checked when a mask is made.
            Some(Err(_)) => Err(fmt::Error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{ClusteringOrder, ColumnKind, NewColumn, TableBuilder, TableId};
    use crate::{
        Keyspace, Release, Replication, RowChange, Schema, SchemaChange, SchemaRow, TableAlteration,
    };

    fn mask(function: &str, arguments: &[(&str, Option<&str>)]) -> ColumnMask {
        let argument = |(ty, value): &(&str, Option<&str>)| {
            let ty = keyspace().parse_type(ty).unwrap();
            let value = value.map(|text| ty.parse_printed(text).unwrap().into());
            MaskArgument { ty, value }
        };
        ColumnMask {
            keyspace: "system".into(),
            function: function.into(),
            arguments: arguments.iter().map(argument).collect(),
        }
    }

    fn keyspace() -> Keyspace {
        let mut keyspace = Keyspace::new("ks", Replication::simple(), true);
        let fields = vec![("a".to_owned(), CqlType::Int), ("b".to_owned(), CqlType::Text)];
        let point = UserType {
            keyspace: "ks".into(),
            name: "u".into(),
            fields,
        };
        keyspace.types.insert("u".into(), Arc::new(point));
        keyspace
    }

    /// A schema with the table `ks.t (k, v)`, whose `v` has this type and mask.
    fn schema(ty: &str, mask: Option<ColumnMask>) -> Schema {
        let mut keyspace = keyspace();
        let table = TableBuilder::new("ks", "t", TableId(uuid::Uuid::from_u128(1)))
            .partition_key("k", CqlType::Int)
            .add(
                "v".into(),
                ColumnKind::Regular,
                keyspace.parse_type(ty).unwrap(),
                ClusteringOrder::Asc,
            )
            .mask("v", mask.map(Arc::new));
        keyspace.tables.insert("t".into(), table.build());
        let mut schema = Schema::with_system();
        schema.keyspaces.insert("ks".into(), Arc::new(keyspace));
        schema
    }

    fn read_back(rows: Vec<SchemaRow>) -> Option<Schema> {
        let loaded = Schema::from_rows_in_part(Release::V5_0, rows);
        loaded.faults.is_empty().then_some(loaded.schema)
    }

    fn row_of_mask(rows: &mut [SchemaRow]) -> &mut SchemaRow {
        rows.iter_mut().find(|row| row.table == "column_masks").unwrap()
    }

    #[test]
    fn masks_read_back_from_rows_as_they_were() {
        for (ty, argument, value) in [
            ("int", "int", Some("-7")),
            ("int", "int", None),
            ("counter", "counter", Some("16")),
            ("text", "text", Some("")),
            ("set<text>", "set<text>", Some("0000000200000001610000000162")),
            (
                "frozen<map<text, int>>",
                "frozen<map<text, int>>",
                Some("00000000"),
            ),
            ("frozen<u>", "frozen<u>", Some("1:a\\:b")),
            ("frozen<u>", "frozen<u>", Some("@:")),
            (
                "tuple<int, frozen<list<int>>>",
                "tuple<int, frozen<list<int>>>",
                Some("1:00000000"),
            ),
            ("vector<float, 2>", "vector<float, 2>", Some("3fc0000040000000")),
            ("timestamp", "timestamp", Some("2020-01-01T00:00:00.000Z")),
            ("duration", "duration", Some("1mo2d")),
        ] {
            let schema = schema(ty, Some(mask("mask_replace", &[(argument, value)])));
            let back = read_back(schema.to_rows()).unwrap_or_else(|| panic!("{ty} {value:?}"));
            let (before, after) = (schema.table("ks", "t"), back.table("ks", "t"));
            assert_eq!(before, after, "{ty} {value:?}");
            assert!(after.unwrap().has_masks());
        }
    }

    #[test]
    fn a_counter_is_stored_as_cassandra_stores_it() {
        let mut rows = schema("counter", Some(mask("mask_replace", &[("counter", Some("16"))]))).to_rows();
        let cells = &row_of_mask(&mut rows).cells;
        let values = cells.iter().find(|(name, _)| *name == "function_argument_values");
        let expected = ilion_types::encode_list([&b"0000000000000010"[..]]);
        assert_eq!(values.unwrap().1.as_deref(), Some(&expected[..]));
    }

    #[test]
    fn a_mask_that_does_not_decode_hides_its_table() {
        let arguments = [("int", Some("1")), ("int", None)];
        let whole = schema("text", Some(mask("mask_inner", &arguments))).to_rows();
        assert!(read_back(whole.clone()).is_some());
        for missing in [
            "function_keyspace",
            "function_name",
            "function_argument_types",
            "function_argument_values",
            "function_argument_nulls",
        ] {
            let mut rows = whole.clone();
            row_of_mask(&mut rows).cells.retain(|(name, _)| *name != missing);
            assert!(read_back(rows).is_none(), "{missing}");
        }
        let mut rows = whole;
        for (name, value) in &mut row_of_mask(&mut rows).cells {
            if *name == "function_argument_values" {
                *value = Some(ilion_types::encode_list([&b"one"[..], b""]).into());
            }
        }
        assert!(read_back(rows).is_none());
    }

    /// Cassandra leaves the rows of masks of columns that were dropped or renamed.
    #[test]
    fn a_row_without_its_column_masks_nothing_that_comes_later() {
        let mut rows = schema("int", Some(mask("mask_default", &[]))).to_rows();
        row_of_mask(&mut rows).clustering[1] = Bytes::from_static(b"w");
        let stale = row_of_mask(&mut rows).clustering.clone();
        let schema = read_back(rows).unwrap();
        assert!(!schema.table("ks", "t").unwrap().has_masks());
        let add = SchemaChange::AlterTable {
            keyspace: "ks".into(),
            table: "t".into(),
            if_exists: false,
            alteration: TableAlteration::AddColumns {
                columns: vec![NewColumn {
                    name: "w".into(),
                    ty: CqlType::Int,
                    is_static: false,
                    mask: None,
                }],
                if_not_exists: false,
            },
        };
        let changes = schema.apply(&add, 0).unwrap().changes;
        assert!(changes.contains(&RowChange::Delete {
            table: "column_masks",
            keyspace: "ks".into(),
            clustering: stale,
        }));
    }

    #[test]
    fn directories_of_older_releases_get_no_masks() {
        let mut schema = schema("int", None);
        let change = SchemaChange::AlterTable {
            keyspace: "ks".into(),
            table: "t".into(),
            if_exists: false,
            alteration: TableAlteration::MaskColumn {
                column: "v".into(),
                if_exists: false,
                mask: Some(mask("mask_null", &[])),
            },
        };
        assert!(schema.apply(&change, 0).is_ok());
        schema.release = Release::V4_1;
        let refused = schema.apply(&change, 0).unwrap_err().to_string();
        assert!(
            refused.contains("masks of columns: not known to Cassandra 4.1"),
            "{refused}"
        );
    }
}
