//! UnifiedCompactionStrategy: tiered, leveled or between, by density, in shards.
//!
//! A file's density is its size divided by the share of the ring that it spans. Files are put into levels by density; the
//! upper limit of a level is its lower limit times the fanout. In a level, sections of the ring where at least `threshold` files
//! overlap are due. A positive scaling parameter W gives tiered levels (fanout and threshold 2 + W), a negative W gives leveled
//! ones (fanout 2 - W, threshold 2). The result is split at the borders of shards of the ring; the denser it is, the more shards.
//! Compat: `UnifiedCompactionStrategy`, `Controller` and `ShardManager` of Cassandra 5.0. Beyond it, files with enough tombstones are
//! compacted alone, as in the other strategies.

use crate::common::{Common, Options, number, percent, size};
use crate::expired::is_worth_purging;
use crate::overlaps::{Inclusion, Section, pick, runs, sections};
use crate::time_window::EXPIRED_CHECK_SECS;
use crate::{Candidate, Choice, Memory, Output, Situation, space};

/// The number of shards is doubled at most this many times.
const SHARD_SHIFT_MAX: i32 = 20;
/// Limit for the number of levels; real data has fewer.
const LEVELS_MAX: usize = 32;

/// Options of the strategy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Unified {
    /// W of each level; the last one applies to all higher levels.
    scaling: Vec<i32>,
    target_bytes: u64,
    base_shards: u32,
    min_sstable_bytes: u64,
    sstable_growth: f64,
    flush_override_bytes: u64,
    max_inputs: usize,
    expired_check_secs: i64,
    inclusion: Inclusion,
}

/// Files of similar density.
struct Level<'a> {
    number: usize,
    files: Vec<&'a Candidate>,
}

/// A run of sections of a level.
struct Bucket<'s> {
    sections: &'s [Section],
    /// The largest number of its files that may have the same key.
    depth: usize,
}

impl Unified {
    pub(crate) fn of_options(options: &Options) -> Self {
        let inclusion = options
            .get("overlap_inclusion_method")
            .map(|text| text.to_ascii_uppercase());
        let max_inputs = number(options, "max_sstables_to_compact", 32_i64);
        Self {
            scaling: options
                .get("scaling_parameters")
                .and_then(|text| text.split(',').map(|one| scaling_of(one.trim())).collect())
                .filter(|scaling: &Vec<i32>| !scaling.is_empty())
                .unwrap_or_else(|| vec![2]),
            target_bytes: size(options, "target_sstable_size", 1 << 30).max(1 << 20),
            base_shards: number(options, "base_shard_count", 4).max(1),
            min_sstable_bytes: size(options, "min_sstable_size", 100 << 20),
            sstable_growth: percent(options, "sstable_growth", 0.333).clamp(0.0, 1.0),
            flush_override_bytes: size(options, "flush_size_override", 0),
            max_inputs: usize::try_from(max_inputs)
                .ok()
                .filter(|max| *max > 0)
                .unwrap_or(usize::MAX),
            expired_check_secs: number(
                options,
                "expired_sstable_check_frequency_seconds",
                EXPIRED_CHECK_SECS,
            ),
            inclusion: match inclusion.as_deref() {
                Some("NONE") => Inclusion::None,
                Some("SINGLE") => Inclusion::Single,
                _ => Inclusion::Transitive,
            },
        }
    }

    fn scaling_of_level(&self, level: usize) -> i32 {
        let last = self.scaling.len() - 1;
        self.scaling[level.min(last)]
    }

    fn fanout(&self, level: usize) -> usize {
        2 + self.scaling_of_level(level).unsigned_abs() as usize
    }

    fn threshold(&self, level: usize) -> usize {
        2 + self.scaling_of_level(level).max(0).unsigned_abs() as usize
    }

    pub(crate) fn choose(
        &self,
        situation: &Situation,
        common: &Common,
        memory: &mut Memory,
    ) -> Option<Choice> {
        self.note_flushes(situation, memory);
        let (expired, idle) = memory.look_for_expired(situation, self.expired_check_secs);
        let inputs = self
            .due(&idle, situation.random, memory)
            .or_else(|| worth_purging(&idle, situation, common));
        if inputs.is_none() && expired.is_empty() {
            return None;
        }
        let inputs = inputs.unwrap_or_default();
        Some(Choice {
            expired,
            output: self.output_of(&inputs),
            ..Choice::merge(inputs)
        })
    }

