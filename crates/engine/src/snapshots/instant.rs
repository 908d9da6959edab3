//! Instants in the form of Cassandra's manifests and tools: `2026-11-23T23:16:45.252Z`. Pure.

use ilion_types::{days_from_civil, print_timestamp};

const MILLIS_PER_DAY: i64 = 86_400_000;

/// Prints milliseconds since 1970.
pub fn print_instant(millis: i64) -> String {
    let mut text = String::new();
    print_timestamp(millis, 'T', &mut text);
    text
}

/// Parses an instant in UTC, as milliseconds since 1970; smaller digits are cut. `None` if the text is not an instant.
pub fn parse_instant(text: &str) -> Option<i64> {
    let (date, time) = text.strip_suffix('Z')?.split_once('T')?;
    let [year, month, day] = numbers(date, '-', [4, 2, 2])?;
    let (time, fraction) = time.split_once('.').unwrap_or((time, "0"));
    let [hour, minute, second] = numbers(time, ':', [2, 2, 2])?;
    let is_number = !fraction.is_empty() && fraction.len() <= 9;
    if !is_number || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let millis: i64 = format!("{fraction:0<3}")[..3].parse().ok()?;
    let is_valid = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60;
    if !is_valid || second > 59 {
        return None;
    }
    let days = days_from_civil(year, month, day);
    Some(days * MILLIS_PER_DAY + ((hour * 60 + minute) * 60 + second) * 1000 + millis)
}

/// Parses three numbers with these counts of digits.
fn numbers(text: &str, separator: char, digits: [usize; 3]) -> Option<[i64; 3]> {
    let mut parts = text.split(separator);
    let mut numbers = [0; 3];
    for (number, digits) in numbers.iter_mut().zip(digits) {
        let part = parts.next()?;
        let is_number = part.len() == digits && part.bytes().all(|byte| byte.is_ascii_digit());
        *number = part.parse().ok().filter(|_| is_number)?;
    }
    parts.next().is_none().then_some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_printed_and_parsed() {
        for (millis, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (1_795_475_805_252, "2026-11-23T23:16:45.252Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
        ] {
            assert_eq!(print_instant(millis), text);
            assert_eq!(parse_instant(text), Some(millis));
        }
        assert_eq!(parse_instant("2026-11-23T23:16:45Z"), Some(1_795_475_805_000));
        assert_eq!(
            parse_instant("2026-11-23T23:16:45.252999Z"),
            Some(1_795_475_805_252)
        );
        for text in [
            "",
            "2026-11-23",
            "2026-13-23T23:16:45Z",
            "2026-11-23T23:16:45",
            "2026-11-23T25:16:45Z",
            "T Z",
            "2026-11-23T23:16:45.Z",
        ] {
            assert_eq!(parse_instant(text), None, "{text}");
        }
    }
}
