//! Limits, skipping, refusals, compression, segments.

use bytes::{Bytes, BytesMut};
use ilion_codec::Rope;
use ilion_protocol::*;

use crate::generate::Random;
use crate::round_trip::decode_all;

fn crc24(bytes: &[u8]) -> u32 {
    let mut crc = 0x0087_5060_u32;
    for &byte in bytes {
        crc ^= u32::from(byte) << 16;
        for _ in 0..8 {
            crc <<= 1;
            if crc & 0x0100_0000 != 0 {
                crc ^= 0x0197_4f0b;
            }
        }
    }
    crc
}

/// A plain segment, written from its definition, around bytes that need not be envelopes.
pub fn raw_segment(payload: &[u8], is_self_contained: bool) -> Vec<u8> {
    let word = payload.len() as u32 | u32::from(is_self_contained) << 17;
    let mut out = word.to_le_bytes()[..3].to_vec();
    let crc = crc24(&out);
    out.extend_from_slice(&crc.to_le_bytes()[..3]);
    out.extend_from_slice(payload);
    let mut checked = vec![0xfa, 0x2d, 0x55, 0xca];
    checked.extend_from_slice(payload);
    out.extend_from_slice(&crc32fast::hash(&checked).to_le_bytes());
    out
}

fn header(version: Version, stream: i16, opcode: Opcode) -> Header {
    Header {
        version,
        flags: Flags::default(),
        stream,
        opcode,
    }
}

fn envelope(version: Version, stream: i16, opcode: Opcode, body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    encode_frame(&mut out, header(version, stream, opcode), body, None).unwrap();
    out
}

fn server(max_frame_bytes: u32) -> FrameDecoder {
    FrameDecoder::new(Role::Server, Limits { max_frame_bytes })
}

fn error_of(decoder: &mut FrameDecoder, buffer: &mut BytesMut) -> FrameError {
    decoder.decode(buffer).unwrap_err()
}

/// Decodes the one error in `answer`, as a client.
fn answer_of(error: &FrameError) -> (Version, i16, ErrorResponse) {
    let mut out = Vec::new();
    error.encode_answer(&mut out);
    let mut client = FrameDecoder::new(Role::Client, Limits::default());
    let frame = client.decode(&mut BytesMut::from(&out[..])).unwrap().unwrap();
    match ResponseFrame::decode(&frame).unwrap().response {
        Response::Error(response) => (frame.version, frame.stream, response),
        other => panic!("{other:?}"),
    }
}

#[test]
fn unsupported_versions_are_answered_in_the_newest_and_the_connection_goes_on() {
    for number in [0x00, 0x06, 0x07, 0x41, 0x42, 0x7f] {
        let mut bytes = envelope(Version::V4, 3, Opcode::Options, b"junk");
        bytes[0] = number;
        bytes.extend(envelope(Version::V4, 4, Opcode::Options, b""));
        let mut buffer = BytesMut::from(&bytes[..]);
        let mut decoder = server(1000);
        let error = error_of(&mut decoder, &mut buffer);
        assert_eq!(error.recovery, Recovery::Continue);
        let (version, stream, response) = answer_of(&error);
        assert_eq!((version, stream), (Version::V5, 3));
        assert_eq!(response.detail, ErrorDetail::Protocol);
        assert_eq!(
            response.message,
            format!(
                "Invalid or unsupported protocol version ({number}); \
                 supported versions are (3/v3, 4/v4, 5/v5)"
            )
        );
        let next = decoder.decode(&mut buffer).unwrap().unwrap();
        assert_eq!(next.stream, 4);
    }
}

