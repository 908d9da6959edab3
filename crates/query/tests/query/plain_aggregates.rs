//! Aggregates over plain rows in place, compared with the rows themselves and with the same aggregates over built rows.
//!
//! `AGGREGATE_SEEDS=100` for a longer run, `AGGREGATE_SEED=n` for another one.

use ilion_env::Seeded;
use ilion_env::cost::{self, Count};
use ilion_rows::TombstoneLimits;

use crate::engine::EngineDisk;
use crate::plain::{Row, pick, read};
use crate::session::Session;

type Value = Option<Vec<u8>>;

/// Aggregates of all kinds of columns, in the order of [`expected`].
const EXACT: &str = "count(*), count(a), min(a), max(a), sum(a), avg(a), sum(i), avg(i), max(i), count(z), min(z), max(z), \
                     count(s), min(s), min(c), max(c), count(c), max(d), sum(k), min(l)";
/// The columns of those.
const COLUMNS: &str = "k, l, c, d, s, a, i, z";
/// Aggregates whose results depend on the order of values.
const ROUNDED: &str =
    "sum(f), avg(f), min(f), max(f), sum(g), avg(g), min(g), sum(n), avg(n), max(n), count(n)";

fn integer(value: &[u8]) -> i64 {
    let sign: i64 = if value[0] >= 0x80 { -1 } else { 0 };
    value.iter().fold(sign, |sum, byte| sum << 8 | i64::from(*byte))
}

/// The values of a column without nulls.
fn of_column(rows: &[Row], column: usize) -> impl Iterator<Item = &Vec<u8>> {
    rows.iter().filter_map(move |row| row[column].as_ref())
}

fn counted(count: usize) -> Value {
    Some((count as u64).to_be_bytes().to_vec())
}

/// Sum and average of integers of a width.
fn totals(rows: &[Row], column: usize, width: usize) -> [Value; 2] {
    let sum: i128 = of_column(rows, column)
        .map(|value| i128::from(integer(value)))
        .sum();
    let count = of_column(rows, column).count().max(1) as i128;
    [sum, sum / count].map(|total| Some(total.to_be_bytes()[16 - width..].to_vec()))
}

fn extremes(rows: &[Row], column: usize, is_text: bool) -> [Value; 2] {
    let key = |value: &&Vec<u8>| match is_text {
        true => (0, (*value).clone()),
        false => (integer(value), Vec::new()),
    };
    [
        of_column(rows, column).min_by_key(key).cloned(),
        of_column(rows, column).max_by_key(key).cloned(),
    ]
}

/// The result of `EXACT` over rows of `COLUMNS`.
fn expected(rows: &[Row]) -> Row {
    let [k, l, c, d, s, a, i, z] = [0, 1, 2, 3, 4, 5, 6, 7];
    let count = |column| counted(of_column(rows, column).count());
    let ([a_min, a_max], [a_sum, a_avg]) = (extremes(rows, a, false), totals(rows, a, 8));
    let ([_, i_max], [i_sum, i_avg]) = (extremes(rows, i, false), totals(rows, i, 4));
    let ([z_min, z_max], [s_min, _]) = (extremes(rows, z, true), extremes(rows, s, true));
    let ([c_min, c_max], [_, d_max]) = (extremes(rows, c, false), extremes(rows, d, true));
    let ([k_sum, _], [l_min, _]) = (totals(rows, k, 4), extremes(rows, l, true));
    vec![
        counted(rows.len()),
        count(a),
        a_min,
        a_max,
        a_sum,
        a_avg,
        i_sum,
        i_avg,
        i_max,
        count(z),
        z_min,
        z_max,
        count(s),
        s_min,
        c_min,
        c_max,
        count(c),
        d_max,
        k_sum,
        l_min,
    ]
}

/// The state of a run.
struct Play {
    seed: u64,
    random: Seeded,
    session: Session,
    disk: EngineDisk,
    /// Number of aggregated rows.
    added: usize,
}

