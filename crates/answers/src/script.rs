//! The text of a script: statements with their directives and answers. All other lines are kept unchanged.
//!
//! A statement starts at a line that is neither blank nor a comment. It ends with a line that ends with a semicolon; a batch ends
//! with `APPLY BATCH;`, a function's body with `$$;`. The comments directly after it are its answers.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;

/// The clock of a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clock {
    /// Given by the script: seconds since its start.
    Secs(i32),
    /// The clock of the server.
    Server,
}

/// Directives of a statement. They apply to the next statement only, unless the directive says otherwise.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Directives {
    /// `// page N`: rows in a page; all pages are printed.
    pub page: Option<u32>,
    /// `// timestamp N`: the write timestamp, in microseconds.
    pub timestamp: Option<i64>,
    /// `// clock N`: seconds since the start of the script; `// clock server`: the time is not sent. Applies to all later statements.
    pub clock: Option<Clock>,
    /// `// unordered`: sorts the rows before the comparison, since their order depends on hashes or ids.
    pub is_unordered: bool,
    /// `// as prepared`: PREPARE and EXECUTE instead of QUERY.
    pub is_prepared: bool,
    /// `// by ROLE`: the role that sends the statement, over a connection of its own that stays open; `None` is the superuser.
    pub role: Option<String>,
    /// `// java BODY`: for Cassandra, replaces the body in Lua of a function.
    pub java: Option<String>,
}

/// A statement of a script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// Line of its first word, from 1.
    pub line: usize,
    /// Its text, without the semicolon.
    pub text: String,
    /// Its directives.
    pub directives: Directives,
    /// The answer of Cassandra.
    pub answer: Vec<String>,
    /// The answer of Ilion, if it differs on purpose.
    pub own_answer: Vec<String>,
}

impl Statement {
    /// The statement for Cassandra, in which functions have bodies in Java.
    pub(crate) fn for_cassandra(&self) -> Self {
        let mut statement = self.clone();
        if let Some(java) = &self.directives.java
            && let Some(end) = self.text.find("LANGUAGE lua")
        {
            statement.text = format!("{}LANGUAGE java AS $${java}$$", &self.text[..end]);
        }
        statement
    }

    /// The expected answer of Ilion.
    pub fn expected(&self) -> &[String] {
        if self.own_answer.is_empty() {
            &self.answer
        } else {
            &self.own_answer
        }
    }
}

/// A script.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Script {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    /// A line outside of statements.
    Line(String),
    /// A statement, and its source text.
    Statement(String, Statement),
}

/// The scripts of `tests/cql`, sorted by name.
///
/// # Errors
/// The directory cannot be read.
pub fn all_scripts() -> anyhow::Result<Vec<PathBuf>> {
    scripts_in("../../tests/cql")
}

/// The scripts of `tests/cql/logins`, for a server with PasswordAuthenticator and CassandraAuthorizer.
///
/// # Errors
/// The directory cannot be read.
pub fn scripts_with_logins() -> anyhow::Result<Vec<PathBuf>> {
    scripts_in("../../tests/cql/logins")
}

fn scripts_in(directory: &str) -> anyhow::Result<Vec<PathBuf>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(directory);
    let mut files = Vec::new();
    for entry in std::fs::read_dir(&directory).with_context(|| format!("reading {}", directory.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "cql") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

impl Script {
    /// Reads a script from its file.
    ///
    /// # Errors
    /// The file cannot be read, or [`Self::parse`] refuses it.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read_to_string(path).with_context(|| format!("reading {}", path.display()))?;
        Self::parse(&text).with_context(|| format!("in {}", path.display()))
    }

    /// Parses a script.
    ///
    /// # Errors
    /// A directive has no valid number, or a statement has no end. The error has the line.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let mut pieces = Vec::new();
        let mut directives = Directives::default();
        let mut lines = text.lines().enumerate().peekable();
        while let Some((index, line)) = lines.next() {
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with("--") || trimmed.starts_with("//") {
                if let Some(comment) = trimmed.strip_prefix("//") {
                    directives.read(comment.trim(), index + 1)?;
                }
                pieces.push(Piece::Line(line.to_owned()));
                continue;
            }
            let mut source = line.to_owned();
            while !is_whole(&source) {
                let Some((_, more)) = lines.next() else {
                    anyhow::bail!("line {}: the statement does not end with a semicolon", index + 1);
                };
                source.push('\n');
                source.push_str(more);
            }
            let mut statement = Statement {
                line: index + 1,
                text: source.trim().trim_end_matches(';').to_owned(),
                directives: std::mem::take(&mut directives),
                ..Statement::default()
            };
            while let Some((_, line)) = lines.next_if(|(_, line)| line.starts_with("--")) {
                match line.strip_prefix("--!") {
                    Some(own) => statement.own_answer.push(unpadded(own)),
                    None => statement.answer.push(unpadded(&line[2..])),
                }
            }
            pieces.push(Piece::Statement(source, statement));
        }
        Ok(Self { pieces })
    }

    /// The statements.
    pub fn statements(&self) -> impl Iterator<Item = &Statement> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Statement(_, statement) => Some(statement),
            Piece::Line(_) => None,
        })
    }

    /// The statements, mutable.
    pub(crate) fn statements_mut(&mut self) -> impl Iterator<Item = &mut Statement> {
        self.pieces.iter_mut().filter_map(|piece| match piece {
            Piece::Statement(_, statement) => Some(statement),
            Piece::Line(_) => None,
        })
    }

    /// The script as text.
    pub fn print(&self) -> String {
        let mut out = String::new();
        for piece in &self.pieces {
            match piece {
                Piece::Line(line) => {
                    let _ = writeln!(out, "{line}");
                }
                Piece::Statement(source, statement) => {
                    let _ = writeln!(out, "{source}");
                    for (mark, lines) in [("--", &statement.answer), ("--!", &statement.own_answer)] {
                        for line in lines {
                            let _ = writeln!(out, "{}", format!("{mark} {line}").trim_end());
                        }
                    }
                }
            }
        }
        out
    }
}

