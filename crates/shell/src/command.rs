//! [`Command`]: commands of the shell itself, and their grammar. Compat: those of cqlsh; shortcuts with a backslash are those of psql.

use ilion_cql::{Class, outline};
use ilion_protocol::Consistency;
use uuid::Uuid;

use crate::copy::statement::{self, Copy};
use crate::quotes::unquote;

/// A command of the shell itself.
#[derive(Clone, Debug, PartialEq)]
pub enum Command {
    /// `CONSISTENCY [level]`
    Consistency(Option<Consistency>),
    /// `SERIAL CONSISTENCY [level]`
    SerialConsistency(Option<Consistency>),
    /// `TRACING [ON|OFF]`
    Tracing(Option<Switch>),
    /// `EXPAND [ON|OFF]`
    Expand(Option<Switch>),
    /// `PAGING [ON|OFF|rows]`
    Paging(Option<Paging>),
    /// `FORMAT [name]`
    Format(Option<String>),
    /// `SOURCE 'file'`
    Source(String),
    /// `CAPTURE ['file'|OFF]`
    Capture(Capture),
    /// `SHOW VERSION|HOST|SESSION id`
    Show(Show),
    /// `LOGIN role ['password']`
    Login {
        /// The role.
        role: String,
        /// `None`: the shell asks for it.
        password: Option<String>,
    },
    /// `DESCRIBE ..`: the server answers it, the shell prints the answer.
    Describe {
        /// How the answer is printed.
        what: Described,
        /// The statement for the server.
        cql: String,
    },
    /// `COPY ..`
    Copy(Box<Copy>),
    /// `HELP [topic]`
    Help(Option<String>),
    /// `CLEAR`
    Clear,
    /// `EXIT`
    Exit,
}

/// `ON` or `OFF`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Switch {
    /// On.
    On,
    /// Off.
    Off,
    /// The opposite of the current state: `\x`.
    Over,
}

/// What PAGING sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paging {
    /// Pages of the usual size.
    On,
    /// One page for all rows.
    Off,
    /// Pages of this many rows.
    Rows(u32),
}

/// What CAPTURE does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capture {
    /// Shows the name of the file.
    Tell,
    /// Shows results again.
    Off,
    /// Appends results to this file.
    File(String),
}

/// What SHOW shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Show {
    /// Versions.
    Version,
    /// Name of the cluster, and where it is.
    Host,
    /// A trace.
    Session(Uuid),
}

/// How the answer to DESCRIBE is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Described {
    /// The names of keyspaces.
    Keyspaces,
    /// Names by keyspace.
    Names,
    /// The cluster.
    Cluster,
    /// Statements that create the element.
    Element,
}

/// The words of a command, without white space and comments.
struct Words<'a> {
    text: &'a str,
    words: Vec<(Class, &'a str)>,
}

type Parsed = Result<Command, String>;

impl Command {
    /// The command of a text; `None` if it is CQL.
    pub fn parse(text: &str) -> Option<Parsed> {
        if let Some(shortcut) = text.strip_prefix('\\') {
            return Some(parse_shortcut(shortcut.trim()));
        }
        let words = Words::of(text);
        let name = words.word(0)?.to_ascii_lowercase();
        let parsed = match name.as_str() {
            "consistency" => words.level(1).map(Self::Consistency),
            "serial" if words.is(1, "consistency") => words.serial_level(2).map(Self::SerialConsistency),
            "tracing" => words.switch().map(Self::Tracing),
            "expand" => words.switch().map(Self::Expand),
            "paging" => words.paging().map(Self::Paging),
            "format" => words
                .at_most(2)
                .map(|()| Self::Format(words.word(1).map(str::to_owned))),
            "source" => words.path(1).map(Self::Source),
            "capture" => words.capture().map(Self::Capture),
            "show" => words.show().map(Self::Show),
            "login" => words.login(),
            "copy" => statement::parse(text).map(|copy| Self::Copy(Box::new(copy))),
            "desc" | "describe" => Ok(words.describe()),
            "help" | "?" => words
                .at_most(2)
                .map(|()| Self::Help(words.word(1).map(str::to_owned))),
            "clear" | "cls" => words.at_most(1).map(|()| Self::Clear),
            "exit" | "quit" => words.at_most(1).map(|()| Self::Exit),
            _ => return None,
        };
        Some(parsed.map_err(|problem| match problem.is_empty() {
            true => format!("Improper {name} command."),
            false => problem,
        }))
    }
}

