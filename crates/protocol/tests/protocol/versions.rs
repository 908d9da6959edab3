//! What older versions get in place of messages that they do not know.

use bytes::BytesMut;
use ilion_protocol::*;
use ilion_types::CqlType;

/// A response as a client of `version` decodes it.
fn seen(version: Version, response: Response) -> ResponseFrame {
    let warnings = ["careful".to_owned()];
    let head = ResponseHead::new(version, 1).with_warnings(&warnings);
    let mut out = Vec::new();
    encode_response(&mut out, &head, &response, None).unwrap();
    let mut client = FrameDecoder::new(Role::Client, Limits::default());
    let frame = client.decode(&mut BytesMut::from(&out[..])).unwrap().unwrap();
    ResponseFrame::decode(&frame).unwrap()
}

fn seen_error(version: Version, detail: ErrorDetail) -> ErrorDetail {
    match seen(version, Response::Error(ErrorResponse::new(detail, "m"))).response {
        Response::Error(error) => error.detail,
        other => panic!("{other:?}"),
    }
}

const QUORUM: Consistency = Consistency::Quorum;

#[test]
fn warnings_are_dropped_in_v3() {
    assert!(seen(Version::V3, Response::Ready).warnings.is_empty());
    assert_eq!(seen(Version::V4, Response::Ready).warnings, ["careful"]);
}

#[test]
fn failures_are_timeouts_in_v3_and_counts_in_v4() {
    let reasons = vec![
        ([127, 0, 0, 1].into(), FailureReason(2)),
        ([127, 0, 0, 2].into(), FailureReason(1)),
    ];
    let read = |failures| ErrorDetail::ReadFailure {
        consistency: QUORUM,
        received: 1,
        block_for: 2,
        failures,
        data_present: true,
    };
    let write = |failures| ErrorDetail::WriteFailure {
        consistency: QUORUM,
        received: 1,
        block_for: 2,
        failures,
        write_type: WriteType::Simple,
    };
    for make in [&read as &dyn Fn(Failures) -> ErrorDetail, &write] {
        let sent = make(Failures::Reasons(reasons.clone()));
        assert_eq!(seen_error(Version::V5, sent.clone()), sent);
        assert_eq!(seen_error(Version::V4, sent), make(Failures::Count(2)));
    }
    assert_eq!(
        seen_error(Version::V3, read(Failures::Count(1))),
        ErrorDetail::ReadTimeout {
            consistency: QUORUM,
            received: 1,
            block_for: 2,
            data_present: true
        }
    );
    assert_eq!(
        seen_error(Version::V3, write(Failures::Count(1))),
        ErrorDetail::WriteTimeout {
            consistency: QUORUM,
            received: 1,
            block_for: 2,
            write_type: WriteType::Simple,
            contentions: None
        }
    );
}

#[test]
fn unknown_conditional_writes_are_timeouts_before_v5() {
    let sent = ErrorDetail::CasWriteUnknown {
        consistency: Consistency::Serial,
        received: 1,
        block_for: 2,
    };
    for version in [Version::V3, Version::V4] {
        let expected = ErrorDetail::WriteTimeout {
            consistency: Consistency::Serial,
            received: 1,
            block_for: 2,
            write_type: WriteType::Cas,
            contentions: None,
        };
        assert_eq!(seen_error(version, sent.clone()), expected);
    }
}

#[test]
fn function_failures_are_invalid_in_v3() {
    let sent = ErrorDetail::FunctionFailure {
        keyspace: "ks".into(),
        function: "f".into(),
        arguments: vec!["int".into()],
    };
    assert_eq!(seen_error(Version::V3, sent.clone()), ErrorDetail::Invalid);
    assert_eq!(seen_error(Version::V4, sent.clone()), sent);
    assert_eq!(
        seen_error(Version::V3, ErrorDetail::CdcWriteFailure),
        ErrorDetail::Invalid
    );
}

#[test]
fn functions_are_keyspace_updates_in_v3() {
    let change = SchemaChange {
        change: ChangeKind::Dropped,
        keyspace: "ks".into(),
        target: SchemaTarget::Function {
            name: "f".into(),
            arguments: vec!["int".into()],
        },
    };
    let in_v3 = SchemaChange {
        change: ChangeKind::Updated,
        keyspace: "ks".into(),
        target: SchemaTarget::Keyspace,
    };
    let event = |change| Response::Event(Event::Schema(change));
    let result = |change| Response::Result(ResultBody::SchemaChange(change));
    assert_eq!(
        seen(Version::V3, event(change.clone())).response,
        event(in_v3.clone())
    );
    assert_eq!(seen(Version::V3, result(change.clone())).response, result(in_v3));
    assert_eq!(seen(Version::V4, result(change.clone())).response, result(change));
}

