use super::*;

const ALL: [Compressor; 6] = [
    Compressor::Lz4,
    Compressor::Snappy,
    Compressor::Deflate,
    Compressor::Zstd { level: 3 },
    Compressor::Zstd { level: -1 },
    Compressor::Noop,
];

/// Bytes that compress a little, from a linear congruential generator.
fn sample(len: usize, seed: u64) -> Vec<u8> {
    let mut state = seed;
    (0..len)
        .map(|_| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            if state >> 62 == 0 {
                (state >> 40) as u8
            } else {
                b'a'
            }
        })
        .collect()
}

#[test]
fn every_algorithm_gives_back_what_it_took() {
    for compressor in ALL {
        for len in [0, 1, 12, 13, 100, 4096, 16384, 70_000] {
            let input = sample(len, len as u64);
            let mut stored = b"before".to_vec();
            compressor.compress(&input, &mut stored).unwrap();
            for room in [0, 1, 100] {
                let mut back = vec![7; len + room];
                let written = compressor.decompress(&stored[6..], &mut back).unwrap();
                assert_eq!(written, len, "{compressor:?}");
                assert_eq!(&back[..len], input, "{compressor:?}");
            }
        }
    }
}

#[test]
fn zeros_expand_to_the_full_chunk() {
    for compressor in ALL {
        let input = vec![0; 1 << 20];
        let mut stored = Vec::new();
        compressor.compress(&input, &mut stored).unwrap();
        let mut back = vec![7; input.len()];
        assert_eq!(compressor.decompress(&stored, &mut back), Ok(input.len()));
        assert_eq!(back, input, "{compressor:?}");
    }
}

#[test]
fn a_chunk_longer_than_its_room_is_refused() {
    for compressor in ALL {
        let mut stored = Vec::new();
        compressor.compress(&sample(1000, 1), &mut stored).unwrap();
        let error = compressor.decompress(&stored, &mut [0; 999]).unwrap_err();
        assert!(
            matches!(error, CompressError::TooLong { len_max: 999, .. }),
            "{error}"
        );
    }
}

#[test]
fn damaged_chunks_never_panic() {
    for compressor in ALL {
        let mut stored = Vec::new();
        compressor.compress(&sample(3000, 7), &mut stored).unwrap();
        for cut in 0..stored.len().min(300) {
            let written = compressor.decompress(&stored[..cut], &mut [0; 3000]);
            assert!(
                written.is_err() || compressor == Compressor::Noop || cut == 0,
                "{compressor:?}"
            );
        }
        for at in 0..stored.len() {
            let mut broken = stored.clone();
            broken[at] ^= 0x55;
            if let Ok(written) = compressor.decompress(&broken, &mut [0; 3000]) {
                assert!(written <= 3000);
            }
        }
    }
}

#[test]
fn the_empty_chunks_of_a_real_compaction_are_read() {
    assert_eq!(Compressor::Lz4.decompress(&[0, 0, 0, 0, 0], &mut []), Ok(0));
    assert_eq!(Compressor::Deflate.decompress(&[], &mut []), Ok(0));
    let mut stored = Vec::new();
    Compressor::Lz4.compress(&[], &mut stored).unwrap();
    assert_eq!(stored, [0, 0, 0, 0, 0]);
}

#[test]
fn an_announced_length_above_the_limit_is_refused() {
    let chunk = [0xFF, 0xFF, 0xFF, 0x7F, 0x10, 0x41];
    let error = Compressor::Lz4.decompress(&chunk, &mut [0; 100]).unwrap_err();
    assert!(
        matches!(error, CompressError::TooLong { len_max: 100, .. }),
        "{error}"
    );
}

#[test]
fn classes_are_known_by_simple_and_qualified_name() {
    for compressor in ALL {
        let level = match compressor {
            Compressor::Zstd { level } => level.to_string(),
            _ => String::new(),
        };
        let class = format!("org.apache.cassandra.io.compress.{}", compressor.class_name());
        let option = |name: &str| (name == "compression_level").then_some(level.as_str());
        assert_eq!(Compressor::from_class(&class, option), Ok(compressor));
        assert_eq!(
            Compressor::from_class(compressor.class_name(), option),
            Ok(compressor)
        );
    }
    assert!(Compressor::from_class("GzipCompressor", |_| None).is_err());
    assert!(Compressor::from_class("ZstdCompressor", |_| Some("23")).is_err());
}

/// Written by zlib and by the `zstd` program, from a file and from a pipe (of unknown size).
#[test]
fn what_other_writers_wrote_is_read() {
    let hex = |text: &str| -> Vec<u8> {
        let digit = |at: usize| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
        (0..text.len()).step_by(2).map(digit).collect()
    };
    let zstd = Compressor::Zstd { level: 3 };
    for (compressor, stored) in [
        (Compressor::Deflate, "789ccb48cdc9c957c8402701680308b1"),
        (zstd, "28b52ffd24176500003068656c6c6f200100994b11175eae0d"),
        (zstd, "28b52ffd04586500003068656c6c6f200100994b11175eae0d"),
    ] {
        let mut out = vec![0; 16384];
        let written = compressor.decompress(&hex(stored), &mut out).unwrap();
        assert_eq!(&out[..written], b"hello hello hello hello");
    }
}

#[test]
fn zstd_frames_carry_their_size_and_checksum() {
    let mut stored = Vec::new();
    Compressor::Zstd { level: 3 }
        .compress(&sample(1000, 3), &mut stored)
        .unwrap();
    assert_eq!(stored[4] & 0x04, 0x04, "the checksum flag");
    assert!(stored[4] >> 6 != 0 || stored[4] & 0x20 != 0, "a content size");
}