impl<'a> Words<'a> {
    fn of(text: &'a str) -> Self {
        let is_word = |class| !matches!(class, Class::Space | Class::Comment | Class::Semicolon);
        let pieces = outline(text).filter(|piece| is_word(piece.class));
        let words = pieces.filter_map(|piece| Some((piece.class, text.get(piece.range)?)));
        Self {
            text,
            words: words.collect(),
        }
    }

    fn word(&self, index: usize) -> Option<&'a str> {
        self.words.get(index).map(|(_, word)| *word)
    }

    fn is(&self, index: usize, word: &str) -> bool {
        self.word(index)
            .is_some_and(|found| found.eq_ignore_ascii_case(word))
    }

    /// Fails if there are more words.
    fn at_most(&self, count: usize) -> Result<(), String> {
        match self.words.get(count) {
            None => Ok(()),
            Some(_) => Err(String::new()),
        }
    }

    fn level(&self, index: usize) -> Result<Option<Consistency>, String> {
        self.at_most(index + 1)?;
        let Some(word) = self.word(index) else {
            return Ok(None);
        };
        let found = Consistency::ALL
            .into_iter()
            .find(|level| level.to_string().eq_ignore_ascii_case(word));
        let names = Consistency::ALL.map(|level| level.to_string()).join(", ");
        found
            .map(Some)
            .ok_or_else(|| format!("{word} is no consistency level: use one of {names}."))
    }

    fn serial_level(&self, index: usize) -> Result<Option<Consistency>, String> {
        match self.level(index)? {
            Some(level) if !level.is_serial() => Err(format!(
                "{level} is no serial consistency level: use SERIAL or LOCAL_SERIAL."
            )),
            level => Ok(level),
        }
    }

    fn switch(&self) -> Result<Option<Switch>, String> {
        self.at_most(2)?;
        match self.word(1) {
            None => Ok(None),
            Some(word) if word.eq_ignore_ascii_case("on") => Ok(Some(Switch::On)),
            Some(word) if word.eq_ignore_ascii_case("off") => Ok(Some(Switch::Off)),
            Some(_) => Err(String::new()),
        }
    }

    fn paging(&self) -> Result<Option<Paging>, String> {
        if let Some(rows) = self.word(1).and_then(|word| word.parse().ok()) {
            self.at_most(2)?;
            return match rows {
                0 => Err("A page has at least one row.".to_owned()),
                rows => Ok(Some(Paging::Rows(rows))),
            };
        }
        let paging = |switch| match switch {
            Switch::Off => Paging::Off,
            _ => Paging::On,
        };
        Ok(self.switch()?.map(paging))
    }

    /// A text in quotes, to the end of the command.
    fn path(&self, index: usize) -> Result<String, String> {
        self.at_most(index + 1)?;
        match self.words.get(index) {
            Some((Class::String, text)) => Ok(unquote(text)),
            _ => Err("The name of the file is missing; it stands in single quotes: 'name'.".to_owned()),
        }
    }

    fn capture(&self) -> Result<Capture, String> {
        match self.word(1) {
            None => Ok(Capture::Tell),
            Some(word) if word.eq_ignore_ascii_case("off") => self.at_most(2).map(|()| Capture::Off),
            Some(_) => self.path(1).map(Capture::File),
        }
    }

    fn show(&self) -> Result<Show, String> {
        if self.is(1, "version") {
            return self.at_most(2).map(|()| Show::Version);
        }
        if self.is(1, "host") {
            return self.at_most(2).map(|()| Show::Host);
        }
        if self.is(1, "session") {
            self.at_most(3)?;
            let id = self.word(2).and_then(|word| Uuid::try_parse(word).ok());
            return id
                .map(Show::Session)
                .ok_or("The id of the trace is missing.".to_owned());
        }
        if self.is(1, "replicas") {
            return Err("SHOW REPLICAS is not built: use DESCRIBE CLUSTER in a keyspace.".to_owned());
        }
        Err(String::new())
    }

    fn login(&self) -> Parsed {
        self.at_most(3)?;
        let role = match self.words.get(1) {
            Some((Class::String | Class::QuotedName, text)) => unquote(text),
            Some((_, text)) => (*text).to_owned(),
            None => return Err(String::new()),
        };
        let password = self.words.get(2).map(|(class, text)| match class {
            Class::String => unquote(text),
            _ => (*text).to_owned(),
        });
        Ok(Command::Login { role, password })
    }

    fn describe(&self) -> Command {
        let what = match self.word(1).unwrap_or_default().to_ascii_lowercase().as_str() {
            "keyspaces" => Described::Keyspaces,
            "tables" | "columnfamilies" | "types" | "functions" | "aggregates" => Described::Names,
            "cluster" => Described::Cluster,
            _ => Described::Element,
        };
        Command::Describe {
            what,
            cql: self.text.trim_end_matches([';', ' ', '\n']).to_owned(),
        }
    }
}

