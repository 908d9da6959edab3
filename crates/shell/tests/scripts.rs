//! Scripts and what the shell prints for them: `testdata/*.txt`. Each runs on a server and on a data directory, and both print the same.
//!
//! `run` executes a script from standard input; `file NAME` writes the file `/NAME`; `cat NAME` prints it. Errors are marked with `! `.
//! `REWRITE=1` writes the answers.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail where the test fails")]

use std::cell::RefCell;
use std::io::{self, Write};
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use ilion_client::{LoginArgs, Target};
use ilion_env::{Env, MemEnv};
use ilion_server::{Server, ServerNode, ServerOptions};
use ilion_settings::Settings;
use ilion_shell::{Embedded, Format, How, Output, PAGE_ROWS, Remote, Session, Shell, ShellSettings};

/// A session of one kind, on a disk in memory of its own.
struct Bench {
    env: Arc<MemEnv>,
    session: RefCell<Option<Box<dyn Session>>>,
    _server: Option<Server>,
}

/// Both outputs in the order in which they were written; lines of the second are marked.
#[derive(Clone, Default)]
struct Screen(Rc<RefCell<Vec<u8>>>);

struct Marked(Screen);

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Write for Marked {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut screen = self.0.0.borrow_mut();
        if screen.last().is_none_or(|byte| *byte == b'\n') {
            screen.extend_from_slice(b"! ");
        }
        screen.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How long a COPY took differs.
fn without_times(text: &str) -> String {
    let line = |line: &str| match (line.find(" files in "), line.find(" seconds")) {
        (Some(from), Some(to)) => format!("{}{}\n", &line[..from + 10], &line[to..].replacen(' ', "... ", 1)),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

fn settings() -> Settings {
    Settings {
        directory: "/ilion".into(),
        native_transport_port: 0,
        ..Settings::default()
    }
}

impl Bench {
    fn on_a_directory() -> Self {
        let env = Arc::new(MemEnv::new(1));
        let session = Embedded::open(env.clone(), &settings()).unwrap();
        Self {
            env,
            session: RefCell::new(Some(Box::new(session))),
            _server: None,
        }
    }

    fn on_a_server() -> Self {
        let env = Arc::new(MemEnv::new(1));
        let node = ServerNode::open(env.clone(), &settings()).unwrap();
        let server = node.serve(&ServerOptions::of(&settings())).unwrap();
        let target = Target::new("127.0.0.1", server.address().port(), &LoginArgs::default());
        let session = Remote::open(target).unwrap();
        Self {
            env,
            session: RefCell::new(Some(Box::new(session))),
            _server: Some(server),
        }
    }

    fn run(&self, script: &str, format: Format) -> String {
        let screen = Screen::default();
        let (mut out, mut errors) = (screen.clone(), Marked(screen.clone()));
        let settings = ShellSettings {
            how: How {
                page_size: Some(PAGE_ROWS),
                ..How::default()
            },
            format,
            is_interactive: false,
        };
        let output = Output::new(&mut out, &mut errors);
        let session = self.session.borrow_mut().take().unwrap();
        let mut shell = Shell::new(session, self.env.clone(), output, settings);
        shell.run_script("<stdin>", &mut script.as_bytes()).unwrap();
        *self.session.borrow_mut() = Some(shell.into_session());
        without_times(&String::from_utf8(screen.0.take()).unwrap())
    }

    fn obey(&self, test: &datadriven::TestCase) -> String {
        let name = || format!("/{}", test.args.keys().next().unwrap());
        match test.directive.as_str() {
            "run" => {
                let format = match test.args.keys().next().map(String::as_str) {
                    Some("json") => Format::Json,
                    Some("csv") => Format::Csv,
                    _ => Format::Table,
                };
                self.run(&test.input, format)
            }
            "file" => {
                let mut file = self.env.create_or_truncate(Path::new(&name())).unwrap();
                file.append(test.input.as_bytes()).unwrap();
                String::new()
            }
            "cat" => {
                let bytes = self.env.read_all(Path::new(&name()), 1 << 20).unwrap();
                String::from_utf8(bytes).unwrap()
            }
            other => panic!("no directive {other}"),
        }
    }
}

#[test]
fn scripts_print_the_same_on_a_server_and_on_a_directory() {
    datadriven::walk(concat!(env!("CARGO_MANIFEST_DIR"), "/testdata"), |file| {
        let (server, directory) = (Bench::on_a_server(), Bench::on_a_directory());
        file.run(|test| {
            let (remote, embedded) = (server.obey(test), directory.obey(test));
            assert_eq!(remote, embedded, "the same on both:\n{}", test.input);
            remote
        });
    });
}
