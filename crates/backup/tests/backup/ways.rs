//! What each tool does, and what it refuses.

use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use ilion_backup::{Catalogue, TableChoice, Until, delete, restore_table};
use ilion_engine::ImportSource;

use crate::node::{Node, TestDirectory, of, refused, restore, restore_options, restored_rows, verify_all};

fn place_with_node() -> (TestDirectory, Node) {
    let place = TestDirectory::new();
    let node = Node::open(&place.env, &place.path("node")).with_table();
    for i in 0..200 {
        node.put(i % 20, i / 20, &format!("value {i}"));
    }
    (place, node)
}

#[test]
fn a_backup_has_what_was_acknowledged_before_it_and_nothing_later() {
    let (place, node) = place_with_node();
    let destination = place.destination();
    node.flush();
    node.put(1, 1, "in memory");
    let expected = node.rows();
    let created = node.create(&destination, "one").unwrap();
    assert!(created.uploaded_bytes > 0);
    node.put(1, 1, "later");
    node.cql("DELETE FROM ks.t WHERE k = 2");
    node.flush();
    assert_eq!(
        restored_rows(&place.env, &destination, of("one"), &place.path("restored")).unwrap(),
        expected
    );
    // The node that was backed up goes on.
    assert_eq!(node.rows()[&(1, 1)], "later");
    assert!(node.engine().snapshots().unwrap().is_empty());
}

#[test]
fn a_restore_does_not_replay_deletions_that_were_purged() {
    let (place, node) = place_with_node();
    let destination = place.destination();
    node.cql("CREATE TABLE ks.plain (k int, c int, v text, PRIMARY KEY (k, c))");
    node.cql("DELETE FROM ks.plain USING TIMESTAMP 20 WHERE k = 1 AND c = 1");
    let engine = node.engine();
    let table = engine.schema().table("ks", "plain").unwrap().id;
    let key = 1_i32.to_be_bytes().to_vec().into();
    engine.compact_keys(table, std::slice::from_ref(&key)).unwrap();
    assert!(engine.sstables_with(table, &key).unwrap().is_empty());
    node.cql("INSERT INTO ks.plain (k, c, v) VALUES (1, 1, 'older than the deletion') USING TIMESTAMP 10");
    let expected = node.rows_of("ks.plain");
    assert_eq!(expected.len(), 1);
    node.create(&destination, "one").unwrap();
    let target = place.path("restored");
    restore(&place.env, &destination, of("one"), &target).unwrap();
    assert_eq!(Node::open(&place.env, &target).rows_of("ks.plain"), expected);
}

#[test]
fn nothing_is_uploaded_twice() {
    let (place, node) = place_with_node();
    let destination = place.destination();
    let first = node.create(&destination, "one").unwrap();
    node.put(3, 3, "one row more");
    let second = node.create(&destination, "two").unwrap();
    assert!(
        second.uploaded_bytes * 3 < first.uploaded_bytes,
        "{} of {}",
        second.uploaded_bytes,
        first.uploaded_bytes
    );
    let catalogue = Catalogue::open(&destination).unwrap();
    let names: Vec<String> = catalogue
        .backups()
        .unwrap()
        .into_iter()
        .map(|backup| backup.name)
        .collect();
    assert_eq!(names, ["one", "two"]);
    let verified = verify_all(&place.env, &destination);
    assert_eq!((verified.backups, verified.findings), (2, Vec::new()));
    assert_eq!(
        restored_rows(
            &place.env,
            &destination,
            Until::Backup(None),
            &place.path("restored")
        )
        .unwrap(),
        node.rows()
    );
}

#[test]
fn a_deleted_backup_takes_only_what_no_other_has() {
    let (place, node) = place_with_node();
    let destination = place.destination();
    node.create(&destination, "one").unwrap();
    node.put(3, 3, "one row more");
    node.create(&destination, "two").unwrap();
    let expected = node.rows();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let error = refused(delete(&place.env, &destination, &names(&["one", "three"]), false));
    assert!(error.starts_with("there is no backup three at "), "{error}");
    let deleted = delete(&place.env, &destination, &names(&["one"]), false).unwrap();
    assert_eq!(deleted.backups, 1);
    assert!(deleted.objects > 0);
    assert_eq!(verify_all(&place.env, &destination).findings, []);
    assert!(
        refused(restore(&place.env, &destination, of("one"), &place.path("x")))
            .contains("there is no backup one")
    );
    assert_eq!(
        restored_rows(&place.env, &destination, of("two"), &place.path("restored")).unwrap(),
        expected
    );
    let deleted = delete(&place.env, &destination, &names(&["two"]), false).unwrap();
    assert!(deleted.bytes > 0);
    let deleted = delete(&place.env, &destination, &[], false).unwrap();
    assert_eq!((deleted.objects, deleted.bytes), (0, 0));
    let left = place.env.list(&place.path("backups/backups")).unwrap();
    assert_eq!(left, []);
}

