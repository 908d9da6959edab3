//! Materialized views compared with their base: after any writes, flushes, compactions and restarts, a view has exactly the
//! entries for the rows of its base, with their cells, timestamps and expiry.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::engine::EngineDisk;
use crate::session::Session;

/// Random numbers from a seed.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }
}

const SCHEMA: &str = "
CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
CREATE TABLE ks.t (k int, c int, v int, w int, u int, m map<int, int>, PRIMARY KEY (k, c)) WITH gc_grace_seconds = 50;
CREATE TABLE ks.f (k int, c int, v int, w int, u int, m map<int, int>, PRIMARY KEY (k, c)) WITH gc_grace_seconds = 50;
CREATE MATERIALIZED VIEW ks.by_v AS SELECT v, k, c, w, m FROM ks.t
    WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, k, c) WITH gc_grace_seconds = 50;
CREATE MATERIALIZED VIEW ks.some_v AS SELECT * FROM ks.t
    WHERE v > 1 AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY ((k, v), c) WITH gc_grace_seconds = 50;
CREATE MATERIALIZED VIEW ks.turned AS SELECT c, k, w, m FROM ks.t
    WHERE k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, k) WITH gc_grace_seconds = 50;
CREATE MATERIALIZED VIEW ks.whole AS SELECT * FROM ks.t
    WHERE k IS NOT NULL AND c < 2 PRIMARY KEY (c, k) WITH gc_grace_seconds = 50;
";

/// The schema, or a column list, without `m` and `u`: a row of few simple columns may be read from its newest sources only.
fn narrowed(text: &str) -> String {
    let without_map = text.replace(", m map<int, int>", "").replace(", m", "");
    let parts = [", u int", ", u", ", WRITETIME(u)", ", TTL(u)"];
    parts
        .iter()
        .fold(without_map, |text, part| text.replace(part, ""))
}

/// Each view: its columns of the base, and its rows.
const VIEWS: [(&str, &str, &str); 4] = [
    ("by_v", "v, k, c, w, WRITETIME(w), TTL(w), m", "v >= -100"),
    ("some_v", "v, k, c, w, u, WRITETIME(u), TTL(u), m", "v > 1"),
    ("turned", "k, c, w, WRITETIME(w), TTL(w), m", "c >= -100"),
    ("whole", "k, c, v, w, u, WRITETIME(v), TTL(v), m", "c < 2"),
];

struct History {
    dice: Dice,
    session: Session,
    log: String,
    /// True if the table has no columns `m` and `u`.
    is_narrow: bool,
}

impl History {
    fn run(&mut self, cql: &str) -> String {
        self.session.query(cql)
    }

    fn write(&mut self) {
        let statement = self.statement();
        writeln!(self.log, "{statement};").unwrap();
        let answer = self.run(&statement);
        assert!(!answer.starts_with("error"), "{statement}: {answer}");
    }

    fn statement(&mut self) -> String {
        if self.dice.one_in(8) {
            let count = 1 + self.dice.below(4);
            let members: Vec<String> = (0..count).map(|_| format!("{};", self.change())).collect();
            return format!("BEGIN UNLOGGED BATCH {} APPLY BATCH", members.join(" "));
        }
        if self.dice.one_in(10) {
            let (k, c, v) = (self.dice.below(3), self.dice.below(3), self.dice.below(4));
            return match self.dice.below(3) {
                0 => format!("INSERT INTO ks.t (k, c, v) VALUES ({k}, {c}, {v}) IF NOT EXISTS"),
                1 => format!("UPDATE ks.t SET w = {v} WHERE k = {k} AND c = {c} IF v = {v}"),
                _ => format!("DELETE FROM ks.t WHERE k = {k} AND c = {c} IF EXISTS"),
            };
        }
        self.change()
    }

