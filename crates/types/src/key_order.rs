//! The order of partition keys by their values, for hidden tables of indexes (Cassandra: `LocalPartitioner`).

use std::sync::{Mutex, PoisonError};

use crate::byte_comparable::FixedForm;
use crate::composite::decode_composite;
use crate::{CqlType, Token};

/// How keys are ordered. Each order is created once and kept for the life of the process, so that this type can be `Copy`. There are
/// only as many orders as types of indexed columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct KeyOrder(&'static OrderedBy);

#[derive(Debug, PartialEq, Eq, Hash)]
enum OrderedBy {
    /// By one value; in reverse if the flag is true.
    One(CqlType, bool),
    /// By one value, ascending, of a type with fixed length.
    Fixed(CqlType, FixedForm),
    /// By the components of a composite.
    Composite(Vec<CqlType>),
}

/// All orders created so far.
static KNOWN: Mutex<Vec<&'static OrderedBy>> = Mutex::new(Vec::new());

impl KeyOrder {
    /// By values of a type; in reverse for a DESC column.
    pub fn of(ty: CqlType, is_reversed: bool) -> Self {
        Self::known(match ty.fixed_form().filter(|_| !is_reversed) {
            Some(form) => OrderedBy::Fixed(ty, form),
            None => OrderedBy::One(ty, is_reversed),
        })
    }

    /// By the components of a composite key.
    pub fn of_composite(types: Vec<CqlType>) -> Self {
        Self::known(OrderedBy::Composite(types))
    }

    fn known(parts: OrderedBy) -> Self {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.iter().find(|found| ***found == parts) {
            return Self(found);
        }
        let kept: &'static OrderedBy = Box::leak(Box::new(parts));
        known.push(kept);
        Self(kept)
    }

    /// The token of a key.
    pub(crate) fn token(self, key: &[u8]) -> Token {
        let mut out = Vec::with_capacity(key.len() + 4);
        self.encode(key, &mut out);
        Token::Comparable(out.into())
    }

    /// Appends the bytes of a key's token, a [`Token::Comparable`].
    #[inline]
    pub fn encode(self, key: &[u8], out: &mut Vec<u8>) {
        match self.0 {
            OrderedBy::Fixed(_, form) if form.encode_component(key, out) => {}
            OrderedBy::Fixed(ty, _) => ty.encode_comparable_component(Some(key), false, out),
            OrderedBy::One(ty, is_reversed) => ty.encode_comparable_component(Some(key), *is_reversed, out),
            OrderedBy::Composite(types) => encode_composite(types, key, out),
        }
    }
}

/// Encodes the components of a key like a tuple. Keys that are not composites come after all others, ordered by their bytes.
fn encode_composite(types: &[CqlType], key: &[u8], out: &mut Vec<u8>) {
    let Ok(components) = decode_composite(key) else {
        out.push(u8::MAX);
        out.extend_from_slice(key);
        return;
    };
    out.push(crate::byte_comparable::SEPARATOR);
    for (ty, component) in types.iter().zip(components) {
        ty.encode_comparable_component(Some(component), false, out);
    }
    out.push(crate::TERMINATOR_ROW);
}

#[cfg(test)]
mod tests {
    use crate::{CqlType, KeyOrder, Partitioner, encode_composite};

    fn token(order: KeyOrder, key: &[u8]) -> crate::Token {
        Partitioner::Ordered(order).token(key)
    }

    #[test]
    fn keys_are_in_the_order_of_their_type_and_behind_the_minimum() {
        let ints = KeyOrder::of(CqlType::Int, false);
        let values = [-7_i32, -1, 0, 1, 300];
        let tokens: Vec<_> = values.map(|value| token(ints, &value.to_be_bytes())).into();
        assert!(tokens.is_sorted() && token(ints, &[]) < tokens[0]);
        assert!(Partitioner::Ordered(ints).minimum_token() < token(ints, &[]));
        let down = KeyOrder::of(CqlType::Int, true);
        assert!(
            values
                .map(|value| token(down, &value.to_be_bytes()))
                .iter()
                .rev()
                .is_sorted()
        );
    }

    #[test]
    fn tokens_are_components_of_clusterings() {
        let types = [
            CqlType::Boolean,
            CqlType::TinyInt,
            CqlType::SmallInt,
            CqlType::Int,
            CqlType::Date,
            CqlType::Float,
            CqlType::BigInt,
            CqlType::Timestamp,
            CqlType::Time,
            CqlType::Double,
            CqlType::Text,
            CqlType::Uuid,
        ];
        // Also lengths that the types do not have.
        let bytes = [0x80, 0x7F, 0, 0xFF, 1, 0, 2, 0x90, 3];
        for (ty, reversed) in types.iter().flat_map(|ty| [(ty, false), (ty, true)]) {
            for value in (0..bytes.len()).flat_map(|len| [&bytes[..len], &bytes[bytes.len() - len..]]) {
                let (mut expected, mut out) = (vec![7], vec![7]);
                ty.encode_comparable_component(Some(value), reversed, &mut expected);
                KeyOrder::of(ty.clone(), reversed).encode(value, &mut out);
                assert_eq!(out, expected, "{ty:?} of {value:?}");
            }
        }
    }

    #[test]
    fn an_order_is_kept_once() {
        assert_eq!(
            KeyOrder::of(CqlType::Text, false),
            KeyOrder::of(CqlType::Text, false)
        );
        assert_ne!(
            KeyOrder::of(CqlType::Text, false),
            KeyOrder::of(CqlType::Text, true)
        );
    }

    #[test]
    fn composites_are_in_the_order_of_their_components() {
        let order = KeyOrder::of_composite(vec![CqlType::Text, CqlType::Int]);
        let key = |text: &[u8], number: i32| {
            let mut out = Vec::new();
            encode_composite([text, &number.to_be_bytes()[..]], &mut out).unwrap();
            out
        };
        let keys = [key(b"a", -1), key(b"a", 2), key(b"ab", -5), key(b"b", 0)];
        assert!(keys.iter().map(|key| token(order, key)).is_sorted());
        assert!(token(order, b"x") > token(order, &keys[3]));
    }

    #[test]
    fn the_type_of_partition_keys_is_in_the_order_of_their_tokens() {
        let classes = [
            "org.apache.cassandra.db.marshal.PartitionerDefinedOrder(org.apache.cassandra.dht.Murmur3Partitioner)",
            "org.apache.cassandra.db.marshal.PartitionerDefinedOrder(org.apache.cassandra.dht.Murmur3Partitioner:\
             org.apache.cassandra.db.marshal.Int32Type)",
        ];
        assert_eq!(
            CqlType::partition_keys(Partitioner::Murmur3).to_class(),
            classes[0]
        );
        for class in classes {
            let (ty, _) = CqlType::from_class(class).unwrap();
            assert!(ty.is_partition_keys() && ty.unknown_class().is_none());
            let keys: Vec<[u8; 4]> = (0..50_i32).map(i32::to_be_bytes).collect();
            for (a, b) in keys.iter().zip(&keys[1..]) {
                let tokens = (Partitioner::Murmur3.token(a), Partitioner::Murmur3.token(b));
                assert_eq!(ty.compare(a, b), tokens.0.cmp(&tokens.1));
            }
        }
    }
}
