//! `nodetool getguardrailsconfig`, `setguardrailsconfig`. The names of guardrails are Cassandra's. Each is the name of a setting, but a
//! threshold has two settings.

use ilion_server::admin::{SettingsReport, laid_out};

use super::call::Call;
use crate::Failure;
use crate::ask::say;

const FLAGS: [&str; 17] = [
    "allow_filtering_enabled",
    "alter_table_enabled",
    "compact_tables_enabled",
    "drop_keyspace_enabled",
    "drop_truncate_table_enabled",
    "group_by_enabled",
    "intersect_filtering_query_enabled",
    "intersect_filtering_query_warned",
    "non_partition_restricted_index_query_enabled",
    "read_before_write_list_operations_enabled",
    "secondary_indexes_enabled",
    "simplestrategy_enabled",
    "uncompressed_tables_enabled",
    "user_timestamps_enabled",
    "vector_type_enabled",
    "zero_ttl_on_twcs_enabled",
    "zero_ttl_on_twcs_warned",
];

const THRESHOLDS: [&str; 24] = [
    "collection_size",
    "column_value_size",
    "columns_per_table",
    "data_disk_usage_percentage",
    "fields_per_udt",
    "in_select_cartesian_product",
    "items_per_collection",
    "keyspaces",
    "materialized_views_per_table",
    "maximum_replication_factor",
    "maximum_timestamp",
    "minimum_replication_factor",
    "minimum_timestamp",
    "page_size",
    "partition_keys_in_select",
    "partition_size",
    "partition_tombstones",
    "sai_frozen_term_size",
    "sai_sstable_indexes_per_query",
    "sai_string_term_size",
    "sai_vector_term_size",
    "secondary_indexes_per_table",
    "tables",
    "vector_dimensions",
];

const VALUES: [&str; 7] = [
    "read_consistency_levels_disallowed",
    "read_consistency_levels_warned",
    "table_properties_disallowed",
    "table_properties_ignored",
    "table_properties_warned",
    "write_consistency_levels_disallowed",
    "write_consistency_levels_warned",
];

const OTHERS: [&str; 1] = ["data_disk_usage_max_disk_size"];

/// Compat: a size or time that is switched off is printed as `null`.
fn shown(value: &str) -> &str {
    match value {
        "auto" => "null",
        value => value,
    }
}

fn list_shown(value: &str) -> String {
    match value {
        "none" => "[]".to_owned(),
        value => format!("[{value}]"),
    }
}

/// The names of the two settings of a threshold: the one that fails, and the one that warns.
fn pair(stem: &str) -> [String; 2] {
    ["fail", "warn"].map(|kind| format!("{stem}_{kind}_threshold"))
}

/// Name and value of the guardrails of a category, as nodetool prints them; `None` if there is no such category.
fn rows(settings: &SettingsReport, category: Option<&str>) -> Option<Vec<[String; 2]>> {
    let value = |name: &str| settings.value(name).unwrap_or_default();
    let flags = || {
        FLAGS
            .iter()
            .map(|name| [(*name).to_owned(), value(name).to_owned()])
    };
    let thresholds = || {
        THRESHOLDS.iter().map(|stem| {
            let [fail, warn] = pair(stem).map(|name| shown(value(&name)).to_owned());
            [format!("{stem}_threshold"), format!("[{fail}, {warn}]")]
        })
    };
    let values = || {
        VALUES
            .iter()
            .map(|name| [(*name).to_owned(), list_shown(value(name))])
    };
    let others = || {
        OTHERS
            .iter()
            .map(|name| [(*name).to_owned(), shown(value(name)).to_owned()])
    };
    Some(match category {
        None => flags()
            .chain(thresholds())
            .chain(values())
            .chain(others())
            .collect(),
        Some("flags") => flags().collect(),
        Some("thresholds") => thresholds().collect(),
        Some("values") => values().collect(),
        Some("others") => others().collect(),
        Some(_) => return None,
    })
}

