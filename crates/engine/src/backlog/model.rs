//! A model of a write burst on a simulated clock: writers, flushes, one compactor and the toll, with the real strategies.

use std::path::PathBuf;
use std::time::Duration;

use bytes::Bytes;
use ilion_compaction::{Candidate, Choice, Memory, Options, Situation, Strategy, deepest};
use ilion_rows::DecoratedKey;
use ilion_types::Token;

use super::{DEBT_MAX, SLOWED_FROM, Toll, toll};

const FLUSH_BYTES: u64 = 10 << 20;
/// Number of writes that fill a memtable.
const WRITES_A_FLUSH: u64 = 1000;
const FLUSHES: u64 = 600;

struct Model {
    strategy: Strategy,
    memory: Memory,
    candidates: Vec<Candidate>,
    made: u64,
    now_micros: u64,
    /// The running compaction, and the time when it ends.
    running: Option<(Choice, u64)>,
    micros_a_mebibyte: u64,
    /// The highest number of SSTables so far that may have the same key.
    most: usize,
    waits: u64,
    longest_pause: Duration,
}

impl Model {
    fn new(class: &str, micros_a_mebibyte: u64) -> Self {
        let options: Options = [("class".to_owned(), class.to_owned())].into();
        Self {
            strategy: Strategy::of_options(&options),
            memory: Memory::default(),
            candidates: Vec::new(),
            made: 0,
            now_micros: 0,
            running: None,
            micros_a_mebibyte,
            most: 0,
            waits: 0,
            longest_pause: Duration::ZERO,
        }
    }

    fn situation(&self) -> Situation {
        Situation {
            candidates: self.candidates.clone(),
            memtable_min_timestamp: i64::MAX,
            now_secs: i64::try_from(self.now_micros / 1_000_000).unwrap(),
            gc_before_secs: 0,
            flush_bytes: FLUSH_BYTES,
            random: self.made,
        }
    }

    /// Adds an SSTable that covers the whole ring.
    fn add(&mut self, size_bytes: u64) {
        self.made += 1;
        let key = |hash| DecoratedKey {
            token: Token::Murmur3(hash),
            key: Bytes::new(),
        };
        let time = i64::try_from(self.now_micros).unwrap();
        self.candidates.push(Candidate {
            id: PathBuf::from(format!("nb-{}-big-Data.db", self.made)),
            size_bytes,
            partitions: size_bytes / 100,
            first: key(i64::MIN + 1),
            last: key(i64::MAX),
            level: 0,
            min_timestamp: time,
            max_timestamp: time,
            max_local_deletion_secs: u32::MAX,
            droppable_ratio: 0.0,
            created_secs: time / 1_000_000,
            is_compacting: false,
        });
        self.most = self.most.max(deepest(&self.candidates));
    }

    /// Lets compactions begin and end up to now.
    fn compact(&mut self) {
        loop {
            match &self.running {
                Some((_, end)) if *end > self.now_micros => return,
                Some((choice, _)) => {
                    let choice = choice.clone();
                    let is_input = |candidate: &Candidate| choice.inputs.contains(&candidate.id);
                    let bytes: u64 = self
                        .candidates
                        .iter()
                        .filter(|one| is_input(one))
                        .map(|one| one.size_bytes)
                        .sum();
                    self.candidates.retain(|candidate| !is_input(candidate));
                    self.running = None;
                    self.add(bytes);
                }
                None => {
                    let situation = self.situation();
                    let Some(choice) = self.strategy.choose(&situation, &mut self.memory) else {
                        return;
                    };
                    let mut bytes = 0;
                    for candidate in &mut self.candidates {
                        if choice.inputs.contains(&candidate.id) {
                            candidate.is_compacting = true;
                            bytes += candidate.size_bytes;
                        }
                    }
                    let end = self.now_micros + (bytes >> 20) * self.micros_a_mebibyte;
                    self.running = Some((choice, end));
                }
            }
        }
    }

    fn debt(&self) -> usize {
        self.strategy.debt(&self.situation(), &self.memory)
    }

    /// Writes until a memtable is full, as the debt of that moment allows.
    fn fill(&mut self, micros_a_write: u64) {
        let mut written = 0;
        let mut debt = self.debt();
        while written < WRITES_A_FLUSH {
            match toll(debt, 0) {
                Toll::Wait => {
                    self.waits += 1;
                    let (_, end) = self.running.as_ref().expect("who waits, waits for a compaction");
                    self.now_micros = *end;
                }
                paid => {
                    let pause = match paid {
                        Toll::Pause(pause) => pause,
                        _ => Duration::ZERO,
                    };
                    self.longest_pause = self.longest_pause.max(pause);
                    let each = micros_a_write + u64::try_from(pause.as_micros()).unwrap();
                    // The debt does not change before the compaction ends.
                    let until = self.running.as_ref().map_or(u64::MAX, |(_, end)| *end);
                    let count = until.saturating_sub(self.now_micros).div_ceil(each.max(1));
                    let count = count.clamp(1, WRITES_A_FLUSH - written);
                    written += count;
                    self.now_micros += count * each;
                }
            }
            self.compact();
            debt = self.debt();
        }
        self.add(FLUSH_BYTES);
        self.compact();
    }
}

#[test]
fn what_a_read_may_meet_stays_bounded_however_fast_writers_are() {
    for class in ["UnifiedCompactionStrategy", "SizeTieredCompactionStrategy"] {
        // From writers that compactions keep up with to writers that are hundreds of times as fast.
        for micros_a_write in [10_000, 1000, 100, 10, 1] {
            let mut model = Model::new(class, 20_000);
            for _ in 0..FLUSHES {
                model.fill(micros_a_write);
            }
            let most = model.most;
            assert!(
                most < DEBT_MAX + SLOWED_FROM,
                "{class}, {micros_a_write}: {most} SSTables"
            );
            // Writers seldom wait for a compaction, since pauses slow them enough.
            assert!(
                model.waits < FLUSHES / 10,
                "{class}, {micros_a_write}: {} waits",
                model.waits
            );
            if micros_a_write == 10_000 {
                assert!(
                    model.longest_pause < Duration::from_millis(1),
                    "{:?}",
                    model.longest_pause
                );
            }
        }
    }
}

#[test]
fn pauses_grow_smoothly_with_the_debt() {
    let pause = |debt| match toll(debt, 0) {
        Toll::Free => Duration::ZERO,
        Toll::Pause(pause) => pause,
        Toll::Wait => panic!("{debt}"),
    };
    for debt in 1..DEBT_MAX {
        let step = pause(debt).saturating_sub(pause(debt - 1));
        assert!(
            pause(debt) >= pause(debt - 1) && step <= Duration::from_millis(3),
            "{debt}: {step:?}"
        );
    }
}
