//! Random statements, with invalid values and paging states: they are answered or refused and never panic.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use ilion_env::Seeded;
use ilion_query::{
    BatchKind, BatchStatement, ClientState, ExecuteOptions, Outcome, QueryOptions, QueryProcessor, Value,
    Values,
};

use crate::store::TestStore;

/// `HOSTILE_PLAYS=1000` for a longer run, `HOSTILE_SEED=n` for another one.
const PLAYS: u64 = 12;

/// A statement, split into words and their separators.
type Words = Vec<String>;

struct Hostile {
    random: Seeded,
    processor: QueryProcessor,
    client: ClientState,
    /// The statements of each file.
    files: Arc<[Vec<Words>]>,
}

#[test]
fn no_statement_and_no_value_makes_a_panic() {
    let number = |name, default| std::env::var(name).map_or(default, |text| text.parse().unwrap());
    let mut files = Vec::new();
    read_files(Path::new("testdata"), &mut files);
    let files: Arc<[Vec<Words>]> = files.into();
    let first = number("HOSTILE_SEED", 1);
    for seed in first..first + number("HOSTILE_PLAYS", PLAYS) {
        let mut hostile = Hostile {
            random: Seeded::new(seed),
            processor: QueryProcessor::new(TestStore::in_memory(), QueryOptions::default()),
            client: ClientState::default(),
            files: files.clone(),
        };
        hostile.play();
    }
}

fn read_files(dir: &Path, files: &mut Vec<Vec<Words>>) {
    let entries = std::fs::read_dir(dir).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            read_files(&path, files);
        } else {
            files.push(statements_of(&std::fs::read_to_string(path).unwrap()));
        }
    }
}

fn statements_of(file: &str) -> Vec<Words> {
    let inputs = file.split("\n\n").filter_map(|case| case.split_once("\n----"));
    inputs
        .map(|(input, _)| {
            let lines = input.lines().filter(|line| !line.starts_with('#'));
            // The first line is the directive.
            lines.skip(1).collect::<Vec<_>>().join("\n")
        })
        .flat_map(|script| words_of(&script))
        .collect()
}

fn words_of(script: &str) -> Vec<Words> {
    let statements = ilion_cql::split_statements(script).into_iter();
    statements
        .map(|statement| {
            let words = statement.split_inclusive(|c: char| !c.is_ascii_alphanumeric() && c != '_');
            words.map(str::to_owned).collect()
        })
        .collect()
}

impl Hostile {
    /// Runs the statements of a file, unchanged and in other forms.
    fn play(&mut self) {
        let files = self.files.clone();
        let file = &files[self.below(files.len())];
        for statement in file {
            let options = ExecuteOptions::default();
            let text = statement.concat();
            if !text.starts_with("DROP") || self.below(4) == 0 {
                let _ = self.processor.query(&mut self.client, &text, &options);
            }
            for _ in 0..3 {
                self.round(statement);
            }
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.random.next_u64() >> 1).unwrap() % bound.max(1)
    }

    fn round(&mut self, statement: &Words) {
        let statement = self.changed(statement);
        let options = self.options();
        let result = self.processor.query(&mut self.client, &statement, &options);
        if let Ok(executed) = result
            && let Outcome::Rows(rows) = executed.outcome
            && let Some(state) = rows.paging_state
        {
            self.go_on(&statement, options, state);
        }
        if let Ok(prepared) = self.processor.prepare(&self.client, &statement, None) {
            let options = ExecuteOptions {
                values: self.values_of(prepared.variables.len()),
                ..self.options()
            };
            let _ = self.processor.execute(&mut self.client, &prepared, &options);
            let values = self.values_of(prepared.variables.len());
            let members = vec![
                (BatchStatement::Prepared(prepared), values),
                (BatchStatement::Text(statement), Values::None),
            ];
            let kinds = [BatchKind::Logged, BatchKind::Unlogged, BatchKind::Counter];
            let kind = kinds[self.below(3)];
            let _ = self.processor.batch(&mut self.client, kind, members, &options);
        }
    }

