//! Partitions as JSON, as Cassandra's `sstabledump` prints them.
//!
//! [`Dump`] prints partitions, rows and markers, with positions. The caller may take the printed text at any time, so that it does
//! not grow with the partition.

mod cells;
mod debug;
mod instant;
mod layout;

use std::sync::Arc;

use ilion_rows::{
    Bound, BoundKind, Cursor, DecoratedKey, DeletionTime, Marker, PartitionHead, ReadError, Row, Unfiltered,
    Values,
};
use ilion_schema::TableSchema;
use ilion_types::{CqlType, decode_composite, hex};

use cells::path_text;
pub use debug::{debug_head, debug_unfiltered};
pub use instant::TimeStyle;
use layout::JsonWriter;
pub use layout::Layout;

/// Options of a dump.
#[derive(Clone, Copy, Debug)]
pub struct DumpOptions {
    /// One partition per line, or indented.
    pub layout: Layout,
    /// How times are printed.
    pub times: TimeStyle,
    /// The second at which expiration is judged; with `None`, the dump does not print whether data has expired.
    pub now_secs: Option<i64>,
}

/// The output of `sstabledump -l -t`, without fields that depend on the clock.
const TIMELESS_LINES: DumpOptions = DumpOptions {
    layout: Layout::Lines,
    times: TimeStyle::Raw,
    now_secs: None,
};

/// Appends the next partition and a newline, without positions and expirations. Returns false at the end.
///
/// # Errors
/// The cursor fails.
pub fn dump_partition(
    cursor: &mut dyn Cursor,
    table: &Arc<TableSchema>,
    out: &mut String,
) -> Result<bool, ReadError> {
    let Some(head) = cursor.next_partition()? else {
        return Ok(false);
    };
    let mut dump = Dump::new(table, TIMELESS_LINES);
    dump.begin(&head, None);
    while let Some(unfiltered) = cursor.next_unfiltered()? {
        dump.unfiltered(&unfiltered, None);
    }
    dump.end();
    out.push_str(dump.text());
    Ok(true)
}

/// Prints partitions.
#[derive(Debug)]
pub struct Dump {
    table: Arc<TableSchema>,
    options: DumpOptions,
    json: JsonWriter,
    is_begun: bool,
}

impl Dump {
    /// A dump of rows of `table`.
    pub fn new(table: &Arc<TableSchema>, options: DumpOptions) -> Self {
        Self {
            table: table.clone(),
            options,
            json: JsonWriter::new(options.layout),
            is_begun: false,
        }
    }

    /// The printed text that was not taken yet.
    pub fn text(&self) -> &str {
        &self.json.out
    }

    /// Removes the text, after the caller has taken it.
    pub fn clear(&mut self) {
        self.json.out.clear();
    }

    /// Prints only the key of a partition, as an element of a list of keys.
    pub fn key(&mut self, key: &DecoratedKey) {
        self.begin_list();
        self.json.compact_arrays = true;
        self.json.element();
        self.key_array(key);
    }

    /// Starts a partition; its rows start at `position`.
    pub fn begin(&mut self, head: &PartitionHead, position: Option<u64>) {
        if self.options.layout == Layout::Indented {
            self.begin_list();
            self.json.element();
        }
        self.json.begin_object();
        self.json.name("table kind");
        self.json.string("REGULAR");
        self.json.name("partition");
        self.json.begin_object();
        self.json.name("key");
        self.key_array(&head.key);
        self.position(position);
        self.deletion(head.deletion);
        self.json.end_object();
        self.json.name("rows");
        self.json.begin_array();
        if let Some(row) = &head.static_row {
            self.row(row, "static_block", position);
        }
    }

    /// Prints the next row or marker of the partition, which starts at `position`.
    pub fn unfiltered(&mut self, unfiltered: &Unfiltered, position: Option<u64>) {
        match unfiltered {
            Unfiltered::Row(row) => self.row(row, "row", position),
            Unfiltered::Marker(marker) => self.marker(marker),
        }
    }

    /// Ends the partition.
    pub fn end(&mut self) {
        self.json.end_array();
        self.json.end_object();
        if self.options.layout == Layout::Lines {
            self.json.out.push('\n');
        }
    }

