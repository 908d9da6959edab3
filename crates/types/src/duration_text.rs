//! Parses durations: `1y2mo3w4d5h6m7s8ms9us10ns`, `P1Y2M3DT4H5M6S`, `P3W`, `P0001-02-03T04:05:06`.
//!
//! A leading minus negates all parts. Units must be in order from large to small, each at most once.

use std::str::FromStr;

use crate::{Duration, Error};

/// The part of a duration to which a unit is added.
#[derive(Clone, Copy)]
enum DurationPart {
    Months,
    Days,
    Nanos,
}

/// The units in order: names (lower case), the part, and the amount that one unit adds to the part.
const UNITS: [(&[&str], DurationPart, i64); 10] = [
    (&["y"], DurationPart::Months, 12),
    (&["mo"], DurationPart::Months, 1),
    (&["w"], DurationPart::Days, 7),
    (&["d"], DurationPart::Days, 1),
    (&["h"], DurationPart::Nanos, 3_600_000_000_000),
    (&["m"], DurationPart::Nanos, 60_000_000_000),
    (&["s"], DurationPart::Nanos, 1_000_000_000),
    (&["ms"], DurationPart::Nanos, 1_000_000),
    (&["us", "\u{b5}s", "\u{3bc}s"], DurationPart::Nanos, 1_000),
    (&["ns"], DurationPart::Nanos, 1),
];
const YEAR: usize = 0;
const MONTH: usize = 1;
const DAY: usize = 3;
const HOUR: usize = 4;
const MINUTE: usize = 5;
const SECOND: usize = 6;

/// The names of units in messages.
const UNIT_NAMES: [&str; UNITS.len()] = [
    "years",
    "months",
    "weeks",
    "days",
    "hours",
    "minutes",
    "seconds",
    "milliseconds",
    "microseconds",
    "nanoseconds",
];

impl FromStr for Duration {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let (negative, body) = match text.strip_prefix('-') {
            Some(body) => (true, body),
            None => (false, text),
        };
        let sum = match body.strip_prefix('P') {
            None if body.is_empty() => Err(Odd::Form),
            None => units(body),
            Some("") => Err(Odd::Form),
            Some(iso) if iso.contains('-') => alternative(iso),
            Some(iso) => iso8601(iso),
        };
        sum.and_then(|sum| sum.finish(negative).ok_or(Odd::Form))
            .map_err(|odd| {
                Error::literal(match odd {
                    Odd::Form => format!("Unable to convert '{text}' to a duration"),
                    Odd::Rule(what) => format!("Invalid duration. {what}"),
                })
            })
    }
}

/// Why a text is not a duration.
enum Odd {
    /// The text has none of the forms.
    Form,
    /// The text breaks the rule in the message.
    Rule(String),
}

#[derive(Default)]
struct Sum {
    months: i64,
    days: i64,
    nanos: i64,
    /// Number of units in the order up to the last one added; the next one must come later.
    passed: usize,
}

impl Sum {
    fn add(&mut self, unit: usize, amount: i64) -> Result<(), Odd> {
        let name = UNIT_NAMES[unit];
        if unit + 1 == self.passed {
            return Err(Odd::Rule(format!("The {name} are specified multiple times")));
        }
        if unit < self.passed {
            let last = UNIT_NAMES[self.passed - 1];
            return Err(Odd::Rule(format!("The {last} should be after {name}")));
        }
        self.passed = unit + 1;
        let (_, part, size) = UNITS[unit];
        let (target, max, what) = match part {
            DurationPart::Months => (&mut self.months, i64::from(i32::MAX), "months"),
            DurationPart::Days => (&mut self.days, i64::from(i32::MAX), "days"),
            DurationPart::Nanos => (&mut self.nanos, i64::MAX, "nanoseconds"),
        };
        let sum = amount
            .checked_mul(size)
            .and_then(|more| more.checked_add(*target));
        // Compat: the real limit of nanoseconds is higher than the one in the message.
        *target = sum.filter(|sum| *sum <= max).ok_or_else(|| {
            Odd::Rule(format!(
                "The total number of {what} must be less or equal to {}",
                i32::MAX
            ))
        })?;
        Ok(())
    }

    fn finish(self, negative: bool) -> Option<Duration> {
        let sign = if negative { -1 } else { 1 };
        let months = i32::try_from(self.months * sign).ok()?;
        let days = i32::try_from(self.days * sign).ok()?;
        Duration::new(months, days, self.nanos * sign)
    }
}

/// Parses the digits at the start; returns the rest.
fn number(text: &str) -> Result<(i64, &str), Odd> {
    let len = text.bytes().take_while(u8::is_ascii_digit).count();
    let number = text[..len].parse().map_err(|_| Odd::Form)?;
    Ok((number, &text[len..]))
}

