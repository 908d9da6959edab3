//! Shapes: statements without their values, white space and case.

use crate::keyword::Keyword;
use crate::lexer::Lexer;
use crate::token::{Kind, Token};

/// Longer shapes are cut.
const LENGTH_MAX: usize = 2000;

/// The statement with `?` for each literal, one value for a whole collection or `IN`, and normalized words, names and spaces.
/// `None` if the text cannot be cut into tokens.
///
/// For comparing and reading, not for parsing: shortened lists end with `...`.
pub fn shape(text: &str) -> Option<String> {
    let mut writer = Writer {
        text,
        out: String::with_capacity(text.len().min(LENGTH_MAX)),
        open: Vec::new(),
        before: None,
    };
    let mut lexer = Lexer::new(text);
    loop {
        let token = lexer.scan();
        match token.kind {
            Kind::Hidden => {}
            Kind::End => break,
            Kind::Bad(_) => return None,
            _ => writer.take(token),
        }
        if writer.out.len() > LENGTH_MAX {
            writer.out.push_str(" ...");
            break;
        }
    }
    Some(writer.finish())
}

/// A bracket that is still open.
struct Open {
    /// True for a list: only the first of its items is written.
    is_list: bool,
    is_brace: bool,
    /// True after the first item of a list: the other items are not written.
    is_cut: bool,
}

struct Writer<'t> {
    text: &'t str,
    out: String,
    open: Vec<Open>,
    /// The last token that was written.
    before: Option<Kind>,
}

impl Writer<'_> {
    fn take(&mut self, token: Token) {
        let kind = token.kind;
        let is_closing = matches!(kind, Kind::CloseParen | Kind::CloseBracket | Kind::CloseBrace);
        let is_in_cut = |open: &[Open]| open.iter().any(|bracket| bracket.is_cut);
        if is_closing {
            let was_nested = is_in_cut(self.open.split_last().map_or(&[], |(_, outer)| outer));
            self.open.pop();
            if !was_nested {
                self.write(token);
            }
            return;
        }
        if !is_in_cut(&self.open) {
            match (kind, self.open.last_mut()) {
                (Kind::Comma, Some(list)) if list.is_list => {
                    list.is_cut = true;
                    self.out.push_str(", ...");
                }
                _ => self.write(token),
            }
        }
        if matches!(
            kind,
            Kind::OpenParen | Kind::ExprOpen | Kind::OpenBracket | Kind::OpenBrace
        ) {
            let is_in = self.before_last_was_in();
            self.open.push(Open {
                is_list: matches!(kind, Kind::OpenBracket | Kind::OpenBrace) || is_in,
                is_brace: kind == Kind::OpenBrace,
                is_cut: false,
            });
        }
    }

    /// True if the last bracket opens the list of an IN.
    fn before_last_was_in(&self) -> bool {
        self.before == Some(Kind::OpenParen) && self.out.ends_with("IN (")
    }

    fn write(&mut self, token: Token) {
        let kind = token.kind;
        if self.before.is_some_and(|before| self.is_apart(before, kind)) {
            self.out.push(' ');
        }
        let text = &self.text[token.start as usize..token.end as usize];
        match kind {
            _ if self.is_value(kind) => self.out.push('?'),
            Kind::Keyword(word) if self.is_loud(word) => self.out.push_str(&text.to_ascii_uppercase()),
            Kind::QuotedName => self.out.push_str(text),
            _ => self.out.push_str(&text.to_ascii_lowercase()),
        }
        self.before = Some(kind);
    }

    fn is_value(&self, kind: Kind) -> bool {
        let is_not_null =
            kind == Kind::Keyword(Keyword::Null) && self.before == Some(Kind::Keyword(Keyword::Not));
        kind.is_literal() && !is_not_null
    }

    /// True if a word is written in upper case: words that cannot be names, and some that rarely are.
    fn is_loud(&self, word: Keyword) -> bool {
        use Keyword as K;
        match word {
            K::Token => false,
            K::As | K::Contains | K::Distinct | K::Exists | K::Filtering | K::Group | K::Json => true,
            K::Like | K::Partition | K::Per | K::Values => true,
            K::Ttl | K::Timestamp => self.before == Some(Kind::Keyword(K::Using)),
            _ => !word.is_name(),
        }
    }

    /// True if a space separates two tokens.
    fn is_apart(&self, before: Kind, after: Kind) -> bool {
        let is_in_brace = self.open.last().is_some_and(|open| open.is_brace);
        match (before, after) {
            (_, Kind::Comma | Kind::CloseParen | Kind::CloseBracket | Kind::CloseBrace) => false,
            (_, Kind::Semicolon | Kind::Dot | Kind::Range) => false,
            (Kind::OpenParen | Kind::ExprOpen | Kind::OpenBracket | Kind::OpenBrace, _) => false,
            (Kind::Dot | Kind::Range, _) => false,
            (_, Kind::Colon) => !is_in_brace,
            (Kind::Colon, _) => is_in_brace,
            (Kind::Identifier | Kind::QuotedName, Kind::OpenParen | Kind::OpenBracket) => false,
            (Kind::CloseParen | Kind::CloseBracket, Kind::OpenBracket) => false,
            (Kind::Keyword(word), Kind::OpenParen | Kind::OpenBracket) => self.is_loud(word),
            _ => true,
        }
    }

    fn finish(mut self) -> String {
        let length = self.out.trim_end_matches([';', ' ']).len();
        self.out.truncate(length);
        self.out
    }
}
