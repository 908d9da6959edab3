//! Statements and their answers, in the files of `testdata`.
//!
//! ```text
//! cql [page=N] [timestamp=MICROS] [now=SECS] [consistency=CODE] [types]
//! SELECT ..; INSERT ..               all answers, except `ok` of all but the last statement
//! ----
//! k | v                              names of the columns (with `types`: and their types)
//! 1 | 'x'
//! (1 rows)
//!
//! values                             a statement in the first line, values of its markers in the others
//! prepare name=n [keyspace=k]        stores the prepared statement under a name
//! execute name=n [..as cql]          a line of values for each execution: `1, 'x', null, unset()` or `{k: 1}`
//! page size=N                        one SELECT, page after page
//! batch kind=logged [..as cql]       lines: `cql STATEMENT`, or `NAME VALUES` of a prepared statement
//! clock secs=N                       moves the clock
//! access [network]                   passwords and permissions from here on, as the superuser `cassandra`
//! as role=r                          logs in; every role has its name for a password (or prints why it cannot)
//! anonymous                          as a client that has not logged in
//! grants                             for each statement: the single grants with which `bob` may execute it
//! options batch_warn=N batch_fail=N  a new processor with these limits (also in_partitions, in_slices, page_bytes,
//!                                    masking=true)
//! dump table=ks.t                    everything that is stored, including tombstones
//! ```
//!
//! Each file starts with an empty store. `REWRITE=1 cargo test -p ilion-query` writes the answers; read the diff.

#![expect(clippy::unwrap_used, reason = "a mistake in a test file is to stop the test")]
#![expect(clippy::expect_used, reason = "a mistake in a test file is to stop the test")]

mod access_model;
mod clock;
mod concurrent;
mod ddl_law;
mod engine;
mod explain;
mod guardrails;
mod hostile;
mod index_laws;
mod index_life;
mod index_stress;
mod interrupted_build;
mod large_rows;
mod plain;
mod plain_aggregates;
mod print;
mod processor;
mod read_timeouts;
mod row_cache;
mod session;
mod slow_changes;
mod store;
mod values;
mod vectors;
mod views;
mod write_errors;

use engine::EngineDisk;
use session::Session;

#[test]
fn statements_answer_what_the_files_say() {
    datadriven::walk("testdata", |file| {
        let mut session = Session::in_memory();
        file.run(|case| session.run(case));
    });
}

/// Between statements the data is flushed, compacted, or read again after a restart.
#[test]
fn answers_are_the_same_wherever_the_data_is() {
    if std::env::var_os("REWRITE").is_some() {
        return;
    }
    datadriven::walk("testdata", |file| {
        let mut plain = Session::in_memory();
        let mut disk = EngineDisk::new();
        let mut moved = Session::over(disk.open());
        file.run(|case| {
            let expected = plain.run(&mut case.clone());
            if case.directive != "dump" && !case.input.starts_with("EXPLAIN") {
                let answer = moved.run(case);
                assert_eq!(
                    engine::without_times(&answer),
                    engine::without_times(&expected),
                    "{}",
                    case.input
                );
                disk.move_data(&mut moved);
            }
            expected
        });
    });
}