impl Play {
    fn new(seed: u64) -> Self {
        let mut disk = EngineDisk::new();
        let mut session = Session::over(disk.open());
        session.script(
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}; USE ks;
             CREATE TABLE t (k int, l text, c int, d text, s text static, a bigint, f double, g float, i int, n decimal, z text,
             PRIMARY KEY ((k, l), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC);
             CREATE TABLE one (k int PRIMARY KEY, a bigint, z text);
             CREATE TABLE two (k int, l text, a bigint, z text, PRIMARY KEY ((k, l)))",
        );
        Self {
            seed,
            random: Seeded::new(seed),
            session,
            disk,
            added: 0,
        }
    }

    /// A text of any length except 0.
    fn text(&mut self) -> String {
        let len = usize::try_from(1 + self.random.below(17)).unwrap();
        format!("{:020}", self.random.below(u64::MAX))[..len].to_owned()
    }

    /// Rows with all columns and the same layout: only the last value has variable length.
    fn write_measurements(&mut self, first: u64, count: u64) {
        for c in first..first + count {
            for k in 0..3 {
                let (a, z) = (self.random.below(1 << 62), self.text());
                let (f, n) = (self.random.below(1 << 40), 10 + self.random.below(90));
                self.session.script(&format!(
                    "INSERT INTO t (k, l, c, d, a, f, g, i, n, z) VALUES
                     ({k}, 'x{k}', {c}, 'd', -{a}, {f}e-7, {f}e-3, {}, {n}.25, '{z}')",
                    a >> 31
                ));
            }
            let (a, z) = (self.random.below(1 << 62), self.text());
            self.session.script(&format!(
                "INSERT INTO one (k, a, z) VALUES ({c}, {a}, '{z}'); INSERT INTO two (k, l, a, z) VALUES ({c}, 'x', {a}, '{z}')"
            ));
        }
    }

    /// Writes and deletes of all kinds, in and between those rows.
    fn write_anything(&mut self, count: u64, c_max: u64) {
        for _ in 0..count {
            let (k, c) = (self.random.below(5), self.random.below(c_max));
            let (a, z) = (self.random.below(1 << 62), self.text());
            let partition = format!("k = {k} AND l = 'x{k}'");
            let row = format!("{partition} AND c = {c} AND d = 'd'");
            let (columns, values) = ("INSERT INTO t (k, l, c, d", format!("{k}, 'x{k}', {c}, 'd'"));
            let statement = match self.random.below(20) {
                0 => format!("DELETE FROM t WHERE {row}"),
                1 => format!("DELETE a, z FROM t WHERE {row}"),
                2 => format!("DELETE a, f, g, i, n, z, zz FROM t WHERE {row}"),
                3 => format!("DELETE FROM t WHERE {partition} AND c > {c} AND c < {}", c + 3),
                4 => format!("DELETE FROM t WHERE {partition}"),
                5 => format!("UPDATE t SET s = 's{z}' WHERE {partition}"),
                6 => format!("DELETE s FROM t WHERE {partition}"),
                7 => format!("UPDATE t SET z = '{z}', n = {a} WHERE {row}"),
                8 => format!("UPDATE t SET a = null, z = null WHERE {row}"),
                9 => format!("UPDATE t SET i = 1, z = null WHERE {row}"),
                10 => format!("{columns}) VALUES ({values})"),
                11 => format!("{columns}, z) VALUES ({values}, '')"),
                12 => format!("{columns}, a, f, n) VALUES ({values}, null, -1.5, 1e-9)"),
                13 => format!("{columns}, zz) VALUES ({values}, {{{a}}})"),
                14 => format!("{columns}, z) VALUES ({values}, '{}')", "y".repeat(5000)),
                15 => format!("{columns}, a, z) VALUES ({values}, {a}, '{z}') USING TTL 1000"),
                16 => format!("DELETE FROM one WHERE k = {c}; DELETE a FROM two WHERE k = {c} AND l = 'x'"),
                17 => format!(
                    "UPDATE one SET z = null WHERE k = {c}; UPDATE two SET z = '{z}' WHERE k = {c} AND l = 'y'"
                ),
                _ => format!("{columns}, a, i, z) VALUES ({values}, {a}, {k}, '{z}')"),
            };
            self.session.script(&statement);
        }
    }

