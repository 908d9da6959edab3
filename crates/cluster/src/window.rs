//! [`Windows`]: for each sender, the sequence numbers that were applied. A record that comes again is dropped.
//!
//! A sender numbers its records for each log from 1 and appends a record again when it does not know whether the log has it. So a log
//! may have a record twice, also far apart. All replicas read the same log and keep the same windows, so they drop the same copies.
//!
//! Rule for senders: record `n` is not appended before record `n - WINDOW` is settled, which means acknowledged or given up for good
//! (its writer was told that the outcome is unknown). Hence a record below the window is a late copy of a settled one, and dropping it
//! is right: if it was acknowledged, it was applied before; if it was given up, no client was promised anything. Sequence numbers are
//! counted by log (tablet), not by process: otherwise records of other tablets would move the window.
//!
//! ```text
//! windows := list<node: u32, list<incarnation: u32, newest: u64, seen: [u8; WINDOW / 8]>>     both ascend
//! ```

use std::collections::BTreeMap;

use ilion_codec::{Error, Reader, Writer};
use ilion_commitlog::Origin;

use crate::fields::{decode_list, encode_list, in_order};
use crate::placement::Node;

/// Sequence numbers that a window spans.
pub const WINDOW: u64 = 1024;

/// Incarnations of a node that are remembered. By the time a node has been started this often, the first of these processes ended long
/// ago; also, a process that reads of a newer incarnation stops.
pub(crate) const INCARNATIONS_MAX: usize = 8;

const WORDS: usize = (WINDOW / 64) as usize;

/// Whether a record is applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Admission {
    /// It is the first of its origin: apply it.
    New,
    /// This origin was applied before: drop it.
    Repeated,
    /// It is below the window, so it was settled: drop it.
    Settled,
}

/// The records of one process.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Window {
    newest: u64,
    /// Bit `seq % WINDOW`, for the numbers above `newest - WINDOW` up to `newest`.
    seen: [u64; WORDS],
}

impl Window {
    const EMPTY: Self = Self {
        newest: 0,
        seen: [0; WORDS],
    };

    fn judge(&self, seq: u64) -> Admission {
        let (word, bit) = place(seq);
        match seq {
            _ if seq > self.newest => Admission::New,
            _ if self.newest - seq >= WINDOW => Admission::Settled,
            _ if self.seen[word] & bit != 0 => Admission::Repeated,
            _ => Admission::New,
        }
    }

    fn admit(&mut self, seq: u64) -> Admission {
        let admission = self.judge(seq);
        if admission == Admission::New {
            if seq > self.newest {
                self.slide(seq);
            }
            let (word, bit) = place(seq);
            self.seen[word] |= bit;
        }
        admission
    }

    /// Makes `seq` the newest, and forgets what fell out of the window.
    fn slide(&mut self, seq: u64) {
        if seq - self.newest >= WINDOW {
            self.seen = [0; WORDS];
        } else {
            for passed in self.newest + 1..=seq {
                let (word, bit) = place(passed);
                self.seen[word] &= !bit;
            }
        }
        self.newest = seq;
    }
}

fn place(seq: u64) -> (usize, u64) {
    let index = seq % WINDOW;
    let word = (index / 64) as usize;
    (word, 1 << (index % 64))
}

/// The windows of all senders of one log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Windows {
    nodes: BTreeMap<Node, BTreeMap<u32, Window>>,
}

impl Windows {
    /// Decides about a record, and remembers it. Call it once for each record, in the order of the log.
    pub fn admit(&mut self, origin: Origin) -> Admission {
        if self.judge(origin) == Admission::Settled {
            return Admission::Settled;
        }
        let incarnations = self.nodes.entry(origin.node).or_default();
        if incarnations.len() >= INCARNATIONS_MAX && !incarnations.contains_key(&origin.incarnation) {
            incarnations.pop_first();
        }
        let window = incarnations.entry(origin.incarnation).or_insert(Window::EMPTY);
        window.admit(origin.seq)
    }

    /// Like [`Self::admit`], without remembering the record.
    pub fn judge(&self, origin: Origin) -> Admission {
        let Some(incarnations) = self.nodes.get(&origin.node) else {
            return Admission::New;
        };
        match incarnations.get(&origin.incarnation) {
            Some(window) => window.judge(origin.seq),
            None if incarnations.len() < INCARNATIONS_MAX => Admission::New,
            None => match incarnations.first_key_value() {
                Some((oldest, _)) if origin.incarnation < *oldest => Admission::Settled,
                _ => Admission::New,
            },
        }
    }

    /// Forgets a node that left for good.
    pub fn forget(&mut self, node: Node) {
        self.nodes.remove(&node);
    }

