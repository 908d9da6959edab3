//! Storage-attached indexes by SSTable: `system_views.sai_sstable_indexes` and `sai_sstable_index_segments`.
//!
//! Compat: Cassandra builds an index in segments; Ilion has one segment for all rows of an SSTable. The columns for the smallest and
//! the greatest term are null.

use bytes::Bytes;
use ilion_engine::{Engine, SSTableIndexFacts, VirtualRow};
use ilion_index::Definition;

use super::indexes::attached_indexes;
use crate::values::{bigint, cell, map, text, text_map};

/// Version of the file format that clients see: the format is Ilion's own.
const FORMAT_VERSION: &str = "ilion";

pub(super) fn indexes(engine: &Engine) -> Vec<VirtualRow> {
    each(engine, |definition, facts| {
        let own_bytes = facts.files.iter().map(|(_, bytes)| bytes).sum();
        let mut cells = shared_cells(definition, facts);
        cells.extend([
            cell("format_version", text(FORMAT_VERSION)),
            cell("max_row_id", bigint(last_row(facts))),
            cell("min_row_id", bigint(0)),
            cell("per_column_disk_size", bigint(own_bytes)),
            cell("per_table_disk_size", bigint(facts.shared_bytes)),
        ]);
        VirtualRow {
            partition_key: vec![text(&definition.table.keyspace)],
            clustering: vec![text(&definition.schema.name), data_file(facts)],
            cells,
        }
    })
}

pub(super) fn segments(engine: &Engine) -> Vec<VirtualRow> {
    each(engine, |definition, facts| {
        let mut cells = shared_cells(definition, facts);
        cells.extend([
            cell("component_metadata", components(facts)),
            cell("max_sstable_row_id", bigint(last_row(facts))),
            cell("min_sstable_row_id", bigint(0)),
        ]);
        VirtualRow {
            partition_key: vec![text(&definition.table.keyspace)],
            clustering: vec![text(&definition.schema.name), data_file(facts), bigint(0)],
            cells,
        }
    })
}

fn each(engine: &Engine, row: impl Fn(&Definition, &SSTableIndexFacts) -> VirtualRow) -> Vec<VirtualRow> {
    let mut rows = Vec::new();
    for open in attached_indexes(engine) {
        let definition = open.index.definition();
        let facts = engine.sstable_indexes(definition.table.id, &definition.schema.name);
        rows.extend(facts.iter().map(|facts| row(definition, facts)));
    }
    rows
}

fn shared_cells(definition: &Definition, facts: &SSTableIndexFacts) -> Vec<(String, Option<Bytes>)> {
    vec![
        cell("cell_count", bigint(facts.cells)),
        cell("column_name", text(&definition.column.name)),
        cell("end_token", text(&facts.last_token.to_string())),
        cell("start_token", text(&facts.first_token.to_string())),
        cell("table_name", text(&definition.table.name)),
    ]
}

fn last_row(facts: &SSTableIndexFacts) -> u64 {
    facts.rows.saturating_sub(1)
}

fn data_file(facts: &SSTableIndexFacts) -> Bytes {
    text(&facts.data_file.display().to_string())
}

/// The length of each file in bytes, by the suffix of its name.
fn components(facts: &SSTableIndexFacts) -> Bytes {
    let parts = facts.files.iter().map(|(path, bytes)| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let part = name.rsplit('+').next().unwrap_or_default().to_owned();
        let length = bytes.to_string();
        (text(&part), text_map([("Length", length.as_str())].into_iter()))
    });
    let mut parts: Vec<_> = parts.collect();
    parts.sort();
    map(&parts)
}
