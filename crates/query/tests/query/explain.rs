//! EXPLAIN on an engine: `testdata-engine/*.txt`.
//!
//! In addition to the directives of `testdata`, `flush` flushes memtables, and `cold` reopens everything. Times are left out.

use crate::engine::EngineDisk;
use crate::session::Session;

#[test]
fn selects_are_explained_by_what_they_read() {
    datadriven::walk("testdata-engine", |file| {
        let mut disk = EngineDisk::new();
        let mut session = Session::over(disk.open());
        file.run(|case| match case.directive.as_str() {
            "flush" => {
                disk.flush();
                String::new()
            }
            "cold" => {
                disk.flush();
                session.reconnect(|| disk.reopen());
                String::new()
            }
            _ => without_durations(&session.run(case)),
        });
    });
}

fn without_durations(answer: &str) -> String {
    answer.lines().fold(String::new(), |out, line| {
        let shown = match line.split_once("_micros' | ") {
            Some((step, _)) => format!("{step}_micros' | ..\n"),
            None => format!("{line}\n"),
        };
        out + &shown
    })
}
