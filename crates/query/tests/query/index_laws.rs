//! A query with indexes has the same answer as one that filters all rows: over random rows, predicates, limits and pages.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use ilion_query::{ExecuteOptions, Outcome};

use ilion_env::Seeded;

use crate::engine::EngineDisk;
use crate::print::{self, Types};
use crate::session::Session;

const TABLES: &str = "
CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
USE ks;
CREATE TABLE plain (k1 int, k2 int, c1 int, c2 int, s int static, v int, w text, x int, l list<int>, st set<text>, m map<text, int>, f frozen<list<int>>, PRIMARY KEY ((k1, k2), c1, c2));
CREATE TABLE indexed (k1 int, k2 int, c1 int, c2 int, s int static, v int, w text, x int, l list<int>, st set<text>, m map<text, int>, f frozen<list<int>>, PRIMARY KEY ((k1, k2), c1, c2));
";

/// Columns, and the predicates that an index on them serves.
const TARGETS: [&str; 13] = [
    "v",
    "w",
    "s",
    "c1",
    "c2",
    "k1",
    "k2",
    "l",
    "st",
    "m",
    "keys(m)",
    "full(f)",
    "entries(m)",
];

/// The random choices of a seed.
struct Random(Seeded);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0.below(end)
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.0.one_in(count)
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }

    fn word(&mut self) -> String {
        format!("'{}'", self.pick(&["a", "b", "ab", "abc", "xab"]))
    }

    fn number(&mut self) -> u64 {
        self.below(5)
    }
}

fn key(random: &mut Random) -> String {
    format!("k1 = {} AND k2 = {}", random.below(3), random.below(3))
}

/// A write, with `TABLE` for the table.
fn write(random: &mut Random) -> String {
    let (key, c1, c2) = (key(random), random.below(3), random.below(3));
    let row = format!("{key} AND c1 = {c1} AND c2 = {c2}");
    match random.below(22) {
        14 => format!("DELETE FROM TABLE WHERE {key} AND c1 > {c1}"),
        15 => format!("DELETE FROM TABLE WHERE {key} AND c1 = {c1} AND c2 <= {c2}"),
        16 => format!(
            "UPDATE TABLE USING TTL {} SET v = {}, w = {} WHERE {row}",
            1 + random.below(20),
            random.number(),
            random.word()
        ),
        17 => format!(
            "INSERT INTO TABLE (k1, k2, c1, c2, v, st) VALUES ({}, {}, {c1}, {c2}, {}, {{{}}}) USING TTL {}",
            random.below(3),
            random.below(3),
            random.number(),
            random.word(),
            1 + random.below(20)
        ),
        18 => format!(
            "UPDATE TABLE USING TTL {} SET s = {}, m[{}] = {} WHERE {row}",
            1 + random.below(20),
            random.number(),
            random.word(),
            random.number()
        ),
        19 => format!("DELETE m[{}], st FROM TABLE WHERE {row}", random.word()),
        20 if random.one_in(8) => "TRUNCATE TABLE".to_owned(),
        0 => format!("DELETE FROM TABLE WHERE {row}"),
        1 => format!("DELETE FROM TABLE WHERE {key} AND c1 = {c1}"),
        2 => format!("DELETE FROM TABLE WHERE {key}"),
        3 => format!("DELETE v FROM TABLE WHERE {row}"),
        4 => format!("UPDATE TABLE SET s = {} WHERE {key}", random.number()),
        5 => format!("DELETE s FROM TABLE WHERE {key}"),
        6 => format!("UPDATE TABLE SET l = l + [{}] WHERE {row}", random.number()),
        7 => format!("UPDATE TABLE SET st = st - {{{}}} WHERE {row}", random.word()),
        8 => format!(
            "UPDATE TABLE SET m[{}] = {} WHERE {row}",
            random.word(),
            random.number()
        ),
        _ => format!(
            "UPDATE TABLE SET v = {}, w = {}, x = {}, l = [{}, {}], st = {{{}, {}}}, m = {{{}: {}}}, f = [{}] WHERE {row}",
            random.number(),
            random.word(),
            random.number(),
            random.number(),
            random.number(),
            random.word(),
            random.word(),
            random.word(),
            random.number(),
            random.number()
        ),
    }
}

fn relation(random: &mut Random) -> String {
    let number = random.number();
    match random.below(21) {
        20 => format!("m[{}] >= {number}", random.word()),
        16 | 17 => format!("({} OR {})", relation(random), relation(random)),
        18 => format!(
            "({} AND {} OR {})",
            relation(random),
            relation(random),
            relation(random)
        ),
        19 => format!("(v = {number} OR c1 = {} OR s = {number})", random.below(3)),
        0..=2 => format!("v = {number}"),
        3 => format!("v > {number}"),
        4 => format!("v <= {number} AND v > 0"),
        5 => format!("v IN ({number}, 1)"),
        6 | 7 => format!("w = {}", random.word()),
        8 => format!("s = {number}"),
        9 => format!("x = {number}"),
        10 => format!("l CONTAINS {number}"),
        11 => format!("st CONTAINS {}", random.word()),
        12 => format!("m CONTAINS {number}"),
        13 => format!("m CONTAINS KEY {}", random.word()),
        14 => format!("m[{}] = {number}", random.word()),
        _ => format!("f = [{number}]"),
    }
}

