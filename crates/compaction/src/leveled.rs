//! LeveledCompactionStrategy: levels of files of equal size that do not overlap; each level is ten times the one before.
//!
//! Flushes arrive in level 0, where files overlap. Compat: `LeveledManifest` and `LeveledCompactionStrategy` of Cassandra 5.0,
//! with the same order of preference: the highest level that is too large, but size-tiered compactions of level 0 first if
//! more than 32 files wait there; then level 0 into level 1. A file that overlaps another file of its level counts as a file of
//! level 0. The next compaction of a level starts behind the newest file of the level above, where its last compaction ended.
//! Not here: `single_sstable_uplevel`; a file that moves up alone is written again.

use crate::candidate::LEVELS;
use crate::common::{Common, Options, number};
use crate::expired::is_worth_purging;
use crate::size_tiered::SizeTiered;
use crate::{Candidate, Choice, Memory, Output, Situation};

/// Most files of level 0 that are merged at once.
const LEVEL_0_MAX: usize = 32;
/// After this many compactions without one into the highest level, one of its files joins a compaction of lower levels.
const STARVED_AFTER: u32 = 25;
/// A level is due if its size is more than this multiple of its target.
const SCORE_MAX: f64 = 1.001;

/// Options of the strategy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leveled {
    sstable_bytes: u64,
    fanout: u32,
    /// Compacts level 0 if it has too many files.
    size_tiered: SizeTiered,
}

/// Files by level, each but level 0 in the order of their keys.
struct Manifest<'a>([Vec<&'a Candidate>; LEVELS]);

impl<'a> Manifest<'a> {
    fn of(candidates: &'a [Candidate]) -> Self {
        let mut levels: [Vec<&Candidate>; LEVELS] = Default::default();
        for candidate in candidates {
            let level = (candidate.level as usize).min(LEVELS - 1);
            levels[level].push(candidate);
        }
        for level in 1..LEVELS {
            let mut files = std::mem::take(&mut levels[level]);
            files.sort_by(|a, b| a.first.cmp(&b.first));
            for file in files {
                let overlaps = levels[level]
                    .last()
                    .is_some_and(|before| before.last >= file.first);
                levels[if overlaps { 0 } else { level }].push(file);
            }
        }
        Self(levels)
    }

    fn level(&self, level: usize) -> &[&'a Candidate] {
        self.0.get(level).map_or(&[], Vec::as_slice)
    }
}

fn total(files: &[&Candidate]) -> u64 {
    files.iter().map(|file| file.size_bytes).sum()
}

/// Files of `others` with a key between the first and the last of `files`.
fn overlapping<'a>(files: &[&Candidate], others: &[&'a Candidate]) -> Vec<&'a Candidate> {
    let first = files.iter().map(|file| &file.first).min();
    let last = files.iter().map(|file| &file.last).max();
    let (Some(first), Some(last)) = (first, last) else {
        return Vec::new();
    };
    let touches = |other: &&&Candidate| &other.first <= last && &other.last >= first;
    others.iter().filter(touches).copied().collect()
}

fn is_any_busy(files: &[&Candidate]) -> bool {
    files.iter().any(|file| file.is_compacting)
}

impl Leveled {
    pub(crate) fn of_options(options: &Options) -> Self {
        Self {
            sstable_bytes: number(options, "sstable_size_in_mb", 160_u64).max(1) << 20,
            fanout: number(options, "fanout_size", 10).max(1),
            size_tiered: SizeTiered {
                min_threshold: 4,
                max_threshold: LEVEL_0_MAX,
                ..SizeTiered::of_options(options)
            },
        }
    }

