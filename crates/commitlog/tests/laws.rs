//! What replay makes of a log, told by the files of `testdata`. `REWRITE=1 cargo test` writes the answers.
//!
//! ```text
//! log                        a new log
//! append                     one record for each line of the input: its name, and perhaps its kind: `b cas`; written, but not synced
//! sync                       syncs what was appended
//! rotate                     goes on in a new segment
//! trim upto=c                deletes the segments whose records are all before that record
//! damage record=b [byte=20]  flips a bit of the record
//! cut record=b               ends the segment in the middle of the record
//! zero record=b              writes zeros from the record to the end of its segment
//! remove record=b            removes the segment of the record
//! kill, power_loss, close    opens what kill -9, a power loss or the end of the process leaves, after the changes above
//! open [skip]                opens a log that was refused; `skip` skips damage
//! ```
//!
//! A start prints the records that it replays, in their order, and what it reports; `-` stands for a record that says nothing. It
//! remembers how far the log was synced, as the engine does.

#![expect(clippy::unwrap_used, reason = "a test may panic in its helpers")]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use datadriven::TestCase;
use ilion_commitlog::{
    CommitLog, Damage, Envelope, Error, Hole, Kind, LogStretch, Missing, Mode, Options, Position,
    ReplayReport, SegmentId,
};
use ilion_env::{CrashRule, Env, MemEnv};

/// Names are padded to this.
const BODY_BYTES: usize = 40;

struct Script {
    env: MemEnv,
    /// `None` once a start was refused.
    log: Option<CommitLog>,
    records: Vec<(String, Position)>,
    /// What is done to the files before they are opened again.
    changes: Vec<Change>,
    known: Option<LogStretch>,
}

/// A change of the file that holds a record.
struct Change {
    directive: String,
    record: String,
    byte: u64,
}

fn word<'t>(test: &'t TestCase, name: &str) -> Option<&'t str> {
    test.args.get(name)?.first().map(String::as_str)
}

fn path_of(segment: SegmentId) -> PathBuf {
    PathBuf::from(format!("log/ilion-1-{segment}.log"))
}

impl Script {
    fn new() -> Self {
        let mut script = Self {
            env: MemEnv::new(1),
            log: None,
            records: Vec::new(),
            changes: Vec::new(),
            known: None,
        };
        script.open(Damage::Refuse);
        script
    }

    fn position(&self, name: &str) -> Position {
        let mut records = self.records.iter();
        records.find(|(known, _)| known == name).unwrap().1
    }

    fn append(&mut self, input: &str) {
        let log = self.log.as_ref().unwrap();
        for line in input.lines() {
            let (name, kind) = line.split_once(' ').unwrap_or((line, "mutation"));
            let body = format!("{name:<BODY_BYTES$}");
            let envelope = Envelope {
                kind: match kind {
                    "mutation" => Kind::Mutation,
                    "cas" => Kind::Cas,
                    "schema" => Kind::Schema,
                    other => panic!("unknown kind {other}"),
                },
                ..Envelope::mutation(body.as_bytes())
            };
            let position = log.append(&envelope).unwrap();
            log.written(position).unwrap();
            self.records.push((name.to_owned(), position));
        }
    }

    /// Opens what is left of the log after a crash, or (`None`) after it was closed.
    fn restart(&mut self, rule: Option<CrashRule>) -> String {
        let log = self.log.take().unwrap();
        match rule {
            Some(rule) => {
                self.wait_for_spare(&log);
                self.known = Some(log.stretch(Position::START));
                self.env = self.env.crash(rule);
            }
            None => {
                log.sync().unwrap();
                self.known = Some(log.stretch(Position::START));
                log.close().unwrap();
            }
        }
        for change in std::mem::take(&mut self.changes) {
            self.change(&change);
        }
        self.open(Damage::Refuse)
    }

    /// A thread of the log creates the next segment.
    fn wait_for_spare(&self, log: &CommitLog) {
        let spare = path_of(SegmentId(log.barrier().segment.0 + 1));
        // A file that the log does not count is still being made.
        let files = || self.env.list(Path::new("log")).unwrap().len();
        while !self.env.exists(&spare) || log.stats().segments < files() {
            std::thread::yield_now();
        }
    }

