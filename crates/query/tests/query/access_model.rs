//! Random roles, grants, drops and statements, against a reference that is as simple as it gets: sets of names, searched anew
//! for each statement. Prints its seed; `SEED=n` runs another one.

use std::collections::{BTreeMap, BTreeSet};

use ilion_env::Seeded;
use ilion_query::Identity;

use crate::engine::EngineDisk;
use crate::session::Session;

const ROLES: [&str; 5] = ["r0", "r1", "r2", "r3", "r4"];
const TABLES: [&str; 3] = ["t0", "t1", "t2"];
const PERMISSIONS: [&str; 4] = ["SELECT", "MODIFY", "ALTER", "DROP"];
const STEPS: u32 = 1500;

/// The random choices of a seed.
struct Random(Seeded);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.0.below(bound as u64)).unwrap()
    }

    fn of<'a>(&mut self, items: &[&'a str]) -> &'a str {
        items[self.below(items.len())]
    }
}

/// What the statements have made so far.
#[derive(Default)]
struct Model {
    /// The members of each role that exists.
    roles: BTreeMap<String, BTreeSet<String>>,
    superusers: BTreeSet<String>,
    tables: BTreeSet<String>,
    /// Role, permission, resource.
    grants: BTreeSet<(String, String, String)>,
}

impl Model {
    /// All roles that a role has, itself among them.
    fn roles_of(&self, role: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::from([role.to_owned()]);
        loop {
            let more: BTreeSet<String> = self
                .roles
                .iter()
                .filter(|(_, members)| members.iter().any(|member| found.contains(member)))
                .map(|(name, _)| name.clone())
                .collect();
            let before = found.len();
            found.extend(more);
            if found.len() == before {
                return found;
            }
        }
    }

    fn may(&self, role: &str, permission: &str, table: &str) -> bool {
        if !self.roles.contains_key(role) {
            return false;
        }
        let resources = [
            format!("ks.{table}"),
            "ALL TABLES IN KEYSPACE ks".into(),
            "KEYSPACE ks".into(),
            "ALL KEYSPACES".into(),
        ];
        self.roles_of(role).iter().any(|owner| {
            self.superusers.contains(owner)
                || resources.iter().any(|resource| {
                    let grant = (owner.clone(), permission.to_owned(), resource.clone());
                    self.grants.contains(&grant)
                })
        })
    }
}

struct Trial {
    random: Random,
    model: Model,
    session: Session,
    root: Identity,
    /// Sessions that were opened while their role was there; they stay open.
    logins: BTreeMap<String, Identity>,
}

impl Trial {
    fn as_root(&mut self, statement: &str) -> String {
        self.session.set_identity(self.root.clone());
        self.session.query(statement)
    }

    fn resource(&mut self) -> String {
        match self.random.below(6) {
            0 => "ALL KEYSPACES".to_owned(),
            1 => "KEYSPACE ks".to_owned(),
            2 => "ALL TABLES IN KEYSPACE ks".to_owned(),
            _ => format!("ks.{}", self.random.of(&TABLES)),
        }
    }

