//! The directives of the test files.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use datadriven::TestCase;
use ilion_query::{
    AccessOptions, Authenticator, Authorizer, BatchKind, BatchStatement, CidrAuthorizer, ClientState,
    Consistency, DiskUsage, Error, ExecuteOptions, Executed, FirstSuperuser, Guardrails, Identity,
    NetworkAuthorizer, Outcome, Prepared, QueryOptions, QueryProcessor, Store, Values,
};
use ilion_rows::{ClusteringFilter, KeyRange, TombstoneLimits};

use crate::print::{self, Types};
use crate::store::TestStore;
use crate::values::parse_values;

/// Resources, and the permissions that can be granted on them.
const GRANTABLE: [(&str, &str); 10] = [
    ("ALL KEYSPACES", "CREATE ALTER DROP SELECT MODIFY AUTHORIZE"),
    ("KEYSPACE ks", "CREATE ALTER DROP SELECT MODIFY AUTHORIZE"),
    (
        "ALL TABLES IN KEYSPACE ks",
        "CREATE ALTER DROP SELECT MODIFY AUTHORIZE",
    ),
    ("TABLE ks.t", "ALTER DROP SELECT MODIFY AUTHORIZE"),
    ("TABLE ks.other", "ALTER DROP SELECT MODIFY AUTHORIZE"),
    ("ALL FUNCTIONS", "CREATE ALTER DROP AUTHORIZE EXECUTE"),
    (
        "ALL FUNCTIONS IN KEYSPACE ks",
        "CREATE ALTER DROP AUTHORIZE EXECUTE",
    ),
    ("FUNCTION ks.f(int)", "ALTER DROP AUTHORIZE EXECUTE"),
    ("ALL ROLES", "CREATE ALTER DROP AUTHORIZE DESCRIBE"),
    ("ROLE other", "ALTER DROP AUTHORIZE"),
];

/// A client and its server.
pub struct Session {
    store: Arc<TestStore>,
    processor: QueryProcessor,
    options: QueryOptions,
    client: ClientState,
    network_authorizer: NetworkAuthorizer,
    cidr_authorizer: CidrAuthorizer,
    address: IpAddr,
    prepared: HashMap<String, Arc<Prepared>>,
}

impl Session {
    pub fn in_memory() -> Self {
        Self::over(TestStore::in_memory())
    }

    pub fn over(store: Arc<TestStore>) -> Self {
        Self {
            processor: QueryProcessor::new(store.clone(), QueryOptions::default()),
            store,
            options: QueryOptions::default(),
            client: ClientState::default(),
            network_authorizer: NetworkAuthorizer::AllowAll,
            cidr_authorizer: CidrAuthorizer::AllowAll,
            address: IpAddr::from([127, 0, 0, 1]),
            prepared: HashMap::new(),
        }
    }

    /// True if state is in use that only this process has.
    pub fn has_prepared(&self) -> bool {
        !self.prepared.is_empty()
    }

    /// Continues with another server; the old one is closed before `open` is called.
    pub fn reconnect(&mut self, open: impl FnOnce() -> Arc<TestStore>) {
        self.store = TestStore::in_memory();
        self.processor = QueryProcessor::new(self.store.clone(), QueryOptions::default());
        self.store = open();
        self.processor = QueryProcessor::new(self.store.clone(), self.options.clone());
        if let Some(role) = self.client.identity.role().map(str::to_owned) {
            self.log_in(&role);
        }
    }

    /// Masks apply from now on.
    pub fn enable_masking(&mut self) {
        self.options.dynamic_data_masking_enabled = true;
        self.processor = QueryProcessor::new(self.store.clone(), self.options.clone());
    }

    /// Continues with logins and permissions, and with the superuser `cassandra`.
    pub fn require_login(&mut self) -> String {
        self.options.access = AccessOptions {
            authenticator: Authenticator::Password,
            authorizer: Authorizer::Cassandra,
            network_authorizer: self.network_authorizer,
            cidr_authorizer: self.cidr_authorizer,
            bcrypt_cost: 4,
            ..AccessOptions::default()
        };
        self.processor = QueryProcessor::new(self.store.clone(), self.options.clone());
        let access = self.processor.access();
        if access.needs_superuser().unwrap() {
            let first = FirstSuperuser {
                role: "cassandra".to_owned(),
                password: "cassandra".to_owned(),
            };
            access.create_superuser(&first).unwrap();
        }
        self.log_in("cassandra")
    }

