//! The system tables that drivers read when they connect, and virtual tables.

use std::sync::Arc;

use ilion_env::{Env as _, MemEnv};
use ilion_protocol::{Rows, Version};
use ilion_settings::Loaded;

use crate::client::{Client, error_of, rows_of};
use crate::{make_table, run, start, start_on, start_with};

fn ask(client: &mut Client, text: &str) -> Rows {
    rows_of(run(client, text))
}

/// The first row by names of its columns.
fn cell(rows: &Rows, name: &str) -> Option<Vec<u8>> {
    let columns = rows.metadata.columns.as_ref().unwrap();
    let index = columns.iter().position(|column| &*column.name == name).unwrap();
    rows.rows().next().unwrap()[index].map(<[u8]>::to_vec)
}

#[test]
fn large_values_come_as_they_were_written() {
    let setup = start();
    for version in [Version::V4, Version::V5] {
        let mut client = setup.client(version);
        if version == Version::V4 {
            make_table(&mut client);
        }
        // Shorter than answers that are sent without a copy, longer, and in several segments.
        let text = |key: i32, len: usize| {
            char::from(b'a' + u8::try_from(key).unwrap())
                .to_string()
                .repeat(len)
        };
        let lengths = [300_000, 5, 0, 262_144, 1_000_000, 40_000];
        for (key, len) in (0..).zip(lengths) {
            let value = text(key, len);
            run(
                &mut client,
                &format!("INSERT INTO ks.t (k, v) VALUES ({key}, '{value}')"),
            );
        }
        if version == Version::V5 {
            setup.node.engine().flush_all().unwrap();
        }
        let rows = ask(&mut client, "SELECT k, v FROM ks.t");
        assert_eq!(rows.row_count, 6);
        for row in rows.rows() {
            let key = i32::from_be_bytes(row[0].unwrap().try_into().unwrap());
            let len = lengths[usize::try_from(key).unwrap()];
            assert!(row[1] == Some(text(key, len).as_bytes()), "{version:?}: {key}");
        }
    }
}

#[test]
fn attached_indexes_are_told_sstable_by_sstable() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    run(&mut client, "CREATE INDEX by_v ON ks.t (v) USING 'sai'");
    for (key, value) in [(1, "a"), (2, "b"), (3, "a")] {
        run(
            &mut client,
            &format!("INSERT INTO ks.t (k, v) VALUES ({key}, '{value}')"),
        );
        if key > 1 {
            setup.node.engine().flush_all().unwrap();
        }
    }
    let number = |rows: &Rows, name: &str| {
        let bytes = cell(rows, name).unwrap();
        i64::from_be_bytes(bytes.try_into().unwrap())
    };
    for (table, last) in [
        ("sai_sstable_indexes", "max_row_id"),
        ("sai_sstable_index_segments", "max_sstable_row_id"),
    ] {
        let rows = ask(
            &mut client,
            &format!("SELECT * FROM system_views.{table} WHERE keyspace_name = 'ks'"),
        );
        assert_eq!(rows.row_count, 2);
        assert_eq!(cell(&rows, "index_name").unwrap(), b"by_v");
        assert!(cell(&rows, "sstable_name").unwrap().ends_with(b"-Data.db"));
        assert_eq!((number(&rows, "cell_count"), number(&rows, last)), (2, 1));
        assert_ne!(cell(&rows, "start_token"), cell(&rows, "end_token"));
    }
    let rows = ask(&mut client, "SELECT * FROM system_views.sai_sstable_indexes");
    assert!(number(&rows, "per_column_disk_size") > 0 && number(&rows, "per_table_disk_size") > 0);
    let rows = ask(
        &mut client,
        "SELECT component_metadata FROM system_views.sai_sstable_index_segments",
    );
    let components = cell(&rows, "component_metadata").unwrap();
    assert!(components.windows(6).any(|part| part == b"Length"));
}

