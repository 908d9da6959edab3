//! [`History`]: the requests and answers of clients in a run, and whether they keep the laws.

use std::collections::{BTreeMap, BTreeSet};

use ilion_histories::{
    Action, Add, Batch, CounterRead, Operation, Outcome, Read, Value, Verdict, Violation, Write,
    check_batches, check_counter, check_fresh, check_monotonic, check_registers,
};

use crate::command::{Command, is_cell};
use crate::request::{Reply, Request};

const CONFIGURATIONS_MAX: usize = 50_000;

/// What happened in a run, so that one in which nothing happened is noticed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ran {
    /// Requests that were answered.
    pub answered: u32,
    /// Requests without an answer.
    pub unknown: u32,
    /// Nodes that crashed.
    pub crashes: u32,
    /// Nodes that copied another's data, since records were deleted.
    pub copies: u32,
    /// Reads of all cells.
    pub scans: u32,
    /// Times that the log's leader was cut off.
    pub isolations: u32,
    /// Changes of the schema.
    pub schemas: u32,
    /// Changes of roles.
    pub roles: u32,
    /// Nodes that joined, also those that replaced a lost one.
    pub joins: u32,
    /// Nodes that left.
    pub leaves: u32,
    /// Nodes that stayed down for a while.
    pub outages: u32,
    /// Logs that were deleted up to what a node needs, or further, while it was down.
    pub retentions: u32,
    /// Disks that were full for a while.
    pub full_disks: u32,
    /// Reads at ONE.
    pub nearest: u32,
    /// A checksum of all requests and answers with their times: two runs of one seed have the same.
    pub fingerprint: u32,
}

impl Ran {
    /// Adds the counts of another run.
    pub fn add(&mut self, other: &Self) {
        let Self {
            answered,
            unknown,
            crashes,
            copies,
            isolations,
            schemas,
            roles,
            joins,
            leaves,
            outages,
            retentions,
            full_disks,
            nearest,
            scans,
            fingerprint: _,
        } = other;
        self.answered += answered;
        self.unknown += unknown;
        self.crashes += crashes;
        self.copies += copies;
        self.isolations += isolations;
        self.schemas += schemas;
        self.roles += roles;
        self.joins += joins;
        self.leaves += leaves;
        self.outages += outages;
        self.retentions += retentions;
        self.full_disks += full_disks;
        self.nearest += nearest;
        self.scans += scans;
    }
}

struct Asked {
    request: Request,
    node: usize,
    called: u64,
}

/// A read of all cells.
struct Scan {
    node: usize,
    called: u64,
    returned: u64,
    cells: Vec<(u64, u64)>,
}

/// See the module. Its clock only orders what happens.
#[derive(Default)]
pub(crate) struct History {
    /// The requests that have no answer yet, by client.
    asked: BTreeMap<u64, Asked>,
    now: u64,
    next_client: u64,
    operations: Vec<Operation>,
    writes: Vec<Write>,
    reads: Vec<Read>,
    /// Those at ONE: each is answered by the node that is asked.
    reads_at_one: Vec<Read>,
    adds: Vec<Add>,
    counter_reads: Vec<CounterRead>,
    scans: Vec<Scan>,
    batches: Vec<Batch>,
    /// See [`Self::roles`].
    roles: BTreeMap<u64, bool>,
    pub ran: Ran,
}

impl History {
    /// Advances the clock.
    pub fn tick(&mut self) {
        self.now += 1;
    }

    /// Number of clients that wait for an answer.
    pub fn waiting(&self) -> usize {
        self.asked.len()
    }

    /// The clients that wait for an answer of this node, and what they asked for.
    pub fn waiting_for(&self, node: usize) -> Vec<(u64, Request)> {
        let asked = self.asked.iter().filter(|(_, asked)| asked.node == node);
        asked.map(|(client, asked)| (*client, asked.request)).collect()
    }

    /// Notes that a new client asks a node; returns the client.
    pub fn ask(&mut self, request: Request, node: usize) -> u64 {
        let client = self.next_client;
        self.next_client += 1;
        let called = self.now;
        self.asked.insert(
            client,
            Asked {
                request,
                node,
                called,
            },
        );
        client
    }