    /// Appends all windows.
    pub fn encode(&self, out: &mut Writer) {
        encode_list(&self.nodes, out, |(node, incarnations), out| {
            out.u32(*node);
            encode_list(incarnations, out, |(incarnation, window), out| {
                out.u32(*incarnation);
                out.u64(window.newest);
                window.seen.iter().for_each(|word| out.u64(*word));
            });
        });
    }

    /// Reads windows.
    ///
    /// # Errors
    /// Bytes that `encode` does not write.
    pub fn decode(input: &mut Reader<'_>) -> Result<Self, Error> {
        let start = input.clone();
        let nodes = decode_list(input, |input| {
            let node = input.u32()?;
            let start = input.clone();
            let incarnations = in_order(decode_list(input, decode_window)?, &start)?;
            if incarnations.is_empty() || incarnations.len() > INCARNATIONS_MAX {
                return Err(start.error("1 to 8 incarnations"));
            }
            Ok((node, incarnations))
        })?;
        Ok(Self {
            nodes: in_order(nodes, &start)?,
        })
    }
}

fn decode_window(input: &mut Reader<'_>) -> Result<(u32, Window), Error> {
    let incarnation = input.u32()?;
    let newest = input.u64()?;
    let mut seen = [0; WORDS];
    for word in &mut seen {
        *word = input.u64()?;
    }
    Ok((incarnation, Window { newest, seen }))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use ilion_codec::{Reader, Writer};
    use ilion_commitlog::Origin;
    use ilion_env::Seeded;

    use super::{Admission, INCARNATIONS_MAX, WINDOW, Windows};

    fn origin(incarnation: u32, seq: u64) -> Origin {
        let node = 1;
        Origin {
            node,
            incarnation,
            seq,
        }
    }

    fn encoded(windows: &Windows) -> Vec<u8> {
        let mut out = Writer::new();
        windows.encode(&mut out);
        out.into_vec()
    }

    #[test]
    fn a_window_is_a_set_that_forgets() {
        for seed in 0..20 {
            println!("seed {seed}");
            let mut random = Seeded::new(seed);
            let (mut windows, mut seen, mut newest) = (Windows::default(), BTreeSet::new(), 0);
            for _ in 0..3000 {
                let jump = if random.one_in(100) { 2 * WINDOW } else { 3 };
                let seq = match random.below(3) {
                    0 => newest + random.below(jump),
                    1 => (newest + 1).saturating_sub(WINDOW + 2) + random.below(4),
                    _ => newest.saturating_sub(random.below(WINDOW + 5)),
                }
                .max(1);
                let expected = if seq + WINDOW <= newest {
                    Admission::Settled
                } else if seen.insert(seq) {
                    Admission::New
                } else {
                    Admission::Repeated
                };
                newest = newest.max(seq);
                assert_eq!(windows.judge(origin(1, seq)), expected, "{seq} of {newest}");
                assert_eq!(windows.admit(origin(1, seq)), expected, "{seq} of {newest}");
            }
            let bytes = encoded(&windows);
            let mut input = Reader::new(&bytes);
            assert_eq!(Windows::decode(&mut input), Ok(windows));
            assert!(input.is_empty());
        }
    }

    #[test]
    fn the_records_of_an_earlier_process_are_told_apart() {
        let mut windows = Windows::default();
        assert_eq!(windows.admit(origin(1, 7)), Admission::New);
        assert_eq!(windows.admit(origin(2, 7)), Admission::New);
        assert_eq!(windows.admit(origin(1, 7)), Admission::Repeated);
        for incarnation in 3..3 + INCARNATIONS_MAX as u32 {
            assert_eq!(windows.admit(origin(incarnation, 1)), Admission::New);
        }
        assert_eq!(windows.admit(origin(1, 8)), Admission::Settled);
        assert_eq!(windows.admit(origin(2, 8)), Admission::Settled);
        assert_eq!(windows.admit(origin(3, 1)), Admission::Repeated);
    }

    #[test]
    fn the_largest_numbers_do_not_overflow() {
        let mut windows = Windows::default();
        assert_eq!(windows.admit(origin(1, u64::MAX)), Admission::New);
        assert_eq!(windows.admit(origin(1, u64::MAX)), Admission::Repeated);
        assert_eq!(windows.admit(origin(1, u64::MAX - WINDOW + 1)), Admission::New);
        assert_eq!(windows.admit(origin(1, u64::MAX - WINDOW)), Admission::Settled);
    }

    #[test]
    fn cut_bytes_are_refused() {
        let mut windows = Windows::default();
        windows.admit(origin(1, 7));
        let bytes = encoded(&windows);
        for end in 0..bytes.len() {
            assert!(Windows::decode(&mut Reader::new(&bytes[..end])).is_err());
        }
    }
}
