//! The spectrogram of I/O as JSON.

use std::collections::BTreeMap;

use ilion_env::IoVerb;
use ilion_env::spectrogram::{
    BOUNDS_NANOS, IoKind, SLOT_MILLIS, SLOTS_KEPT, SlowIo as Io, current_slot, epoch_millis, slowest, spectra,
};
use serde::{Deserialize, Serialize};

/// Most I/Os in a [`SlowestReport`].
const SLOWEST_MAX: usize = 100;

/// Selects the slots from a given one on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub(crate) struct SpectrogramOrder {
    #[serde(default)]
    pub from: u32,
}

/// I/O by time and latency.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpectrogramReport {
    /// Length of a slot.
    pub slot_millis: u64,
    /// Slots that are kept.
    pub slots_kept: u32,
    /// When slot 0 began, in milliseconds since 1970.
    pub epoch_millis: u64,
    /// The slot that is filled now; it is not part of this report.
    pub current_slot: u32,
    /// Lower bounds of the steps of latency, in nanoseconds.
    pub bounds_nanos: Vec<u64>,
    /// Names of the kinds of I/O.
    pub kinds: Vec<String>,
    /// `keyspace.table` by the table number of the cells; empty is no table.
    pub tables: BTreeMap<u16, String>,
    /// Slots with I/O, oldest first.
    pub slots: Vec<SpectrumSlot>,
}

/// One slot: cells that are not zero, each `[table, kind, step, count]`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpectrumSlot {
    /// Its number.
    pub slot: u32,
    /// The cells.
    pub cells: Vec<[u32; 4]>,
}

impl SpectrogramReport {
    /// Reports the slots from `order.from` on.
    pub(crate) fn since(order: SpectrogramOrder) -> Self {
        let mut tables = BTreeMap::new();
        let mut slots = Vec::new();
        for spectrum in spectra(order.from) {
            let cells = spectrum.cells.iter().map(|cell| {
                let number = cell.table.number();
                tables.entry(number).or_insert_with(|| cell.table.name());
                [
                    u32::from(number),
                    cell.kind as u32,
                    u32::from(cell.step),
                    cell.count,
                ]
            });
            slots.push(SpectrumSlot {
                slot: spectrum.slot,
                cells: cells.collect(),
            });
        }
        Self {
            slot_millis: SLOT_MILLIS,
            slots_kept: SLOTS_KEPT,
            epoch_millis: epoch_millis(),
            current_slot: current_slot(),
            bounds_nanos: BOUNDS_NANOS.to_vec(),
            kinds: IoKind::ALL.iter().map(|kind| kind.name().to_owned()).collect(),
            tables,
            slots,
        }
    }
}

/// A rectangle of the spectrogram; both ends are inclusive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowestOrder {
    /// First slot.
    pub from: u32,
    /// Last slot.
    pub to: u32,
    /// Least latency, in nanoseconds.
    #[serde(default)]
    pub min_nanos: u64,
    /// Greatest latency, in nanoseconds.
    #[serde(default = "longest")]
    pub max_nanos: u64,
    /// Only these kinds of I/O, separated by commas; `None` is all.
    #[serde(default)]
    pub kinds: Option<String>,
    /// Only files of this `keyspace.table`; `None` is all.
    #[serde(default)]
    pub table: Option<String>,
}

impl SlowestOrder {
    fn wants(&self, io: &Io) -> bool {
        let is_kind = |kinds: &String| kinds.split(',').any(|kind| kind == io.kind.name());
        self.kinds.as_ref().is_none_or(is_kind)
            && self.table.as_ref().is_none_or(|table| io.table.name() == *table)
    }
}

fn longest() -> u64 {
    u64::MAX
}

/// The slowest reads, writes and syncs in a rectangle, of those that the node has kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowestReport {
    /// Slowest first.
    pub slowest: Vec<SlowIo>,
}

/// A slow read, write or sync of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlowIo {
    /// Start of the slot in which it ended, in milliseconds since 1970.
    pub at_millis: u64,
    /// `read`, `write` or `sync`.
    pub verb: String,
    /// Kind of I/O.
    pub kind: String,
    /// `keyspace.table`.
    pub table: String,
    /// Name of the file.
    pub file: String,
    /// Offset in the file.
    pub offset: u64,
    /// Number of bytes.
    pub bytes: u64,
    /// Latency.
    pub nanos: u64,
    /// Text of the statement for which it was done, if known.
    pub statement: Option<String>,
}

impl SlowestReport {
    /// Reports the I/O of a rectangle; `name` returns the text of a statement by its id.
    pub(crate) fn of(order: &SlowestOrder, name: impl Fn(u64) -> Option<String>) -> Self {
        let (slots, nanos) = ((order.from, order.to), (order.min_nanos, order.max_nanos));
        let found = slowest(slots, nanos, |io| order.wants(io), SLOWEST_MAX)
            .into_iter()
            .map(|io| SlowIo {
                verb: match io.verb {
                    IoVerb::Read => "read",
                    IoVerb::Wrote => "write",
                    IoVerb::Synced => "sync",
                }
                .to_owned(),
                at_millis: epoch_millis() + u64::from(io.slot) * SLOT_MILLIS,
                kind: io.kind.name().to_owned(),
                table: io.table.name(),
                file: io.file.into(),
                offset: io.offset,
                bytes: io.bytes,
                nanos: io.nanos,
                statement: name(io.statement),
            });
        Self {
            slowest: found.collect(),
        }
    }
}
