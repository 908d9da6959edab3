//! Plain rows that are answered in place equal those of any other read.

use ilion_env::Seeded;
use ilion_query::{ExecuteOptions, Outcome, ResultSet};

use crate::engine::EngineDisk;
use crate::session::Session;

pub type Row = Vec<Option<Vec<u8>>>;

fn rows_of(result: &ResultSet) -> Vec<Row> {
    let cells = result.cells.clone().into_vec();
    let mut rest = &cells[..];
    let mut next = || {
        let (len, after) = rest.split_first_chunk::<4>().unwrap();
        let len = usize::try_from(i32::from_be_bytes(*len)).ok();
        let (value, after) = after.split_at(len.unwrap_or(0));
        rest = after;
        len.map(|_| value.to_vec())
    };
    let width = result.columns.len();
    let row = |_| (0..width).map(|_| next()).collect();
    (0..result.row_count).map(row).collect()
}

/// All rows, page by page, and the number of pages.
pub fn read(session: &mut Session, statement: &str, page_size: Option<u32>) -> (Vec<Row>, usize) {
    let (mut rows, mut pages, mut paging_state) = (Vec::new(), 0, None);
    loop {
        let options = ExecuteOptions {
            page_size,
            paging_state,
            ..ExecuteOptions::default()
        };
        let executed = session.execute_with(statement, &options).unwrap();
        let Outcome::Rows(result) = executed.outcome else {
            panic!("{statement} gives rows");
        };
        rows.extend(rows_of(&result));
        pages += 1;
        paging_state = result.paging_state.map(Into::into);
        if paging_state.is_none() {
            return (rows, pages);
        }
    }
}

/// Compares plain columns with the same columns beside an expression, for which rows are built.
fn check(session: &mut Session, columns: &str, rest: &str, page_size: Option<u32>) -> usize {
    let found = read(session, &format!("SELECT {columns} FROM {rest}"), page_size);
    let mut expected = read(
        session,
        &format!("SELECT {columns}, writetime(a) FROM {rest}"),
        page_size,
    );
    expected.0.iter_mut().for_each(|row| drop(row.pop()));
    assert!(
        found == expected,
        "SELECT {columns} FROM {rest}, {page_size:?}: {} {}",
        found.0.len(),
        expected.0.len()
    );
    found.0.len()
}

fn write(session: &mut Session, random: &mut Seeded, table: &str, keys: u64) {
    for _ in 0..keys {
        let (k, number) = (random.below(keys), random.below(1 << 40));
        let statement = match random.below(40) {
            0 => format!("DELETE FROM {table} WHERE k = 0x{k:08x} AND l = 'x{k}'"),
            1 => format!("DELETE a FROM {table} WHERE k = 0x{k:08x} AND l = 'x{k}'"),
            2 => format!("INSERT INTO {table} (k, l, a) VALUES (0x{k:08x}, 'x{k}', {number}) USING TTL 1000"),
            3 => format!("UPDATE {table} SET c = 'c{number}' WHERE k = 0x{k:08x} AND l = 'x{k}'"),
            4 => format!("INSERT INTO {table} (k, l, b) VALUES (0x{k:08x}, 'x{k}', '')"),
            5 => format!("INSERT INTO {table} (k, l) VALUES (0x{k:08x}, 'x{k}')"),
            _ => format!(
                "INSERT INTO {table} (k, l, a, b) VALUES (0x{k:08x}, 'x{k}', {number}, 'some text {number}')"
            ),
        };
        session.script(&statement);
    }
}

fn run(seed: u64, create: &str, dropped: Option<&str>) {
    let mut disk = EngineDisk::new();
    let mut session = Session::over(disk.open());
    let mut random = Seeded::new(seed);
    session.script(
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}; USE ks",
    );
    session.script(create);
    // One large SSTable, small ones beside it, and a memtable.
    for keys in [700, 60, 20, 10] {
        write(&mut session, &mut random, "t", keys);
        if keys > 10 {
            disk.flush();
        }
    }
    if let Some(dropped) = dropped {
        session.script(dropped);
    }
    let mut count = 0;
    for columns in ["k, l, a, b", "a", "b, k", "l"] {
        let all = check(&mut session, columns, "t", None);
        assert!(all > 300, "{all}");
        for page_size in [1, 7, 100, 5000] {
            count += check(&mut session, columns, "t", Some(page_size));
            check(&mut session, columns, "t PER PARTITION LIMIT 1", Some(page_size));
        }
        for _ in 0..10 {
            let limit = random.below(200) + 1;
            check(&mut session, columns, &format!("t LIMIT {limit}"), Some(50));
        }
    }
    assert!(count > 4000);
}

