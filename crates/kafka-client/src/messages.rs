//! The requests of this client and their answers, field by field as in Kafka's protocol.
//!
//! Each is in one version, the newest without tagged fields. Brokers of Kafka 2.4 and later know all of them, 4.x included.

use bytes::Bytes;

use crate::wire::{Wire, message};

/// A request: its number in the protocol, its version, and the type of its answer.
pub trait Request: Wire {
    /// The type of its answer.
    type Answer: Wire;
    /// Its number in the protocol.
    const KEY: i16;
    /// The version that is spoken.
    const VERSION: i16;
    /// Its name in the protocol.
    const NAME: &'static str;
}

macro_rules! requests {
    ($($request:ident, $key:literal, $version:literal, $answer:ident;)*) => {
        $(
            impl Request for $request {
                type Answer = $answer;
                const KEY: i16 = $key;
                const VERSION: i16 = $version;
                const NAME: &'static str = stringify!($request);
            }
        )*

        /// Number, version and name of each.
        pub const REQUESTS: &[(i16, i16, &str)] = &[$(($key, $version, stringify!($request)),)*];
    };
}

requests! {
    Produce, 0, 8, Produced;
    Fetch, 1, 10, Fetched;
    ListOffsets, 2, 5, ListedOffsets;
    Metadata, 3, 7, MetadataAnswer;
    SaslHandshake, 17, 1, SaslHandshakeAnswer;
    ApiVersions, 18, 0, ApiVersionsAnswer;
    CreateTopics, 19, 4, CreatedTopics;
    DeleteRecords, 21, 1, DeletedRecords;
    DescribeConfigs, 32, 1, DescribedConfigs;
    SaslAuthenticate, 36, 1, SaslAuthenticateAnswer;
}

message! {
    /// Appends batches of records.
    struct Produce {
        /// Null: no transaction.
        transactional_id: Option<String>,
        /// How many replicas must have the records: -1 for all that are in sync.
        acks: i16,
        /// How long the broker waits for them.
        timeout_millis: i32,
        /// The batches, by topic.
        topics: Vec<ProduceTopic>,
    }
    /// Batches of a topic.
    struct ProduceTopic {
        /// Its name.
        name: String,
        /// Batches by partition.
        partitions: Vec<ProducePartition>,
    }
    /// The batch of a partition.
    struct ProducePartition {
        /// The partition.
        index: i32,
        /// One batch ([`crate::batch`]).
        records: Bytes,
    }
    /// Answers [`Produce`].
    struct Produced {
        /// By topic.
        topics: Vec<ProducedTopic>,
        /// How long the broker held the answer back because of a quota.
        throttle_millis: i32,
    }
    /// The outcome for a topic.
    struct ProducedTopic {
        /// Its name.
        name: String,
        /// By partition.
        partitions: Vec<ProducedPartition>,
    }
    /// The outcome for a batch.
    struct ProducedPartition {
        /// The partition.
        index: i32,
        /// Code of an error, or 0.
        error: i16,
        /// The offset of the first record.
        base_offset: i64,
        /// When the broker appended it; -1 if the topic has the senders' times.
        log_append_time_millis: i64,
        /// The first offset of the partition.
        log_start_offset: i64,
        /// Records that the broker found wrong.
        record_errors: Vec<RecordError>,
        /// More about the error.
        error_message: Option<String>,
    }
    /// A record that the broker found wrong.
    struct RecordError {
        /// Its index in the batch.
        batch_index: i32,
        /// What is wrong.
        message: Option<String>,
    }
}

