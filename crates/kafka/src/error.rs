//! Why brokers did not take records.

/// Why brokers did not take records, and will not. Failures that may pass are retried, and are no errors here.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The URL or the certificates are wrong: the user who gave them must act.
    #[error("{0}")]
    Refused(String),
    /// At the start no broker answered: the addresses are wrong, the cluster is down, or a firewall is in between.
    #[error(
        "no broker of {brokers} answers: {problem}; check the addresses (also advertised.listeners of the brokers), and whether they \
         expect TLS or a login"
    )]
    NoBroker {
        /// The addresses.
        brokers: String,
        /// The error of the last broker.
        problem: String,
    },
    /// The operator of the brokers must create the topic.
    #[error(
        "topic {topic} does not exist, or this login may not see it: create it, or let --create-topics do so"
    )]
    NoTopic {
        /// Its name.
        topic: String,
    },
    /// The registry of schemas refused a schema or the login, or is not there.
    #[error("schema registry {url}: {problem}")]
    Registry {
        /// Its URL.
        url: String,
        /// What it answered.
        problem: String,
    },
    /// The brokers do not accept the login.
    #[error("the brokers refused the login: {0}")]
    Login(String),
    /// The operator of the brokers must grant the permission.
    #[error(
        "the brokers refused {topic}: {problem}; the login needs Describe and Write on it, and Create to create it"
    )]
    Denied {
        /// The topic.
        topic: String,
        /// Their reason.
        problem: String,
    },
    /// A record is larger than the topic permits.
    #[error(
        "topic {topic} refuses a record of {bytes} bytes: raise max.message.bytes of the topic (and replica.fetch.max.bytes of the \
         brokers) beyond that"
    )]
    TooLarge {
        /// The topic.
        topic: String,
        /// Bytes of the record, without the frame of its request.
        bytes: usize,
    },
    /// The brokers sent an answer that this client cannot handle.
    #[error("topic {topic}: {problem}")]
    Broken {
        /// The topic.
        topic: String,
        /// What they answered.
        problem: String,
    },
}