    pub fn identity(&self) -> Identity {
        self.client.identity.clone()
    }

    pub fn set_identity(&mut self, identity: Identity) {
        self.client.identity = identity;
    }

    /// Continues as a role, whose password is its name; prints why it cannot.
    pub fn log_in(&mut self, role: &str) -> String {
        match self.processor.access().log_in(role, role, self.address) {
            Ok(login) => {
                self.client.identity = Identity::User(login);
                String::new()
            }
            Err(refused) => print::error(&refused),
        }
    }

    /// For each statement: the single grants with which the logged-in superuser lets `bob` execute it.
    fn sufficient_grants(&mut self, input: &str) -> String {
        let mut out = String::new();
        self.log_in("bob");
        let bob = self.client.identity.clone();
        self.log_in("cassandra");
        let superuser = self.client.identity.clone();
        for statement in input.lines() {
            out += &format!("{statement}\n");
            self.client.identity = bob.clone();
            let refused = self.query(statement);
            assert!(
                refused.starts_with("error Unauthorized"),
                "{statement}: {refused}"
            );
            out += &format!("    none: {refused}");
            for (resource, permissions) in GRANTABLE {
                let mut sufficient = Vec::new();
                for permission in permissions.split_whitespace() {
                    self.client.identity = superuser.clone();
                    self.script(&format!("GRANT {permission} ON {resource} TO bob"));
                    self.client.identity = bob.clone();
                    let answer = self.query(statement);
                    self.client.identity = superuser.clone();
                    self.script(&format!("REVOKE {permission} ON {resource} FROM bob"));
                    if !answer.starts_with("error Unauthorized") {
                        assert!(!answer.starts_with("error"), "{statement}: {answer}");
                        sufficient.push(permission);
                    }
                }
                if !sufficient.is_empty() {
                    out += &format!("    {} ON {resource}\n", sufficient.join(", "));
                }
            }
        }
        out
    }

    /// Continues with other guardrails.
    pub fn limit(&mut self, guardrails: Guardrails) {
        self.options.guardrails = guardrails;
        self.processor = QueryProcessor::new(self.store.clone(), self.options.clone());
    }

    /// Continues with other limits for tombstones of a read.
    pub fn limit_tombstones(&mut self, limits: TombstoneLimits) {
        self.options.tombstone_limits = limits;
        self.processor = QueryProcessor::new(self.store.clone(), self.options.clone());
    }

    /// Continues with other timeouts of a SELECT.
    pub fn limit_time(&mut self, of_partitions: Option<Duration>, of_ranges: Option<Duration>) {
        self.options.read_timeout = of_partitions;
        self.options.range_timeout = of_ranges;
        self.processor = QueryProcessor::new(self.store.clone(), self.options.clone());
    }

    /// The node stops.
    pub fn end_long_reads(&self) {
        self.processor.end_long_reads();
    }

    /// Controls how full the disk is.
    pub fn disk_usage(&mut self) -> Arc<DiskUsage> {
        self.processor = QueryProcessor::new(self.store.clone(), self.options.clone());
        self.options.disk_usage.clone()
    }

    /// Sets the compaction of tables that do not give one.
    pub fn default_compaction(&mut self, class: &str) {
        self.options.default_compaction = Some([("class".to_owned(), class.to_owned())].into());
        self.processor = QueryProcessor::new(self.store.clone(), self.options.clone());
    }

    /// Executes a script; none of its statements may fail.
    pub fn script(&mut self, script: &str) {
        let answer = self.cql(script, &ExecuteOptions::default(), Types::Hidden);
        assert!(!answer.contains("error"), "{answer}");
    }

    /// Executes a statement and prints its answer.
    pub fn query(&mut self, statement: &str) -> String {
        let result = self
            .processor
            .query(&mut self.client, statement, &ExecuteOptions::default());
        print::answer(&result, Types::Hidden)
    }

