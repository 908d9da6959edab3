//! Rows of nothing but their key, as hidden tables of indexes have them: from where they lie, without a body beside the buffer.

use std::ops::Range;

use ilion_codec::{Append as _, Slab};
use ilion_rows::{EntryRow, NO_TTL};

use super::{RowEncoder, append_sizes, unfiltered_flag};
use crate::metadata_collector::MetadataCollector;
use crate::values::{Unstorable, encode_values};

impl RowEncoder {
    /// Appends a row of nothing but its key, with the bytes that it has as any row. Gives the place of its clustering values in `out`;
    /// nothing if the row has nothing to store, or the table has columns.
    #[inline]
    pub(crate) fn encode_entry(
        &mut self,
        entry: &EntryRow<'_>,
        previous_size: u64,
        stats: &mut MetadataCollector,
        out: &mut Slab,
    ) -> Result<Option<Range<usize>>, Unstorable> {
        if entry.clustering.len() != self.form.clustering_lens.len() {
            return Err(Unstorable::PartialClustering);
        }
        let (liveness, deletion) = (&entry.liveness, &entry.deletion);
        if !self.form.layout.is_empty() || (liveness.is_none() && deletion.is_live()) {
            return Ok(None);
        }
        let mut flags = unfiltered_flag::HAS_ALL_COLUMNS;
        let body = self.body.encoded();
        body.clear();
        if !liveness.is_none() {
            flags |= unfiltered_flag::HAS_TIMESTAMP;
            if liveness.ttl_secs != NO_TTL {
                flags |= unfiltered_flag::HAS_TTL;
            }
            self.form.times.liveness(liveness, body);
            stats.liveness(liveness);
        }
        if !deletion.is_live() {
            flags |= unfiltered_flag::HAS_DELETION;
            self.form.times.deletion(deletion, body);
            stats.deletion(deletion);
        }
        stats.row(0);
        out.u8(flags);
        let start = out.len();
        encode_values(&self.form.clustering_lens, &entry.clustering, out)?;
        let clustering = start..out.len();
        append_sizes(previous_size, body.len() as u64, out);
        out.bytes(body.as_slice());
        body.clear();
        Ok(Some(clustering))
    }
}
