//! [`Manifest`]: `manifest.json` of a snapshot, in the layout of Cassandra.

use serde_json::Value;

use super::instant::{parse_instant, print_instant};

/// The contents of a snapshot's manifest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Manifest {
    /// Names of the Data.db files; names of a hidden table begin with its directory.
    pub files: Vec<String>,
    /// When it was taken, milliseconds since 1970; `None` in manifests of old versions.
    pub created_millis: Option<i64>,
    /// When it expires, milliseconds since 1970; `None` is never.
    pub expires_millis: Option<i64>,
    /// It was taken for a repair of Cassandra.
    pub is_ephemeral: bool,
}

impl Manifest {
    pub(super) fn encode(&self) -> String {
        let files: Vec<String> = self.files.iter().map(|file| quoted(file)).collect();
        let files = match files.is_empty() {
            true => " ".to_owned(),
            false => format!(" {} ", files.join(", ")),
        };
        let instant = |millis: Option<i64>| {
            millis.map_or_else(|| "null".to_owned(), |millis| quoted(&print_instant(millis)))
        };
        format!(
            "{{\n  \"files\" : [{files}],\n  \"created_at\" : {},\n  \"expires_at\" : {},\n  \"ephemeral\" : {}\n}}",
            instant(self.created_millis),
            instant(self.expires_millis),
            self.is_ephemeral
        )
    }

    /// `None` if the text is not a manifest.
    pub(super) fn decode(text: &[u8]) -> Option<Self> {
        let value: Value = serde_json::from_slice(text).ok()?;
        let files = value.as_object()?.get("files")?.as_array()?;
        let files: Option<Vec<String>> = files
            .iter()
            .map(|file| file.as_str().map(str::to_owned))
            .collect();
        // An instant that cannot be parsed must not count as absent, since it may be an expiry: the manifest is refused.
        let instant = |name: &str| match value.get(name) {
            None | Some(Value::Null) => Some(None),
            Some(Value::Number(seconds)) => seconds.as_f64().map(|seconds| Some(millis_of(seconds))),
            Some(text) => text.as_str().and_then(parse_instant).map(Some),
        };
        Some(Self {
            files: files?,
            created_millis: instant("created_at")?,
            expires_millis: instant("expires_at")?,
            is_ephemeral: value.get("ephemeral").and_then(Value::as_bool).unwrap_or(false),
        })
    }
}

/// Compat: manifests of Cassandra 4.1 have seconds with a fraction.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a number that is too large becomes the largest"
)]
fn millis_of(seconds: f64) -> i64 {
    (seconds * 1000.0).floor() as i64
}

fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_what_a_cassandra_writes() {
        let manifest = Manifest {
            files: vec!["nb-1-big-Data.db".to_owned(), ".t_v/nb-1-big-Data.db".to_owned()],
            created_millis: Some(1_795_475_808_571),
            expires_millis: Some(1_795_479_408_571),
            is_ephemeral: false,
        };
        let text = "{\n  \"files\" : [ \"nb-1-big-Data.db\", \".t_v/nb-1-big-Data.db\" ],\n  \
                    \"created_at\" : \"2026-11-23T23:16:48.571Z\",\n  \
                    \"expires_at\" : \"2026-11-24T00:16:48.571Z\",\n  \"ephemeral\" : false\n}";
        assert_eq!(manifest.encode(), text);
        assert_eq!(Manifest::decode(text.as_bytes()), Some(manifest));
        let empty = Manifest::default().encode();
        assert!(empty.starts_with("{\n  \"files\" : [ ],\n"), "{empty}");
        assert_eq!(Manifest::decode(empty.as_bytes()), Some(Manifest::default()));
    }

    #[test]
    fn older_and_damaged_ones() {
        let old = Manifest::decode(br#"{"files":["nb-1-big-Data.db"]}"#).unwrap();
        assert_eq!(old.created_millis, None);
        let of_4_1 = br#"{"files":[],"created_at":1795475808.571000000,"expires_at":null}"#;
        let millis = Manifest::decode(of_4_1).unwrap().created_millis;
        assert_eq!(millis, Some(1_795_475_808_571));
        for text in [
            "",
            "[]",
            "{}",
            r#"{"files":[1]}"#,
            r#"{"files":[],"expires_at":"soon"}"#,
        ] {
            assert_eq!(Manifest::decode(text.as_bytes()), None, "{text}");
        }
    }
}