fn units(mut text: &str) -> Result<Sum, Odd> {
    let mut sum = Sum::default();
    while !text.is_empty() {
        let (amount, rest) = number(text)?;
        let len = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let (name, rest) = rest.split_at(len);
        let name = name.to_lowercase();
        let unit = UNITS
            .iter()
            .position(|(names, ..)| names.contains(&name.as_str()))
            .ok_or(Odd::Form)?;
        sum.add(unit, amount)?;
        text = rest;
    }
    Ok(sum)
}

/// Parses `1Y2M3DT4H5M6S` or `3W`, after the `P`.
fn iso8601(text: &str) -> Result<Sum, Odd> {
    let mut sum = Sum::default();
    if let Some(weeks) = text.strip_suffix('W') {
        let (amount, "") = number(weeks)? else {
            return Err(Odd::Form);
        };
        sum.add(2, amount)?;
        return Ok(sum);
    }
    let (date, time) = match text.split_once('T') {
        Some((_, "")) => return Err(Odd::Form),
        Some(parts) => parts,
        None => (text, ""),
    };
    iso8601_part(date, &[('Y', YEAR), ('M', MONTH), ('D', DAY)], &mut sum)?;
    iso8601_part(time, &[('H', HOUR), ('M', MINUTE), ('S', SECOND)], &mut sum)?;
    Ok(sum)
}

fn iso8601_part(mut text: &str, units: &[(char, usize)], sum: &mut Sum) -> Result<(), Odd> {
    while !text.is_empty() {
        let (amount, rest) = number(text)?;
        let name = rest.chars().next().ok_or(Odd::Form)?;
        let known = units.iter().find(|(known, _)| *known == name);
        let (_, unit) = known.ok_or(Odd::Form)?;
        sum.add(*unit, amount)?;
        text = &rest[name.len_utf8()..];
    }
    Ok(())
}

/// Parses `0001-02-03T04:05:06`, after the `P`.
fn alternative(text: &str) -> Result<Sum, Odd> {
    let mut sum = Sum::default();
    let (date, time) = text.split_once('T').ok_or(Odd::Form)?;
    let groups = date.split('-').chain(time.split(':'));
    let wanted = [
        (4, YEAR),
        (2, MONTH),
        (2, DAY),
        (2, HOUR),
        (2, MINUTE),
        (2, SECOND),
    ];
    let mut found = 0;
    for (group, (len, unit)) in groups.zip(wanted) {
        let (amount, "") = number(group)? else {
            return Err(Odd::Form);
        };
        if group.len() != len {
            return Err(Odd::Form);
        }
        sum.add(unit, amount)?;
        found += 1;
    }
    let complete = found == wanted.len() && text.len() == "0001-02-03T04:05:06".len();
    if complete { Ok(sum) } else { Err(Odd::Form) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read() {
        for (text, printed) in [
            ("1y2mo3w4d5h6m7s8ms9us10ns", "1y2mo25d5h6m7s8ms9us10ns"),
            ("-1Y2MO", "-1y2mo"),
            ("90m", "1h30m"),
            ("1\u{b5}s", "1us"),
            ("P1Y2M3DT4H5M6S", "1y2mo3d4h5m6s"),
            ("PT5M", "5m"),
            ("P3W", "21d"),
            ("-P0001-02-03T04:05:06", "-1y2mo3d4h5m6s"),
            ("0s", ""),
            ("2147483647mo", "178956970y7mo"),
        ] {
            assert_eq!(
                text.parse::<Duration>().map(|d| d.to_string()),
                Ok(printed.into()),
                "{text}"
            );
        }
    }

    #[test]
    fn a_broken_rule_is_said() {
        for (text, what) in [
            ("1d1y", "The days should be after years"),
            ("1h1m1h", "The minutes should be after hours"),
            ("1d1d", "The days are specified multiple times"),
            (
                "200000000y",
                "The total number of months must be less or equal to 2147483647",
            ),
            (
                "2562048h",
                "The total number of nanoseconds must be less or equal to 2147483647",
            ),
        ] {
            let refused = text.parse::<Duration>().unwrap_err().to_string();
            assert_eq!(refused, format!("Invalid duration. {what}"), "{text}");
        }
    }

    #[test]
    fn odd_forms_are_refused() {
        for text in [
            "",
            "-",
            "1",
            "y",
            "1x",
            "1d1y",
            "1d1d",
            "2147483648mo",
            "9223372036854775808ns",
            "P",
            "PT",
            "P1Y2M3",
            "P1M1Y",
            "P3W1D",
            "P0001-02-03",
            "P1-02-03T04:05:06",
            "--1d",
            "1y 2mo",
        ] {
            let parsed = text.parse::<Duration>();
            assert!(parsed.is_err(), "{text}: {parsed:?}");
        }
    }
}
