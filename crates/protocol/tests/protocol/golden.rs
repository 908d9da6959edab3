//! Bytes as drivers write and read them.
//!
//! `testdata/*.txt`: `request` or `response`, a version, `segments` if they are in segments, a compression if one was agreed
//! on; then hex, then what it means. The requests were written by the Python driver 3.30.1; the responses are ours and
//! were read back by it. Bytes that are not compressed must also come out again exactly.

use bytes::BytesMut;
use datadriven::{TestCase, walk};
use ilion_protocol::*;

fn unhex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(u8::is_ascii_hexdigit).collect();
    digits
        .chunks(2)
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

struct Session {
    version: Version,
    is_segmented: bool,
    compression: Option<Compression>,
}

impl Session {
    fn new(case: &TestCase) -> Self {
        let has = |word: &str| case.args.contains_key(word);
        let version = Version::SUPPORTED
            .into_iter()
            .find(|version| has(&format!("v{}", version.number())));
        Self {
            version: version.unwrap(),
            is_segmented: has("segments"),
            compression: has("lz4").then_some(Compression::Lz4),
        }
    }

    fn frames(&self, role: Role, bytes: &[u8]) -> Vec<Frame> {
        let mut decoder = FrameDecoder::new(role, Limits::default());
        decoder.use_compression(self.compression);
        if self.is_segmented {
            decoder.use_segments(self.compression);
        }
        let mut buffer = BytesMut::from(bytes);
        let mut frames = Vec::new();
        while let Some(frame) = decoder.decode(&mut buffer).unwrap() {
            assert_eq!(frame.version, self.version);
            frames.push(frame);
        }
        assert!(buffer.is_empty());
        frames
    }

    /// We would have sent the same bytes.
    fn check_again(&self, envelopes: &[u8], bytes: &[u8]) {
        if self.compression.is_some() {
            return;
        }
        let mut again = envelopes.to_vec();
        if self.is_segmented {
            again.clear();
            encode_segments(envelopes, None, &mut again);
        }
        assert_eq!(again, bytes);
    }
}

fn describe_requests(case: &TestCase) -> String {
    let session = Session::new(case);
    let bytes = unhex(&case.input);
    let (mut text, mut envelopes) = (String::new(), Vec::new());
    for frame in session.frames(Role::Server, &bytes) {
        let request = RequestFrame::decode(&frame).unwrap();
        encode_request(&mut envelopes, &request, None).unwrap();
        text.push_str(&format!("{} {:?}\n", request.stream, request.request));
    }
    session.check_again(&envelopes, &bytes);
    text
}

fn describe_responses(case: &TestCase) -> String {
    let session = Session::new(case);
    let bytes = unhex(&case.input);
    let (mut text, mut envelopes) = (String::new(), Vec::new());
    for frame in session.frames(Role::Client, &bytes) {
        let decoded = ResponseFrame::decode(&frame).unwrap();
        let head = ResponseHead {
            version: decoded.version,
            stream: decoded.stream,
            tracing_id: decoded.tracing_id,
            warnings: &decoded.warnings,
            custom_payload: &decoded.custom_payload,
        };
        encode_response(&mut envelopes, &head, &decoded.response, None).unwrap();
        text.push_str(&format!("{decoded:?}\n"));
    }
    session.check_again(&envelopes, &bytes);
    text
}

#[test]
fn bytes_of_drivers() {
    walk(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata"), |file| {
        file.run(|case| match case.directive.as_str() {
            "request" => describe_requests(case),
            "response" => describe_responses(case),
            other => panic!("unknown directive {other}"),
        });
    });
}