impl Directives {
    /// Parses a comment; one that does not begin with the name of a directive is ignored.
    fn read(&mut self, comment: &str, line: usize) -> anyhow::Result<()> {
        let number = |text: &str| {
            text.parse::<i64>()
                .map_err(|_| anyhow::anyhow!("line {line}: {text} is no number"))
        };
        if let Some(java) = comment.strip_prefix("java ") {
            self.java = Some(java.trim().to_owned());
            return Ok(());
        }
        match comment.split_whitespace().collect::<Vec<_>>()[..] {
            ["page", size] => self.page = Some(u32::try_from(number(size)?)?),
            ["timestamp", micros] => self.timestamp = Some(number(micros)?),
            ["clock", "server"] => self.clock = Some(Clock::Server),
            ["clock", secs] => self.clock = Some(Clock::Secs(i32::try_from(number(secs)?)?)),
            ["unordered"] => self.is_unordered = true,
            ["as", "prepared"] => self.is_prepared = true,
            ["by", role] => self.role = Some(role.to_owned()),
            _ => {}
        }
        Ok(())
    }
}

fn unpadded(line: &str) -> String {
    line.strip_prefix(' ').unwrap_or(line).to_owned()
}

/// True if the text is a complete statement.
fn is_whole(source: &str) -> bool {
    let text = source.trim_end();
    let upper = text.trim_start().to_ascii_uppercase();
    let is_batch = upper.starts_with("BEGIN");
    let has_open_body = text.matches("$$").count() % 2 == 1;
    text.ends_with(';') && !has_open_body && (!is_batch || upper.contains("APPLY BATCH"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
// A table.
CREATE TABLE t (k int PRIMARY KEY);
-- created table ks.t

// page 2
SELECT *
FROM t;
-- k int
-- 1
--! k int

BEGIN BATCH
  INSERT INTO t (k) VALUES (1);
APPLY BATCH;
";

    #[test]
    fn a_script_is_printed_as_it_was_read() {
        assert_eq!(Script::parse(TEXT).unwrap().print(), TEXT);
    }

    #[test]
    fn statements_have_directives_and_answers() {
        let script = Script::parse(TEXT).unwrap();
        let statements: Vec<_> = script.statements().collect();
        assert_eq!(statements.len(), 3);
        assert_eq!(statements[1].directives.page, Some(2));
        assert_eq!(statements[1].answer, ["k int", "1"]);
        assert_eq!(statements[1].expected(), ["k int"]);
        assert_eq!(statements[2].directives, Directives::default());
        assert!(statements[2].text.ends_with("APPLY BATCH"));
    }

    #[test]
    fn a_cassandra_is_asked_for_functions_in_java() {
        let text = "// java return x;\nCREATE FUNCTION f (x int) CALLED ON NULL INPUT RETURNS int LANGUAGE lua AS 'return x';\n";
        let script = Script::parse(text).unwrap();
        let asked = script.statements().next().unwrap().for_cassandra().text;
        assert!(
            asked.ends_with("RETURNS int LANGUAGE java AS $$return x;$$"),
            "{asked}"
        );
        assert_eq!(script.print(), text);
    }

    #[test]
    fn a_statement_without_an_end_is_told() {
        let error = Script::parse("SELECT 1\n").unwrap_err();
        assert_eq!(
            error.to_string(),
            "line 1: the statement does not end with a semicolon"
        );
    }
}
