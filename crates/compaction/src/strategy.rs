//! [`Strategy`]: one interface for all strategies.

use crate::common::{Common, Options};
use crate::leveled::Leveled;
use crate::overlaps::{pick, separate_groups};
use crate::size_tiered::SizeTiered;
use crate::time_window::TimeWindow;
use crate::unified::Unified;
use crate::{Candidate, Choice, Memory, Output, Situation, candidate};

/// How a table is compacted.
#[derive(Clone, Debug, PartialEq)]
pub struct Strategy {
    /// Options that all strategies have.
    pub common: Common,
    kind: Kind,
}

#[derive(Clone, Debug, PartialEq)]
enum Kind {
    SizeTiered(SizeTiered),
    Leveled(Leveled),
    TimeWindow(TimeWindow),
    Unified(Unified),
}

/// How the result of a major compaction is cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MajorOutput {
    /// As the strategy normally does.
    AsUsual,
    /// Into halves, where the strategy would write one SSTable (`--split-output`).
    Split,
}

impl Strategy {
    /// Reads the table option `compaction`. The schema has validated it; an invalid value means the default.
    pub fn of_options(options: &Options) -> Self {
        let class = options.get("class").map_or("", String::as_str);
        let kind = match class.rsplit('.').next().unwrap_or(class) {
            "UnifiedCompactionStrategy" => Kind::Unified(Unified::of_options(options)),
            "LeveledCompactionStrategy" => Kind::Leveled(Leveled::of_options(options)),
            "TimeWindowCompactionStrategy" => Kind::TimeWindow(TimeWindow::of_options(options)),
            _ => Kind::SizeTiered(SizeTiered::of_options(options)),
        };
        Self {
            common: Common::of_options(options),
            kind,
        }
    }

    /// Whether the strategy limits how many SSTables it merges at once (`min_threshold`, `max_threshold`).
    pub fn has_thresholds(&self) -> bool {
        matches!(self.kind, Kind::SizeTiered(_) | Kind::TimeWindow(_))
    }

    /// Chooses the next compaction. Pure, except that it updates `memory`.
    pub fn choose(&self, situation: &Situation, memory: &mut Memory) -> Option<Choice> {
        match &self.kind {
            Kind::SizeTiered(options) => options.choose(situation, &self.common),
            Kind::Leveled(options) => options.choose(situation, &self.common, memory),
            Kind::TimeWindow(options) => options.choose(situation, &self.common, memory),
            Kind::Unified(options) => options.choose(situation, &self.common, memory),
        }
    }

    /// Approximate number of compactions that are due.
    pub fn pending(&self, situation: &Situation, memory: &Memory) -> usize {
        match &self.kind {
            Kind::SizeTiered(options) => options.pending(situation),
            Kind::Leveled(options) => options.pending(situation),
            Kind::TimeWindow(options) => options.pending(situation, memory),
            Kind::Unified(options) => options.pending(situation, memory),
        }
    }

    /// Number of SSTables that a read may have to touch only because compactions are behind.
    pub fn debt(&self, situation: &Situation, memory: &Memory) -> usize {
        match &self.kind {
            Kind::SizeTiered(options) => options.debt(situation),
            Kind::Leveled(options) => options.debt(situation),
            Kind::TimeWindow(options) => options.debt(situation, memory),
            Kind::Unified(options) => options.debt(situation, memory),
        }
    }

    /// A compaction of all SSTables, in parts that share no key.
    pub fn major(&self, situation: &Situation, output: MajorOutput) -> Vec<Choice> {
        let all: Vec<&Candidate> = situation.candidates.iter().collect();
        if all.is_empty() {
            return Vec::new();
        }
        match &self.kind {
            // Compat: UCS splits a major compaction where no files overlap, and its results by density. Unlike in Cassandra, data
            // that is too small for two shards becomes one file.
            Kind::Unified(options) if options.output_of(&all) != Output::Whole => separate_groups(&all)
                .iter()
                .map(|group| self.user_defined(&pick(&all, group)))
                .collect(),
            _ => {
                let mut choice = self.user_defined(&all);
                if let Kind::Leveled(options) = &self.kind {
                    (choice.output, choice.level) = options.major(&all);
                }
                if output == MajorOutput::Split && choice.output == Output::Whole {
                    choice.output = Output::Halves;
                }
                vec![choice]
            }
        }
    }

    /// A compaction of the SSTables that an operator named.
    pub fn user_defined(&self, inputs: &[&Candidate]) -> Choice {
        let mut choice = Choice::merge(inputs.iter().copied());
        match &self.kind {
            Kind::SizeTiered(_) | Kind::TimeWindow(_) => {}
            Kind::Leveled(options) => (choice.output, choice.level) = options.user_defined(inputs),
            Kind::Unified(options) => choice.output = options.output_of(inputs),
        }
        choice
    }

    /// The compaction without its largest inputs, so that its result fits on the disk. `None` if too few inputs are left.
    pub fn within(&self, situation: &Situation, choice: &Choice, free_bytes: u64) -> Option<Choice> {
        let is_input = |candidate: &&Candidate| choice.inputs.contains(&candidate.id);
        let mut inputs: Vec<&Candidate> = situation.candidates.iter().filter(is_input).collect();
        let size = |inputs: &[&Candidate]| inputs.iter().map(|input| input.size_bytes).sum::<u64>();
        if size(&inputs) <= free_bytes {
            return Some(choice.clone());
        }
        // Compat: a leveled compaction may leave out only SSTables of level 0.
        let may_shrink = |input: &Candidate| !matches!(self.kind, Kind::Leveled(_)) || input.level == 0;
        inputs.sort_by_key(|input| (may_shrink(input), input.size_bytes));
        while size(&inputs) > free_bytes {
            let is_enough = inputs.pop().is_some_and(may_shrink) && inputs.len() >= 2;
            if !is_enough && choice.expired.is_empty() {
                return None;
            }
            if !is_enough {
                // No merge, but the expired SSTables are still dropped, which frees space.
                inputs.clear();
            }
        }
        Some(Choice {
            inputs: candidate::ids(inputs),
            ..choice.clone()
        })
    }
}
