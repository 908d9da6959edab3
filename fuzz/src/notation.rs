//! Partitions as text.

use ilion_rows::notation::{parse_mutations, print_mutation};
use ilion_rows::random::{Dice, random_table};
use ilion_types::Partitioner;

use crate::split_choice;

/// Parses, prints, and parses what was printed.
pub fn run(data: &[u8]) {
    let Some((seed, data)) = split_choice(data) else {
        return;
    };
    let Ok(text) = std::str::from_utf8(data) else {
        return;
    };
    let table = random_table(&mut Dice::new(seed as u64));
    for mutation in parse_mutations(text, &table, Partitioner::Murmur3).unwrap_or_default() {
        let printed = print_mutation(&mutation);
        let again = parse_mutations(&printed, &table, Partitioner::Murmur3)
            .unwrap_or_else(|error| panic!("{error}\n{printed}"));
        assert_eq!(again[0].update, mutation.update, "{printed}");
    }
}
