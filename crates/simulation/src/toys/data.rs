//! [`ToyData`]: what a toy replica keeps.

use std::collections::BTreeMap;

use ilion_histories::Value;

use crate::command::Command;

/// Registers and counters in maps.
#[derive(Clone, Debug, Default)]
pub(super) struct ToyData {
    registers: BTreeMap<u64, u64>,
    counters: BTreeMap<u64, i64>,
}

impl ToyData {
    /// Applies a command at its place in the log. A compare-and-set that did not set returns the value that it found.
    pub fn apply(&mut self, command: Command) -> Option<Value> {
        match command {
            Command::Write(key, value) => {
                self.registers.insert(key, value);
            }
            Command::CompareAndSet(key, expected, value) => {
                let found = self.register(key);
                if found != expected {
                    return Some(found);
                }
                self.registers.insert(key, value);
            }
            Command::Add(key, amount) => *self.counters.entry(key).or_default() += amount,
            Command::Batch(keys, version) => {
                for key in keys {
                    let newest = self.registers.entry(key).or_default();
                    *newest = version.max(*newest);
                }
            }
            Command::Barrier => {}
        }
        None
    }

    /// The value of a register.
    pub fn register(&self, key: u64) -> Value {
        self.registers.get(&key).copied()
    }

    /// The value of a counter.
    pub fn counter(&self, key: u64) -> i64 {
        self.counters.get(&key).copied().unwrap_or(0)
    }

    /// All values, to compare replicas at one position.
    pub fn digest(&self) -> String {
        format!("{:?} {:?}", self.registers, self.counters)
    }
}