/// The driver of sstableloader 5.0.9 shows its user what lacks the words "Invalid or unsupported protocol version"; the Python driver
/// takes an older version if it finds "unsupported protocol version".
#[test]
fn sstableloader_is_told_what_to_use_instead() {
    let mut bytes = envelope(Version::V4, 3, Opcode::Startup, b"");
    (bytes[0], bytes[1]) = (6, 0x10);
    let error = error_of(&mut server(1000), &mut BytesMut::from(&bytes[..]));
    assert_eq!(error.recovery, Recovery::Continue);
    let (version, stream, response) = answer_of(&error);
    assert_eq!((version, stream), (Version::V5, 3));
    assert_eq!(response.detail, ErrorDetail::Protocol);
    assert_eq!(
        response.message,
        "6 is an unsupported protocol version; supported versions are (3/v3, 4/v4, 5/v5). \
         Instead of sstableloader use `ilion sstable load --host ADDRESS DIR`, which sends SSTables to the admin_port"
    );
}

#[test]
fn v1_and_v2_are_refused_with_their_eight_byte_header() {
    for number in [1, 2] {
        let mut buffer = BytesMut::from(&[number, 0, 9, 5, 0, 0, 0, 0][..]);
        let error = error_of(&mut server(1000), &mut buffer);
        assert_eq!((error.stream, error.recovery), (9, Recovery::AnswerAndClose));
        let mut answer = Vec::new();
        error.encode_answer(&mut answer);
        let (head, length) = answer[..8].split_at(4);
        assert_eq!(head, [0x80 | number, 0, 9, Opcode::Error.number()]);
        let length = u32::from_be_bytes(length.try_into().unwrap());
        assert_eq!(length as usize, answer.len() - 8);
    }
}

#[test]
fn http_is_refused_and_closed() {
    let mut buffer = BytesMut::from(&b"GET / HTTP/1.1\r\n\r\n"[..]);
    let error = error_of(&mut server(1000), &mut buffer);
    assert_eq!(error.recovery, Recovery::AnswerAndClose);
}

#[test]
fn the_version_is_fixed_after_startup() {
    let mut decoder = server(1000);
    decoder.fix_version(Version::V4);
    let mut buffer = BytesMut::from(&envelope(Version::V3, 1, Opcode::Options, b"")[..]);
    let (version, _, response) = answer_of(&error_of(&mut decoder, &mut buffer));
    assert_eq!(version, Version::V4);
    assert_eq!(
        response.message,
        "Invalid message version. Got 3/v3 but previous messages on this connection had version 4/v4"
    );
}

/// The words and the version of the answer are those of Cassandra 5.0.9.
#[test]
fn versions_before_the_oldest_allowed_one_are_answered_with_an_error() {
    let mut decoder = server(1000);
    decoder.set_oldest(Version::V5);
    let mut bytes = envelope(Version::V4, 1, Opcode::Options, b"");
    bytes.extend(envelope(Version::V5, 2, Opcode::Options, b""));
    let mut buffer = BytesMut::from(&bytes[..]);
    let error = error_of(&mut decoder, &mut buffer);
    assert_eq!(error.recovery, Recovery::Continue);
    let (version, stream, response) = answer_of(&error);
    assert_eq!((version, stream), (Version::V5, 1));
    assert_eq!(response.detail, ErrorDetail::Protocol);
    assert_eq!(response.message, "Rejecting Protocol Version 4/v4 < 5/v5.");
    assert_eq!(decoder.decode(&mut buffer).unwrap().unwrap().stream, 2);
    // A connection that is open goes on in its version.
    decoder.fix_version(Version::V3);
    let mut buffer = BytesMut::from(&envelope(Version::V3, 3, Opcode::Options, b"")[..]);
    let (version, _, response) = answer_of(&error_of(&mut decoder, &mut buffer));
    assert_eq!(version, Version::V3);
    assert_eq!(response.message, "Rejecting Protocol Version 3/v3 < 5/v5.");
    decoder.set_oldest(Version::V3);
    let mut buffer = BytesMut::from(&envelope(Version::V3, 4, Opcode::Options, b"")[..]);
    assert_eq!(decoder.decode(&mut buffer).unwrap().unwrap().stream, 4);
}

