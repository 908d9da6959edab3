//! SSTables that Cassandra 5.0.9 wrote, stored beside the project. Tests that use them are skipped if the files are missing.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_env::{Env, RealEnv};

use crate::{ListedSSTable, list_directory};

/// The SSTables of all cases, each with the name of its case and format, such as `tombstones-nb`.
pub(crate) fn tables() -> Vec<(String, ListedSSTable)> {
    let env = real_env();
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/cassandra-5.0");
    let Ok(cases) = env.list(&root) else {
        println!("skipped: no fixtures at {}", root.display());
        return Vec::new();
    };
    let mut all = Vec::new();
    for case in cases.into_iter().filter(|entry| entry.is_dir) {
        let keyspace = root.join(&case.name).join("fx");
        for table in env.list(&keyspace).unwrap_or_default() {
            let found = list_directory(&*env, &keyspace.join(&table.name)).unwrap();
            all.extend(found.into_iter().map(|found| (case.name.clone(), found)));
        }
    }
    all
}

pub(crate) fn real_env() -> Arc<dyn Env> {
    RealEnv::new()
}
