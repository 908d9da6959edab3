//! SSTables that come over the HTTP port.

use std::path::Path;

use ilion_env::{Env, MemEnv};
use ilion_protocol::Version;
use ilion_server::admin::{Admin as _, AdminClient, AdminDoor, ClientError, EngineAdmin};

use crate::admin::open;
use crate::client::{Client, rows_of};
use crate::sending::{Components, begin, send, send_component, sstables};
use crate::{Setup, make_table, run, start};

/// A node whose table has rows with a timestamp, a TTL and deletions.
fn filled() -> Setup {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    for statement in [
        "INSERT INTO ks.t (k, v) VALUES (1, 'one') USING TIMESTAMP 111",
        "INSERT INTO ks.t (k, v) VALUES (2, 'two') USING TTL 5000 AND TIMESTAMP 222",
        "INSERT INTO ks.t (k, v) VALUES (3, 'three') USING TIMESTAMP 333",
        "DELETE FROM ks.t USING TIMESTAMP 444 WHERE k = 3",
    ] {
        run(&mut client, statement);
    }
    setup
}

/// The one SSTable of a filled node.
fn exported(setup: &Setup) -> (String, Components) {
    let (_door, admin) = open(setup);
    admin
        .post("/admin/export?keyspace=ks&table=t&directory=/out")
        .unwrap();
    let env = &setup.env;
    let files = env.list(Path::new("/out")).unwrap().into_iter().map(|entry| {
        let bytes = env
            .read_all(&Path::new("/out").join(&entry.name), 1 << 20)
            .unwrap();
        (entry.name, bytes)
    });
    let mut sstables = sstables(files);
    sstables.pop_first().unwrap()
}

fn target() -> (Setup, AdminDoor, AdminClient, Client) {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let (door, admin) = open(&setup);
    (setup, door, admin, client)
}

fn check_clean(env: &MemEnv) {
    let entries = env.list(Path::new("/ilion/data")).unwrap();
    let left = entries.iter().find(|entry| entry.name.starts_with("ilion.load-"));
    assert!(left.is_none(), "{left:?}");
}

fn refusal<T>(outcome: Result<T, ClientError>) -> String {
    match outcome {
        Err(ClientError::Refused(reason)) => reason,
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it was not refused"),
    }
}

fn answer(client: &mut Client, text: &str) -> Vec<Vec<Option<Vec<u8>>>> {
    let rows = rows_of(run(client, text));
    rows.rows()
        .map(|row| row.into_iter().map(|cell| cell.map(<[u8]>::to_vec)).collect())
        .collect()
}

#[test]
fn timestamps_ttls_and_deletions_come_along() {
    let source = filled();
    let (name, components) = exported(&source);
    let (setup, _door, admin, mut client) = target();
    // Older than the deletion that comes, and newer than the row that comes.
    run(
        &mut client,
        "INSERT INTO ks.t (k, v) VALUES (3, 'older') USING TIMESTAMP 440",
    );
    run(
        &mut client,
        "INSERT INTO ks.t (k, v) VALUES (1, 'newer') USING TIMESTAMP 112",
    );
    let path = send(&admin, "ks.t", &name, &components, 50).unwrap();
    assert!(path.starts_with("/ilion/data/ks/t-"), "{path}");
    check_clean(&setup.env);
    let select = "SELECT k, v, writetime(v) FROM ks.t";
    let int = |value: i32| Some(value.to_be_bytes().to_vec());
    let bigint = |value: i64| Some(value.to_be_bytes().to_vec());
    let text = |value: &str| Some(value.as_bytes().to_vec());
    let expected = vec![
        vec![int(1), text("newer"), bigint(112)],
        vec![int(2), text("two"), bigint(222)],
    ];
    assert_eq!(answer(&mut client, select), expected);
    let ttl = "SELECT ttl(v) FROM ks.t WHERE k = 2";
    let mut of_source = source.client(Version::V5);
    assert_eq!(answer(&mut client, ttl), answer(&mut of_source, ttl));
    // What comes again changes nothing.
    send(&admin, "ks.t", &name, &components, 1 << 20).unwrap();
    assert_eq!(answer(&mut client, select), expected);
}

