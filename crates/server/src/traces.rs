//! Traces of requests: `TRACING ON`.
//!
//! A request is traced if its client requests it, or at random (`ilion trace-probability`). The answer has the id of the trace only if
//! the client requested the trace.

use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use ilion_env::Env;
use ilion_env::trace::TraceEvent;
use uuid::Uuid;

/// The trace of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Its id, by which clients find it.
    pub id: Uuid,
    /// When the request began, in microseconds since 1970.
    pub started_micros: i64,
    /// How long the request took, in microseconds.
    pub duration_micros: u64,
    /// Address of the client.
    pub client: IpAddr,
    /// Kind of the request, in Cassandra's words.
    pub request: &'static str,
    /// Its parameters, by Cassandra's names.
    pub parameters: Vec<(String, String)>,
    /// Name of the thread that executed it.
    pub thread: String,
    /// Its steps.
    pub events: Vec<TraceEvent>,
}

/// A store for traces.
pub trait TraceStore: Send + Sync {
    /// Stores a trace. A failure is logged, and the trace is lost.
    fn store(&self, trace: Trace);
}

/// Share of the requests that are traced although their clients did not request it.
#[derive(Debug, Default)]
pub struct TraceProbability {
    /// In units of `1 / u64::MAX`.
    share: AtomicU64,
}

impl TraceProbability {
    /// Sets the share; values outside of 0 to 1 are clamped.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "a share between 0 and u64::MAX"
    )]
    pub fn set(&self, probability: f64) {
        let share = (probability.clamp(0.0, 1.0) * u64::MAX as f64) as u64;
        self.share.store(share, Relaxed);
    }

    /// The share, from 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "shown to people")]
    pub fn probability(&self) -> f64 {
        self.share.load(Relaxed) as f64 / u64::MAX as f64
    }

    /// Decides at random whether to trace this request.
    #[inline]
    pub(crate) fn is_met(&self, env: &dyn Env) -> bool {
        let share = self.share.load(Relaxed);
        share > 0 && env.random_u64() <= share
    }
}

#[cfg(test)]
mod tests {
    use ilion_env::MemEnv;

    use super::*;

    #[test]
    fn about_as_many_requests_are_traced_as_the_probability_says() {
        let (env, traced) = (MemEnv::new(3), TraceProbability::default());
        let count = || (0..1000).filter(|_| traced.is_met(&env)).count();
        assert_eq!(count(), 0);
        traced.set(0.25);
        assert!((200..300).contains(&count()));
        traced.set(7.0);
        assert_eq!(count(), 1000);
        assert!((traced.probability() - 1.0).abs() < 1e-9);
    }
}