/// A shortcut, without its backslash.
fn parse_shortcut(text: &str) -> Parsed {
    let text = text.trim_end_matches(';').trim_end();
    let (name, rest) = text.split_once(char::is_whitespace).unwrap_or((text, ""));
    let rest = rest.trim();
    let describe = |words: &str| Ok(Words::of(&format!("DESCRIBE {words}")).describe());
    match (name, rest) {
        ("l" | "dk", "") => describe("KEYSPACES"),
        ("d" | "dt", "") => describe("TABLES"),
        ("dT", "") => describe("TYPES"),
        ("df", "") => describe("FUNCTIONS"),
        ("da", "") => describe("AGGREGATES"),
        ("d", name) => describe(name),
        ("dk", name) => describe(&format!("KEYSPACE {name}")),
        ("dt", name) => describe(&format!("TABLE {name}")),
        ("dT", name) => describe(&format!("TYPE {name}")),
        ("df", name) => describe(&format!("FUNCTION {name}")),
        ("da", name) => describe(&format!("AGGREGATE {name}")),
        ("di", name) if !name.is_empty() => describe(&format!("INDEX {name}")),
        ("x", "") => Ok(Command::Expand(Some(Switch::Over))),
        ("q", "") => Ok(Command::Exit),
        ("?" | "h", "") => Ok(Command::Help(None)),
        ("i", path) if !path.is_empty() => Ok(Command::Source(unquote(path))),
        _ => Err(format!("\\{name} is no shortcut of this form: \\? lists them.")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Parsed {
        Command::parse(text).unwrap()
    }

    #[test]
    fn statements_of_cql_are_no_commands() {
        for text in ["SELECT 1", "USE a", "format", "serial"] {
            let is_command = Command::parse(text).is_some();
            assert_eq!(is_command, text == "format", "{text}");
        }
    }

    #[test]
    fn commands_are_read_in_any_case() {
        assert_eq!(
            parsed("consistency local_quorum"),
            Ok(Command::Consistency(Some(Consistency::LocalQuorum)))
        );
        assert_eq!(parsed("PAGING 50"), Ok(Command::Paging(Some(Paging::Rows(50)))));
        assert_eq!(parsed("Source 'it''s'"), Ok(Command::Source("it's".to_owned())));
        assert_eq!(parsed("\\q"), Ok(Command::Exit));
        assert_eq!(
            parsed("\\d ks.\"T\""),
            Ok(Command::Describe {
                what: Described::Element,
                cql: "DESCRIBE ks.\"T\"".to_owned()
            })
        );
    }

    #[test]
    fn a_wrong_command_says_what_is_wrong() {
        for (text, words) in [
            ("CONSISTENCY MOST", "MOST is no consistency level"),
            ("SERIAL CONSISTENCY ONE", "use SERIAL or LOCAL_SERIAL"),
            ("TRACING MAYBE", "Improper tracing command."),
            ("SOURCE file", "single quotes"),
            ("\\y", "\\? lists them"),
            ("EXIT now", "Improper exit command."),
        ] {
            let problem = parsed(text).unwrap_err();
            assert!(problem.contains(words), "{text}: {problem}");
        }
    }
}
