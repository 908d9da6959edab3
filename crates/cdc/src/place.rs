//! Where a consumer begins to read: `earliest`, `latest`, `stored`, or a position `segment:offset`.

use std::str::FromStr;

use ilion_commitlog::Position;

/// Where a consumer begins to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// With the oldest change that is kept.
    Earliest,
    /// Behind the newest change.
    Latest,
    /// Where the named consumer stopped; with the oldest change if it has not begun.
    Stored,
    /// With the first change at or behind the position.
    At(Position),
}

impl FromStr for Place {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "earliest" => Ok(Self::Earliest),
            "latest" => Ok(Self::Latest),
            "stored" => Ok(Self::Stored),
            _ => Position::parse(text).map(Self::At).ok_or_else(|| {
                format!("{text:?} is no place in the stream: expected earliest, latest, stored, or a position such as 1732445829123:48")
            }),
        }
    }
}