    fn change(&mut self) -> String {
        let (k, c) = (self.dice.below(3), self.dice.below(3));
        let timestamp = match self.dice.below(3) {
            0 => String::new(),
            // Few timestamps, so that they often coincide.
            _ => format!("TIMESTAMP {}", 1 + self.dice.below(12)),
        };
        let using = |parts: &[&str]| {
            let parts: Vec<&str> = parts.iter().copied().filter(|part| !part.is_empty()).collect();
            match parts.as_slice() {
                [] => String::new(),
                parts => format!(" USING {}", parts.join(" AND ")),
            }
        };
        let ttl = match self.dice.below(4) {
            0 => format!("TTL {}", 1 + self.dice.below(60)),
            _ => String::new(),
        };
        let value = |dice: &mut Dice| match dice.below(5) {
            0 => "null".to_owned(),
            _ => dice.below(4).to_string(),
        };
        match self.dice.below(12) {
            0..=2 => {
                let (v, w) = (value(&mut self.dice), value(&mut self.dice));
                let columns = self.dice.below(3);
                let (names, values) = match columns {
                    0 => (String::new(), String::new()),
                    1 => (", v".to_owned(), format!(", {v}")),
                    _ => (", v, w".to_owned(), format!(", {v}, {w}")),
                };
                format!(
                    "INSERT INTO ks.t (k, c{names}) VALUES ({k}, {c}{values}){}",
                    using(&[&timestamp, &ttl])
                )
            }
            7 if !self.is_narrow => {
                let (key, new) = (self.dice.below(2), self.dice.below(3));
                let set = match self.dice.below(3) {
                    0 => format!("m = {{{key}: {new}}}"),
                    1 => format!("m = m + {{{key}: {new}}}"),
                    _ => format!("m = m - {{{key}}}"),
                };
                format!(
                    "UPDATE ks.t{} SET {set} WHERE k = {k} AND c = {c}",
                    using(&[&timestamp, &ttl])
                )
            }
            3..=7 => {
                let column =
                    ["v", "v", "w", "u"][self.dice.below(if self.is_narrow { 3 } else { 4 }) as usize];
                let new = value(&mut self.dice);
                format!(
                    "UPDATE ks.t{} SET {column} = {new} WHERE k = {k} AND c = {c}",
                    using(&[&timestamp, &ttl])
                )
            }
            8 => {
                let columns = if self.is_narrow { 2 } else { 4 };
                let column = ["v", "w", "u", "m"][self.dice.below(columns) as usize];
                format!(
                    "DELETE {column} FROM ks.t{} WHERE k = {k} AND c = {c}",
                    using(&[&timestamp])
                )
            }
            9 => format!(
                "DELETE FROM ks.t{} WHERE k = {k} AND c = {c}",
                using(&[&timestamp])
            ),
            10 => format!(
                "DELETE FROM ks.t{} WHERE k = {k} AND c >= {c}",
                using(&[&timestamp])
            ),
            _ => format!("DELETE FROM ks.t{} WHERE k = {k}", using(&[&timestamp])),
        }
    }

    /// Compares each entry, read by its key, with the scan of the view.
    fn check_entries(&mut self, when: &str) {
        let columns = "v, k, c, w, WRITETIME(w)";
        let body = |answer: &str| -> BTreeSet<String> {
            let lines = answer.lines().skip(1).filter(|line| !line.ends_with("rows)"));
            lines.map(str::to_owned).collect()
        };
        let scanned = body(&self.run(&format!("SELECT {columns} FROM ks.by_v")));
        let mut found = BTreeSet::new();
        for (v, k, c) in (0..36).map(|place| (place / 9, place / 3 % 3, place % 3)) {
            let one = format!("SELECT {columns} FROM ks.by_v WHERE v = {v} AND k = {k} AND c = {c}");
            found.extend(body(&self.run(&one)));
        }
        assert_eq!(found, scanned, "entries of by_v {when}, after:\n{}", self.log);
    }

    /// Compares each view with its base.
    fn check(&mut self, when: &str) {
        for (view, columns, rows) in VIEWS {
            let columns = match self.is_narrow {
                true => narrowed(columns),
                false => columns.to_owned(),
            };
            let shown = |answer: String| {
                let lines: Vec<String> = answer.lines().map(str::to_owned).collect();
                lines.into_iter().skip(1).collect::<BTreeSet<String>>()
            };
            let expected = self.run(&format!(
                "SELECT {columns} FROM ks.t WHERE {rows} ALLOW FILTERING"
            ));
            let answer = self.run(&format!("SELECT {columns} FROM ks.{view}"));
            assert_eq!(
                shown(answer),
                shown(expected),
                "{view} {when}, after:\n{}",
                self.log
            );
        }
    }
}

