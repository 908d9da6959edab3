//! The result metadata that a connection has received for statements whose result columns have changed.
//!
//! Before v5, a client that skips metadata does not name the metadata it knows, and another client may have prepared the
//! statement again since. So each connection must prepare such a statement itself before it gets rows without metadata.

use hashbrown::HashMap;
use parking_lot::Mutex;

/// Most remembered statements. When the limit is reached, all are dropped, and clients must prepare them again.
const STATEMENTS_MAX: usize = 1024;

type Id = [u8; 16];

/// The id of the last result metadata that was sent, by statement.
#[derive(Default)]
pub(crate) struct SentMetadata(Mutex<HashMap<Id, Id>>);

impl SentMetadata {
    /// Notes the metadata id in an answer to PREPARE.
    pub fn note(&self, statement: Id, result_metadata: Id) {
        let mut sent = self.0.lock();
        if sent.len() >= STATEMENTS_MAX {
            sent.clear();
        }
        sent.insert(statement, result_metadata);
    }

    /// True if the client has received this metadata of the statement.
    pub fn has(&self, statement: &Id, result_metadata: &Id) -> bool {
        self.0.lock().get(statement) == Some(result_metadata)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_sent_last_is_known_and_all_is_forgotten_at_the_limit() {
        let sent = SentMetadata::default();
        let id = |number: usize| {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&number.to_be_bytes());
            id
        };
        sent.note(id(1), [1; 16]);
        sent.note(id(1), [2; 16]);
        assert!(sent.has(&id(1), &[2; 16]));
        assert!(!sent.has(&id(1), &[1; 16]));
        (0..5000).for_each(|number| sent.note(id(number), [3; 16]));
        assert!(sent.has(&id(4999), &[3; 16]));
        assert!(sent.0.lock().len() <= STATEMENTS_MAX);
    }
}