message! {
    /// Reads records of several partitions.
    struct Fetch {
        /// -1: a consumer.
        replica_id: i32,
        /// How long the broker waits for `min_bytes`.
        max_wait_millis: i32,
        /// The broker answers at once if it has this many bytes.
        min_bytes: i32,
        /// Approximate maximum size of the answer in bytes; the first batch may be larger.
        max_bytes: i32,
        /// 0: records of transactions that are not committed, too.
        isolation_level: i8,
        /// 0: no session.
        session_id: i32,
        /// -1: no session.
        session_epoch: i32,
        /// The partitions to read, by topic.
        topics: Vec<FetchTopic>,
        /// Partitions that a session does not read any more.
        forgotten: Vec<ForgottenTopic>,
    }
    /// Partitions of a topic that are read.
    struct FetchTopic {
        /// Its name.
        name: String,
        /// The partitions.
        partitions: Vec<FetchPartition>,
    }
    /// A partition that is read.
    struct FetchPartition {
        /// The partition.
        index: i32,
        /// -1: not known.
        current_leader_epoch: i32,
        /// The offset to read from.
        fetch_offset: i64,
        /// -1: a consumer.
        log_start_offset: i64,
        /// Approximate maximum number of bytes of this partition.
        max_bytes: i32,
    }
    /// Partitions that leave a session.
    struct ForgottenTopic {
        /// The topic.
        name: String,
        /// The partitions.
        partitions: Vec<i32>,
    }
    /// Answers [`Fetch`].
    struct Fetched {
        /// How long the broker held the answer back because of a quota.
        throttle_millis: i32,
        /// Code of an error, or 0.
        error: i16,
        /// 0: no session.
        session_id: i32,
        /// By topic.
        topics: Vec<FetchedTopic>,
    }
    /// Records of a topic.
    struct FetchedTopic {
        /// Its name.
        name: String,
        /// By partition.
        partitions: Vec<FetchedPartition>,
    }
    /// Records of a partition.
    struct FetchedPartition {
        /// The partition.
        index: i32,
        /// Code of an error, or 0.
        error: i16,
        /// Records below this offset are on all in-sync replicas.
        high_watermark: i64,
        /// Records below this offset are in no open transaction.
        last_stable_offset: i64,
        /// The first offset.
        log_start_offset: i64,
        /// Transactions that were given up.
        aborted: Vec<AbortedTransaction>,
        /// Batches ([`crate::batch`]); the last one may be cut.
        records: Bytes,
    }
    /// A transaction that was given up.
    struct AbortedTransaction {
        /// The producer of the transaction.
        producer_id: i64,
        /// The first offset of the transaction.
        first_offset: i64,
    }
}

/// As a timestamp in [`ListOffsetsPartition`]: the end.
pub const LATEST: i64 = -1;
/// As a timestamp in [`ListOffsetsPartition`]: the start.
pub const EARLIEST: i64 = -2;
/// As a replica in [`ListOffsets`]: a consumer, which only leaders answer. The end of a partition is its high watermark.
pub const CONSUMER: i32 = -1;
/// As a replica in [`ListOffsets`]: any replica answers, with the end of its own copy (Kafka calls this a debugging replica).
pub const ANYBODY: i32 = -2;

message! {
    /// Asks for the start or the end of partitions.
    struct ListOffsets {
        /// [`CONSUMER`] or [`ANYBODY`].
        replica_id: i32,
        /// 0: records of transactions that are not committed, too.
        isolation_level: i8,
        /// By topic.
        topics: Vec<ListOffsetsTopic>,
    }
    /// Partitions of a topic.
    struct ListOffsetsTopic {
        /// Its name.
        name: String,
        /// The partitions.
        partitions: Vec<ListOffsetsPartition>,
    }
    /// A partition.
    struct ListOffsetsPartition {
        /// The partition.
        index: i32,
        /// -1: not known.
        current_leader_epoch: i32,
        /// [`LATEST`] or [`EARLIEST`].
        timestamp: i64,
    }
    /// Answers [`ListOffsets`].
    struct ListedOffsets {
        /// How long the broker held the answer back because of a quota.
        throttle_millis: i32,
        /// By topic.
        topics: Vec<ListedOffsetsTopic>,
    }
    /// Offsets of a topic.
    struct ListedOffsetsTopic {
        /// Its name.
        name: String,
        /// By partition.
        partitions: Vec<ListedOffsetsPartition>,
    }
    /// The offset of a partition.
    struct ListedOffsetsPartition {
        /// The partition.
        index: i32,
        /// Code of an error, or 0.
        error: i16,
        /// -1 for a start or an end.
        timestamp: i64,
        /// The offset.
        offset: i64,
        /// The epoch of the leader.
        leader_epoch: i32,
    }
}

message! {
    /// Asks for brokers and leaders.
    struct Metadata {
        /// Null: all topics.
        topics: Option<Vec<String>>,
        /// Whether the brokers create topics that are missing.
        allow_auto_topic_creation: bool,
    }
    /// Answers [`Metadata`].
    struct MetadataAnswer {
        /// How long the broker held the answer back because of a quota.
        throttle_millis: i32,
        /// Brokers that are alive.
        brokers: Vec<MetadataBroker>,
        /// The cluster.
        cluster_id: Option<String>,
        /// The broker that takes requests for the controller.
        controller_id: i32,
        /// The topics.
        topics: Vec<MetadataTopic>,
    }
    /// A broker.
    struct MetadataBroker {
        /// Its number.
        id: i32,
        /// Where clients reach it.
        host: String,
        /// Where clients reach it.
        port: i32,
        /// Its rack.
        rack: Option<String>,
    }
    /// A topic.
    struct MetadataTopic {
        /// Code of an error, or 0.
        error: i16,
        /// Its name.
        name: String,
        /// Whether it is one of Kafka's own.
        is_internal: bool,
        /// Its partitions.
        partitions: Vec<MetadataPartition>,
    }
    /// A partition.
    struct MetadataPartition {
        /// Code of an error, or 0.
        error: i16,
        /// The partition.
        index: i32,
        /// The broker that leads it, or -1.
        leader: i32,
        /// Grows with each election.
        leader_epoch: i32,
        /// Brokers that have it.
        replicas: Vec<i32>,
        /// Replicas that are in sync.
        in_sync: Vec<i32>,
        /// Replicas that are down.
        offline: Vec<i32>,
    }
}