#[test]
fn unknown_opcodes_and_responses_are_skipped() {
    let mut bytes = envelope(Version::V4, 1, Opcode::Options, b"body");
    bytes[4] = 99;
    bytes.extend(envelope(Version::V4, 2, Opcode::Ready, b""));
    bytes.extend(envelope(Version::V4, 3, Opcode::Options, b""));
    let mut buffer = BytesMut::from(&bytes[..]);
    let mut decoder = server(1000);
    let error = error_of(&mut decoder, &mut buffer);
    assert_eq!((error.stream, error.message.as_ref()), (1, "Unknown opcode 99"));
    let error = error_of(&mut decoder, &mut buffer);
    assert_eq!((error.stream, error.recovery), (2, Recovery::Continue));
    assert_eq!(decoder.decode(&mut buffer).unwrap().unwrap().stream, 3);
}

/// A frame above the limit is dropped while it arrives, not held, and reported after its last byte. The header counts.
#[test]
fn frames_above_the_limit_are_skipped_as_they_arrive() {
    let mut decoder = server(109);
    let big = envelope(Version::V4, 5, Opcode::Query, &[7; 101]);
    let mut buffer = BytesMut::new();
    let (last, before) = big.split_last().unwrap();
    for piece in before.chunks(9) {
        buffer.extend_from_slice(piece);
        assert_eq!(decoder.decode(&mut buffer), Ok(None));
        assert!(buffer.is_empty() && decoder.is_skipping());
    }
    buffer.extend_from_slice(&[*last]);
    let error = error_of(&mut decoder, &mut buffer);
    assert_eq!((error.stream, error.recovery), (5, Recovery::Continue));
    let (_, _, response) = answer_of(&error);
    assert_eq!(response.detail, ErrorDetail::Invalid);
    assert_eq!(
        response.message,
        "Request is too big: length 110 exceeds maximum allowed length 109."
    );
    buffer.extend_from_slice(&envelope(Version::V4, 6, Opcode::Query, &[7; 100]));
    assert_eq!(decoder.decode(&mut buffer).unwrap().unwrap().body.len(), 100);
}

#[test]
fn impossible_lengths_close() {
    for length in [-1, i32::MIN] {
        let mut bytes = envelope(Version::V4, 5, Opcode::Query, b"");
        bytes[5..9].copy_from_slice(&i32::to_be_bytes(length));
        let error = error_of(&mut server(1000), &mut BytesMut::from(&bytes[..]));
        assert_eq!(error.recovery, Recovery::AnswerAndClose, "{length}");
    }
}

/// A large announced length does not allocate that much memory.
#[test]
fn the_buffer_grows_with_what_arrives() {
    let mut bytes = envelope(Version::V4, 5, Opcode::Query, b"");
    bytes[5..9].copy_from_slice(&i32::to_be_bytes(200 << 20));
    let mut buffer = BytesMut::from(&bytes[..]);
    let mut decoder = server(256 << 20);
    assert_eq!(decoder.decode(&mut buffer), Ok(None));
    assert!(buffer.capacity() < 1 << 20, "{}", buffer.capacity());
}

#[test]
fn bodies_are_slices_of_the_read_buffer() {
    let bytes = envelope(Version::V4, 5, Opcode::Query, b"body");
    let mut buffer = BytesMut::from(&bytes[..]);
    let body_at = buffer.as_ptr() as usize + HEADER_BYTES;
    let frame = server(1000).decode(&mut buffer).unwrap().unwrap();
    assert_eq!(frame.body.as_ptr() as usize, body_at);
}

#[test]
fn compressed_bodies_need_an_agreement() {
    let mut out = Vec::new();
    let body = [b'a'; 500];
    encode_frame(
        &mut out,
        header(Version::V4, 8, Opcode::Query),
        &body,
        Some(Compression::Lz4),
    )
    .unwrap();
    assert!(out.len() < 100 && out[1] == Flags::COMPRESSED.0);
    let mut decoder = server(1000);
    let error = error_of(&mut decoder, &mut BytesMut::from(&out[..]));
    assert_eq!((error.stream, error.recovery), (8, Recovery::Continue));
    decoder.use_compression(Some(Compression::Lz4));
    let frame = decoder.decode(&mut BytesMut::from(&out[..])).unwrap().unwrap();
    assert_eq!((frame.flags, &frame.body[..]), (Flags::default(), &body[..]));
}

