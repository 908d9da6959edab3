//! [`FencedChange`]: a change that every replica makes at one place of each log.
//!
//! It is the body of a schema record of the meta log: JSON, so that people can read the log. A reader that does not know a part of it
//! stops: a change is never skipped, nor made in part.

use bytes::Bytes;
use ilion_schema::{SchemaChange, TableId};
use serde::{Deserialize, Serialize};

/// A change between the records of two schemas.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum FencedChange {
    /// The schema changes. Ids of new tables are in it; columns are dropped at the time of the record.
    Schema(SchemaChange),
    /// All data of a table is removed.
    Truncate(TableId),
    /// Rows of roles and permissions are written on every node: mutations of tables of `system_auth`, as [`ilion_rows::encode_mutation`]
    /// encodes them, in base64. Their timestamps have an order only: those of a later change are higher, whatever the clocks say.
    Roles(#[serde(with = "base64_text")] Bytes),
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

/// Bytes as base64 in JSON.
mod base64_text {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    use bytes::Bytes;
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(bytes: &Bytes, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&STANDARD.encode(bytes))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
        let text = String::deserialize(deserializer)?;
        STANDARD.decode(text).map(Bytes::from).map_err(D::Error::custom)
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
            FencedChange::Roles(Bytes::from_static(b"\x00\xffmutations")),
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