fn place(random: &mut Random) -> String {
    match random.below(12) {
        0 => key(random),
        1 => format!("{} AND c1 = {}", key(random), random.below(3)),
        2 => format!("{} AND c1 > {}", key(random), random.below(3)),
        3 => format!("k1 = {}", random.below(3)),
        4 => format!("k2 = {} AND c2 = {}", random.below(3), random.below(3)),
        5 => format!("c1 = {}", random.below(3)),
        6 => format!("c2 > {}", random.below(3)),
        7 => format!("token(k1, k2) > {}", random.0.next_u64().cast_signed()),
        8 => format!(
            "token(k1, k2) <= {} AND c1 IN (0, 2)",
            random.0.next_u64().cast_signed()
        ),
        _ => String::new(),
    }
}

/// A query, with `TABLE` for the table, and its page size.
fn query(random: &mut Random) -> (String, Option<u32>) {
    let mut relations = vec![place(random)];
    for _ in 0..random.below(3) {
        relations.push(relation(random));
    }
    relations.retain(|relation| !relation.is_empty());
    if relations.is_empty() {
        relations.push(relation(random));
    }
    let (mut selected, mut group) = ("k1, k2, c1, c2, s, v, w, l, m", "");
    let mut limits = String::new();
    match random.below(10) {
        0 => selected = "count(*), sum(x)",
        1 => (selected, group) = ("k1, k2, count(*)", " GROUP BY k1, k2"),
        2 => (selected, group) = ("k1, k2, c1, max(v)", " GROUP BY k1, k2, c1"),
        3 => selected = "DISTINCT k1, k2, s",
        4 => selected = "k1, k2, s",
        5 => limits += &format!(" PER PARTITION LIMIT {}", 1 + random.below(3)),
        _ => {}
    }
    if random.one_in(3) {
        write!(limits, " LIMIT {}", 1 + random.below(6)).unwrap();
    }
    let page = (!random.one_in(3)).then(|| 1 + u32::try_from(random.below(4)).unwrap());
    let text = format!(
        "SELECT {selected} FROM TABLE WHERE {}{group}{limits} ALLOW FILTERING",
        relations.join(" AND ")
    );
    (text, page)
}

/// All pages, or the error.
fn answer(session: &mut Session, text: &str, page_size: Option<u32>) -> String {
    let mut options = ExecuteOptions {
        page_size,
        ..ExecuteOptions::default()
    };
    let mut out = String::new();
    loop {
        match session.execute_with(text, &options) {
            Err(refused) => return out + &print::error(&refused),
            Ok(executed) => {
                let Outcome::Rows(rows) = executed.outcome else {
                    panic!("{text} gives rows")
                };
                out += &print::body(&rows);
                match rows.paging_state {
                    None => return print::header(&rows.columns, Types::Hidden) + &out,
                    Some(state) => options.paging_state = Some(state.into()),
                }
            }
        }
    }
}

/// The refusal of combinations that an index does not allow; there is nothing to compare.
const NOT_BY_INDEX: &str = "Select on indexed columns and with IN clause";

/// The start of an error.
const REFUSED: &str = "error ";

/// `after_write` may move the data elsewhere.
fn run(
    session: &mut Session,
    seed: u64,
    rounds: u64,
    usings: &[&str],
    mut after_write: impl FnMut(&mut Session),
) {
    let mut random = Random(Seeded::new(seed));
    session.script(TABLES);
    let mut made = BTreeSet::new();
    for target in 0..TARGETS.len() {
        if random.one_in(2) {
            create_index(session, &mut random, target, usings);
            made.insert(target);
        }
    }
    let mut answered = 0;
    for round in 0..rounds {
        // One index is built over existing rows, and one is dropped.
        if round % (rounds / 4).max(1) == 0 {
            let mut target = || usize::try_from(random.below(TARGETS.len() as u64)).unwrap();
            let (coming, going) = (target(), target());
            session.script(&format!("DROP INDEX IF EXISTS by_{going}"));
            made.remove(&going);
            create_index(session, &mut random, coming, usings);
            made.insert(coming);
        }
        if random.one_in(3) {
            session.advance_secs(random.below(8));
        }
        for _ in 0..random.below(8) {
            let text = write(&mut random);
            let text = if usings == MATCHING {
                with_texts(&text)
            } else {
                text
            };
            for table in ["plain", "indexed"] {
                session.script(&text.replace("TABLE", table));
            }
            after_write(session);
        }
        for _ in 0..5 {
            let (text, page) = query(&mut random);
            let (asked, plain) = match made.contains(&OF_WORDS) {
                true if usings == FOLDING => (in_capitals(&text), text.clone()),
                true if usings == MATCHING => (by_tokens(&text), by_texts(&text)),
                _ => (text.clone(), text.clone()),
            };
            let asked = asked.replace("TABLE", "indexed");
            let by_index = answer(session, &asked, page);
            if by_index.contains(NOT_BY_INDEX) {
                continue;
            }
            let by_rows = answer(session, &plain.replace("TABLE", "plain"), None);
            // The messages name the columns, which differ.
            if usings == MATCHING && by_index.starts_with(REFUSED) && by_rows.starts_with(REFUSED) {
                continue;
            }
            let how = |session: &mut Session| session.query(&format!("EXPLAIN {asked}"));
            assert_eq!(
                by_index,
                by_rows,
                "seed {seed}: {text}, pages of {page:?}\n{}",
                how(session)
            );
            answered += 1;
        }
    }
    assert!(
        answered > 3 * rounds,
        "seed {seed}: only {answered} queries were answered"
    );
}

