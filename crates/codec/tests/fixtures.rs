//! Chunks that a real Cassandra compressed decompress to the announced length.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use ilion_codec::{Compressor, Reader, crc32};

fn files_below(folder: &Path, suffix: &str, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files_below(&path, suffix, found);
        } else if path.to_string_lossy().ends_with(suffix) {
            found.push(path);
        }
    }
}

/// Checks every chunk of one SSTable; returns its class.
fn check(info_path: &Path) -> String {
    let info = std::fs::read(info_path).unwrap();
    let data_path = info_path.to_string_lossy().replace("CompressionInfo", "Data");
    let data = std::fs::read(data_path).unwrap();
    let mut reader = Reader::new(&info);
    let class = reader.string16().unwrap().to_owned();
    for _ in 0..reader.i32().unwrap() * 2 {
        reader.string16().unwrap();
    }
    let chunk_len = reader.i32().unwrap() as usize;
    let stored_max = reader.i32().unwrap() as usize;
    let data_len = reader.i64().unwrap() as usize;
    let count = reader.i32().unwrap();
    let mut offsets: Vec<usize> = (0..count).map(|_| reader.i64().unwrap() as usize).collect();
    offsets.push(data.len());
    let compressor = Compressor::from_class(&class, |_| None).unwrap();
    let mut out = Vec::new();
    for pair in offsets.windows(2) {
        let (stored, crc) = data[pair[0]..pair[1]].split_at(pair[1] - pair[0] - 4);
        assert_eq!(crc, crc32(stored).to_be_bytes());
        if stored.len() < stored_max {
            let mut chunk = vec![0; chunk_len];
            let length = compressor.decompress(stored, &mut chunk).unwrap();
            out.extend_from_slice(&chunk[..length]);
        } else {
            out.extend_from_slice(&stored[..stored.len().min(data_len - out.len())]);
        }
    }
    assert_eq!(out.len(), data_len, "{}", info_path.display());
    class
}

#[test]
fn every_chunk_of_a_real_cassandra_decompresses() {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/fixtures/cassandra-5.0");
    if !fixtures.exists() {
        println!("skipped: no fixtures at {}", fixtures.display());
        return;
    }
    let mut paths = Vec::new();
    files_below(&fixtures, "-CompressionInfo.db", &mut paths);
    let mut classes: Vec<String> = paths.iter().map(|path| check(path)).collect();
    classes.sort();
    classes.dedup();
    // Flushes of the other algorithms' tables were written as LZ4 (`flush_compression: fast`).
    assert_eq!(classes, ["LZ4Compressor", "SnappyCompressor"]);
}
