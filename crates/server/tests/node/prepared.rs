//! PREPARE and EXECUTE: metadata, its ids, and when it is sent.

use ilion_protocol::{
    ErrorCode, Execute, MetadataMode, Prepare, Prepared, QueryParams, Request, Response, ResultBody, Value,
    Values, Version,
};

use crate::client::{Client, error_of, rows_of};
use crate::{make_table, run, start};

fn prepare(client: &mut Client, text: &str) -> Prepared {
    let request = Request::Prepare(Prepare {
        text: text.to_owned(),
        keyspace: None,
    });
    match client.ask(request) {
        Response::Result(ResultBody::Prepared(prepared)) => prepared,
        other => panic!("{other:?}"),
    }
}

fn execute(prepared: &Prepared, skip_metadata: bool, key: i32) -> Request {
    Request::Execute(Execute {
        id: prepared.id.clone(),
        result_metadata_id: prepared.result_metadata_id.clone(),
        params: QueryParams {
            values: Values::from_iter([Value::Bytes(&key.to_be_bytes())]),
            skip_metadata,
            ..QueryParams::default()
        },
    })
}

#[test]
fn a_prepared_statement_tells_its_markers_and_its_result() {
    let setup = start();
    for version in Version::SUPPORTED {
        let mut client = setup.client(version);
        if version == Version::V3 {
            make_table(&mut client);
        }
        let insert = prepare(&mut client, "INSERT INTO ks.t (v, k) VALUES (?, ?)");
        let names: Vec<&str> = insert.bind.columns.iter().map(|column| &*column.name).collect();
        assert_eq!(names, ["v", "k"]);
        let indexes: &[u16] = if version == Version::V3 { &[] } else { &[1] };
        assert_eq!(insert.bind.partition_key_indexes, indexes);
        assert_eq!(insert.result.column_count, 0);
        let select = prepare(&mut client, "SELECT * FROM ks.t WHERE k = ?");
        assert_eq!(select.result.column_count, 2);
        // The same text has the same id on every connection.
        let again = prepare(&mut setup.client(version), "SELECT * FROM ks.t WHERE k = ?");
        assert_eq!(again.id, select.id);
    }
}

#[test]
fn metadata_is_left_out_when_the_client_has_it() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    run(&mut client, "INSERT INTO ks.t (k, v) VALUES (1, 'one')");
    for version in Version::SUPPORTED {
        let mut client = setup.client(version);
        let select = prepare(&mut client, "SELECT * FROM ks.t WHERE k = ?");
        let with = rows_of(client.ask(execute(&select, false, 1)));
        assert!(with.metadata.columns.is_some());
        let without = rows_of(client.ask(execute(&select, true, 1)));
        assert_eq!(
            without.metadata.columns,
            None,
            "{version} {:?}",
            MetadataMode::Skip
        );
        assert_eq!(without.metadata.column_count, 2);
        let cells: Vec<_> = without.cells().collect();
        assert_eq!(cells, [Some(&[0, 0, 0, 1][..]), Some(b"one")]);
    }
}

/// The answer of an EXECUTE: the number of columns and whether it has their metadata, or the code of an error.
fn outcome(response: Response) -> Result<(usize, bool), ErrorCode> {
    match response {
        Response::Error(error) => Err(error.detail.code()),
        other => {
            let metadata = rows_of(other).metadata;
            Ok((metadata.column_count, metadata.columns.is_some()))
        }
    }
}

#[test]
fn a_statement_has_to_be_prepared_again_when_its_table_changed() {
    let setup = start();
    for version in Version::SUPPORTED {
        for (number, change) in [
            "ALTER TABLE ks.t ADD w int",
            "ALTER TABLE ks.t DROP v",
            "ALTER TABLE ks.t RENAME k TO kk",
            "DROP TABLE ks.t",
            "DROP KEYSPACE ks",
        ]
        .into_iter()
        .enumerate()
        {
            let mut client = setup.client(version);
            run(&mut client, "DROP KEYSPACE IF EXISTS ks");
            make_table(&mut client);
            let select = prepare(&mut client, "SELECT * FROM ks.t WHERE k = ?");
            let insert = prepare(&mut client, "INSERT INTO ks.t (k) VALUES (?)");
            assert_eq!(outcome(client.ask(execute(&select, true, 1))), Ok((2, false)));
            run(&mut client, change);
            for statement in [&select, &insert] {
                let error = error_of(client.ask(execute(statement, true, 1)));
                assert_eq!(error.detail.code(), ErrorCode::Unprepared, "{version} {change}");
            }
            if number == 0 {
                let again = prepare(&mut client, "SELECT * FROM ks.t WHERE k = ?");
                assert_eq!(again.id, select.id);
                assert_eq!(outcome(client.ask(execute(&again, true, 1))), Ok((3, false)));
            }
        }
    }
}

