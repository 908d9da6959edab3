//! Where replicas are: Cassandra's `SimpleStrategy` and `NetworkTopologyStrategy`, which walk around the ring.

use std::collections::{BTreeMap, BTreeSet};

use ilion_schema::Replication;

/// The number of a node in its cluster; never used twice. The same as [`ilion_commitlog::Origin::node`].
pub type Node = u32;

/// The data center and rack of a node.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    /// Its data center.
    pub datacenter: String,
    /// Its rack in that data center.
    pub rack: String,
}

/// How many replicas a keyspace has, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Strategy {
    /// `LocalStrategy`: each node has its own data.
    Local,
    /// `SimpleStrategy`: this number of nodes along the ring.
    Simple(u32),
    /// `NetworkTopologyStrategy`: the number of nodes in each data center, in as many racks as possible.
    Network(BTreeMap<String, u32>),
}

/// A keyspace's replication that this crate cannot place.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "replication with {option} = '{value}' cannot be placed; use SimpleStrategy or NetworkTopologyStrategy with whole numbers"
)]
pub struct UnknownReplication {
    option: String,
    value: String,
}

impl Strategy {
    /// The strategy of a keyspace's options.
    ///
    /// # Errors
    /// The class or a factor is unknown here; so are transient replicas.
    pub fn of(replication: &Replication) -> Result<Self, UnknownReplication> {
        let factors: BTreeMap<String, u32> = replication
            .factors()
            .map(|(name, value)| Ok((name.to_owned(), factor(name, value)?)))
            .collect::<Result<_, UnknownReplication>>()?;
        match replication.class() {
            "LocalStrategy" => Ok(Self::Local),
            "SimpleStrategy" => factors.get("replication_factor").map_or_else(
                || Err(unknown("replication_factor", "")),
                |count| Ok(Self::Simple(*count)),
            ),
            "NetworkTopologyStrategy" => Ok(Self::Network(factors)),
            class => Err(unknown("class", class)),
        }
    }
}

fn factor(name: &str, value: &str) -> Result<u32, UnknownReplication> {
    let all = value.strip_suffix("/0").unwrap_or(value);
    all.parse().map_err(|_| unknown(name, value))
}

fn unknown(option: &str, value: &str) -> UnknownReplication {
    UnknownReplication {
        option: option.to_owned(),
        value: value.to_owned(),
    }
}

/// Tokens in order, their owners, and the locations of the owners.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ring {
    tokens: Vec<(i64, Node)>,
    /// The location of each node that has a token.
    locations: BTreeMap<Node, Location>,
}

impl Ring {
    /// A ring of tokens. Nodes without a token are not in it. Requires: each owner has a location.
    pub fn new(mut tokens: Vec<(i64, Node)>, locations: &BTreeMap<Node, Location>) -> Self {
        tokens.sort_unstable();
        let owners: BTreeSet<Node> = tokens.iter().map(|(_, owner)| *owner).collect();
        let locations = owners
            .iter()
            .filter_map(|owner| Some((*owner, locations.get(owner)?.clone())));
        let locations: BTreeMap<_, _> = locations.collect();
        debug_assert_eq!(owners.len(), locations.len(), "each owner has a location");
        Self { tokens, locations }
    }

    /// The tokens, ascending, with their owners.
    pub fn tokens(&self) -> &[(i64, Node)] {
        &self.tokens
    }

    /// The replicas of a token, the primary one first. `None` for `LocalStrategy`: each node is the only replica of its own data.
    pub fn replicas(&self, strategy: &Strategy, token: i64) -> Option<Vec<Node>> {
        match strategy {
            Strategy::Local => None,
            Strategy::Simple(factor) => Some(self.simple(*factor, token)),
            Strategy::Network(factors) => Some(self.network(factors, token)),
        }
    }

    /// Owners from the first token at or after this one, once around the ring. A node may come more than once.
    fn walk(&self, token: i64) -> impl Iterator<Item = Node> {
        let start = self.tokens.partition_point(|(other, _)| *other < token);
        let (before, after) = self.tokens.split_at(start);
        after.iter().chain(before).map(|(_, owner)| *owner)
    }

    /// The next different nodes along the ring.
    fn simple(&self, factor: u32, token: i64) -> Vec<Node> {
        let wanted = (factor as usize).min(self.locations.len());
        let mut replicas = Vec::with_capacity(wanted);
        for node in self.walk(token) {
            if replicas.len() == wanted {
                break;
            }
            if !replicas.contains(&node) {
                replicas.push(node);
            }
        }
        replicas
    }

    /// Walks along the ring and selects nodes for each data center: a node in a new rack at once; a node in a rack that already has a
    /// replica only if there are more replicas than racks.
    fn network(&self, factors: &BTreeMap<String, u32>, token: i64) -> Vec<Node> {
        let mut vacancies = self.vacancies(factors);
        let mut replicas = Vec::new();
        for node in self.walk(token) {
            if vacancies.is_empty() {
                break;
            }
            let location = &self.locations[&node];
            let Some(vacancy) = vacancies.get_mut(location.datacenter.as_str()) else {
                continue;
            };
            if replicas.contains(&node) || !vacancy.take(&location.rack) {
                continue;
            }
            replicas.push(node);
            if vacancy.replicas == 0 {
                vacancies.remove(location.datacenter.as_str());
            }
        }
        replicas
    }

    /// The data centers that still need replicas.
    fn vacancies(&self, factors: &BTreeMap<String, u32>) -> BTreeMap<&str, Vacancy<'_>> {
        let mut population: BTreeMap<&str, (u32, BTreeSet<&str>)> = BTreeMap::new();
        for location in self.locations.values() {
            let (nodes, racks) = population.entry(&location.datacenter).or_default();
            *nodes += 1;
            racks.insert(&location.rack);
        }
        let vacancy = |(name, (nodes, racks)): (_, (u32, BTreeSet<&str>))| {
            let factor = *factors.get(name)?;
            let vacancy = Vacancy {
                replicas: factor.min(nodes),
                repeats: i64::from(factor) - racks.len() as i64,
                racks: BTreeSet::new(),
            };
            (vacancy.replicas > 0).then_some((name, vacancy))
        };
        population.into_iter().filter_map(vacancy).collect()
    }
}

/// The replicas that a data center still needs.
struct Vacancy<'a> {
    replicas: u32,
    /// How many more replicas may be in a rack that already has one.
    repeats: i64,
    racks: BTreeSet<&'a str>,
}

impl<'a> Vacancy<'a> {
    /// Selects a node of this rack; returns false if the rack has enough replicas.
    fn take(&mut self, rack: &'a str) -> bool {
        if !self.racks.insert(rack) {
            if self.repeats <= 0 {
                return false;
            }
            self.repeats -= 1;
        }
        self.replicas -= 1;
        true
    }
}
