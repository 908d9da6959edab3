//! From type names in statements to types: user types are looked up in one keyspace.
//!
//! Compat: `CQL3Type.Raw`. Not here: which types may be nested in a column (`CqlType::check_nesting`).

use std::sync::Arc;

use ilion_cql::ast::{CqlTypeName, NativeType, QualifiedName};
use ilion_schema::Schema;
use ilion_types::CqlType;

use crate::Error;

/// The package of Cassandra's types. A class name without a package is in it.
const CASSANDRA_TYPES: &str = "org.apache.cassandra.db.marshal.";

/// The type of this name, for a statement in `keyspace`. Without a keyspace, user types are unknown.
///
/// Each kind of type has a function of its own: types nest deeply, so stack frames must be small.
pub(crate) fn resolve_type(
    name: &CqlTypeName,
    keyspace: Option<&str>,
    schema: &Schema,
) -> Result<CqlType, Error> {
    match name {
        CqlTypeName::Native(native) => Ok(native_type(*native)),
        CqlTypeName::Custom(class) => custom_type(class),
        CqlTypeName::User(user) => user_type(user, keyspace, schema),
        _ => TypeResolver { keyspace, schema }.outer_type(name),
    }
}

/// The keyspace and schema in which type names are looked up.
struct TypeResolver<'a> {
    keyspace: Option<&'a str>,
    schema: &'a Schema,
}

impl TypeResolver<'_> {
    fn outer_type(&self, name: &CqlTypeName) -> Result<CqlType, Error> {
        match name {
            CqlTypeName::List(element) => self.list(element),
            CqlTypeName::Set(element) => self.set(element),
            CqlTypeName::Map(key, value) => self.map(key, value),
            CqlTypeName::Tuple(members) => self.tuple(members),
            CqlTypeName::Vector(element, dimension) => self.vector(element, *dimension),
            CqlTypeName::Frozen(frozen) => self.frozen(frozen),
            plain => resolve_type(plain, self.keyspace, self.schema),
        }
    }

    fn shared(&self, name: &CqlTypeName) -> Result<Arc<CqlType>, Error> {
        self.outer_type(name).map(Arc::new)
    }

    fn frozen(&self, name: &CqlTypeName) -> Result<CqlType, Error> {
        self.outer_type(name).map(|ty| ty.freeze())
    }

    fn list(&self, element: &CqlTypeName) -> Result<CqlType, Error> {
        let element = self.shared(element)?;
        Ok(CqlType::List {
            element,
            frozen: false,
        })
    }

    fn set(&self, element: &CqlTypeName) -> Result<CqlType, Error> {
        let element = self.shared(element)?;
        Ok(CqlType::Set {
            element,
            frozen: false,
        })
    }

    fn map(&self, key: &CqlTypeName, value: &CqlTypeName) -> Result<CqlType, Error> {
        let (key, value) = (self.shared(key)?, self.shared(value)?);
        Ok(CqlType::Map {
            key,
            value,
            frozen: false,
        })
    }

    fn tuple(&self, members: &[CqlTypeName]) -> Result<CqlType, Error> {
        let mut types = Vec::with_capacity(members.len());
        for member in members {
            types.push(self.frozen(member)?);
        }
        Ok(CqlType::Tuple(types.into()))
    }

    fn vector(&self, element: &CqlTypeName, dimension: u32) -> Result<CqlType, Error> {
        let element = Arc::new(self.frozen(element)?);
        Ok(CqlType::Vector { element, dimension })
    }
}

/// The type of a column.
///
/// # Errors
/// As [`resolve_type`]; a collection with an unfrozen complex type inside is refused before names are looked up.
pub(crate) fn column_type(
    name: &CqlTypeName,
    keyspace: Option<&str>,
    schema: &Schema,
) -> Result<CqlType, Error> {
    check_members(name)?;
    resolve_type(name, keyspace, schema)
}

