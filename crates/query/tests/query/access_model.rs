//! Random roles, grants, drops, masks and statements, against a reference that is as simple as it gets: sets of names, searched anew
//! for each statement. Resources are tables, functions and roles. Prints its seed; `SEED=n` runs another one.

use std::collections::{BTreeMap, BTreeSet};

use ilion_env::Seeded;
use ilion_query::Identity;

use crate::engine::EngineDisk;
use crate::session::Session;

const ROLES: [&str; 5] = ["r0", "r1", "r2", "r3", "r4"];
const TABLES: [&str; 3] = ["t0", "t1", "t2"];
const FUNCTION: &str = "FUNCTION ks.f(int)";
const OF_DATA: [&str; 7] = [
    "CREATE",
    "SELECT",
    "MODIFY",
    "ALTER",
    "DROP",
    "UNMASK",
    "SELECT_MASKED",
];
const OF_FUNCTIONS: [&str; 2] = ["EXECUTE", "DROP"];
const OF_ROLES: [&str; 3] = ["ALTER", "DROP", "AUTHORIZE"];
/// What the creator of a table gets on it.
const OF_CREATOR: [&str; 6] = ["SELECT", "MODIFY", "ALTER", "DROP", "UNMASK", "SELECT_MASKED"];
const STEPS: u32 = 2000;

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
    /// Tables whose column `v` has a mask.
    masked: BTreeSet<String>,
    has_function: bool,
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

    /// Whether a role has a permission on one of these resources.
    fn may(&self, role: &str, permission: &str, resources: &[String]) -> bool {
        self.roles.contains_key(role)
            && self.roles_of(role).iter().any(|owner| {
                let has = |resource: &String| {
                    let grant = (owner.clone(), permission.to_owned(), resource.clone());
                    self.grants.contains(&grant)
                };
                self.superusers.contains(owner) || resources.iter().any(has)
            })
    }

    fn is_super(&self, role: &str) -> bool {
        self.may(role, "", &[])
    }

    /// Whether a role may do to another what needs this permission on it and is not done to superusers.
    fn may_to_role(&self, role: &str, permission: &str, other: &str) -> bool {
        self.may(
            role,
            permission,
            &[format!("ROLE {other}"), "ALL ROLES".to_owned()],
        ) && (self.is_super(role) || !self.is_super(other))
    }

    fn has(&self, resource: &str) -> bool {
        match resource.split_once(' ') {
            Some(("ROLE", role)) => self.roles.contains_key(role),
            _ if resource == FUNCTION => self.has_function,
            _ => resource
                .strip_prefix("ks.")
                .is_none_or(|table| self.tables.contains(table)),
        }
    }

    fn drop_resource(&mut self, resource: &str) {
        self.grants.retain(|(_, _, granted_on)| granted_on != resource);
    }

    fn drop_role(&mut self, role: &str) {
        self.roles.remove(role);
        self.superusers.remove(role);
        for members in self.roles.values_mut() {
            members.remove(role);
        }
        self.grants.retain(|(owner, ..)| owner != role);
        self.drop_resource(&format!("ROLE {role}"));
    }
}

/// The resources that contain a table, itself first.
fn of_table(table: &str) -> Vec<String> {
    let own = format!("ks.{table}");
    [own].into_iter().chain(of_all_tables()).collect()
}

fn of_all_tables() -> Vec<String> {
    ["ALL TABLES IN KEYSPACE ks", "KEYSPACE ks", "ALL KEYSPACES"]
        .map(str::to_owned)
        .to_vec()
}

fn of_function() -> Vec<String> {
    [FUNCTION, "ALL FUNCTIONS IN KEYSPACE ks", "ALL FUNCTIONS"]
        .map(str::to_owned)
        .to_vec()
}

struct Trial {
    random: Random,
    model: Model,
    session: Session,
    root: Identity,
    /// Sessions that were opened while their role was there; they stay open.
    logins: BTreeMap<String, Identity>,
    /// Reads that saw what is stored, and those that saw masks.
    reads: [u32; 2],
}

impl Trial {
    fn as_root(&mut self, statement: &str) -> String {
        self.session.set_identity(self.root.clone());
        self.session.query(statement)
    }