message! {
    /// Asks which versions a broker speaks.
    struct ApiVersions {}
    /// Answers [`ApiVersions`].
    struct ApiVersionsAnswer {
        /// Code of an error, or 0.
        error: i16,
        /// By request.
        requests: Vec<ApiVersion>,
    }
    /// The versions of a request.
    struct ApiVersion {
        /// Number of the request.
        key: i16,
        /// The oldest.
        min: i16,
        /// The newest.
        max: i16,
    }
    /// Begins a login.
    struct SaslHandshake {
        /// Name of the mechanism.
        mechanism: String,
    }
    /// Answers [`SaslHandshake`].
    struct SaslHandshakeAnswer {
        /// Code of an error, or 0.
        error: i16,
        /// The mechanisms that the broker permits.
        mechanisms: Vec<String>,
    }
    /// A step of a login.
    struct SaslAuthenticate {
        /// The client's message of the mechanism.
        bytes: Bytes,
    }
    /// Answers [`SaslAuthenticate`].
    struct SaslAuthenticateAnswer {
        /// Code of an error, or 0.
        error: i16,
        /// More about the error.
        message: Option<String>,
        /// The broker's message of the mechanism.
        bytes: Bytes,
        /// How long the connection may live; 0: no limit.
        lifetime_millis: i64,
    }
}

message! {
    /// Creates topics.
    struct CreateTopics {
        /// The topics.
        topics: Vec<CreateTopic>,
        /// How long the broker waits for it.
        timeout_millis: i32,
        /// Whether the broker only checks the request, and creates nothing.
        validate_only: bool,
    }
    /// A topic to create.
    struct CreateTopic {
        /// Its name.
        name: String,
        /// How many partitions; -1: the default of the brokers.
        partitions: i32,
        /// How many replicas; -1: the default of the brokers.
        replication_factor: i16,
        /// Empty: the brokers choose.
        assignments: Vec<Assignment>,
        /// Settings that differ from those of the brokers.
        configs: Vec<TopicConfig>,
    }
    /// The brokers of a partition.
    struct Assignment {
        /// The partition.
        index: i32,
        /// Its brokers.
        brokers: Vec<i32>,
    }
    /// A setting of a topic.
    struct TopicConfig {
        /// Its name.
        name: String,
        /// Its value.
        value: Option<String>,
    }
    /// Answers [`CreateTopics`].
    struct CreatedTopics {
        /// How long the broker held the answer back because of a quota.
        throttle_millis: i32,
        /// By topic.
        topics: Vec<CreatedTopic>,
    }
    /// The outcome for a topic.
    struct CreatedTopic {
        /// Its name.
        name: String,
        /// Code of an error, or 0.
        error: i16,
        /// More about the error.
        message: Option<String>,
    }
    /// Asks for the settings of topics or brokers.
    struct DescribeConfigs {
        /// The topics or brokers.
        resources: Vec<DescribeResource>,
        /// Whether the answer says where values come from.
        include_synonyms: bool,
    }
    /// A topic or broker, and the settings that are wanted.
    struct DescribeResource {
        /// 2: a topic.
        kind: i8,
        /// Its name.
        name: String,
        /// Null: all.
        settings: Option<Vec<String>>,
    }
    /// Answers [`DescribeConfigs`].
    struct DescribedConfigs {
        /// How long the broker held the answer back because of a quota.
        throttle_millis: i32,
        /// By resource.
        resources: Vec<DescribedResource>,
    }
    /// Settings of a topic or broker.
    struct DescribedResource {
        /// Code of an error, or 0.
        error: i16,
        /// More about the error.
        message: Option<String>,
        /// 2: a topic.
        kind: i8,
        /// Its name.
        name: String,
        /// The settings.
        settings: Vec<DescribedSetting>,
    }
    /// A setting.
    struct DescribedSetting {
        /// Its name.
        name: String,
        /// Its value.
        value: Option<String>,
        /// Whether it cannot be changed.
        is_read_only: bool,
        /// Where the value comes from.
        source: i8,
        /// Whether the value is secret, and not in the answer.
        is_sensitive: bool,
        /// All sources of the value.
        synonyms: Vec<SettingSynonym>,
    }
    /// A source of a setting.
    struct SettingSynonym {
        /// Its name there.
        name: String,
        /// Its value there.
        value: Option<String>,
        /// Which source.
        source: i8,
    }
}