    fn change(&self, change: &Change) {
        let position = self.position(&change.record);
        let path = path_of(position.segment);
        let offset = u64::from(position.offset);
        let file = || self.env.open_append(&path).unwrap();
        match change.directive.as_str() {
            "damage" => self.env.corrupt_byte(&path, offset + change.byte, 1).unwrap(),
            "cut" => file().truncate(offset + 20).unwrap(),
            "zero" => {
                let size = self.env.file_size(&path).unwrap();
                let zeros = vec![0; usize::try_from(size - offset).unwrap()];
                file().write_at(offset, &zeros).unwrap();
            }
            _ => self.env.remove_file(&path).unwrap(),
        }
    }

    fn open(&mut self, damage: Damage) -> String {
        let options = Options {
            segment_bytes: 4096,
            // Nothing is synced before it is asked for.
            mode: Mode::Periodic {
                period_millis: 1_000_000,
            },
            damage,
            known: self.known,
            ..Options::default()
        };
        let mut names = Vec::new();
        let opened = CommitLog::open(
            self.env.shared(),
            Path::new("log"),
            options,
            &mut |_, envelope| {
                names.push(match envelope.kind {
                    Kind::Noop => "-".to_owned(),
                    _ => String::from_utf8_lossy(envelope.body).trim().to_owned(),
                });
                Ok(())
            },
        );
        // The clock gives the next segment its number.
        self.env.advance_micros(1_000_000);
        match opened {
            Ok((log, report)) => {
                self.log = Some(log);
                format!("{}\n{}", names.join(" "), self.print(&report))
            }
            Err(Error::Corrupt { offset, expected, .. }) => {
                format!(
                    "refused: damaged at {}: expected {expected}\n",
                    self.name_at(offset)
                )
            }
            Err(error) => format!("refused: {error}\n"),
        }
    }

    fn name_at(&self, offset: u64) -> &str {
        let mut records = self.records.iter();
        let found = records.find(|(_, position)| u64::from(position.offset) == offset);
        found.map_or("?", |(name, _)| name)
    }

    fn print(&self, report: &ReplayReport) -> String {
        let mut text = String::new();
        let mut hole = |kind: &str, Hole { position, bytes }: &Hole| {
            let name = self.name_at(u64::from(position.offset));
            writeln!(text, "{kind} at {name}: {bytes} bytes").unwrap();
        };
        report.holes.iter().for_each(|found| hole("hole", found));
        report.torn_tail.iter().for_each(|found| hole("torn tail", found));
        for (_, offset) in &report.skipped {
            writeln!(text, "skipped damage at {}", self.name_at(*offset)).unwrap();
        }
        if report.records_given_up > 0 {
            writeln!(text, "given up: {}", report.records_given_up).unwrap();
        }
        for missing in &report.missing {
            match missing {
                Missing::Segments { .. } => writeln!(text, "segments are missing").unwrap(),
                Missing::Tail { .. } => writeln!(text, "the end is missing").unwrap(),
            }
        }
        text
    }
}

fn run(script: &mut Script, test: &TestCase) -> String {
    let none = String::new();
    match test.directive.as_str() {
        "log" => *script = Script::new(),
        "append" => script.append(&test.input),
        "sync" => script.log.as_ref().unwrap().sync().unwrap(),
        "rotate" => script.log.as_ref().unwrap().rotate().unwrap(),
        "trim" => {
            let upto = script.position(word(test, "upto").unwrap());
            script.log.as_ref().unwrap().trim(upto).unwrap();
        }
        "damage" | "cut" | "zero" | "remove" => script.changes.push(Change {
            directive: test.directive.clone(),
            record: word(test, "record").unwrap().to_owned(),
            byte: word(test, "byte").map_or(20, |byte| byte.parse().unwrap()),
        }),
        "kill" => return script.restart(Some(CrashRule::KeepAll)),
        "power_loss" => return script.restart(Some(CrashRule::LoseUnsynced)),
        "close" => return script.restart(None),
        "open" => {
            let damage = match test.args.contains_key("skip") {
                true => Damage::Skip,
                false => Damage::Refuse,
            };
            return script.open(damage);
        }
        other => panic!("unknown directive {other}"),
    }
    none
}

#[test]
fn a_start_replays_and_reports_what_the_files_say() {
    datadriven::walk(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata"), |file| {
        let mut script = Script::new();
        file.run(|test| run(&mut script, test));
    });
}
