//! Lua patterns (section 6.4.1 of the manual of Lua 5.4), each step paid for. The matcher of Lua's library may backtrack almost
//! for ever, and Lua does not count its steps as instructions.

use crate::fuel::Fuel;

const CAPTURES_MAX: usize = 32;
/// How deep the items of a pattern may nest.
const DEPTH_MAX: usize = 200;

/// The text that a pair of parentheses matched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Capture {
    /// The start of a capture that is not closed yet.
    Open(usize),
    /// Start and end of the captured text.
    Text(usize, usize),
    /// `()`: a position, from 0.
    Place(usize),
}

/// A pattern being matched against a text.
pub(crate) struct Matcher<'a> {
    text: &'a [u8],
    pattern: &'a [u8],
    fuel: &'a Fuel,
    captures: Vec<Capture>,
}

type Step = mlua::Result<Option<usize>>;

impl<'a> Matcher<'a> {
    pub(crate) fn new(text: &'a [u8], pattern: &'a [u8], fuel: &'a Fuel) -> Self {
        Self {
            text,
            pattern,
            fuel,
            captures: Vec::new(),
        }
    }

    /// Matches the pattern from the item at byte `item` on against the text from `start` on; returns the end of the match, or `None`.
    pub(crate) fn match_at(&mut self, start: usize, item: usize) -> Step {
        self.captures.clear();
        self.run(start, item, 0)
    }

    /// The captures of the last match.
    pub(crate) fn captures(&self) -> &[Capture] {
        &self.captures
    }

    /// Pays for comparing one byte of the text with a pattern item of `item_len` bytes.
    fn pay(&self, item_len: usize) -> mlua::Result<()> {
        let steps = u32::try_from(item_len / 4).unwrap_or(u32::MAX);
        Ok(self.fuel.burn(steps.saturating_add(1))?)
    }

    fn run(&mut self, mut at: usize, mut item: usize, depth: usize) -> Step {
        if depth > DEPTH_MAX {
            return Err(refused("pattern too complex"));
        }
        loop {
            self.pay(0)?;
            let Some(&first) = self.pattern.get(item) else {
                return Ok(Some(at));
            };
            match (first, self.pattern.get(item + 1)) {
                (b'(', Some(b')')) => return self.open(Capture::Place(at), at, item + 2, depth),
                (b'(', _) => return self.open(Capture::Open(at), at, item + 1, depth),
                (b')', _) => return self.close(at, item + 1, depth),
                (b'$', None) => return Ok((at == self.text.len()).then_some(at)),
                (b'%', Some(b'b')) => match self.balanced(at, item + 2)? {
                    Some(end) => (at, item) = (end, item + 4),
                    None => return Ok(None),
                },
                (b'%', Some(b'f')) => {
                    let set = item + 2;
                    if self.pattern.get(set) != Some(&b'[') {
                        return Err(refused("missing '[' after '%f' in pattern"));
                    }
                    let end = self.end_of_class(set)?;
                    self.pay(end - set)?;
                    let before = at.checked_sub(1).map_or(0, |before| self.text[before]);
                    let here = self.text.get(at).copied().unwrap_or(0);
                    if self.in_set(before, set, end) || !self.in_set(here, set, end) {
                        return Ok(None);
                    }
                    item = end;
                }
                (b'%', Some(digit)) if digit.is_ascii_digit() => match self.again(at, *digit)? {
                    Some(end) => (at, item) = (end, item + 2),
                    None => return Ok(None),
                },
                _ => {
                    let end = self.end_of_class(item)?;
                    self.pay(end - item)?;
                    match self.pattern.get(end) {
                        Some(b'*') => return self.most(at, item, end, 0, depth),
                        Some(b'+') => return self.most(at, item, end, 1, depth),
                        Some(b'-') => return self.least(at, item, end, depth),
                        Some(b'?') => {
                            if self.matches_one(at, item, end)
                                && let Some(found) = self.run(at + 1, end + 1, depth + 1)?
                            {
                                return Ok(Some(found));
                            }
                            item = end + 1;
                        }
                        _ if self.matches_one(at, item, end) => (at, item) = (at + 1, end),
                        _ => return Ok(None),
                    }
                }
            }
        }
    }

    fn open(&mut self, capture: Capture, at: usize, item: usize, depth: usize) -> Step {
        if self.captures.len() >= CAPTURES_MAX {
            return Err(refused("too many captures"));
        }
        let count = self.captures.len();
        self.captures.push(capture);
        let found = self.run(at, item, depth + 1)?;
        if found.is_none() {
            self.captures.truncate(count);
        }
        Ok(found)
    }

    fn close(&mut self, at: usize, item: usize, depth: usize) -> Step {
        let open = self
            .captures
            .iter()
            .rposition(|capture| matches!(capture, Capture::Open(_)));
        let Some((index, Capture::Open(start))) = open.map(|index| (index, self.captures[index])) else {
            return Err(refused("invalid pattern capture"));
        };
        self.captures[index] = Capture::Text(start, at);
        let found = self.run(at, item, depth + 1)?;
        if found.is_none() {
            self.captures[index] = Capture::Open(start);
        }
        Ok(found)
    }

