//! Clients that count, and clients that fail.

use std::sync::Arc;

use bytes::Bytes;
use ilion_cluster::Node;
use ilion_coordinator::{
    Answer, InProcess, Pending, ReadCommand, ReplicaClient, ReplicaError, decode_answer, encode_answer,
};
use ilion_rows::random::Dice;
use ilion_rows::{Decoded, MutationReader};
use ilion_schema::Schema;
use parking_lot::Mutex;

/// What was asked of whom, and the partitions that came back.
#[derive(Clone, Default)]
pub struct Asked(Arc<Mutex<Vec<(Node, ReadCommand)>>>, Arc<Mutex<Vec<Bytes>>>);

impl Asked {
    /// Forgets what was asked so far, and returns it.
    pub fn take(&self) -> Vec<(Node, ReadCommand)> {
        std::mem::take(&mut self.0.lock())
    }

    /// Forgets what came back so far, and returns the number of its rows.
    pub fn take_rows(&self, schema: &Schema) -> usize {
        let pages = std::mem::take(&mut *self.1.lock());
        let mut rows = 0;
        for page in pages {
            let mut reader = MutationReader::new(page);
            while let Some(decoded) = reader
                .next_mutation(&|id| schema.table_by_id(id).cloned())
                .unwrap()
            {
                if let Decoded::Mutation(mutation) = decoded {
                    rows += mutation.update.rows.len();
                }
            }
        }
        rows
    }

    /// The nodes that were asked.
    pub fn nodes(&self) -> Vec<Node> {
        self.0.lock().iter().map(|(node, _)| *node).collect()
    }
}

/// Writes down what is asked.
pub struct Watching {
    pub asked: Asked,
    pub client: InProcess,
}

impl ReplicaClient for Watching {
    fn send(&self, node: Node, command: ReadCommand) -> Box<dyn Pending> {
        self.asked.0.lock().push((node, command.clone()));
        Box::new(Counted {
            asked: self.asked.clone(),
            pending: self.client.send(node, command),
        })
    }
}

struct Counted {
    asked: Asked,
    pending: Box<dyn Pending>,
}

impl Pending for Counted {
    fn wait(self: Box<Self>, deadline_nanos: u64) -> Result<Answer, ReplicaError> {
        let answer = self.pending.wait(deadline_nanos)?;
        if let Answer::Partitions { partitions, .. } = &answer {
            self.asked.1.lock().push(partitions.clone());
        }
        Ok(answer)
    }
}

/// How often a command fails.
#[derive(Clone, Copy, Debug)]
pub enum Trouble {
    Never,
    /// One in so many commands.
    OneIn(usize),
    Always,
}

/// The trouble of each node, from node 1 on; it changes during a test.
#[derive(Clone)]
pub struct Troubles(Arc<Mutex<(Dice, Vec<Trouble>)>>);

impl Troubles {
    pub fn new(seed: u64, nodes: usize) -> Self {
        Self(Arc::new(Mutex::new((
            Dice::new(seed),
            vec![Trouble::Never; nodes],
        ))))
    }

    pub fn set(&self, node: Node, trouble: Trouble) {
        self.0.lock().1[node as usize - 1] = trouble;
    }

    fn of(&self, node: Node) -> Option<ReplicaError> {
        let mut troubles = self.0.lock();
        let (dice, of_nodes) = &mut *troubles;
        let fails = match of_nodes[node as usize - 1] {
            Trouble::Never => false,
            Trouble::OneIn(sides) => dice.one_in(sides),
            Trouble::Always => true,
        };
        fails.then(|| match dice.below(4) {
            0 => ReplicaError::Unreachable("the connection broke".to_owned()),
            1 => ReplicaError::Refused("it knows an older ring only".to_owned()),
            2 => ReplicaError::TimedOut,
            _ => ReplicaError::Failed("a disk failed".to_owned()),
        })
    }
}

/// Fails as the troubles say, when a command is sent or when its answer is waited for.
pub struct Failing {
    pub troubles: Troubles,
    pub client: InProcess,
}

impl ReplicaClient for Failing {
    fn send(&self, node: Node, command: ReadCommand) -> Box<dyn Pending> {
        Box::new(Risky {
            node,
            troubles: self.troubles.clone(),
            pending: self.client.send(node, command),
        })
    }
}

struct Risky {
    node: Node,
    troubles: Troubles,
    pending: Box<dyn Pending>,
}

impl Pending for Risky {
    fn wait(self: Box<Self>, deadline_nanos: u64) -> Result<Answer, ReplicaError> {
        match self.troubles.of(self.node) {
            Some(error) => Err(error),
            None => self.pending.wait(deadline_nanos),
        }
    }
}

/// Changes bytes of answers, now and then.
pub struct Garbling {
    pub dice: Arc<Mutex<Dice>>,
    pub client: InProcess,
}

impl ReplicaClient for Garbling {
    fn send(&self, node: Node, command: ReadCommand) -> Box<dyn Pending> {
        Box::new(Garbled {
            dice: self.dice.clone(),
            pending: self.client.send(node, command),
        })
    }
}

struct Garbled {
    dice: Arc<Mutex<Dice>>,
    pending: Box<dyn Pending>,
}

impl Pending for Garbled {
    fn wait(self: Box<Self>, deadline_nanos: u64) -> Result<Answer, ReplicaError> {
        let mut bytes = encode_answer(&self.pending.wait(deadline_nanos));
        let mut dice = self.dice.lock();
        for _ in 0..dice.below(3) {
            let at = dice.below(bytes.len());
            bytes[at] ^= 1 << dice.below(8);
        }
        drop(dice);
        decode_answer(&bytes.into())
    }
}

/// What happens at the next command.
pub type Change = Box<dyn FnOnce() + Send>;

/// At its first command, the ring changes, and the node that is asked refuses.
pub struct Surprised {
    pub change: Arc<Mutex<Option<Change>>>,
    pub client: InProcess,
}

impl ReplicaClient for Surprised {
    fn send(&self, node: Node, command: ReadCommand) -> Box<dyn Pending> {
        match self.change.lock().take() {
            Some(change) => {
                change();
                Box::new(Refusing)
            }
            None => self.client.send(node, command),
        }
    }
}

struct Refusing;

impl Pending for Refusing {
    fn wait(self: Box<Self>, _deadline_nanos: u64) -> Result<Answer, ReplicaError> {
        Err(ReplicaError::Refused("it is no replica of the tablet".to_owned()))
    }
}
