//! Names of types.

use super::QualifiedName;

/// The built-in types without parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each variant is the CQL type of that name")]
pub enum NativeType {
    Ascii,
    Bigint,
    Blob,
    Boolean,
    Counter,
    Date,
    Decimal,
    Double,
    Duration,
    Float,
    Inet,
    Int,
    Smallint,
    Text,
    Time,
    Timestamp,
    Timeuuid,
    Tinyint,
    Uuid,
    Varchar,
    Varint,
}

impl NativeType {
    /// Every native type, by name.
    pub const ALL: [Self; 21] = [
        Self::Ascii,
        Self::Bigint,
        Self::Blob,
        Self::Boolean,
        Self::Counter,
        Self::Date,
        Self::Decimal,
        Self::Double,
        Self::Duration,
        Self::Float,
        Self::Inet,
        Self::Int,
        Self::Smallint,
        Self::Text,
        Self::Time,
        Self::Timestamp,
        Self::Timeuuid,
        Self::Tinyint,
        Self::Uuid,
        Self::Varchar,
        Self::Varint,
    ];

    /// The name as CQL prints it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ascii => "ascii",
            Self::Bigint => "bigint",
            Self::Blob => "blob",
            Self::Boolean => "boolean",
            Self::Counter => "counter",
            Self::Date => "date",
            Self::Decimal => "decimal",
            Self::Double => "double",
            Self::Duration => "duration",
            Self::Float => "float",
            Self::Inet => "inet",
            Self::Int => "int",
            Self::Smallint => "smallint",
            Self::Text => "text",
            Self::Time => "time",
            Self::Timestamp => "timestamp",
            Self::Timeuuid => "timeuuid",
            Self::Tinyint => "tinyint",
            Self::Uuid => "uuid",
            Self::Varchar => "varchar",
            Self::Varint => "varint",
        }
    }
}

/// A type in CQL.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum CqlTypeName {
    /// `int` and the like
    Native(NativeType),
    /// `list<t>`
    List(Box<CqlTypeName>),
    /// `set<t>`
    Set(Box<CqlTypeName>),
    /// `map<k, v>`
    Map(Box<CqlTypeName>, Box<CqlTypeName>),
    /// `tuple<a, b>`
    Tuple(Vec<CqlTypeName>),
    /// `vector<t, n>`
    Vector(Box<CqlTypeName>, u32),
    /// `frozen<t>`
    Frozen(Box<CqlTypeName>),
    /// `'org.apache.cassandra.db.marshal.BytesType'`
    Custom(String),
    /// A user type
    User(QualifiedName),
}
