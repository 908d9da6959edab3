//! [`Shape`]: a statement without its values.

use std::borrow::Cow;
use std::sync::Arc;

use md5::{Digest, Md5};
use smallvec::SmallVec;

/// Stands for a text that cannot be cut into tokens.
const NOT_CQL: &str = "(not CQL)";
/// Most distinct shapes of statements in the shape of a batch: enough to identify it, and a bound on its size.
const BATCH_SHAPES_MAX: usize = 8;

/// A statement without its values, white space and case. Statements with equal shapes share their costs in statistics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Digest of the other fields, stable over restarts; never 0.
    pub id: u64,
    /// The keyspace of the statement's table, or of unqualified names; empty if none is known.
    pub keyspace: String,
    /// The statement's table; empty if it has none or several, or could not be planned.
    pub table: String,
    /// True if the statement reads the table.
    pub is_read: bool,
    /// True if the statement reads partitions without giving their keys.
    pub is_scan: bool,
    /// The text with `?` for each value.
    pub text: String,
}

impl Shape {
    /// The shape of a text, in a keyspace.
    pub fn of(text: &str, keyspace: Option<&str>) -> Self {
        let text = ilion_cql::shape(&ilion_cql::hide_secrets(text)).unwrap_or_else(|| NOT_CQL.to_owned());
        Self::new(keyspace.unwrap_or_default().to_owned(), text)
    }

    /// The same shape with the table of the statement.
    pub(crate) fn on(self, table: &str, is_read: bool) -> Self {
        Self {
            table: table.to_owned(),
            is_read,
            ..self
        }
    }

    /// The same shape, of a statement that reads partitions without giving their keys.
    pub(crate) fn scanning(self) -> Self {
        Self {
            is_scan: true,
            ..self
        }
    }

    /// The distinct shapes among those of a batch's statements; only the first few, which identify the batch.
    pub fn members_of_batch<'s>(
        statements: impl Iterator<Item = Cow<'s, Arc<Self>>>,
    ) -> SmallVec<[Arc<Self>; 2]> {
        let mut members = SmallVec::<[Arc<Self>; 2]>::new();
        for shape in statements {
            if members.iter().all(|known| known.id != shape.id) {
                members.push(shape.into_owned());
            }
            if members.len() == BATCH_SHAPES_MAX {
                break;
            }
        }
        members
    }

    /// The shape of a batch. `members` are the distinct shapes of its statements.
    pub fn of_batch<'s>(kind: &str, members: impl Iterator<Item = &'s Self>) -> Self {
        let mut place = None;
        let mut texts: Vec<&str> = Vec::new();
        for member in members {
            let of_member = (member.keyspace.as_str(), member.table.as_str());
            let (keyspace, table) = *place.get_or_insert(of_member);
            if (keyspace, table) != of_member {
                place = Some((keyspace, ""));
            }
            if !texts.contains(&member.text.as_str()) {
                texts.push(&member.text);
            }
        }
        let text = format!("BEGIN {kind}BATCH {}; APPLY BATCH", texts.join("; "));
        let (keyspace, table) = place.unwrap_or_default();
        Self::new(keyspace.to_owned(), text).on(table, false)
    }

    fn new(keyspace: String, text: String) -> Self {
        let mut digest = Md5::new();
        digest.update(&keyspace);
        digest.update([0]);
        digest.update(&text);
        let [id, _] = halves(digest.finalize().into());
        Self {
            id: id.max(1),
            keyspace,
            table: String::new(),
            is_read: false,
            is_scan: false,
            text,
        }
    }
}

fn halves(digest: [u8; 16]) -> [u64; 2] {
    let whole = u128::from_be_bytes(digest);
    [(whole >> 64) as u64, whole as u64]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statements_that_differ_in_values_have_one_shape() {
        let shape = Shape::of("select * from t where k = 1", Some("ks"));
        assert_eq!(shape, Shape::of("SELECT * FROM t WHERE k = 'x';", Some("ks")));
        assert_eq!(shape.text, "SELECT * FROM t WHERE k = ?");
        let other = Shape::of("select * from t where k = 1", Some("other"));
        assert_ne!(shape.id, other.id);
        assert_eq!(Shape::of("select 'unfinished", None).text, "(not CQL)");
    }

    #[test]
    fn a_batch_tells_each_of_its_statements_once() {
        let insert = Shape::of("insert into t (k) values (1)", Some("ks"));
        let update = Shape::of("update t set v = 1 where k = 1", Some("ks"));
        let batch = Shape::of_batch("UNLOGGED ", [&insert, &update, &insert].into_iter());
        assert_eq!(
            (batch.keyspace.as_str(), batch.text.as_str()),
            (
                "ks",
                "BEGIN UNLOGGED BATCH INSERT INTO t(k) VALUES (?); UPDATE t SET v = ? WHERE k = ?; APPLY BATCH"
            )
        );
    }
}