#[test]
fn the_local_row_says_who_the_node_is() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    let local = ask(&mut client, "SELECT * FROM system.local WHERE key='local'");
    assert_eq!(local.row_count, 1);
    for (column, expected) in [
        ("bootstrapped", "COMPLETED"),
        ("cluster_name", "Ilion"),
        ("cql_version", "3.4.7"),
        ("data_center", "datacenter1"),
        ("native_protocol_version", "5"),
        ("partitioner", "org.apache.cassandra.dht.Murmur3Partitioner"),
        ("rack", "rack1"),
        ("release_version", "5.0.9"),
    ] {
        assert_eq!(
            cell(&local, column),
            Some(expected.as_bytes().to_vec()),
            "{column}"
        );
    }
    for column in ["broadcast_address", "listen_address", "rpc_address"] {
        assert_eq!(cell(&local, column), Some(vec![127, 0, 0, 1]), "{column}");
    }
    let port = i32::from(setup.server.address().port());
    assert_eq!(cell(&local, "rpc_port"), Some(port.to_be_bytes().to_vec()));
    assert_eq!(ask(&mut client, "SELECT * FROM system.peers").row_count, 0);
    assert_eq!(ask(&mut client, "SELECT * FROM system.peers_v2").row_count, 0);
}

#[test]
fn id_and_token_stay_when_the_node_starts_again() {
    let text = "SELECT host_id, tokens FROM system.local";
    let setup = start();
    let before = ask(&mut setup.client(Version::V5), text);
    let env = setup.env.clone();
    setup.server.stop(std::time::Duration::from_secs(5));
    drop(setup.node);
    let setup = start_on(env);
    let after = ask(&mut setup.client(Version::V5), text);
    assert_eq!(before, after);
    assert_eq!(
        cell(&after, "host_id").unwrap(),
        setup.node.engine().id().as_bytes()
    );
}

#[test]
fn the_version_of_the_schema_changes_with_it() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    let text = "SELECT schema_version FROM system.local WHERE key = 'local'";
    let before = cell(&ask(&mut client, text), "schema_version");
    make_table(&mut client);
    let after = cell(&ask(&mut client, text), "schema_version");
    assert_ne!(before, after);
    assert_eq!(after.unwrap(), setup.node.engine().schema().version.as_bytes());
}

#[test]
fn connected_clients_are_listed() {
    let setup = start();
    let mut client = setup.client(Version::V4);
    make_table(&mut client);
    run(&mut client, "USE ks");
    let _second = setup.client(Version::V5);
    let rows = ask(&mut client, "SELECT * FROM system_views.clients");
    assert_eq!(rows.row_count, 2);
    let port = i32::from(client.stream.local_addr().unwrap().port());
    let mine = ask(
        &mut client,
        &format!("SELECT * FROM system_views.clients WHERE address = '127.0.0.1' AND port = {port}"),
    );
    assert_eq!(cell(&mine, "keyspace_name"), Some(b"ks".to_vec()));
    assert_eq!(
        cell(&mine, "protocol_version"),
        Some(4_i32.to_be_bytes().to_vec())
    );
    assert_eq!(cell(&mine, "connection_stage"), Some(b"ready".to_vec()));
    assert_eq!(cell(&mine, "driver_name"), None);
}

#[test]
fn what_drivers_read_of_the_schema_is_there() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    for table in [
        "keyspaces",
        "tables",
        "columns",
        "types",
        "functions",
        "aggregates",
        "triggers",
        "indexes",
        "views",
    ] {
        ask(&mut client, &format!("SELECT * FROM system_schema.{table}"));
    }
    for table in ["keyspaces", "tables", "columns"] {
        let rows = ask(
            &mut client,
            &format!("SELECT * from system_virtual_schema.{table}"),
        );
        assert!(rows.row_count > 1, "{table}");
    }
    for table in ["settings", "caches", "thread_pools", "disk_usage"] {
        let rows = ask(&mut client, &format!("SELECT * FROM system_views.{table}"));
        assert!(rows.row_count > 0, "{table}");
    }
    assert_eq!(
        ask(&mut client, "SELECT * FROM system_views.sstable_tasks").row_count,
        0
    );
}

#[test]
fn a_table_that_does_not_say_is_compacted_by_the_default() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let of_table =
        "SELECT compaction FROM system_schema.tables WHERE keyspace_name = 'ks' AND table_name = 't'";
    let kept = cell(&ask(&mut client, of_table), "compaction").unwrap();
    let kept = String::from_utf8_lossy(&kept).into_owned();
    assert!(kept.contains("UnifiedCompactionStrategy"), "{kept}");
}

