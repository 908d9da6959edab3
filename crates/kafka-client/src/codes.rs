//! Codes of errors in answers: those that this client decides by, and the names of the usual ones.

/// Declares codes, and the names that Kafka's own messages have for them.
macro_rules! codes {
    ($($(#[$about:meta])* $name:ident = $code:literal;)*) => {
        $($(#[$about])* pub const $name: i16 = $code;)*

        /// The name of a code, for messages.
        pub fn name(code: i16) -> String {
            match code {
                $($code => stringify!($name).to_owned(),)*
                _ => format!("error {code} of Kafka's protocol"),
            }
        }
    };
}

codes! {
    /// No error.
    NONE = 0;
    /// An offset is below the start or above the end.
    OFFSET_OUT_OF_RANGE = 1;
    /// A batch has a wrong checksum.
    CORRUPT_MESSAGE = 2;
    /// The topic or partition does not exist, or the broker does not know it yet.
    UNKNOWN_TOPIC_OR_PARTITION = 3;
    /// An election is under way.
    LEADER_NOT_AVAILABLE = 5;
    /// Another broker leads the partition, or this one lost it while it was appending.
    NOT_LEADER_OR_FOLLOWER = 6;
    /// The replicas did not have the records in time.
    REQUEST_TIMED_OUT = 7;
    /// A record is larger than the topic permits.
    MESSAGE_TOO_LARGE = 10;
    /// A name that no topic may have.
    INVALID_TOPIC_EXCEPTION = 17;
    /// A batch is larger than a segment of the topic.
    RECORD_LIST_TOO_LARGE = 18;
    /// Too few replicas are in sync; nothing was appended.
    NOT_ENOUGH_REPLICAS = 19;
    /// Too few replicas are in sync; the records were appended.
    NOT_ENOUGH_REPLICAS_AFTER_APPEND = 20;
    /// The login may not do this to the topic.
    TOPIC_AUTHORIZATION_FAILED = 29;
    /// The login may not do this to the cluster.
    CLUSTER_AUTHORIZATION_FAILED = 31;
    /// A time that the topic does not permit.
    INVALID_TIMESTAMP = 32;
    /// The broker does not have this mechanism.
    UNSUPPORTED_SASL_MECHANISM = 33;
    /// A login at the wrong time.
    ILLEGAL_SASL_STATE = 34;
    /// The broker does not speak this version.
    UNSUPPORTED_VERSION = 35;
    /// There is such a topic already.
    TOPIC_ALREADY_EXISTS = 36;
    /// An invalid number of partitions.
    INVALID_PARTITIONS = 37;
    /// More replicas than brokers.
    INVALID_REPLICATION_FACTOR = 38;
    /// An invalid setting.
    INVALID_CONFIG = 40;
    /// Another broker is the controller.
    NOT_CONTROLLER = 41;
    /// The topic has an old format.
    UNSUPPORTED_FOR_MESSAGE_FORMAT = 43;
    /// The brokers have a rule against it.
    POLICY_VIOLATION = 44;
    /// The disk of the broker failed.
    KAFKA_STORAGE_ERROR = 56;
    /// Name or password is wrong.
    SASL_AUTHENTICATION_FAILED = 58;
    /// The epoch in the request is older than the one that the broker knows.
    FENCED_LEADER_EPOCH = 74;
    /// The epoch in the request is newer than the one that the broker knows.
    UNKNOWN_LEADER_EPOCH = 75;
    /// A newer leader does not know the end of the partition yet.
    OFFSET_NOT_AVAILABLE = 78;
    /// A record is wrong.
    INVALID_RECORD = 87;
}
