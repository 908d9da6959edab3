//! Backups and restores of a node with CQL on it.
//!
//! | module | what |
//! | --- | --- |
//! | `node` | a node in a directory |
//! | `ways` | create, list, verify, delete, restore: what each does and refuses |
//! | `damage` | objects that are missing, cut or changed; full disks |
//! | `moments` | restores to points in time |
//! | `model` | any history of writes, backups and restores, beside a model |
//! | `crash` | a power loss at each sync of each tool |

#![expect(clippy::unwrap_used, reason = "a failing step is to stop the test")]

mod crash;
mod damage;
mod model;
mod moments;
mod node;
mod ways;