/// A node on the directory of a Cassandra 4.1, and its settings.
fn node_of_4_1() -> std::sync::Arc<ilion_env::MemEnv> {
    let setup = start();
    let mut client = setup.client(Version::V5);
    run(
        &mut client,
        "UPDATE system.local SET release_version = '4.1.10' WHERE key = 'local'",
    );
    let env = setup.env.clone();
    drop(client);
    setup.server.stop(std::time::Duration::from_secs(5));
    setup.node.engine().drain().unwrap();
    drop(setup.node);
    // These rows describe columns that a 4.1 does not have.
    for directory in ["/ilion/data/system_schema", "/ilion/commitlog"] {
        env.remove_dir_all(directory.as_ref()).unwrap();
    }
    env
}

#[test]
fn the_directory_of_a_cassandra_4_stays_one_that_it_can_read() {
    let setup = start_on(node_of_4_1());
    let mut client = setup.client(Version::V5);
    let version = cell(&ask(&mut client, "SELECT * FROM system.local"), "release_version");
    assert_eq!(version, Some(b"4.1.10".to_vec()));
    let columns = "SELECT column_name FROM system_schema.columns WHERE keyspace_name = 'system_schema' AND table_name = 'tables'";
    let columns = ask(&mut client, columns);
    let names: Vec<_> = columns
        .rows()
        .map(|row| String::from_utf8_lossy(row[0].unwrap()).into_owned())
        .collect();
    assert!(
        names.iter().any(|name| name == "memtable") && names.iter().all(|name| name != "incremental_backups")
    );

    make_table(&mut client);
    let options = ask(
        &mut client,
        "SELECT compaction FROM system_schema.tables WHERE keyspace_name = 'ks' AND table_name = 't'",
    );
    let compaction = cell(&options, "compaction").unwrap();
    assert!(String::from_utf8_lossy(&compaction).contains("SizeTieredCompactionStrategy"));
    for refused in [
        "CREATE TABLE ks.n (k int PRIMARY KEY, v vector<float, 2>)",
        "ALTER TABLE ks.t WITH compaction = {'class': 'UnifiedCompactionStrategy'}",
        "ALTER TABLE ks.t WITH allow_auto_snapshot = false",
        "CREATE TYPE ks.n (v frozen<list<frozen<vector<float, 2>>>>)",
    ] {
        let error = error_of(client.query(refused)).message.to_string();
        assert!(error.contains("not known to Cassandra 4.1"), "{refused}: {error}");
    }
}

#[test]
fn a_directory_of_a_cassandra_4_that_gives_up_the_way_back_is_one_of_5_for_good() {
    let env = node_of_4_1();
    let mode = ilion_settings::StorageCompatibility::None;
    for (mode, table) in [(mode, "u"), (Default::default(), "w")] {
        let setup = start_with(env.clone(), |settings| settings.storage_compatibility_mode = mode);
        let mut client = setup.client(Version::V5);
        let version = cell(&ask(&mut client, "SELECT * FROM system.local"), "release_version");
        assert_eq!(version, Some(b"5.0.9".to_vec()));
        if table == "u" {
            make_table(&mut client);
        }
        run(
            &mut client,
            &format!("CREATE TABLE ks.{table} (k int PRIMARY KEY, v vector<float, 2>)"),
        );
        drop(client);
        setup.server.stop(std::time::Duration::from_secs(5));
        drop(setup.node);
    }
}

#[test]
fn a_node_starts_with_the_stock_files_of_cassandra() {
    for file in [
        "cassandra-4.0",
        "cassandra-4.1",
        "cassandra-5.0",
        "cassandra_latest-5.0",
    ] {
        let path = format!("{}/../settings/testdata/{file}.yaml", env!("CARGO_MANIFEST_DIR"));
        let mut loaded = Loaded::default();
        let text = std::fs::read_to_string(path).unwrap();
        loaded.add_text(file, &text).unwrap();
        let setup = start_with(Arc::new(MemEnv::new(1)), |settings| {
            let directory = settings.directory.clone();
            *settings = loaded.settings;
            settings.directory = directory;
            settings.native_transport_port = 0;
        });
        let mut client = setup.client(Version::V5);
        make_table(&mut client);
        run(&mut client, "INSERT INTO ks.t (k, v) VALUES (1, 'one')");
        setup.node.engine().flush_all().unwrap();
        assert_eq!(
            ask(&mut client, "SELECT k, v FROM ks.t").rows().count(),
            1,
            "{file}"
        );
    }
}

