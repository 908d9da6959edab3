//! Statements and their answers, in the files of `testdata`.
//!
//! ```text
//! cql [page=N] [timestamp=MICROS] [now=SECS] [consistency=CODE] [types]
//! SELECT ..; INSERT ..               answers of all, but `ok` only of the last one
//! ----
//! k | v                              names of the columns (with `types`: and their types)
//! 1 | 'x'
//! (1 rows)
//!
//! values                             one statement in the first line, values of its markers in the others
//! prepare name=n [keyspace=k]        remembers the statement under a name
//! execute name=n [..as cql]          a line of values for each execution: `1, 'x', null, unset()` or `{k: 1}`
//! page size=N                        one SELECT, page after page
//! batch kind=logged [..as cql]       lines: `cql STATEMENT`, or `NAME VALUES` of a prepared statement
//! clock secs=N                       moves the clock
//! options batch_warn=N batch_fail=N  a new processor with these limits
//! dump table=ks.t                    all that is stored, tombstones and all
//! ```
//!
//! Each file starts with an empty store. `REWRITE=1 cargo test -p ilion-query` writes the answers; read the diff.

#![expect(clippy::unwrap_used, reason = "a mistake in a test file is to stop the test")]
#![expect(clippy::expect_used, reason = "a mistake in a test file is to stop the test")]

mod print;
mod processor;
mod store;
mod values;

use std::collections::HashMap;
use std::sync::Arc;

use datadriven::TestCase;
use ilion_query::{
    BatchKind, BatchStatement, ClientState, Consistency, ExecuteOptions, Outcome, Prepared, QueryOptions,
    QueryProcessor, Store, Values,
};
use ilion_rows::{ClusteringFilter, KeyRange};

use print::Types;
use store::MemoryStore;
use values::parse_values;

#[test]
fn statements_answer_what_the_files_say() {
    datadriven::walk("testdata", |file| {
        let mut session = Session::new();
        file.run(|case| session.run(case));
    });
}

struct Session {
    store: Arc<MemoryStore>,
    processor: QueryProcessor,
    client: ClientState,
    prepared: HashMap<String, Arc<Prepared>>,
}

impl Session {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        Self {
            processor: QueryProcessor::new(store.clone(), QueryOptions::default()),
            store,
            client: ClientState::default(),
            prepared: HashMap::new(),
        }
    }

    fn run(&mut self, case: &mut TestCase) -> String {
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
                self.store
                    .advance(case.take_arg::<i64>("secs").unwrap() * 1_000_000);
                String::new()
            }
            "options" => self.set_options(case),
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
