//! HEADER of Statistics.db, the serialization header: the facts that a reader needs to decode the rows of Data.db.
//!
//! ```text
//! header  := minTimestamp:uvint  minLocalDeletion:uvint32  minTtl:uvint32      less the epochs below
//!            key_type:bytesV  clustering_types  statics  regulars
//! types   := count:uvint  (class:bytesV)*
//! columns := count:uvint  (name:bytesV class:bytesV)*
//! ```
//!
//! Invariant: columns are in storage order (simple ones by name, then complex ones by name). Bit i of a column subset in a row
//! stands for column i in this order.

use ilion_codec::{Error as Malformed, Reader, Writer};
use ilion_rows::NO_TTL;
use ilion_schema::{ClusteringOrder, Column, TableSchema};
use ilion_types::{CqlType, composite_class};

/// 2015-09-22T00:00Z in microseconds: timestamps are stored relative to it.
const TIMESTAMP_EPOCH_MICROS: i64 = 1_442_880_000_000_000;
/// 2015-09-22T00:00Z in seconds: local deletion times are stored relative to it.
const DELETION_EPOCH_SECS: u32 = 1_442_880_000;

/// The lowest times of a set of rows; times in rows are stored as differences to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EncodingStats {
    /// Lowest timestamp.
    pub min_timestamp_micros: i64,
    /// Lowest local deletion time.
    pub min_local_deletion_secs: u32,
    /// Lowest TTL.
    pub min_ttl_secs: u32,
}

impl EncodingStats {
    /// The minima of an empty set of rows: the epochs.
    pub const NONE: Self = Self {
        min_timestamp_micros: TIMESTAMP_EPOCH_MICROS,
        min_local_deletion_secs: DELETION_EPOCH_SECS,
        min_ttl_secs: 0,
    };

    /// The minima of both sets; an epoch counts as missing.
    #[must_use]
    pub fn merge(self, other: Self) -> Self {
        fn least<T: Copy + Ord>(a: T, b: T, none: T) -> T {
            if a == none {
                b
            } else if b == none {
                a
            } else {
                a.min(b)
            }
        }
        Self {
            min_timestamp_micros: least(
                self.min_timestamp_micros,
                other.min_timestamp_micros,
                TIMESTAMP_EPOCH_MICROS,
            ),
            min_local_deletion_secs: least(
                self.min_local_deletion_secs,
                other.min_local_deletion_secs,
                DELETION_EPOCH_SECS,
            ),
            min_ttl_secs: least(self.min_ttl_secs, other.min_ttl_secs, NO_TTL),
        }
    }

    fn encode(self, out: &mut Writer) {
        let timestamp = self.min_timestamp_micros.wrapping_sub(TIMESTAMP_EPOCH_MICROS);
        let deletion = self.min_local_deletion_secs.wrapping_sub(DELETION_EPOCH_SECS);
        out.uvint(timestamp.cast_unsigned());
        out.uvint32(deletion.cast_signed());
        out.uvint32(self.min_ttl_secs.cast_signed());
    }

    fn decode(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let timestamp = input.uvint()?.cast_signed();
        let deletion = input.uvint32()?.cast_unsigned();
        let ttl = input.uvint32()?.cast_unsigned();
        Ok(Self {
            min_timestamp_micros: timestamp.wrapping_add(TIMESTAMP_EPOCH_MICROS),
            min_local_deletion_secs: deletion.wrapping_add(DELETION_EPOCH_SECS),
            min_ttl_secs: ttl,
        })
    }
}

impl Default for EncodingStats {
    fn default() -> Self {
        Self::NONE
    }
}

/// A class string and the type that it names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassName {
    /// The text in the file.
    pub text: String,
    /// The type, without `ReversedType`.
    pub ty: CqlType,
    /// True if `ReversedType` is around the type.
    pub reversed: bool,
}

impl ClassName {
    /// The class string of a type.
    pub fn of(ty: &CqlType, order: ClusteringOrder) -> Self {
        let reversed = order == ClusteringOrder::Desc;
        Self {
            text: ty.to_clustering_class(reversed),
            ty: ty.clone(),
            reversed,
        }
    }

    /// Parses a class string; `None` if it is invalid.
    pub fn parse(text: &str) -> Option<Self> {
        let (ty, reversed) = CqlType::from_class(text).ok()?;
        Some(Self {
            text: text.to_owned(),
            ty,
            reversed,
        })
    }

    /// The clustering order of the values.
    pub fn order(&self) -> ClusteringOrder {
        if self.reversed {
            ClusteringOrder::Desc
        } else {
            ClusteringOrder::Asc
        }
    }