fn option(version: Version, cql_type: &CqlType) -> Vec<u8> {
    let mut out = Vec::new();
    encode_type(&mut out, version, cql_type);
    out
}

fn custom(class: &str) -> Vec<u8> {
    let class = format!("org.apache.cassandra.db.marshal.{class}");
    let mut out = vec![0, 0];
    out.extend_from_slice(&(class.len() as u16).to_be_bytes());
    out.extend_from_slice(class.as_bytes());
    out
}

#[test]
fn newer_types_are_custom_in_older_versions() {
    let newer = [
        (CqlType::Date, "SimpleDateType", 0x11, Version::V4),
        (CqlType::Time, "TimeType", 0x12, Version::V4),
        (CqlType::SmallInt, "ShortType", 0x13, Version::V4),
        (CqlType::TinyInt, "ByteType", 0x14, Version::V4),
        (CqlType::Duration, "DurationType", 0x15, Version::V5),
    ];
    for (cql_type, class, id, since) in newer {
        for version in Version::SUPPORTED {
            let expected = if version >= since {
                vec![0, id]
            } else {
                custom(class)
            };
            assert_eq!(option(version, &cql_type), expected, "{cql_type:?} in {version}");
        }
    }
}

#[test]
fn vectors_are_custom_in_all_versions() {
    let vector = CqlType::Vector {
        element: CqlType::Float.into(),
        dimension: 3,
    };
    for version in Version::SUPPORTED {
        assert_eq!(
            option(version, &vector),
            custom("VectorType(org.apache.cassandra.db.marshal.FloatType , 3)")
        );
    }
}

#[test]
fn types_nested_too_deeply_are_refused() {
    let lists = |depth: usize| [0, 0x20].repeat(depth);
    let mut bytes = lists(31);
    bytes.extend([0, 9]);
    assert!(decode_type(&mut ilion_codec::Reader::new(&bytes)).is_ok());
    assert!(decode_type(&mut ilion_codec::Reader::new(&lists(100_000))).is_err());
}

#[test]
fn requests_that_a_version_cannot_carry_are_refused() {
    let request = |version, params| RequestFrame {
        version,
        stream: 0,
        tracing: false,
        custom_payload: Vec::new(),
        request: Request::Query(Query {
            text: "q".into(),
            params,
        }),
    };
    let unset = QueryParams {
        values: [Value::Unset].into_iter().collect(),
        ..QueryParams::default()
    };
    let keyspace = QueryParams {
        keyspace: Some("ks".into()),
        ..QueryParams::default()
    };
    for (params, since) in [(unset, Version::V4), (keyspace, Version::V5)] {
        for version in Version::SUPPORTED {
            let mut out = b"before".to_vec();
            let encoded = encode_request(&mut out, &request(version, params.clone()), None);
            assert_eq!(encoded.is_ok(), version >= since, "{version}");
            assert_eq!(
                out.len() > 6,
                version >= since,
                "nothing is left of a refused request"
            );
        }
    }
}

/// In v3 any negative length is null; later -2 is unset and the rest is an error.
#[test]
fn negative_lengths_of_values() {
    let query = |version, length: i32| {
        let mut body = b"\0\0\0\x01q\0\x01".to_vec();
        if version == Version::V5 {
            body.extend([0, 0, 0]);
        }
        body.extend([1, 0, 1]);
        body.extend(length.to_be_bytes());
        let frame = Frame {
            version,
            flags: Flags::default(),
            stream: 0,
            opcode: Opcode::Query,
            body: body.into(),
        };
        RequestFrame::decode(&frame).map(|frame| match frame.request {
            Request::Query(query) => query.params.values.value(0) == Some(Value::Null),
            other => panic!("{other:?}"),
        })
    };
    for version in Version::SUPPORTED {
        assert_eq!(query(version, -1), Ok(true));
    }
    assert_eq!(query(Version::V3, -2), Ok(true));
    assert_eq!(query(Version::V3, -3), Ok(true));
    assert_eq!(query(Version::V4, -2), Ok(false));
    assert!(query(Version::V4, -3).is_err());
}

#[test]
fn startup_says_which_compression() {
    let startup = |name: &str| Startup {
        options: vec![("COMPRESSION".into(), name.into())],
    };
    assert_eq!(
        startup("LZ4").compression(Version::V5),
        Ok(Some(Compression::Lz4))
    );
    assert_eq!(
        startup("snappy").compression(Version::V4),
        Ok(Some(Compression::Snappy))
    );
    let error = |name: &str, version| startup(name).compression(version).unwrap_err().to_string();
    assert_eq!(
        error("snappy", Version::V5),
        "Snappy compression is not supported in protocol V5"
    );
    assert_eq!(error("zip", Version::V4), "Unknown compression algorithm: zip");
    assert!(startup("lz4").cql_version().is_err());
}
