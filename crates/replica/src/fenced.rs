//! [`FencedChange`]: a change that every replica makes at one place of each log.
//!
//! It is the body of a schema record of the meta log: JSON, so that people can read the log. A reader that does not know a part of it
//! stops: a change is never skipped, nor made in part.

use ilion_schema::{SchemaChange, TableId};
use serde::{Deserialize, Serialize};

/// A change between the records of two schemas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FencedChange {
    /// The schema changes. Ids of new tables are in it; columns are dropped at the time of the record.
    Schema(SchemaChange),
    /// All data of a table is removed.
    Truncate(TableId),
}

impl FencedChange {
    /// The body of its record.
    pub fn encode(&self) -> Vec<u8> {
        // Cannot fail: only maps with keys that are no text are an error, and there are none.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// Reads a body.
    ///
    /// # Errors
    /// The body is damaged, or a newer Ilion wrote it. The reader must stop.
    pub fn decode(body: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(body).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ilion_schema::{CreateTable, NewColumn, Properties, TableAlteration};
    use ilion_types::{CqlType, UserType};
    use uuid::Uuid;

    use super::*;

    fn changes() -> Vec<FencedChange> {
        let person = UserType {
            keyspace: "ks".to_owned(),
            name: "person".to_owned(),
            fields: vec![(
                "at".to_owned(),
                CqlType::Tuple([CqlType::Int, CqlType::Inet].into()),
            )],
        };
        let ty = CqlType::Map {
            key: Arc::new(CqlType::Text),
            value: Arc::new(CqlType::Udt {
                definition: Arc::new(person),
                frozen: true,
            }),
            frozen: false,
        };
        let column = NewColumn {
            name: "c".to_owned(),
            ty,
            is_static: false,
            mask: None,
        };
        let create = CreateTable {
            keyspace: "ks".to_owned(),
            name: "T\"".to_owned(),
            columns: vec![column.clone()],
            properties: Properties::from_iter([("comment", "it's")]),
            id: Some(TableId(Uuid::from_u128(9))),
            ..CreateTable::default()
        };
        let add = SchemaChange::AlterTable {
            keyspace: "ks".to_owned(),
            table: "t".to_owned(),
            if_exists: false,
            alteration: TableAlteration::AddColumns {
                columns: vec![column],
                if_not_exists: true,
            },
        };
        vec![
            FencedChange::Schema(SchemaChange::CreateTable(Box::new(create))),
            FencedChange::Schema(add),
            FencedChange::Truncate(TableId(Uuid::from_u128(7))),
        ]
    }

    #[test]
    fn a_change_is_read_back() {
        for change in changes() {
            assert_eq!(FencedChange::decode(&change.encode()), Ok(change));
        }
    }

    #[test]
    fn what_is_cut_or_unknown_is_refused() {
        for change in changes() {
            let bytes = change.encode();
            for end in 0..bytes.len() {
                assert!(FencedChange::decode(&bytes[..end]).is_err());
            }
            let text = String::from_utf8(bytes).unwrap();
            let newer = text.replace("\"if_not_exists\":", "\"newer\":1,\"if_not_exists\":");
            assert!(newer == text || FencedChange::decode(newer.as_bytes()).is_err());
        }
        assert!(FencedChange::decode(br#"{"Newer":1}"#).is_err());
    }
}
