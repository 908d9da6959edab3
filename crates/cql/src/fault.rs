//! From a fault of the parser to the message for its user.
//!
//! The parser fails with a `Fault`. That must be cheap, since the parser also tries alternatives that fail. Only a reported fault
//! becomes an `Error`. Then the text is cut into tokens again, including hidden ones: Cassandra shows the offending token with up
//! to ten tokens before it and two after it, and counts white space as a token.

use crate::error::{Error, ErrorKind};
use crate::lexer::{Lexer, unquoted};
use crate::token::{BadToken, Kind, Token};

/// Number of tokens shown before the offending one.
const SHOWN_BEFORE: usize = 10;
/// Number of tokens shown after the offending one, if the parser has seen them.
const SHOWN_AFTER: usize = 2;

/// Why the parser stopped.
#[derive(Debug)]
pub(crate) enum Fault {
    /// No alternative of the grammar continues with `offending`. The decision starts at token `decision`; Cassandra would have
    /// looked ahead up to `seen`.
    NoAlternative {
        decision: Token,
        offending: Token,
        seen: Token,
    },
    /// The grammar allows only `expecting` in the place of `offending`.
    Mismatch {
        offending: Token,
        expecting: Kind,
        seen: Token,
    },
    /// The nesting is deeper than the parser's limit.
    TooDeep { levels_max: u32 },
    /// A rule beyond the grammar is broken.
    Rule(String),
    /// Like `Rule`, but an invalid request in Cassandra.
    Invalid(String),
}

impl Fault {
    /// Builds the error.
    #[cold]
    pub(crate) fn into_error(self, text: &str) -> Error {
        match self {
            Self::TooDeep { levels_max } => {
                Self::Rule(format!("Statement is nested deeper than {levels_max} levels")).into_error(text)
            }
            Self::Rule(message) => Error {
                kind: ErrorKind::Rule,
                line: 0,
                column: -1,
                message,
            },
            Self::Invalid(message) => Error {
                kind: ErrorKind::Invalid,
                line: 0,
                column: -1,
                message,
            },
            Self::NoAlternative {
                decision,
                offending,
                seen,
            } => match offending.kind {
                Kind::Bad(bad) => bad_token(text, offending, bad),
                _ => {
                    let what = format!("no viable alternative at input '{}'", shown(text, offending));
                    syntax_error(text, what, offending, (decision, seen))
                }
            },
            Self::Mismatch {
                offending,
                expecting,
                seen,
            } => match offending.kind {
                Kind::Bad(bad) => bad_token(text, offending, bad),
                _ => {
                    let input = shown(text, offending);
                    let what = format!("mismatched input '{input}' expecting {}", expecting.name());
                    syntax_error(text, what, offending, (offending, seen))
                }
            },
        }
    }
}

fn shown(text: &str, token: Token) -> String {
    if token.kind == Kind::End {
        "<EOF>".into()
    } else {
        unquoted(text, token)
    }
}

/// An error at `offending`. The message highlights one token and ends with the last one that may be shown.
fn syntax_error(text: &str, what: String, offending: Token, (highlighted, seen): (Token, Token)) -> Error {
    let message = match snippet(text, highlighted, seen) {
        Some(snippet) => format!("{what} ({snippet})"),
        None => what,
    };
    let (line, column) = if offending.kind == Kind::End {
        (0, -1)
    } else {
        line_and_column(text, offending.start as usize)
    };
    Error {
        kind: ErrorKind::Syntax,
        line,
        column,
        message,
    }
}

fn bad_token(text: &str, token: Token, bad: BadToken) -> Error {
    let at = token.end as usize;
    let found = match text.get(at..).and_then(|rest| rest.chars().next()) {
        Some(found) => found.to_string(),
        None => "<EOF>".into(),
    };
    let message = match bad {
        BadToken::Character => format!("no viable alternative at character '{found}'"),
        BadToken::Expecting(byte) => {
            format!("mismatched character '{found}' expecting '{}'", char::from(byte))
        }
    };
    let (line, column) = line_and_column(text, at);
    Error {
        kind: ErrorKind::Syntax,
        line,
        column,
        message,
    }
}

/// The line of the byte `at`, from 1, and the number of characters before `at` in that line.
fn line_and_column(text: &str, at: usize) -> (u32, i32) {
    let before = text.get(..at).unwrap_or(text);
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count();
    (
        u32::try_from(line).unwrap_or(u32::MAX),
        i32::try_from(column).unwrap_or(i32::MAX),
    )
}

/// The tokens around `highlighted`, none after `last`, with `highlighted` in brackets. `None` if `highlighted` or the last token to show
/// is the end of the text.
fn snippet(text: &str, highlighted: Token, last: Token) -> Option<String> {
    let (first, shown_last) = neighbours(text, highlighted, last);
    if highlighted.kind == Kind::End || shown_last.kind == Kind::End {
        return None;
    }
    let last_end = shown_end(text, shown_last);
    let highlighted_end = shown_end(text, highlighted).min(last_end);
    let before = text.get(first.start as usize..highlighted.start as usize)?;
    let inside = text.get(highlighted.start as usize..highlighted_end)?;
    let after = text.get(highlighted_end..last_end)?;
    let lead = if first.start == 0 { "" } else { "..." };
    let trail = if text.get(last_end..)?.trim_end_matches('\n').is_empty() {
        ""
    } else {
        "..."
    };
    Some(format!("{lead}{before}[{inside}]{after}{trail}").replace('\n', ""))
}

/// The first and the last token to show.
fn neighbours(text: &str, highlighted: Token, last: Token) -> (Token, Token) {
    let mut lexer = Lexer::new(text);
    let mut window = Vec::with_capacity(SHOWN_BEFORE + 1);
    loop {
        let token = lexer.scan();
        if window.len() > SHOWN_BEFORE {
            window.remove(0);
        }
        window.push(token);
        if token.start >= highlighted.start || ends(token) {
            break;
        }
    }
    let mut shown_last = highlighted;
    for _ in 0..SHOWN_AFTER {
        let token = lexer.scan();
        if shown_last.start >= last.start || ends(token) && token.kind != Kind::End {
            break;
        }
        shown_last = token;
    }
    (window.first().copied().unwrap_or(highlighted), shown_last)
}

fn ends(token: Token) -> bool {
    matches!(token.kind, Kind::End | Kind::Bad(_))
}

/// The end of a token as Cassandra counts it, without the quotes of a string.
fn shown_end(text: &str, token: Token) -> usize {
    let start = token.start as usize;
    let length = unquoted(text, token).chars().count();
    let rest = text.get(start..token.end as usize).unwrap_or_default();
    rest.char_indices()
        .nth(length)
        .map_or(token.end as usize, |(at, _)| start + at)
}