/// The limit for a write to one partition is half a segment, with or without views of its table.
#[test]
fn a_table_with_views_takes_what_a_table_without_takes() {
    let mut disk = EngineDisk::new();
    let mut session = Session::over(disk.open());
    session.script(
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
         CREATE TABLE ks.alone (k int, c int, v int, b text, PRIMARY KEY (k, c));
         CREATE TABLE ks.t (k int, c int, v int, b text, PRIMARY KEY (k, c))",
    );
    for view in 0..4 {
        session.script(&format!(
            "CREATE MATERIALIZED VIEW ks.view{view} AS SELECT * FROM ks.t
             WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (v, k, c)"
        ));
    }
    let insert = |table: &str, c: usize, bytes: usize| {
        let text = "x".repeat(bytes);
        format!("INSERT INTO ks.{table} (k, c, v, b) VALUES (1, {c}, 5, '{text}')")
    };
    // Views have a few more bytes.
    let half = (256 << 10) / 2 - 200;
    for (c, bytes) in [half / 3, half / 2, half - 1000, half].into_iter().enumerate() {
        for table in ["alone", "t"] {
            assert_eq!(
                session.query(&insert(table, c, bytes)),
                "ok\n",
                "{bytes} into {table}"
            );
        }
    }
    // An update of the view's key writes everything again in each view.
    assert_eq!(
        session.query("UPDATE ks.t SET v = 6 WHERE k = 1 AND c = 3"),
        "ok\n"
    );
    for table in ["alone", "t"] {
        let refused = session.query(&insert(table, 9, 2 * half));
        assert!(
            refused.contains("is too large for the maximum size"),
            "{table}: {refused}"
        );
    }
    session.reconnect(|| disk.reopen());
    let len = |answer: &str| answer.matches('x').count();
    assert_eq!(
        len(&session.query("SELECT b FROM ks.t WHERE k = 1 AND c = 3")),
        half
    );
    for view in 0..4 {
        let moved = session.query(&format!("SELECT b FROM ks.view{view} WHERE v = 6"));
        let others = session.query(&format!("SELECT b FROM ks.view{view} WHERE v = 5"));
        assert_eq!(len(&moved), half);
        assert_eq!(len(&others), half / 3 + half / 2 + half - 1000);
    }
}

/// The row lives by its INSERT, which is in an SSTable; the values that hide it are in the memtable.
#[test]
fn a_row_keeps_its_entry_when_its_newer_values_are_deleted() {
    let mut disk = EngineDisk::new();
    let mut session = Session::over(disk.open());
    session.script(
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
         CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c));
         CREATE MATERIALIZED VIEW ks.turned AS SELECT * FROM ks.t
             WHERE k IS NOT NULL AND c IS NOT NULL PRIMARY KEY (c, k);
         INSERT INTO ks.t (k, c, v) VALUES (1, 2, 3)",
    );
    disk.flush();
    session.script("UPDATE ks.t SET v = 4 WHERE k = 1 AND c = 2; DELETE v FROM ks.t WHERE k = 1 AND c = 2");
    assert_eq!(
        session.query("SELECT k, c, v FROM ks.t"),
        "k | c | v\n1 | 2 | null\n(1 rows)\n"
    );
    assert_eq!(
        session.query("SELECT k, c, v FROM ks.turned"),
        "k | c | v\n1 | 2 | null\n(1 rows)\n"
    );
}

fn run_history(seed: u64, steps: usize) {
    let mut disk = EngineDisk::new();
    let mut history = History {
        dice: Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
        session: Session::over(disk.open()),
        log: format!("seed {seed}\n"),
        is_narrow: seed % 4 >= 2,
    };
    let is_early = seed.is_multiple_of(2);
    let schema = match history.is_narrow {
        true => narrowed(SCHEMA),
        false => SCHEMA.to_owned(),
    };
    let (tables, views) = schema.split_at(schema.find("CREATE MATERIALIZED").unwrap());
    history.session.script(tables);
    if is_early {
        history.session.script(views);
    }
    for step in 0..steps {
        if !is_early && step == steps / 3 {
            history.session.script(views);
        }
        history.write();
        if history.dice.one_in(12) {
            let secs = 1 + history.dice.below(70);
            writeln!(history.log, "-- {secs} s later").unwrap();
            history.session.advance_secs(secs);
        }
        if history.dice.one_in(4) {
            disk.move_data(&mut history.session);
        }
        if (is_early || step > steps / 3) && history.dice.one_in(5) {
            history.check(&format!("at step {step}"));
            if history.dice.one_in(4) {
                history.check_entries(&format!("at step {step}"));
            }
        }
    }
    history.check("at the end");
    history.check_entries("at the end");
}

#[test]
fn a_view_shows_what_its_base_says() {
    let count = std::env::var("VIEW_SEEDS")
        .ok()
        .and_then(|text| text.parse().ok());
    for seed in 1..=count.unwrap_or(8) {
        run_history(seed, 60);
    }
}
