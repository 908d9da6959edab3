//! Compares the answers of a server with those of all scripts.

use std::fmt::Write as _;
use std::path::Path;

use ilion_answers::{Difference, Replicas, Script, all_scripts, check_replicas};
use ilion_coordinator::{PageSize, ReadOptions};
use ilion_settings::{Loaded, Settings};

/// Statements of scripts that are not about views, but need one, which a cluster refuses.
const VIEW_STATEMENTS: usize = 10;

/// The settings of a node below a directory, as those of the stock Cassandra that gave the answers.
pub(crate) fn settings(directory: &Path) -> Settings {
    let mut loaded = Loaded::default();
    let compaction = "SizeTieredCompactionStrategy; max_threshold=32; min_threshold=4";
    loaded.set("default_compaction", compaction, String::new).unwrap();
    Settings {
        directory: directory.to_owned(),
        native_transport_port: 0,
        ..loaded.settings
    }
}

/// Small pages, so that many reads have several.
pub(crate) fn small_pages() -> ReadOptions {
    let page = PageSize {
        rows: 3,
        bytes: 1 << 20,
    };
    ReadOptions {
        page_first: page,
        page_max: PageSize { rows: 50, ..page },
        ..ReadOptions::default()
    }
}

/// Sends all scripts to a coordinator of a cluster. Fails where it answers otherwise.
pub(crate) fn all_answers_are_right(address: &str, replicas: Replicas) {
    let (mut count, mut of_views, mut report) = (0, 0, String::new());
    for path in all_scripts().unwrap() {
        if is_about_views(&path) {
            continue;
        }
        let tally = check_replicas(&Script::read(&path).unwrap(), address, replicas).unwrap();
        count += tally.statements;
        for one in tally.differences {
            match needs_view(&one) {
                _ if one.expected == as_on_one_node(&one.answered, replicas) => {}
                true => of_views += 1,
                false => writeln!(report, "{}:{one}", path.display()).unwrap(),
            }
        }
    }
    assert!(report.is_empty(), "{report}");
    assert_eq!(of_views, VIEW_STATEMENTS);
    assert!(count > 3000, "{count} statements are compared");
}

/// What a single node would have answered at ONE. Cassandra has the same warnings: of ANN at another level than ONE, and of more replicas
/// than nodes (a member without the tables of peers, as here, knows no other nodes).
fn as_on_one_node(answered: &[String], replicas: Replicas) -> Vec<String> {
    let is_of_replicas = |line: &&String| {
        line.starts_with("warning Top-K queries can only be run with consistency level")
            || line.starts_with("warning Your replication factor 3")
    };
    let factor = |count: u32| format!("''replication_factor'': ''{count}''");
    let lines = answered.iter().filter(|line| !is_of_replicas(line));
    lines
        .map(|line| line.replace(&factor(replicas.count), &factor(1)))
        .collect()
}

/// Whether every statement of a script needs a materialized view.
fn is_about_views(path: &Path) -> bool {
    path.file_stem()
        .is_some_and(|name| name == "views" || name == "views_empty")
}

/// Whether a statement makes or names a materialized view.
fn needs_view(difference: &Difference) -> bool {
    let lines = [&difference.text].into_iter().chain(&difference.expected);
    let is_of_view = |line: &String| line.to_lowercase().contains("materialized");
    lines.into_iter().any(is_of_view)
}