#[test]
fn names_that_exist_or_are_none_are_refused_before_anything_is_uploaded() {
    let (place, node) = place_with_node();
    let destination = place.destination();
    node.create(&destination, "one").unwrap();
    assert!(refused(node.create(&destination, "one")).contains("there is a backup one already"));
    for name in ["", "../x", "a/b", ".hidden", &"x".repeat(101)] {
        assert!(
            refused(node.create(&destination, name)).contains("is no name of a backup"),
            "{name}"
        );
    }
}

#[test]
fn a_running_backup_and_a_delete_keep_away_from_each_other() {
    let (place, node) = place_with_node();
    let destination = place.destination();
    node.create(&destination, "one").unwrap();
    let mark = |name: &str| place.path("backups/running").join(format!("{name}.json"));
    let text = b"{\"since\": \"Monday\"}";
    place.env.write_atomically(&mark("delete"), text).unwrap();
    let error = refused(node.create(&destination, "two"));
    assert!(error.contains("are being deleted since Monday"), "{error}");
    place.env.remove_file(&mark("delete")).unwrap();
    let other = "6f0f8a0c-0000-4000-8000-000000000001";
    place.env.write_atomically(&mark(other), text).unwrap();
    let error = refused(delete(&place.env, &destination, &["one".to_owned()], false));
    assert!(
        error.contains("is running at") && error.contains("--force"),
        "{error}"
    );
    delete(&place.env, &destination, &["one".to_owned()], true).unwrap();
    node.create(&destination, "one").unwrap();
}

#[test]
fn a_directory_that_is_not_empty_is_left_alone() {
    let (place, node) = place_with_node();
    let destination = place.destination();
    node.create(&destination, "one").unwrap();
    let target = place.path("target");
    place.env.create_dir_all(&target).unwrap();
    place.env.write_atomically(&target.join("mine"), b"x").unwrap();
    assert!(refused(restore(&place.env, &destination, of("one"), &target)).contains("is not empty"));
    place.env.remove_file(&target.join("mine")).unwrap();
    let beside = place.path("target.restoring");
    place.env.create_dir_all(&beside).unwrap();
    place.env.write_atomically(&beside.join("mine"), b"x").unwrap();
    assert!(
        refused(restore(&place.env, &destination, of("one"), &target))
            .contains("is not a directory of a restore")
    );
    place.env.remove_dir_all(&beside).unwrap();
    restore(&place.env, &destination, of("one"), &target).unwrap();
    assert!(!place.env.exists(&beside));
}

#[test]
fn a_destination_without_backups_says_so() {
    let place = TestDirectory::new();
    let error = refused(restore(
        &place.env,
        &place.destination(),
        Until::Latest,
        &place.path("x"),
    ));
    assert!(error.starts_with("there are no backups at "), "{error}");
    assert!(!place.env.exists(&place.path("backups")));
}

#[test]
fn a_table_comes_back_under_another_name_beside_what_it_has_become() {
    let (place, node) = place_with_node();
    let destination = place.destination();
    let before = node.rows();
    node.create(&destination, "one").unwrap();
    node.cql("TRUNCATE ks.t");
    node.cql("ALTER TABLE ks.t ADD later int");
    node.put(9, 9, "after");
    let choice = TableChoice {
        keyspace: "ks".to_owned(),
        table: Some("t".to_owned()),
        renamed: Some(("ks".to_owned(), "was".to_owned())),
    };
    let options = restore_options(&place.env, of("one"));
    let scratch = place.path("scratch");
    restore_table(
        &place.env,
        &destination,
        &options,
        &choice,
        &scratch,
        &mut |tables| {
            assert_eq!(tables.len(), 1);
            let table = &tables[0];
            assert_eq!(
                (&*table.name, &table.views[..]),
                ("was", &["by_v".to_owned()][..])
            );
            for statement in &table.statements {
                node.cql(statement);
            }
            let id = node.engine().schema().table("ks", "was").unwrap().id;
            let report = node
                .engine()
                .import(id, &table.directory, ImportSource::Moved)
                .unwrap();
            assert_eq!(report.refused, []);
            for statement in &table.indexes {
                node.cql(statement);
            }
            Ok(())
        },
    )
    .unwrap();
    assert!(!place.env.exists(&scratch));
    assert_eq!(node.rows_of("ks.was"), before);
    node.settle();
    assert_eq!(node.cql("SELECT k FROM ks.was WHERE c = 3").len(), 20);
    assert_eq!(node.rows().len(), 1);
    let choice = TableChoice {
        table: Some("none".to_owned()),
        ..choice
    };
    let none = restore_table(&place.env, &destination, &options, &choice, &scratch, &mut |_| {
        Ok(())
    });
    assert_eq!(refused(none), "there was no table ks.none at that moment");
}

