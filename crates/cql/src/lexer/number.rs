//! Tokens that start with a digit, or look like a number.
//!
//! ```text
//! integer  := '-'? digit+
//! float    := integer ('.' digit*)? (('e' | 'E') ('+' | '-')? digit+)?    not if '..' follows the integer
//! hex      := '0' ('x' | 'X') hexdigit*
//! uuid     := 8 '-' 4 '-' 4 '-' 4 '-' 12 hex digits
//! duration := '-'? (digit+ unit)+          unit := y mo w d h m s ms us ns, in any case, and the micro sign with s
//!           | '-'? 'P' 4 '-' 2 '-' 2 'T' 2 ':' 2 ':' 2 digits
//!           | '-'? 'P' digit+ 'W'
//!           | '-'? 'P' (digit+ ('Y' | 'M' | 'D'))* ('T' (digit+ ('H' | 'M' | 'S'))+)?     in this order
//! ```

use super::Lexer;
use crate::token::Kind;

/// Characters of a UUID.
pub(super) const UUID_LENGTH: usize = 36;
/// The positions of the hyphens in a UUID.
const UUID_HYPHENS: [usize; 4] = [8, 13, 18, 23];
/// The pattern of the ISO 8601 alternative format, after the `P`; `0` is any digit.
const ISO_ALTERNATIVE: &[u8] = b"0000-00-00T00:00:00";

impl Lexer<'_> {
    /// True if a UUID starts here.
    pub(super) fn is_uuid(&self) -> bool {
        // The hyphen is checked first, since most texts fail there.
        self.peek(UUID_HYPHENS[0]) == Some(b'-')
            && self
                .bytes
                .get(self.position..self.position + UUID_LENGTH)
                .is_some_and(|bytes| {
                    bytes.iter().enumerate().all(|(at, byte)| {
                        if UUID_HYPHENS.contains(&at) {
                            *byte == b'-'
                        } else {
                            byte.is_ascii_hexdigit()
                        }
                    })
                })
    }

    pub(super) fn number(&mut self) -> Kind {
        if self.is_uuid() {
            return self.take(UUID_LENGTH, Kind::Uuid);
        }
        let sign = usize::from(self.peek(0) == Some(b'-'));
        let digits_end = self.digits(sign);
        match self.peek(digits_end) {
            Some(b'x' | b'X') if digits_end == 1 && self.peek(0) == Some(b'0') => self.hex(),
            Some(b'.') => self.fraction(digits_end),
            Some(b'e' | b'E') => self.exponent(digits_end, Kind::Integer),
            Some(byte) if byte.is_ascii_alphabetic() || byte == 0xC2 => self.duration(digits_end),
            _ => self.take(digits_end, Kind::Integer),
        }
    }

    /// The end of the digits that start `ahead`. This and `ahead` are offsets from the position.
    fn digits(&self, ahead: usize) -> usize {
        let mut end = ahead;
        while self.peek(end).is_some_and(|byte| byte.is_ascii_digit()) {
            end += 1;
        }
        end
    }

    fn hex(&mut self) -> Kind {
        let mut end = 2;
        while self.peek(end).is_some_and(|byte| byte.is_ascii_hexdigit()) {
            end += 1;
        }
        self.take(end, Kind::Hex)
    }

    fn fraction(&mut self, digits_end: usize) -> Kind {
        let dots = (0..3)
            .take_while(|ahead| self.peek(digits_end + ahead) == Some(b'.'))
            .count();
        match dots {
            // `1..` is an integer and a range, `1...` a float and a range.
            2 => self.take(digits_end, Kind::Integer),
            3 => self.take(digits_end + 1, Kind::Float),
            _ => {
                let end = self.digits(digits_end + 1);
                self.exponent(end, Kind::Float)
            }
        }
    }

    /// Takes an exponent if there is one at `at`; otherwise the number is a `plain`.
    fn exponent(&mut self, at: usize, plain: Kind) -> Kind {
        if !matches!(self.peek(at), Some(b'e' | b'E')) {
            return self.take(at, plain);
        }
        let sign = usize::from(matches!(self.peek(at + 1), Some(b'+' | b'-')));
        let end = self.digits(at + 1 + sign);
        if end == at + 1 + sign {
            self.take(at, plain)
        } else {
            self.take(end, Kind::Float)
        }
    }

    fn duration(&mut self, digits_end: usize) -> Kind {
        let Some(mut end) = self.unit(digits_end) else {
            return self.take(digits_end, Kind::Integer);
        };
        loop {
            let digits_end = self.digits(end);
            match self.unit(digits_end) {
                Some(unit_end) if digits_end > end => end = unit_end,
                _ => return self.take(end, Kind::Duration),
            }
        }
    }

    /// The end of the longest unit of time that starts `ahead`.
    fn unit(&self, ahead: usize) -> Option<usize> {
        let next = self.peek(ahead + 1).map(|byte| byte.to_ascii_lowercase());
        match self.peek(ahead)?.to_ascii_lowercase() {
            b'm' if matches!(next, Some(b'o' | b's')) => Some(ahead + 2),
            b'u' | b'n' if next == Some(b's') => Some(ahead + 2),
            b'y' | b'w' | b'd' | b'h' | b'm' | b's' => Some(ahead + 1),
            // The micro sign, U+00B5.
            0xC2 if next == Some(0xB5) && matches!(self.peek(ahead + 2), Some(b's' | b'S')) => {
                Some(ahead + 3)
            }
            _ => None,
        }
    }

    /// The length of the ISO 8601 duration whose `P` is before `ahead`.
    pub(super) fn iso_duration(&self, ahead: usize) -> Option<usize> {
        if self.is_iso_alternative(ahead) {
            return Some(ahead + ISO_ALTERNATIVE.len());
        }
        let weeks_end = self.digits(ahead);
        if weeks_end > ahead && self.peek(weeks_end) == Some(b'W') {
            return Some(weeks_end + 1);
        }
        let date_end = self.iso_parts(ahead, b"YMD");
        if self.peek(date_end) == Some(b'T') {
            let time_end = self.iso_parts(date_end + 1, b"HMS");
            if time_end > date_end + 1 {
                return Some(time_end);
            }
        }
        (date_end > ahead).then_some(date_end)
    }

    fn is_iso_alternative(&self, ahead: usize) -> bool {
        let start = self.position + ahead;
        self.bytes
            .get(start..start + ISO_ALTERNATIVE.len())
            .is_some_and(|bytes| {
                bytes
                    .iter()
                    .zip(ISO_ALTERNATIVE)
                    .all(|(byte, pattern)| match pattern {
                        b'0' => byte.is_ascii_digit(),
                        _ => byte == pattern,
                    })
            })
    }

    /// The end of the numbers with these designators, in order, that start `ahead`.
    fn iso_parts(&self, ahead: usize, designators: &[u8]) -> usize {
        let mut end = ahead;
        for designator in designators {
            let digits_end = self.digits(end);
            if digits_end > end && self.peek(digits_end) == Some(*designator) {
                end = digits_end + 1;
            }
        }
        end
    }
}
