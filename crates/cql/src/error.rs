//! Why a text is not CQL.

/// The text is not a statement. A retry does not help: its author must change it.
///
/// `Display` prints the message that Cassandra sends, as `line 1:7 no viable alternative at input 'FORM' (SELECT [FORM]...)`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct Error {
    /// Whether the text breaks the grammar, or a rule beyond it.
    pub kind: ErrorKind,
    /// Line of the offending token, from 1; 0 if the text ended too early, or if there is no position.
    pub line: u32,
    /// Characters before the offending token in its line; -1 if the text ended too early.
    pub column: i32,
    /// The message without the position; the offending token is in brackets, with its neighbours.
    pub message: String,
}

/// The kind of an `Error`, which selects the error code of the native protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A syntax error (0x2000), with a position in front of the message.
    Syntax,
    /// A syntax error (0x2000) without a position.
    Rule,
    /// An invalid request (0x2200) without a position.
    Invalid,
}

impl Error {
    fn text(&self) -> String {
        match self.kind {
            ErrorKind::Syntax => format!("line {}:{} {}", self.line, self.column, self.message),
            ErrorKind::Rule | ErrorKind::Invalid => self.message.clone(),
        }
    }
}
