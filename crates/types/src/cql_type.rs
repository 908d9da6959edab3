//! The tree of a CQL type.
//!
//! A collection or user type has a flag for frozen. All types inside a frozen type are frozen; they have `frozen: true` as well, so
//! that equality is structural. Tuples and vectors are always frozen and need no flag. Clustering direction is not part of the type
//! (see `schema`).

use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The package of Cassandra's classes of types.
pub(crate) const PACKAGE: &str = "org.apache.cassandra.db.marshal.";

/// A CQL type.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub enum CqlType {
    /// 7-bit text.
    Ascii,
    /// `i64`.
    BigInt,
    /// Any bytes.
    Blob,
    /// One byte.
    Boolean,
    /// A distributed counter: a counter context in files, `i64` on the wire.
    Counter,
    /// Days since the epoch, shifted by 2^31.
    Date,
    /// Scale and unscaled value.
    Decimal,
    /// `f64`.
    Double,
    /// Months, days, nanoseconds.
    Duration,
    /// No bytes (`EmptyType`; compact tables).
    Empty,
    /// `f32`.
    Float,
    /// IPv4 or IPv6 address.
    Inet,
    /// `i32`.
    Int,
    /// `i16`.
    SmallInt,
    /// UTF-8.
    Text,
    /// Nanoseconds of the day.
    Time,
    /// Milliseconds since the epoch.
    Timestamp,
    /// Version 1 UUID ordered by time.
    TimeUuid,
    /// `i8`.
    TinyInt,
    /// Any UUID.
    Uuid,
    /// Integer of any size.
    Varint,
    /// `list<element>`.
    List {
        /// Element type.
        element: Arc<CqlType>,
        /// True if stored as one value.
        frozen: bool,
    },
    /// `set<element>`.
    Set {
        /// Element type.
        element: Arc<CqlType>,
        /// True if stored as one value.
        frozen: bool,
    },
    /// `map<key, value>`.
    Map {
        /// Key type.
        key: Arc<CqlType>,
        /// Value type.
        value: Arc<CqlType>,
        /// True if stored as one value.
        frozen: bool,
    },
    /// `tuple<...>`, always frozen.
    Tuple(Arc<[CqlType]>),
    /// A user type.
    Udt {
        /// Its definition.
        definition: Arc<UserType>,
        /// True if stored as one value.
        frozen: bool,
    },
    /// `vector<element, dimension>`, always frozen.
    Vector {
        /// Element type.
        element: Arc<CqlType>,
        /// Number of elements, at least 1.
        dimension: u32,
    },
    /// A class without a CQL name, by its full name. Ilion knows some of them (`custom`); values of the others are opaque bytes in
    /// unsigned order.
    Custom(Arc<str>),
}

/// A user type (`CREATE TYPE`). Fields are in declaration order.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UserType {
    /// Its keyspace.
    pub keyspace: String,
    /// The name, in its original case.
    pub name: String,
    /// Field names and types.
    pub fields: Vec<(String, CqlType)>,
}

impl CqlType {
    /// True if a column of this type is stored as several cells (an unfrozen collection or user type).
    #[inline]
    pub fn is_multi_cell(&self) -> bool {
        matches!(
            self,
            Self::List { frozen: false, .. }
                | Self::Set { frozen: false, .. }
                | Self::Map { frozen: false, .. }
                | Self::Udt { frozen: false, .. }
        )
    }

    /// True for list, set and map, frozen or not.
    pub fn is_collection(&self) -> bool {
        matches!(self, Self::List { .. } | Self::Set { .. } | Self::Map { .. })
    }

    /// The length of all non-empty values of this type, if Cassandra stores them without a length
    /// (`AbstractType.valueLengthIfFixed`). Note that tinyint, smallint, date and time are not fixed.
    pub fn fixed_len(&self) -> Option<usize> {
        match self {
            Self::Boolean => Some(1),
            Self::Int | Self::Float => Some(4),
            Self::BigInt | Self::Double | Self::Timestamp => Some(8),
            Self::Uuid | Self::TimeUuid => Some(16),
            Self::Empty => Some(0),
            Self::Custom(class) if class.ends_with(".LexicalUUIDType") => Some(16),
            Self::Vector { element, dimension } => element
                .fixed_len()
                .and_then(|len| len.checked_mul(*dimension as usize)),
            _ => None,
        }
    }

    /// This type as it is inside a frozen type: all types in it are frozen. Shares parts that are already frozen.
    pub fn freeze(&self) -> CqlType {
        match self {
            Self::List { frozen: true, .. }
            | Self::Set { frozen: true, .. }
            | Self::Map { frozen: true, .. }
            | Self::Udt { frozen: true, .. } => self.clone(),
            Self::List { element, .. } => Self::List {
                element: Arc::new(element.freeze()),
                frozen: true,
            },
            Self::Set { element, .. } => Self::Set {
                element: Arc::new(element.freeze()),
                frozen: true,
            },
            Self::Map { key, value, .. } => Self::Map {
                key: Arc::new(key.freeze()),
                value: Arc::new(value.freeze()),
                frozen: true,
            },
            Self::Udt { definition, .. } => Self::Udt {
                definition: UserType::with_frozen_fields(definition),
                frozen: true,
            },
            Self::Tuple(types) => Self::Tuple(types.iter().map(CqlType::freeze).collect()),
            Self::Vector { element, dimension } => Self::Vector {
                element: Arc::new(element.freeze()),
                dimension: *dimension,
            },
            other => other.clone(),
        }
    }
}

impl UserType {
    /// The index and type of a field; `None` if there is no field of this name.
    pub fn field(&self, name: &str) -> Option<(usize, &CqlType)> {
        let index = self.fields.iter().position(|(known, _)| known == name)?;
        Some((index, &self.fields[index].1))
    }

    /// The same definition with all fields frozen; shared if they already are.
    pub(crate) fn with_frozen_fields(definition: &Arc<UserType>) -> Arc<UserType> {
        let fields: Vec<_> = definition
            .fields
            .iter()
            .map(|(name, ty)| (name.clone(), ty.freeze()))
            .collect();
        if fields == definition.fields {
            return definition.clone();
        }
        Arc::new(UserType {
            keyspace: definition.keyspace.clone(),
            name: definition.name.clone(),
            fields,
        })
    }
}
