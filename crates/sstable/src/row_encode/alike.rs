//! Rows that are laid out alike (`ilion_rows::AlikeRows`): how they are written is found out once for all of them.

use ilion_codec::{Append as _, Slab, unsigned_vint_len};
use ilion_rows::{AlikeRows, RowLayout};
use smallvec::SmallVec;

use super::unfiltered_flag::{HAS_ALL_COLUMNS, HAS_TIMESTAMP};
use super::{RowEncoder, Times};
use crate::metadata_collector::MetadataCollector;
use crate::values::encode_values;

/// Bytes of a vint, at most.
const VINT_BYTES_MAX: usize = 9;

/// How rows of one layout are written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AlikeForm<'l> {
    layout: &'l RowLayout,
    times: Times,
}

impl RowEncoder {
    /// How these rows, which are in a partition, are written; nothing if it has to be found out for each.
    pub(crate) fn form_of<'l>(&mut self, rows: &AlikeRows<'l>) -> Option<AlikeForm<'l>> {
        let layout = rows.layout();
        let columns = self.form.layout.all_plain()?.iter().map(|column| column.id);
        let has_all = columns.eq(layout.cells.iter().map(|(id, _)| *id));
        let is_short = VINT_BYTES_MAX + layout.len < self.plain.bytes_max;
        if !has_all || !is_short || layout.clustering.len() != self.form.clustering_lens.len() {
            return None;
        }
        // If the clustering of one would be stored again as it is, so would that of each, whose values have the same lengths.
        let first = rows.iter().next()?;
        let values = layout.clustering.iter().map(|place| Some(&first[place.clone()]));
        let values: SmallVec<[Option<&[u8]>; 4]> = values.collect();
        self.body.clear();
        let encoded = self.body.encoded();
        let is_encoded = encode_values(&self.form.clustering_lens, &values, encoded).is_ok();
        let is_same = is_encoded && *encoded.as_slice() == first[layout.stored_clustering.clone()];
        self.body.clear();
        is_same.then_some(AlikeForm {
            layout,
            times: self.form.times,
        })
    }
}

impl AlikeForm<'_> {
    /// Appends one of the rows. Its clustering follows the first byte.
    #[inline]
    pub(crate) fn encode(
        &self,
        row: &[u8],
        micros: i64,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) {
        let RowLayout {
            stored_clustering,
            stored,
            cells,
            ..
        } = self.layout;
        let clustering = &row[stored_clustering.start..stored_clustering.end];
        let stored = RowLayout::part(row, stored);
        let micros_stored = self.times.of_micros(micros);
        let size = unsigned_vint_len(previous_size) + unsigned_vint_len(micros_stored) + stored.len();
        out.fill(1 + row.len() + 3 * VINT_BYTES_MAX, |out| {
            out.u8(HAS_TIMESTAMP | HAS_ALL_COLUMNS);
            out.bytes(clustering);
            out.uvint(size as u64);
            out.uvint(previous_size);
            out.uvint(micros_stored);
            out.bytes(stored);
        });
        stats.usual_row(micros, cells.len() as u64);
    }
}
