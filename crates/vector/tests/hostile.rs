//! Tests with damaged files: an error or other results, never a panic or an excessive allocation.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod data;

use std::io;
use std::sync::Arc;

use data::{Random, uniform};
use ilion_codec::crc32;
use ilion_vector::{Error, FileGraph, MemoryGraph, Options, Reach, Source, search, write};

const REACH: Reach = Reach {
    breadth: 50,
    slack: 0.1,
    spread: 0.5,
};

fn bytes(count: usize) -> Vec<u8> {
    let graph = MemoryGraph::new(Options::default());
    for (ordinal, vector) in (0..).zip(uniform(count, 6, &mut Random(12))) {
        graph.insert(ordinal, &vector).unwrap();
        if ordinal % 5 == 0 {
            graph.insert(ordinal + 10_000, &vector).unwrap();
        }
    }
    let mut bytes = Vec::new();
    write(&graph, b"", &mut bytes).unwrap();
    bytes
}

/// Opens and uses the file; an error if it could not be used to the end.
fn try_all(bytes: Vec<u8>) -> Result<(), Error> {
    let file = FileGraph::open(Arc::new(bytes))?;
    let found = search(&file, &[0.1, 0.2, 0.3, 0.4, 0.5, -0.5], 20, &|_| true, REACH);
    file.verify()?;
    found.map(drop)
}

/// Recomputes the CRCs, so that the decoder meets damage that the CRCs would have caught.
fn fit(bytes: &mut [u8]) {
    let end = bytes.len() - 16;
    let Some(tail) =
        end.checked_sub(u32::from_le_bytes(bytes[end + 4..end + 8].try_into().unwrap()) as usize)
    else {
        return;
    };
    let body = u64::from_le_bytes(bytes[end - 8..end].try_into().unwrap()) as usize;
    if let Some(pages) = bytes.get(..body) {
        let crcs: Vec<u8> = pages
            .chunks(4096)
            .flat_map(|page| crc32(page).to_le_bytes())
            .collect();
        if let Some(at) = bytes.get_mut(body..body + crcs.len()) {
            at.copy_from_slice(&crcs);
        }
    }
    let crc = crc32(&bytes[tail..end]);
    bytes[end..end + 4].copy_from_slice(&crc.to_le_bytes());
}

#[test]
fn a_flipped_bit_is_found() {
    let whole = bytes(300);
    assert!(try_all(whole.clone()).is_ok());
    let mut random = Random(13);
    for _ in 0..400 {
        let mut damaged = whole.clone();
        let at = random.next() as usize % damaged.len();
        damaged[at] ^= 1 << (random.next() % 8);
        assert!(try_all(damaged).is_err(), "byte {at}");
    }
}

#[test]
fn a_cut_file_is_refused() {
    let whole = bytes(100);
    for length in (0..whole.len()).step_by(97) {
        assert!(try_all(whole[..length].to_vec()).is_err());
    }
}

#[test]
fn hostile_bytes_with_good_checksums_do_no_harm() {
    let whole = bytes(300);
    let mut random = Random(14);
    let mut outcomes = [0, 0];
    for round in 0..3000 {
        let mut damaged = whole.clone();
        for _ in 0..=random.next() % 4 {
            // Every other round changes the tail: it is small and has all offsets.
            let from = if round % 2 == 0 { damaged.len() - 120 } else { 0 };
            let at = from + random.next() as usize % (damaged.len() - from);
            damaged[at] = random.next() as u8;
        }
        fit(&mut damaged);
        outcomes[usize::from(try_all(damaged).is_ok())] += 1;
    }
    assert!(outcomes[0] > 100 && outcomes[1] > 100, "{outcomes:?}");
}

/// Keeps no pages, and fails after a number of reads.
struct Failing {
    bytes: Vec<u8>,
    left: std::sync::atomic::AtomicU32,
}

impl Source for Failing {
    fn size_bytes(&self) -> u64 {
        self.bytes.size_bytes()
    }

    fn read_exact_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let left = &self.left;
        let relaxed = std::sync::atomic::Ordering::Relaxed;
        left.fetch_update(relaxed, relaxed, |left| left.checked_sub(1))
            .map_err(|_| io::Error::other("no more reads"))?;
        self.bytes.read_exact_at(offset, into)
    }
}

#[test]
fn without_a_map_the_same_is_found() {
    let whole = bytes(500);
    let query = [0.3, 0.2, -0.3, 0.4, 0.5, -0.5];
    let mapped = FileGraph::open(Arc::new(whole.clone())).unwrap();
    let read = FileGraph::open(Arc::new(Failing {
        bytes: whole,
        left: u32::MAX.into(),
    }))
    .unwrap();
    assert_eq!(
        search(&mapped, &query, 30, &|_| true, REACH).unwrap(),
        search(&read, &query, 30, &|_| true, REACH).unwrap()
    );
}

#[test]
fn a_read_that_fails_fails_the_search() {
    let whole = bytes(500);
    for left in (2..200).step_by(9) {
        let source = Failing {
            bytes: whole.clone(),
            left: left.into(),
        };
        let file = FileGraph::open(Arc::new(source)).unwrap();
        let found = search(&file, &[0.1; 6], 30, &|_| true, REACH);
        assert!(matches!(found, Err(Error::Io(_))));
    }
}