    /// Reads one page, which has one row.
    fn one_row(&mut self, statement: &str) -> Row {
        self.one_row_and_cost(statement).0
    }

    /// Also returns the number of partitions and rows that were read.
    fn one_row_and_cost(&mut self, statement: &str) -> (Row, [u64; 2]) {
        let cost = cost::begin();
        let (mut rows, _) = read(&mut self.session, statement, None);
        assert_eq!(rows.len(), 1, "seed {}: {statement}", self.seed);
        (
            rows.remove(0),
            [Count::Partitions, Count::Rows].map(|count| cost.of(count)),
        )
    }

    /// Compares with the same aggregates over built rows, which the writetime of a cell enforces.
    fn check_built(&mut self, aggregates: &str, rest: &str) {
        let found = self.one_row_and_cost(&format!("SELECT {aggregates} FROM {rest}"));
        let mut built = self.one_row_and_cost(&format!("SELECT {aggregates}, max(writetime(a)) FROM {rest}"));
        built.0.pop();
        assert_eq!(
            found, built,
            "seed {}: SELECT {aggregates} FROM {rest}",
            self.seed
        );
    }

    fn check(&mut self, rest: &str) {
        let (rows, _) = read(&mut self.session, &format!("SELECT {COLUMNS} FROM {rest}"), None);
        let found = self.one_row(&format!("SELECT {EXACT} FROM {rest}"));
        assert_eq!(found, expected(&rows), "seed {}: {EXACT} FROM {rest}", self.seed);
        let found = self.one_row(&format!("SELECT count(1) FROM {rest}"));
        assert_eq!(found, [counted(rows.len())], "seed {}: {rest}", self.seed);
        for aggregates in [
            EXACT,
            ROUNDED,
            "count(s), max(a), z",
            "sum(a) + max(i), s, count(*)",
        ] {
            self.check_built(aggregates, rest);
        }
        self.added += rows.len();
    }

    /// One row per partition, page by page.
    fn check_groups(&mut self, rest: &str, limit: &str, page_size: Option<u32>) {
        let (rows, _) = read(&mut self.session, &format!("SELECT {COLUMNS} FROM {rest}"), None);
        let mut groups: Vec<Vec<Row>> = Vec::new();
        for row in rows {
            match groups.last_mut() {
                Some(group) if group[0][..2] == row[..2] => group.push(row),
                _ => groups.push(vec![row]),
            }
        }
        let expected: Vec<Row> = groups.iter().map(|rows| expected(rows)).collect();
        let statement = |columns: &str| format!("SELECT {columns} FROM {rest} GROUP BY k, l{limit}");
        let (found, _) = read(&mut self.session, &statement(EXACT), page_size);
        if limit.is_empty() {
            assert_eq!(
                found,
                expected,
                "seed {}: {}, {page_size:?}",
                self.seed,
                statement(EXACT)
            );
        } else {
            assert_eq!(
                found[..],
                expected[..found.len()],
                "seed {}: {}",
                self.seed,
                statement(EXACT)
            );
        }
        let (found, _) = read(&mut self.session, &statement("k, z, avg(f), sum(n)"), page_size);
        let (built, _) = read(
            &mut self.session,
            &statement("k, z, avg(f), sum(n), max(writetime(a))"),
            page_size,
        );
        let built: Vec<Row> = built.into_iter().map(|row| row[..4].to_vec()).collect();
        assert_eq!(
            found,
            built,
            "seed {}: {}, {page_size:?}",
            self.seed,
            statement("k, z")
        );
    }