    /// Executes a statement.
    pub fn execute_with(&mut self, statement: &str, options: &ExecuteOptions) -> Result<Executed, Error> {
        self.processor.query(&mut self.client, statement, options)
    }

    pub fn advance_secs(&self, secs: u64) {
        self.store.advance_secs(secs);
    }

    pub fn run(&mut self, case: &mut TestCase) -> String {
        let types = if case.take_flag("types").unwrap() {
            Types::Shown
        } else {
            Types::Hidden
        };
        let input = case.input.clone();
        let output = match case.directive.as_str() {
            "cql" => self.cql(&input, &options(case), types),
            "values" => self.values(&input, &options(case), types),
            "prepare" => self.prepare(&input, case),
            "execute" => self.execute(&input, case, types),
            "page" => self.page(input.trim(), case, types),
            "batch" => self.batch(&input, case),
            "clock" => {
                self.advance_secs(case.take_arg("secs").unwrap());
                String::new()
            }
            "options" => self.set_options(case),
            "access" => {
                if case.take_flag("network").unwrap() {
                    self.network_authorizer = NetworkAuthorizer::Cassandra;
                }
                if case.take_flag("cidrs").unwrap() {
                    self.cidr_authorizer = CidrAuthorizer::Enforce;
                }
                self.require_login()
            }
            "as" => {
                // From this address.
                if !input.is_empty() {
                    self.address = input.trim().parse().unwrap();
                }
                self.log_in(&case.take_arg::<String>("role").unwrap())
            }
            "anonymous" => {
                self.client.identity = Identity::Anonymous;
                String::new()
            }
            "grants" => self.sufficient_grants(&input),
            "dump" => self.dump(&case.take_arg::<String>("table").unwrap()),
            other => panic!("unknown directive {other}"),
        };
        case.expect_empty().unwrap();
        output
    }

    fn cql(&mut self, script: &str, options: &ExecuteOptions, types: Types) -> String {
        let statements = ilion_cql::split_statements(script);
        let last = statements.len().saturating_sub(1);
        let mut out = String::new();
        for (index, statement) in statements.into_iter().enumerate() {
            let result = self.processor.query(&mut self.client, statement, options);
            self.processor.wait_for_views();
            self.store.wait_built();
            let answer = print::answer(&result, types);
            if index == last || answer != "ok\n" {
                out += &answer;
            }
        }
        out
    }

    fn values(&mut self, input: &str, options: &ExecuteOptions, types: Types) -> String {
        let (statement, lines) = input.split_once('\n').unwrap_or((input, ""));
        let variables = self
            .processor
            .prepare(&self.client, statement, None)
            .map(|prepared| prepared.variables.clone())
            .unwrap_or_default();
        let mut out = String::new();
        for line in lines_or_one_empty(lines) {
            let options = ExecuteOptions {
                values: parse_values(line, &variables),
                ..options.clone()
            };
            let result = self.processor.query(&mut self.client, statement, &options);
            out += &print::answer(&result, types);
        }
        out
    }

    fn prepare(&mut self, statement: &str, case: &mut TestCase) -> String {
        let name: String = case.take_arg("name").unwrap();
        let keyspace: Option<String> = case.try_take_arg("keyspace").unwrap();
        let statement = statement.trim_end();
        match self
            .processor
            .prepare(&self.client, statement, keyspace.as_deref())
        {
            Ok(prepared) => {
                assert_eq!(
                    self.processor.prepared(&prepared.id).map(|known| known.id),
                    Some(prepared.id)
                );
                let out = print::prepared(&prepared);
                self.prepared.insert(name, prepared);
                out
            }
            Err(refused) => print::error(&refused),
        }
    }

    fn execute(&mut self, lines: &str, case: &mut TestCase, types: Types) -> String {
        let prepared = self.named(&case.take_arg::<String>("name").unwrap());
        let options = options(case);
        let mut out = String::new();
        for line in lines_or_one_empty(lines) {
            let options = ExecuteOptions {
                values: parse_values(line, &prepared.variables),
                ..options.clone()
            };
            let result = self.processor.execute(&mut self.client, &prepared, &options);
            out += &print::answer(&result, types);
        }
        out
    }

