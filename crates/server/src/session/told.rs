//! The result metadata that a connection has received for statements whose result columns have changed.
//!
//! Before v5, a client that skips metadata does not name the metadata it knows, and another client may have prepared the
//! statement again since. So each connection must prepare such a statement itself before it gets rows without metadata.

use hashbrown::HashMap;
use parking_lot::Mutex;

/// Most statements. When it is reached, all are dropped, and clients must prepare them again.
const TOLD_MAX: usize = 1024;

type Id = [u8; 16];

/// The id of the last result metadata that was sent, by statement.
#[derive(Default)]
pub(crate) struct Told(Mutex<HashMap<Id, Id>>);

impl Told {
    /// Notes the metadata id in an answer to PREPARE.
    pub fn note(&self, statement: Id, result_metadata: Id) {
        let mut told = self.0.lock();
        if told.len() >= TOLD_MAX {
            told.clear();
        }
        told.insert(statement, result_metadata);
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
    fn what_is_told_last_is_known_and_too_much_is_forgotten() {
        let told = Told::default();
        let id = |number: usize| {
            let mut id = [0; 16];
            id[..8].copy_from_slice(&number.to_be_bytes());
            id
        };
        told.note(id(1), [1; 16]);
        told.note(id(1), [2; 16]);
        assert!(told.has(&id(1), &[2; 16]));
        assert!(!told.has(&id(1), &[1; 16]));
        (0..5000).for_each(|number| told.note(id(number), [3; 16]));
        assert!(told.has(&id(4999), &[3; 16]));
        assert!(told.0.lock().len() <= TOLD_MAX);
    }
}
