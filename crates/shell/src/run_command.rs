//! What the commands of the shell do.

use std::io;

use crate::cell::texts_of;
use crate::command::{Capture, Command, Paging, Show, Switch};
use crate::format::Format;
use crate::help;
use crate::paths::{FileReader, expand};
use crate::session::{Body, Failure, How, SessionTarget};
use crate::shell::{Flow, PAGE_ROWS, Shell};

const NO_TRACES: &str = "TRACING needs a server. EXPLAIN ANALYZE tells what a SELECT costs here, too.";
/// Maximum depth of scripts that execute scripts.
const SCRIPTS_MAX: usize = 32;

impl Shell<'_> {
    /// Executes a command.
    ///
    /// # Errors
    /// The output cannot be written.
    pub(crate) fn run_command(&mut self, command: Command) -> io::Result<Flow> {
        match command {
            Command::Exit => return Ok(Flow::Exit),
            Command::Source(path) => return self.source(&path),
            Command::Consistency(None) => {
                let level = self.settings.how.consistency;
                self.output
                    .say(&format!("Current consistency level is {level}."))?;
            }
            Command::Consistency(Some(level)) => {
                self.settings.how.consistency = level;
                self.output.say(&format!("Consistency level set to {level}."))?;
            }
            Command::SerialConsistency(None) => {
                let level = self.settings.how.serial_consistency;
                self.output
                    .say(&format!("Current serial consistency level is {level}."))?;
            }
            Command::SerialConsistency(Some(level)) => {
                self.settings.how.serial_consistency = level;
                self.output
                    .say(&format!("Serial consistency level set to {level}."))?;
            }
            Command::Tracing(Some(Switch::On))
                if matches!(self.session.target(), SessionTarget::Directory(_)) =>
            {
                self.complain(NO_TRACES)?;
            }
            Command::Tracing(switch) => {
                let is_traced = self.switched("TRACING", self.settings.how.is_traced, switch)?;
                self.settings.how.is_traced = is_traced;
            }
            Command::Expand(switch) => {
                let was_on = self.settings.format == Format::Vertical;
                let is_on = self.switched("EXPAND", was_on, switch)?;
                if is_on != was_on {
                    self.settings.format = if is_on { Format::Vertical } else { Format::Table };
                }
            }
            Command::Paging(paging) => self.page(paging)?,
            Command::Format(name) => self.choose_format(name)?,
            Command::Capture(capture) => self.capture(capture)?,
            Command::Show(show) => self.show(show)?,
            Command::Login { role, password } => self.log_in(&role, password)?,
            Command::Describe { what, cql } => self.describe(what, &cql)?,
            Command::Copy(copy) => self.copy(&copy)?,
            Command::Help(topic) => self.help(topic.as_deref())?,
            Command::Clear => self.output.say_part("\x1b[H\x1b[2J\x1b[3J")?,
        }
        Ok(Flow::Continue)
    }

    /// Prints the new state of a switch, and returns it.
    fn switched(&mut self, name: &str, is_on: bool, switch: Option<Switch>) -> io::Result<bool> {
        let wanted = match switch {
            None => {
                self.output.say(&format!("{name} is {}", on_or_off(is_on)))?;
                return Ok(is_on);
            }
            Some(Switch::On) => true,
            Some(Switch::Off) => false,
            Some(Switch::Over) => !is_on,
        };
        let word = on_or_off(wanted);
        match wanted == is_on {
            true => self.output.say(&format!("{name} is already {word}"))?,
            false => self.output.say(&format!("{name} set to {word}"))?,
        }
        Ok(wanted)
    }

    fn page(&mut self, paging: Option<Paging>) -> io::Result<()> {
        let was_on = self.settings.how.page_size.is_some();
        let switch = match paging {
            Some(Paging::Rows(rows)) => {
                self.settings.how.page_size = Some(rows);
                return self.output.say(&format!("Page size: {rows}"));
            }
            Some(Paging::On) => Some(Switch::On),
            Some(Paging::Off) => Some(Switch::Off),
            None => None,
        };
        let is_on = self.switched("PAGING", was_on, switch)?;
        let size = self.settings.how.page_size.unwrap_or(PAGE_ROWS);
        self.settings.how.page_size = is_on.then_some(size);
        match is_on {
            true => self.output.say(&format!("Page size: {size}")),
            false => Ok(()),
        }
    }

    fn choose_format(&mut self, name: Option<String>) -> io::Result<()> {
        let Some(name) = name else {
            let format = self.settings.format;
            return self.output.say(&format!("FORMAT is {}", format.name()));
        };
        match Format::ALL
            .into_iter()
            .find(|format| format.name().eq_ignore_ascii_case(&name))
        {
            None => {
                let names = Format::ALL.map(Format::name).join(", ");
                self.complain(&format!("{name} is no format: use one of {names}."))
            }
            Some(format) => {
                if let Err(problem) = format.columnar().map_or(Ok(()), |_| crate::columnar::check()) {
                    return self.complain(&problem);
                }
                self.settings.format = format;
                self.output.say(&format!("FORMAT set to {}", format.name()))
            }
        }
    }

    fn source(&mut self, path: &str) -> io::Result<Flow> {
        if self.scripts.len() >= SCRIPTS_MAX {
            self.complain(&format!(
                "Scripts source each other more than {SCRIPTS_MAX} times; this one is not executed."
            ))?;
            return Ok(Flow::Continue);
        }
        let file = match self.env.open_read(&expand(path)) {
            Ok(file) => file,
            Err(error) => {
                self.complain(&format!("Could not open '{path}': {}", error.source))?;
                return Ok(Flow::Continue);
            }
        };
        let was_interactive = std::mem::replace(&mut self.settings.is_interactive, false);
        let outcome = self.run_script(path, &mut FileReader::new(file, 0));
        self.settings.is_interactive = was_interactive;
        if let Err(error) = outcome {
            if error.kind() == io::ErrorKind::BrokenPipe {
                return Err(error);
            }
            self.complain(&format!("Could not read '{path}': {error}"))?;
        }
        // Compat: EXIT in a script ends the script only.
        Ok(Flow::Continue)
    }

    fn capture(&mut self, capture: Capture) -> io::Result<()> {
        let current = self.output.captured().map(str::to_owned);
        match (capture, current) {
            (Capture::Tell, None) => self.output.say("Currently not capturing query output."),
            (Capture::Tell, Some(path)) => self
                .output
                .say(&format!("Currently capturing query output to '{path}'.")),
            (Capture::Off, None) => self.complain("Not currently capturing output."),
            (Capture::Off, Some(_)) => {
                self.output.end_capture();
                Ok(())
            }
            (Capture::File(_), Some(path)) => self.complain(&format!(
                "Already capturing output to {path}. Use CAPTURE OFF to disable."
            )),
            (Capture::File(path), None) => match self.output.capture(&*self.env, &expand(&path)) {
                Ok(()) => self
                    .output
                    .say(&format!("Now capturing query output to '{path}'.")),
                Err(error) => self.complain(&format!("Could not open '{path}' for append: {}", error.source)),
            },
        }
    }

    fn log_in(&mut self, role: &str, password: Option<String>) -> io::Result<()> {
        let password = match password {
            Some(password) => password,
            None => rpassword::prompt_password("Password: ")?,
        };
        match self.session.log_in(role, &password) {
            Ok(()) => Ok(()),
            Err(failure) => self.complain_of(&failure),
        }
    }

    fn show(&mut self, show: Show) -> io::Result<()> {
        let lines = match show {
            Show::Version => self.version_line().map(|line| vec![line]),
            Show::Host => self.host_line().map(|line| vec![line]),
            Show::Session(id) => return self.show_trace(id),
        };
        match lines {
            Ok(lines) => lines.iter().try_for_each(|line| self.output.say(line)),
            Err(failure) => self.complain_of(&failure),
        }
    }

    /// The versions of shell, server and protocols.
    ///
    /// # Errors
    /// The server does not return them.
    pub fn version_line(&mut self) -> Result<String, Failure> {
        let row = self.first_row("SELECT release_version, cql_version FROM system.local")?;
        let protocol = match self.session.target() {
            SessionTarget::Server { protocol, .. } => format!("Native protocol v{protocol}"),
            SessionTarget::Directory(_) => "embedded".to_owned(),
        };
        Ok(format!(
            "[ilion cql {} | Cassandra {} | CQL spec {} | {protocol}]",
            env!("CARGO_PKG_VERSION"),
            row.first().map_or("?", String::as_str),
            row.get(1).map_or("?", String::as_str),
        ))
    }

    /// The name of the cluster and its address.
    ///
    /// # Errors
    /// The server does not return them.
    pub fn host_line(&mut self) -> Result<String, Failure> {
        let row = self.first_row("SELECT cluster_name FROM system.local")?;
        let name = row.first().map_or("?", String::as_str);
        Ok(match self.session.target() {
            SessionTarget::Server { address, .. } => format!("Connected to {name} at {address}"),
            SessionTarget::Directory(directory) => format!("Opened {name} in {directory}"),
        })
    }

    /// The first row of a query of the shell's own, as texts.
    fn first_row(&mut self, cql: &str) -> Result<Vec<String>, Failure> {
        Ok(self.ask(cql)?.into_iter().next().unwrap_or_default())
    }

    /// All rows of a query of the shell's own, as texts; null is empty.
    pub(crate) fn ask(&mut self, cql: &str) -> Result<Vec<Vec<String>>, Failure> {
        match self.session.execute(cql, &How::default())?.body {
            Body::Rows(rows) => Ok(texts_of(&rows)),
            _ => Ok(Vec::new()),
        }
    }

    fn help(&mut self, topic: Option<&str>) -> io::Result<()> {
        match help::about(topic) {
            Some(text) => self.output.say(text.trim_end()),
            None => self.complain(&format!("*** No help on {}", topic.unwrap_or_default())),
        }
    }
}

impl Format {
    /// All formats.
    pub const ALL: [Self; 6] = [
        Self::Table,
        Self::Vertical,
        Self::Json,
        Self::Csv,
        Self::Parquet,
        Self::Arrow,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Table => "table",
            Self::Vertical => "vertical",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Arrow => "arrow",
        }
    }
}

fn on_or_off(is_on: bool) -> &'static str {
    if is_on { "ON" } else { "OFF" }
}