#[test]
fn a_keyspace_that_was_dropped_comes_back_with_types_and_without_dropped_columns() {
    let place = TestDirectory::new();
    let node = Node::open(&place.env, &place.path("node"));
    let destination = place.destination();
    node.cql("CREATE KEYSPACE k WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}");
    node.cql("CREATE TYPE k.place (x int, y int)");
    node.cql("CREATE TABLE k.a (k int PRIMARY KEY, at frozen<place>, gone text, again int)");
    node.cql("CREATE TABLE k.b (k int PRIMARY KEY, n counter)");
    node.cql("INSERT INTO k.a (k, at, gone, again) VALUES (1, {x: 2, y: 3}, 'x', 4)");
    node.cql("UPDATE k.b SET n = n + 5 WHERE k = 1");
    node.flush();
    node.cql("ALTER TABLE k.a DROP gone");
    node.cql("ALTER TABLE k.a DROP again");
    node.cql("ALTER TABLE k.a ADD again int");
    node.cql("INSERT INTO k.a (k, again) VALUES (2, 6)");
    let queries = ["SELECT * FROM k.a", "SELECT * FROM k.b"];
    let before = queries.map(|query| node.cql(query));
    node.create(&destination, "one").unwrap();
    node.cql("DROP KEYSPACE k");
    let choice = TableChoice {
        keyspace: "k".to_owned(),
        table: None,
        renamed: None,
    };
    let options = restore_options(&place.env, of("one"));
    let scratch = place.path("scratch");
    restore_table(
        &place.env,
        &destination,
        &options,
        &choice,
        &scratch,
        &mut |tables| {
            assert_eq!(tables.len(), 2);
            for table in tables {
                for statement in &table.statements {
                    node.cql(statement);
                }
                let id = node.engine().schema().table("k", &table.name).unwrap().id;
                let report = node
                    .engine()
                    .import(id, &table.directory, ImportSource::Moved)
                    .unwrap();
                assert_eq!(report.refused, []);
            }
            Ok(())
        },
    )
    .unwrap();
    assert_eq!(queries.map(|query| node.cql(query)), before);
}

#[test]
fn a_backup_under_load_is_one_moment_of_all_tables() {
    let place = TestDirectory::new();
    let node = Node::open(&place.env, &place.path("node")).with_table();
    node.cql("CREATE TABLE ks.first (k int PRIMARY KEY)");
    node.cql("CREATE TABLE ks.second (k int PRIMARY KEY)");
    let destination = place.destination();
    let is_done = AtomicBool::new(false);
    let acknowledged = AtomicI32::new(0);
    let before = std::thread::scope(|scope| {
        scope.spawn(|| {
            // Each row of `second` follows that of `first`, and `ks.t` has a view and an index.
            for k in 1.. {
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
                node.cql(&format!("INSERT INTO ks.first (k) VALUES ({k})"));
                node.cql(&format!("INSERT INTO ks.second (k) VALUES ({k})"));
                node.put(k % 7, k % 3, &format!("value {k}"));
                acknowledged.store(k, Ordering::Relaxed);
            }
        });
        while acknowledged.load(Ordering::Relaxed) < 20 {
            std::thread::yield_now();
        }
        let before = acknowledged.load(Ordering::Relaxed);
        let created = node.create(&destination, "one");
        is_done.store(true, Ordering::Relaxed);
        created.unwrap();
        before
    });
    let target = place.path("restored");
    restore(&place.env, &destination, of("one"), &target).unwrap();
    let restored = Node::open(&place.env, &target);
    let count = |table: &str| restored.cql(&format!("SELECT k FROM ks.{table}")).len() as i32;
    let (first, second) = (count("first"), count("second"));
    assert!(
        second >= before && (first == second || first == second + 1),
        "{before} {first} {second}"
    );
    let newest = restored
        .rows()
        .into_values()
        .filter_map(|value| value[6..].parse::<i32>().ok())
        .max();
    assert!(
        newest == Some(second) || newest == Some(second - 1),
        "{second} {newest:?}"
    );
}
