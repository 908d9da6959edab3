//! Why brokers did not do what they were asked for.

/// Why brokers did not do what they were asked for, by who must act.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// It may pass: a broker is down, slow, or lost its role. The request may have been executed.
    #[error("{0}")]
    Unreachable(String),
    /// The certificates or a setting are wrong: the user who set them must act.
    #[error("{0}")]
    Refused(String),
    /// The brokers do not accept the login.
    #[error("the brokers refused the login: {0}")]
    Login(String),
    /// The operator of the brokers must grant a permission.
    #[error("the brokers refused {what}: {problem}")]
    Denied {
        /// What was asked for.
        what: String,
        /// The reason of the brokers.
        problem: String,
    },
}

impl Error {
    /// Whether it may pass by itself.
    pub fn may_pass(&self) -> bool {
        matches!(self, Self::Unreachable(_))
    }
}
