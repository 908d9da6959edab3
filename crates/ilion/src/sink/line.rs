//! A line of the node: a change with its key, a schema, or a position. See `ilion_server::ChangesFormat`.

use serde::Deserialize;
use serde_json::Value;

/// How far a consumer is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Place {
    /// Everything before it came before.
    #[serde(rename = "at")]
    pub position: String,
    /// When the last record before it was logged.
    #[serde(rename = "logged_ms")]
    pub logged_millis: i64,
}

/// The Avro schemas of the changes that follow.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Schemas {
    /// Of envelopes.
    #[serde(rename = "schema")]
    pub envelope: String,
    /// Of partition keys.
    #[serde(rename = "key_schema")]
    pub key: String,
}

/// A line.
#[derive(Debug, PartialEq, Eq)]
pub enum Line<'a> {
    /// A change.
    Change {
        /// Where to go on once it was processed.
        place: Place,
        /// The partition key; `None`: the change is one of all partitions.
        key: Option<&'a str>,
        /// The envelope.
        envelope: &'a str,
    },
    /// The schemas, if the changes are Avro.
    Schemas(Schemas),
    /// No change.
    At(Place),
    /// The last line.
    End(String),
    /// The last line, if the node cannot go on.
    Failed(String),
}

/// Parses a line of the node; `None`: it is none.
pub fn parse(line: &str) -> Option<Line<'_>> {
    if line.starts_with('{') {
        let object: Value = serde_json::from_str(line).ok()?;
        let text = |name: &str| object[name].as_str().map(str::to_owned);
        return text("end")
            .map(Line::End)
            .or_else(|| text("error").map(Line::Failed))
            .or_else(|| Place::deserialize(&object).ok().map(Line::At))
            .or_else(|| Schemas::deserialize(&object).ok().map(Line::Schemas));
    }
    let mut parts = line.splitn(4, '\t');
    let mut next = || parts.next();
    let (position, logged, key, envelope) = (next()?, next()?, next()?, next()?);
    Some(Line::Change {
        place: Place {
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

    fn place(position: &str, logged_millis: i64) -> Place {
        Place {
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