message! {
    /// Deletes the first records of partitions, up to an offset.
    struct DeleteRecords {
        /// By topic.
        topics: Vec<DeleteRecordsTopic>,
        /// How long the broker waits for the replicas.
        timeout_millis: i32,
    }
    /// Partitions of a topic.
    struct DeleteRecordsTopic {
        /// Its name.
        name: String,
        /// The partitions.
        partitions: Vec<DeleteRecordsPartition>,
    }
    /// A partition.
    struct DeleteRecordsPartition {
        /// The partition.
        index: i32,
        /// Records below this offset are deleted.
        offset: i64,
    }
    /// Answers [`DeleteRecords`].
    struct DeletedRecords {
        /// How long the broker held the answer back because of a quota.
        throttle_millis: i32,
        /// By topic.
        topics: Vec<DeletedRecordsTopic>,
    }
    /// Partitions of a topic.
    struct DeletedRecordsTopic {
        /// Its name.
        name: String,
        /// By partition.
        partitions: Vec<DeletedRecordsPartition>,
    }
    /// A partition.
    struct DeletedRecordsPartition {
        /// The partition.
        index: i32,
        /// The first offset of all replicas now.
        low_watermark: i64,
        /// Code of an error, or 0.
        error: i16,
    }
}

#[cfg(test)]
mod tests {
    use ilion_codec::Writer;
    use proptest::prelude::*;

    use super::*;
    use crate::wire::Input;

    fn decode_all(bytes: &Bytes) {
        fn decode<T: Wire>(bytes: &Bytes) {
            let _ = T::decode(&mut Input::new(bytes));
        }
        decode::<Produced>(bytes);
        decode::<Fetched>(bytes);
        decode::<ListedOffsets>(bytes);
        decode::<MetadataAnswer>(bytes);
        decode::<SaslHandshakeAnswer>(bytes);
        decode::<ApiVersionsAnswer>(bytes);
        decode::<CreatedTopics>(bytes);
        decode::<DeletedRecords>(bytes);
        decode::<DescribedConfigs>(bytes);
        decode::<SaslAuthenticateAnswer>(bytes);
    }

    /// Version 8 of the answer to Produce, byte by byte.
    #[test]
    fn fields_are_in_the_order_of_the_protocol() {
        let answer = [
            &[0, 0, 0, 1][..],
            &[0, 1, b't'],
            &[0, 0, 0, 1],
            &[0, 0, 0, 3],
            &[0, 0],
            &[0, 0, 0, 0, 0, 0, 0, 9],
            &[0xff; 8],
            &[0, 0, 0, 0, 0, 0, 0, 2],
            &[0, 0, 0, 0],
            &[0xff, 0xff],
            &[0, 0, 0, 0],
        ]
        .concat();
        let answer = Produced::decode(&mut Input::new(&answer.into())).unwrap();
        let partition = &answer.topics[0].partitions[0];
        assert_eq!(answer.topics[0].name, "t");
        assert_eq!(
            (partition.index, partition.base_offset, partition.log_start_offset),
            (3, 9, 2)
        );
        assert_eq!(partition.error_message, None);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_a_panic(
            junk in proptest::collection::vec(any::<u8>(), 0..100),
            small in proptest::collection::vec(0..3_u8, 0..200),
        ) {
            decode_all(&junk.into());
            decode_all(&small.into());
        }

        #[test]
        fn a_changed_answer_is_read_without_a_panic(at in 0..200_usize, byte in any::<u8>()) {
            let mut answer = Fetched::default();
            for name in ["data", "meta"] {
                answer.topics.push(FetchedTopic {
                    name: name.to_owned(),
                    partitions: vec![FetchedPartition { records: Bytes::from_static(b"records"), ..FetchedPartition::default() }; 2],
                });
            }
            let mut out = Writer::new();
            answer.encode(&mut out);
            let mut bytes = out.into_vec();
            prop_assert_eq!(Fetched::decode(&mut Input::new(&bytes.clone().into())).unwrap(), answer);
            let at = at % bytes.len();
            bytes[at] = byte;
            decode_all(&bytes.into());
        }
    }
}
