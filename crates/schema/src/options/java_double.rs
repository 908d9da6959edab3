//! Numbers in messages and in DESCRIBE, as Cassandra prints them.

use ilion_types::CqlType;

/// A number as `Double.toString` prints it.
pub(crate) fn java_double(value: f64) -> String {
    CqlType::Double
        .print_plain(&value.to_be_bytes())
        .unwrap_or_default()
}