/// The type of a field of a user type.
///
/// # Errors
/// As [`column_type`]; a user type must be frozen.
pub(crate) fn field_type(
    name: &CqlTypeName,
    keyspace: Option<&str>,
    schema: &Schema,
) -> Result<CqlType, Error> {
    if matches!(name, CqlTypeName::User(_)) {
        return Err(Error::invalid("A user type cannot contain non-frozen UDTs"));
    }
    column_type(name, keyspace, schema)
}

fn check_members(name: &CqlTypeName) -> Result<(), Error> {
    let members: &[&CqlTypeName] = match name {
        CqlTypeName::List(element) | CqlTypeName::Set(element) => &[element],
        CqlTypeName::Map(key, value) => &[key, value],
        _ => &[],
    };
    if members
        .iter()
        .any(|member| matches!(member, CqlTypeName::User(_)))
    {
        return Err(Error::invalid(format!(
            "Non-frozen UDTs are not allowed inside collections: {name}"
        )));
    }
    Ok(())
}

/// The type of a native name.
pub(crate) fn native_type(native: NativeType) -> CqlType {
    match native {
        NativeType::Ascii => CqlType::Ascii,
        NativeType::Bigint => CqlType::BigInt,
        NativeType::Blob => CqlType::Blob,
        NativeType::Boolean => CqlType::Boolean,
        NativeType::Counter => CqlType::Counter,
        NativeType::Date => CqlType::Date,
        NativeType::Decimal => CqlType::Decimal,
        NativeType::Double => CqlType::Double,
        NativeType::Duration => CqlType::Duration,
        NativeType::Float => CqlType::Float,
        NativeType::Inet => CqlType::Inet,
        NativeType::Int => CqlType::Int,
        NativeType::Smallint => CqlType::SmallInt,
        NativeType::Text | NativeType::Varchar => CqlType::Text,
        NativeType::Time => CqlType::Time,
        NativeType::Timestamp => CqlType::Timestamp,
        NativeType::Timeuuid => CqlType::TimeUuid,
        NativeType::Tinyint => CqlType::TinyInt,
        NativeType::Uuid => CqlType::Uuid,
        NativeType::Varint => CqlType::Varint,
    }
}

/// Compat: `CQL3Type.Raw.RawCustom` and the messages of `TypeParser`, which names an unknown class only if it is the whole
/// text.
fn custom_type(class: &str) -> Result<CqlType, Error> {
    let refused = |why: String| Err(Error::Syntax(format!("Error setting type {class}: {why}")));
    let ty = match CqlType::from_class(class) {
        Ok((ty, _)) => ty,
        Err(error) => return refused(error.to_string()),
    };
    let full = |name: &str| {
        let package = if name.contains('.') { "" } else { CASSANDRA_TYPES };
        format!("{package}{name}")
    };
    match ty.unknown_class() {
        None => Ok(ty),
        Some(unknown) if unknown == class && !class.contains('(') => {
            refused(format!("Unable to find abstract-type class '{}'", full(class)))
        }
        Some(_) => {
            let outer = class.split('(').next().unwrap_or(class);
            refused(format!("Invalid definition for comparator {}.", full(outer)))
        }
    }
}

fn user_type(name: &QualifiedName, keyspace: Option<&str>, schema: &Schema) -> Result<CqlType, Error> {
    let Some(keyspace) = keyspace.or(name.keyspace.as_deref()) else {
        return Err(Error::invalid(format!("Unknown type {}", name.name)));
    };
    if let Some(other) = name.keyspace.as_deref().filter(|named| *named != keyspace) {
        return Err(Error::invalid(format!(
            "Statement on keyspace {keyspace} cannot refer to a user type in keyspace {other}; user types can only be \
             used in the keyspace they are defined in"
        )));
    }
    let Some(owner) = schema.keyspace(keyspace) else {
        return Err(Error::invalid(format!("Keyspace '{keyspace}' doesn't exist")));
    };
    match owner.types.get(&name.name) {
        Some(definition) => Ok(CqlType::Udt {
            definition: definition.clone(),
            frozen: false,
        }),
        None => Err(Error::invalid(format!("Unknown type {keyspace}.{}", name.name))),
    }
}
