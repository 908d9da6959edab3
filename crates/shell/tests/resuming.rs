//! A COPY whose connection breaks, and that is resumed.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::cell::Cell;
use std::fmt::Write as _;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use ilion_env::{Env, MemEnv};
use ilion_protocol::ColumnSpec;
use ilion_settings::Settings;
use ilion_shell::{
    Answer, Embedded, Failure, Format, How, Output, Packing, RowFeed, Session, SessionTarget, Shell,
    ShellSettings, WriteRow,
};

const ROWS: u64 = 5000;
const SOURCE: &str = "/in.csv";
const BAD: &str = "/failed.err";
const PROGRESS: &str = "/import_ks_t_in.csv.progress";
const IMPORT: &str = "COPY ks.t FROM '/in.csv' WITH ERRFILE = '/failed.err'";

/// A session whose connection breaks after a number of rows or pages.
struct Fragile {
    inner: Embedded,
    left: Rc<Cell<u64>>,
}

/// The first rows of a feed.
struct First<'f> {
    rows: &'f mut dyn RowFeed,
    left: u64,
}

impl RowFeed for First<'_> {
    fn next(&mut self) -> Option<WriteRow> {
        self.left = self.left.checked_sub(1)?;
        self.rows.next()
    }

    fn done(&mut self, row: WriteRow, outcome: Result<(), Failure>) {
        self.rows.done(row, outcome);
    }

    fn lost(&mut self, row: WriteRow) {
        self.rows.lost(row);
    }
}

impl Session for Fragile {
    fn execute(&mut self, cql: &str, how: &How) -> Result<Answer, Failure> {
        if cql.starts_with("SELECT k") {
            let left = self.left.get().checked_sub(1);
            self.left
                .set(left.ok_or_else(|| Failure::Lost("it broke".to_owned()))?);
        }
        self.inner.execute(cql, how)
    }

    fn prepare(&mut self, cql: &str) -> Result<Vec<ColumnSpec>, Failure> {
        self.inner.prepare(cql)
    }

    fn write_rows(&mut self, how: &How, packing: &Packing, rows: &mut dyn RowFeed) -> Result<(), Failure> {
        let left = self.left.get();
        let mut first = First { rows, left };
        self.inner.write_rows(how, packing, &mut first)?;
        if left == u64::MAX {
            return Ok(());
        }
        // The server has answered the later of two rows only.
        let under_way = [rows.next(), rows.next()].map(Option::unwrap);
        let [unknown, written] = under_way;
        rows.done(written, Ok(()));
        rows.lost(unknown);
        Err(Failure::Lost("it broke".to_owned()))
    }

    fn log_in(&mut self, role: &str, password: &str) -> Result<(), Failure> {
        self.inner.log_in(role, password)
    }

    fn target(&self) -> SessionTarget {
        self.inner.target()
    }
}

struct Bench {
    env: Arc<MemEnv>,
    left: Rc<Cell<u64>>,
    session: Option<Box<dyn Session>>,
}

impl Bench {
    fn new() -> Self {
        let env = Arc::new(MemEnv::new(1));
        let settings = Settings {
            directory: "/ilion".into(),
            ..Settings::default()
        };
        let left = Rc::new(Cell::new(u64::MAX));
        let session = Fragile {
            inner: Embedded::open(env.clone(), &settings).unwrap(),
            left: left.clone(),
        };
        let mut bench = Self {
            env,
            left,
            session: Some(Box::new(session)),
        };
        bench.run(
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
             CREATE TABLE ks.t (k bigint PRIMARY KEY, v text)",
        );
        bench
    }

    /// Runs a script while the connection lasts this long; returns what is printed.
    fn run_until(&mut self, left: u64, script: &str) -> String {
        self.left.set(left);
        let said = self.run(script);
        self.left.set(u64::MAX);
        said
    }

    fn run(&mut self, script: &str) -> String {
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        let settings = ShellSettings {
            how: How::default(),
            format: Format::Csv,
            is_interactive: false,
        };
        let output = Output::new(&mut out, &mut errors);
        let session = self.session.take().unwrap();
        let mut shell = Shell::new(session, self.env.clone(), output, settings);
        shell
            .run_script("<stdin>", &mut format!("{script};").as_bytes())
            .unwrap();
        self.session = Some(shell.into_session());
        [out, errors]
            .map(|text| String::from_utf8(text).unwrap())
            .concat()
    }

    fn write(&self, path: &str, text: &str) {
        self.write_bytes(path, text.as_bytes());
    }

    fn write_bytes(&self, path: &str, bytes: &[u8]) {
        let mut file = self.env.create_or_truncate(Path::new(path)).unwrap();
        file.append(bytes).unwrap();
    }

