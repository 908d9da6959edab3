//! The entry that a view should have for a row of its base.
//!
//! Compat: `ViewUpdateGenerator.computeLivenessInfoForEntry`. If the view's key has a column outside the base's key, an entry
//! lives as long as that cell. Otherwise it lives as long as the row, which columns outside the view keep alive, too.

use bytes::Bytes;
use ilion_rows::{Cell, Clustering, ColumnData, Data, DecoratedKey, Liveness, Row};
use ilion_types::{KEY_LEN_MAX, encode_composite};

use super::definition::{Source, ViewPlan};
use crate::Error;
use crate::select::RowView;

/// The primary key of an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct EntryKey {
    pub key: DecoratedKey,
    pub clustering: Clustering,
}

/// The entry that a view should have.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WantedEntry {
    pub place: EntryKey,
    pub liveness: Liveness,
    /// Live and dead cells of the base, under the column ids of the view.
    pub columns: Vec<ColumnData>,
}

/// The entry that the view should have for a base row; `None` if it should have none.
///
/// # Errors
/// A value is too long for a key.
pub(super) fn wanted(
    plan: &ViewPlan,
    key: &[Bytes],
    row: &Row,
    now_secs: u32,
) -> Result<Option<WantedEntry>, Error> {
    let Some(liveness) = liveness(plan, row, now_secs) else {
        return Ok(None);
    };
    let mut live = row.clone();
    live.keep_live(now_secs, &plan.base);
    let seen = RowView {
        key,
        static_row: None,
        row: Some(&live),
    };
    if !plan.filter.keeps_partition(&seen) || !plan.filter.keeps_row(&seen) {
        return Ok(None);
    }
    let Some(place) = place(plan, key, &live)? else {
        return Ok(None);
    };
    let columns = plan.shared.iter().filter_map(|shared| {
        Some(ColumnData {
            column: shared.view.id,
            data: row.column(shared.base)?.clone(),
        })
    });
    Ok(Some(WantedEntry {
        place,
        liveness,
        columns: columns.collect(),
    }))
}

/// The liveness of the entry; `None` if the view should have no entry.
fn liveness(plan: &ViewPlan, row: &Row, now_secs: u32) -> Option<Liveness> {
    let Some(extra) = plan.extra else {
        return row
            .is_live(now_secs)
            .then(|| liveness_of_row(plan, row, now_secs));
    };
    match row.column(extra) {
        Some(Data::Simple(cell)) if cell.is_live(now_secs) => Some(liveness_of_cell(cell)),
        _ => None,
    }
}

fn liveness_of_cell(cell: &Cell) -> Liveness {
    Liveness {
        timestamp_micros: cell.timestamp_micros,
        ttl_secs: cell.ttl_secs,
        expires_secs: cell.local_deletion_secs,
    }
}

/// The longest life among the row's own liveness and its cells outside the view. Cells inside the view keep the entry alive by
/// themselves.
fn liveness_of_row(plan: &ViewPlan, row: &Row, now_secs: u32) -> Liveness {
    let own = Some(row.liveness).filter(|liveness| liveness.is_live(now_secs));
    let unselected = plan.unselected.iter().filter_map(|column| row.column(*column));
    let cells = unselected.flat_map(|data| match data {
        Data::Simple(cell) => std::slice::from_ref(cell).iter().collect::<Vec<_>>(),
        Data::Complex(complex) => complex.cells.iter().map(|(_, cell)| cell).collect(),
    });
    let lives = cells
        .filter(|cell| cell.is_live(now_secs))
        .map(liveness_of_cell)
        .chain(own);
    lives
        .reduce(|one, other| {
            let newest = one.timestamp_micros.max(other.timestamp_micros);
            // `NO_DELETION_TIME`, which means no expiry, is the highest value.
            let longest = if other.expires_secs > one.expires_secs {
                other
            } else {
                one
            };
            Liveness {
                timestamp_micros: newest,
                ..longest
            }
        })
        .unwrap_or(Liveness::NONE)
}

/// The primary key of the entry; `None` if one of its values is null. Compat: the partition key may be empty, although clients
/// cannot write or read such keys.
fn place(plan: &ViewPlan, key: &[Bytes], row: &Row) -> Result<Option<EntryKey>, Error> {
    let value = |source: &Source| match source {
        Source::PartitionKey(position) => key.get(*position).cloned(),
        Source::Clustering(position) => row.clustering.values().get(*position).cloned().flatten(),
        Source::Regular(column) => match row.column(*column) {
            Some(Data::Simple(cell)) => Some(cell.value.clone()),
            _ => None,
        },
    };
    let values = |sources: &[Source]| sources.iter().map(value).collect::<Option<Vec<Bytes>>>();
    let (Some(partition_key), Some(clustering)) = (values(&plan.partition_key), values(&plan.clustering))
    else {
        return Ok(None);
    };
    let raw = match partition_key.as_slice() {
        [only] => only.clone(),
        components => {
            let mut composite = Vec::new();
            encode_composite(components.iter().map(Bytes::as_ref), &mut composite)?;
            composite.into()
        }
    };
    let longest = clustering.iter().chain([&raw]).map(Bytes::len).max().unwrap_or(0);
    if longest > KEY_LEN_MAX {
        return Err(Error::Invalid(format!(
            "Key length of {longest} is longer than maximum of {KEY_LEN_MAX} (in materialized view {}.{})",
            plan.view.keyspace, plan.view.name
        )));
    }
    Ok(Some(EntryKey {
        key: DecoratedKey::new(plan.partitioner, raw),
        clustering: Clustering::of(clustering),
    }))
}
