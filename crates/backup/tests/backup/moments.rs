//! Restores to points in time.

use ilion_backup::{Error, Until};

use crate::node::{Node, Rows, TestDirectory, of, refused, restore, restored_rows};

/// A time between what the node has done and what it will do.
fn now(node: &Node) -> i64 {
    let now_micros = || node.env.now_micros();
    let moment = now_micros().max(node.env.last_unique_micros());
    // Timestamps of the node may be ahead of the clock.
    while now_micros() <= moment {
        std::hint::spin_loop();
    }
    moment
}

/// Writes rows, and returns what the node had at several times.
fn history(node: &Node, from: i32) -> Vec<(i64, Rows)> {
    let mut states = Vec::new();
    for i in from..from + 6 {
        node.put(i, 1, &format!("value {i} {}", "x".repeat(20_000)));
        if i % 3 == 0 {
            node.cql(&format!("DELETE FROM ks.t WHERE k = {}", i - 1));
        }
        states.push((now(node), node.rows()));
    }
    states
}

#[test]
fn any_moment_between_and_behind_backups_can_be_restored() {
    let place = TestDirectory::new();
    let destination = place.destination();
    let mut node = Node::open_archiving(&place.env, &place.path("node")).with_table();
    let before = now(&node);
    node.put(0, 0, "first");
    node.create(&destination, "one").unwrap();
    let mut states = vec![(now(&node), node.rows())];
    states.extend(history(&node, 1));
    node.cql("TRUNCATE ks.t");
    states.push((now(&node), node.rows()));
    // The archive goes on over restarts, and over segments that were trimmed.
    node.engine().drain().unwrap();
    node.close();
    let mut node = Node::open_archiving(&place.env, &place.path("node"));
    states.extend(history(&node, 20));
    node.cql("ALTER TABLE ks.t ADD later int");
    node.cql("UPDATE ks.t SET later = 1, v = 'y' WHERE k = 24 AND c = 1");
    states.push((now(&node), node.rows()));
    let shipped = node.ship_log(&destination).unwrap();
    assert!(shipped.segments > 3, "{shipped:?}");
    assert_eq!(node.ship_log(&destination).unwrap().segments, 0);
    let beyond = now(&node);
    node.put(99, 99, "not archived");
    for (moment, expected) in &states {
        let rows = restored_rows(
            &place.env,
            &destination,
            Until::Time(*moment),
            &place.path("restored"),
        );
        assert_eq!(rows.unwrap(), *expected, "{moment}");
    }
    let error = refused(restore(
        &place.env,
        &destination,
        Until::Time(before),
        &place.path("x"),
    ));
    assert!(error.starts_with("the oldest backup at "), "{error}");
    let error = refused(restore(
        &place.env,
        &destination,
        Until::Time(beyond),
        &place.path("x"),
    ));
    assert!(
        error.contains("goes up to") && error.contains("ilion backup log"),
        "{error}"
    );
    let (_, last) = states.last().unwrap();
    let rows = restored_rows(&place.env, &destination, Until::Latest, &place.path("restored"));
    assert_eq!(rows.unwrap(), *last);
    // A later backup takes over.
    node.create(&destination, "two").unwrap();
    let rows = restored_rows(
        &place.env,
        &destination,
        Until::Time(beyond),
        &place.path("restored"),
    );
    assert_eq!(rows.unwrap(), *last);
    ilion_backup::delete(&place.env, &destination, &["one".to_owned()], false).unwrap();
    let error = refused(restore(
        &place.env,
        &destination,
        Until::Time(states[0].0),
        &place.path("x"),
    ));
    assert!(error.starts_with("the oldest backup at "), "{error}");
    let rows = restored_rows(&place.env, &destination, of("two"), &place.path("restored"));
    assert_eq!(rows.unwrap(), node.rows());
    node.close();
}

