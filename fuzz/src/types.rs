//! CQL types and their values.

use ilion_types::{CqlType, Value};

use crate::split_choice;

/// Reads a type, then a value of it.
pub fn run(data: &[u8]) {
    let Some((size, data)) = split_choice(data) else {
        return;
    };
    let (name, bytes) = data.split_at((size & 0x7F).min(data.len()));
    let Ok(name) = std::str::from_utf8(name) else {
        return;
    };
    let parsed = match size > 0x7F {
        true => CqlType::from_class(name).ok().map(|(ty, _)| ty),
        false => CqlType::parse_cql(name, "ks", &|_| None).ok(),
    };
    let Some(ty) = parsed else {
        return;
    };
    let _ = ty.compare(bytes, &bytes[..bytes.len() / 2]);
    let _ = (
        ty.print_json(bytes),
        ty.print_plain(bytes),
        ty.print_literal(bytes),
    );
    if let Ok(value) = Value::decode(&ty, bytes) {
        let again = value
            .to_bytes(&ty)
            .expect("what was decoded is a value of its type");
        let decoded = Value::decode(&ty, &again).expect("what was encoded is a value");
        // Encoding sorts sets and maps, so the values themselves may differ.
        let once_more = decoded
            .to_bytes(&ty)
            .expect("what was encoded is a value of its type");
        assert_eq!(once_more, again, "{ty}");
    }
}