    /// Continues with the next page, with the unchanged state and with a changed byte in it.
    fn go_on(&mut self, statement: &str, options: ExecuteOptions, mut state: Vec<u8>) {
        let at = self.below(state.len());
        for change in [0, 1 + self.below(255)] {
            if let Some(byte) = state.get_mut(at) {
                *byte ^= u8::try_from(change).unwrap();
            }
            let options = ExecuteOptions {
                paging_state: Some(state.clone().into()),
                ..options.clone()
            };
            let _ = self.processor.query(&mut self.client, statement, &options);
        }
    }

    /// The statement with words left out, doubled, or replaced by others of their kind.
    fn changed(&mut self, statement: &Words) -> String {
        let mut words = statement.clone();
        for _ in 0..[1, 1, 1, 2, 3][self.below(5)] {
            let at = self.below(words.len());
            let Some((word, rest)) = words.get(at).map(|word| cut(word)) else {
                continue;
            };
            let other = match (self.below(20), Kind::of(word)) {
                (0, _) => String::new(),
                (1, _) => format!("{word} {word}"),
                (_, Kind::Keyword | Kind::Nothing) => continue,
                (2..6, _) => "?".to_owned(),
                (6, _) => "null".to_owned(),
                (7, _) => "-9223372036854775808".to_owned(),
                (8, _) => format!("({word})"),
                (_, kind) => self.word(kind),
            };
            words[at] = other + rest;
        }
        words.concat()
    }

    /// A word of this kind from any statement.
    fn word(&mut self, kind: Kind) -> String {
        let files = self.files.clone();
        loop {
            let file = &files[self.below(files.len())];
            let statement = &file[self.below(file.len())];
            let (word, _) = cut(&statement[self.below(statement.len())]);
            if Kind::of(word) == kind {
                return word.to_owned();
            }
        }
    }

    fn options(&mut self) -> ExecuteOptions {
        ExecuteOptions {
            values: match self.below(3) {
                0 => Values::None,
                1 => {
                    let count = self.below(4);
                    self.values_of(count)
                }
                _ => Values::Named(vec![
                    ("k".to_owned(), self.value()),
                    ("v".to_owned(), self.value()),
                ]),
            },
            page_size: [None, Some(1), Some(2), Some(5000)][self.below(4)],
            paging_state: match self.below(10) {
                0 => Some(self.bytes()),
                _ => None,
            },
            timestamp_micros: [None, None, Some(i64::MIN), Some(i64::MAX), Some(1)][self.below(5)],
            now_secs: [None, None, Some(i32::MIN), Some(i32::MAX)][self.below(4)],
            ..ExecuteOptions::default()
        }
    }

    fn values_of(&mut self, count: usize) -> Values {
        Values::Positional((0..count).map(|_| self.value()).collect())
    }

    fn value(&mut self) -> Value {
        match self.below(8) {
            0 => Value::Null,
            1 => Value::Unset,
            2..5 => Value::Bytes(Bytes::from_static(&[0, 0, 0, 1])),
            5 => Value::Bytes(Bytes::from_static(b"a")),
            _ => Value::Bytes(self.bytes()),
        }
    }

    fn bytes(&mut self) -> Bytes {
        let len = self.below(40);
        (0..len)
            .map(|_| [0, 0, 0, 1, 2, 4, 0x7F, 0xFF][self.below(8)])
            .collect::<Vec<u8>>()
            .into()
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Nothing,
    Keyword,
    Number,
    Name,
}

impl Kind {
    fn of(word: &str) -> Self {
        match word.bytes().next() {
            None => Self::Nothing,
            Some(first) if first.is_ascii_digit() => Self::Number,
            Some(_) if word.bytes().all(|byte| byte.is_ascii_uppercase()) => Self::Keyword,
            Some(_) => Self::Name,
        }
    }
}

/// A word, and its separator from the next one.
fn cut(word: &str) -> (&str, &str) {
    let rest = word.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || c == '_');
    word.split_at(word.len() - rest.len())
}
