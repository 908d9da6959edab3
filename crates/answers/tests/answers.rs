//! Ilion answers the scripts of `tests/cql` as the real Cassandra did.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "helpers of tests fail where the test fails"
)]

use std::fmt::Write as _;
use std::path::PathBuf;

use ilion_answers::{Script, all_scripts, check, scripts_with_logins};
use ilion_env::RealEnv;
use ilion_server::{ServerNode, ServerOptions, SuperuserChoice};
use ilion_settings::{Authenticator, Authorizer, Loaded, Settings};

#[test]
fn every_statement_is_answered_as_by_cassandra() {
    replay(&all_scripts().unwrap(), |_| ());
}

#[test]
fn roles_may_do_what_they_may_do_in_cassandra() {
    replay(&scripts_with_logins().unwrap(), |settings| {
        settings.authenticator = Authenticator::Password;
        settings.authorizer = Authorizer::Cassandra;
        settings.auth_bcrypt_work_factor = 4;
        settings.dynamic_data_masking_enabled = true;
    });
}

/// Compares the answers of a node with these settings.
fn replay(scripts: &[PathBuf], adjust: impl FnOnce(&mut Settings)) {
    let directory = tempfile::tempdir().unwrap();
    let mut loaded = Loaded::default();
    // The settings of a stock Cassandra, which gave these answers.
    let compaction = "SizeTieredCompactionStrategy; max_threshold=32; min_threshold=4";
    loaded.set("default_compaction", compaction, String::new).unwrap();
    let mut settings = Settings {
        directory: directory.path().to_owned(),
        native_transport_port: 0,
        ..loaded.settings
    };
    adjust(&mut settings);
    let node = ServerNode::open(RealEnv::new(), &settings).unwrap();
    if node.processor().access().requires_login() {
        let given = [("ILION_SUPERUSER_PASSWORD".into(), "cassandra".into())];
        let superuser = SuperuserChoice::of(&*RealEnv::new(), given).unwrap();
        node.ensure_superuser(&superuser, &settings.directory).unwrap();
    }
    let server = node.serve(&ServerOptions::of(&settings)).unwrap();
    let address = server.address().to_string();
    let (mut count, mut report) = (0, String::new());
    for path in scripts {
        let tally = check(&Script::read(path).unwrap(), &address).unwrap();
        count += tally.statements;
        for one in tally.differences {
            let _ = writeln!(report, "{}:{one}", path.display());
        }
    }
    assert!(count > 0, "there are no scripts");
    assert!(report.is_empty(), "{report}");
}
