//! `speculative_retry`: a replica that is slow is not waited for, if the table says so.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use ilion_cluster::Node;
use ilion_coordinator::testing::Shape;
use ilion_coordinator::{
    Answer, InProcess, PageSize, Pending, Read, ReadCommand, ReadOptions, ReplicaClient, ReplicaError, Signal,
};
use ilion_query::Error;
use ilion_rows::random::Dice;
use parking_lot::Mutex;

use crate::random::{histories, random_how, random_options};
use crate::statements::Table;
use crate::world::{How, NOW_SECS, World, run};

/// How a node answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    AtOnce,
    /// Not within the time of any test.
    Never,
    /// At once, with an error.
    Fails,
}

#[derive(Clone, Default)]
struct Manners {
    of_nodes: Arc<Mutex<BTreeMap<Node, Manner>>>,
    /// Pages that were asked for, with the node.
    asked: Arc<Mutex<Vec<(Node, ReadCommand)>>>,
    /// If set, each page is answered in a manner of its own.
    dice: Arc<Mutex<Option<Dice>>>,
    /// Of these, how many were dropped without an answer.
    cancelled: Arc<Mutex<u32>>,
}

impl Manners {
    fn set(&self, node: Node, manner: Manner) {
        self.of_nodes.lock().insert(node, manner);
    }

    fn nodes(&self) -> Vec<Node> {
        self.asked.lock().iter().map(|(node, _)| *node).collect()
    }
}

struct Mannered {
    manners: Manners,
    client: InProcess,
}

struct Mannerly {
    manner: Manner,
    pending: Option<Box<dyn Pending>>,
    cancelled: Arc<Mutex<u32>>,
}

impl ReplicaClient for Mannered {
    fn send(&self, node: Node, command: ReadCommand) -> Box<dyn Pending> {
        self.manners.asked.lock().push((node, command.clone()));
        let of_node = self.manners.of_nodes.lock().get(&node).copied();
        let random = self.manners.dice.lock().as_mut().map(|dice| match dice.below(4) {
            0 => Manner::Never,
            1 => Manner::Fails,
            _ => Manner::AtOnce,
        });
        let manner = random.or(of_node);
        Box::new(Mannerly {
            manner: manner.unwrap_or(Manner::AtOnce),
            pending: Some(self.client.send(node, command)),
            cancelled: self.manners.cancelled.clone(),
        })
    }
}

impl Pending for Mannerly {
    fn wait(mut self: Box<Self>, deadline_nanos: u64) -> Result<Answer, ReplicaError> {
        let pending = self.pending.take().unwrap();
        match self.manner {
            Manner::AtOnce => pending.wait(deadline_nanos),
            Manner::Never => Err(ReplicaError::TimedOut),
            Manner::Fails => Err(ReplicaError::Failed("a disk failed".to_owned())),
        }
    }

    fn watch(&mut self, _signal: &Arc<Signal>) -> bool {
        true
    }

    fn is_answered(&self) -> bool {
        self.manner != Manner::Never
    }
}

impl Drop for Mannerly {
    fn drop(&mut self) {
        if self.pending.is_some() {
            *self.cancelled.lock() += 1;
        }
    }
}

/// Every tablet has three replicas. Node 1 refuses to read its own data, so the coordinator asks node 2 first, then node 3.
fn world(policy: &str) -> (World, Manners) {
    let manners = Manners::default();
    let options = ReadOptions {
        page_first: PageSize {
            rows: 4,
            bytes: 1 << 20,
        },
        page_max: PageSize {
            rows: 4,
            bytes: 1 << 20,
        },
        ranges_max: 1,
        replica_timeout: Duration::from_millis(1000),
        ..ReadOptions::default()
    };
    let shape = Shape::random(&mut Dice::new(3), 3, 3);
    let world = World::with_client(&shape, options, |client| {
        let manners = manners.clone();
        Arc::new(Mannered { manners, client })
    });
    let create = format!(
        "CREATE TABLE ks.t (k int, c int, v int, PRIMARY KEY (k, c)) WITH speculative_retry = '{policy}'"
    );
    world.write(0, &create, &How::default());
    for row in 0..20 {
        let text = format!("INSERT INTO ks.t (k, c, v) VALUES (1, {row}, {row})");
        world.write(0, &text, &How::default());
    }
    world.cluster.set_ready(1, false);
    manners.asked.lock().clear();
    (world, manners)
}

const SELECT: &str = "SELECT * FROM ks.t WHERE k = 1";

/// The node that is asked first, and the other one.
fn first_and_second(world: &World, manners: &Manners) -> (Node, Node) {
    assert_eq!(
        run(&world.coordinators[0], SELECT, &How::default())
            .unwrap()
            .rows(),
        20
    );
    let first = manners.nodes()[0];
    manners.asked.lock().clear();
    (first, 5 - first)
}

#[test]
fn the_page_of_a_slow_replica_is_asked_of_another_one_which_then_goes_on() {
    for policy in ["5ms", "MIN(99p,5ms)", "99p", "ALWAYS"] {
        let (world, manners) = world(policy);
        let (first, second) = first_and_second(&world, &manners);
        manners.set(first, Manner::Never);
        let begun = Instant::now();
        let answered = run(&world.coordinators[0], SELECT, &How::default()).unwrap();
        assert_eq!(
            Ok(&answered),
            run(&world.single, SELECT, &How::default()).as_ref()
        );
        // The node that is slow would be given up after 1 s, and half of that is what a percentile without figures stands for.
        assert!(
            begun.elapsed() < Duration::from_millis(900),
            "{policy}: {:?}",
            begun.elapsed()
        );
        let nodes = manners.nodes();
        assert_eq!(nodes[..2], [first, second], "{policy}");
        assert!(
            nodes[2..].iter().all(|node| *node == second),
            "{policy}: {nodes:?}"
        );
        assert_eq!(*manners.cancelled.lock(), 1, "the slow one is told");
    }
}

