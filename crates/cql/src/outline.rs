//! Texts that are still being written, for shells and editors: their tokens by class.

use std::ops::Range;

use crate::lexer::Lexer;
use crate::token::{BadToken, Kind};

/// The class of a piece of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Class {
    /// White space.
    Space,
    /// A comment.
    Comment,
    /// A keyword, reserved or not.
    Keyword,
    /// A name without quotes.
    Name,
    /// `"name"`
    QuotedName,
    /// `'text'` or `$$text$$`
    String,
    /// A number, duration, UUID or blob.
    Constant,
    /// `;`
    Semicolon,
    /// A bracket or an operator.
    Symbol,
    /// A character that begins no token.
    Invalid,
    /// A string, quoted name or comment whose end is missing. It is the last piece.
    Unfinished,
}

/// A piece of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The class of the piece.
    pub class: Class,
    /// The bytes of the text.
    pub range: Range<usize>,
}

/// Cuts a text into pieces that cover all of it. A text of 4 GiB or more yields no pieces.
pub fn outline(text: &str) -> Outline<'_> {
    let has_ended = u32::try_from(text.len()).is_err();
    Outline {
        text,
        lexer: Lexer::new(text),
        has_ended,
    }
}

/// The pieces of a text.
pub struct Outline<'a> {
    text: &'a str,
    lexer: Lexer<'a>,
    has_ended: bool,
}

impl Iterator for Outline<'_> {
    type Item = Piece;

    fn next(&mut self) -> Option<Piece> {
        if self.has_ended {
            return None;
        }
        let token = self.lexer.scan();
        let (start, end) = (token.start as usize, token.end as usize);
        let class = match token.kind {
            Kind::End => return None,
            Kind::Bad(BadToken::Character) => {
                let rest = self.text.get(start..).unwrap_or_default();
                let length = rest.chars().next().map_or(1, char::len_utf8);
                self.lexer.skip(length);
                return Some(Piece {
                    class: Class::Invalid,
                    range: start..start + length,
                });
            }
            Kind::Bad(BadToken::Expecting(wanted)) => {
                class_of_bad(wanted, self.text.get(start..end).unwrap_or_default())
            }
            kind => class_of(kind, self.text.get(start..end).unwrap_or_default()),
        };
        Some(Piece {
            class,
            range: start..end,
        })
    }
}

/// A `!` or `$` by itself is invalid. A string, quoted name or comment without its end takes the rest of the text.
fn class_of_bad(wanted: u8, text: &str) -> Class {
    match wanted {
        b'\'' | b'"' | b'*' => Class::Unfinished,
        b'$' if text.starts_with("$$") => Class::Unfinished,
        _ => Class::Invalid,
    }
}

fn class_of(kind: Kind, text: &str) -> Class {
    match kind {
        Kind::Hidden if text.starts_with(['-', '/']) => Class::Comment,
        Kind::Hidden => Class::Space,
        Kind::Keyword(_) => Class::Keyword,
        Kind::Identifier => Class::Name,
        Kind::QuotedName | Kind::EmptyQuotedName => Class::QuotedName,
        Kind::String | Kind::DollarString => Class::String,
        Kind::Semicolon => Class::Semicolon,
        Kind::Integer
        | Kind::Float
        | Kind::Duration
        | Kind::Uuid
        | Kind::Hex
        | Kind::NegativeNan
        | Kind::NegativeInfinity => Class::Constant,
        _ => Class::Symbol,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let mut at = 0;
        let mut out = Vec::new();
        for piece in outline(text) {
            assert_eq!(piece.range.start, at, "the pieces of {text:?} cover it");
            at = piece.range.end;
            if piece.class != Class::Space {
                out.push(format!("{:?} {}", piece.class, &text[piece.range]));
            }
        }
        assert_eq!(at, text.len(), "the pieces of {text:?} cover it");
        out.join(", ")
    }

    #[test]
    fn a_statement_is_cut_by_class() {
        assert_eq!(
            shown("SELECT \"A\" FROM t WHERE k = 'x'; -- end"),
            "Keyword SELECT, QuotedName \"A\", Keyword FROM, Name t, Keyword WHERE, Name k, Symbol =, String 'x', \
             Semicolon ;, Comment -- end"
        );
    }

    #[test]
    fn what_is_no_token_is_passed_over() {
        assert_eq!(
            shown("\\d é ! 1"),
            "Invalid \\, Name d, Invalid é, Invalid !, Constant 1"
        );
    }

    #[test]
    fn an_open_quote_or_comment_takes_the_rest() {
        assert_eq!(shown("a 'b; c"), "Name a, Unfinished 'b; c");
        assert_eq!(shown("a /* b; c"), "Name a, Unfinished /* b; c");
        assert_eq!(shown("a $$b; c"), "Name a, Unfinished $$b; c");
        assert_eq!(shown("a '"), "Name a, Unfinished '");
        assert_eq!(shown("a $ b"), "Name a, Invalid $, Name b");
    }
}