    fn change(&mut self) {
        let role = self.random.of(&ROLES).to_owned();
        let other = self.random.of(&ROLES).to_owned();
        let table = self.random.of(&TABLES).to_owned();
        let model = &self.model;
        let (has_role, has_other) = (model.roles.contains_key(&role), model.roles.contains_key(&other));
        match self.random.below(10) {
            0 | 1 => {
                let is_super = self.random.below(10) == 0;
                let said = self.as_root(&format!(
                    "CREATE ROLE {role} WITH PASSWORD = '{role}' AND LOGIN = true AND SUPERUSER = {is_super}"
                ));
                assert_eq!(said == "ok\n", !has_role, "{said}");
                if !has_role {
                    self.model.roles.insert(role.clone(), BTreeSet::new());
                    if is_super {
                        self.model.superusers.insert(role);
                    }
                }
            }
            2 if self.random.below(3) == 0 => {
                let said = self.as_root(&format!("DROP ROLE {role}"));
                assert_eq!(said == "ok\n", has_role, "{said}");
                self.model.roles.remove(&role);
                self.model.superusers.remove(&role);
                for members in self.model.roles.values_mut() {
                    members.remove(&role);
                }
                self.model.grants.retain(|(owner, ..)| *owner != role);
            }
            3 => {
                let said = self.as_root(&format!("GRANT {role} TO {other}"));
                let is_known = self.model.roles_of(&other).contains(&role)
                    || self.model.roles_of(&role).contains(&other);
                assert_eq!(
                    said == "ok\n",
                    has_role && has_other && !is_known,
                    "{role} to {other}: {said}"
                );
                if said == "ok\n" {
                    self.model.roles.get_mut(&role).unwrap().insert(other);
                }
            }
            4 => {
                let said = self.as_root(&format!("REVOKE {role} FROM {other}"));
                let members = self.model.roles.get_mut(&role);
                let was_member = has_other && members.is_some_and(|members| members.remove(&other));
                assert_eq!(said == "ok\n", was_member, "{said}");
            }
            5..=7 => {
                let (permission, resource) = (self.random.of(&PERMISSIONS), self.resource());
                let is_there = resource
                    .strip_prefix("ks.")
                    .is_none_or(|table| self.model.tables.contains(table));
                let is_grant = self.random.below(3) > 0;
                let said = self.as_root(&match is_grant {
                    true => format!("GRANT {permission} ON {resource} TO {role}"),
                    false => format!("REVOKE {permission} ON {resource} FROM {role}"),
                });
                assert_eq!(!said.starts_with("error"), has_role && is_there, "{said}");
                let grant = (role, permission.to_owned(), resource);
                if !said.starts_with("error") {
                    match is_grant {
                        true => self.model.grants.insert(grant),
                        false => self.model.grants.remove(&grant),
                    };
                }
            }
            8 => {
                self.as_root(&format!(
                    "CREATE TABLE IF NOT EXISTS ks.{table} (k int PRIMARY KEY, v int)"
                ));
                self.model.tables.insert(table);
            }
            _ => {
                self.as_root(&format!("DROP TABLE IF EXISTS ks.{table}"));
                self.model.tables.remove(&table);
                let resource = format!("ks.{table}");
                self.model
                    .grants
                    .retain(|(_, _, granted_on)| *granted_on != resource);
            }
        }
    }

    /// A statement by a role, maybe in a session that is older than the role's last changes.
    fn try_statement(&mut self) {
        let role = self.random.of(&ROLES).to_owned();
        if self.model.roles.contains_key(&role) && !self.logins.contains_key(&role) {
            assert_eq!(self.session.log_in(&role), "");
            self.logins.insert(role.clone(), self.session.identity());
        }
        let Some(login) = self.logins.get(&role) else {
            return;
        };
        self.session.set_identity(login.clone());
        let table = self.random.of(&TABLES);
        if !self.model.tables.contains(table) {
            return;
        }
        let (needs, statement): (&[&str], String) = match self.random.below(5) {
            0 => (&["SELECT"], format!("SELECT * FROM ks.{table} WHERE k = 1")),
            1 => (
                &["MODIFY"],
                format!("INSERT INTO ks.{table} (k, v) VALUES (1, 1)"),
            ),
            2 => (
                &["MODIFY", "SELECT"],
                format!("UPDATE ks.{table} SET v = 1 WHERE k = 1 IF EXISTS"),
            ),
            3 => (&["ALTER"], format!("ALTER TABLE ks.{table} WITH comment = 'x'")),
            _ => (
                &["MODIFY"],
                format!("BEGIN BATCH DELETE FROM ks.{table} WHERE k = 1; APPLY BATCH"),
            ),
        };
        let is_allowed = needs.iter().all(|need| self.model.may(&role, need, table));
        let said = self.session.query(&statement);
        assert_eq!(
            !said.starts_with("error Unauthorized"),
            is_allowed,
            "{role}: {statement}: {said}"
        );
        assert!(
            said.starts_with("error Unauthorized") || !said.starts_with("error"),
            "{said}"
        );
    }
}

#[test]
fn permissions_are_those_of_the_model() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(20_261_124);
    println!("SEED={seed}");
    let mut disk = EngineDisk::new();
    let mut session = Session::over(disk.open());
    session.require_login();
    let root = session.identity();
    let mut trial = Trial {
        random: Random(Seeded::new(seed)),
        model: Model::default(),
        session,
        root,
        logins: BTreeMap::new(),
    };
    let made = trial.as_root(
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
    );
    assert!(!made.starts_with("error"), "{made}");
    // The creator's own grants are of a superuser and change no answer.
    for step in 0..STEPS {
        match step % 3 {
            0 => trial.change(),
            _ => trial.try_statement(),
        }
        if step % 500 == 499 {
            trial.logins.clear();
            trial.session.set_identity(Identity::Internal);
            trial.root = Identity::Internal;
            trial.session.reconnect(|| disk.reopen());
            trial.session.require_login();
            trial.root = trial.session.identity();
        }
    }
}
