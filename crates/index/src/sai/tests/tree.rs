//! Tests of trees with several levels: few terms with very many rows beside many terms with one row.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ilion_env::{Env, MemEnv, Seeded};

use crate::sai::lookup::TermRange;
use crate::sai::numbers::{Found, Numbers};
use crate::sai::tree_file::TreeFile;
use crate::sai::tree_writer::TreeWriter;

const PATH: &str = "terms.db";

/// Terms in order, with their rows.
type Terms = Vec<(Vec<u8>, Vec<u32>)>;

fn write(terms: &Terms, rows: u32) -> TreeFile {
    let env: Arc<dyn Env> = MemEnv::new(1).shared();
    let mut writer = TreeWriter::create(&env, PathBuf::from(PATH), rows).unwrap();
    for (term, numbers) in terms {
        for some in numbers.chunks(1000) {
            writer.add(term, some).unwrap();
        }
    }
    writer.finish(b"definition").unwrap();
    TreeFile::open(&env, Path::new(PATH)).unwrap()
}

fn found(tree: &TreeFile, range: &TermRange) -> (Vec<u32>, usize) {
    let mut found = Found::default();
    tree.find(range, &mut found).unwrap();
    let parts = found.numbers.len() + found.lists.len();
    let mut numbers = Numbers::of(found);
    let mut all = Vec::new();
    while let Some(number) = numbers.next(&tree.file).unwrap() {
        all.push(number);
    }
    (all, parts)
}

fn expected(terms: &Terms, range: &TermRange) -> (Vec<u32>, u64) {
    let inside = terms.iter().filter(|(term, _)| range.has(term));
    let mut numbers: Vec<u32> = inside.flat_map(|(_, numbers)| numbers.clone()).collect();
    let count = numbers.len() as u64;
    numbers.sort_unstable();
    numbers.dedup();
    (numbers, count)
}

fn check(terms: &Terms, rows: u32, ranges: usize, random: &mut Seeded) {
    let tree = write(terms, rows);
    assert_eq!(tree.tail.terms as usize, terms.len());
    let check_range = |range: TermRange| {
        let (numbers, count) = expected(terms, &range);
        assert_eq!(tree.count(&range).unwrap(), count, "{range:?}");
        let (all, parts) = found(&tree, &range);
        assert!(
            all == numbers,
            "{range:?}: {} and not {}",
            all.len(),
            numbers.len()
        );
        // Each of the two ends reads a part of one group; the groups between are read whole.
        assert!(parts < 20_000, "{range:?}: {parts}");
    };
    check_range(TermRange::between(None, None));
    for _ in 0..ranges {
        let mut pick = || terms[random.below(terms.len() as u64) as usize].0.clone();
        let (a, b) = (pick(), pick());
        check_range(TermRange::one(a.clone()));
        check_range(TermRange::between(Some((a.clone(), false)), None));
        check_range(TermRange::between(None, Some((b.clone(), true))));
        check_range(TermRange::between(Some((a, true)), Some((b, false))));
    }
}

fn rows_of(count: usize, rows: u32, random: &mut Seeded) -> Vec<u32> {
    let step = u64::from(rows) / count as u64;
    let mut number = 0;
    (0..count)
        .map(|_| {
            number += 1 + random.below(step.max(2) - 1) as u32;
            number - 1
        })
        .collect()
}

#[test]
fn many_terms_of_one_row_each() {
    let mut random = Seeded::new(51);
    let rows = 300_000_u32;
    let terms: Terms = (0..rows)
        .map(|term| (term.to_be_bytes().to_vec(), vec![term.wrapping_mul(7_919) % rows]))
        .collect();
    check(&terms, rows, 2, &mut random);
}

#[test]
fn terms_of_every_weight_beside_each_other() {
    let mut random = Seeded::new(52);
    let rows = 1_200_000_u32;
    let weights = [1, 2, 127, 128, 129, 4096, 4097, 9000, 262_144, 262_145, 300_000];
    for round in 0..2 {
        let mut terms: Terms = Vec::new();
        for index in 0..400_u32 {
            let count = if random.one_in(30) {
                weights[random.below(weights.len() as u64) as usize]
            } else {
                weights[random.below(5) as usize]
            };
            let mut term =
                format!("{}{index:05}", "long".repeat(random.below(9) as usize * round)).into_bytes();
            term.insert(0, (index / 50) as u8);
            terms.push((term, rows_of(count, rows, &mut random)));
        }
        terms.sort();
        check(&terms, rows, 2, &mut random);
    }
}

#[test]
fn a_file_without_terms_has_none() {
    let tree = write(&Vec::new(), 10);
    assert_eq!(found(&tree, &TermRange::between(None, None)).0, []);
    assert_eq!(tree.count(&TermRange::one(b"x".to_vec())).unwrap(), 0);
}
