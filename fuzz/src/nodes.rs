//! What nodes send to each other: greetings with checksums that fit, messages, and the commands and answers of reads.

use bytes::Bytes;
use ilion_coordinator::{ReadCommand, decode_answer, encode_answer};
use ilion_internode::{Hello, Reply, testing};

use crate::split_choice;

/// Decodes bytes as one of them.
pub fn run(data: &[u8]) {
    let Some((choice, data)) = split_choice(data) else {
        return;
    };
    let body = Bytes::copy_from_slice(data);
    match choice % 5 {
        0 => {
            if let Ok(hello) = Hello::decode(&with_crc(data)) {
                assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
            }
        }
        1 => {
            if let Ok(reply) = Reply::decode(&with_crc(data)) {
                assert_eq!(Reply::decode(&reply.encode()), Ok(reply));
            }
        }
        2 => {
            if let Some(encoded) = testing::again(&body) {
                assert_eq!(testing::again(&encoded.clone().into()), Some(encoded));
            }
        }
        3 => {
            if let Ok(command) = ReadCommand::decode(&body) {
                // Vectors may have numbers that are none, which equal nothing: their bytes do.
                let encoded = command.encode();
                let again =
                    ReadCommand::decode(&encoded.clone().into()).expect("what we encode is understood");
                assert_eq!(again.encode(), encoded);
            }
        }
        _ => {
            let encoded = encode_answer(&decode_answer(&body));
            assert_eq!(encode_answer(&decode_answer(&encoded.clone().into())), encoded);
        }
    }
}

fn with_crc(content: &[u8]) -> Vec<u8> {
    [content, &crc32fast::hash(content).to_be_bytes()].concat()
}
