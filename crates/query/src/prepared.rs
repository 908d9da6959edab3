//! Prepared statements.

use std::sync::Arc;

use md5::{Digest, Md5};

use crate::planned::Planned;
use crate::weight::weight_of;
use crate::{ClientState, ColumnSpec, Shape, StatementWeight};

/// A statement that was parsed and planned.
#[derive(Debug)]
pub struct Prepared {
    /// MD5 of keyspace and text.
    pub id: [u8; 16],
    /// Digest of the result's columns.
    pub result_metadata_id: [u8; 16],
    /// The bind markers.
    pub variables: Vec<ColumnSpec>,
    /// The markers that form the partition key, in key order; empty if they do not cover all of it.
    pub partition_key_indexes: Vec<u16>,
    /// The result's columns; `None` for statements without rows.
    pub result_columns: Option<Arc<[ColumnSpec]>>,
    /// Whether an execution reads little or may take long.
    pub weight: StatementWeight,
    /// True if the result's columns have changed since the statement was first prepared. Clients before protocol 5 have no metadata
    /// ids, so their requests do not show which columns they know.
    pub has_changed: bool,
    pub(crate) planned: Arc<Planned>,
    /// Approximate memory of the statement.
    pub(crate) weight_bytes: u64,
}

impl Prepared {
    /// A planned text under its id.
    pub(crate) fn new(id: [u8; 16], planned: Arc<Planned>) -> Self {
        Self {
            id,
            result_metadata_id: metadata_id(planned.result_columns.as_deref().unwrap_or_default()),
            variables: planned.variables.clone(),
            partition_key_indexes: planned.partition_key_indexes.clone(),
            result_columns: planned.result_columns.clone(),
            weight: planned.plan.weight(),
            has_changed: false,
            weight_bytes: weight_of(&planned.text),
            planned,
        }
    }

    /// The shape that the statement shares with statements that differ only in values.
    #[inline]
    pub fn shape(&self) -> &Arc<Shape> {
        &self.planned.shape
    }

    /// The text of the statement.
    pub fn text(&self) -> &str {
        &self.planned.text
    }

    /// The keyspace of unqualified names in the text.
    pub fn keyspace(&self) -> Option<&str> {
        self.planned.keyspace.as_deref()
    }

    /// A warning for a client that prepares a statement with unqualified names: in another keyspace it means another table.
    /// Each client gets it once.
    ///
    /// Compat: `ClientState.warnAboutUseWithPreparedStatements`.
    pub fn warning(&self, client: &mut ClientState, keyspace: Option<&str>) -> Option<String> {
        let keyspace = keyspace.or(client.keyspace.as_deref())?;
        if self.planned.is_qualified || client.is_told_of_use {
            return None;
        }
        let id: String = self.id.iter().map(|byte| format!("{byte:02x}")).collect();
        let warning = format!(
            "`USE <keyspace>` with prepared statements is considered to be an anti-pattern due to ambiguity in non-qualified \
             table names. Please consider removing instances of `Session#setKeyspace(<keyspace>)`, `Session#execute(\"USE \
             <keyspace>\")` and `cluster.newSession(<keyspace>)` from your code, and always use fully qualified table names \
             (e.g. <keyspace>.<table>). Keyspace used: {keyspace}, statement keyspace: {keyspace}, statement id: {id}"
        );
        client.is_told_of_use = true;
        Some(warning)
    }

    /// The same statement, planned again; `None` if its markers or its result's columns changed, so that clients must prepare
    /// it again.
    pub(crate) fn renewed(&self, planned: Arc<Planned>) -> Option<Self> {
        let renewed = Self {
            has_changed: self.has_changed,
            ..Self::new(self.id, planned)
        };
        let is_same =
            renewed.result_metadata_id == self.result_metadata_id && renewed.variables == self.variables;
        is_same.then_some(renewed)
    }
}

/// Compat: `QueryProcessor.computeId`.
pub(crate) fn statement_id(text: &str, keyspace: Option<&str>) -> [u8; 16] {
    let mut digest = Md5::new();
    digest.update(keyspace.unwrap_or_default());
    digest.update(text);
    digest.finalize().into()
}

/// Compat: `ResultSet.ResultMetadata.computeResultMetadataId`.
pub(crate) fn metadata_id(columns: &[ColumnSpec]) -> [u8; 16] {
    let mut digest = Md5::new();
    for column in columns {
        digest.update(column.name.as_bytes());
        digest.update([0]);
        digest.update(column.ty.to_class());
        digest.update([0; 2]);
    }
    digest.finalize().into()
}

#[cfg(test)]
mod tests {
    use ilion_types::CqlType;

    use super::*;

    fn column(name: &str, ty: CqlType) -> ColumnSpec {
        ColumnSpec {
            keyspace: "ks".into(),
            table: "t".into(),
            name: name.into(),
            ty,
        }
    }

    #[test]
    fn a_statement_is_known_by_its_keyspace_and_text() {
        let id = statement_id("SELECT * FROM t", Some("ks"));
        assert_eq!(id, <[u8; 16]>::from(Md5::digest("ksSELECT * FROM t")));
        assert_ne!(id, statement_id("SELECT * FROM t", None));
    }

    #[test]
    fn metadata_is_known_by_names_and_types() {
        let id = metadata_id(&[column("k", CqlType::Int)]);
        let bytes = b"k\0org.apache.cassandra.db.marshal.Int32Type\0\0";
        assert_eq!(id, <[u8; 16]>::from(Md5::digest(bytes)));
        assert_ne!(id, metadata_id(&[column("k", CqlType::BigInt)]));
        assert_ne!(id, metadata_id(&[column("l", CqlType::Int)]));
    }
}
