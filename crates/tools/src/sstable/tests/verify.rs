//! `verify`: its output and its exit code.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_env::Env;

use super::super::{Command, Files, run_with};
use super::{copied, small_fixtures};

fn verified(env: &Arc<dyn Env>, data: PathBuf) -> (bool, String) {
    let mut out = Vec::new();
    let outcome = run_with(env, &Command::Verify(Files { files: vec![data] }), &mut out);
    (outcome.is_ok(), String::from_utf8(out).unwrap())
}

#[test]
fn whole_files_are_ok_and_damaged_ones_are_named_with_offsets() {
    for fixture in small_fixtures() {
        let (env, data) = copied(&fixture, "");
        let (is_ok, report) = verified(&env, data.clone());
        assert!(is_ok && report.contains(": ok; "), "{report}");

        let mut bytes = env.read_all(&data, 1 << 20).unwrap();
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        env.create_or_truncate(&data).unwrap().append(&bytes).unwrap();
        let (is_ok, report) = verified(&env, data.clone());
        assert!(!is_ok && report.contains("DAMAGED"), "{report}");
        assert!(report.contains("-Data.db: at byte "), "{report}");
    }
}

#[test]
fn missing_components_are_named() {
    let fixture = &small_fixtures()[0];
    for missing in ["Statistics.db", "CompressionInfo.db", "Index.db", "TOC.txt"] {
        let (env, data) = copied(fixture, missing);
        let (is_ok, report) = verified(&env, data);
        assert!(!is_ok && report.contains(missing), "{report}");
    }
}