    /// Notes the answer of a client; only the first answer counts. Returns the request if it was answered and had an effect.
    pub fn answer(&mut self, client: u64, reply: Reply) -> Option<Request> {
        let Asked {
            request,
            node,
            called,
        } = self.asked.remove(&client)?;
        let told = format!("{client} {request:?} {node} {called} {} {reply:?}", self.now);
        self.ran.fingerprint = ilion_codec::crc32_extend(self.ran.fingerprint, told.as_bytes());
        if reply == Reply::Refused {
            return None;
        }
        self.now += 1;
        let returned = self.now;
        let acknowledged = (reply != Reply::Unknown).then_some(returned);
        if acknowledged.is_some() {
            self.ran.answered += 1;
        } else {
            self.ran.unknown += 1;
        }
        let mut operation = |key, action, found| {
            let outcome = match acknowledged {
                None => Outcome::Unknown,
                Some(returned) => Outcome::Done { returned, found },
            };
            let client = client as u32;
            self.operations.push(Operation {
                client,
                key,
                called,
                action,
                outcome,
            });
        };
        let read = |key, value: Value| Read {
            reader: node as u32,
            key,
            called,
            returned,
            version: value.unwrap_or(0),
        };
        match (request, reply) {
            (Request::Change(Command::Write(key, value)), _) => operation(key, Action::Write(value), None),
            (Request::Change(Command::CompareAndSet(key, expected, value)), reply) => {
                let found = if let Reply::Done(found) = reply {
                    found
                } else {
                    None
                };
                operation(key, Action::CompareAndSet(expected, value), found);
            }
            (Request::Change(Command::Add(key, amount)), _) => self.adds.push(Add {
                key,
                amount,
                called,
                acknowledged,
            }),
            (Request::Change(Command::Batch(keys, version)), _) => {
                let is_acknowledged = acknowledged.is_some();
                self.writes.extend(keys.map(|key| Write {
                    key,
                    version,
                    acknowledged,
                }));
                self.batches.push(Batch {
                    version,
                    keys: keys.to_vec(),
                    is_acknowledged,
                });
            }
            (Request::Register(key), Reply::Register(value)) if is_cell(key) => {
                self.reads.push(read(key, value));
            }
            (Request::Nearest(key), Reply::Register(value)) => {
                self.ran.nearest += 1;
                self.reads_at_one.push(read(key, value));
            }
            (Request::Register(key), Reply::Register(value)) => operation(key, Action::Read, Some(value)),
            (Request::Scan(_), Reply::Cells(cells)) => {
                self.ran.scans += 1;
                self.scans.push(Scan {
                    node,
                    called,
                    returned,
                    cells,
                });
            }
            (Request::Alter(_), Reply::Done(_)) => self.ran.schemas += 1,
            (Request::Role(number), Reply::Done(_)) => {
                self.ran.roles += 1;
                self.roles.insert(number, true);
            }
            (Request::Role(number), _) => {
                self.roles.entry(number).or_default();
            }
            (Request::Counter(key), Reply::Counter(value)) => self.counter_reads.push(CounterRead {
                key,
                called,
                returned,
                value,
            }),
            _ => {}
        }
        acknowledged.map(|_| request)
    }

    /// The version of a cell that was read last; 0 if there is none.
    pub fn last_read(&self, key: u64) -> u64 {
        let read = self.reads.iter().rev().find(|read| read.key == key);
        read.map_or(0, |read| read.version)
    }

    /// The roles that clients wanted to make, and whether that was acknowledged.
    pub fn roles(&self) -> &BTreeMap<u64, bool> {
        &self.roles
    }

    /// The cells that batches write.
    pub fn cells(&self) -> BTreeSet<u64> {
        let keys = self.batches.iter().flat_map(|batch| &batch.keys);
        keys.copied().collect()
    }

    /// What scans found of each cell, also of cells without a value.
    fn reads_of_scans(&self) -> Result<Vec<Read>, Violation> {
        let (all, mut reads) = (self.cells(), Vec::new());
        for Scan {
            node,
            called,
            returned,
            cells,
        } in &self.scans
        {
            let found: BTreeMap<u64, u64> = cells.iter().copied().collect();
            if found.len() < cells.len() {
                return Err(Violation(format!(
                    "twice: a read of all cells at {called} has some of them twice: {cells:?}"
                )));
            }
            reads.extend(all.iter().chain(found.keys()).map(|key| Read {
                reader: *node as u32,
                key: *key,
                called: *called,
                returned: *returned,
                version: found.get(key).copied().unwrap_or(0),
            }));
        }
        Ok(reads)
    }

    /// Checks the laws; `last` has the values of cells at the end, as each node has them.
    ///
    /// # Errors
    /// The law that does not hold.
    pub fn check(&self, last: &[BTreeMap<u64, u64>]) -> Result<(), Violation> {
        check_fresh(&self.writes, &self.reads)?;
        check_fresh(&self.writes, &self.reads_of_scans()?)?;
        check_monotonic(&self.reads)?;
        check_monotonic(&self.reads_at_one)?;
        check_counter(&self.adds, &self.counter_reads)?;
        for cells in last {
            check_batches(&self.batches, cells)?;
        }
        match check_registers(&self.operations, CONFIGURATIONS_MAX) {
            Verdict::Linearizable => Ok(()),
            verdict => Err(Violation(verdict.to_string())),
        }
    }
}