    /// Length of non-empty values; `None` if values are stored with their length.
    pub(crate) fn fixed_len(&self) -> Option<u32> {
        self.ty.fixed_len().and_then(|len| u32::try_from(len).ok())
    }

    pub(crate) fn decode(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let refused = input.error("the class string of a type");
        Self::parse(input.string_vint()?).ok_or(refused)
    }

    pub(crate) fn decode_many(input: &mut Reader<'_>) -> Result<Vec<Self>, Malformed> {
        let count = input.uvint_len()?;
        let mut classes = Vec::with_capacity(input.capacity_for(count, size_of::<Self>()));
        for _ in 0..count {
            classes.push(Self::decode(input)?);
        }
        Ok(classes)
    }

    pub(crate) fn encode_many(classes: &[Self], out: &mut Writer) {
        out.uvint(classes.len() as u64);
        for class in classes {
            out.bytes_vint(class.text.as_bytes());
        }
    }
}

/// A column in the file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeaderColumn {
    /// Its name.
    pub name: String,
    /// Its type when the file was written.
    pub class: ClassName,
}

impl HeaderColumn {
    fn of(column: &Column) -> Self {
        Self {
            name: column.name.clone(),
            class: ClassName::of(&column.ty, ClusteringOrder::Asc),
        }
    }

    fn encode_many(columns: &[Self], out: &mut Writer) {
        out.uvint(columns.len() as u64);
        for column in columns {
            out.bytes_vint(column.name.as_bytes());
            out.bytes_vint(column.class.text.as_bytes());
        }
    }

    fn decode_many(input: &mut Reader<'_>) -> Result<Vec<Self>, Malformed> {
        let count = input.uvint_len()?;
        let mut columns: Vec<Self> = Vec::with_capacity(input.capacity_for(count, size_of::<Self>()));
        for _ in 0..count {
            let name = input.string_vint()?.to_owned();
            let class = ClassName::decode(input)?;
            columns.push(Self { name, class });
        }
        // Compat: Cassandra sorts the columns it read, and decodes rows in that order.
        columns.sort_by(|a, b| a.rank().cmp(&b.rank()));
        if columns.windows(2).any(|pair| pair[0].name == pair[1].name) {
            return Err(input.error("each column once"));
        }
        Ok(columns)
    }

    fn rank(&self) -> (bool, &[u8]) {
        (self.class.ty.is_multi_cell(), self.name.as_bytes())
    }
}

/// The facts that a reader needs to decode rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SerializationHeader {
    /// The minima that times in rows are relative to.
    pub stats: EncodingStats,
    /// Type of the partition key, a `CompositeType` if it has several columns.
    pub key_type: ClassName,
    /// Types of the clustering columns.
    pub clustering_types: Vec<ClassName>,
    /// Static columns in storage order.
    pub statics: Vec<HeaderColumn>,
    /// Regular columns in storage order.
    pub regulars: Vec<HeaderColumn>,
}

impl SerializationHeader {
    /// The header of rows of `table` with all its columns.
    pub fn of(table: &TableSchema, stats: EncodingStats) -> Self {
        Self {
            stats,
            key_type: key_class(table),
            clustering_types: table
                .clustering()
                .map(|column| ClassName::of(&column.ty, column.order))
                .collect(),
            statics: table.statics().map(HeaderColumn::of).collect(),
            regulars: table.regulars().map(HeaderColumn::of).collect(),
        }
    }

    /// Appends the component.
    pub fn encode(&self, out: &mut Writer) {
        self.stats.encode(out);
        out.bytes_vint(self.key_type.text.as_bytes());
        ClassName::encode_many(&self.clustering_types, out);
        HeaderColumn::encode_many(&self.statics, out);
        HeaderColumn::encode_many(&self.regulars, out);
    }

    /// Decodes the component.
    ///
    /// # Errors
    /// The bytes are damaged, a class string is invalid, or a column appears twice.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, Malformed> {
        let stats = EncodingStats::decode(input)?;
        let key_type = ClassName::decode(input)?;
        let clustering_types = ClassName::decode_many(input)?;
        let statics = HeaderColumn::decode_many(input)?;
        let regulars = HeaderColumn::decode_many(input)?;
        Ok(Self {
            stats,
            key_type,
            clustering_types,
            statics,
            regulars,
        })
    }
}

fn key_class(table: &TableSchema) -> ClassName {
    let mut columns = table.partition_key();
    match (columns.next(), columns.next()) {
        (Some(only), None) => ClassName::of(&only.ty, ClusteringOrder::Asc),
        _ => {
            let text = composite_class(table.partition_key().map(|column| &column.ty));
            ClassName {
                ty: CqlType::Custom(text.as_str().into()),
                text,
                reversed: false,
            }
        }
    }
}
