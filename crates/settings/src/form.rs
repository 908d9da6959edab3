//! Parses and prints values of settings: durations, sizes and rates as in Cassandra 4.1 and later, and plain words.
//!
//! ```text
//! duration := digits ("d" | "h" | "m" | "s" | "ms" | "us" | "ns")
//! size     := digits ("B" | "KiB" | "MiB" | "GiB")        rate := size "/s"
//! ```

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use ilion_auth::Secret;
use tracing_subscriber::filter::Targets;

/// A value that is parsed from text and printed as text.
pub(crate) trait Form: Sized {
    /// Parses a text. The error is a description of what was expected.
    fn parse(text: &str) -> Result<Self, String>;
    /// Prints a text that parses to this value.
    fn print(&self) -> String;
}

/// A number of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Size(pub u64);

/// Bytes per second; 0 is unlimited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rate(pub u64);

/// A limit; `None` is no limit, which is written as -1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limit(pub Option<u64>);

/// Permissions that files and directories do not get, as a shell's `umask` prints them: three octal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Umask(pub u32);

impl Form for Umask {
    fn parse(text: &str) -> Result<Self, String> {
        // Fewer digits are accepted, since YAML drops leading zeros.
        let is_octal =
            (1..=4).contains(&text.len()) && text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
        let umask = u32::from_str_radix(text, 8).ok().filter(|_| is_octal);
        // The owner must keep access to the files.
        umask
            .filter(|umask| umask & !0o077 == 0)
            .map(Self)
            .ok_or_else(|| "three octal digits from 000 to 077".to_owned())
    }

    fn print(&self) -> String {
        format!("{:03o}", self.0)
    }
}

/// A list of words; `none` is the empty list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(pub Vec<String>);

impl Form for Names {
    fn parse(text: &str) -> Result<Self, String> {
        let is_word = |word: &&str| !word.is_empty() && *word != "none";
        let words = text.split(',').map(str::trim).filter(is_word);
        Ok(Self(words.map(str::to_owned).collect()))
    }

    fn print(&self) -> String {
        match self.0.is_empty() {
            true => "none".to_owned(),
            false => self.0.join(", "),
        }
    }
}

const SIZE_UNITS: [(&str, u64); 4] = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("B", 1)];

const DURATION_UNITS: [(&str, u64); 7] = [
    ("ms", 1_000_000),
    ("us", 1_000),
    ("ns", 1),
    ("s", 1_000_000_000),
    ("m", 60 * 1_000_000_000),
    ("h", 3600 * 1_000_000_000),
    ("d", 86_400 * 1_000_000_000),
];

/// Parses digits with a unit.
fn parse_quantity(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let (digits, factor) = units
        .iter()
        .find_map(|(unit, factor)| Some((text.strip_suffix(unit)?, *factor)))?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(factor)
}

/// Prints with the largest unit that divides the quantity.
fn print_quantity(quantity: u64, units: &[(&str, u64)], zero: &str) -> String {
    let largest = units
        .iter()
        .filter(|(_, factor)| quantity != 0 && quantity.is_multiple_of(*factor))
        .max_by_key(|(_, factor)| *factor);
    match largest {
        Some((unit, factor)) => format!("{}{unit}", quantity / factor),
        None => zero.to_owned(),
    }
}

impl Form for Size {
    fn parse(text: &str) -> Result<Self, String> {
        parse_quantity(text, &SIZE_UNITS)
            .map(Self)
            .ok_or_else(|| "a size like 16MiB (units B, KiB, MiB, GiB)".to_owned())
    }

    fn print(&self) -> String {
        print_quantity(self.0, &SIZE_UNITS, "0B")
    }
}

impl Form for Rate {
    fn parse(text: &str) -> Result<Self, String> {
        text.strip_suffix("/s")
            .and_then(|size| parse_quantity(size, &SIZE_UNITS))
            .map(Self)
            .ok_or_else(|| "a rate like 64MiB/s (units B/s, KiB/s, MiB/s, GiB/s)".to_owned())
    }

    fn print(&self) -> String {
        format!("{}/s", Size(self.0).print())
    }
}

/// Parses a duration in the syntax of settings.
///
/// # Errors
/// The error is a description of what was expected.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    Form::parse(text)
}

/// Parses a size in the syntax of settings.
///
/// # Errors
/// The error is a description of what was expected.
pub fn parse_size(text: &str) -> Result<Size, String> {
    Form::parse(text)
}

