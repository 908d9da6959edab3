//! Random bodies of functions: calls of everything that a script can reach, with large and odd arguments.

use std::fmt::Write as _;

/// Small numbers, limits, and indexes that only a table with holes has.
const NUMBERS: [&str; 16] = [
    "0",
    "1",
    "-1",
    "2",
    "7",
    "100",
    "4000",
    "60000",
    "1 << 20",
    "1 << 40",
    "1 << 62",
    "math.maxinteger",
    "math.mininteger",
    "0.5",
    "1e308",
    "0/0",
];
/// Texts: empty, short, long; of one byte, of NUL (which compares slowest), of digits; patterns that backtrack.
const TEXTS: [&str; 20] = [
    "''",
    "'x'",
    "'%'",
    "'%p %s %d'",
    "'.-.-.-.-y'",
    "'(.*)(.*)(.*)z'",
    "'%b()'",
    "'%f[%w]'",
    "'[^x]*'",
    "('%.0s'):rep(500)",
    "('%s'):rep(200)",
    "('a'):rep(1000)",
    "('a'):rep(300000)",
    "('\\0'):rep(300000)",
    "('\\0'):rep(2000000)",
    "('9'):rep(100000)",
    "('\u{e4}'):rep(50000)",
    "('('):rep(3000)",
    "('.*'):rep(40)",
    "'[' .. ('a'):rep(100000) .. ']'",
];
/// Tables: lists, references to one long text, holes that make `#` wrong, cycles, doubling trees.
const TABLES: [&str; 12] = [
    "{}",
    "{3, 1, 2}",
    "fill(1000, 1)",
    "fill(60000, 1)",
    "fill(60000, 'x')",
    "fill(60000, ('a'):rep(200000))",
    "mixed(60000, ('\\0'):rep(200000), ('\\0'):rep(200001))",
    "holes()",
    "cycle()",
    "tree(60)",
    "fill(2000, {})",
    "string",
];
const FUNCTIONS: [&str; 12] = [
    "function() while true do end end",
    "function(a, b) return a < b end",
    "function() return true end",
    "function() return 'x' end",
    "tostring",
    "type",
    "string.upper",
    "string.rep",
    "math.ult",
    "select",
    "next",
    "function(a) return f(a) end",
];
const CALLED: [&str; 46] = [
    "assert",
    "error",
    "ipairs",
    "next",
    "pairs",
    "select",
    "tonumber",
    "tostring",
    "type",
    "string.byte",
    "string.char",
    "string.find",
    "string.format",
    "string.gmatch",
    "string.gsub",
    "string.len",
    "string.lower",
    "string.match",
    "string.rep",
    "string.reverse",
    "string.sub",
    "string.upper",
    "table.concat",
    "table.insert",
    "table.pack",
    "table.remove",
    "table.sort",
    "table.unpack",
    "utf8.char",
    "utf8.codepoint",
    "utf8.codes",
    "utf8.len",
    "utf8.offset",
    "math.max",
    "math.min",
    "math.fmod",
    "math.floor",
    "math.tointeger",
    "math.type",
    "math.ult",
    "string.find",
    "string.gsub",
    "string.format",
    "table.sort",
    "table.insert",
    "table.remove",
];
/// Operators on two values.
const OPERATORS: [&str; 12] = ["..", "<", "<=", "==", "+", "%", "//", "~", "and", "or", "^", "-"];

const PRELUDE: &str = "\
local function fill(n, v) local t = {} for i = 1, n do t[i] = v end return t end
local function mixed(n, v, w) local t = {} for i = 1, n, 2 do t[i] = v t[i + 1] = w end return t end
local function holes() return {HOLES} end
local function cycle() local t = {} t[1] = t return t end
local function tree(n) local t = {} for _ = 1, n do t = {t, t} end return t end
local f
f = function(...) return select('#', ...) end
";

/// The random numbers of a seed.
pub struct Chance(u64);

impl Chance {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % end
    }

    fn one_of(&mut self, choices: &[&'static str]) -> &'static str {
        choices[self.below(choices.len())]
    }
}

/// A body with a few statements, some of which never end.
pub fn body(chance: &mut Chance) -> String {
    // A constructor reserves room for all of its keys, so that none goes into the array part.
    let entries: Vec<String> = (0..63).map(|power| format!("[1 << {power}] = 1")).collect();
    let mut body = PRELUDE.replace("HOLES", &entries.join(", "));
    for name in ["a", "b", "c"] {
        let value = value(chance);
        let _ = writeln!(body, "local {name} = {value}");
    }
    for _ in 0..=chance.below(3) {
        let statement = statement(chance);
        let repeats = chance.one_of(&["", "", "for _ = 1, 50 do ", "while true do "]);
        let end = if repeats.is_empty() { "" } else { " end" };
        let _ = writeln!(body, "{repeats}{statement}{end}");
    }
    let returned = chance.one_of(&["a", "b", "c", "tostring(a)", "{a, b, c}", "tree(40)", "_ENV"]);
    let _ = write!(body, "do return {returned} end");
    body
}

fn statement(chance: &mut Chance) -> String {
    match chance.below(8) {
        0 => format!("_ENV = {}", chance.one_of(&TABLES)),
        1 => format!(
            "c = {} {} {}",
            operand(chance),
            chance.one_of(&OPERATORS),
            operand(chance)
        ),
        2 => format!("local t = {{}} t[{}] = {}", operand(chance), operand(chance)),
        3 => format!(
            "for x, y in {} do b = x end",
            chance.one_of(&["pairs(a)", "ipairs(b)", "a:gmatch(b)", "utf8.codes(c)", "next, a"])
        ),
        _ => {
            let arguments: Vec<&str> = (0..chance.below(5)).map(|_| operand(chance)).collect();
            format!(
                "{} = {}({})",
                chance.one_of(&["a", "b", "c"]),
                chance.one_of(&CALLED),
                arguments.join(", ")
            )
        }
    }
}

fn operand(chance: &mut Chance) -> &'static str {
    match chance.below(8) {
        0 => chance.one_of(&NUMBERS),
        1 => chance.one_of(&TEXTS),
        2 => chance.one_of(&FUNCTIONS),
        3 => "table.unpack(a)",
        _ => chance.one_of(&["a", "b", "c"]),
    }
}

fn value(chance: &mut Chance) -> &'static str {
    match chance.below(6) {
        0 => chance.one_of(&NUMBERS),
        1 => chance.one_of(&FUNCTIONS),
        2 | 3 => chance.one_of(&TEXTS),
        _ => chance.one_of(&TABLES),
    }
}
