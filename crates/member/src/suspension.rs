//! [`Suspension`]: a while in which this node can apply no records, for example because its disk is full.
//!
//! The node reads no further, and gives no sign of life: after some seconds the others think that it is down. Its clients still get
//! answers: writes when the log has them; what needs applied records comes from other replicas.

use std::time::Duration;

use ilion_env::turns::pause;

use crate::shared::{Shared, nanos};

/// A record that could not be applied just now is tried again after this time.
const SOON: Duration = Duration::from_millis(1);
/// A record that waits for longer suspends the node. Shorter waits harm nobody.
const PATIENCE: Duration = Duration::from_millis(100);
/// A suspended node tries its record again after this time.
const RETRY: Duration = Duration::from_millis(20);

/// See the module.
#[derive(Default)]
pub(crate) struct Suspension {
    /// When the next record could not be applied for the first time; `None` while records are applied.
    since_nanos: Option<u64>,
    is_told: bool,
}

impl Suspension {
    /// Called when the next record cannot be applied yet. Waits a little.
    pub fn go_on(&mut self, shared: &Shared, reason: &str) {
        let now = shared.now_nanos();
        let since = *self.since_nanos.get_or_insert(now);
        if !self.is_told && now.saturating_sub(since) >= nanos(PATIENCE) {
            self.is_told = true;
            tracing::warn!(%reason, "this node cannot apply the logs for now, and tries again; other replicas answer meanwhile");
            shared.progress.suspend(reason);
        }
        // No other thread gives them up, and this one waits here.
        shared.give_up_overdue();
        pause(if self.is_told { RETRY } else { SOON });
    }

    /// Called when a record was applied.
    pub fn end(&mut self, shared: &Shared) {
        if self.since_nanos.take().is_some() && std::mem::take(&mut self.is_told) {
            tracing::info!("this node applies the logs again");
            shared.progress.resume();
        }
    }
}
