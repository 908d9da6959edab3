//! The names of native functions that completion offers.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::sync::Arc;

use ilion_env::MemEnv;
use ilion_query::FUNCTION_NAMES;
use ilion_settings::Settings;
use ilion_shell::{Embedded, How, Session as _};

#[test]
fn every_function_that_is_completed_exists() {
    let settings = Settings {
        directory: "/ilion".into(),
        ..Settings::default()
    };
    let mut session = Embedded::open(Arc::new(MemEnv::new(1)), &settings).unwrap();
    let mut told = |name: &str| {
        let failure = session.execute(
            &format!("SELECT {name}(NULL, NULL, NULL, NULL) FROM system.local"),
            &How::default(),
        );
        failure.map_or_else(|failure| failure.to_string(), |_| String::new())
    };
    assert!(
        told("missing").contains("Unknown function"),
        "{}",
        told("missing")
    );
    for name in FUNCTION_NAMES {
        let told = told(name);
        assert!(
            !told.contains("Unknown function") && !told.contains("line 1"),
            "{name}: {told}"
        );
    }
}
