//! Tests of the layout of files with pages, and of damage to every byte.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::path::Path;
use std::sync::Arc;

use ilion_codec::crc32;
use ilion_env::{Env, MemEnv, ReadFile};
use ilion_pages::{APPEND_BYTES, CRC_LEN, Error, PAGE_LEN, Pages, PagesWriter, paged_length, u64_at};

const PATH: &str = "pages";
const TAIL: &[u8] = b"the tail";

fn body(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at % 251).to_le_bytes()[0]).collect()
}

/// Writes a body in appends of `step` bytes.
fn write(body: &[u8], step: usize) -> MemEnv {
    let env = MemEnv::new(1);
    let mut writer = PagesWriter::new(env.create(Path::new(PATH)).unwrap());
    for (number, part) in body.chunks(step).enumerate() {
        assert_eq!(writer.position(), (number * step) as u64);
        writer.buffer().extend_from_slice(part);
        writer.flush_if_large().unwrap();
    }
    writer.finish(TAIL).unwrap();
    env
}

fn open(env: &MemEnv) -> Arc<dyn ReadFile> {
    env.open_read(Path::new(PATH)).unwrap()
}

fn pages(env: &MemEnv, body_length: usize) -> Pages {
    Pages::of(open(env), body_length as u64).unwrap()
}

#[test]
fn a_file_is_its_body_then_the_crc_of_each_page_then_the_tail() {
    for len in [
        0,
        1,
        PAGE_LEN - 1,
        PAGE_LEN,
        PAGE_LEN + 1,
        3 * PAGE_LEN,
        APPEND_BYTES + 700,
    ] {
        let body = body(len);
        let crcs = body.chunks(PAGE_LEN).flat_map(|page| crc32(page).to_le_bytes());
        let expected: Vec<u8> = body
            .iter()
            .copied()
            .chain(crcs)
            .chain(TAIL.iter().copied())
            .collect();
        for step in [1000, PAGE_LEN, APPEND_BYTES + 1] {
            let env = write(&body, step);
            let found = env.read_all(Path::new(PATH), 1 << 30).unwrap();
            assert!(found == expected, "{len} bytes in steps of {step}");
        }
        assert_eq!(
            paged_length(len as u64),
            Some((expected.len() - TAIL.len()) as u64)
        );
    }
    assert_eq!(paged_length(u64::MAX), None);
}

#[test]
fn numbers_are_aligned_and_read_across_the_body() {
    let env = MemEnv::new(1);
    let mut writer = PagesWriter::new(env.create(Path::new(PATH)).unwrap());
    writer.buffer().extend_from_slice(&[7; PAGE_LEN - 3]);
    writer.align();
    assert_eq!(writer.position(), PAGE_LEN as u64);
    writer.align();
    writer.buffer().extend_from_slice(&0x0102_0304_u64.to_le_bytes());
    writer.finish(b"").unwrap();
    let pages = pages(&env, PAGE_LEN + 8);
    assert_eq!(pages.u64_at(PAGE_LEN as u64).unwrap(), 0x0102_0304);
    assert!(pages.u64_at(PAGE_LEN as u64 + 1).is_err());
    assert_eq!(u64_at(&[1, 2], 0), 0x0201);
    assert_eq!(u64_at(&[1, 2], 5), 0);
}

#[test]
fn a_file_that_is_too_short_for_its_body_is_not_opened() {
    let env = write(&body(2 * PAGE_LEN), PAGE_LEN);
    let file = open(&env);
    // A third page would take the bytes of the tail, its CRC included.
    let longest = (2 * PAGE_LEN + TAIL.len() - CRC_LEN) as u64;
    assert!(Pages::of(file.clone(), longest).is_some());
    assert!(Pages::of(file.clone(), longest + 1).is_none());
    assert!(Pages::of(file, u64::MAX).is_none());
}

#[test]
fn every_flipped_bit_of_a_page_or_its_crc_is_reported_at_the_page() {
    let body = body(2 * PAGE_LEN + 50);
    let env = write(&body, PAGE_LEN);
    let size = usize::try_from(open(&env).size_bytes()).unwrap() - TAIL.len();
    for at in (0..size).step_by(7) {
        let damaged = match at.checked_sub(body.len()) {
            None => at / PAGE_LEN,
            Some(in_crcs) => in_crcs / CRC_LEN,
        };
        let mask = 1 << (at % 8);
        env.corrupt_byte(Path::new(PATH), at as u64, mask).unwrap();
        let pages = pages(&env, body.len());
        for (page, expected) in body.chunks(PAGE_LEN).enumerate() {
            let start = (page * PAGE_LEN) as u64;
            match pages.bytes(start, expected.len()) {
                Ok(found) => assert!(*found == *expected && page != damaged, "byte {at}, page {page}"),
                Err(Error::Corrupt { offset, .. }) => {
                    assert_eq!((offset, page), (start, damaged), "byte {at}")
                }
                Err(error) => panic!("{error}"),
            }
        }
        env.corrupt_byte(Path::new(PATH), at as u64, mask).unwrap();
    }
}
