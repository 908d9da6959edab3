//! Commit log records of mutations.

use std::sync::Arc;

use bytes::Bytes;
use ilion_memtable::Memtable;
use ilion_rows::random::{Dice, random_table};
use ilion_rows::{
    ClusteringFilter, Cursor, Decoded, KeyRange, Mutation, MutationReader, decode_mutation, encode_mutation,
    peek_place,
};

use crate::split_choice;

/// Decodes; what comes out is encoded, decoded again, and put into a memtable.
pub fn run(data: &[u8]) {
    let Some((seed, data)) = split_choice(data) else {
        return;
    };
    let table = random_table(&mut Dice::new(seed as u64));
    let memtable = Arc::new(Memtable::new(table.clone(), 1));
    // As if the table's id stood there: the fuzzer need not guess it.
    let mut record = data.to_vec();
    if let Some(id) = record.get_mut(5..21) {
        id.copy_from_slice(table.id.0.as_bytes());
    }
    let place = peek_place(&record);
    let mut reader = MutationReader::new(Bytes::from(record));
    let resolve = |id| (id == table.id).then(|| table.clone());
    let mut is_first = true;
    while let Some(next) = reader.next_mutation(&resolve).transpose() {
        if let Ok(Decoded::Mutation(mutation)) = next {
            if is_first {
                assert_eq!(place, Some((table.id, mutation.key.token.code())));
            }
            again(&mutation);
            memtable.apply(&mutation);
        }
        is_first = false;
    }
    let mut cursor = memtable.cursor(KeyRange::all(), Arc::new(ClusteringFilter::all()));
    while let Ok(Some(_)) = cursor.next_partition() {
        while let Ok(Some(_)) = cursor.next_unfiltered() {}
    }
}

fn again(mutation: &Mutation) {
    let mut bytes = Vec::new();
    encode_mutation(mutation, &mut bytes);
    match decode_mutation(&Bytes::from(bytes), &|_| Some(mutation.table.clone())) {
        Ok(Decoded::Mutation(read)) => {
            assert_eq!(read.key, mutation.key);
            assert_eq!(read.update, mutation.update);
        }
        other => panic!("{other:?}"),
    }
}
