//! Situations as text: a line for each SSTable.
//!
//! ```text
//! a [..####....] 10M L1 t=5..9 dead=0.5 gone=100 age=3600 n=50 busy
//! ```
//!
//! The brackets enclose the ring, with `#` where the file has partitions. Then follow its size (K, M, G), its level, the times of
//! its oldest and newest write in seconds, the share of its cells that are droppable tombstones, the second at which all of
//! its data is dead, its age in seconds, its number of partitions (default: many), and `busy` if a running compaction has it as input.

use std::path::PathBuf;

use bytes::Bytes;
use ilion_rows::DecoratedKey;
use ilion_types::Token;

use crate::{Candidate, Choice, Output, Situation};

pub const NOW_SECS: i64 = 1_000_000;

/// SSTables with one-letter names.
pub struct Picture {
    pub candidates: Vec<Candidate>,
    width: usize,
    next: u64,
}

impl Picture {
    pub fn parse(text: &str) -> Self {
        let candidates: Vec<Candidate> = text
            .lines()
            .filter(|line| !line.is_empty())
            .map(parse_line)
            .collect();
        let width = text
            .lines()
            .next()
            .map_or(16, |line| line.split(['[', ']']).nth(1).unwrap().len());
        Self {
            candidates,
            width,
            next: 0,
        }
    }

    pub fn situation(&self) -> Situation {
        Situation {
            candidates: self.candidates.clone(),
            memtable_min_timestamp: i64::MAX,
            now_secs: NOW_SECS,
            gc_before_secs: 0,
            flush_bytes: 10 << 20,
            random: 0,
        }
    }

    /// Changes the picture as if the compaction had run: sizes are added up, and each output file covers its part of the ring.
    pub fn apply(&mut self, choice: &Choice) {
        let is_gone =
            |file: &Candidate| choice.inputs.contains(&file.id) || choice.expired.contains(&file.id);
        let (gone, kept): (Vec<_>, Vec<_>) = self.candidates.drain(..).partition(is_gone);
        self.candidates = kept;
        let inputs: Vec<Candidate> = gone
            .into_iter()
            .filter(|file| choice.inputs.contains(&file.id))
            .collect();
        if inputs.is_empty() {
            return;
        }
        let bytes: u64 = inputs.iter().map(|file| file.size_bytes).sum();
        let first = inputs
            .iter()
            .map(|file| cell(&file.first, self.width))
            .min()
            .unwrap();
        let last = inputs
            .iter()
            .map(|file| cell(&file.last, self.width))
            .max()
            .unwrap();
        let pieces = match choice.output {
            Output::Whole => 1,
            Output::UpTo { bytes: most } => bytes.div_ceil(most) as usize,
            Output::Shards(shards) => shards as usize * (last + 1 - first) / self.width,
            Output::Halves => 2,
        };
        let pieces = pieces.clamp(1, last + 1 - first);
        for piece in 0..pieces {
            let start = first + (last + 1 - first) * piece / pieces;
            let end = first + (last + 1 - first) * (piece + 1) / pieces;
            self.next += 1;
            self.candidates.push(Candidate {
                id: PathBuf::from(format!("n{}", self.next)),
                size_bytes: bytes / pieces as u64,
                first: key(start, self.width, 1),
                last: key(end, self.width, -1),
                level: choice.level,
                created_secs: NOW_SECS + self.next as i64,
                min_timestamp: inputs.iter().map(|file| file.min_timestamp).min().unwrap(),
                max_timestamp: inputs.iter().map(|file| file.max_timestamp).max().unwrap(),
                droppable_ratio: 0.0,
                ..inputs[0].clone()
            });
        }
    }

    pub fn print(&self) -> String {
        let mut candidates = self.candidates.clone();
        candidates.sort_by(|a, b| {
            (a.level, &a.first, a.size_bytes, &a.id).cmp(&(b.level, &b.first, b.size_bytes, &b.id))
        });
        candidates.iter().map(|file| self.print_line(file)).collect()
    }

    fn print_line(&self, file: &Candidate) -> String {
        let (first, last) = (cell(&file.first, self.width), cell(&file.last, self.width));
        let ring: String = (0..self.width)
            .map(|at| if (first..=last).contains(&at) { '#' } else { '.' })
            .collect();
        let level = match file.level {
            0 => String::new(),
            level => format!(" L{level}"),
        };
        format!(
            "{} [{ring}] {}M{level}\n",
            file.id.display(),
            file.size_bytes >> 20
        )
    }
}

fn key(cell: usize, width: usize, shift: i128) -> DecoratedKey {
    let place = (cell as i128 * (1_i128 << 64)) / width as i128 + i128::from(i64::MIN) + shift;
    DecoratedKey {
        token: Token::Murmur3(place as i64),
        key: Bytes::new(),
    }
}

fn cell(key: &DecoratedKey, width: usize) -> usize {
    crate::shard_of(&key.token, width as u32) as usize
}

fn parse_line(line: &str) -> Candidate {
    let (name, rest) = line.split_once('[').unwrap();
    let (ring, rest) = rest.split_once(']').unwrap();
    let (first, last) = (ring.find('#').unwrap(), ring.rfind('#').unwrap());
    let mut candidate = Candidate {
        id: PathBuf::from(name.trim()),
        size_bytes: 10 << 20,
        partitions: 1_000_000,
        first: key(first, ring.len(), 1),
        last: key(last + 1, ring.len(), -1),
        level: 0,
        min_timestamp: 0,
        max_timestamp: 0,
        max_local_deletion_secs: u32::MAX,
        droppable_ratio: 0.0,
        created_secs: NOW_SECS - 100_000,
        is_compacting: false,
    };
    for word in rest.split_whitespace() {
        set(&mut candidate, word);
    }
    candidate
}

fn set(candidate: &mut Candidate, word: &str) {
    if let Some((name, value)) = word.split_once('=') {
        match name {
            "t" => {
                let (from, to) = value.split_once("..").unwrap_or((value, value));
                candidate.min_timestamp = from.parse::<i64>().unwrap() * 1_000_000;
                candidate.max_timestamp = to.parse::<i64>().unwrap() * 1_000_000;
            }
            "dead" => candidate.droppable_ratio = value.parse().unwrap(),
            "gone" => candidate.max_local_deletion_secs = value.parse().unwrap(),
            "age" => candidate.created_secs = NOW_SECS - value.parse::<i64>().unwrap(),
            "n" => candidate.partitions = value.parse().unwrap(),
            other => panic!("unknown property {other}"),
        }
    } else if word == "busy" {
        candidate.is_compacting = true;
    } else if let Some(level) = word.strip_prefix('L') {
        candidate.level = level.parse().unwrap();
    } else {
        let (number, unit) = word.split_at(word.len() - 1);
        let unit = ["B", "K", "M", "G"]
            .iter()
            .position(|known| *known == unit)
            .unwrap();
        candidate.size_bytes = number.parse::<u64>().unwrap() << (10 * unit);
    }
}
