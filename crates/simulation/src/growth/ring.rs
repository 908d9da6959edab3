//! [`Shape`]: how large a cluster is; [`Layout`]: where its tablets are. The ring is made by joins, one node after another, as in a real cluster.

use bytes::Bytes;
use ilion_cluster::{
    Change, ClusterState, Endpoint, Entry, FEATURE_LEVEL_MAX, Halt, Join, Location, Record, Router,
    SchemaRecord, Strategy, Takes, apply,
};
use ilion_commitlog::{Origin, Position};
use ilion_member::slices_for_newcomer;
use uuid::Uuid;

const KEYSPACE: &str = "k";
const REPLICAS: u32 = 3;
const CLUSTER: Uuid = Uuid::from_u128(1);

/// Sizes of a cluster.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Nodes of Ilion, three or more.
    pub nodes: u32,
    /// Brokers of Kafka, three or more.
    pub brokers: u32,
    /// Slices of the ring, at least as many as nodes.
    pub tablets: u32,
    /// Partitions of the topic that has the logs of tablets, at most as many as tablets.
    pub partitions: u32,
}

impl Shape {
    /// The partition that has the log of a tablet; as `ilion_kafka_log` chooses it.
    pub(crate) fn partition_of(self, tablet: u32) -> usize {
        (tablet % self.partitions) as usize
    }

    /// The brokers that have a partition, the leader first.
    pub(crate) fn brokers_of(self, partition: usize) -> [usize; 3] {
        let brokers = self.brokers as usize;
        [0, 1, 2].map(|further| (partition + further) % brokers)
    }
}

/// Where the tablets of a cluster are.
pub(crate) struct Layout {
    /// The nodes that have a tablet, as numbers from 0, by tablet.
    pub replicas: Vec<Vec<usize>>,
}

impl Layout {
    /// Lets the nodes join, and then asks the router.
    pub fn new(shape: Shape) -> Result<Self, Halt> {
        let mut log = MetaLog::default();
        log.append(
            0,
            Change::Create {
                tablets: shape.tablets,
                level: FEATURE_LEVEL_MAX,
                down_max_micros: i64::MAX,
            },
        )?;
        for number in 1..=shape.nodes {
            let state = log.state.as_ref();
            let sequence_of = |tablet| shape.partition_of(tablet) as u32;
            let slices = state.map(|state| slices_for_newcomer(state, sequence_of, None));
            log.append(0, join(number, slices.unwrap_or_default()))?;
            while let Some(transition) = log.transition() {
                log.append(
                    number,
                    Change::Ready {
                        transition,
                        schema_epoch: 0,
                    },
                )?;
            }
        }
        let keyspace = (KEYSPACE.to_owned(), Some(Strategy::Simple(REPLICAS)));
        log.append(
            1,
            Change::Schema(SchemaRecord {
                checked_at: 0,
                keyspaces: vec![keyspace],
                body: Bytes::new(),
            }),
        )?;
        let router = log.state.as_ref().map_or_else(Router::empty, Router::new);
        let nodes_of = |tablet| {
            router
                .nodes_of(tablet)
                .into_iter()
                .map(|node| node as usize - 1)
                .collect()
        };
        Ok(Self {
            replicas: (0..shape.tablets).map(nodes_of).collect(),
        })
    }
}

/// The meta log of a cluster, and its state.
#[derive(Default)]
struct MetaLog {
    state: Option<ClusterState>,
    records: u64,
}

impl MetaLog {
    fn append(&mut self, node: u32, change: Change) -> Result<(), Halt> {
        self.records += 1;
        let entry = Entry {
            position: Position::new(self.records, 1),
            time_micros: 0,
            origin: Origin {
                node,
                incarnation: 1,
                seq: self.records,
            },
            record: Record {
                cluster: CLUSTER,
                change,
            },
        };
        self.state = Some(apply(self.state.as_ref(), &entry)?.0);
        Ok(())
    }

    /// The change of the ring that is under way.
    fn transition(&self) -> Option<u64> {
        Some(self.state.as_ref()?.transition.as_ref()?.number)
    }
}

fn join(number: u32, slices: Vec<u32>) -> Change {
    let id = Uuid::from_u128(u128::from(number));
    Change::Join(Join {
        host: id,
        session: id,
        endpoint: Endpoint {
            ip: [10, 0, (number >> 8) as u8, number as u8].into(),
            native_port: 9042,
            storage_port: 7000,
        },
        location: Location {
            datacenter: "dc".to_owned(),
            rack: "r".to_owned(),
        },
        understands: FEATURE_LEVEL_MAX,
        takes: Takes::Slices(slices),
    })
}