    /// A permission and a resource that it applies to.
    fn grantable(&mut self) -> (&'static str, String) {
        match self.random.below(12) {
            0 => (self.random.of(&OF_DATA), "ALL KEYSPACES".to_owned()),
            1 => (self.random.of(&OF_DATA), "KEYSPACE ks".to_owned()),
            2 => (self.random.of(&OF_DATA), "ALL TABLES IN KEYSPACE ks".to_owned()),
            3 | 4 => (self.random.of(&OF_FUNCTIONS), FUNCTION.to_owned()),
            5 => {
                let all = self.random.of(&["ALL FUNCTIONS", "ALL FUNCTIONS IN KEYSPACE ks"]);
                (self.random.of(&OF_FUNCTIONS), all.to_owned())
            }
            6 => (self.random.of(&OF_ROLES), "ALL ROLES".to_owned()),
            7 | 8 => (
                self.random.of(&OF_ROLES),
                format!("ROLE {}", self.random.of(&ROLES)),
            ),
            _ => (
                self.random.of(&OF_CREATOR),
                format!("ks.{}", self.random.of(&TABLES)),
            ),
        }
    }

    fn change(&mut self) {
        let role = self.random.of(&ROLES).to_owned();
        let other = self.random.of(&ROLES).to_owned();
        let table = self.random.of(&TABLES).to_owned();
        let model = &self.model;
        let (has_role, has_other) = (model.roles.contains_key(&role), model.roles.contains_key(&other));
        match self.random.below(20) {
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
                self.model.drop_role(&role);
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
            5..=7 | 15.. => {
                let (permission, resource) = self.grantable();
                let is_there = self.model.has(&resource);
                let is_grant = self.random.below(4) > 0;
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
                let said = self.as_root(&create_table(&table));
                assert_eq!(
                    said.starts_with("error"),
                    !self.model.tables.insert(table.clone()),
                    "{said}"
                );
                self.fill(&table);
            }
            9 if self.random.below(3) == 0 => {
                self.as_root(&format!("DROP TABLE IF EXISTS ks.{table}"));
                self.model.tables.remove(&table);
                self.model.masked.remove(&table);
                self.model.drop_resource(&format!("ks.{table}"));
            }
            10 => {
                self.as_root(
                    "CREATE OR REPLACE FUNCTION ks.f (a int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return a'",
                );
                self.model.has_function = true;
            }
            11 if self.random.below(3) == 0 => {
                self.as_root("DROP FUNCTION IF EXISTS ks.f");
                self.model.has_function = false;
                self.model.drop_resource(FUNCTION);
            }
            _ if self.model.tables.contains(&table) => {
                let is_masked = self.random.below(5) > 0;
                let mask = if is_masked {
                    "MASKED WITH DEFAULT"
                } else {
                    "DROP MASKED"
                };
                let said = self.as_root(&format!("ALTER TABLE ks.{table} ALTER v {mask}"));
                assert!(!said.starts_with("error"), "{said}");
                match is_masked {
                    true => self.model.masked.insert(table),
                    false => self.model.masked.remove(&table),
                };
            }
            _ => {}
        }
    }

    /// Writes the row that statements read.
    fn fill(&mut self, table: &str) {
        let said = self.as_root(&format!("INSERT INTO ks.{table} (k, v) VALUES (2, 7)"));
        assert!(!said.starts_with("error"), "{said}");
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
        let login = login.clone();
        match self.random.below(11) {
            0..=7 => self.try_on_table(&role, login),
            8 => self.try_create(&role, login),
            _ => self.try_on_role(&role, login),
        }
    }

    /// Executes a statement; returns its answer, or `None` if it was not permitted, as the model must say.
    fn try_as(&mut self, login: Identity, statement: &str, is_allowed: bool) -> Option<String> {
        let role = login.role().unwrap_or_default().to_owned();
        self.session.set_identity(login);
        let said = self.session.query(statement);
        let is_refused = said.starts_with("error Unauthorized");
        assert_eq!(!is_refused, is_allowed, "{role}: {statement}: {said}");
        (!is_refused).then_some(said)
    }

