//! Objects that are missing, cut or changed, and full disks: clear errors, and nothing half-restored has the target's name.

use std::path::PathBuf;
use std::sync::Arc;

use ilion_backup::{Catalogue, Directory, Error, Until, delete};
use ilion_env::{Env, FaultEnv};

use crate::node::{Node, TestDirectory, of, refused, restore, restored_rows, verify_all};

fn place_with_backup() -> (TestDirectory, Node, Directory) {
    let place = TestDirectory::new();
    let node = Node::open(&place.env, &place.path("node")).with_table();
    for i in 0..50 {
        node.put(i % 5, i / 5, &format!("value {i}"));
    }
    let destination = place.destination();
    node.create(&destination, "one").unwrap();
    (place, node, destination)
}

/// The object of a chunk of a Data.db of `ks.t`.
fn object(place: &TestDirectory, destination: &Directory) -> PathBuf {
    let manifest = Catalogue::open(destination).unwrap().manifest("one").unwrap();
    let mut tables = manifest.tables.iter();
    let table = tables
        .find(|table| table.keyspace == "ks" && table.name == "t")
        .unwrap();
    let mut files = table.files.iter();
    let data = files.find(|file| file.path.ends_with("Data.db")).unwrap();
    place.path("backups").join(data.chunks[0].key())
}

#[test]
fn a_damaged_object_is_found_by_verify_and_ends_a_restore() {
    let (place, node, destination) = place_with_backup();
    let path = object(&place, &destination);
    let whole = place.env.read_all(&path, 1 << 20).unwrap();
    let mut changed = whole.clone();
    changed[3] ^= 1;
    let mut longer = whole.clone();
    longer.push(0);
    let damages: [(&[u8], &str); 4] = [
        (&changed, "does not have the checksum that is its name"),
        (&whole[..whole.len() - 1], "bytes, not"),
        (&[], "has 0 bytes, not"),
        (&longer, "more than"),
    ];
    let check = |problem: &str| {
        let verified = verify_all(&place.env, &destination);
        assert_eq!(verified.findings.len(), 1, "{verified:?}");
        let finding = &verified.findings[0];
        assert_eq!(finding.backup, "one");
        assert!(
            finding.problem.contains("ks.t nb-") && finding.problem.contains(problem),
            "{finding:?}"
        );
        let error = restore(&place.env, &destination, of("one"), &place.path("x")).unwrap_err();
        assert!(matches!(error, Error::Damaged { .. }), "{error}");
        assert!(error.to_string().contains(problem), "{error}");
        assert!(!place.env.exists(&place.path("x")));
    };
    for (bytes, problem) in damages {
        place.env.write_atomically(&path, bytes).unwrap();
        check(problem);
    }
    place.env.remove_file(&path).unwrap();
    check("is missing");
    // A backup that is made now brings back what is missing.
    node.create(&destination, "two").unwrap();
    assert_eq!(verify_all(&place.env, &destination).findings, []);
    assert_eq!(
        restored_rows(&place.env, &destination, of("one"), &place.path("x")).unwrap(),
        node.rows()
    );
}

#[test]
fn as_long_as_a_manifest_cannot_be_read_nothing_is_removed_and_nothing_is_guessed() {
    let (place, node, destination) = place_with_backup();
    node.create(&destination, "two").unwrap();
    let path = place.path("backups/backups/two.json");
    let whole = place.env.read_all(&path, 1 << 24).unwrap();
    place
        .env
        .write_atomically(&path, &whole[..whole.len() / 2])
        .unwrap();
    let backups = Catalogue::open(&destination).unwrap().backups().unwrap();
    assert!(backups[0].manifest.is_ok());
    assert!(matches!(backups[1].manifest, Err(Error::Damaged { .. })));
    let one = ["one".to_owned()];
    let error = refused(delete(&place.env, &destination, &one, false));
    assert!(
        error.contains("what the backup two has cannot be known"),
        "{error}"
    );
    let error = refused(restore(
        &place.env,
        &destination,
        Until::Backup(None),
        &place.path("x"),
    ));
    assert!(error.contains("cannot be known"), "{error}");
    assert_eq!(verify_all(&place.env, &destination).findings.len(), 1);
    restored_rows(&place.env, &destination, of("one"), &place.path("x")).unwrap();
    // That of another backup under its name is no better.
    let other = place
        .env
        .read_all(&place.path("backups/backups/one.json"), 1 << 24)
        .unwrap();
    place.env.write_atomically(&path, &other).unwrap();
    let error = restore(&place.env, &destination, of("two"), &place.path("x")).unwrap_err();
    assert!(error.to_string().contains("is that of the backup one"), "{error}");
    delete(&place.env, &destination, &["two".to_owned()], false).unwrap();
    assert_eq!(verify_all(&place.env, &destination).findings, []);
    restored_rows(&place.env, &destination, of("one"), &place.path("x")).unwrap();
}

#[test]
fn a_destination_of_a_newer_ilion_is_left_alone() {
    let (place, node, destination) = place_with_backup();
    let mark = place.path("backups/ilion-backup.json");
    place.env.write_atomically(&mark, b"{\"format\": 2}").unwrap();
    assert!(refused(node.create(&destination, "two")).contains("use a newer one"));
    assert!(
        refused(restore(&place.env, &destination, of("one"), &place.path("x"))).contains("use a newer one")
    );
    assert!(refused(delete(&place.env, &destination, &[], false)).contains("use a newer one"));
    place.env.write_atomically(&mark, b"junk").unwrap();
    let error = node.create(&destination, "two").unwrap_err();
    assert!(matches!(error, Error::Damaged { .. }), "{error}");
}

#[test]
fn a_disk_that_fills_up_in_a_restore_leaves_no_node_and_the_next_try_goes_on() {
    let (place, node, destination) = place_with_backup();
    let expected = node.rows();
    let target = place.path("restored");
    for (rule, at) in [
        ("no_space write \"*Data.db.part\" from", 5),
        ("no_space write \"*Index.db.part\" from", 1),
        ("no_space write \"*ilion-1-*.log.part\" from", 1),
        ("no_space write \"ilion.reached.tmp\" from", 1),
        ("no_space create \"ilion.id.tmp\" from", 2),
    ] {
        let faults = FaultEnv::new(place.env.clone());
        faults.add(&format!("{rule} {at}")).unwrap();
        let env: Arc<dyn Env> = faults.clone();
        let result = restore(&env, &destination, of("one"), &target);
        assert!(result.is_err(), "{rule}: {result:?}");
        assert!(!place.env.exists(&target), "{rule}");
        faults.clear();
        assert_eq!(
            restored_rows(&env, &destination, of("one"), &target).unwrap(),
            expected,
            "{rule}"
        );
    }
}
