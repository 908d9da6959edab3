//! Tests with files whose checksums are right, but whose content is not.

use std::path::Path;

use ilion_env::{MemEnv, Seeded};

use super::model::{Model, Target};
use super::{BASE, attached, open_sstable, write_sstable};
use crate::paged::hostile;
use crate::sai::tree::MAGIC;
use crate::{Error, RowNumbersFile};
use ilion_types::Partitioner;
use std::sync::Arc;

const FILE: &str = "nb-1-big-Index+idx+Terms.db";

#[test]
fn hostile_bytes_are_refused_or_searched_without_a_panic() {
    let mut random = Seeded::new(31);
    let model = Model::new(300, &mut random);
    for target in ["i", "t", "values(l)", "bo"].map(Target::named) {
        let env = MemEnv::new(1).shared();
        write_sstable(&model, &target, &env, 1 << 20);
        let whole = env.read_all(Path::new(FILE), 1 << 24).unwrap();
        for _ in 0..100 {
            let mut file = env.create_or_truncate(Path::new(FILE)).unwrap();
            file.append(&whole).unwrap();
            drop(file);
            hostile::rewrite(&env, Path::new(FILE), MAGIC, |body, fields| {
                for _ in 0..1 + random.below(5) {
                    let bytes = if random.one_in(8) {
                        &mut *fields
                    } else {
                        &mut *body
                    };
                    let at = random.below(bytes.len() as u64) as usize;
                    bytes[at] = random.below(256) as u8;
                }
            });
            let index = target.open(&model.table);
            let rows = RowNumbersFile::open(&env, BASE, &model.table, Partitioner::Murmur3).unwrap();
            let Ok(index) = attached(&*index).open_sstable(&env, BASE, Arc::new(rows)) else {
                continue;
            };
            for _ in 0..6 {
                let predicate = target.random_predicate(&mut random);
                index.estimate(&predicate);
                let Ok(mut candidates) = index.clone().search(&predicate) else {
                    continue;
                };
                let _ = candidates.seek(&model.random_place(&mut random));
                while let Ok(Some(_)) = candidates.next() {}
            }
        }
    }
}

#[test]
fn a_file_of_another_definition_or_of_other_rows_is_unusable() {
    let mut random = Seeded::new(32);
    let (model, other) = (Model::new(50, &mut random), Model::new(70, &mut random));
    let env = MemEnv::new(1).shared();
    write_sstable(&model, &Target::named("i"), &env, 1 << 20);
    open_sstable(&model, &Target::named("i"), &env);
    let open = |target: &Target| {
        let index = target.open(&model.table);
        let rows = RowNumbersFile::open(&env, BASE, &model.table, Partitioner::Murmur3).unwrap();
        attached(&*index)
            .open_sstable(&env, BASE, Arc::new(rows))
            .map(drop)
    };
    assert!(matches!(open(&Target::named("t")), Err(Error::Unusable { .. })));
    let places: Vec<_> = other.rows.iter().map(|(place, _)| place.clone()).collect();
    crate::row_numbers::tests::write_places(&env, &other.table, Partitioner::Murmur3, &places);
    assert!(matches!(open(&Target::named("i")), Err(Error::Unusable { .. })));
}