    fn try_on_table(&mut self, role: &str, login: Identity) {
        let table = self.random.of(&TABLES);
        if !self.model.tables.contains(table) {
            return;
        }
        let may = |permission: &str| self.model.may(role, permission, &of_table(table));
        let is_masked = self.model.masked.contains(table) && !may("UNMASK");
        let may_execute = self.model.may(role, "EXECUTE", &of_function());
        let (is_allowed, statement): (bool, String) = match self.random.below(8) {
            0 => (may("SELECT"), format!("SELECT v FROM ks.{table} WHERE k = 2")),
            1 => (
                may("MODIFY"),
                format!("INSERT INTO ks.{table} (k, v) VALUES (1, 1)"),
            ),
            2 => (
                may("MODIFY") && may("SELECT"),
                format!("UPDATE ks.{table} SET v = 1 WHERE k = 1 IF EXISTS"),
            ),
            3 => (may("ALTER"), format!("ALTER TABLE ks.{table} WITH comment = 'x'")),
            4 => (
                may("MODIFY"),
                format!("BEGIN BATCH DELETE FROM ks.{table} WHERE k = 1; APPLY BATCH"),
            ),
            5 if self.model.has_function => (
                may("SELECT") && may_execute,
                format!("SELECT ks.f(v) FROM ks.{table} WHERE k = 2"),
            ),
            6 => (
                may("SELECT") && (!is_masked || may("SELECT_MASKED")),
                format!("SELECT v FROM ks.{table} WHERE k = 2 AND v = 7 ALLOW FILTERING"),
            ),
            _ => (may("SELECT"), format!("SELECT v AS x FROM ks.{table}")),
        };
        let Some(said) = self.try_as(login, &statement, is_allowed) else {
            return;
        };
        assert!(!said.starts_with("error"), "{statement}: {said}");
        if statement.starts_with("SELECT") {
            let (seen, hidden) = if is_masked { ('0', '7') } else { ('7', '0') };
            self.reads[usize::from(is_masked)] += 1;
            assert!(
                said.contains(seen) && !said.contains(hidden),
                "{role}: {statement}: {said}"
            );
        }
    }

    /// CREATE TABLE by a role, which gets all permissions on it; or DROP FUNCTION.
    fn try_create(&mut self, role: &str, login: Identity) {
        let table = self.random.of(&TABLES);
        if self.random.below(2) == 0 {
            let is_allowed = self.model.may(role, "DROP", &of_function());
            if self.model.has_function
                && self
                    .try_as(login, "DROP FUNCTION ks.f(int)", is_allowed)
                    .is_some()
            {
                self.model.has_function = false;
                self.model.drop_resource(FUNCTION);
            }
            return;
        }
        let is_allowed = self.model.may(role, "CREATE", &of_all_tables());
        let is_new = !self.model.tables.contains(table);
        let said = self.try_as(login, &create_table(table), is_allowed);
        if said.is_some() && is_new {
            self.model.tables.insert(table.to_owned());
            for permission in OF_CREATOR {
                let grant = (role.to_owned(), permission.to_owned(), format!("ks.{table}"));
                self.model.grants.insert(grant);
            }
            self.fill(table);
        }
    }

    /// What a role does to another one.
    fn try_on_role(&mut self, role: &str, login: Identity) {
        let other = self.random.of(&ROLES);
        // A role may change its own password, and drop itself never.
        if other == role || !self.model.roles.contains_key(other) {
            return;
        }
        match self.random.below(4) {
            0 => {
                let is_allowed = self.model.may_to_role(role, "DROP", other);
                if self
                    .try_as(login, &format!("DROP ROLE {other}"), is_allowed)
                    .is_some()
                {
                    self.model.drop_role(other);
                }
            }
            1 => {
                let to = self.random.of(&ROLES);
                if !self.model.roles.contains_key(to)
                    || self.model.roles_of(to).contains(other)
                    || self.model.roles_of(other).contains(to)
                {
                    return;
                }
                let is_allowed = self.model.may_to_role(role, "AUTHORIZE", other);
                if self
                    .try_as(login, &format!("GRANT {other} TO {to}"), is_allowed)
                    .is_some()
                {
                    self.model.roles.get_mut(other).unwrap().insert(to.to_owned());
                }
            }
            _ => {
                let is_allowed = self.model.may_to_role(role, "ALTER", other);
                self.try_as(
                    login,
                    &format!("ALTER ROLE {other} WITH PASSWORD = '{other}'"),
                    is_allowed,
                );
            }
        }
    }
}

fn create_table(table: &str) -> String {
    format!("CREATE TABLE ks.{table} (k int PRIMARY KEY, v int)")
}

#[test]
fn permissions_are_those_of_the_model() {
    let seed = std::env::var("SEED").ok().and_then(|seed| seed.parse().ok());
    let seed = seed.unwrap_or(20_261_124);
    println!("SEED={seed}");
    let mut disk = EngineDisk::new();
    let mut session = Session::over(disk.open());
    session.enable_masking();
    session.require_login();
    let root = session.identity();
    let mut trial = Trial {
        random: Random(Seeded::new(seed)),
        model: Model::default(),
        session,
        root,
        logins: BTreeMap::new(),
        reads: [0; 2],
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
    assert!(trial.reads.iter().all(|count| *count > 0), "{:?}", trial.reads);
}
