//! Ilion answers the scripts of `tests/cql` as the real Cassandra did.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail where the test fails"
)]

use std::fmt::Write as _;

use ilion_answers::{Script, all_scripts, check};
use ilion_env::RealEnv;
use ilion_server::settings::{Loaded, Settings};
use ilion_server::{Node, ServerOptions};

#[test]
fn every_statement_is_answered_as_by_cassandra() {
    let directory = tempfile::tempdir().unwrap();
    let mut loaded = Loaded::default();
    // The settings of a stock Cassandra, which gave these answers.
    let compaction = "SizeTieredCompactionStrategy; max_threshold=32; min_threshold=4";
    loaded.set("default_compaction", compaction, String::new).unwrap();
    let settings = Settings {
        directory: directory.path().to_owned(),
        native_transport_port: 0,
        ..loaded.settings
    };
    let node = Node::open(RealEnv::new(), &settings).unwrap();
    let server = node.serve(&ServerOptions::of(&settings)).unwrap();
    let address = server.address().to_string();
    let (mut count, mut report) = (0, String::new());
    for path in all_scripts().unwrap() {
        let tally = check(&Script::read(&path).unwrap(), &address).unwrap();
        count += tally.statements;
        for one in tally.differences {
            let _ = writeln!(report, "{}:{one}", path.display());
        }
    }
    assert!(count > 0, "there are no scripts");
    assert!(report.is_empty(), "{report}");
}