#[test]
fn compressed_bodies_above_the_limit_are_refused_and_skipped() {
    for compression in [Compression::Lz4, Compression::Snappy] {
        let mut out = Vec::new();
        encode_frame(
            &mut out,
            header(Version::V4, 8, Opcode::Query),
            &vec![0; 100_000],
            Some(compression),
        )
        .unwrap();
        out.extend(envelope(Version::V4, 9, Opcode::Options, b""));
        let mut decoder = server(99_999);
        decoder.use_compression(Some(compression));
        let mut buffer = BytesMut::from(&out[..]);
        let error = error_of(&mut decoder, &mut buffer);
        assert!(error.message.contains("exceeds the limit"), "{error}");
        assert_eq!(decoder.decode(&mut buffer).unwrap().unwrap().stream, 9);
    }
}

fn frames_of(sizes: &[usize]) -> Vec<u8> {
    let random = &mut Random::new(5);
    let mut out = Vec::new();
    for (stream, &size) in sizes.iter().enumerate() {
        let body: Vec<u8> = (0..size).map(|_| random.below(4) as u8).collect();
        out.extend(envelope(Version::V5, stream as i16, Opcode::Query, &body));
    }
    out
}

/// Lengths of the segments in `wire`, and whether each is self-contained.
fn plain_segments(wire: &[u8]) -> Vec<(usize, bool)> {
    let mut rest = wire;
    let mut found = Vec::new();
    while !rest.is_empty() {
        let word = u32::from_le_bytes([rest[0], rest[1], rest[2], 0]);
        let length = (word & 0x1_ffff) as usize;
        found.push((length, word >> 17 & 1 == 1));
        rest = &rest[6 + length + 4..];
    }
    found
}

#[test]
fn small_envelopes_share_a_segment_and_large_ones_are_cut() {
    let sizes = [10, 20, 131_071 - 9, 300_000, 5, 131_071 - 8, 0];
    let envelopes = frames_of(&sizes);
    let mut wire = Vec::new();
    encode_segments(&envelopes, None, &mut wire);
    let expected = [
        (19 + 29, true),
        (131_071, true),
        (131_071, false),
        (131_071, false),
        (300_009 - 2 * 131_071, false),
        (14, true),
        (131_071, false),
        (1, false),
        (9, true),
    ];
    assert_eq!(plain_segments(&wire), expected);
    for compression in [None, Some(Compression::Lz4)] {
        let mut wire = Vec::new();
        encode_segments(&envelopes, compression, &mut wire);
        let mut decoder = server(1 << 20);
        decoder.use_segments(compression);
        let frames = decode_all(&mut decoder, &wire, &mut Random::new(1));
        let lengths: Vec<usize> = frames.iter().map(|frame| frame.body.len()).collect();
        assert_eq!(lengths, sizes);
        let mut again = Vec::new();
        for frame in &frames {
            again.extend(envelope(Version::V5, frame.stream, frame.opcode, &frame.body));
        }
        assert_eq!(again, envelopes);
    }
}

#[test]
fn an_envelope_with_large_parts_is_cut_as_one_in_a_piece() {
    for sizes in [
        &[10, 300_000, 20][..],
        &[131_071 - 9, 262_144],
        &[400_000, 0, 262_144, 1],
        &[50],
    ] {
        let mut random = Random::new(1);
        let noise = std::iter::repeat_with(|| random.u64().to_be_bytes()).flatten();
        let noise: Vec<u8> = noise.take(sizes.iter().sum()).collect();
        let words: Vec<u8> = (0..noise.len()).map(|at| (at % 251) as u8).collect();
        for (body, compression) in [
            (&noise, None),
            (&noise, Some(Compression::Lz4)),
            (&words, Some(Compression::Lz4)),
        ] {
            let whole = envelope(Version::V5, 1, Opcode::Query, body);
            let mut rope = Rope::from(whole[..9].to_vec());
            let mut at = 9;
            for size in sizes {
                rope.push(&Bytes::copy_from_slice(&whole[at..at + size]));
                at += size;
            }
            let mut expected = Vec::new();
            encode_segments(&whole, compression, &mut expected);
            let mut out = Rope::default();
            encode_shared_segments(&rope, compression, &mut out);
            if *body == noise {
                assert_eq!(out.shared_len(), rope.shared_len(), "nothing large is copied");
            }
            assert_eq!(out.into_vec(), expected);
        }
    }
}

