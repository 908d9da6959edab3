//! The `target` option of an index: `c`, `values(c)`, `keys("C")`, ...
//!
//! Compat: `IndexTarget.asCqlString` and `TargetParser` of Cassandra 5.0.

use std::fmt;

use ilion_types::quote_name;

use crate::{IndexPart, IndexSchema, IndexTarget};

impl fmt::Display for IndexPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Simple => "",
            Self::Values => "values",
            Self::Keys => "keys",
            Self::Entries => "entries",
            Self::Full => "full",
        })
    }
}

const PARTS: [(&str, IndexPart); 4] = [
    ("values(", IndexPart::Values),
    ("keys(", IndexPart::Keys),
    ("entries(", IndexPart::Entries),
    ("full(", IndexPart::Full),
];

pub(crate) fn print_targets(targets: &[IndexTarget]) -> String {
    let print = |target: &IndexTarget| match target.part {
        IndexPart::Simple => quote_name(&target.column).into_owned(),
        part => format!("{part}({})", quote_name(&target.column)),
    };
    targets.iter().map(print).collect::<Vec<_>>().join(", ")
}

impl IndexSchema {
    /// The indexed column and its part; `None` if the target is not a single column.
    pub fn target(&self) -> Option<(String, IndexPart)> {
        let text = self.options.get("target")?;
        for (open, part) in PARTS {
            if let Some(inner) = text.strip_prefix(open).and_then(|rest| rest.strip_suffix(')')) {
                return unquote(inner).map(|column| (column, part));
            }
        }
        unquote(text).map(|column| (column, IndexPart::Simple))
    }

    /// The class of a custom index; `None` for other kinds.
    pub fn class_name(&self) -> Option<&str> {
        self.options.get("class_name").map(String::as_str)
    }
}

fn unquote(text: &str) -> Option<String> {
    match text.strip_prefix('"') {
        Some(rest) => rest.strip_suffix('"').map(|inner| inner.replace("\"\"", "\"")),
        None if text.contains([',', '(']) => None,
        None => Some(text.to_owned()),
    }
}