    /// Ends the list of keys or of indented partitions.
    pub fn finish(&mut self) {
        if self.options.layout == Layout::Indented {
            self.begin_list();
        }
        if self.is_begun {
            self.json.end_array();
            self.json.out.push('\n');
        }
    }

    fn begin_list(&mut self) {
        if !self.is_begun {
            self.is_begun = true;
            self.json.begin_array();
        }
    }

    fn key_array(&mut self, key: &DecoratedKey) {
        self.json.compact_objects = true;
        self.json.compact_arrays = true;
        self.json.begin_array();
        for text in key_texts(&self.table, &key.key) {
            self.json.element();
            self.json.string(&text);
        }
        self.json.end_array();
        self.json.compact_objects = false;
        self.json.compact_arrays = false;
    }

    fn position(&mut self, position: Option<u64>) {
        if let Some(position) = position {
            self.json.name("position");
            self.json.number(position);
        }
    }

    fn deletion(&mut self, deletion: DeletionTime) {
        if deletion.is_live() {
            return;
        }
        self.json.name("deletion_info");
        self.json.compact_objects = true;
        self.json.begin_object();
        self.json.name("marked_deleted");
        self.json
            .string(&self.options.times.micros(deletion.marked_at_micros));
        self.json.name("local_delete_time");
        self.json.string(&self.options.times.secs(deletion.local_secs));
        self.json.end_object();
        self.json.compact_objects = false;
    }

    /// Prints the values of a clustering; missing values are printed as stars.
    fn clustering(&mut self, values: &Values) {
        if values.is_empty() {
            return;
        }
        self.json.name("clustering");
        self.json.compact_objects = true;
        self.json.begin_array();
        self.json.compact_arrays = true;
        let table = self.table.clone();
        for (index, column) in table.clustering().enumerate() {
            self.json.element();
            match values.get(index) {
                Some(Some(value)) => self.value(&column.ty, value),
                Some(None) => self.json.out.push_str("null"),
                None => self.json.string("*"),
            }
        }
        self.json.end_array();
        self.json.compact_objects = false;
        self.json.compact_arrays = false;
    }

    fn row(&mut self, row: &Row, kind: &str, position: Option<u64>) {
        self.json.element();
        self.json.begin_object();
        self.json.name("type");
        self.json.string(kind);
        self.position(position);
        self.clustering(row.clustering.values());
        self.liveness(row.liveness);
        self.deletion(row.deletion);
        self.json.name("cells");
        self.json.begin_array();
        self.cells(row);
        self.json.end_array();
        self.json.end_object();
    }

    fn marker(&mut self, marker: &Marker) {
        let kind = marker.bound.kind;
        self.json.element();
        self.json.begin_object();
        self.json.name("type");
        let name = if kind.is_boundary() { "boundary" } else { "bound" };
        self.json.string(&format!("range_tombstone_{name}"));
        if let Some(start) = marker.start {
            self.marker_side("start", &marker.bound, kind.opening_side(), start);
        }
        if let Some(end) = marker.end {
            self.marker_side("end", &marker.bound, kind.closing_side(), end);
        }
        self.json.end_object();
    }

    fn marker_side(&mut self, side: &str, bound: &Bound, kind: BoundKind, deletion: DeletionTime) {
        let inclusive = match kind {
            BoundKind::InclStart | BoundKind::InclEnd => "inclusive",
            _ => "exclusive",
        };
        self.json.name(side);
        self.json.begin_object();
        self.json.name("type");
        self.json.string(inclusive);
        self.clustering(&bound.values);
        self.deletion(deletion);
        self.json.end_object();
    }
}

/// The components of a partition key as text; hex if they are invalid for their types.
pub fn key_texts(table: &TableSchema, key: &[u8]) -> Vec<String> {
    let types: Vec<&CqlType> = table.partition_key().map(|column| &column.ty).collect();
    let parts = match types.len() {
        1 => vec![key],
        _ => decode_composite(key).unwrap_or_default(),
    };
    types
        .into_iter()
        .zip(parts)
        .map(|(ty, part)| value_text(ty, part))
        .collect()
}

fn value_text(ty: &CqlType, value: &[u8]) -> String {
    ty.print_plain(value).unwrap_or_else(|_| hex::print(value))
}