fn text_of(rows: &Rows, name: &str) -> String {
    String::from_utf8(cell(rows, name).unwrap()).unwrap()
}

fn number_of(rows: &Rows, name: &str) -> i64 {
    i64::from_be_bytes(cell(rows, name).unwrap().try_into().unwrap())
}

fn double_of(rows: &Rows, name: &str) -> f64 {
    f64::from_be_bytes(cell(rows, name).unwrap().try_into().unwrap())
}

/// Without `frozen<..>`.
fn thawed(types: &str) -> String {
    let (mut out, mut open) = (String::new(), Vec::new());
    let mut rest = types;
    while let Some(next) = rest.chars().next() {
        if let Some(after) = rest.strip_prefix("frozen<") {
            open.push(true);
            rest = after;
            continue;
        }
        if next == '<' {
            open.push(false);
        }
        if next != '>' || open.pop() == Some(false) {
            out.push(next);
        }
        rest = &rest[next.len_utf8()..];
    }
    out
}

#[test]
fn the_virtual_tables_of_cassandra_5_are_all_there_with_its_columns() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    let expected = include_str!("../../testdata/system_views.txt");
    for line in expected.lines().filter(|line| !line.starts_with('#')) {
        let (table, columns) = line.split_once(": ").unwrap();
        let rows = ask(&mut client, &format!("SELECT * FROM system_views.{table}"));
        let shown = rows.metadata.columns.as_ref().unwrap().iter();
        let shown: Vec<String> = shown
            .map(|column| format!("{} {}", column.name, column.cql_type))
            .collect();
        // The protocol does not say which types are frozen.
        assert_eq!(thawed(&shown.join(", ")), thawed(columns), "{table}");
    }
}

#[test]
fn what_statements_and_batches_do_is_counted_in_virtual_tables() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    for batch in ["BATCH", "UNLOGGED BATCH"] {
        let insert = |key: i32| format!("INSERT INTO ks.t (k, v) VALUES ({key}, 'x')");
        let inserts: Vec<String> = (0..3).map(insert).collect();
        run(
            &mut client,
            &format!("BEGIN {batch} {}; APPLY BATCH", inserts.join("; ")),
        );
    }
    run(
        &mut client,
        "CREATE TABLE ks.counts (k int PRIMARY KEY, c counter)",
    );
    let count = |key: i32| format!("UPDATE ks.counts SET c = c + 1 WHERE k = {key}");
    let counts = [count(1), count(2), count(1)].join("; ");
    run(&mut client, &format!("BEGIN COUNTER BATCH {counts}; APPLY BATCH"));
    ask(&mut client, "SELECT v FROM ks.t WHERE k = 1");
    ask(&mut client, "SELECT v FROM ks.t");
    let of = "WHERE keyspace_name = 'ks' AND table_name = 't'";
    for (table, count) in [
        ("coordinator_read_latency", 1),
        ("coordinator_scan_latency", 1),
        ("coordinator_write_latency", 2),
        ("local_read_latency", 1),
        ("local_scan_latency", 1),
        ("rows_per_read", 2),
        ("tombstones_per_read", 2),
    ] {
        let rows = ask(
            &mut client,
            &format!("SELECT count FROM system_views.{table} {of}"),
        );
        assert_eq!(number_of(&rows, "count"), count, "{table}");
    }
    let rows = ask(
        &mut client,
        &format!("SELECT max FROM system_views.rows_per_read {of}"),
    );
    assert_eq!(double_of(&rows, "max"), 3.0);
    let rows = ask(
        &mut client,
        &format!("SELECT per_second FROM system_views.coordinator_write_latency {of}"),
    );
    assert!(double_of(&rows, "per_second") >= 0.0);
    // Tables without reads and writes have a row, too.
    let rows = ask(
        &mut client,
        "SELECT count FROM system_views.local_scan_latency WHERE keyspace_name = 'system_auth' AND table_name = 'roles'",
    );
    assert_eq!(number_of(&rows, "count"), 0);
    for (name, max) in [
        ("partitions_per_logged_batch", 3),
        ("partitions_per_unlogged_batch", 3),
        ("partitions_per_counter_batch", 2),
    ] {
        let rows = ask(
            &mut client,
            &format!("SELECT max, p50th FROM system_views.batch_metrics WHERE name = '{name}'"),
        );
        assert_eq!(number_of(&rows, "max"), max, "{name}");
    }
    let rows = ask(
        &mut client,
        "SELECT value FROM system_views.cql_metrics WHERE name = 'regular_statements_executed'",
    );
    assert!(double_of(&rows, "value") > 8.0);
    let rows = ask(
        &mut client,
        "SELECT * FROM system_views.thread_pools WHERE name = 'Native-Transport-Requests'",
    );
    assert!(number_of(&rows, "completed_tasks") > 8);
    assert_eq!(number_of(&rows, "blocked_tasks"), 0);
    let rows = ask(
        &mut client,
        "SELECT value FROM system_views.system_properties WHERE name = 'os.name'",
    );
    assert_eq!(text_of(&rows, "value"), "Linux");
    let rows = ask(&mut client, "SELECT status, rack FROM system_views.gossip_info");
    assert!(text_of(&rows, "status").starts_with("NORMAL,"));
}