#[test]
fn rows_answered_where_they_lie_are_those_of_any_other_read() {
    run(
        1,
        "CREATE TABLE t (k blob, l text, a bigint, b text, c text, PRIMARY KEY ((k, l)))",
        None,
    );
    run(
        2,
        "CREATE TABLE t (k blob, l text, a bigint, b text, c text, PRIMARY KEY ((k, l)))",
        Some("ALTER TABLE t DROP c"),
    );
}

fn write_rows(session: &mut Session, random: &mut Seeded, count: u64, first: u64) {
    for _ in 0..count {
        let (k, c) = (random.below(6), first + random.below(120));
        let number = random.below(1 << 40);
        let partition = format!("k = {k} AND l = 'x{k}'");
        let columns = format!("{k}, 'x{k}', {c}, 'd{}'", c % 3);
        let row = format!("{partition} AND c = {c} AND d = 'd{}'", c % 3);
        let statement = match random.below(60) {
            0 => format!("DELETE FROM t WHERE {row}"),
            1 => format!("DELETE a FROM t WHERE {row}"),
            2 => format!("DELETE FROM t WHERE {partition} AND c > {c} AND c < {}", c + 3),
            3 => format!("INSERT INTO t (k, l, c, d, a) VALUES ({columns}, {number}) USING TTL 1000"),
            4 => format!("UPDATE t SET b = 'b{number}' WHERE {row}"),
            5 => format!("INSERT INTO t (k, l, c, d, b) VALUES ({columns}, '')"),
            6 => format!("INSERT INTO t (k, l, c, d) VALUES ({columns})"),
            7 => format!("INSERT INTO t (k, l, c, d, m) VALUES ({columns}, {{{number}}})"),
            8 => format!("UPDATE t SET s = 's{number}' WHERE {partition}"),
            9 => format!(
                "INSERT INTO t (k, l, c, d, b) VALUES ({columns}, '{}')",
                "y".repeat(5000)
            ),
            10 if c % 16 == 0 => format!("DELETE FROM t WHERE {partition}"),
            _ => {
                format!("INSERT INTO t (k, l, c, d, a, b) VALUES ({columns}, {number}, 'some text {number}')")
            }
        };
        session.script(&statement);
    }
}

pub fn pick<T: Copy>(random: &mut Seeded, choices: &[T]) -> T {
    choices[usize::try_from(random.below(choices.len() as u64)).unwrap()]
}

fn check_rows(session: &mut Session, random: &mut Seeded) -> usize {
    let mut count = 0;
    for columns in ["k, l, c, d, s, a, b, m", "a", "d, c", "s, b, k"] {
        let page_sizes = [None, Some(1), Some(7), Some(100), Some(5000)];
        count += check(session, columns, "t", None);
        count += check(session, columns, "t", pick(random, &page_sizes[1..]));
        let mut check = |rest: &str, random: &mut Seeded| {
            let page_size = pick(random, &page_sizes);
            check(session, columns, rest, page_size);
        };
        for limit in [1, 3, 50] {
            check(&format!("t PER PARTITION LIMIT {limit}"), random);
        }
        let (k, from, limit) = (random.below(6), random.below(200), 1 + random.below(150));
        let partition = format!("t WHERE k = {k} AND l = 'x{k}'");
        for rest in [
            String::new(),
            format!(" LIMIT {limit}"),
            format!(" PER PARTITION LIMIT {limit}"),
            format!(" AND c < {from}"),
            format!(" AND c >= {from} AND c < {}", from + 40),
            format!(" AND c = {from}"),
            format!(" AND c IN ({from}, {limit}, 3, 5)"),
            format!(" AND c > {from} ORDER BY c ASC"),
            " ORDER BY c ASC".to_owned(),
        ] {
            check(&format!("{partition}{rest}"), random);
        }
        let keys = "t WHERE k IN (4, 1, 3) AND l IN ('x1', 'x3', 'x4')";
        check(&format!("{keys} LIMIT {limit}"), random);
        let range = format!("t WHERE token(k, l) > token({k}, 'x{k}') LIMIT {limit}");
        check(&range, random);
    }
    count
}

