//! Guesses the queue of a statement before it is parsed. A wrong guess costs time, but does not change answers.

use ilion_query::StatementWeight;

/// Classifies the text of a statement by its first words: SELECTs without a key, and statements about the schema, may take long.
pub(crate) fn weigh(cql: &str) -> StatementWeight {
    let text = cql.trim_start();
    let word_end = text
        .find(|letter: char| !letter.is_ascii_alphabetic())
        .unwrap_or(text.len());
    match text[..word_end].to_ascii_uppercase().as_str() {
        "INSERT" | "UPDATE" | "DELETE" | "BEGIN" | "USE" => StatementWeight::Point,
        "SELECT" => weigh_select(&text.to_ascii_lowercase()),
        _ => StatementWeight::Heavy,
    }
}

/// SELECTs of system tables are light: drivers read these small tables without keys when they connect.
fn weigh_select(text: &str) -> StatementWeight {
    let is_of_server = text.contains(" system.") || text.contains(" system_");
    let has_key = text.contains("where") && !text.contains("allow filtering") && !text.contains("token");
    if is_of_server || has_key {
        StatementWeight::Point
    } else {
        StatementWeight::Heavy
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_by_key_and_writes_are_points() {
        for text in [
            " select * from t where k = 1",
            "INSERT INTO t (k) VALUES (1)",
            "use ks",
            "SELECT * FROM system.peers_v2",
            "BEGIN BATCH APPLY BATCH",
        ] {
            assert_eq!(weigh(text), StatementWeight::Point, "{text}");
        }
    }

    #[test]
    fn scans_and_schema_changes_are_heavy() {
        for text in [
            "SELECT * FROM t",
            "select v from t where v = 1 allow filtering",
            "SELECT k FROM t WHERE token(k) > 1",
            "TRUNCATE t",
            "",
            "\u{e9}",
        ] {
            assert_eq!(weigh(text), StatementWeight::Heavy, "{text}");
        }
    }
}
