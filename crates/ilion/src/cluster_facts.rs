//! Facts about a node of a cluster: counts for metrics, and load and lag for operators, also those of other members.

use std::collections::BTreeMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use bytes::Bytes;
use ilion_cluster::{ClusterView, Node as NodeNumber, Traffic};
use ilion_codec::{Error, Reader, Writer};
use ilion_commitlog::SharedLogs;
use ilion_engine::Engine;
use ilion_internode::{Client, Kind, Lane, Served, ServedCall, Service, ServiceError};
use ilion_kafka_log::KafkaLogs;
use ilion_member::{Member, MemberFacts, TabletFacts, WaitTimes};
use ilion_node::RELEASE_VERSION;
use ilion_server::{ClusterCounts, ClusterProbe, MemberStanding, Waits};

/// How long other members may take to answer.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long a snapshot or backup waits until this node has applied what was acknowledged before.
const CATCH_UP_MAX: Duration = Duration::from_secs(30);
/// Most characters that are shown of a member's release.
const RELEASE_CHARS_MAX: usize = 64;

/// Load, lag and release of this node.
pub struct ClusterFacts {
    pub engine: Arc<Engine>,
    pub member: Arc<Member>,
    pub logs: Arc<KafkaLogs>,
}

impl ClusterFacts {
    /// Load, lag and release of this node, as other members get them.
    fn standing(&self) -> MemberStanding {
        let facts = self.member.facts();
        let tables = self.engine.table_facts();
        let is_behind = facts.tablets.iter().filter(|tablet| !tablet.is_ready).count();
        MemberStanding {
            load_bytes: tables.iter().map(|table| table.sstable_bytes).sum(),
            lag_records: sum_of(
                &lags(&facts, &self.logs.ends(), self.sequence_of()),
                self.sequence_of(),
            ),
            tablets_behind: (facts.lacking + is_behind) as u64,
            release: Some(RELEASE_VERSION.to_owned()),
        }
    }

    fn sequence_of(&self) -> impl Fn(u32) -> u32 {
        |tablet| self.logs.sequence_of(tablet)
    }
}

/// The number of records that the node has not applied yet, for each tablet that it follows. `ends`: of the sequences. Pure.
fn lags(
    facts: &MemberFacts,
    ends: &BTreeMap<u32, u64>,
    sequence_of: impl Fn(u32) -> u32,
) -> BTreeMap<u32, u64> {
    let lag_of = |facts: &TabletFacts| {
        let end = ends.get(&sequence_of(facts.tablet));
        end.map_or(0, |end| end.saturating_sub(facts.applied))
    };
    let tablets = facts.tablets.iter();
    tablets.map(|facts| (facts.tablet, lag_of(facts))).collect()
}

/// The sum of the lags of tablets, at most [`u64::MAX`]: a broker may report any number as the end of a log. Of the tablets of a sequence, which
/// lack the same records, that with the largest lag counts. Pure.
fn sum_of(lags: &BTreeMap<u32, u64>, sequence_of: impl Fn(u32) -> u32) -> u64 {
    let mut largest: BTreeMap<u32, u64> = BTreeMap::new();
    for (tablet, lag) in lags {
        let of_sequence = largest.entry(sequence_of(*tablet)).or_default();
        *of_sequence = (*lag).max(*of_sequence);
    }
    largest.into_values().fold(0, u64::saturating_add)
}

/// Answers the questions of the administration about the cluster.
pub struct Probe {
    pub facts: Arc<ClusterFacts>,
    pub client: Client,
}

impl ClusterProbe for Probe {
    fn view(&self) -> Option<ClusterView> {
        self.facts.member.view()
    }

    fn silences(&self) -> BTreeMap<NodeNumber, f64> {
        self.facts.member.silences()
    }

    fn counts(&self) -> ClusterCounts {
        let facts = self.facts.member.facts();
        let (logs, calls) = (self.facts.logs.counts(), self.client.counts());
        let lags = lags(&facts, &self.facts.logs.ends(), self.facts.sequence_of());
        let ready = facts.tablets.iter().filter(|tablet| tablet.is_ready);
        let halted = facts.tablets.iter().filter(|tablet| tablet.is_halted);
        ClusterCounts {
            followed: facts.tablets.len() as u64,
            ready: ready.count() as u64,
            lacking: facts.lacking as u64,
            halted: halted.count() as u64,
            lag_records_sum: sum_of(&lags, self.facts.sequence_of()),
            lag_records: lags,
            applied: facts.applied,
            appended: facts.appended,
            repeated: facts.repeated,
            disputed: facts.disputed,
            not_appended: facts.not_appended,
            barriers_appended: facts.barriers_appended,
            barriers_raised: waits(facts.barriers_raised),
            barriers_applied: waits(facts.barriers_applied),
            produce_requests: logs.produce_requests,
            produce_errors: logs.produce_errors,
            fetch_requests: logs.fetch_requests,
            fetch_errors: logs.fetch_errors,
            end_requests: logs.end_requests,
            end_errors: logs.end_errors,
            asked: calls.asked,
            unanswered: calls.unanswered,
            served: calls.served,
            failed: calls.failed,
        }
    }

    fn traffic(&self) -> BTreeMap<NodeNumber, Traffic> {
        self.client.traffic()
    }

    fn catch_up(&self) -> Result<(), String> {
        self.facts.member.catch_up(CATCH_UP_MAX)
    }