    fn read_bytes(&self, path: &str) -> Vec<u8> {
        self.env.read_all(Path::new(path), 1 << 30).unwrap()
    }

    fn read(&self, path: &str) -> String {
        String::from_utf8(self.read_bytes(path)).unwrap()
    }

    fn has(&self, path: &str) -> bool {
        self.env.exists(Path::new(path))
    }

    fn count(&mut self) -> String {
        let said = self.run("SELECT count(*) FROM ks.t");
        // The first line is the name of the column; a warning follows.
        said.lines().nth(1).unwrap().to_owned()
    }
}

/// A file in which every thousandth record is bad.
fn source() -> String {
    let mut text = String::new();
    for key in 0..ROWS {
        match key % 1000 {
            999 => writeln!(text, "bad {key},x").unwrap(),
            _ => writeln!(text, "{key},\"two\nlines {key}\"").unwrap(),
        }
    }
    text
}

#[test]
fn an_import_goes_on_at_the_first_row_that_is_not_known_to_be_written() {
    let mut bench = Bench::new();
    bench.write(SOURCE, &source());
    let said = bench.run_until(2500, IMPORT);
    assert!(
        said.contains("it broke. It is not known whether 1 rows were written."),
        "{said}"
    );
    // 2500 rows were written and the two bad records are between them; a good record has two lines.
    assert!(
        said.contains("RESUME = true continues behind line 5002"),
        "{said}"
    );
    assert!(bench.has(PROGRESS));

    let said = bench.run(&format!("{IMPORT} AND RESUME = true"));
    assert!(said.contains("Resuming behind line 5002."), "{said}");
    // The row behind the unknown one is written a second time.
    assert!(said.contains("2495 rows imported"), "{said}");
    assert_eq!(bench.count(), "4995");
    let bad: String = (1..=5).map(|n| format!("bad {},x\n", n * 1000 - 1)).collect();
    assert_eq!(bench.read(BAD), bad);
    assert!(!bench.has(PROGRESS), "the import is complete");
}

#[test]
fn an_import_is_not_resumed_with_another_file_or_statement() {
    let mut bench = Bench::new();
    let original = source();
    bench.write(SOURCE, &original);
    bench.run_until(2500, IMPORT);
    let resume = format!("{IMPORT} AND RESUME = true");

    bench.write(SOURCE, &original.replacen("lines 7", "lines 8", 1));
    let said = bench.run(&resume);
    assert!(said.contains("its first 5002 lines are not the same"), "{said}");
    bench.write(SOURCE, &format!("{original}5000,x\n"));
    let said = bench.run(&resume);
    assert!(said.contains("bytes and has"), "{said}");
    bench.write(SOURCE, &original);
    let said = bench.run(&format!("{resume} AND HEADER = true"));
    assert!(said.contains("its HEADER is 'false', not 'true'"), "{said}");
    let said = bench.run(&resume.replace("ks.t", "ks.t (v, k)"));
    assert!(said.contains("its statement is 'INSERT INTO"), "{said}");
    bench.write(PROGRESS, "{");
    let said = bench.run(&resume);
    assert!(said.contains("is damaged"), "{said}");
    assert_eq!(bench.count(), "2500");

    // Without RESUME it begins anew.
    let said = bench.run(IMPORT);
    assert!(
        said.contains("begins anew") && said.contains("4995 rows imported"),
        "{said}"
    );
    let said = bench.run(&resume);
    assert!(said.contains("There is nothing to resume"), "{said}");
}

#[test]
fn an_export_goes_on_behind_its_last_page() {
    let mut bench = Bench::new();
    bench.write(SOURCE, &source());
    bench.run(IMPORT);
    let export = "COPY ks.t TO '/out.csv' WITH PAGESIZE = 100 AND HEADER = true";
    bench.run(export);
    let whole = bench.read("/out.csv");
    assert_eq!(whole.lines().count(), 1 + 2 * 4995);

    let said = bench.run_until(7, export);
    assert!(
        said.contains("The file is not complete: ConnectionException: it broke"),
        "{said}"
    );
    assert!(said.contains("RESUME = true continues behind row 700."), "{said}");
    // A power loss can leave more than the progress knows.
    let partial = bench.read("/out.csv");
    bench.write("/out.csv", &format!("{partial}12,half a li"));
    let said = bench.run(&format!("{export} AND RESUME = true"));
    assert!(said.contains("4295 rows exported"), "{said}");
    assert_eq!(bench.read("/out.csv"), whole);
    assert!(!bench.has("/out.csv.progress"), "the export is complete");

    bench.run_until(7, export);
    bench.write("/out.csv", "short");
    let said = bench.run(&format!("{export} AND RESUME = true"));
    assert!(said.contains("has changed since"), "{said}");
}

