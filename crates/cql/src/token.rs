//! The tokens of a text.

use crate::keyword::Keyword;

/// A piece of the text: bytes `start..end`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Token {
    pub(crate) kind: Kind,
    pub(crate) start: u32,
    pub(crate) end: u32,
}

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Keyword(Keyword),
    /// An unquoted name that is not a keyword.
    Identifier,
    /// `"name"`, not empty.
    QuotedName,
    /// `""`
    EmptyQuotedName,
    /// `'text'`
    String,
    /// `$$text$$`
    DollarString,
    Integer,
    Float,
    Duration,
    Uuid,
    Hex,
    /// `-NaN`
    NegativeNan,
    /// `-Infinity`
    NegativeInfinity,
    /// `expr(`, one token as in Cassandra
    ExprOpen,
    OpenParen,
    CloseParen,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    Comma,
    Semicolon,
    Colon,
    Dot,
    /// `..`
    Range,
    Question,
    Star,
    Plus,
    Minus,
    Slash,
    Percent,
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    PlusEqual,
    MinusEqual,
    /// White space or a comment; the parser never sees it.
    Hidden,
    /// The end of the text.
    End,
    /// An invalid token. Its end is the position of the fault. It is the last token.
    Bad(BadToken),
}

/// Why a token is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BadToken {
    /// No token starts with this character.
    Character,
    /// Another character is required here, for example a closing quote.
    Expecting(u8),
}

impl Kind {
    /// True if it may name a column, table or keyspace.
    pub(crate) fn is_name(self) -> bool {
        match self {
            Self::Identifier | Self::QuotedName => true,
            Self::Keyword(keyword) => keyword.is_name(),
            _ => false,
        }
    }

    /// True if it may name a function.
    pub(crate) fn is_function_name(self) -> bool {
        match self {
            Self::Identifier | Self::QuotedName => true,
            Self::Keyword(keyword) => keyword.is_function_name(),
            _ => false,
        }
    }

    /// True if it is a constant or null by itself.
    pub(crate) fn is_literal(self) -> bool {
        matches!(
            self,
            Self::String
                | Self::DollarString
                | Self::Integer
                | Self::Float
                | Self::Duration
                | Self::Uuid
                | Self::Hex
                | Self::NegativeNan
                | Self::NegativeInfinity
                | Self::Keyword(
                    Keyword::Null | Keyword::True | Keyword::False | Keyword::Nan | Keyword::Infinity
                )
        )
    }

    /// The name of a missing token in messages.
    pub(crate) fn name(self) -> String {
        let name = match self {
            Self::Keyword(keyword) => return keyword.token_name(),
            Self::Identifier => "IDENT",
            Self::QuotedName => "QUOTED_NAME",
            Self::EmptyQuotedName => "EMPTY_QUOTED_NAME",
            Self::String | Self::DollarString => "STRING_LITERAL",
            Self::Integer => "INTEGER",
            Self::Float => "FLOAT",
            Self::Duration => "DURATION",
            Self::Uuid => "UUID",
            Self::Hex => "HEXNUMBER",
            Self::NegativeNan => "K_NEGATIVE_NAN",
            Self::NegativeInfinity => "K_NEGATIVE_INFINITY",
            Self::ExprOpen => "'expr('",
            Self::OpenParen => "'('",
            Self::CloseParen => "')'",
            Self::OpenBracket => "'['",
            Self::CloseBracket => "']'",
            Self::OpenBrace => "'{'",
            Self::CloseBrace => "'}'",
            Self::Comma => "','",
            Self::Semicolon => "';'",
            Self::Colon => "':'",
            Self::Dot => "'.'",
            Self::Range => "RANGE",
            Self::Question => "QMARK",
            Self::Star => "'*'",
            Self::Plus => "'+'",
            Self::Minus => "'-'",
            Self::Slash => "'/'",
            Self::Percent => "'%'",
            Self::Equal => "'='",
            Self::NotEqual => "'!='",
            Self::Less => "'<'",
            Self::LessOrEqual => "'<='",
            Self::Greater => "'>'",
            Self::GreaterOrEqual => "'>='",
            Self::PlusEqual => "'+='",
            Self::MinusEqual => "'-='",
            Self::End => "EOF",
            Self::Hidden | Self::Bad(_) => "",
        };
        name.into()
    }
}
