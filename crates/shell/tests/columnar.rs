//! Parquet and Arrow files: COPY, results, and a program that was built without them.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::path::Path;
use std::sync::Arc;

use ilion_env::{Env, MemEnv};
use ilion_settings::Settings;
use ilion_shell::{Embedded, Format, How, Output, Session, Shell, ShellSettings};

struct Bench {
    env: Arc<MemEnv>,
    session: Option<Box<dyn Session>>,
}

impl Bench {
    fn new() -> Self {
        let env = Arc::new(MemEnv::new(1));
        let settings = Settings {
            directory: "/ilion".into(),
            ..Settings::default()
        };
        let session = Embedded::open(env.clone(), &settings).unwrap();
        let mut bench = Self {
            env,
            session: Some(Box::new(session)),
        };
        bench.run(
            "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
             USE ks;
             CREATE TABLE t (k int PRIMARY KEY, v text, l list<int>, m map<text, double>, d duration);
             INSERT INTO t (k, v, l, m, d) VALUES (1, 'one', [1, 2], {'a': 0.5}, 1d2h);
             INSERT INTO t (k) VALUES (2);
             CREATE TABLE copy (k int PRIMARY KEY, v text, l list<int>, m map<text, double>, d duration);
             CREATE TABLE narrow (k tinyint PRIMARY KEY, v text)",
        );
        bench
    }

    fn run(&mut self, script: &str) -> String {
        let bytes = self.print(script, Format::Table);
        String::from_utf8(bytes).unwrap()
    }

    /// What is printed, errors last.
    fn print(&mut self, script: &str, format: Format) -> Vec<u8> {
        let (mut out, mut errors) = (Vec::new(), Vec::new());
        let settings = ShellSettings {
            how: How {
                page_size: Some(1),
                ..How::default()
            },
            format,
            is_interactive: false,
        };
        let output = Output::new(&mut out, &mut errors);
        let session = self.session.take().unwrap();
        let mut shell = Shell::new(session, self.env.clone(), output, settings);
        let script = format!("USE system; {script};");
        shell.run_script("<stdin>", &mut script.as_bytes()).unwrap();
        self.session = Some(shell.into_session());
        [out, errors].concat()
    }

    #[cfg(feature = "columnar")]
    fn file(&self, path: &str) -> Vec<u8> {
        self.env.read_all(Path::new(path), 1 << 30).unwrap()
    }
}

fn is_parquet(bytes: &[u8]) -> bool {
    bytes.starts_with(b"PAR1") && bytes.ends_with(b"PAR1")
}

fn is_arrow(bytes: &[u8]) -> bool {
    bytes.starts_with(b"ARROW1") && bytes.ends_with(b"ARROW1")
}

#[cfg(feature = "columnar")]
#[test]
fn a_table_comes_back_from_a_parquet_file() {
    let mut bench = Bench::new();
    let said = bench.run("COPY ks.t TO '/t.parquet'");
    assert!(said.contains("2 rows exported"), "{said}");
    assert!(is_parquet(&bench.file("/t.parquet")));
    let said = bench.run("COPY ks.copy FROM '/t.parquet'");
    assert!(said.contains("2 rows imported"), "{said}");
    let rows = bench.run("SELECT * FROM ks.t");
    assert_eq!(bench.run("SELECT * FROM ks.copy"), rows);
    assert!(rows.contains("1d2h"), "{rows}");

    // The name of a file need not say what it is, and columns are found by their names.
    bench.run("COPY ks.t (v, k) TO '/file' WITH FORMAT = parquet; TRUNCATE ks.copy");
    let said = bench.run("COPY ks.copy FROM '/file' WITH FORMAT = parquet AND MAXROWS = 1 AND SKIPROWS = 1");
    assert!(
        said.contains("with columns [v, k]") && said.contains("1 rows imported"),
        "{said}"
    );
}