    fn ask(&self, members: &[NodeNumber]) -> BTreeMap<NodeNumber, MemberStanding> {
        let own = self.facts.member.view().map(|view| view.own);
        let ends_nanos = self.facts.engine.env().monotonic_nanos() + nanos(PATIENCE);
        // Sends all requests before it waits for the first answer.
        let others = members.iter().filter(|node| Some(**node) != own);
        let calls: Vec<_> = others
            .map(|node| {
                let call = self
                    .client
                    .call(*node, Kind::STANDING, Lane::Point, Bytes::new(), Some(PATIENCE));
                (*node, call)
            })
            .collect();
        let answers = calls.into_iter().filter_map(|(node, call)| {
            let answer = call.wait(ends_nanos).map_err(|error| error.to_string());
            let standing = answer.and_then(|answer| decode(&answer).map_err(|error| error.to_string()));
            match standing {
                Ok(standing) => Some((node, standing)),
                Err(reason) => {
                    tracing::debug!(node, reason, "a member does not say how it stands");
                    None
                }
            }
        });
        let mut standings: BTreeMap<NodeNumber, MemberStanding> = answers.collect();
        if let Some(own) = own.filter(|own| members.contains(own)) {
            standings.insert(own, self.facts.standing());
        }
        standings
    }
}

fn waits(times: WaitTimes) -> Waits {
    Waits {
        sum_nanos: times.sum_nanos,
        buckets: times.buckets,
    }
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Answers other members that ask for the standing of this node.
pub struct StandingService(pub Weak<ClusterFacts>);

impl Service for StandingService {
    fn answer(&self, _request: Bytes, _call: &ServedCall) -> Result<Served, ServiceError> {
        let facts = self.0.upgrade();
        let facts = facts.ok_or_else(|| ServiceError::Refused("the node stops".to_owned()))?;
        Ok(Served::Whole(encode(&facts.standing()).into()))
    }
}

/// The bytes of a standing: load, lag, tablets behind (u64 each), release (bytes after a vint; missing in the first versions). Later
/// versions may append fields.
fn encode(standing: &MemberStanding) -> Vec<u8> {
    let mut out = Writer::new();
    out.u64(standing.load_bytes);
    out.u64(standing.lag_records);
    out.u64(standing.tablets_behind);
    if let Some(release) = &standing.release {
        out.bytes_vint(release.as_bytes());
    }
    out.into_vec()
}

fn decode(bytes: &[u8]) -> Result<MemberStanding, Error> {
    let mut input = Reader::new(bytes);
    Ok(MemberStanding {
        load_bytes: input.u64()?,
        lag_records: input.u64()?,
        tablets_behind: input.u64()?,
        release: match input.is_empty() {
            true => None,
            false => Some(release_of(input.bytes_vint()?)),
        },
    })
}

/// The release that another node sent, shortened and without control characters, which would disturb the operator's terminal.
fn release_of(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let printable = text.chars().filter(|letter| !letter.is_control());
    printable.take(RELEASE_CHARS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lag_of_a_tablet_is_what_its_log_has_beyond_what_is_applied() {
        let tablet = |tablet, applied| TabletFacts {
            tablet,
            applied,
            is_ready: true,
            is_halted: false,
        };
        let facts = MemberFacts {
            // No broker has answered for the last one yet.
            tablets: vec![tablet(1, 70), tablet(2, 90), tablet(3, 5)],
            ..MemberFacts::default()
        };
        // The end of the second is older than what was applied.
        let ends = BTreeMap::from([(0, 9), (1, 100), (2, 80)]);
        let lags_of = lags(&facts, &ends, |tablet| tablet);
        assert_eq!(lags_of, BTreeMap::from([(1, 30), (2, 0), (3, 0)]));
        // The first and the third share the sequence 1.
        let lags_of = lags(&facts, &ends, |tablet| tablet.min(tablet % 2 + 1));
        assert_eq!(lags_of, BTreeMap::from([(1, 30), (2, 10), (3, 75)]));
    }

    #[test]
    fn the_sum_of_lags_counts_each_sequence_once_and_has_a_limit() {
        let lags = BTreeMap::from([(1, 30), (2, 10), (3, 12)]);
        assert_eq!(sum_of(&lags, |tablet| tablet), 52);
        assert_eq!(sum_of(&lags, |tablet| tablet % 2), 40);
        let lags = BTreeMap::from([(1, u64::MAX - 3), (2, 2), (3, 5)]);
        assert_eq!(sum_of(&lags, |tablet| tablet), u64::MAX);
    }

    #[test]
    fn a_standing_comes_back_also_with_more_behind_it() {
        let standing = MemberStanding {
            load_bytes: 1,
            lag_records: u64::MAX,
            tablets_behind: 3,
            release: Some("5.0.9".to_owned()),
        };
        let mut bytes = encode(&standing);
        let first = MemberStanding {
            release: None,
            ..standing.clone()
        };
        let of_first = encode(&first);
        assert_eq!(
            decode(&of_first).unwrap(),
            first,
            "the first versions have no release"
        );
        for cut in (0..bytes.len()).filter(|cut| *cut != of_first.len()) {
            assert!(decode(&bytes[..cut]).is_err(), "{cut}");
        }
        bytes.extend_from_slice(b"of a later version");
        assert_eq!(decode(&bytes).unwrap(), standing);
        assert_eq!(release_of(b"5.0\n\x1b[31m9"), "5.0[31m9");
        assert_eq!(release_of(&[b'5'; 1000]).len(), RELEASE_CHARS_MAX);
    }
}
