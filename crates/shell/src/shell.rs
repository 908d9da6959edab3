//! [`Shell`]: a session with the settings of its user; executes scripts.

use std::io::{self, Read};
use std::sync::Arc;

use ilion_env::Env;

use crate::command::Command;
use crate::error_text::print_failure;
use crate::format::Format;
use crate::output::Output;
use crate::script::{Next, next_statement};
use crate::session::{Failure, How, Session};

/// Rows in a page. Compat: as in cqlsh.
pub const PAGE_ROWS: u32 = 100;
/// Some editors begin files with this mark.
const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();
/// Bytes of a script that are read at once.
const CHUNK_BYTES: usize = 256 << 10;

/// A session with the settings of its user.
pub struct Shell<'a> {
    pub(crate) session: Box<dyn Session>,
    pub(crate) env: Arc<dyn Env>,
    pub(crate) output: Output<'a>,
    pub(crate) settings: ShellSettings,
    /// The keyspace of unqualified names.
    pub(crate) keyspace: Option<String>,
    /// True once a statement failed.
    has_failed: bool,
    /// True if the names of the schema must be read again.
    pub(crate) has_new_schema: bool,
    /// The scripts that are executed, the innermost last.
    pub(crate) scripts: Vec<Position>,
}

/// The user's settings.
#[derive(Clone, Debug)]
pub struct ShellSettings {
    /// How statements are executed.
    pub how: How,
    /// How rows are printed.
    pub format: Format,
    /// True if a user types the statements, and pages wait for a key.
    pub is_interactive: bool,
}

/// A place in a script, for errors.
#[derive(Clone, Debug)]
pub(crate) struct Position {
    name: String,
    line: usize,
}

/// Whether there is more to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flow {
    /// The next statement.
    Continue,
    /// The user wants to leave.
    Exit,
}

impl<'a> Shell<'a> {
    /// A shell that uses this session.
    pub fn new(
        session: Box<dyn Session>,
        env: Arc<dyn Env>,
        output: Output<'a>,
        settings: ShellSettings,
    ) -> Self {
        Self {
            session,
            env,
            output,
            settings,
            keyspace: None,
            has_failed: false,
            has_new_schema: false,
            scripts: Vec::new(),
        }
    }

    /// True once a statement failed.
    pub fn has_failed(&self) -> bool {
        self.has_failed
    }

    /// True if the schema may have changed since the last call.
    pub(crate) fn take_schema_change(&mut self) -> bool {
        std::mem::take(&mut self.has_new_schema)
    }

    /// Executes what a user typed: whole statements and commands.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(crate) fn run_typed(&mut self, text: &str) -> io::Result<Flow> {
        let (flow, done) = self.run_text(text)?;
        let flow = match flow {
            Flow::Continue => self.run_rest(&text[done..])?,
            Flow::Exit => flow,
        };
        self.output.flush()?;
        Ok(flow)
    }

    /// Ends the shell; returns its session.
    pub fn into_session(self) -> Box<dyn Session> {
        self.session
    }

    /// Executes a script of statements and commands; `name` is for errors. Errors do not end it.
    ///
    /// # Errors
    /// The script cannot be read, or the output cannot be written.
    pub fn run_script(&mut self, name: &str, script: &mut dyn Read) -> io::Result<Flow> {
        self.scripts.push(Position {
            name: name.to_owned(),
            line: 1,
        });
        let flow = self.run_chunks(script);
        self.scripts.pop();
        flow
    }

    fn run_chunks(&mut self, script: &mut dyn Read) -> io::Result<Flow> {
        let mut chunk = vec![0; CHUNK_BYTES];
        let mut waiting = Vec::new();
        loop {
            let count = script.read(&mut chunk)?;
            waiting.extend_from_slice(&chunk[..count]);
            if waiting.starts_with(BYTE_ORDER_MARK) {
                waiting.drain(..BYTE_ORDER_MARK.len());
            }
            // Whole lines only: a line may end a command.
            let whole = match count {
                0 => waiting.len(),
                _ => waiting
                    .iter()
                    .rposition(|byte| *byte == b'\n')
                    .map_or(0, |at| at + 1),
            };
            let text = std::str::from_utf8(&waiting[..whole])
                .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "the script is not UTF-8"))?
                .to_owned();
            let (flow, done) = self.run_text(&text)?;
            waiting.drain(..done);
            if flow == Flow::Exit {
                return Ok(flow);
            }
            if count == 0 {
                return self.run_rest(&text[done..]);
            }
        }
    }

    /// Executes the whole statements of a text; returns the number of bytes that are done.
    fn run_text(&mut self, text: &str) -> io::Result<(Flow, usize)> {
        let mut done = 0;
        while let Next::Statement {
            text: statement,
            start,
            end,
        } = next_statement(&text[done..])
        {
            self.pass_lines(&text[done..done + start]);
            let flow = self.run_statement(statement)?;
            self.pass_lines(&text[done + start..done + end]);
            done += end;
            self.output.flush()?;
            if flow == Flow::Exit {
                return Ok((flow, done));
            }
        }
        Ok((Flow::Continue, done))
    }

    /// The end of a script: a command needs no end of its line, a statement of CQL needs its semicolon.
    fn run_rest(&mut self, text: &str) -> io::Result<Flow> {
        let Next::Incomplete { start } = next_statement(text) else {
            return Ok(Flow::Continue);
        };
        self.pass_lines(&text[..start]);
        let rest = text[start..].trim_end();
        if crate::script::is_line_command(rest) {
            return self.run_statement(rest);
        }
        self.complain("Incomplete statement at end of file")?;
        Ok(Flow::Continue)
    }

    fn pass_lines(&mut self, text: &str) {
        if let Some(position) = self.scripts.last_mut() {
            position.line += text.bytes().filter(|byte| *byte == b'\n').count();
        }
    }

    /// Executes one statement or command, without a semicolon.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn run_statement(&mut self, statement: &str) -> io::Result<Flow> {
        match Command::parse(statement) {
            None => self.run_cql(statement)?,
            Some(Ok(command)) => return self.run_command(command),
            Some(Err(problem)) => self.complain(&problem)?,
        }
        Ok(Flow::Continue)
    }

    /// Prints an error, with its place in the script.
    pub(crate) fn complain(&mut self, problem: &str) -> io::Result<()> {
        self.has_failed = true;
        match self.scripts.last() {
            Some(Position { name, line }) => self.output.error(&format!("{name}:{line}:{problem}")),
            None => self.output.error(problem),
        }
    }

    /// Enters a keyspace; its name is as it was written, without quotes.
    ///
    /// # Errors
    /// There is no keyspace of this name, or the output cannot be written.
    pub fn enter(&mut self, keyspace: &str) -> anyhow::Result<()> {
        let cql = format!("USE {}", ilion_types::quote_name(keyspace));
        match self.session.execute(&cql, &self.settings.how) {
            Ok(_) => self.keyspace = Some(keyspace.to_owned()),
            Err(failure) => anyhow::bail!(print_failure(&failure)),
        }
        Ok(())
    }

    pub(crate) fn complain_of(&mut self, failure: &Failure) -> io::Result<()> {
        self.complain(&print_failure(failure))
    }
}
