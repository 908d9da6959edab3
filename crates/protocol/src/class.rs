//! Class strings of the types that no option describes.
//!
//! Provisional: complete for scalars and vectors of them; `ilion-types` will own class strings.

use std::sync::Arc;

use ilion_types::CqlType;

const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

const SCALARS: [(&str, CqlType); 21] = [
    ("AsciiType", CqlType::Ascii),
    ("LongType", CqlType::BigInt),
    ("BytesType", CqlType::Blob),
    ("BooleanType", CqlType::Boolean),
    ("CounterColumnType", CqlType::Counter),
    ("SimpleDateType", CqlType::Date),
    ("DecimalType", CqlType::Decimal),
    ("DoubleType", CqlType::Double),
    ("DurationType", CqlType::Duration),
    ("EmptyType", CqlType::Empty),
    ("FloatType", CqlType::Float),
    ("InetAddressType", CqlType::Inet),
    ("Int32Type", CqlType::Int),
    ("ShortType", CqlType::SmallInt),
    ("UTF8Type", CqlType::Text),
    ("TimeType", CqlType::Time),
    ("TimestampType", CqlType::Timestamp),
    ("TimeUUIDType", CqlType::TimeUuid),
    ("ByteType", CqlType::TinyInt),
    ("UUIDType", CqlType::Uuid),
    ("IntegerType", CqlType::Varint),
];

/// The class string of a type.
pub fn print(cql_type: &CqlType) -> String {
    match cql_type {
        CqlType::Custom(class) => class.to_string(),
        CqlType::List { element, .. } => format!("{PACKAGE}ListType({})", print(element)),
        CqlType::Set { element, .. } => format!("{PACKAGE}SetType({})", print(element)),
        CqlType::Map { key, value, .. } => format!("{PACKAGE}MapType({},{})", print(key), print(value)),
        CqlType::Tuple(types) => {
            let types: Vec<String> = types.iter().map(print).collect();
            format!("{PACKAGE}TupleType({})", types.join(","))
        }
        CqlType::Udt { definition, .. } => {
            let mut parts = vec![definition.keyspace.clone(), hex(&definition.name)];
            parts.extend(
                definition
                    .fields
                    .iter()
                    .map(|(name, cql_type)| format!("{}:{}", hex(name), print(cql_type))),
            );
            format!("{PACKAGE}UserType({})", parts.join(","))
        }
        CqlType::Vector { element, dimension } => {
            format!("{PACKAGE}VectorType({} , {dimension})", print(element))
        }
        scalar => SCALARS
            .iter()
            .find(|(_, known)| known == scalar)
            .map(|(name, _)| format!("{PACKAGE}{name}"))
            .unwrap_or_default(),
    }
}

fn hex(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// The type of a class string; what is not understood stays custom.
pub fn parse(class: &str) -> CqlType {
    parse_known(class).unwrap_or_else(|| CqlType::Custom(Arc::from(class)))
}

fn parse_known(class: &str) -> Option<CqlType> {
    let name = class.strip_prefix(PACKAGE).unwrap_or(class);
    if let Some((_, scalar)) = SCALARS.iter().find(|(known, _)| *known == name) {
        return Some(scalar.clone());
    }
    let (element, dimension) = name
        .strip_prefix("VectorType(")?
        .strip_suffix(')')?
        .rsplit_once(',')?;
    Some(CqlType::Vector {
        element: Arc::new(parse_known(element.trim())?),
        dimension: dimension.trim().parse().ok()?,
    })
}
