//! Truncated and mutated bytes give errors, never panics.

use bytes::{Bytes, BytesMut};
use ilion_protocol::*;

use crate::framing::raw_segment;
use crate::generate::{self, Random};

const HEADER: usize = HEADER_BYTES;

/// Decodes a body both ways, whatever the opcode; only panics matter.
fn decode_body(version: Version, flags: u8, opcode: Opcode, body: &[u8]) {
    let frame = Frame {
        version,
        flags: Flags(flags),
        stream: 1,
        opcode,
        body: Bytes::copy_from_slice(body),
    };
    if opcode.is_request() {
        if let Ok(decoded) = RequestFrame::decode(&frame) {
            // A decoded message can be encoded again, unless the version has no encoding for it.
            let _ = encode_request(&mut Vec::new(), &decoded, None);
        }
    } else if let Ok(decoded) = ResponseFrame::decode(&frame) {
        if let Response::Result(ResultBody::Rows(rows)) = &decoded.response {
            assert_eq!(rows.cells().count(), rows.row_count * rows.metadata.column_count);
        }
        let head = ResponseHead::new(version, decoded.stream);
        encode_response(&mut Vec::new(), &head, &decoded.response, None).unwrap();
    }
}

fn envelope(random: &mut Random, version: Version) -> (Opcode, Vec<u8>) {
    let mut out = Vec::new();
    if random.coin() {
        let frame = generate::request(random, version);
        encode_request(&mut out, &frame, None).unwrap();
        (frame.request.opcode(), out)
    } else {
        let frame = generate::response(random, version);
        let head = ResponseHead {
            version,
            stream: frame.stream,
            tracing_id: frame.tracing_id,
            warnings: &frame.warnings,
            custom_payload: &frame.custom_payload,
        };
        encode_response(&mut out, &head, &frame.response, None).unwrap();
        (frame.response.opcode(), out)
    }
}

fn mutate(random: &mut Random, bytes: &mut Vec<u8>) {
    for _ in 0..=random.below(3) {
        if bytes.is_empty() {
            return;
        }
        let at = random.below(bytes.len());
        match random.below(6) {
            0 => bytes[at] ^= 1 << random.below(8),
            1 => bytes[at] = random.pick(&[0, 1, 0x7f, 0x80, 0xff]),
            2 => bytes.truncate(at),
            3 => {
                bytes.remove(at);
            }
            4 => bytes.insert(at, random.u64() as u8),
            _ => {
                let end = (at + 4).min(bytes.len());
                let word = random
                    .pick(&[i32::MAX, i32::MIN, -1, -2, 0, 0x00ff_ffff])
                    .to_be_bytes();
                bytes[at..end].copy_from_slice(&word[..end - at]);
            }
        }
    }
}

#[test]
fn bodies_cut_anywhere_do_not_panic() {
    for seed in 0..400 {
        println!("seed {seed}");
        let random = &mut Random::new(seed);
        let version = random.version();
        let (opcode, envelope) = envelope(random, version);
        for end in HEADER..=envelope.len() {
            decode_body(version, envelope[1], opcode, &envelope[HEADER..end]);
        }
    }
}

#[test]
fn mutated_bodies_do_not_panic() {
    for seed in 0..10_000 {
        println!("seed {seed}");
        let random = &mut Random::new(seed);
        let version = random.version();
        let (opcode, envelope) = envelope(random, version);
        let mut body = envelope[HEADER..].to_vec();
        mutate(random, &mut body);
        decode_body(random.version(), envelope[1], opcode, &body);
    }
}

#[test]
fn random_bodies_do_not_panic() {
    for seed in 0..10_000 {
        println!("seed {seed}");
        let random = &mut Random::new(seed);
        let body = random.bytes(60);
        decode_body(
            random.version(),
            random.u64() as u8,
            random.pick(&Opcode::ALL),
            &body,
        );
    }
}

/// Streams of damaged envelopes and segments: every decoder ends with an error or asks for more bytes.
#[test]
fn mutated_streams_do_not_panic_or_loop() {
    for seed in 0..5000 {
        println!("seed {seed}");
        let random = &mut Random::new(seed);
        let version = random.version();
        let compression = random.pick(&[None, Some(Compression::Lz4), Some(Compression::Snappy)]);
        let mut envelopes = Vec::new();
        for _ in 0..=random.below(3) {
            let frame = generate::request(random, version);
            encode_request(&mut envelopes, &frame, compression).unwrap();
        }
        let mut decoder = FrameDecoder::new(
            Role::Server,
            Limits {
                max_frame_bytes: 1000,
            },
        );
        let mut wire = envelopes.clone();
        if version == Version::V5 && random.coin() {
            wire.clear();
            mutate_some(random, &mut envelopes);
            let is_self_contained = random.coin();
            for piece in envelopes.chunks(1 + random.below(200)) {
                wire.extend(raw_segment(piece, is_self_contained));
            }
            decoder.use_segments(None);
        } else {
            decoder.use_compression(compression);
        }
        mutate_some(random, &mut wire);
        let mut buffer = BytesMut::from(&wire[..]);
        let mut turns = 0;
        loop {
            match decoder.decode(&mut buffer) {
                Ok(Some(frame)) => drop(RequestFrame::decode(&frame)),
                Ok(None) => break,
                Err(error) if error.recovery == Recovery::Continue => error.encode_answer(&mut Vec::new()),
                Err(_) => break,
            }
            turns += 1;
            assert!(turns <= wire.len(), "each turn uses at least one byte");
        }
    }
}

fn mutate_some(random: &mut Random, bytes: &mut Vec<u8>) {
    if random.coin() {
        mutate(random, bytes);
    }
}
