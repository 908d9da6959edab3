//! An encoded message decodes to the same message, in each version, in whatever pieces the bytes arrive.

use bytes::BytesMut;
use ilion_protocol::*;

use crate::generate::{self, Random};

const SEEDS: std::ops::Range<u64> = 0..3000;

/// The frames in `bytes`, which arrive in random pieces.
pub fn decode_all(decoder: &mut FrameDecoder, bytes: &[u8], random: &mut Random) -> Vec<Frame> {
    let mut buffer = BytesMut::new();
    let mut frames = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let (piece, tail) = rest.split_at(1 + random.below(rest.len()));
        buffer.extend_from_slice(piece);
        rest = tail;
        while let Some(frame) = decoder.decode(&mut buffer).unwrap() {
            frames.push(frame);
        }
    }
    assert!(buffer.is_empty(), "all bytes were used");
    frames
}

fn compression(random: &mut Random, version: Version) -> Option<Compression> {
    match version {
        Version::V5 => random.pick(&[None, Some(Compression::Lz4)]),
        _ => random.pick(&[None, Some(Compression::Lz4), Some(Compression::Snappy)]),
    }
}

/// A decoder after STARTUP, and the envelopes as it expects them.
fn connect(role: Role, version: Version, compression: Option<Compression>) -> FrameDecoder {
    let mut decoder = FrameDecoder::new(role, Limits::default());
    decoder.fix_version(version);
    match version {
        Version::V5 => decoder.use_segments(compression),
        _ => decoder.use_compression(compression),
    }
    decoder
}

fn on_the_wire(envelopes: Vec<u8>, version: Version, compression: Option<Compression>) -> Vec<u8> {
    if version < Version::V5 {
        return envelopes;
    }
    let mut out = Vec::new();
    encode_segments(&envelopes, compression, &mut out);
    out
}

#[test]
fn requests_come_back() {
    for seed in SEEDS {
        let random = &mut Random::new(seed);
        let version = random.version();
        let compression = compression(random, version);
        let sent = random.list(4, |random| generate::request(random, version));
        let mut envelopes = Vec::new();
        for frame in &sent {
            encode_request(&mut envelopes, frame, compression).unwrap();
        }
        let wire = on_the_wire(envelopes, version, compression);
        let mut decoder = connect(Role::Server, version, compression);
        let received: Vec<RequestFrame> = decode_all(&mut decoder, &wire, random)
            .iter()
            .map(|frame| RequestFrame::decode(frame).unwrap())
            .collect();
        assert_eq!(received, sent, "seed {seed}");
    }
}

#[test]
fn responses_come_back() {
    for seed in SEEDS {
        let random = &mut Random::new(seed);
        let version = random.version();
        let compression = compression(random, version);
        let sent = random.list(4, |random| generate::response(random, version));
        let mut envelopes = Vec::new();
        for frame in &sent {
            let head = ResponseHead {
                version,
                stream: frame.stream,
                tracing_id: frame.tracing_id,
                warnings: &frame.warnings,
                custom_payload: &frame.custom_payload,
            };
            encode_response(&mut envelopes, &head, &frame.response, compression).unwrap();
        }
        let wire = on_the_wire(envelopes, version, compression);
        let mut decoder = connect(Role::Client, version, compression);
        let received: Vec<ResponseFrame> = decode_all(&mut decoder, &wire, random)
            .iter()
            .map(|frame| ResponseFrame::decode(frame).unwrap())
            .collect();
        assert_eq!(received, sent, "seed {seed}");
    }
}

/// Rows that a server appends and rows as a value have the same bytes.
#[test]
fn appended_rows_are_rows() {
    let columns: Vec<ColumnSpec> = ["k", "v"]
        .into_iter()
        .map(|name| ColumnSpec {
            keyspace: "ks".into(),
            table: "t".into(),
            name: name.into(),
            cql_type: ilion_types::CqlType::Text,
        })
        .collect();
    let metadata = RowsMetadata {
        paging_state: Some("next".into()),
        ..RowsMetadata::new(columns.clone())
    };
    let rows = [[Some(&b"a"[..]), None], [Some(b"b"), Some(b"")]];
    let expected = Response::Result(ResultBody::Rows(Rows::new(metadata, rows)));
    for version in Version::SUPPORTED {
        let head = ResponseHead::new(version, 7);
        let mut whole = Vec::new();
        encode_response(&mut whole, &head, &expected, None).unwrap();

        let mut streamed = Vec::new();
        let start = begin_response(&mut streamed, &head, Opcode::Result);
        let rows_head = RowsHead {
            columns: &columns,
            mode: MetadataMode::Full,
            paging_state: Some(b"next"),
        };
        rows_head.begin_rows(&mut streamed, version, 2);
        streamed.extend([0, 0, 0, 1, b'a', 0xff, 0xff, 0xff, 0xff]);
        streamed.extend([0, 0, 0, 1, b'b', 0, 0, 0, 0]);
        start.finish(&mut streamed, None).unwrap();
        assert_eq!(streamed, whole, "{version}");
    }
}