/// Compat: 5.0.9 cuts at 131054 bytes, and any split is legal, even within the header.
#[test]
fn any_split_of_a_large_envelope_is_accepted() {
    for cut in [1, 4, 9, 10, 131_054] {
        let bytes = envelope(Version::V5, 1, Opcode::Query, &[3; 140_000]);
        let (first, second) = bytes.split_at(cut);
        let mut buffer = BytesMut::new();
        buffer.extend_from_slice(&raw_segment(first, false));
        for piece in second.chunks(131_071) {
            buffer.extend_from_slice(&raw_segment(piece, false));
        }
        let mut decoder = server(1 << 20);
        decoder.use_segments(None);
        let frame = decoder.decode(&mut buffer).unwrap().unwrap();
        assert_eq!(frame.body, Bytes::from_static(&[3; 140_000]));
    }
}

#[test]
fn a_large_envelope_above_the_limit_is_skipped_piece_by_piece() {
    let mut buffer = BytesMut::new();
    let mut wire = Vec::new();
    encode_segments(&frames_of(&[400_000, 3]), None, &mut wire);
    buffer.extend_from_slice(&wire);
    let mut decoder = server(1000);
    decoder.use_segments(None);
    let error = error_of(&mut decoder, &mut buffer);
    assert_eq!((error.stream, error.recovery), (0, Recovery::Continue));
    let frame = decoder.decode(&mut buffer).unwrap().unwrap();
    assert_eq!((frame.stream, frame.body.len()), (1, 3));
}

#[test]
fn a_bad_frame_in_a_segment_does_not_hide_the_next() {
    let mut envelopes = envelope(Version::V5, 1, Opcode::Query, b"x");
    envelopes[4] = 77;
    envelopes.extend(envelope(Version::V5, 2, Opcode::Query, b"y"));
    let mut decoder = server(1000);
    decoder.use_segments(None);
    let mut buffer = BytesMut::from(&raw_segment(&envelopes, true)[..]);
    assert_eq!(error_of(&mut decoder, &mut buffer).message, "Unknown opcode 77");
    assert_eq!(decoder.decode(&mut buffer).unwrap().unwrap().stream, 2);
}

#[test]
fn segments_that_break_the_rules_close_the_connection() {
    let whole = envelope(Version::V5, 1, Opcode::Query, b"0123456789");
    let half = &whole[..15];
    let too_long = [&whole[..], b"more"].concat();
    let streams = [
        ("ends within an envelope", vec![raw_segment(half, true)]),
        ("ends within an envelope", vec![raw_segment(&half[..5], true)]),
        ("exceed its length", vec![raw_segment(&too_long, false)]),
        (
            "another one begins",
            vec![raw_segment(half, false), raw_segment(&whole, true)],
        ),
    ];
    for (expected, segments) in streams {
        let mut decoder = server(1000);
        decoder.use_segments(None);
        let error = error_of(&mut decoder, &mut BytesMut::from(&segments.concat()[..]));
        assert!(error.message.contains(expected), "{error}");
        assert_eq!(error.recovery, Recovery::AnswerAndClose);
    }
}