#[test]
fn a_statement_stays_prepared_while_other_tables_change() {
    let setup = start();
    let mut client = setup.client(Version::V4);
    make_table(&mut client);
    run(&mut client, "CREATE TABLE ks.other (k int PRIMARY KEY)");
    let select = prepare(&mut client, "SELECT * FROM ks.t WHERE k = ?");
    for change in [
        "ALTER TABLE ks.other ADD v int",
        "DROP TABLE ks.other",
        "ALTER TABLE ks.t WITH comment = 'x'",
    ] {
        run(&mut client, change);
        assert_eq!(
            outcome(client.ask(execute(&select, true, 1))),
            Ok((2, false)),
            "{change}"
        );
    }
}

#[test]
fn a_client_that_does_without_columns_never_gets_rows_of_columns_that_it_was_not_told() {
    let setup = start();
    for version in [Version::V3, Version::V4] {
        let mut one = setup.client(version);
        let mut two = setup.client(version);
        run(&mut one, "DROP KEYSPACE IF EXISTS ks");
        make_table(&mut one);
        let text = "SELECT * FROM ks.t WHERE k = ?";
        let old = prepare(&mut two, text);
        assert_eq!(outcome(two.ask(execute(&old, true, 1))), Ok((2, false)));
        run(&mut one, "ALTER TABLE ks.t ADD a int");
        // Another client prepares the statement again, so its id is known again.
        let new = prepare(&mut one, text);
        assert_eq!(new.id, old.id);
        assert_eq!(outcome(one.ask(execute(&new, true, 1))), Ok((3, false)));
        assert_eq!(
            outcome(two.ask(execute(&old, true, 1))),
            Err(ErrorCode::Unprepared),
            "{version}"
        );
        // A client that asks for the metadata gets it.
        assert_eq!(outcome(two.ask(execute(&old, false, 1))), Ok((3, true)));
        let renewed = prepare(&mut two, text);
        assert_eq!(outcome(two.ask(execute(&renewed, true, 1))), Ok((3, false)));
    }
}

#[test]
fn changed_columns_are_told_with_their_new_id_in_v5_when_another_client_prepared_them() {
    let setup = start();
    let mut one = setup.client(Version::V5);
    let mut two = setup.client(Version::V5);
    make_table(&mut one);
    run(&mut one, "INSERT INTO ks.t (k, v) VALUES (1, 'one')");
    let text = "SELECT * FROM ks.t WHERE k = ?";
    let old = prepare(&mut one, text);
    run(&mut two, "ALTER TABLE ks.t ADD w int");
    prepare(&mut two, text);
    let rows = rows_of(one.ask(execute(&old, true, 1)));
    assert_eq!(rows.metadata.column_count, 3);
    let new_id = rows.metadata.new_metadata_id.clone().unwrap();
    assert_ne!(new_id, old.result_metadata_id);
    // A client that sends the new id gets no metadata.
    let renewed = Prepared {
        result_metadata_id: new_id,
        ..old
    };
    let rows = rows_of(one.ask(execute(&renewed, true, 1)));
    assert_eq!(
        (rows.metadata.columns, rows.metadata.new_metadata_id),
        (None, None)
    );
}

