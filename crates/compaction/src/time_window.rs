//! TimeWindowCompactionStrategy: one file for each window of time.
//!
//! A file belongs to the window of its newest write. The newest window is compacted by size; the files of each older window are
//! merged into one file, newest window first. Compat: `org.apache.cassandra.db.compaction.TimeWindowCompactionStrategy`. Not here:
//! `unsafe_aggressive_sstable_expiration`, which Cassandra refuses unless a property of the JVM allows it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use crate::common::{Common, Options, number};
use crate::expired::{fully_expired, is_worth_purging};
use crate::size_tiered::SizeTiered;
use crate::{Candidate, Choice, Memory, Situation};

/// Default time between two checks for expired files.
pub(crate) const EXPIRED_CHECK_SECS: i64 = 600;

/// Options of the strategy.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TimeWindow {
    size_tiered: SizeTiered,
    window_secs: i64,
    /// Units of write timestamps in a second.
    timestamps_per_sec: i64,
    expired_check_secs: i64,
    /// Compat: files are compacted alone only if the table sets one of the options about it.
    purges_alone: bool,
}

/// Files by the start of their window.
type Windows<'a> = BTreeMap<i64, Vec<&'a Candidate>>;

impl TimeWindow {
    pub(crate) fn of_options(options: &Options) -> Self {
        let text = |name: &str| options.get(name).map_or("", String::as_str);
        let unit_secs = match text("compaction_window_unit") {
            "MINUTES" => 60,
            "HOURS" => 3600,
            _ => 86_400,
        };
        let timestamps_per_sec = match text("timestamp_resolution") {
            "SECONDS" => 1,
            "MILLISECONDS" => 1_000,
            "NANOSECONDS" => 1_000_000_000,
            _ => 1_000_000,
        };
        Self {
            size_tiered: SizeTiered::of_options(options),
            window_secs: number(options, "compaction_window_size", 1_i64)
                .max(1)
                .saturating_mul(unit_secs),
            timestamps_per_sec,
            expired_check_secs: number(
                options,
                "expired_sstable_check_frequency_seconds",
                EXPIRED_CHECK_SECS,
            ),
            purges_alone: ["tombstone_compaction_interval", "tombstone_threshold"]
                .iter()
                .any(|name| options.contains_key(*name)),
        }
    }

    pub(crate) fn choose(
        &self,
        situation: &Situation,
        common: &Common,
        memory: &mut Memory,
    ) -> Option<Choice> {
        let (expired, idle) = memory.look_for_expired(situation, self.expired_check_secs);
        let windows = self.windows(&idle);
        let newest = windows.keys().next_back().copied().unwrap_or(0);
        memory.newest_window_secs = memory.newest_window_secs.max(newest);
        let due = self.due_window(&windows, memory.newest_window_secs);
        let inputs = due.or_else(|| self.worth_purging(&idle, situation, common));
        if inputs.is_none() && expired.is_empty() {
            return None;
        }
        Some(Choice {
            expired,
            ..Choice::merge(inputs.unwrap_or_default())
        })
    }

    fn due_window<'a>(&self, windows: &Windows<'a>, now: i64) -> Option<Vec<&'a Candidate>> {
        let thresholds = &self.size_tiered;
        for (start, files) in windows.iter().rev() {
            if *start >= now && files.len() >= thresholds.min_threshold {
                if let Some(bucket) = thresholds.due_bucket(files) {
                    return Some(bucket);
                }
            } else if *start < now && files.len() >= 2 {
                let mut smallest = files.clone();
                smallest.sort_by_key(|file| file.size_bytes);
                smallest.truncate(thresholds.max_threshold);
                return Some(smallest);
            }
        }
        None
    }

    /// Compat: the smallest of the files that are worth a compaction of their own.
    fn worth_purging<'a>(
        &self,
        idle: &[&'a Candidate],
        situation: &Situation,
        common: &Common,
    ) -> Option<Vec<&'a Candidate>> {
        let worth = idle
            .iter()
            .filter(|candidate| self.purges_alone && is_worth_purging(candidate, situation, common));
        let smallest = worth.min_by_key(|candidate| candidate.size_bytes)?;
        Some(vec![*smallest])
    }

    fn windows<'a>(&self, files: &[&'a Candidate]) -> Windows<'a> {
        let mut windows = Windows::new();
        for file in files {
            let secs = file.max_timestamp / self.timestamps_per_sec;
            let start = secs - secs % self.window_secs;
            windows.entry(start).or_default().push(*file);
        }
        windows
    }

    fn all_windows<'a>(&self, situation: &'a Situation, memory: &Memory) -> (Windows<'a>, i64) {
        let all: Vec<&Candidate> = situation.candidates.iter().collect();
        let windows = self.windows(&all);
        let newest = windows.keys().next_back().copied().unwrap_or(0);
        (windows, memory.newest_window_secs.max(newest))
    }

    pub(crate) fn pending(&self, situation: &Situation, memory: &Memory) -> usize {
        let (windows, now) = self.all_windows(situation, memory);
        let is_due = |(start, files): &(&i64, &Vec<&Candidate>)| match **start >= now {
            true => files.len() >= self.size_tiered.min_threshold,
            false => files.len() >= 2,
        };
        windows.iter().filter(is_due).count()
    }

    pub(crate) fn debt(&self, situation: &Situation, memory: &Memory) -> usize {
        let (windows, now) = self.all_windows(situation, memory);
        let excess = |(start, files): (&i64, &Vec<&Candidate>)| match *start >= now {
            true => self.size_tiered.debt_of(files),
            false => files.len() - 1,
        };
        windows.iter().map(excess).sum()
    }
}

impl Memory {
    /// Returns the expired files, if a check is due, and the other idle files.
    pub(crate) fn look_for_expired<'a>(
        &mut self,
        situation: &'a Situation,
        every_secs: i64,
    ) -> (Vec<PathBuf>, Vec<&'a Candidate>) {
        let now = situation.now_secs;
        let is_due = self
            .expired_check_secs
            .is_none_or(|last| now.saturating_sub(last) > every_secs);
        let mut expired = Vec::new();
        if is_due {
            self.expired_check_secs = Some(now);
            expired = crate::candidate::ids(fully_expired(situation));
        }
        let is_left = |candidate: &&Candidate| !expired.contains(&candidate.id);
        let idle = situation.idle().filter(is_left).collect();
        (expired, idle)
    }
}