#[test]
fn damaged_segments_are_noticed_at_every_byte() {
    for compression in [None, Some(Compression::Lz4)] {
        let mut wire = Vec::new();
        encode_segments(&frames_of(&[300]), compression, &mut wire);
        let header_bytes = if compression.is_some() { 8 } else { 6 };
        for at in 0..wire.len() {
            let mut damaged = wire.clone();
            damaged[at] ^= 0x10;
            let mut decoder = server(1000);
            decoder.use_segments(compression);
            let error = error_of(&mut decoder, &mut BytesMut::from(&damaged[..]));
            let expected = if at < header_bytes {
                Recovery::Close
            } else {
                Recovery::AnswerAndClose
            };
            assert_eq!(error.recovery, expected, "byte {at}: {error}");
            if at >= header_bytes {
                let (version, stream, _) = answer_of(&error);
                assert_eq!((version, stream), (Version::V5, 0));
            }
        }
    }
}

#[test]
fn segments_that_do_not_compress_are_sent_as_they_are() {
    let random = &mut Random::new(11);
    let body: Vec<u8> = (0..1000).map(|_| random.u64() as u8).collect();
    let mut wire = Vec::new();
    encode_segments(
        &envelope(Version::V5, 1, Opcode::Query, &body),
        Some(Compression::Lz4),
        &mut wire,
    );
    assert_eq!(wire.len(), 8 + 9 + 1000 + 4);
    let mut decoder = server(2000);
    decoder.use_segments(Some(Compression::Lz4));
    let frame = decoder.decode(&mut BytesMut::from(&wire[..])).unwrap().unwrap();
    assert_eq!(frame.body, body);
}

/// The whole beginning of a v5 session: envelopes first, segments from the byte after STARTUP.
#[test]
fn segments_begin_right_after_startup() {
    let mut bytes = envelope(Version::V5, 1, Opcode::Options, b"");
    bytes.extend(envelope(Version::V5, 2, Opcode::Startup, b"\0\0"));
    bytes.extend(raw_segment(&envelope(Version::V5, 3, Opcode::Options, b""), true));
    let mut buffer = BytesMut::from(&bytes[..]);
    let mut decoder = server(1000);
    assert_eq!(decoder.decode(&mut buffer).unwrap().unwrap().stream, 1);
    assert_eq!(decoder.decode(&mut buffer).unwrap().unwrap().stream, 2);
    decoder.use_segments(None);
    assert_eq!(decoder.decode(&mut buffer).unwrap().unwrap().stream, 3);
}

#[test]
fn nodes_have_opcodes_of_their_own_and_clients_do_not() {
    let limits = Limits::default();
    let hello = envelope(Version::V5, 1, Opcode::NodeRequest, b"hello");
    let answer = envelope(Version::V5, 1, Opcode::NodeAnswer, b"welcome");
    let mut acceptor = FrameDecoder::between_nodes(Role::Server, limits);
    let mut connector = FrameDecoder::between_nodes(Role::Client, limits);
    for (decoder, bytes, body) in [
        (&mut acceptor, &hello, &b"hello"[..]),
        (&mut connector, &answer, b"welcome"),
    ] {
        let frame = decoder.decode(&mut BytesMut::from(&bytes[..])).unwrap().unwrap();
        assert_eq!(frame.body, body);
        decoder.use_segments(None);
        let mut segments = Vec::new();
        encode_segments(bytes, None, &mut segments);
        let frame = decoder.decode(&mut BytesMut::from(&segments[..])).unwrap();
        assert_eq!(frame.unwrap().body, body);
    }
    // The wrong direction.
    let mut segments = Vec::new();
    encode_segments(&answer, None, &mut segments);
    let error = error_of(&mut acceptor, &mut BytesMut::from(&segments[..]));
    assert_eq!(error.message, "Wrong protocol direction for opcode NODE_ANSWER");
    // A client at the port of nodes, and a node at the port of clients.
    let options = envelope(Version::V5, 2, Opcode::Options, b"");
    let mut acceptor = FrameDecoder::between_nodes(Role::Server, limits);
    let error = error_of(&mut acceptor, &mut BytesMut::from(&options[..]));
    assert_eq!(
        answer_of(&error).2.message,
        "This port is for other nodes of the cluster (storage_port). Clients connect to native_transport_port"
    );
    let error = error_of(&mut server(1000), &mut BytesMut::from(&hello[..]));
    assert_eq!(error.message, "Unknown opcode 112");
}