#[cfg(feature = "columnar")]
#[test]
fn rows_that_do_not_fit_go_into_the_file_of_failed_rows() {
    let mut bench = Bench::new();
    bench.run("INSERT INTO ks.t (k, v) VALUES (1000, 'large, too')");
    bench.run("COPY ks.t (k, v) TO '/t.parquet'");
    let said = bench.run("COPY ks.narrow FROM '/t.parquet' WITH ERRFILE = '/bad'");
    assert!(said.contains("2 rows imported"), "{said}");
    assert!(
        said.contains("Failed to import row ") && said.contains(": k: "),
        "{said}"
    );
    assert_eq!(bench.file("/bad"), b"1000,\"large, too\"\n");
}

#[cfg(feature = "columnar")]
#[test]
fn wrong_copies_of_parquet_files_say_what_is_wrong() {
    let mut bench = Bench::new();
    bench.run("COPY ks.t TO '/t.parquet'; COPY ks.t TO '/t.csv'; COPY ks.t TO '/t.arrow'");
    assert!(is_arrow(&bench.file("/t.arrow")));
    for (copy, words) in [
        (
            "ks.narrow FROM '/t.parquet'",
            "which is in the file: name the columns",
        ),
        (
            "ks.narrow (k, v) FROM '/missing.parquet'",
            "Could not read '/missing.parquet'",
        ),
        (
            "ks.t FROM '/t.csv' WITH FORMAT = parquet",
            "Could not read '/t.csv'",
        ),
        (
            "ks.t FROM '/t.parquet' WITH HEADER = true",
            "HEADER is an option for CSV files",
        ),
        (
            "ks.t FROM '/t.parquet' WITH RESUME = true",
            "There is nothing to resume",
        ),
        (
            "ks.t TO '/t.arrow' WITH RESUME = true",
            "COPY TO cannot continue an Arrow file",
        ),
        ("ks.t FROM '/t.arrow'", "CSV and Parquet, not Arrow"),
        ("ks.t TO STDOUT WITH FORMAT = parquet", "writes CSV only"),
        ("ks.t FROM '/t' WITH FORMAT = xml", "csv, parquet or arrow"),
    ] {
        let said = bench.run(&format!("COPY {copy}"));
        assert!(said.contains(words), "{copy}: {said}");
    }
    bench.run("COPY ks.t (k) TO '/k.parquet'");
    let said = bench.run("COPY ks.t (k, v) FROM '/k.parquet'");
    assert!(said.contains("the file has no column v"), "{said}");
}

#[cfg(feature = "columnar")]
#[test]
fn a_result_is_a_file_on_standard_output_or_in_a_captured_file() {
    let mut bench = Bench::new();
    let bytes = bench.print("SELECT * FROM ks.t", Format::Parquet);
    assert!(is_parquet(&bytes));
    assert!(is_arrow(&bench.print("SELECT * FROM ks.t", Format::Arrow)));
    let said = bench.print(
        "CAPTURE '/r.parquet'\nSELECT k, v FROM ks.t; SELECT k FROM ks.t",
        Format::Parquet,
    );
    assert!(
        String::from_utf8(said)
            .unwrap()
            .contains("'/r.parquet' is not empty")
    );
    assert!(is_parquet(&bench.file("/r.parquet")));
    let said = bench.run("COPY ks.narrow FROM '/r.parquet'");
    assert!(said.contains("2 rows imported"), "{said}");
    let twice = bench.print("SELECT k FROM ks.t; SELECT k FROM ks.t", Format::Parquet);
    assert!(String::from_utf8_lossy(&twice).contains("there was one already"));
}

#[cfg(not(feature = "columnar"))]
#[test]
fn a_program_without_these_formats_says_how_to_get_them() {
    let mut bench = Bench::new();
    for script in [
        "COPY ks.t TO '/t.parquet'",
        "COPY ks.t FROM '/t.parquet'",
        "COPY ks.t TO '/t.arrow'",
        "FORMAT parquet\n",
    ] {
        let said = bench.run(script);
        assert!(said.contains("--features columnar"), "{script}: {said}");
    }
    assert!(!bench.env.exists(Path::new("/t.parquet")));
    let said = bench.print("SELECT k FROM ks.t", Format::Arrow);
    assert!(!is_arrow(&said) && !is_parquet(&said));
    assert!(String::from_utf8(said).unwrap().contains("--features columnar"));
}
