//! A line that the node sends: a change with its key, schemas, or a position. See `ilion_server::ChangesFormat`.

use serde::Deserialize;
use serde_json::Value;

/// How far a consumer is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct ConsumerProgress {
    /// Position in the commit log: the node has sent all changes before it.
    #[serde(rename = "at")]
    pub position: String,
    /// When the last record before the position was logged, in milliseconds since 1970.
    #[serde(rename = "logged_ms")]
    pub logged_millis: i64,
}

/// The Avro schemas of the changes that follow.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Schemas {
    /// The schema of envelopes.
    #[serde(rename = "schema")]
    pub envelope: String,
    /// The schema of partition keys.
    #[serde(rename = "key_schema")]
    pub key: String,
}

/// A line that the node sends.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A change.
    Change {
        /// Where to go on after this change.
        place: ConsumerProgress,
        /// The partition key; `None` if the change concerns all partitions, such as a TRUNCATE.
        key: Option<&'a str>,
        /// The envelope.
        envelope: &'a str,
    },
    /// The schemas of the changes that follow, if the format is Avro.
    Schemas(Schemas),
    /// A position without a change.
    At(ConsumerProgress),
    /// The last line, if the stream is complete.
    End(String),
    /// The last line, if the node cannot go on: the reason.
    Failed(String),
}

/// Parses a line of the node; `None` if it is of no known kind.
pub fn parse(line: &str) -> Option<Line<'_>> {
    if line.starts_with('{') {
        let object: Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| object[name].as_str().map(str::to_owned);
        return text("end")
            .map(Line::End)
            .or_else(|| text("error").map(Line::Failed))
            .or_else(|| ConsumerProgress::deserialize(&object).ok().map(Line::At))
            .or_else(|| Schemas::deserialize(&object).ok().map(Line::Schemas));
    }
    let mut parts = line.splitn(4, '\t');
    let mut next = || parts.next();
    let (position, logged, key, envelope) = (next()?, next()?, next()?, next()?);
    Some(Line::Change {
        place: ConsumerProgress {
            position: position.to_owned(),
            logged_millis: logged.parse().ok()?,
        },
        key: Some(key).filter(|key| *key != "null"),
        envelope,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(position: &str, logged_millis: i64) -> ConsumerProgress {
        ConsumerProgress {
            position: position.to_owned(),
            logged_millis,
        }
    }

    #[test]
    fn lines_of_a_node_are_understood() {
        let change = |key, envelope| Line::Change {
            place: place("17:48", 5),
            key,
            envelope,
        };
        for (text, line) in [
            (
                "17:48\t5\t{\"k\":1}\t{\"op\":\"i\"}",
                change(Some("{\"k\":1}"), "{\"op\":\"i\"}"),
            ),
            ("17:48\t5\tnull\t{\"op\":\"t\"}", change(None, "{\"op\":\"t\"}")),
            (r#"{"at":"17:48","logged_ms":7}"#, Line::At(place("17:48", 7))),
            (
                r#"{"schema":"\"int\"","key_schema":"\"long\""}"#,
                Line::Schemas(Schemas {
                    envelope: "\"int\"".to_owned(),
                    key: "\"long\"".to_owned(),
                }),
            ),
            (r#"{"end":"17:48"}"#, Line::End("17:48".to_owned())),
            (r#"{"error":"gone"}"#, Line::Failed("gone".to_owned())),
        ] {
            assert_eq!(parse(text), Some(line), "{text}");
        }
    }

    #[test]
    fn what_is_cut_off_is_no_line() {
        for text in [
            "",
            "17:48\t5\tnull",
            "17:48\tx\tnull\t{}",
            "{\"at\":\"17:48\"",
            "{}",
        ] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}
