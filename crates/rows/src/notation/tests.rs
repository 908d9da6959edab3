use std::cmp::Ordering;

use ilion_types::Partitioner;
use proptest::prelude::*;

use super::{parse_mutations, parse_table, print_mutation, print_partition};
use crate::random::{Dice, random_mutation, random_table};
use crate::{ClusteringComparator, DeletionTime, Partition};

proptest! {
    #[test]
    fn what_is_printed_is_parsed_back(seed: u64) {
        let mut dice = Dice::new(seed);
        let table = random_table(&mut dice);
        let mut written = random_mutation(&table, &mut dice);
        let text = print_mutation(&written);
        let read = parse_mutations(&text, &table, Partitioner::Murmur3).unwrap();
        written.update.deletion = written.update.deletion.filter(|deletion| !deletion.is_live());
        prop_assert_eq!(&read[0].key, &written.key);
        prop_assert_eq!(&read[0].update, &written.update, "{}", text);
    }

    #[test]
    fn markers_are_printed_as_the_ranges_that_made_them(seed: u64) {
        let mut dice = Dice::new(seed);
        let table = random_table(&mut dice);
        let comparator = ClusteringComparator::of(&table);
        let mutation = random_mutation(&table, &mut dice);
        let partition = Partition::of(mutation.key, mutation.update, &comparator);
        let in_order = |pair: &[crate::Unfiltered]| comparator.compare_unfiltered(&pair[0], &pair[1]) == Ordering::Less;
        prop_assert!(partition.unfiltereds.windows(2).all(in_order));
        let text = print_partition(&partition, &table);
        let read = parse_mutations(&text, &table, Partitioner::Murmur3).unwrap().remove(0);
        prop_assert_eq!(Partition::of(read.key, read.update, &comparator), partition, "{}", text);
    }
}

const TABLE: &str = "k text pk, k2 int pk, c int ck desc, d text ck, s counter static, v text, \
                     m map<int, text>, l list<int>, e set<text>, f frozen<list<int>>, n counter, ttl int";

const EXAMPLE: &str = "\
partition 'it''s':2 token=3248337272664622819 del@3000000/9
  static s=+5@10
  row 7:'a' live@10 ttl=60/100 v='x'@12 ttl=60 m=del@9/100 m[1]='b'@10 m[2]=del@11
  row 5:'' del@12 l[#3]=1@10 e['q']@4 e['r']=del@5 f=0x0000@5 n=01:2:5,L02:1:-1@7 \"ttl\"=0x@1
  row 4:null live@-5
  [4, 2:'z') del@20
  (*, *] del@-1
";

#[test]
fn the_example_is_parsed_and_printed_as_it_was() {
    let table = parse_table(TABLE).unwrap();
    let mutations = parse_mutations(EXAMPLE, &table, Partitioner::Murmur3).unwrap();
    let printed = print_mutation(&mutations[0]);
    assert_eq!(printed, EXAMPLE);
    assert_eq!(
        mutations[0].update.deletion,
        Some(DeletionTime::new(3_000_000, 9))
    );
}

#[test]
fn mistakes_are_named_with_their_place() {
    let table = parse_table("k int pk, c int ck, v int, m map<int, int>").unwrap();
    let mistakes = [
        (
            "row 1 v=1@1",
            "line 1, column 1: expected `partition` before anything else",
        ),
        ("partition x", "line 1, column 11: expected a value of type int"),
        (
            "partition 1 token=5",
            "line 1, column 19: expected `-4069959284402364209`",
        ),
        (
            "partition 1\nrow 1 x=1@1",
            "line 2, column 8: expected a column of this kind named x before this",
        ),
        ("partition 1\nrow 1 v=1", "line 2, column 10: expected `@`"),
        (
            "partition 1\nrow 1 v=1@",
            "line 2, column 11: expected a timestamp",
        ),
        (
            "partition 1\nrow 1\nrow 1",
            "line 3, column 6: expected each row once",
        ),
        (
            "partition 1\nrow 1 m[1]=1@1 m[1]=2@1",
            "line 2, column 24: expected each path once",
        ),
        ("partition 1\n[1, 2 del@1", "line 2, column 6: expected `)`"),
        (
            "partition 1\nrow 1 m=del@-9223372036854775808/9",
            "line 2, column 33: expected a timestamp above -2^63 before this",
        ),
    ];
    for (text, message) in mistakes {
        let error = parse_mutations(text, &table, Partitioner::Murmur3).unwrap_err();
        assert_eq!(error.to_string(), message, "{text}");
    }
    assert!(parse_table("k int pk, v nonsense").is_err());
}