/// The second node is asked for the same page: the same place, after the same records.
#[test]
fn the_second_replica_gets_the_same_command() {
    let (world, manners) = world("5ms");
    let (first, second) = first_and_second(&world, &manners);
    manners.set(first, Manner::Never);
    let how = How {
        level: ilion_query::Consistency::QUORUM,
        ..How::default()
    };
    run(&world.coordinators[0], SELECT, &how).unwrap();
    let asked = manners.asked.lock();
    let of = |at: usize| (asked[at].0, &asked[at].1);
    assert_eq!((of(0).0, of(1).0), (first, second));
    assert_eq!(of(0).1.read, of(1).1.read);
    assert_eq!(of(0).1.applied, of(1).1.applied);
    assert!(!of(0).1.applied.is_empty());
    assert!(matches!(of(0).1.read, Read::Partition { .. }));
}

#[test]
fn without_a_policy_a_slow_replica_is_given_up_first() {
    let (world, manners) = world("NEVER");
    let (first, second) = first_and_second(&world, &manners);
    manners.set(first, Manner::Never);
    let begun = Instant::now();
    let answered = run(&world.coordinators[0], SELECT, &How::default()).unwrap();
    assert_eq!(answered.rows(), 20);
    assert!(
        begun.elapsed() >= Duration::from_millis(900),
        "{:?}",
        begun.elapsed()
    );
    assert_eq!(manners.nodes()[..2], [first, second]);
    assert_eq!(*manners.cancelled.lock(), 0);
}

#[test]
fn a_replica_that_answers_in_time_is_the_only_one_that_is_asked() {
    for policy in ["50ms", "99p", "NEVER"] {
        let (world, manners) = world(policy);
        let (first, _) = first_and_second(&world, &manners);
        run(&world.coordinators[0], SELECT, &How::default()).unwrap();
        let nodes = manners.nodes();
        assert!(nodes.iter().all(|node| *node == first), "{policy}: {nodes:?}");
    }
}

#[test]
fn a_second_replica_that_fails_or_is_slow_does_not_spoil_the_first_answer() {
    let (world, manners) = world("5ms");
    let (first, second) = first_and_second(&world, &manners);
    manners.set(first, Manner::Never);
    manners.set(second, Manner::Fails);
    let failed = run(&world.coordinators[0], SELECT, &How::default());
    assert!(matches!(failed, Err(Error::ReadFailure { .. })), "{failed:?}");
    manners.set(second, Manner::Never);
    let late = run(&world.coordinators[0], SELECT, &How::default());
    assert!(matches!(late, Err(Error::ReadTimeout { .. })), "{late:?}");
}

#[test]
fn ranges_are_asked_of_another_replica_too() {
    let (world, manners) = world("5ms");
    first_and_second(&world, &manners);
    manners.set(2, Manner::Never);
    let text = "SELECT * FROM ks.t";
    let begun = Instant::now();
    let answered = run(&world.coordinators[0], text, &How::default()).unwrap();
    assert_eq!(Ok(&answered), run(&world.single, text, &How::default()).as_ref());
    assert!(
        begun.elapsed() < Duration::from_millis(900),
        "{:?}",
        begun.elapsed()
    );
    assert!(manners.nodes().contains(&3));
}

/// Any SELECT, while each page is answered at once, with an error, or never: right, or an error.
#[test]
fn an_answer_of_replicas_that_race_is_right_or_an_error_and_never_short() {
    let (mut right, mut errors) = (0, 0);
    for seed in 0..histories() / 2 {
        let mut dice = Dice::new(4000 + seed);
        let manners = Manners::default();
        let options = ReadOptions {
            replica_timeout: Duration::from_millis(5),
            ..random_options(&mut dice)
        };
        let shape = Shape::random(&mut dice, 3, 3);
        let world = World::with_client(&shape, options, |client| {
            let manners = manners.clone();
            Arc::new(Mannered { manners, client })
        });
        let table = Table::random(&mut dice);
        let policy = "ALTER TABLE ks.t WITH speculative_retry = 'ALWAYS'".to_owned();
        for text in [&table.create, &policy].into_iter().chain(&table.indexes) {
            world.write(0, text, &How::default());
        }
        world.wait_built();
        for _ in 0..100 {
            let how = How {
                now_secs: NOW_SECS,
                ..random_how(&mut dice)
            };
            world.write(dice.below(3), &table.write(&mut dice), &how);
        }
        world.cluster.set_ready(1, false);
        *manners.dice.lock() = Some(Dice::new(seed));
        for _ in 0..40 {
            let (text, how) = (table.select(&mut dice), random_how(&mut dice));
            let Ok(expected) = run(&world.single, &text, &how) else {
                continue;
            };
            match run(&world.coordinators[0], &text, &how) {
                Ok(answered) => {
                    assert_eq!(
                        answered, expected,
                        "seed {seed}, {how:?}\n{}\n{text}",
                        table.create
                    );
                    right += 1;
                }
                Err(Error::Unavailable { .. } | Error::ReadTimeout { .. } | Error::ReadFailure { .. }) => {
                    errors += 1;
                }
                Err(other) => panic!("seed {seed}: {text}: {other:?}"),
            }
        }
    }
    println!("{right} right, {errors} errors");
    assert!(right > 20 && errors > 10, "{right} right, {errors} errors");
}
