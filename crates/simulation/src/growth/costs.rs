//! [`Costs`]: what a processor needs; from figures of `scripts/cluster-bench.sh` (docs/benchmarks.md).

/// What requests and records cost, in nanoseconds of a core, and how long a message takes.
#[derive(Clone, Debug)]
pub struct Costs {
    /// A write at its coordinator, without its record: from the request to the answer.
    pub write: u64,
    /// A read at its coordinator, which is a replica.
    pub read: u64,
    /// A read at QUORUM besides: it waits for the end of its log. Without questions to brokers.
    pub wait_for_end: u64,
    /// A record that a node applies.
    pub apply: u64,
    /// A record that a node reads and drops, since it has no replica of its tablet.
    pub skip: u64,
    /// A request to a broker, at the node.
    pub node_request: u64,
    /// A request that appends, at the broker that leads.
    pub produce: u64,
    /// The copy of what was appended: at the leader, and at the broker that has the copy.
    pub copy: [u64; 2],
    /// A request of a node for new records, at the broker.
    pub fetch: u64,
    /// A question for ends, at the broker, whatever the number of partitions.
    pub end: u64,
    /// Each partition that a request with records or for records names, at the brokers.
    pub partition: u64,
    /// Each record that a broker appends.
    pub record: u64,
    /// A message from a machine to another one.
    pub network: u64,
    /// What the client program costs for each request; only counts if all is on one machine.
    pub client: u64,
}

impl Costs {
    /// So that a request takes about what it took with 64 in flight, and one at a time, with one partition and with twelve.
    pub const MEASURED: Self = Self {
        write: 16_000,
        read: 9_000,
        wait_for_end: 6_000,
        apply: 4_000,
        skip: 1_000,
        node_request: 40_000,
        produce: 200_000,
        copy: [85_000, 85_000],
        fetch: 100_000,
        end: 85_000,
        partition: 35_000,
        record: 2_000,
        network: 50_000,
        client: 3_000,
    };
}