    /// Updates the remembered flush size if it has changed by half.
    fn note_flushes(&self, situation: &Situation, memory: &mut Memory) {
        let observed = situation.flush_bytes;
        let known = memory.flush_bytes;
        let differs = observed > 0 && (1.0 - known as f64 / observed as f64).abs() > 0.5;
        if known == 0 || differs {
            memory.flush_bytes = observed.div_ceil(1 << 20) << 20;
        }
    }

    /// The inputs of the next compaction. The level where most files may have the same key comes first; of equal levels the lower.
    fn due<'a>(&self, idle: &[&'a Candidate], random: u64, memory: &Memory) -> Option<Vec<&'a Candidate>> {
        let mut deepest = 0;
        let mut due = None;
        for level in self.levels(idle, memory) {
            let sections = sections(&level.files);
            let depth = depth_of(&sections);
            // Unlike in Cassandra, a deep level that is not due does not hide one that is due.
            if depth > deepest && depth >= self.threshold(level.number) {
                deepest = depth;
                due = self.due_of_level(&level, &sections, depth, random);
            }
        }
        due
    }

    fn due_of_level<'a>(
        &self,
        level: &Level<'a>,
        sections: &[Section],
        depth: usize,
        random: u64,
    ) -> Option<Vec<&'a Candidate>> {
        let mut buckets = self.buckets(level, sections);
        buckets.retain(|bucket| bucket.depth == depth);
        if buckets.is_empty() {
            return None;
        }
        let lot = usize::try_from(random % buckets.len() as u64).unwrap_or(0);
        Some(self.inputs_of(level, &buckets[lot]))
    }

    fn buckets<'s>(&self, level: &Level<'_>, sections: &'s [Section]) -> Vec<Bucket<'s>> {
        runs(sections, self.threshold(level.number), self.inclusion)
            .into_iter()
            .map(|sections| Bucket {
                sections,
                depth: depth_of(sections),
            })
            .collect()
    }

    /// All files of the bucket. If these are too many: the oldest, as many as would have made a file of a higher level.
    fn inputs_of<'a>(&self, level: &Level<'a>, bucket: &Bucket<'_>) -> Vec<&'a Candidate> {
        let fanout = self.fanout(level.number);
        let max_inputs = self.max_inputs.max(fanout);
        let depth = bucket.depth;
        let limit = if depth <= fanout {
            depth
        } else if depth <= fanout * self.fanout(level.number + 1) || max_inputs == fanout {
            depth.min(max_inputs)
        } else {
            self.step(level.number, depth.min(max_inputs))
        };
        let numbers = oldest(level, bucket.sections, limit);
        pick(&level.files, &numbers)
    }

    /// The largest number of files, at most `limit`, that makes one file of a higher level.
    fn step(&self, level: usize, limit: usize) -> usize {
        let mut level = level;
        let mut step = self.fanout(level);
        let is_leveled = self.scaling_of_level(level) < 0;
        loop {
            level += 1;
            let next = step.saturating_mul(self.fanout(level));
            if next > limit {
                break;
            }
            step = next;
        }
        match is_leveled {
            true => step * (limit / step).max(1),
            false => step,
        }
    }

    /// Files by density.
    fn levels<'a>(&self, files: &[&'a Candidate], memory: &Memory) -> Vec<Level<'a>> {
        let mut by_density: Vec<(f64, &Candidate)> =
            files.iter().map(|file| (file.density(), *file)).collect();
        by_density.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut levels = Vec::new();
        let mut level = Level {
            number: 0,
            files: Vec::new(),
        };
        let mut above = self.top_of(0, self.base_bytes(memory));
        for (density, file) in by_density {
            while density >= above && level.number < LEVELS_MAX {
                let number = level.number + 1;
                levels.push(std::mem::replace(
                    &mut level,
                    Level {
                        number,
                        files: Vec::new(),
                    },
                ));
                above = self.top_of(number, above);
            }
            level.files.push(file);
        }
        levels.push(level);
        levels
    }

    /// The density at which levels begin: a little below that of a flush, so that flushes of nearly the same size share a level.
    fn base_bytes(&self, memory: &Memory) -> f64 {
        let flush = match self.flush_override_bytes {
            0 => memory.flush_bytes,
            given => given,
        };
        flush.max(1 << 20) as f64 * (1.0 - 0.9 / self.fanout(0) as f64)
    }

    fn top_of(&self, level: usize, bottom: f64) -> f64 {
        (bottom * self.fanout(level) as f64).floor()
    }

    /// How the result of a compaction of these files is cut.
    pub(crate) fn output_of(&self, inputs: &[&Candidate]) -> Output {
        let bytes: u64 = inputs.iter().map(|file| file.size_bytes).sum();
        let partitions = inputs.iter().map(|file| file.partitions).sum();
        let first = inputs.iter().map(|file| &file.first).min();
        let last = inputs.iter().map(|file| &file.last).max();
        match (first, last) {
            (Some(first), Some(last)) if space::is_even(&first.token) => {
                self.output_of_density(bytes as f64 / space::span(first, last, partitions))
            }
            _ => Output::Whole,
        }
    }

    fn output_of_density(&self, density: f64) -> Output {
        match self.shards(density) {
            1 => Output::Whole,
            shards => Output::Shards(shards),
        }
    }

    /// Number of shards for this density: the base times a power of two, so that shards of a lower level are split evenly.
    fn shards(&self, density: f64) -> u32 {
        let base = self.base_shards;
        if self.min_sstable_bytes > 0 {
            let count = density / self.min_sstable_bytes as f64;
            if count < f64::from(base) {
                let power = 1 << (count as u32 | 1).ilog2();
                return power.min(base & base.wrapping_neg());
            }
        }
        let count = density / (self.target_bytes as f64 * f64::from(base));
        let exponent = count.log2() * (1.0 - self.sstable_growth) + 0.5;
        // NaN and negative numbers give the base.
        let shift = (exponent as i32).clamp(0, SHARD_SHIFT_MAX);
        base.saturating_mul(1 << shift)
    }

    pub(crate) fn pending(&self, situation: &Situation, memory: &Memory) -> usize {
        let all: Vec<&Candidate> = situation.candidates.iter().collect();
        let tasks = |level: Level<'_>| -> usize {
            let sections = sections(&level.files);
            let threshold = self.threshold(level.number);
            let buckets = self.buckets(&level, &sections).into_iter();
            buckets.map(|bucket| bucket.depth / threshold).sum()
        };
        self.levels(&all, memory).into_iter().map(tasks).sum()
    }

    pub(crate) fn debt(&self, situation: &Situation, memory: &Memory) -> usize {
        let all: Vec<&Candidate> = situation.candidates.iter().collect();
        let excess = |level: Level<'_>| {
            let depth = depth_of(&sections(&level.files));
            (depth + 1).saturating_sub(self.threshold(level.number))
        };
        self.levels(&all, memory).into_iter().map(excess).sum()
    }
}