    fn named(&self, name: &str) -> Arc<Prepared> {
        self.prepared
            .get(name)
            .unwrap_or_else(|| panic!("nothing is prepared as {name}"))
            .clone()
    }

    fn page(&mut self, statement: &str, case: &mut TestCase, types: Types) -> String {
        let mut options = ExecuteOptions {
            page_size: Some(case.take_arg("size").unwrap()),
            ..options(case)
        };
        let mut out = String::new();
        loop {
            let result = self.processor.query(&mut self.client, statement, &options);
            let rows = match &result {
                Ok(executed) => match &executed.outcome {
                    Outcome::Rows(rows) => rows,
                    _ => return out + &print::answer(&result, types),
                },
                Err(_) => return out + &print::answer(&result, types),
            };
            if out.is_empty() {
                out += &print::header(&rows.columns, types);
            }
            out += &print::body(rows);
            match &rows.paging_state {
                None => return out + "(end)\n",
                Some(state) => {
                    out += "(page)\n";
                    options.paging_state = Some(state.clone().into());
                }
            }
        }
    }

    fn batch(&mut self, lines: &str, case: &mut TestCase) -> String {
        let kind = match case.take_arg::<String>("kind").unwrap().as_str() {
            "logged" => BatchKind::Logged,
            "unlogged" => BatchKind::Unlogged,
            "counter" => BatchKind::Counter,
            other => panic!("unknown kind {other}"),
        };
        let members = lines
            .lines()
            .map(|line| {
                let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
                if name == "cql" {
                    return (BatchStatement::Text(rest.to_owned()), Values::None);
                }
                let prepared = self.named(name);
                let values = parse_values(rest, &prepared.variables);
                (BatchStatement::Prepared(prepared), values)
            })
            .collect();
        let result = self
            .processor
            .batch(&mut self.client, kind, members, &options(case));
        print::answer(&result, Types::Hidden)
    }

    fn set_options(&mut self, case: &mut TestCase) -> String {
        let mut options = QueryOptions::default();
        if let Some(limit) = case.try_take_arg("batch_warn").unwrap() {
            options.batch_size_warn_bytes = limit;
        }
        if let Some(limit) = case.try_take_arg("batch_fail").unwrap() {
            options.batch_size_fail_bytes = limit;
        }
        if let Some(limit) = case.try_take_arg("in_partitions").unwrap() {
            options.in_partitions_max = limit;
        }
        if let Some(limit) = case.try_take_arg("in_slices").unwrap() {
            options.in_slices_max = limit;
        }
        if let Some(limit) = case.try_take_arg("page_bytes").unwrap() {
            options.page_bytes_max = limit;
        }
        if let Some(is_enabled) = case.try_take_arg("masking").unwrap() {
            options.dynamic_data_masking_enabled = is_enabled;
        }
        options.access = self.options.access.clone();
        self.options = options.clone();
        self.processor = QueryProcessor::new(self.store.clone(), options);
        String::new()
    }

    fn dump(&self, name: &str) -> String {
        let (keyspace, name) = name.split_once('.').unwrap();
        let schema = self.store.schema();
        let table = schema.table(keyspace, name).unwrap();
        let mut cursor = self
            .store
            .read_range(table, &KeyRange::all(), &ClusteringFilter::all())
            .unwrap();
        print::dump(table, &mut *cursor)
    }
}

fn lines_or_one_empty(lines: &str) -> Vec<&str> {
    match lines.trim_end() {
        "" => vec![""],
        lines => lines.lines().collect(),
    }
}

fn options(case: &mut TestCase) -> ExecuteOptions {
    let mut options = ExecuteOptions {
        page_size: case.try_take_arg("page").unwrap(),
        timestamp_micros: case.try_take_arg("timestamp").unwrap(),
        now_secs: case.try_take_arg("now").unwrap(),
        keyspace: case.try_take_arg("keyspace").unwrap(),
        ..ExecuteOptions::default()
    };
    if let Some(code) = case.try_take_arg("consistency").unwrap() {
        options.consistency = Consistency(code);
    }
    options
}
