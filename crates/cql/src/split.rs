//! Scripts to statements.

use crate::keyword::Keyword;
use crate::lexer::Lexer;
use crate::token::{Kind, Token};

/// Cuts a script at its semicolons, except inside strings, comments and batches.
///
/// Each piece is one statement from its first token to its last, without the semicolon; empty pieces are left out. A last
/// statement without a semicolon is a piece, and so is the rest after an invalid token.
pub fn split_statements(script: &str) -> Vec<&str> {
    let mut lexer = Lexer::new(script);
    let mut pieces = Vec::new();
    let mut piece = Piece::default();
    loop {
        let token = lexer.scan();
        match token.kind {
            Kind::Hidden => {}
            Kind::Semicolon if !piece.is_open_batch() => {
                pieces.extend(std::mem::take(&mut piece).text(script))
            }
            Kind::End => break,
            Kind::Bad(_) => {
                piece.push(Token {
                    end: script.len() as u32,
                    ..token
                });
                break;
            }
            _ => piece.push(token),
        }
    }
    pieces.extend(piece.text(script));
    pieces
}

/// The statement so far.
#[derive(Default)]
struct Piece {
    first: Option<Token>,
    last: Option<Token>,
    /// True after `APPLY BATCH`.
    is_applied: bool,
}

impl Piece {
    fn push(&mut self, token: Token) {
        self.first.get_or_insert(token);
        let follows_apply = self
            .last
            .is_some_and(|last| last.kind == Kind::Keyword(Keyword::Apply));
        self.is_applied |= follows_apply && token.kind == Kind::Keyword(Keyword::Batch);
        self.last = Some(token);
    }

    fn is_open_batch(&self) -> bool {
        !self.is_applied
            && self
                .first
                .is_some_and(|first| first.kind == Kind::Keyword(Keyword::Begin))
    }

    fn text(self, script: &str) -> Option<&str> {
        script.get(self.first?.start as usize..self.last?.end as usize)
    }
}
