//! Byte-comparable keys and clusterings, for lookups in tries; see `ilion_types::encode_comparable_key`.

use std::ops::Deref;

use ilion_rows::{BoundKind, KeyBound};
use ilion_schema::{ClusteringOrder, TableSchema};
use ilion_types::{
    CqlType, TERMINATOR_AFTER, TERMINATOR_BEFORE, TERMINATOR_ROW, Token, encode_comparable_key,
};

/// Length of an empty key's encoding without the token: separator and terminator.
const EMPTY_KEY_LEN: usize = 3;

/// The encoding of a key in Partitions.db.
pub(crate) fn comparable_key(token: &Token, key: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(16 + key.len());
    encode_comparable_key(token, key, &mut out);
    out
}

/// The encoding of a bound between keys.
pub(crate) fn comparable_bound(bound: &KeyBound) -> Vec<u8> {
    match bound {
        KeyBound::Start => Vec::new(),
        // Higher than every separator.
        KeyBound::End => vec![u8::MAX],
        KeyBound::BeforeToken(token) => comparable_token(token, TERMINATOR_BEFORE),
        KeyBound::AfterToken(token) => comparable_token(token, TERMINATOR_AFTER),
        KeyBound::Before(key) | KeyBound::After(key) => comparable_key(&key.token, &key.key),
    }
}

fn comparable_token(token: &Token, terminator: u8) -> Vec<u8> {
    let mut out = Vec::new();
    encode_comparable_key(token, &[], &mut out);
    out.truncate(out.len() - EMPTY_KEY_LEN);
    out.push(terminator);
    out
}

/// Encodes the clusterings of one table as in Rows.db.
#[derive(Clone, Debug)]
pub(crate) struct ComparableClusterings {
    /// Types of the columns, and whether they are DESC.
    columns: Vec<(CqlType, bool)>,
}

impl ComparableClusterings {
    /// The encoder of a table; `None` if a column has an unknown custom type, whose encoding is unknown, too.
    pub(crate) fn of(table: &TableSchema) -> Option<Self> {
        let columns = table
            .clustering()
            .map(|column| (column.ty.clone(), column.order == ClusteringOrder::Desc));
        let columns: Vec<_> = columns.collect();
        let known = columns.iter().all(|(ty, _)| is_known(ty));
        known.then_some(Self { columns })
    }

    pub(crate) fn encode_row<V: Deref<Target = [u8]>>(&self, values: &[Option<V>], out: &mut Vec<u8>) {
        self.encode_values(values, out);
        out.push(TERMINATOR_ROW);
    }

    pub(crate) fn encode_bound<V: Deref<Target = [u8]>>(
        &self,
        kind: BoundKind,
        values: &[Option<V>],
        out: &mut Vec<u8>,
    ) {
        self.encode_values(values, out);
        out.push(if kind.is_before() {
            TERMINATOR_BEFORE
        } else {
            TERMINATOR_AFTER
        });
    }

    fn encode_values<V: Deref<Target = [u8]>>(&self, values: &[Option<V>], out: &mut Vec<u8>) {
        for ((ty, reversed), value) in self.columns.iter().zip(values) {
            ty.encode_comparable_component(value.as_deref(), *reversed, out);
        }
    }
}

fn is_known(ty: &CqlType) -> bool {
    match ty {
        CqlType::Custom(_) => ty.is_partition_keys(),
        CqlType::List { element, .. } | CqlType::Set { element, .. } | CqlType::Vector { element, .. } => {
            is_known(element)
        }
        CqlType::Map { key, value, .. } => is_known(key) && is_known(value),
        CqlType::Tuple(types) => types.iter().all(is_known),
        CqlType::Udt { definition, .. } => definition.fields.iter().all(|(_, ty)| is_known(ty)),
        _ => true,
    }
}
