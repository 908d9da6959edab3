//! Connections of the native protocol.

use bytes::{Bytes, BytesMut};
use ilion_protocol::{
    Compression, Frame, FrameDecoder, Limits, Recovery, RequestFrame, Response, ResponseFrame, ResponseHead,
    ResultBody, Role, Version, encode_request, encode_response,
};

use crate::split_choice;

/// Feeds a connection in two parts.
pub fn run(data: &[u8]) {
    let Some((choice, data)) = split_choice(data) else {
        return;
    };
    let Some((cut, data)) = split_choice(data) else {
        return;
    };
    let role = if choice & 1 == 0 {
        Role::Server
    } else {
        Role::Client
    };
    let compression = match (choice >> 1) & 3 {
        0 | 1 => None,
        2 => Some(Compression::Lz4),
        _ => Some(Compression::Snappy),
    };
    let limits = Limits {
        max_frame_bytes: 1 << 16,
    };
    let mut decoder = FrameDecoder::new(role, limits);
    let bytes = match (choice >> 3) & 3 {
        0 => data.to_vec(),
        1 => {
            decoder.use_compression(compression);
            data.to_vec()
        }
        2 => {
            decoder.use_segments(compression.filter(|chosen| *chosen == Compression::Lz4));
            data.to_vec()
        }
        _ => {
            decoder.use_segments(None);
            segments(data)
        }
    };
    let (first, second) = bytes.split_at(cut.min(bytes.len()));
    let mut buffer = BytesMut::from(first);
    if drain(&mut decoder, &mut buffer, role) {
        buffer.extend_from_slice(second);
        drain(&mut decoder, &mut buffer, role);
    }
}

/// Segments with good checksums around pieces of `data`: each piece starts with its length, the high bit says that it
/// is self-contained.
fn segments(mut data: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    while let Some((choice, rest)) = split_choice(data) {
        let (piece, rest) = rest.split_at((choice & 0x7F).min(rest.len()));
        data = rest;
        let word = (piece.len() as u32 | u32::from(choice > 0x7F) << 17).to_le_bytes();
        out.extend_from_slice(&word[..3]);
        out.extend_from_slice(&crc24(&word[..3]).to_le_bytes()[..3]);
        out.extend_from_slice(piece);
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&[0xFA, 0x2D, 0x55, 0xCA]);
        hasher.update(piece);
        out.extend_from_slice(&hasher.finalize().to_le_bytes());
    }
    out
}

fn crc24(bytes: &[u8]) -> u32 {
    let mut crc = 0x0087_5060_u32;
    for byte in bytes {
        crc ^= u32::from(*byte) << 16;
        for _ in 0..8 {
            crc <<= 1;
            if crc & 0x0100_0000 != 0 {
                crc ^= 0x0197_4F0B;
            }
        }
    }
    crc & 0x00FF_FFFF
}

/// True if the connection goes on.
fn drain(decoder: &mut FrameDecoder, buffer: &mut BytesMut, role: Role) -> bool {
    for _ in 0..1000 {
        match decoder.decode(buffer) {
            Ok(Some(frame)) => understand(&frame, role),
            Ok(None) => return true,
            Err(error) if error.recovery == Recovery::Continue => {}
            Err(_) => return false,
        }
    }
    panic!("a thousand frames out of {} bytes", buffer.len());
}

fn understand(frame: &Frame, role: Role) {
    match role {
        Role::Server => {
            if let Ok(request) = RequestFrame::decode(frame) {
                let mut out = Vec::new();
                if encode_request(&mut out, &request, None).is_ok() {
                    let mut again = Vec::new();
                    encode_request(&mut again, &read_request(&out, frame.version), None)
                        .expect("what was encoded once is encoded again");
                    assert_eq!(again, out);
                }
            }
        }
        Role::Client => {
            if let Ok(decoded) = ResponseFrame::decode(frame) {
                if let Response::Result(ResultBody::Rows(rows)) = &decoded.response {
                    assert_eq!(rows.cells().count(), rows.row_count * rows.metadata.column_count);
                }
                let head = ResponseHead::new(frame.version, decoded.stream);
                let _ = encode_response(&mut Vec::new(), &head, &decoded.response, None);
            }
        }
    }
}

fn read_request(envelope: &[u8], version: Version) -> RequestFrame {
    let mut decoder = FrameDecoder::new(Role::Server, Limits::default());
    decoder.fix_version(version);
    let frame = decoder
        .decode(&mut BytesMut::from(envelope))
        .expect("what we encode is a frame")
        .expect("and a whole one");
    let frame = Frame {
        body: Bytes::copy_from_slice(&frame.body),
        ..frame
    };
    RequestFrame::decode(&frame).expect("what we encode is understood")
}