#[test]
fn a_segment_that_is_missing_is_never_passed_over() {
    let place = TestDirectory::new();
    let destination = place.destination();
    let mut node = Node::open_archiving(&place.env, &place.path("node")).with_table();
    let created = node.create(&destination, "one").unwrap();
    let states = history(&node, 1);
    node.ship_log(&destination).unwrap();
    let log = place.path("backups/log");
    let log = log.join(&place.env.list(&log).unwrap()[0].name);
    let entries = place.env.list(&log).unwrap();
    // Those from before the moment of the backup are not needed.
    let is_behind = |name: &str| {
        let number = name.strip_suffix(".json").unwrap().parse::<u64>();
        number.is_ok_and(|number| number >= created.manifest.log.to)
    };
    let segments: Vec<_> = entries.iter().filter(|entry| is_behind(&entry.name)).collect();
    assert!(segments.len() > 2);
    let (moment, _) = states.last().unwrap();
    for segment in &segments {
        let path = log.join(&segment.name);
        let bytes = place.env.read_all(&path, 1 << 20).unwrap();
        place.env.remove_file(&path).unwrap();
        let result = restore(&place.env, &destination, Until::Time(*moment), &place.path("x"));
        assert!(
            matches!(result, Err(Error::Refused(_) | Error::Log(_))),
            "{}: {result:?}",
            segment.name
        );
        assert!(!place.env.exists(&place.path("x")));
        place.env.write_atomically(&path, &bytes).unwrap();
    }
    restored_rows(&place.env, &destination, Until::Time(*moment), &place.path("x")).unwrap();
    node.close();
}

#[test]
fn a_time_without_an_archive_is_a_gap() {
    let place = TestDirectory::new();
    let destination = place.destination();
    let mut node = Node::open_archiving(&place.env, &place.path("node")).with_table();
    node.create(&destination, "one").unwrap();
    history(&node, 1);
    node.engine().drain().unwrap();
    node.close();
    let mut node = Node::open(&place.env, &place.path("node"));
    history(&node, 20);
    node.engine().drain().unwrap();
    node.close();
    let mut node = Node::open_archiving(&place.env, &place.path("node"));
    let (moment, _) = history(&node, 40).pop().unwrap();
    node.ship_log(&destination).unwrap();
    let error = refused(restore(
        &place.env,
        &destination,
        Until::Time(moment),
        &place.path("x"),
    ));
    assert!(error.contains("has a gap"), "{error}");
    assert!(
        refused(restore(&place.env, &destination, Until::Latest, &place.path("x"))).contains("has a gap")
    );
    // From the next backup on it is whole again.
    node.create(&destination, "two").unwrap();
    let (moment, expected) = history(&node, 60).pop().unwrap();
    node.ship_log(&destination).unwrap();
    let rows = restored_rows(&place.env, &destination, Until::Time(moment), &place.path("x"));
    assert_eq!(rows.unwrap(), expected);
    node.close();
}

#[test]
fn a_restored_node_does_not_mix_with_the_one_it_is_a_copy_of() {
    let place = TestDirectory::new();
    let destination = place.destination();
    let mut node = Node::open_archiving(&place.env, &place.path("node")).with_table();
    node.put(1, 1, "both");
    node.create(&destination, "one").unwrap();
    restore(&place.env, &destination, of("one"), &place.path("copy")).unwrap();
    let mut copy = Node::open_archiving(&place.env, &place.path("copy"));
    node.put(2, 2, "node");
    copy.put(3, 3, "copy");
    node.create(&destination, "node").unwrap();
    copy.create(&destination, "copy").unwrap();
    let error = refused(restore(&place.env, &destination, Until::Latest, &place.path("x")));
    assert!(error.contains("backups of several nodes"), "{error}");
    let rows = restored_rows(&place.env, &destination, of("node"), &place.path("x"));
    assert_eq!(rows.unwrap(), node.rows());
    let rows = restored_rows(&place.env, &destination, of("copy"), &place.path("x"));
    assert_eq!(rows.unwrap(), copy.rows());
    node.close();
    copy.close();
}