    fn most(&mut self, at: usize, item: usize, end: usize, at_least: usize, depth: usize) -> Step {
        let mut count = 0;
        while self.matches_one(at + count, item, end) {
            self.pay(end - item)?;
            count += 1;
        }
        loop {
            if count < at_least {
                return Ok(None);
            }
            if let Some(found) = self.run(at + count, end + 1, depth + 1)? {
                return Ok(Some(found));
            }
            if count == 0 {
                return Ok(None);
            }
            count -= 1;
        }
    }

    fn least(&mut self, mut at: usize, item: usize, end: usize, depth: usize) -> Step {
        loop {
            if let Some(found) = self.run(at, end + 1, depth + 1)? {
                return Ok(Some(found));
            }
            if !self.matches_one(at, item, end) {
                return Ok(None);
            }
            self.pay(end - item)?;
            at += 1;
        }
    }

    /// `%bxy`: a balanced text from `x` to `y`.
    fn balanced(&mut self, at: usize, item: usize) -> Step {
        let (Some(&open), Some(&close)) = (self.pattern.get(item), self.pattern.get(item + 1)) else {
            return Err(refused("malformed pattern (missing arguments to '%b')"));
        };
        if self.text.get(at) != Some(&open) {
            return Ok(None);
        }
        let mut depth = 1;
        for index in at + 1..self.text.len() {
            self.pay(0)?;
            let byte = self.text[index];
            if byte == close {
                depth -= 1;
                if depth == 0 {
                    return Ok(Some(index + 1));
                }
            } else if byte == open {
                depth += 1;
            }
        }
        Ok(None)
    }

    /// `%1`: the text of an earlier capture.
    fn again(&mut self, at: usize, digit: u8) -> Step {
        let index = usize::from(digit).wrapping_sub(usize::from(b'1'));
        let Some(Capture::Text(from, to)) = self.captures.get(index).copied() else {
            return Err(refused(&format!("invalid capture index %{}", char::from(digit))));
        };
        self.fuel.burn_bytes(to - from)?;
        let taken = &self.text[from..to];
        Ok(self.text[at.min(self.text.len())..]
            .starts_with(taken)
            .then_some(at + taken.len()))
    }

    /// The index after the class that starts at `item`.
    fn end_of_class(&self, item: usize) -> mlua::Result<usize> {
        let missing_bracket = || refused("malformed pattern (missing ']')");
        match self.pattern[item] {
            b'%' if item + 1 >= self.pattern.len() => Err(refused("malformed pattern (ends with '%')")),
            b'%' => Ok(item + 2),
            b'[' => {
                let mut at = item + 1;
                if self.pattern.get(at) == Some(&b'^') {
                    at += 1;
                }
                let first = at;
                loop {
                    match self.pattern.get(at) {
                        None => return Err(missing_bracket()),
                        Some(b']') if at > first => return Ok(at + 1),
                        Some(b'%') => at += 2,
                        Some(_) => at += 1,
                    }
                }
            }
            _ => Ok(item + 1),
        }
    }

    fn matches_one(&self, at: usize, item: usize, end: usize) -> bool {
        let Some(&byte) = self.text.get(at) else {
            return false;
        };
        match self.pattern[item] {
            b'.' => true,
            b'%' => in_class(byte, self.pattern[item + 1]),
            b'[' => self.in_set(byte, item, end),
            literal => literal == byte,
        }
    }

    /// True if the set between `[` at `start` and the end contains the byte.
    fn in_set(&self, byte: u8, start: usize, end: usize) -> bool {
        let mut set = &self.pattern[start + 1..end - 1];
        let negated = set.first() == Some(&b'^');
        if negated {
            set = &set[1..];
        }
        let mut found = false;
        while let Some(&first) = set.first() {
            let taken = match (first, set.get(1), set.get(2)) {
                (b'%', Some(&class), _) => {
                    found |= in_class(byte, class);
                    2
                }
                (from, Some(b'-'), Some(&to)) => {
                    found |= (from..=to).contains(&byte);
                    3
                }
                (literal, ..) => {
                    found |= literal == byte;
                    1
                }
            };
            set = &set[taken..];
        }
        found != negated
    }
}

fn refused(why: &str) -> mlua::Error {
    mlua::Error::runtime(why)
}

fn in_class(byte: u8, class: u8) -> bool {
    let is = match class.to_ascii_lowercase() {
        b'a' => byte.is_ascii_alphabetic(),
        b'c' => byte.is_ascii_control(),
        b'd' => byte.is_ascii_digit(),
        b'g' => byte.is_ascii_graphic(),
        b'l' => byte.is_ascii_lowercase(),
        b'p' => byte.is_ascii_punctuation(),
        b's' => byte.is_ascii_whitespace() || byte == 0x0b,
        b'u' => byte.is_ascii_uppercase(),
        b'w' => byte.is_ascii_alphanumeric(),
        b'x' => byte.is_ascii_hexdigit(),
        _ => return class == byte,
    };
    is != class.is_ascii_uppercase()
}
