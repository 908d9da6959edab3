//! Damaged graphs of vectors.

use std::cell::RefCell;
use std::collections::HashMap;
use std::sync::Arc;

use crc32fast::hash;
use ilion_vector::{FileGraph, Graph, MemoryGraph, Options, Reach, Similarity, search, write};

use crate::split_choice;

const PAGE_LEN: usize = 4096;
/// CRC, length and magic.
const END_LEN: usize = 16;
/// The bytes are the file.
const RAW: usize = 255;

thread_local! {
    static WHOLE: RefCell<HashMap<usize, Vec<u8>>> = RefCell::default();
}

/// Changes bytes of a file that the first byte chooses, makes its checksums fit again, and reads it in every way. What a
/// verification passes can be searched.
pub fn run(data: &[u8]) {
    let Some((choice, edits)) = split_choice(data) else {
        return;
    };
    let bytes = match choice {
        RAW => edits.to_vec(),
        _ => damaged(choice % 12, edits),
    };
    let Ok(file) = FileGraph::open(Arc::new(bytes)) else {
        return;
    };
    let query = vec![0.25; file.dimension() as usize];
    let found = search(&file, &query, 20, &|_| true, Reach::of(file.options()));
    let mut vector = Vec::new();
    for node in [0, 1, file.node_count().wrapping_sub(1), u32::MAX] {
        let _ = file.vector(node, &mut vector);
        let _ = file.ordinals(node, &mut Vec::new());
        let _ = file.links(node, &mut Vec::new());
    }
    if file.verify().is_ok() {
        assert!(found.is_ok(), "{found:?}");
    }
}

fn damaged(choice: usize, edits: &[u8]) -> Vec<u8> {
    let mut bytes =
        WHOLE.with_borrow_mut(|known| known.entry(choice).or_insert_with(|| whole(choice)).clone());
    for edit in edits.as_chunks::<4>().0 {
        let [side, high, low, value] = *edit;
        let step = usize::from(u16::from_be_bytes([high, low])) % bytes.len();
        // The tail is small and says where everything is.
        let at = match side % 2 {
            0 => step,
            _ => bytes.len() - 1 - step % bytes.len().min(256),
        };
        bytes[at] = value;
    }
    fit(&mut bytes);
    bytes
}

/// A small graph: of each similarity, with and without upper levels and several ordinals of one vector.
fn whole(choice: usize) -> Vec<u8> {
    let options = Options {
        similarity: Similarity::ALL[choice % 3],
        maximum_node_connections: 4,
        ..Options::default()
    };
    let graph = MemoryGraph::new(options);
    let count = if choice.is_multiple_of(2) { 12 } else { 150 };
    let mut state = choice as u64 + 1;
    for ordinal in 0..count {
        let mut next = || {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
            (state >> 40) as f32 / (1 << 23) as f32 - 1.0
        };
        let vector = [next(), next(), next()];
        let ordinals = [ordinal, ordinal + 1000];
        for ordinal in &ordinals[..1 + choice / 6] {
            graph.insert(*ordinal, &vector).expect("such vectors are taken");
        }
    }
    let mut bytes = Vec::new();
    write(&graph, b"label", &mut bytes).expect("memory can be written");
    bytes
}

/// Makes the checksums fit, so that the decoder meets what they would have caught.
fn fit(bytes: &mut [u8]) {
    let Some(end) = bytes.len().checked_sub(END_LEN) else {
        return;
    };
    let number = |at: usize| {
        let word = bytes.get(at..).and_then(|rest| rest.first_chunk());
        word.map_or(usize::MAX, |word| u32::from_le_bytes(*word) as usize)
    };
    let (tail_len, body) = (number(end + 4), number(end.saturating_sub(8)));
    if let Some(pages) = bytes.get(..body) {
        let crcs: Vec<u8> = pages
            .chunks(PAGE_LEN)
            .flat_map(|page| hash(page).to_le_bytes())
            .collect();
        if let Some(at) = bytes.get_mut(body..body + crcs.len()) {
            at.copy_from_slice(&crcs);
        }
    }
    if let Some(tail) = end.checked_sub(tail_len) {
        let crc = hash(&bytes[tail..end]);
        bytes[end..end + 4].copy_from_slice(&crc.to_le_bytes());
    }
}
