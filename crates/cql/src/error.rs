//! Why a text is not CQL.

/// The text is not a statement. Sending it again does not help: its author must change it.
///
/// Displays as Cassandra's message does, `line 1:7 no viable alternative at input 'FORM' (SELECT [FORM]...)`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
pub struct Error {
    /// Whether the text breaks the grammar or only a rule that the parser knows.
    pub kind: ErrorKind,
    /// Line of the offending token, from 1; 0 if the text ended too early, or if no place is to blame.
    pub line: u32,
    /// Characters before the offending token in its line; -1 if the text ended too early.
    pub column: i32,
    /// What is wrong, with the offending token in brackets amid its neighbours, but without the position.
    pub message: String,
}

/// What sort of refusal an `Error` is: which error code of the native protocol answers it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// A syntax error (0x2000), with a position in front of the message.
    Syntax,
    /// A syntax error (0x2000) whose message stands alone.
    Rule,
    /// An invalid request (0x2200), whose message stands alone.
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