fn depth_of(sections: &[Section]) -> usize {
    sections.iter().map(Section::len).max().unwrap_or(0)
}

/// The oldest files, as many as fit while no section has more than `limit` of them.
fn oldest(level: &Level<'_>, sections: &[Section], limit: usize) -> Section {
    let mut by_age: Vec<usize> = sections.iter().flatten().copied().collect();
    by_age.sort_by_key(|number| (level.files[*number].max_timestamp, *number));
    by_age.dedup();
    let mut counts = vec![0; sections.len()];
    let mut taken = Section::new();
    for number in by_age {
        for (count, section) in counts.iter_mut().zip(sections) {
            *count += usize::from(section.contains(&number));
        }
        if counts.iter().any(|count| *count > limit) {
            break;
        }
        taken.insert(number);
    }
    taken
}

fn worth_purging<'a>(
    idle: &[&'a Candidate],
    situation: &Situation,
    common: &Common,
) -> Option<Vec<&'a Candidate>> {
    let worth = idle
        .iter()
        .filter(|candidate| is_worth_purging(candidate, situation, common));
    let largest = worth.max_by_key(|candidate| candidate.size_bytes)?;
    Some(vec![*largest])
}

/// Parses a scaling parameter: `T4`, `L8`, `N` or the number W itself.
fn scaling_of(text: &str) -> Option<i32> {
    let fanout = |digits: &str| digits.parse::<i32>().ok().filter(|fanout| *fanout >= 2);
    if text == "N" {
        return Some(0);
    }
    if let Some(digits) = text.strip_prefix('T') {
        return fanout(digits).map(|fanout| fanout - 2);
    }
    if let Some(digits) = text.strip_prefix('L') {
        return fanout(digits).map(|fanout| 2 - fanout);
    }
    text.parse().ok()
}
