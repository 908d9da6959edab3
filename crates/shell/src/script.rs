//! Scripts to statements, one after another.
//!
//! A statement of CQL ends at its semicolon; one of a batch, at the semicolon after `APPLY BATCH`. Compat: most commands of the shell end
//! with their line as well, as in cqlsh.

use ilion_cql::{Class, outline};

/// Commands that end with their line, beside those that begin with a backslash.
const LINE_COMMANDS: [&str; 18] = [
    "capture",
    "clear",
    "cls",
    "consistency",
    "desc",
    "describe",
    "exit",
    "expand",
    "format",
    "help",
    "?",
    "login",
    "paging",
    "quit",
    "serial",
    "show",
    "source",
    "tracing",
];

/// What a text begins with: a statement, an unfinished statement, or none.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// A whole statement, without its semicolon.
    Statement {
        /// Its text.
        text: &'a str,
        /// Where it begins.
        start: usize,
        /// Where the text after it begins.
        end: usize,
    },
    /// A statement whose end is missing.
    Incomplete {
        /// Where it begins.
        start: usize,
    },
    /// White space, comments and empty statements.
    Nothing,
}

/// The statement so far.
struct Draft {
    start: usize,
    end: usize,
    is_line: bool,
    is_batch: bool,
    follows_apply: bool,
    is_applied: bool,
}

/// The first statement of a text.
pub fn next_statement(text: &str) -> Next<'_> {
    let mut draft: Option<Draft> = None;
    for piece in outline(text) {
        let content = text.get(piece.range.clone()).unwrap_or_default();
        match (&mut draft, piece.class) {
            (None, Class::Space | Class::Comment | Class::Semicolon) => {}
            (None, Class::Unfinished) if content.starts_with("/*") => return Next::Nothing,
            (None, class) => {
                let mut first = Draft::new(piece.range.start, content);
                first.push(class, content, piece.range.end);
                draft = Some(first);
            }
            (Some(statement), Class::Space | Class::Comment) => {
                if statement.is_line && content.contains('\n') {
                    return statement.finish(text, piece.range.end);
                }
            }
            (Some(statement), Class::Semicolon) if !statement.is_open_batch() => {
                return statement.finish(text, piece.range.end);
            }
            (Some(statement), class) => statement.push(class, content, piece.range.end),
        }
        if let (Some(statement), Class::Unfinished) = (&mut draft, piece.class) {
            return match content.find('\n').filter(|_| statement.is_line) {
                Some(at) => {
                    statement.end = piece.range.start + at;
                    statement.finish(text, piece.range.start + at + 1)
                }
                None => Next::Incomplete {
                    start: statement.start,
                },
            };
        }
    }
    match draft {
        None => Next::Nothing,
        Some(statement) => Next::Incomplete {
            start: statement.start,
        },
    }
}

/// True if the statement that begins here ends with its line.
pub fn is_line_command(statement: &str) -> bool {
    let word = statement
        .split(|c: char| c.is_whitespace() || c == ';')
        .next()
        .unwrap_or_default();
    word.starts_with('\\')
        || LINE_COMMANDS
            .iter()
            .any(|command| command.eq_ignore_ascii_case(word))
}

impl Draft {
    fn new(start: usize, first: &str) -> Self {
        Self {
            start,
            end: start,
            is_line: first == "\\" || is_line_command(first),
            is_batch: first.eq_ignore_ascii_case("begin"),
            follows_apply: false,
            is_applied: false,
        }
    }

    fn push(&mut self, class: Class, content: &str, end: usize) {
        let is_word = class == Class::Keyword;
        self.is_applied |= self.follows_apply && is_word && content.eq_ignore_ascii_case("batch");
        self.follows_apply = is_word && content.eq_ignore_ascii_case("apply");
        self.end = end;
    }

    fn is_open_batch(&self) -> bool {
        self.is_batch && !self.is_applied
    }

    fn finish<'a>(&self, text: &'a str, end: usize) -> Next<'a> {
        Next::Statement {
            text: text.get(self.start..self.end).unwrap_or_default(),
            start: self.start,
            end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut text: &str) -> Vec<String> {
        let mut found = Vec::new();
        loop {
            match next_statement(text) {
                Next::Statement {
                    text: statement, end, ..
                } => {
                    found.push(statement.to_owned());
                    text = &text[end..];
                }
                Next::Incomplete { start } => {
                    found.push(format!("... {}", &text[start..]));
                    return found;
                }
                Next::Nothing => return found,
            }
        }
    }

    #[test]
    fn statements_end_at_semicolons_outside_strings_and_batches() {
        assert_eq!(
            all("SELECT 'a;b' ; -- c;\nBEGIN BATCH INSERT a; APPLY BATCH; ;SELECT"),
            ["SELECT 'a;b'", "BEGIN BATCH INSERT a; APPLY BATCH", "... SELECT"]
        );
    }

    #[test]
    fn commands_of_the_shell_end_with_their_line() {
        assert_eq!(
            all("CONSISTENCY ONE\nexit;\\d t\nSOURCE 'a\nTRACING"),
            ["CONSISTENCY ONE", "exit", "\\d t", "SOURCE 'a", "... TRACING"]
        );
    }

    #[test]
    fn comments_alone_are_nothing() {
        assert_eq!(next_statement("  -- a\n /* b */ ;; "), Next::Nothing);
        assert_eq!(next_statement("/* open"), Next::Nothing);
    }
}
