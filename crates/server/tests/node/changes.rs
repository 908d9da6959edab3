//! Named consumers of changes, over the HTTP port.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ilion_server::admin::{ConsumersReport, ReleaseReport};
use ilion_settings::Size;

use crate::entry::{Node, start_capturing};
use crate::logins::{BOB, ROOT};
use crate::run;

const TABLE: &str = "keyspace=ks&table=c&consumer=sink";

/// A node with `ks.c`, and segments of 64 KiB.
fn start() -> Node {
    Node::open(start_capturing(|settings| {
        settings.commitlog_segment_size = Size(64 << 10);
    }))
}

/// The lines of the stream as ROOT, which ends with what there is.
fn read(node: &Node, parts: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let path = format!("/admin/changes?{TABLE}&format=keyed&once=true&{parts}");
    let read = node.client(ROOT).lines(&path, &mut |line| {
        lines.push(line.to_owned());
        true
    });
    read.unwrap();
    lines
}

/// The keys of the changes in these lines, and where to go on behind the last one.
fn keys(lines: &[String]) -> (Vec<&str>, &str) {
    let changes: Vec<Vec<&str>> = lines
        .iter()
        .filter(|line| !line.starts_with('{'))
        .map(|line| line.split('\t').collect())
        .collect();
    let resume = changes.last().map_or("", |change| change[0]);
    (changes.iter().map(|change| change[2]).collect(), resume)
}

fn commit(node: &Node, who: (&str, &str), position: &str) -> Result<(), String> {
    let path = format!("/admin/changes/commit?{TABLE}&position={position}&logged_ms=1");
    let posted = node.client(who).post(&path);
    posted.map(drop).map_err(|error| error.to_string())
}

fn consumers(node: &Node) -> ConsumersReport {
    node.client(ROOT).get("/admin/changes/consumers").unwrap()
}