/// Indexes of words that ignore case.
const FOLDING: [&str; 1] = [" USING 'sai' WITH OPTIONS = {'case_sensitive': 'false'}"];

/// Indexes of texts that match by token.
const MATCHING: [&str; 1] = [" USING 'sai' WITH OPTIONS = {'index_analyzer': 'standard'}"];

/// For each word: the text to write, its tokens to search by `:`, and the texts that have all of them.
const TEXTS: [(&str, &str, &str, &str); 5] = [
    ("xab", "xab, A", "A xab", "'xab, A'"),
    ("abc", "abc AB", "abc", "'abc AB'"),
    ("ab", "ab.", "Ab", "'ab.', 'abc AB'"),
    ("a", "A b b", "a", "'A b b', 'xab, A'"),
    ("b", "b", "B", "'b', 'A b b'"),
];

/// Replaces the value that `w` is compared with or set to.
fn in_place_of_words(text: &str, replacement: impl Fn(&(&str, &str, &str, &str)) -> String) -> String {
    TEXTS.iter().fold(text.to_owned(), |text, entry| {
        text.replace(&format!("w = '{}'", entry.0), &replacement(entry))
    })
}

/// Replaces words by texts.
fn with_texts(text: &str) -> String {
    // The additional space prevents a second replacement.
    in_place_of_words(text, |(_, written, ..)| format!("w =  '{written}'"))
}

/// Searches an index for tokens.
fn by_tokens(text: &str) -> String {
    in_place_of_words(text, |(_, _, asked, _)| format!("w : '{asked}'"))
}

/// Searches the same texts one by one.
fn by_texts(text: &str) -> String {
    in_place_of_words(text, |(.., texts)| format!("w IN ({texts})"))
}

/// `w` of [`TARGETS`].
const OF_WORDS: usize = 1;

/// Searches words in upper case.
fn in_capitals(text: &str) -> String {
    let words = ["xab", "abc", "ab", "a", "b"];
    words.iter().fold(text.to_owned(), |text, word| {
        let asked = |word: &str| format!("w = '{word}'");
        text.replace(&asked(word), &asked(&word.to_uppercase()))
    })
}

const MIXED: [&str; 3] = ["", "", " USING 'sai'"];

fn create_index(session: &mut Session, random: &mut Random, target: usize, usings: &[&str]) {
    let using = match random.pick(usings) {
        using if target != OF_WORDS && (using == FOLDING[0] || using == MATCHING[0]) => MIXED[2],
        using => using,
    };
    session.script(&format!(
        "CREATE INDEX IF NOT EXISTS by_{target} ON indexed ({}){using}",
        TARGETS[target]
    ));
}

/// `SEEDS=10` runs more of them.
fn seeds(first: u64, count: u64) -> std::ops::Range<u64> {
    let times: u64 = std::env::var("SEEDS").map_or(1, |text| text.parse().unwrap());
    first..first + count * times
}

#[test]
fn a_query_by_indexes_answers_as_one_that_looks_at_every_row() {
    for seed in seeds(0, 3) {
        run(&mut Session::in_memory(), seed, 40, &MIXED, |_| {});
    }
}

/// The index on a text ignores case, whether it is searched or rows of another index are checked.
#[test]
fn words_are_found_as_their_index_compares_them() {
    for seed in seeds(200, 2) {
        run(&mut Session::in_memory(), seed, 30, &FOLDING, |_| {});
    }
}

/// With `:`, which searches tokens at any position.
#[test]
fn texts_are_found_by_their_tokens() {
    for seed in seeds(300, 3) {
        run(&mut Session::in_memory(), seed, 30, &MATCHING, |_| {});
    }
}

/// In memory, in files, and after a restart; with stale entries of every kind.
#[test]
fn the_engine_answers_by_indexes_as_by_looking_at_every_row() {
    for seed in seeds(100, 2) {
        let usings = if seed % 2 == 0 { &MIXED[..] } else { &MIXED[2..] };
        let mut disk = EngineDisk::new();
        let mut session = Session::over(disk.open());
        run(&mut session, seed, 12, usings, |session| {
            disk.move_data(session);
        });
        disk.verify_indexes();
    }
}
