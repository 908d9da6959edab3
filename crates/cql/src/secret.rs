//! Texts of statements without the passwords in them, for logs, traces and error messages.
//!
//! A text may have secrets if it has the word PASSWORD, and either has the word ROLE or USER or does not begin like a statement about
//! rows. This includes texts that are not CQL: a typing error must not reveal a password. In such a text everything between PASSWORD
//! and the next AND or semicolon is hidden, except `=`, and so is every later string.
//!
//! Invariant of [`mask_secrets`]: the text keeps its length and its lines, so that positions in it stay true.

use std::borrow::Cow;
use std::ops::Range;

use crate::keyword::Keyword;
use crate::lexer::Lexer;
use crate::token::{Kind, Token};

/// The text with `***` for each secret.
pub fn hide_secrets(text: &str) -> Cow<'_, str> {
    let secrets = secrets(text);
    if secrets.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut hidden = String::with_capacity(text.len());
    let mut at = 0;
    for secret in secrets {
        hidden.push_str(&text[at..secret.start]);
        hidden.push_str("***");
        at = secret.end;
    }
    hidden.push_str(&text[at..]);
    Cow::Owned(hidden)
}

/// The text with an `x` for each byte of a secret.
pub(crate) fn mask_secrets(text: &str) -> Cow<'_, str> {
    let secrets = secrets(text);
    if secrets.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    let mut at = 0;
    for secret in secrets {
        masked.push_str(&text[at..secret.start]);
        masked.extend(text[secret.clone()].bytes().map(|byte| match byte {
            b'\n' => '\n',
            _ => 'x',
        }));
        at = secret.end;
    }
    masked.push_str(&text[at..]);
    Cow::Owned(masked)
}

/// The byte ranges of the secrets, in order and without overlap.
fn secrets(text: &str) -> Vec<Range<usize>> {
    let has_word = text
        .as_bytes()
        .windows("password".len())
        .any(|word| word.eq_ignore_ascii_case(b"password"));
    if !has_word || u32::try_from(text.len()).is_err() {
        return Vec::new();
    }
    let tokens = significant_tokens(text);
    let has = |word: Keyword| tokens.iter().any(|token| token.kind == Kind::Keyword(word));
    let is_about_roles = has(Keyword::Role) || has(Keyword::User) || !begins_with_data(&tokens);
    let mut found = Finder {
        text,
        after_password: false,
        in_value: false,
        found: Vec::new(),
    };
    if is_about_roles {
        tokens.iter().for_each(|token| found.take(*token));
    }
    found.found
}

/// All tokens but white space; the last one may be bad.
fn significant_tokens(text: &str) -> Vec<Token> {
    let mut lexer = Lexer::new(text);
    let mut tokens = Vec::new();
    loop {
        let token = lexer.scan();
        match token.kind {
            Kind::Hidden => {}
            Kind::End => return tokens,
            Kind::Bad(_) => {
                tokens.push(token);
                return tokens;
            }
            _ => tokens.push(token),
        }
    }
}

/// True for statements about rows, in which a column may be called `password`.
fn begins_with_data(tokens: &[Token]) -> bool {
    use Keyword as K;
    let first = tokens.first().map(|token| token.kind);
    let words = [K::Select, K::Insert, K::Update, K::Delete, K::Begin, K::Truncate];
    words.iter().any(|word| first == Some(Kind::Keyword(*word)))
}

struct Finder<'t> {
    text: &'t str,
    after_password: bool,
    /// Between PASSWORD and the next AND.
    in_value: bool,
    found: Vec<Range<usize>>,
}