/// Prints guardrails.
pub fn get(call: &Call) -> Result<(), Failure> {
    let settings: SettingsReport = call.get("settings", &[])?;
    let category = call.option("--category");
    let rows = rows(&settings, category).ok_or_else(|| {
        // Compat: the message of `GuardrailsConfigCommand`.
        Failure::nodetool(format!(
            "Error parsing category '{}': it is one of values, thresholds, flags, others",
            category.unwrap_or_default()
        ))
    })?;
    let Some(name) = call.value(0) else {
        let rows: Vec<Vec<String>> = rows.into_iter().map(Vec::from).collect();
        say(laid_out(&rows).trim_end_matches('\n'));
        return Ok(());
    };
    if let Some([_, value]) = rows.iter().find(|[known, _]| known == name) {
        say(value);
        return Ok(());
    }
    let of_threshold = THRESHOLDS
        .iter()
        .any(|stem| pair(stem).iter().any(|known| known == name));
    match settings.value(name).filter(|_| of_threshold) {
        Some(value) => say(shown(value)),
        None => return Err(unknown(name)),
    }
    Ok(())
}

fn unknown(name: &str) -> Failure {
    Failure::nodetool(format!("Guardrail {name} not found."))
}

/// Sets a guardrail.
pub fn set(call: &Call) -> Result<(), Failure> {
    if call.has("--list") {
        let thresholds = THRESHOLDS.iter().map(|stem| format!("{stem}_threshold"));
        let others = FLAGS.iter().chain(&VALUES).map(|name| (*name).to_owned());
        say(&others.chain(thresholds).collect::<Vec<_>>().join("\n"));
        return Ok(());
    }
    let Some((name, given)) = call.values.split_first() else {
        return Err(Failure::nodetool("No arguments."));
    };
    let wanted = assignments(name, given)?;
    let wanted: Vec<(&str, String)> = wanted
        .iter()
        .map(|(name, value)| (&**name, value.clone()))
        .collect();
    call.set(&wanted).map_err(|failure| match failure {
        Failure::Nodetool(reason) => Failure::nodetool(format!(
            "Error occured when setting the config for setter {name} with arguments [{}]: {reason}",
            given.join(", ")
        )),
        other => other,
    })
}

fn assignments(name: &str, given: &[String]) -> Result<Vec<(String, String)>, Failure> {
    let counted = |count: usize| match given.len() == count {
        true => Ok(()),
        false => Err(Failure::nodetool(format!(
            "{name} is expecting {count} argument values. Getting {} instead.",
            given.len()
        ))),
    };
    let set = |value: &String| match &**value {
        "null" => "auto".to_owned(),
        value => value.to_owned(),
    };
    if let Some(stem) = THRESHOLDS.iter().find(|stem| name == format!("{stem}_threshold")) {
        counted(2)?;
        return Ok(pair(stem).into_iter().zip(given.iter().map(set)).collect());
    }
    if FLAGS.contains(&name) || OTHERS.contains(&name) {
        counted(1)?;
        return Ok(vec![(name.to_owned(), set(&given[0]))]);
    }
    if VALUES.contains(&name) {
        let value = match given.join(",").trim_matches(['[', ']']) {
            "" | "null" => "none".to_owned(),
            list => list.to_owned(),
        };
        return Ok(vec![(name.to_owned(), value)]);
    }
    Err(unknown(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn guardrails_are_shown_as_by_cassandra() {
        let pairs = [
            ("group_by_enabled", "true"),
            ("tables_fail_threshold", "-1"),
            ("tables_warn_threshold", "10"),
            ("collection_size_fail_threshold", "auto"),
            ("collection_size_warn_threshold", "1MiB"),
            ("table_properties_warned", "comment, compaction"),
            ("table_properties_ignored", "none"),
        ];
        let settings = SettingsReport {
            settings: pairs
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .to_vec(),
            ..SettingsReport::default()
        };
        let rows = rows(&settings, None).unwrap();
        for (name, expected) in [
            ("group_by_enabled", "true"),
            ("tables_threshold", "[-1, 10]"),
            ("collection_size_threshold", "[null, 1MiB]"),
            ("table_properties_warned", "[comment, compaction]"),
            ("table_properties_ignored", "[]"),
        ] {
            let found = rows.iter().find(|[known, _]| known == name);
            assert_eq!(found.map(|[_, value]| &**value), Some(expected), "{name}");
        }
    }

    #[test]
    fn the_failure_of_a_threshold_comes_first() {
        let given = |values: &[&str]| values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>();
        let pairs = assignments("tables_threshold", &given(&["20", "10"])).unwrap();
        let pairs: Vec<String> = pairs
            .iter()
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        assert_eq!(pairs, ["tables_fail_threshold=20", "tables_warn_threshold=10"]);
        let refused = assignments("group_by_enabled", &given(&["true", "false"])).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "group_by_enabled is expecting 1 argument values. Getting 2 instead."
        );
        assert!(assignments("nosuch", &[]).is_err());
    }
}