/// Rows in one SSTable, in several that do not overlap, and in several with a memtable.
#[test]
fn rows_of_wide_partitions_are_answered_alike_wherever_they_lie() {
    for (seed, is_in_turn) in [(5, true), (6, false)] {
        let mut disk = EngineDisk::new();
        let mut session = Session::over(disk.open());
        let mut random = Seeded::new(seed);
        session.script(
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}; USE ks;
             CREATE TABLE t (k int, l text, c int, d text, s text static, a bigint, b text, m set<bigint>,
             PRIMARY KEY ((k, l), c, d)) WITH CLUSTERING ORDER BY (c DESC, d ASC)",
        );
        write_rows(&mut session, &mut random, 800, 0);
        disk.flush();
        assert!(check_rows(&mut session, &mut random) > 2000);
        for part in 0..2 {
            let first = if is_in_turn { 120 * (1 + part) } else { 0 };
            write_rows(&mut session, &mut random, 150, first);
            disk.flush();
        }
        assert!(check_rows(&mut session, &mut random) > 2000);
        write_rows(&mut session, &mut random, 30, 0);
        assert!(check_rows(&mut session, &mut random) > 2000);
        session.script("ALTER TABLE t DROP b; ALTER TABLE t ADD b text");
        assert!(check_rows(&mut session, &mut random) > 2000);
    }
}

/// Measurements: nearly all rows have the same layout, this many are answered at once.
#[test]
fn rows_laid_out_alike_are_answered_as_any_other_read_finds_them() {
    let mut disk = EngineDisk::new();
    let mut session = Session::over(disk.open());
    let mut random = Seeded::new(9);
    session.script(
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}; USE ks;
         CREATE TABLE one (k int PRIMARY KEY, a bigint, b double);
         CREATE TABLE two (k int, l int, a bigint, b double, PRIMARY KEY ((k, l)));
         CREATE TABLE wide (k int, s text static, c int, a bigint, b double, PRIMARY KEY (k, c));",
    );
    for c in 0..300 {
        let (a, b) = (random.below(1 << 40), random.below(1000));
        let b = match random.below(50) {
            0 => "null".to_owned(),
            _ => b.to_string(),
        };
        session.script(&format!(
            "INSERT INTO one (k, a, b) VALUES ({c}, {a}, {b}); INSERT INTO two (k, l, a, b) VALUES ({c}, 1, {a}, {b});"
        ));
        for k in 0..3 {
            session.script(&format!(
                "INSERT INTO wide (k, c, a, b) VALUES ({k}, {c}, {a}, {b})"
            ));
        }
    }
    session.script("UPDATE wide SET s = 'static' WHERE k = 1");
    disk.flush();
    for added in [
        "",
        "ALTER TABLE one ADD e int; ALTER TABLE two ADD e int; ALTER TABLE wide ADD e int",
    ] {
        session.script(added);
        let e = if added.is_empty() { "" } else { ", e" };
        for page_size in [None, Some(1), Some(7), Some(100)] {
            for limit in ["", " LIMIT 1", " LIMIT 11", " LIMIT 200"] {
                for columns in ["k, a, b", "b", "a, k"] {
                    for table in ["one", "two"] {
                        check(
                            &mut session,
                            &format!("{columns}{e}"),
                            &format!("{table}{limit}"),
                            page_size,
                        );
                    }
                }
                check(
                    &mut session,
                    &format!("l, k, a{e}"),
                    &format!("two{limit}"),
                    page_size,
                );
                for columns in ["k, c, a, b", "s, b", "c, s, k"] {
                    let columns = format!("{columns}{e}");
                    for rest in [
                        "",
                        " WHERE k = 1",
                        " WHERE k = 2 AND c >= 20 AND c < 77",
                        " PER PARTITION LIMIT 9",
                    ] {
                        check(&mut session, &columns, &format!("wide{rest}{limit}"), page_size);
                    }
                }
            }
        }
    }
    assert_eq!(check(&mut session, "k, c", "wide", None), 900);
}

/// With this many reads, SSTables are found by their token bits and opened late.
#[test]
fn ranges_over_many_sstables_end_where_they_are_to() {
    let mut disk = EngineDisk::new();
    let mut session = Session::over(disk.open());
    let mut random = Seeded::new(4);
    session.script(
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}; USE ks;
         CREATE TABLE t (k int PRIMARY KEY, a text)",
    );
    for part in 0..8 {
        for key in (part..300).step_by(if part == 0 { 1 } else { 40 }) {
            session.script(&format!("INSERT INTO t (k, a) VALUES ({key}, 'text of {part}')"));
        }
        disk.flush();
    }
    for _ in 0..60 {
        let (from, to) = (random.below(300), random.below(300));
        for (above, below) in [(">", "<="), (">=", "<")] {
            let range = format!("t WHERE token(k) {above} token({from}) AND token(k) {below} token({to})");
            check(&mut session, "k, a", &range, Some(40));
            check(&mut session, "a", &range, None);
            let limit = random.below(5) + 1;
            check(&mut session, "k", &format!("{range} LIMIT {limit}"), None);
        }
    }
    for key in 0..400 {
        let (rows, _) = read(&mut session, &format!("SELECT a FROM t WHERE k = {key}"), None);
        assert_eq!(rows.len(), usize::from(key < 300), "{key}");
    }
}