impl Form for Duration {
    fn parse(text: &str) -> Result<Self, String> {
        parse_quantity(text, &DURATION_UNITS)
            .map(Self::from_nanos)
            .ok_or_else(|| "a duration like 10s (units d, h, m, s, ms, us, ns)".to_owned())
    }

    fn print(&self) -> String {
        let nanos = u64::try_from(self.as_nanos()).unwrap_or(u64::MAX);
        print_quantity(nanos, &DURATION_UNITS, "0s")
    }
}

impl Form for Limit {
    fn parse(text: &str) -> Result<Self, String> {
        if text == "-1" {
            return Ok(Self(None));
        }
        text.parse()
            .map(|count| Self(Some(count)))
            .map_err(|_| "a count, or -1 for no limit".to_owned())
    }

    fn print(&self) -> String {
        self.0.map_or("-1".to_owned(), |count| count.to_string())
    }
}

impl Form for String {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("a text that is not empty".to_owned()),
            text => Ok(text.to_owned()),
        }
    }

    fn print(&self) -> String {
        self.clone()
    }
}

impl Form for PathBuf {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "" => Err("a path".to_owned()),
            text => Ok(Self::from(text)),
        }
    }

    fn print(&self) -> String {
        self.display().to_string()
    }
}

impl Form for bool {
    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "true or false".to_owned())
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

impl Form for Secret {
    fn parse(text: &str) -> Result<Self, String> {
        Ok(Self::new(text))
    }

    fn print(&self) -> String {
        "(hidden)".to_owned()
    }
}

/// A filter of log events, in the syntax of `tracing`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFilter(pub String);

impl LogFilter {
    /// The parsed filter; `None` if the text is no filter.
    pub fn targets(&self) -> Option<Targets> {
        let parts: Vec<&str> = self.0.split(',').map(str::trim).collect();
        parts.join(",").parse().ok()
    }
}

const LOG_LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

impl Form for LogFilter {
    fn parse(text: &str) -> Result<Self, String> {
        // `tracing` would take any other word for the name of a module, and then log almost no events.
        let is_known = |part: &str| {
            part.contains('=')
                || part.starts_with("ilion")
                || LOG_LEVELS.iter().any(|level| level.eq_ignore_ascii_case(part))
        };
        let filter = Self(text.to_owned());
        let is_filter = text.split(',').map(str::trim).all(is_known) && filter.targets().is_some();
        is_filter.then_some(filter).ok_or_else(|| {
            let levels = LOG_LEVELS.join(", ");
            format!("a level ({levels}) or a filter like ilion_server=debug,info")
        })
    }

    fn print(&self) -> String {
        self.0.clone()
    }
}

/// Parses an IP address or `localhost`.
///
/// # Errors
/// The text is no address; the error is a description of what was expected.
pub fn parse_address(text: &str) -> Result<IpAddr, String> {
    match text {
        "localhost" => Ok(IpAddr::from([127, 0, 0, 1])),
        text => text
            .parse()
            .map_err(|_| "an IP address; names other than localhost are not resolved".to_owned()),
    }
}

impl Form for IpAddr {
    fn parse(text: &str) -> Result<Self, String> {
        parse_address(text)
    }

    fn print(&self) -> String {
        self.to_string()
    }
}

macro_rules! number_form {
    ($($number:ty),+) => {$(
        impl Form for $number {
            fn parse(text: &str) -> Result<Self, String> {
                text.parse()
                    .map_err(|_| format!("a number from {} to {}", <$number>::MIN, <$number>::MAX))
            }

            fn print(&self) -> String {
                self.to_string()
            }
        }
    )+};
}

number_form!(u16, u32, u64, usize, NonZeroU32);

/// `auto` is `None`: the value follows from the machine or from another setting.
impl<T: Form> Form for Option<T> {
    fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(None),
            text => T::parse(text)
                .map(Some)
                .map_err(|expected| format!("{expected}, or auto")),
        }
    }

    fn print(&self) -> String {
        self.as_ref().map_or("auto".to_owned(), Form::print)
    }
}

/// Declares an enumeration whose values have fixed names.
macro_rules! choices {
    ($name:ident, $doc:literal, { $($(#[doc = $value_doc:literal])+ $variant:ident = $text:literal),+ $(,)? }) => {
        #[doc = $doc]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        pub enum $name {
            #[default]
            $($(#[doc = $value_doc])+ $variant),+
        }

        impl Form for $name {
            fn parse(text: &str) -> Result<Self, String> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err(format!("one of {}", [$($text),+].join(", "))),
                }
            }

            fn print(&self) -> String {
                match self {
                    $(Self::$variant => $text.to_owned()),+
                }
            }
        }
    };
}