#[cfg(feature = "columnar")]
#[test]
fn an_import_of_a_parquet_file_goes_on_at_the_first_row_that_is_not_known_to_be_written() {
    let mut bench = Bench::new();
    bench.write(SOURCE, &source());
    bench.run(IMPORT);
    bench.run(
        "INSERT INTO ks.t (k, v) VALUES (100000, 'large'); COPY ks.t TO '/in.parquet'; DROP TABLE ks.t;
         CREATE TABLE ks.t (k smallint PRIMARY KEY, v text)",
    );
    let import = "COPY ks.t FROM '/in.parquet' WITH ERRFILE = '/rows.err' AND SKIPROWS = 3";
    let resume = format!("{import} AND RESUME = true");
    let progress = "/import_ks_t_in.parquet.progress";

    let said = bench.run_until(2500, import);
    assert!(
        said.contains("it broke. It is not known whether 1 rows were written."),
        "{said}"
    );
    assert!(bench.has(progress));
    assert_eq!(bench.count(), "2500");
    let (_, place) = said
        .split_once("The same statement with RESUME = true continues ")
        .unwrap();
    let place = place.lines().next().unwrap().to_owned();

    let original = bench.read_bytes("/in.parquet");
    let mut changed = original.clone();
    let written_by = changed.windows(6).rposition(|bytes| bytes == b"ilion ");
    changed[written_by.unwrap()] = b'I';
    bench.write_bytes("/in.parquet", &changed);
    let said = bench.run(&resume);
    assert!(said.contains("its footer is not the same"), "{said}");
    bench.write_bytes("/in.parquet", &original);

    let said = bench.run(&resume);
    assert!(said.contains(&format!("Resuming {place}")), "{said}");
    // Of 4996 rows, three were skipped, one is too large, 2500 were known to be written.
    assert!(said.contains("2492 rows imported"), "{said}");
    assert_eq!(bench.count(), "4992");
    assert_eq!(bench.read("/rows.err"), "100000,large\n");
    assert!(!bench.has(progress), "the import is complete");
}

#[cfg(feature = "columnar")]
fn rows_of(bench: &Bench, path: &str) -> Vec<Vec<ilion_columnar::Cell>> {
    let file = bench.env.open_read(Path::new(path)).unwrap();
    let columns = [
        ("k", ilion_types::CqlType::BigInt),
        ("v", ilion_types::CqlType::Text),
    ];
    let columns = columns.map(|(name, cql_type)| (name.to_owned(), cql_type));
    let opened = ilion_columnar::RowReader::open(file).unwrap();
    let mut reader = opened.read(columns.to_vec(), 0).unwrap();
    let mut rows = Vec::new();
    while let Some(page) = reader.next_rows().unwrap() {
        rows.extend(page);
    }
    rows
}

#[cfg(feature = "columnar")]
#[test]
fn an_export_to_a_parquet_file_goes_on_behind_its_last_row_group() {
    let mut bench = Bench::new();
    let rows: String = (0..120_000).map(|key| format!("{key},text {key}\n")).collect();
    bench.write(SOURCE, &rows);
    bench.run(IMPORT);
    let export = "COPY ks.t TO '/out.parquet' WITH PAGESIZE = 3000";
    let resume = format!("{export} AND RESUME = true");
    bench.run(export);
    let whole = rows_of(&bench, "/out.parquet");
    assert_eq!(whole.len(), 120_000);

    // A row group takes 100000 rows at most, and 33 pages are that many.
    let said = bench.run_until(38, export);
    assert!(
        said.contains("RESUME = true continues behind row 99000."),
        "{said}"
    );
    let said = bench.run_until(1, &resume);
    assert!(
        said.contains("RESUME = true continues behind row 99000."),
        "{said}"
    );
    let said = bench.run(&resume);
    assert!(said.contains("21000 rows exported"), "{said}");
    assert!(rows_of(&bench, "/out.parquet") == whole, "as without a break");
    assert!(!bench.has("/out.parquet.progress"), "the export is complete");

    bench.run_until(38, export);
    let said = bench.run(&format!("{resume} AND FORMAT = csv"));
    assert!(said.contains("its FORMAT is 'parquet', not 'csv'"), "{said}");
    let progress = bench.read("/out.parquet.progress");
    let (before, footer) = progress.split_once("\"footer\":\"").unwrap();
    bench.write(
        "/out.parquet.progress",
        &format!("{before}\"footer\":\"00{footer}"),
    );
    let said = bench.run(&resume);
    assert!(said.contains("The file is not complete"), "{said}");
}