    fn check_all(&mut self, c_max: u64) {
        self.check("t");
        for k in 0..3 {
            let (from, to) = (self.random.below(c_max), self.random.below(c_max));
            let partition = format!("t WHERE k = {k} AND l = 'x{k}'");
            for rest in [
                String::new(),
                format!(" AND c < {from}"),
                format!(" AND c >= {from} AND c <= {to}"),
                format!(" AND c IN ({from}, {to}, 3)"),
                format!(" AND c > {from} ORDER BY c ASC"),
            ] {
                self.check(&format!("{partition}{rest}"));
            }
            self.check(&format!("t WHERE token(k, l) > token({k}, 'x{k}')"));
        }
        self.check("t WHERE k IN (4, 1, 3) AND l IN ('x1', 'x3', 'x4')");
        self.check("t WHERE i = 1 ALLOW FILTERING");
        for page_size in [None, Some(1), Some(2), Some(100)] {
            let limit = pick(&mut self.random, &["", " LIMIT 2", " PER PARTITION LIMIT 1"]);
            self.check_groups("t", "", page_size);
            self.check_groups("t", limit, page_size);
            self.check_groups("t WHERE k IN (2, 0) AND l IN ('x0', 'x2')", "", page_size);
        }
        for (table, columns, range) in [
            ("one", "k", "one WHERE token(k) > token(5)"),
            ("two", "k, l", "two WHERE token(k, l) > token(5, 'x')"),
        ] {
            self.check_partitions(table, columns);
            self.check_partitions(range, columns);
        }
    }

    /// With one row per partition.
    fn check_partitions(&mut self, rest: &str, columns: &str) {
        self.check_built(
            &format!("count(*), min(a), avg(a), max(k), count(z), {columns}"),
            rest,
        );
        let (rows, _) = read(&mut self.session, &format!("SELECT k, a, z FROM {rest}"), None);
        let found = self.one_row(&format!(
            "SELECT count(*), sum(k), max(a), count(z), max(z) FROM {rest}"
        ));
        let expected = [
            counted(rows.len()),
            totals(&rows, 0, 4)[0].clone(),
            extremes(&rows, 1, false)[1].clone(),
            counted(of_column(&rows, 2).count()),
            extremes(&rows, 2, true)[1].clone(),
        ];
        assert_eq!(found, expected, "seed {}: {rest}", self.seed);
        self.added += rows.len();
    }
}

fn number(name: &str, default: u64) -> u64 {
    let set = std::env::var(name).ok();
    set.map_or(default, |number| number.parse().unwrap())
}

#[test]
fn aggregates_of_rows_where_they_lie_are_those_of_any_other_read() {
    let first = number("AGGREGATE_SEED", 1);
    for seed in first..first + number("AGGREGATE_SEEDS", 3) {
        let mut play = Play::new(seed);
        play.check_all(100);
        play.write_measurements(0, 90);
        play.check_all(100);
        play.disk.flush();
        play.check_all(100);
        // SSTables behind the first one, ones that overlap both, and a memtable.
        play.write_measurements(90, 60);
        play.disk.flush();
        play.check_all(170);
        play.session.script("ALTER TABLE t ADD zz set<bigint>");
        for _ in 0..2 {
            play.write_anything(25, 170);
            play.disk.flush();
            play.check_all(170);
            play.check_built("count(zz), max(zz), sum(a)", "t");
        }
        play.write_anything(15, 170);
        play.check_all(170);
        play.session
            .script("ALTER TABLE t DROP zz; ALTER TABLE t ADD zz set<bigint>");
        play.session
            .script("ALTER TABLE one DROP z; ALTER TABLE one ADD z text");
        play.check_all(170);
        assert!(play.added > 5000, "seed {seed}: {}", play.added);
    }
}

#[test]
fn tombstones_between_rows_that_are_added_where_they_lie_count() {
    let mut play = Play::new(1);
    play.write_measurements(0, 60);
    for c in (3..60).step_by(5) {
        play.session.script(&format!(
            "DELETE FROM t WHERE k = 1 AND l = 'x1' AND c = {c} AND d = 'd'"
        ));
    }
    play.disk.flush();
    let mut count_with = |warn, fail| {
        play.session.limit_tombstones(TombstoneLimits { warn, fail });
        play.session
            .query("SELECT count(*) FROM t WHERE k = 1 AND l = 'x1'")
    };
    assert_eq!(count_with(12, 12), "count\n48\n(1 rows)\n");
    let warned = count_with(11, 12);
    assert!(
        warned.contains("Read 48 live rows and 12 tombstone cells"),
        "{warned}"
    );
    let refused = count_with(11, 11);
    assert!(refused.contains("error"), "{refused}");
}