#[test]
fn a_named_consumer_goes_on_where_it_committed() {
    let node = start();
    let mut root = node.setup.log_in(ROOT);
    run(&mut root, "INSERT INTO ks.c (k, v) VALUES (1, 'a')");
    run(&mut root, "INSERT INTO ks.c (k, v) VALUES (2, 'b')");
    let first = read(&node, "from=stored");
    let (found, resume) = keys(&first);
    assert_eq!(found, [r#"{"k":1}"#, r#"{"k":2}"#]);
    assert_eq!(keys(&read(&node, "from=stored")).0.len(), 2, "it committed none");

    commit(&node, ROOT, first[0].split('\t').next().unwrap()).unwrap();
    assert_eq!(keys(&read(&node, "from=stored")).0, [r#"{"k":2}"#]);
    commit(&node, ROOT, resume).unwrap();
    assert_eq!(keys(&read(&node, "from=stored")).0.len(), 0);
    // Who only connects again does not change what is stored.
    assert_eq!(keys(&read(&node, "from=earliest")).0.len(), 2);
    assert_eq!(keys(&read(&node, "from=stored")).0.len(), 0);
    assert_eq!(keys(&read(&node, "from=earliest&begins=true")).0.len(), 2);
    assert_eq!(keys(&read(&node, "from=stored")).0.len(), 2);
}

#[test]
fn a_stream_that_ends_tells_how_much_is_left_if_it_is_asked_to() {
    let node = start();
    let mut root = node.setup.log_in(ROOT);
    for key in 0..60 {
        let value = "x".repeat(8 << 10);
        run(
            &mut root,
            &format!("INSERT INTO ks.c (k, v) VALUES ({key}, '{value}')"),
        );
    }
    let left = |lines: &[String]| -> Vec<u64> {
        let told = lines
            .iter()
            .filter_map(|line| line.strip_prefix("{\"left_bytes\":"));
        told.map(|rest| rest.trim_end_matches('}').parse().unwrap())
            .collect()
    };
    let lines = read(&node, "from=earliest&progress=true");
    let found = left(&lines);
    assert_eq!(keys(&lines).0.len(), 60);
    assert!(
        found.first().is_some_and(|bytes| *bytes >= 60 * (8 << 10)),
        "{found:?}"
    );
    assert!(found.is_sorted_by(|one, next| one >= next), "{found:?}");
    assert_eq!(left(&read(&node, "from=earliest")), [0; 0]);
}

#[test]
fn a_consumer_of_a_quiet_table_goes_forward() {
    let node = start();
    let mut root = node.setup.log_in(ROOT);
    run(&mut root, "CREATE TABLE ks.d (k int PRIMARY KEY) WITH cdc = true");
    run(&mut root, "INSERT INTO ks.d (k) VALUES (1)");
    let lines = read(&node, "from=stored");
    assert_eq!(keys(&lines).0.len(), 0);
    assert!(lines[0].starts_with(r#"{"at":""#), "{lines:?}");
}

#[test]
fn who_may_read_changes_may_commit_and_only_administrators_release() {
    let node = start();
    let mut root = node.setup.log_in(ROOT);
    run(&mut root, "INSERT INTO ks.c (k, v) VALUES (1, 'a')");
    read(&node, "from=stored");
    let refused = commit(&node, BOB, "5:1").unwrap_err();
    assert!(refused.contains("bob has no SELECT permission"), "{refused}");
    run(&mut root, "GRANT SELECT ON ks.c TO bob");
    commit(&node, BOB, "5:1").unwrap();
    assert_eq!(consumers(&node).consumers[0].position, "5:1");
    for action in ["release?before=5:1", "forget?consumer=sink"] {
        let refused = node.client(BOB).post(&format!("/admin/changes/{action}"));
        assert!(refused.is_err(), "{action}");
    }
    let refused = commit(&node, ROOT, "x").unwrap_err();
    assert!(refused.contains(r#""x" is no position"#), "{refused}");
}

#[test]
fn segments_that_all_named_consumers_have_processed_are_released() {
    let node = start();
    let mut root = node.setup.log_in(ROOT);
    let filler = "x".repeat(8000);
    for key in 0..30 {
        run(
            &mut root,
            &format!("INSERT INTO ks.c (k, v) VALUES ({key}, '{filler}')"),
        );
    }
    let release = || node.client(ROOT).post("/admin/changes/release");
    let refused = release().unwrap_err().to_string();
    assert!(refused.contains("no named consumer reads changes"), "{refused}");

    let lines = read(&node, "from=stored");
    let released: ReleaseReport = serde_json::from_value(release().unwrap()).unwrap();
    assert_eq!(released.segments, 0, "the consumer has processed none");
    commit(&node, ROOT, keys(&lines).1).unwrap();
    let released: ReleaseReport = serde_json::from_value(release().unwrap()).unwrap();
    assert!(released.segments >= 3, "{released:?}");
    let raw = node.setup.settings.cdc_raw_path();
    let left = node.setup.env.shared().list(&raw).unwrap();
    let of_released = |name: &str| {
        let number = name.strip_prefix("ilion-1-")?.strip_suffix(".log")?;
        Some(number.parse::<u64>().ok()? < released.before)
    };
    assert!(
        left.iter().all(|entry| of_released(&entry.name) != Some(true)),
        "{left:?}"
    );

    let report = &consumers(&node).consumers[0];
    assert_eq!((report.lag_millis, report.is_reading), (0, false));
    node.client(ROOT)
        .post("/admin/changes/forget?consumer=sink")
        .unwrap();
    assert_eq!(consumers(&node).consumers, []);
}

#[test]
fn a_stream_of_avro_tells_each_schema_before_the_changes_that_have_it() {
    let node = start();
    let mut root = node.setup.log_in(ROOT);
    run(&mut root, "INSERT INTO ks.c (k, v) VALUES (1, 'first')");
    let mut lines = Vec::new();
    let path = format!("/admin/changes?{TABLE}&format=avro&from=earliest");
    let read = node.client(ROOT).lines(&path, &mut |line| {
        lines.push(line.to_owned());
        // The reader writes while it reads: it alters the table when it has the first change.
        let changes = lines.iter().filter(|line| !line.starts_with('{')).count();
        if changes == 1 && !line.starts_with('{') {
            run(&mut root, "ALTER TABLE ks.c ADD w text");
            run(&mut root, "INSERT INTO ks.c (k, w) VALUES (2, 'second')");
        }
        changes < 2
    });
    read.unwrap();
    let mut found: Vec<&str> = lines
        .iter()
        .map(|line| match serde_json::from_str::<serde_json::Value>(line) {
            Ok(object) if object["at"].is_string() => "at",
            Ok(object) => match object["schema"].as_str().unwrap().contains(r#""name":"w""#) {
                true => "schema with w",
                false => "schema",
            },
            Err(_) => "change",
        })
        .collect();
    // How far the log is may be told between any two of these.
    found.retain(|kind| *kind != "at");
    assert_eq!(found, ["schema", "change", "schema with w", "change"]);
    let mut changes = lines.iter().filter(|line| !line.starts_with('{'));
    for text in ["first", "second"] {
        let line = changes.next().unwrap();
        let datum = STANDARD.decode(line.split('\t').nth(3).unwrap()).unwrap();
        assert!(
            datum.windows(text.len()).any(|part| part == text.as_bytes()),
            "{line}"
        );
    }
}
