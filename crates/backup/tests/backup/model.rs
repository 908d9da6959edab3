//! Any history of writes, flushes, restarts, backups, shipped logs, deletes and restores. What is restored must be what a model had at
//! that moment. `BACKUP_SEED` and `BACKUP_STEPS` choose another history.

use std::collections::BTreeMap;

use ilion_backup::{Until, delete};
use ilion_env::Seeded;

use crate::node::{Node, Rows, TestDirectory, of, restored_rows, verify_all};

const SEED: u64 = 24;
const STEPS: u64 = 160;

struct World {
    place: TestDirectory,
    node: Option<Node>,
    rows: Rows,
    /// What each backup has, and its moment.
    backups: BTreeMap<String, (i64, Rows)>,
    /// What the node had at some times.
    moments: Vec<(i64, Rows)>,
    /// The log is at the destination up to here.
    shipped_micros: i64,
    number: u32,
}

impl World {
    fn node(&self) -> &Node {
        self.node.as_ref().unwrap()
    }

    fn step(&mut self, random: &mut Seeded) -> String {
        let k = random.below(8) as i32;
        let c = random.below(4) as i32;
        match random.below(100) {
            0..50 => {
                self.number += 1;
                let v = format!("v{}", self.number);
                self.node().put(k, c, &v);
                self.rows.insert((k, c), v.clone());
                format!("put {k} {c} {v}")
            }
            50..60 => {
                self.node()
                    .cql(&format!("DELETE FROM ks.t WHERE k = {k} AND c = {c}"));
                self.rows.remove(&(k, c));
                format!("delete {k} {c}")
            }
            60..64 => {
                self.node()
                    .cql(&format!("DELETE FROM ks.t WHERE k = {k} AND c >= {c}"));
                self.rows.retain(|(row_k, row_c), _| *row_k != k || *row_c < c);
                format!("delete {k} from {c}")
            }
            64..66 => {
                self.node().cql("TRUNCATE ks.t");
                self.rows.clear();
                "truncate".to_owned()
            }
            66..72 => {
                self.node().flush();
                "flush".to_owned()
            }
            72..75 => {
                let table = self.node().engine().schema().table("ks", "t").unwrap().id;
                self.node().engine().compact(table).unwrap();
                "compact".to_owned()
            }
            75..78 => {
                let mut node = self.node.take().unwrap();
                if random.below(2) == 0 {
                    node.engine().drain().unwrap();
                }
                node.close();
                self.node = Some(Node::open_archiving(&self.place.env, &self.place.path("node")));
                "restart".to_owned()
            }
            78..84 => {
                self.number += 1;
                let name = format!("b{}", self.number);
                let created = self.node().create(&self.place.destination(), &name).unwrap();
                let at_micros = created.manifest.at_micros;
                self.backups.insert(name.clone(), (at_micros, self.rows.clone()));
                self.shipped_micros = self.shipped_micros.max(at_micros);
                format!("back up {name}")
            }
            84..88 => {
                self.node().ship_log(&self.place.destination()).unwrap();
                self.shipped_micros = self.now();
                "ship the log".to_owned()
            }
            88..90 => {
                let Some(name) = self.some_backup(random) else {
                    return String::new();
                };
                let destination = self.place.destination();
                delete(&self.place.env, &destination, std::slice::from_ref(&name), false).unwrap();
                self.backups.remove(&name);
                assert_eq!(verify_all(&self.place.env, &destination).findings, []);
                format!("delete {name}")
            }
            90..95 => {
                let Some(name) = self.some_backup(random) else {
                    return String::new();
                };
                self.check(of(&name), &self.backups[&name].1.clone());
                format!("restore {name}")
            }
            _ => {
                let oldest = self.backups.values().map(|(at_micros, _)| *at_micros).min();
                let is_known = |micros: i64| {
                    oldest.is_some_and(|oldest| micros >= oldest) && micros <= self.shipped_micros
                };
                let known: Vec<_> = self
                    .moments
                    .iter()
                    .filter(|(micros, _)| is_known(*micros))
                    .collect();
                if known.is_empty() {
                    return String::new();
                }
                let (micros, rows) = known[random.below(known.len() as u64) as usize].clone();
                self.check(Until::Time(micros), &rows);
                format!("restore to {micros}")
            }
        }
    }

    fn some_backup(&self, random: &mut Seeded) -> Option<String> {
        let names: Vec<&String> = self.backups.keys().collect();
        let chosen = (!names.is_empty()).then(|| random.below(names.len() as u64));
        chosen.map(|index| names[index as usize].clone())
    }

    fn check(&self, until: Until, expected: &Rows) {
        let target = self.place.path("restored");
        let rows = restored_rows(&self.place.env, &self.place.destination(), until, &target);
        assert_eq!(rows.unwrap(), *expected);
    }

    /// A time between what was done and what will be.
    fn now(&self) -> i64 {
        let env = &self.place.env;
        let moment = env.now_micros().max(env.last_unique_micros());
        while env.now_micros() <= moment {
            std::hint::spin_loop();
        }
        moment
    }
}

#[test]
fn what_is_restored_is_what_was_there_at_that_moment() {
    let variable = |name: &str| std::env::var(name).ok().and_then(|value| value.parse().ok());
    let seed = variable("BACKUP_SEED").unwrap_or(SEED);
    let steps = variable("BACKUP_STEPS").unwrap_or(STEPS);
    eprintln!("seed {seed}, {steps} steps");
    let mut random = Seeded::new(seed);
    let place = TestDirectory::new();
    let node = Node::open_archiving(&place.env, &place.path("node")).with_table();
    let mut world = World {
        place,
        node: Some(node),
        rows: Rows::new(),
        backups: BTreeMap::new(),
        moments: Vec::new(),
        shipped_micros: 0,
        number: 0,
    };
    for step in 0..steps {
        let done = world.step(&mut random);
        eprintln!("{step} {done}");
        let moment = world.now();
        world.moments.push((moment, world.rows.clone()));
    }
    assert_eq!(world.node().rows(), world.rows);
    world.node.take().unwrap().close();
}
