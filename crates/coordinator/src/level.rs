//! [`Level`]: what a consistency level means for a read.
//!
//! Every acknowledged write is in the log, so one replica is enough at every level. Levels differ in which replicas may answer, and
//! in whether a replica first applies what was acknowledged before.

use ilion_query::Consistency;

/// What a read at a consistency level needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Level {
    /// The level, for errors.
    pub consistency: Consistency,
    /// Which replicas may answer.
    pub reach: Reach,
    /// The number of replicas that Cassandra would read, at levels whose reads go to the nearest replica without a barrier; `None`: reads
    /// always have one.
    nearest: Option<u32>,
}

/// Which replicas may answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// All replicas.
    Everywhere,
    /// The replicas of the coordinator's data center.
    DataCenter,
    /// The coordinator itself.
    Node,
}

/// Compat: NODE_LOCAL is no level of the protocol, but drivers can send its number.
const NODE_LOCAL: Consistency = Consistency(11);

impl Level {
    pub fn of(consistency: Consistency) -> Self {
        const TWO: Consistency = Consistency(2);
        const THREE: Consistency = Consistency(3);
        let reach = match consistency {
            Consistency::LOCAL_ONE | Consistency::LOCAL_QUORUM | Consistency::LOCAL_SERIAL => {
                Reach::DataCenter
            }
            NODE_LOCAL => Reach::Node,
            _ => Reach::Everywhere,
        };
        let nearest = match consistency {
            Consistency::ANY | Consistency::ONE | Consistency::LOCAL_ONE | NODE_LOCAL => Some(1),
            TWO => Some(2),
            THREE => Some(3),
            _ => None,
        };
        Self {
            consistency,
            reach,
            nearest,
        }
    }

    /// Whether the replica first applies every write that was acknowledged before. `factor` is the number of replicas.
    ///
    /// Compat: a read at ONE of a keyspace with one replica sees every write, and so does any read of all replicas.
    pub fn has_barrier(&self, factor: u32) -> bool {
        self.nearest.is_none_or(|nearest| nearest >= factor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quorum_and_its_like_have_a_barrier_and_local_levels_stay_in_their_data_center() {
        let with_barrier: Vec<u16> = (0..12)
            .filter(|number| Level::of(Consistency(*number)).has_barrier(4))
            .collect();
        // QUORUM, ALL, LOCAL_QUORUM, EACH_QUORUM, SERIAL, LOCAL_SERIAL.
        assert_eq!(with_barrier, [4, 5, 6, 7, 8, 9]);
        let of_one: Vec<u16> = (0..12)
            .filter(|number| Level::of(Consistency(*number)).has_barrier(1))
            .collect();
        assert_eq!(of_one, (0..12).collect::<Vec<u16>>());
        let of_two = |level| Level::of(Consistency(level)).has_barrier(2);
        assert_eq!([1, 2, 3].map(of_two), [false, true, true]);
        let local: Vec<u16> = (0..12)
            .filter(|number| Level::of(Consistency(*number)).reach == Reach::DataCenter)
            .collect();
        assert_eq!(local, [6, 9, 10]);
    }
}