    pub(crate) fn choose(
        &self,
        situation: &Situation,
        common: &Common,
        memory: &mut Memory,
    ) -> Option<Choice> {
        let manifest = Manifest::of(&situation.candidates);
        self.choose_level(&manifest, memory).or_else(|| {
            // Compat: the highest level first, and in it the file with the largest share of tombstones.
            let worth = |files: &Vec<&'_ Candidate>| {
                let worth = files
                    .iter()
                    .filter(|file| is_worth_purging(file, situation, common));
                worth
                    .max_by(|a, b| a.droppable_ratio.total_cmp(&b.droppable_ratio))
                    .map(|file| self.purging(file))
            };
            manifest.0.iter().rev().find_map(worth)
        })
    }

    /// Compacts a file alone, to purge tombstones; it stays in its level.
    fn purging(&self, file: &Candidate) -> Choice {
        Choice {
            level: file.level,
            output: self.up_to(),
            ..Choice::merge([file])
        }
    }

    fn up_to(&self) -> Output {
        Output::UpTo {
            bytes: self.sstable_bytes,
        }
    }

    fn choose_level(&self, manifest: &Manifest<'_>, memory: &mut Memory) -> Option<Choice> {
        // There is no level above the highest.
        for level in (1..LEVELS - 1).rev() {
            let idle: Vec<_> = manifest
                .level(level)
                .iter()
                .filter(|file| !file.is_compacting)
                .copied()
                .collect();
            if total(&idle) as f64 <= self.level_bytes(level) * SCORE_MAX {
                continue;
            }
            if let Some(behind) = self.size_tier_level_0(manifest) {
                return Some(behind);
            }
            if let Some(inputs) = Self::inputs_of(manifest, level) {
                return Some(self.promote(manifest, inputs, level + 1, memory));
            }
        }
        match self.inputs_of_level_0(manifest) {
            Some((inputs, level)) => Some(self.promote(manifest, inputs, level, memory)),
            None => self.size_tier_level_0(manifest),
        }
    }

    /// Target size of a level.
    fn level_bytes(&self, level: usize) -> f64 {
        let fanout = f64::from(self.fanout);
        fanout.powi(i32::try_from(level).unwrap_or(0)) * self.sstable_bytes as f64
    }

    fn size_tier_level_0(&self, manifest: &Manifest<'_>) -> Option<Choice> {
        let level_0 = manifest.level(0);
        if level_0.len() <= LEVEL_0_MAX {
            return None;
        }
        let idle: Vec<_> = level_0
            .iter()
            .filter(|file| !file.is_compacting)
            .copied()
            .collect();
        self.size_tiered.due_bucket(&idle).map(Choice::merge)
    }

    /// The first file whose inputs are idle, and the files that it overlaps in the next level. The search starts behind the key where
    /// the last compaction ended, and continues at the first file of the level.
    fn inputs_of<'a>(manifest: &Manifest<'a>, level: usize) -> Option<Vec<&'a Candidate>> {
        let files = manifest.level(level);
        let above = manifest.level(level + 1);
        let newest = above.iter().max_by_key(|file| (file.created_secs, &file.id));
        let start = newest.map_or(0, |newest| {
            let after = files.iter().position(|file| file.first > newest.last);
            after.unwrap_or(0)
        });
        let in_turn = files[start..].iter().chain(&files[..start]);
        in_turn
            .map(|file| {
                let mut inputs = overlapping(&[*file], above);
                inputs.insert(0, file);
                inputs
            })
            .find(|inputs| !is_any_busy(inputs))
    }

    /// The oldest files of level 0, with the files that they overlap in level 0, and those in level 1 if the result is large enough for
    /// level 1. Also returns the output level.
    fn inputs_of_level_0<'a>(&self, manifest: &Manifest<'a>) -> Option<(Vec<&'a Candidate>, usize)> {
        let busy: Vec<_> = manifest
            .level(0)
            .iter()
            .filter(|file| file.is_compacting)
            .copied()
            .collect();
        let mut remaining: Vec<&Candidate> = manifest.level(0).to_vec();
        remaining.sort_by_key(|file| file.max_timestamp);
        let mut inputs: Vec<&Candidate> = Vec::new();
        while !remaining.is_empty() && inputs.len() <= LEVEL_0_MAX {
            let oldest = remaining.remove(0);
            let (together, others): (Vec<_>, Vec<_>) =
                remaining.iter().partition(|other| other.overlaps(oldest));
            if oldest.is_compacting || is_any_busy(&together) {
                continue;
            }
            remaining = others;
            let is_free = |file: &&Candidate| overlapping(&busy, &[*file]).is_empty();
            inputs.extend([oldest].into_iter().chain(together).filter(is_free));
        }
        inputs.sort_by_key(|file| file.max_timestamp);
        inputs.truncate(LEVEL_0_MAX);
        let level = usize::from(total(&inputs) > self.sstable_bytes);
        if level == 1 {
            let above = overlapping(&inputs, manifest.level(1));
            if is_any_busy(&above) || !overlapping(&inputs, &busy).is_empty() {
                return None;
            }
            inputs.extend(above);
        }
        (inputs.len() >= 2).then_some((inputs, level))
    }

    fn promote<'a>(
        &self,
        manifest: &Manifest<'a>,
        mut inputs: Vec<&'a Candidate>,
        level: usize,
        memory: &mut Memory,
    ) -> Choice {
        if let Some(starved) = starved(manifest, &inputs, level, memory) {
            inputs.push(starved);
        }
        Choice {
            level: level.min(LEVELS - 1) as u32,
            output: self.up_to(),
            ..Choice::merge(inputs)
        }
    }

    /// Compat: in a compaction that an operator requested, one file stays in its level; several become one of level 0.
    pub(crate) fn user_defined(&self, inputs: &[&Candidate]) -> (Output, u32) {
        match inputs {
            [file] => (self.up_to(), file.level),
            _ => (Output::Whole, 0),
        }
    }

    /// A major compaction writes to the lowest level whose target size holds the result.
    pub(crate) fn major(&self, inputs: &[&Candidate]) -> (Output, u32) {
        let bytes = total(inputs) as f64;
        let fits = |level: &usize| bytes <= self.level_bytes(*level);
        let level = (1..LEVELS).find(fits).unwrap_or(LEVELS - 1);
        (self.up_to(), level as u32)
    }

    pub(crate) fn pending(&self, situation: &Situation) -> usize {
        let manifest = Manifest::of(&situation.candidates);
        let tasks = |level: usize| {
            let target = match level {
                0 => 4.0 * self.sstable_bytes as f64,
                level => self.level_bytes(level),
            };
            let excess = total(manifest.level(level)) as f64 - target * SCORE_MAX;
            (excess.max(0.0) / self.sstable_bytes as f64).ceil() as usize
        };
        (0..LEVELS).map(tasks).sum()
    }

    pub(crate) fn debt(&self, situation: &Situation) -> usize {
        let manifest = Manifest::of(&situation.candidates);
        manifest
            .level(0)
            .len()
            .saturating_sub(self.size_tiered.min_threshold)
    }
}

/// A file of the highest level within the range of this compaction, if that level was not compacted for a long time. Compat:
/// `getOverlappingStarvedSSTables`.
fn starved<'a>(
    manifest: &Manifest<'a>,
    inputs: &[&Candidate],
    target: usize,
    memory: &mut Memory,
) -> Option<&'a Candidate> {
    memory.starved.iter_mut().skip(1).for_each(|count| *count += 1);
    memory.starved[target] = 0;
    let highest = (1..LEVELS)
        .rev()
        .find(|level| !manifest.level(*level).is_empty())?;
    if memory.starved[highest] <= STARVED_AFTER || highest <= target {
        return None;
    }
    let first = inputs.iter().map(|file| &file.first).min()?;
    let last = inputs.iter().map(|file| &file.last).max()?;
    let lies_within = |file: &&&Candidate| &file.first > first && &file.last <= last && !file.is_compacting;
    manifest.level(highest).iter().find(lies_within).copied()
}
