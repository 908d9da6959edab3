//! Memory limits of caches, memtables and clients: from the settings, or as shares of the machine's memory.

use ilion_settings::{Settings, Size};

/// Compat: `prepared_statements_cache_size` of Cassandra.
const PREPARED_AUTO_MIN: u64 = 10 << 20;
const MEMTABLES_AUTO: std::ops::RangeInclusive<u64> = (64 << 20)..=(4 << 30);
const KEYS_AUTO: u64 = 16 << 20;
const CHUNKS_AUTO_MAX: u64 = 512 << 20;
const COUNTERS_AUTO_MAX: u64 = 50 << 20;
/// Subtracted from the quarter of memory that pages of indexes may use, since small machines have less to spare.
const PAGES_LESS: u64 = 256 << 20;

/// Clients may use this part (one 40th) of the machine's memory. Compat: Cassandra's limit is a tenth of its heap, and its heap is
/// a quarter of the memory.
const CLIENT_MEMORY_SHARE: u64 = 40;
/// Lower bound, so that some of the largest requests fit on any machine.
const CLIENT_BYTES_MIN: u64 = 64 << 20;

/// Limits of the bytes of requests and answers: for all connections, and for the connections of one address. `None` takes a share of
/// the machine's memory.
pub fn client_bytes(all: Option<Size>, of_address: Option<Size>, machine_bytes: u64) -> (u64, u64) {
    let all = all.map_or(
        (machine_bytes / CLIENT_MEMORY_SHARE).max(CLIENT_BYTES_MIN),
        |size| size.0,
    );
    let of_address = of_address.map_or((all / 4).max(CLIENT_BYTES_MIN / 2), |size| size.0);
    (all, of_address)
}

/// Limits in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Budgets {
    machine: u64,
    pub memtables: u64,
    pub chunks: u64,
    pub keys: u64,
    pub rows: u64,
    pub counters: u64,
    pub summaries: u64,
    pub sorted_views: u64,
    pub pages: u64,
    pub clients: u64,
    pub prepared: u64,
}

impl Budgets {
    pub(crate) fn of(settings: &Settings, machine: u64) -> Self {
        let chosen = |size: Option<Size>, auto: u64| size.map_or(auto, |size| size.0);
        let memtables = (machine / 4).clamp(*MEMTABLES_AUTO.start(), *MEMTABLES_AUTO.end());
        let sorted_views = machine / 80;
        let pages = (machine / 4)
            .saturating_sub(PAGES_LESS + sorted_views)
            .max(machine / 8);
        let (clients, _) = client_bytes(
            settings.native_transport_max_request_data_in_flight,
            settings.native_transport_max_request_data_in_flight_per_ip,
            machine,
        );
        Self {
            machine,
            memtables: chosen(settings.memtable_heap_space, memtables),
            chunks: chosen(settings.file_cache_size, (machine / 12).min(CHUNKS_AUTO_MAX)),
            keys: chosen(settings.key_cache_size, KEYS_AUTO),
            summaries: chosen(settings.index_summary_capacity, machine / 40),
            sorted_views: chosen(settings.sorted_view_capacity, sorted_views),
            pages: chosen(settings.index_page_capacity, pages),
            rows: settings.row_cache_size.0,
            counters: chosen(settings.counter_cache_size, (machine / 80).min(COUNTERS_AUTO_MAX)),
            clients,
            prepared: chosen(
                settings.prepared_statements_cache_size,
                (machine / 256).max(PREPARED_AUTO_MIN),
            ),
        }
    }

    fn named(&self) -> [(&'static str, u64); 10] {
        [
            ("memtable_heap_space", self.memtables),
            ("file_cache_size", self.chunks),
            ("index_page_capacity", self.pages),
            ("index_summary_capacity", self.summaries),
            ("sorted_view_capacity", self.sorted_views),
            ("key_cache_size", self.keys),
            ("counter_cache_size", self.counters),
            ("row_cache_size", self.rows),
            ("native_transport_max_request_data_in_flight", self.clients),
            ("prepared_statements_cache_size", self.prepared),
        ]
    }

    fn sum(&self) -> u64 {
        self.named()
            .iter()
            .fold(0, |sum, (_, bytes)| sum.saturating_add(*bytes))
    }

    /// Logs the limits. Warns if their sum exceeds nine tenths of the machine's memory.
    pub(crate) fn tell(&self) {
        let mebibytes = |bytes: u64| bytes >> 20;
        tracing::info!(
            memtables_mib = mebibytes(self.memtables),
            chunks_mib = mebibytes(self.chunks),
            keys_mib = mebibytes(self.keys),
            rows_mib = mebibytes(self.rows),
            counters_mib = mebibytes(self.counters),
            summaries_mib = mebibytes(self.summaries),
            sorted_views_mib = mebibytes(self.sorted_views),
            pages_mib = mebibytes(self.pages),
            clients_mib = mebibytes(self.clients),
            prepared_mib = mebibytes(self.prepared),
            sum_mib = mebibytes(self.sum()),
            machine_mib = mebibytes(self.machine),
            "memory that memtables, caches and clients may take"
        );
        if self.sum() > self.machine / 10 * 9 {
            tracing::warn!(
                "memtables, caches and clients may take more memory than the machine has: lower memtable_heap_space, \
                 file_cache_size, index_page_capacity, row_cache_size, counter_cache_size or \
                 native_transport_max_request_data_in_flight"
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINES_GIB: [u64; 6] = [1, 2, 4, 8, 16, 64];

    fn of_machine(gib: u64) -> Budgets {
        Budgets::of(&Settings::default(), gib << 30)
    }

    #[test]
    fn what_is_taken_by_default_leaves_two_fifths_of_the_machine() {
        for gib in MACHINES_GIB {
            let budgets = of_machine(gib);
            assert!(budgets.sum() * 10 < (gib << 30) * 6, "{budgets:?}");
        }
        let small = Budgets::of(&Settings::default(), 256 << 20);
        assert_eq!(small.memtables, 64 << 20);
    }

    /// The table of docs/capacity.md.
    #[test]
    fn the_document_says_what_each_gets() {
        let document = include_str!("../../../docs/capacity.md");
        let all = MACHINES_GIB.map(of_machine);
        let mebibytes = |bytes: u64| (bytes + (1 << 19)) >> 20;
        let mut names: Vec<&str> = all[0].named().map(|(name, _)| name).to_vec();
        names.push("sum");
        for (place, name) in names.into_iter().enumerate() {
            let shown = |budgets: &Budgets| match budgets.named().get(place) {
                Some((_, bytes)) => mebibytes(*bytes).to_string(),
                None => {
                    let percent = budgets.sum() * 100 / budgets.machine;
                    format!("{} ({percent} %)", mebibytes(budgets.sum()))
                }
            };
            let name = if name == "sum" {
                name.to_owned()
            } else {
                format!("`{name}`")
            };
            let line = format!("| {name} | {} |", all.each_ref().map(shown).join(" | "));
            assert!(document.contains(&line), "{line}");
        }
    }
}
