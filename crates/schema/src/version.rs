//! The digest that tells schemas apart: equal schemas have equal versions, on every node and after every restart.

use uuid::Uuid;

use crate::Schema;

impl Schema {
    /// This schema as the next one: its epoch set, its version computed.
    pub(crate) fn sealed(mut self, epoch: u64) -> Schema {
        self.epoch = epoch;
        self.version = Uuid::from_u128(u128::from(epoch));
        self
    }
}