/// The bodies of answers, with names in place of ids, as Cassandra 5.0.9 sent them for the same requests.
#[test]
fn answers_around_an_alter_are_byte_for_byte_those_of_cassandra() {
    let setup = start();
    let (mut one, mut two) = (setup.client(Version::V5), setup.client(Version::V5));
    for text in [
        "CREATE KEYSPACE wire WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE wire.t (k int PRIMARY KEY, a int)",
        "INSERT INTO wire.t (k, a) VALUES (1, 2)",
    ] {
        run(&mut two, text);
    }
    let text = "SELECT * FROM wire.t WHERE k = ?";
    let prepare_request = || {
        Request::Prepare(Prepare {
            text: text.to_owned(),
            keyspace: None,
        })
    };
    let old = prepare(&mut one, text);
    let body = |client: &mut Client, request: Request| {
        client.send(5, request);
        client.try_receive_frame().unwrap().body
    };
    let before = [
        body(&mut one, prepare_request()),
        body(&mut one, execute(&old, true, 1)),
        body(&mut one, execute(&old, false, 1)),
    ];
    run(&mut two, "ALTER TABLE wire.t ADD b int");
    run(&mut two, "UPDATE wire.t SET b = 3 WHERE k = 1");
    let new = prepare(&mut two, text);
    let after = [
        body(&mut two, prepare_request()),
        body(&mut one, execute(&old, true, 1)),
        body(&mut one, execute(&old, false, 1)),
        body(&mut one, execute(&new, true, 1)),
        body(&mut one, execute(&new, false, 1)),
        body(&mut one, execute(&old, true, 9)),
    ];
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let shown = |body: &bytes::Bytes| {
        hex(body)
            .replace(&hex(&old.id), "[statement]")
            .replace(&hex(&old.result_metadata_id), "[before]")
            .replace(&hex(&new.result_metadata_id), "[after]")
    };
    assert_eq!(new.id, old.id);
    let shown: Vec<String> = before.iter().chain(&after).map(shown).collect();
    let expected = [
        "000000040010[statement]0010[before]000000010000000100000001000000047769726500017400016b0009000000010000000200047769726500017400016b00090001610009",
        "0000000200000005000000020000000100000004000000010000000400000002",
        "00000002000000010000000200047769726500017400016b000900016100090000000100000004000000010000000400000002",
        "000000040010[statement]0010[after]000000010000000100000001000000047769726500017400016b0009000000010000000300047769726500017400016b000900016100090001620009",
        "0000000200000009000000030010[after]00047769726500017400016b00090001610009000162000900000001000000040000000100000004000000020000000400000003",
        "0000000200000009000000030010[after]00047769726500017400016b00090001610009000162000900000001000000040000000100000004000000020000000400000003",
        "00000002000000050000000300000001000000040000000100000004000000020000000400000003",
        "00000002000000010000000300047769726500017400016b00090001610009000162000900000001000000040000000100000004000000020000000400000003",
        "0000000200000009000000030010[after]00047769726500017400016b00090001610009000162000900000000",
    ];
    assert_eq!(shown, expected);
}

#[test]
fn conditional_writes_always_tell_their_columns() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    let insert = prepare(&mut client, "INSERT INTO ks.t (k) VALUES (?) IF NOT EXISTS");
    for width in [1, 3] {
        let rows = rows_of(client.ask(execute(&insert, true, 1)));
        let columns = rows.metadata.columns.unwrap();
        assert_eq!(&*columns[0].name, "[applied]");
        assert_eq!(columns.len(), width);
        assert_eq!(rows.metadata.new_metadata_id, None);
    }
}

#[test]
fn a_statement_that_nobody_prepared_here_is_named() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    let nobody = Prepared {
        id: bytes::Bytes::from_static(&[7; 16]),
        ..Prepared::default()
    };
    let error = error_of(client.ask(execute(&nobody, false, 1)));
    assert!(
        error.message.contains("07070707070707070707070707070707"),
        "{error}"
    );
}

#[test]
fn pages_follow_each_other() {
    let setup = start();
    let mut client = setup.client(Version::V4);
    make_table(&mut client);
    for key in 0..25 {
        run(
            &mut client,
            &format!("INSERT INTO ks.t (k, v) VALUES ({key}, 'x')"),
        );
    }
    let mut sizes = Vec::new();
    let mut paging_state = None;
    loop {
        let request = Request::Query(ilion_protocol::Query {
            text: "SELECT k FROM ks.t".to_owned(),
            params: QueryParams {
                page_size: Some(10),
                paging_state: paging_state.take(),
                ..QueryParams::default()
            },
        });
        let rows = rows_of(client.ask(request));
        sizes.push(rows.row_count);
        paging_state = rows.metadata.paging_state.clone();
        if paging_state.is_none() {
            break;
        }
    }
    assert_eq!(sizes, [10, 10, 5]);
}

#[test]
fn a_client_is_told_once_that_what_it_prepares_depends_on_its_keyspace() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    make_table(&mut client);
    run(&mut client, "USE ks");
    let mut warnings = |text: &str| {
        let request = Request::Prepare(Prepare {
            text: text.to_owned(),
            keyspace: None,
        });
        client.send(1, request);
        client.receive().warnings
    };
    assert_eq!(warnings("SELECT * FROM ks.t"), Vec::<String>::new());
    let told = warnings("SELECT * FROM t");
    assert_eq!(told.len(), 1, "{told:?}");
    assert!(
        told[0].starts_with("`USE <keyspace>` with prepared statements"),
        "{told:?}"
    );
    assert!(
        told[0].contains("Keyspace used: ks, statement keyspace: ks, statement id: "),
        "{told:?}"
    );
    assert_eq!(warnings("SELECT k FROM t"), Vec::<String>::new());
}
