//! The version of the schema by the rules of Cassandra 5.0, which uses a saved cache only if the file begins with this version.
//!
//! ```text
//! version    := UUID v3 of MD5(MD5(partition*))   table after table, as in `TABLES`; without the node's own keyspaces
//! partition  := key column_name* 1:u8 static_row row*
//! static_row := 0:u8 3:u8 times                   no table has static columns
//! row        := 0:u8 clustering_value* 4:u8 times cell*
//! times      := i64::MIN 1:u8 timestamp_micros:i64    not deleted; i64::MIN: not inserted
//! cell       := value timestamp_micros:i64 ttl_secs:i32 1:u8
//! ```
//!
//! Values have no lengths; numbers are big-endian. Dead data is left out. Compat: `SchemaKeyspace.calculateSchemaDigest`.

use ilion_rows::{ClusteringFilter, Cursor, Data, KeyRange, NO_TIMESTAMP, ReadPurge, Row, Unfiltered};
use ilion_schema::{Column, LOCAL_KEYSPACES, TableId, TableSchema};
use md5::{Digest, Md5};
use uuid::Uuid;

use crate::Result;
use crate::shared::Shared;

/// The tables of `system_schema`, in the order of the digest.
const TABLES: [&str; 11] = [
    "column_masks",
    "columns",
    "dropped_columns",
    "triggers",
    "types",
    "functions",
    "aggregates",
    "indexes",
    "tables",
    "views",
    "keyspaces",
];

const ROW: u8 = 0;
const STATIC_CLUSTERING: u8 = 3;
const CLUSTERING: u8 = 4;
/// The boolean `false` in the digest.
const FALSE: u8 = 1;

impl Shared {
    /// The version of the stored schema.
    pub(super) fn schema_version_of_cassandra(&self) -> Result<Uuid> {
        let mut md5 = Md5::new();
        for name in TABLES {
            let Some(store) = self.table(TableId::of_system_table("system_schema", name)) else {
                continue;
            };
            let table = store.schema();
            let source = store.read_range(&table, &KeyRange::all(), &ClusteringFilter::all());
            let mut live = ReadPurge::new(source, table.clone(), self.own_read_law());
            let mut bytes = Vec::new();
            encode_table(&table, &mut live, &mut bytes)?;
            md5.update(&bytes);
        }
        let twice = Md5::digest(md5.finalize());
        Ok(uuid::Builder::from_md5_bytes(twice.into()).into_uuid())
    }
}

fn encode_table(table: &TableSchema, live: &mut dyn Cursor, out: &mut Vec<u8>) -> Result<()> {
    let columns = columns_by_name(table);
    while let Some(head) = live.next_partition()? {
        let is_own = LOCAL_KEYSPACES.iter().any(|name| name.as_bytes() == head.key.key);
        let mut has_rows = false;
        while let Some(unfiltered) = live.next_unfiltered()? {
            let Unfiltered::Row(row) = unfiltered else {
                continue;
            };
            if is_own {
                continue;
            }
            if !has_rows {
                encode_head(&head.key.key, &columns, out);
            }
            has_rows = true;
            encode_row(&row, &columns, out);
        }
    }
    Ok(())
}

fn columns_by_name(table: &TableSchema) -> Vec<&Column> {
    let mut columns: Vec<&Column> = table.regulars().collect();
    columns.sort_unstable_by_key(|column| &column.name);
    columns
}

fn encode_head(key: &[u8], columns: &[&Column], out: &mut Vec<u8>) {
    out.extend_from_slice(key);
    for column in columns {
        out.extend_from_slice(column.name.as_bytes());
    }
    out.extend([FALSE, ROW, STATIC_CLUSTERING]);
    encode_times(NO_TIMESTAMP, out);
}

fn encode_row(row: &Row, columns: &[&Column], out: &mut Vec<u8>) {
    out.push(ROW);
    for value in row.clustering.values().iter().flatten() {
        out.extend_from_slice(value);
    }
    out.push(CLUSTERING);
    encode_times(row.liveness.timestamp_micros, out);
    for column in columns {
        if let Some(Data::Simple(cell)) = row.column(column.id)
            && !cell.is_tombstone()
        {
            out.extend_from_slice(&cell.value);
            out.extend(cell.timestamp_micros.to_be_bytes());
            out.extend(cell.ttl_secs.to_be_bytes());
            out.push(FALSE);
        }
    }
}

/// The times of a row that is not deleted.
fn encode_times(inserted_micros: i64, out: &mut Vec<u8>) {
    out.extend(NO_TIMESTAMP.to_be_bytes());
    out.push(FALSE);
    out.extend(inserted_micros.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use ilion_rows::{Cell, Clustering, ColumnData, DeletionTime, Liveness};
    use ilion_schema::Schema;

    use super::*;

    /// What a Cassandra 5.0.9 absorbed of `CREATE TYPE cc.ty (a int, b text)`.
    const RECORDED: &[u8] = b"ccfield_namesfield_types\x01\
        \x00\x03\x80\0\0\0\0\0\0\0\x01\x80\0\0\0\0\0\0\0\
        \x00ty\x04\x80\0\0\0\0\0\0\0\x01\x00\x06\x60\xdc\xbc\x88\x69\x40\
        \0\0\0\x02\0\0\0\x01a\0\0\0\x01b\x00\x06\x60\xdc\xbc\x88\x69\x40\0\0\0\0\x01\
        \0\0\0\x02\0\0\0\x03int\0\0\0\x04text\x00\x06\x60\xdc\xbc\x88\x69\x40\0\0\0\0\x01";

    #[test]
    fn a_partition_is_absorbed_as_cassandra_does() {
        let schema = Schema::with_system();
        let table = schema.table("system_schema", "types").unwrap();
        let micros = i64::from_be_bytes(*b"\x00\x06\x60\xdc\xbc\x88\x69\x40");
        let cell = |column: &str, value: &'static [u8]| ColumnData {
            column: table.column_named(column).unwrap().id,
            data: Data::Simple(Cell::live(micros, Bytes::from_static(value))),
        };
        let row = Row {
            clustering: Clustering::new([Some(Bytes::from_static(b"ty"))].into_iter().collect()),
            liveness: Liveness::live(micros),
            deletion: DeletionTime::LIVE,
            columns: vec![
                cell("field_names", b"\0\0\0\x02\0\0\0\x01a\0\0\0\x01b"),
                cell("field_types", b"\0\0\0\x02\0\0\0\x03int\0\0\0\x04text"),
            ],
        };
        let columns = columns_by_name(table);
        let mut bytes = Vec::new();
        encode_head(b"cc", &columns, &mut bytes);
        encode_row(&row, &columns, &mut bytes);
        assert_eq!(bytes, RECORDED);
    }
}
