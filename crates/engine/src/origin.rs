//! The release of Cassandra that the data directory belongs to, from `system.local.release_version`.
//!
//! The start reads it before it opens any other table, since the release decides which columns the tables of `system` have.

use std::sync::Arc;

use ilion_rows::{ClusteringFilter, Cursor, Data, KeyRange, ReadPurge, Unfiltered};
use ilion_schema::{Release, Schema, TableId};

use crate::affected::Affected;
use crate::shared::Shared;
use crate::{Error, Result};

/// The release whose rules the directory follows.
pub(crate) fn release_of(shared: &Shared) -> Result<Release> {
    let Some(version) = stored_version(shared)? else {
        return Ok(Release::default());
    };
    let release = Release::of(&version)?;
    if release == Release::V5_0 || !shared.options.stays_compatible {
        return Ok(Release::V5_0);
    }
    let ours = shared.options.sstable_version;
    if ours.is_oa_or_later() {
        return Err(Error::Refused(format!(
            "the data directory is one of Cassandra {version}, which cannot read the SSTables of version {ours} that the settings \
             ask for; leave sstable_format at nb, or say storage_compatibility_mode: NONE to give up the way back"
        )));
    }
    tracing::info!(%version, "the data directory stays one of this Cassandra");
    Ok(release)
}

/// The stored version, read from SSTables only: in a directory that Cassandra left, the log has no value.
fn stored_version(shared: &Shared) -> Result<Option<String>> {
    shared.adopt_tables(&only_local(), &Affected::All)?;
    let Some(store) = shared.table(TableId::of_system_table("system", "local")) else {
        return Ok(None);
    };
    let table = store.schema();
    let source = store.read_range(&table, &KeyRange::all(), &ClusteringFilter::all());
    let mut cursor = ReadPurge::new(source, table.clone(), shared.own_read_law());
    let column = table.column_named("release_version").map(|column| column.id);
    while cursor.next_partition()?.is_some() {
        while let Some(unfiltered) = cursor.next_unfiltered()? {
            if let (Unfiltered::Row(row), Some(column)) = (unfiltered, column)
                && let Some(Data::Simple(cell)) = row.column(column)
            {
                return Ok(Some(String::from_utf8_lossy(&cell.value).into_owned()));
            }
        }
    }
    Ok(None)
}

/// A schema with only the table `system.local`, which is the same in all releases.
fn only_local() -> Schema {
    let mut schema = Schema::with_system();
    schema.keyspaces.retain(|name, _| name == "system");
    for keyspace in schema.keyspaces.values_mut() {
        Arc::make_mut(keyspace).tables.retain(|name, _| name == "local");
    }
    schema
}