impl Finder<'_> {
    fn take(&mut self, token: Token) {
        let (start, end) = (token.start as usize, token.end as usize);
        match token.kind {
            Kind::Keyword(Keyword::Password) => {
                (self.after_password, self.in_value) = (true, true);
            }
            // The text after a bad token cannot be cut into tokens, so all of it is hidden.
            Kind::Bad(_) if self.after_password => self.hide(start..self.text.len()),
            Kind::String if self.after_password => self.hide(start + 1..end - 1),
            Kind::DollarString if self.after_password => self.hide(start + 2..end - 2),
            Kind::Keyword(Keyword::And) | Kind::Semicolon => self.in_value = false,
            Kind::Equal => {}
            _ if self.in_value => self.hide(start..end),
            _ => {}
        }
    }

    fn hide(&mut self, secret: Range<usize>) {
        if !secret.is_empty() {
            self.found.push(secret);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_hidden_and_the_rest_is_not() {
        let cases = [
            (
                "CREATE ROLE bob WITH PASSWORD = 'it''s secret' AND LOGIN = true",
                "CREATE ROLE bob WITH PASSWORD = '***' AND LOGIN = true",
            ),
            (
                "alter user bob with password $$secret$$ superuser",
                "alter user bob with password $$***$$ ***",
            ),
            (
                "ALTER ROLE bob WITH LOGIN = true AND HASHED PASSWORD = '$2a$10$x'",
                "ALTER ROLE bob WITH LOGIN = true AND HASHED PASSWORD = '***'",
            ),
            ("CREATE ROLE bob", "CREATE ROLE bob"),
            (
                "CREATE ROLE bob WITH PASSWORD = ''",
                "CREATE ROLE bob WITH PASSWORD = ''",
            ),
            (
                "SELECT password FROM t WHERE password = 'x'",
                "SELECT password FROM t WHERE password = 'x'",
            ),
        ];
        for (text, hidden) in cases {
            assert_eq!(hide_secrets(text), hidden);
        }
    }

    #[test]
    fn what_does_not_parse_hides_its_passwords_too() {
        let cases = [
            "CRATE ROLE bob WITH PASSWORD = 'secret'",
            "CREATE ROLE bob WITH PASSWORD = secret-word",
            "CREATE ROLE bob WITH PASSWORD = 'secret",
            "CREATE ROLE bob WITH PASSWORD = \u{e9}secret",
            "CREATE ROLE bob WITH PASSWORD = \"secret\"",
            "CREATE ROLE bob WITH PASSWORD 'x' OPTIONS 'secret'",
            "SELECT 1; CREATE ROLE bob WITH PASSWORD = 'secret'",
            "with password $$secret",
        ];
        for text in cases {
            assert!(!hide_secrets(text).contains("secret"), "{text}");
            let masked = mask_secrets(text);
            assert!(!masked.contains("secret"), "{text}");
            assert_eq!(masked.len(), text.len());
            if let Err(error) = crate::parse(text) {
                assert!(!error.to_string().contains("secret"), "{error}");
            }
        }
    }

    /// Typing errors anywhere: one character is replaced, added or left out.
    #[test]
    fn a_statement_with_a_typing_error_hides_its_password() {
        let text = "CREATE ROLE bob WITH PASSWORD = 'sEcReT' AND OPTIONS = {'a': 'b'} AND LOGIN = true";
        let word = text.find("PASSWORD").unwrap_or_default()..text.find(" = 's").unwrap_or_default();
        let letters: Vec<(usize, char)> = text.char_indices().collect();
        for &(at, letter) in letters.iter().filter(|(at, _)| !word.contains(at)) {
            let (before, after) = (&text[..at], &text[at + letter.len_utf8()..]);
            for typed in [
                "",
                "'",
                "''",
                "\"",
                "$$",
                "\u{e9}",
                "\n",
                "-- ",
                "/*",
                "*/",
                ";",
                "x",
                "\u{1f600}",
            ] {
                let wrong = format!("{before}{typed}{after}");
                let masked = mask_secrets(&wrong);
                assert_eq!(masked.len(), wrong.len(), "{wrong}");
                let is_in_comment = typed == "-- " || typed == "/*";
                // What is before PASSWORD may turn it into a part of a string or of a comment, which is no secret's place.
                let is_told = at > word.end && !is_in_comment;
                if is_told && !(word.end..word.end + 12).contains(&at) {
                    assert!(!hide_secrets(&wrong).contains("sEcReT"), "{wrong}");
                    if let Err(error) = crate::parse(&wrong) {
                        assert!(!error.to_string().contains("sEcReT"), "{error}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_prefix_of_a_statement_hides_what_it_has_of_the_password() {
        let text = "ALTER ROLE bob WITH PASSWORD = 'sEcReT' AND LOGIN = false";
        for (end, _) in text.char_indices() {
            let start = &text[..end];
            assert!(!hide_secrets(start).contains("sE"), "{start}");
            if let Err(error) = crate::parse(start) {
                assert!(!error.to_string().contains("sE"), "{error}");
            }
        }
    }
}