#[test]
fn statements_that_are_being_executed_are_told_with_their_times() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    // Only this query itself is running. Without a space before the table name the server expects that it may take long.
    let text = "SELECT thread_id, queued_micros, running_micros, task FROM\nsystem_views.queries";
    let rows = ask(&mut client, text);
    assert_eq!(rows.rows().count(), 1);
    assert_eq!(text_of(&rows, "task"), format!("QUERY {text}"));
    assert!(text_of(&rows, "thread_id").starts_with("ilion-heavy-"));
    assert!(number_of(&rows, "queued_micros") >= 0 && number_of(&rows, "running_micros") >= 0);
}

#[test]
fn files_and_compactions_are_told_in_tables_of_system() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let table = setup.node.engine().schema().table("ks", "t").unwrap().id;
    for round in 0..2 {
        for key in 0..100 {
            run(
                &mut client,
                &format!("INSERT INTO ks.t (k, v) VALUES ({key}, 'round {round}')"),
            );
        }
        setup.node.engine().flush(table).unwrap();
    }
    setup.node.engine().compact(table).unwrap();
    let rows = ask(
        &mut client,
        "SELECT partitions_count, mean_partition_size FROM system.size_estimates WHERE keyspace_name = 'ks' AND table_name = 't'",
    );
    let partitions: i64 = rows
        .rows()
        .map(|row| i64::from_be_bytes(row[0].unwrap().try_into().unwrap()))
        .sum();
    assert!((99..=101).contains(&partitions), "{partitions} partitions");
    assert!(number_of(&rows, "mean_partition_size") > 10);
    let rows = ask(
        &mut client,
        "SELECT range_type FROM system.table_estimates WHERE keyspace_name = 'ks'",
    );
    assert_eq!(rows.rows().count(), 4);
    let history = |client: &mut Client| {
        let text = "SELECT keyspace_name, bytes_in, bytes_out, compaction_properties, rows_merged, TTL(bytes_in) AS ttl \
                    FROM system.compaction_history WHERE columnfamily_name = 't' ALLOW FILTERING";
        ask(client, text)
    };
    let rows = history(&mut client);
    assert_eq!(rows.rows().count(), 1);
    assert_eq!(text_of(&rows, "keyspace_name"), "ks");
    assert!(number_of(&rows, "bytes_in") > number_of(&rows, "bytes_out"));
    // Two SSTables; each partition is in both: `{2: 100}`.
    let merged = cell(&rows, "rows_merged").unwrap();
    let parts: [&[u8]; 5] = [
        &1_i32.to_be_bytes(),
        &4_i32.to_be_bytes(),
        &2_i32.to_be_bytes(),
        &8_i32.to_be_bytes(),
        &100_i64.to_be_bytes(),
    ];
    assert_eq!(merged, parts.concat());
    let ttl = i32::from_be_bytes(cell(&rows, "ttl").unwrap().try_into().unwrap());
    assert!((604_700..=604_800).contains(&ttl), "{ttl}");
    let rows = ask(
        &mut client,
        "SELECT mebibytes FROM system_views.max_sstable_size WHERE keyspace_name = 'ks' AND table_name = 't'",
    );
    assert_eq!(number_of(&rows, "mebibytes"), 1);
    // The history is kept over restarts.
    let env = setup.env.clone();
    drop(client);
    setup.server.stop(std::time::Duration::from_secs(1));
    drop(setup.node);
    let setup = start_on(env);
    assert_eq!(history(&mut setup.client(Version::V5)).rows().count(), 1);
}
