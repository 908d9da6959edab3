//! Replicas and consistency levels, as Cassandra's own classes answered (`testdata-cassandra/Placement.java`).
//!
//! ```text
//! topology 1                      a new ring
//! node NUMBER DC RACK TOKEN...
//! keyspace CLASS OPTION=VALUE...  of the ring above
//! needs LOCAL_DC LEVEL=COUNT...   how many replicas must answer
//! at TOKEN NUMBER...              its replicas, in order
//! ```

#![expect(
    clippy::unwrap_used,
    reason = "a mistake in the file of answers is to stop the test"
)]

use std::collections::BTreeMap;

use ilion_cluster::{Location, Node, Ring, Strategy, needs};
use ilion_protocol::Consistency;
use ilion_schema::Replication;

const ANSWERS: &str = include_str!("../testdata-cassandra/placement.txt");

#[test]
fn replicas_and_levels_are_those_of_cassandra() {
    let (mut tokens, mut locations) = (Vec::new(), BTreeMap::new());
    let mut ring = Ring::default();
    let mut strategy = Strategy::Local;
    let mut asked = (0, 0);
    for (number, line) in ANSWERS.lines().enumerate() {
        let place = || format!("line {}: {line}", number + 1);
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["#", ..] => {}
            ["topology", _] => (tokens, locations) = (Vec::new(), BTreeMap::new()),
            ["node", node, datacenter, rack, owned @ ..] => {
                let node: Node = node.parse().unwrap();
                tokens.extend(owned.iter().map(|token| (token.parse().unwrap(), node)));
                let (datacenter, rack) = ((*datacenter).to_owned(), (*rack).to_owned());
                locations.insert(node, Location { datacenter, rack });
            }
            ["keyspace", class, factors @ ..] => {
                ring = Ring::new(tokens.clone(), &locations);
                strategy = Strategy::of(&replication(class, factors)).unwrap();
            }
            ["needs", local, levels @ ..] => {
                for answer in levels {
                    let (level, count) = answer.split_once('=').unwrap();
                    assert_eq!(
                        needs(of_name(level), &strategy, local).to_string(),
                        count,
                        "{}",
                        place()
                    );
                    asked.0 += 1;
                }
            }
            ["at", token, replicas @ ..] => {
                let replicas: Vec<Node> = replicas.iter().map(|node| node.parse().unwrap()).collect();
                assert_eq!(
                    ring.replicas(&strategy, token.parse().unwrap()),
                    Some(replicas),
                    "{}",
                    place()
                );
                asked.1 += 1;
            }
            _ => panic!("{}", place()),
        }
    }
    assert!(
        asked.0 > 1000 && asked.1 > 1000,
        "{asked:?}: the file is not empty"
    );
}

fn replication(class: &str, factors: &[&str]) -> Replication {
    let factors = factors.iter().map(|factor| factor.split_once('=').unwrap());
    let options = [("class", class)].into_iter().chain(factors);
    Replication {
        options: options
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
    }
}

fn of_name(name: &str) -> Consistency {
    let is_named = |level: &Consistency| level.to_string() == name;
    Consistency::ALL.into_iter().find(is_named).unwrap()
}