#[test]
fn what_does_not_belong_there_is_refused_and_leaves_nothing() {
    let (name, components) = exported(&filled());
    let (setup, _door, admin, mut client) = target();
    run(&mut client, "CREATE TABLE ks.other (k text PRIMARY KEY, v text)");
    run(
        &mut client,
        "CREATE MATERIALIZED VIEW ks.by_v AS SELECT * FROM ks.other WHERE k IS NOT NULL AND v IS NOT NULL PRIMARY KEY (v, k)",
    );
    run(&mut client, "CREATE TABLE ks.narrow (k text PRIMARY KEY, v text)");
    for (table, expected) in [
        ("ks.nowhere", "table ks.nowhere does not exist"),
        ("system.local", "system keyspace is not user-modifiable"),
        ("ks.other", "ks.other cannot import: by_v would go stale"),
        (
            "ks.narrow",
            "its partition key is (int), that of the table (text)",
        ),
    ] {
        let reason = refusal(send(&admin, table, &name, &components, 1 << 20));
        assert!(reason.contains(expected), "{table}: {reason}");
        check_clean(&setup.env);
    }
    let mut damaged = components.clone();
    let (_, bytes) = damaged.iter_mut().find(|(name, _)| name == "Data.db").unwrap();
    bytes[10] ^= 1;
    let reason = refusal(send(&admin, "ks.t", &name, &damaged, 1 << 20));
    assert!(reason.contains("corrupt file nb-"), "{reason}");
    check_clean(&setup.env);
    assert_eq!(answer(&mut client, "SELECT * FROM ks.t").len(), 0);
}

#[test]
fn a_load_ends_by_order_by_silence_and_by_an_error() {
    let (name, components) = exported(&filled());
    let (setup, _door, admin, _client) = target();
    let ended = |load: &str| {
        check_clean(&setup.env);
        let reason = refusal(send_component(&admin, load, &components[0], 1 << 20));
        assert!(reason.contains("there is no load"), "{reason}");
    };
    let load = begin(&admin, "ks.t", &name, &components).unwrap();
    send_component(&admin, &load, &components[0], 100).unwrap();
    admin.post(&format!("/admin/load/abandon?load={load}")).unwrap();
    ended(&load);
    let load = begin(&admin, "ks.t", &name, &components).unwrap();
    refusal(send_component(&admin, &load, &components[1], 100));
    ended(&load);
    // Its own administration, as the door searches every half a minute.
    let other = EngineAdmin::new(&setup.node, &setup.server, &setup.settings);
    let order = ilion_server::admin::LoadOrder {
        keyspace: "ks".to_owned(),
        table: "t".to_owned(),
        sstable: name.clone(),
        components: "Statistics.db 10\nData.db 10".to_owned(),
    };
    other.begin_load(&order).unwrap();
    setup.env.advance_micros(299_000_000);
    other.end_silent_loads();
    let entries = setup.env.list(Path::new("/ilion/data")).unwrap();
    assert!(entries.iter().any(|entry| entry.name.starts_with("ilion.load-")));
    setup.env.advance_micros(2_000_000);
    other.end_silent_loads();
    check_clean(&setup.env);
}

#[test]
fn loads_and_pieces_have_limits() {
    let (name, components) = exported(&filled());
    let (_setup, _door, admin, _client) = target();
    let loads: Vec<String> = (0..16)
        .map(|_| begin(&admin, "ks.t", &name, &components).unwrap())
        .collect();
    let reason = refusal(begin(&admin, "ks.t", &name, &components));
    assert!(reason.starts_with("16 loads are in progress"), "{reason}");
    let path = format!(
        "/admin/load/piece?load={}&component=Statistics.db&offset=0&crc=0",
        loads[0]
    );
    assert!(admin.post_bytes(&path, &vec![0; (4 << 20) + 1]).is_err());
    let reason = refusal(admin.post_bytes(&path, &vec![0; 4 << 20]));
    assert!(reason.contains("were changed on their way"), "{reason}");
    admin
        .post(&format!("/admin/load/abandon?load={}", loads[1]))
        .unwrap();
    begin(&admin, "ks.t", &name, &components).unwrap();
}
