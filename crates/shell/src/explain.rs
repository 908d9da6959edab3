//! The answer to EXPLAIN as a tree: what is read, from where, what is done with the rows; and with ANALYZE what it cost, with bars.
//!
//! The server answers rows of a step and its detail. Steps before `elapsed_micros` are the plan, those after it were measured.

/// The first step that was measured.
const FIRST_MEASURED: &str = "elapsed_micros";
/// The longest bar.
const BAR_WIDTH: u64 = 24;
const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];

/// A branch of the tree: steps of one kind.
struct Group {
    title: &'static str,
    lines: Vec<String>,
}

/// A title, and which steps that were measured stand below it.
type Kind = (&'static str, fn(&str) -> bool);

/// The lines of the tree.
pub fn explain_tree(steps: &[(String, String)]) -> Vec<String> {
    let measured_from = steps.iter().position(|(step, _)| step == FIRST_MEASURED);
    let (plan, measured) = steps.split_at(measured_from.unwrap_or(steps.len()));
    let root = plan
        .iter()
        .find(|(step, _)| step == "table")
        .map_or("SELECT", |(_, table)| table);
    let mut groups = plan_groups(plan);
    groups.extend(measured_groups(measured));
    groups.retain(|group| !group.lines.is_empty());

    let mut lines = vec![root.to_owned()];
    for (index, group) in groups.iter().enumerate() {
        let is_last = index + 1 == groups.len();
        lines.push(format!("{} {}", corner(is_last), group.title));
        let trunk = if is_last { "   " } else { "│  " };
        for (index, line) in group.lines.iter().enumerate() {
            lines.push(format!(
                "{trunk}{} {line}",
                corner(index + 1 == group.lines.len())
            ));
        }
    }
    lines
}

fn corner(is_last: bool) -> &'static str {
    if is_last { "└─" } else { "├─" }
}

fn plan_groups(plan: &[(String, String)]) -> Vec<Group> {
    let mut groups = ["read", "from", "rows"].map(|title| Group {
        title,
        lines: Vec::new(),
    });
    for (step, detail) in plan.iter().filter(|(step, _)| step != "table") {
        let group = match step.as_str() {
            "memtables" | "sstables" | "sstables left alone" | "row cache" => 1,
            "filtering" | "order" | "distinct" | "groups" | "limit" | "page" => 2,
            _ => 0,
        };
        groups[group].lines.push(format!("{step}: {detail}"));
    }
    groups.into()
}

fn measured_groups(measured: &[(String, String)]) -> Vec<Group> {
    let kinds: [Kind; 5] = [
        ("time, in microseconds", |step| step.ends_with("_micros")),
        ("rows", |step| {
            step.starts_with("rows_") || step.ends_with("_scanned")
        }),
        ("files", |step| {
            step.starts_with("sstables_") || step == "memtables"
        }),
        ("bytes", |step| step.contains("bytes")),
        ("also", |_| true),
    ];
    let kind_of = |step: &str| kinds.iter().position(|(_, is_kind)| is_kind(step));
    let group = |(index, (title, _)): (usize, &Kind)| {
        let members = measured.iter().filter(|(step, _)| kind_of(step) == Some(index));
        let members: Vec<_> = members
            .map(|(step, detail)| (step.as_str(), detail.as_str()))
            .collect();
        // The last kind has numbers of different units.
        let has_bars = index + 1 < kinds.len();
        Group {
            title,
            lines: measured_lines(&members, has_bars),
        }
    };
    kinds.iter().enumerate().map(group).collect()
}

/// The amounts of a group, aligned, each with a bar beside the largest one.
fn measured_lines(members: &[(&str, &str)], has_bars: bool) -> Vec<String> {
    let name = |step: &str| step.trim_end_matches("_micros").replace('_', " ");
    let name_width = members
        .iter()
        .map(|(step, _)| name(step).len())
        .max()
        .unwrap_or_default();
    let amount_width = members
        .iter()
        .map(|(_, amount)| amount.len())
        .max()
        .unwrap_or_default();
    let largest = members
        .iter()
        .filter_map(|(_, amount)| amount.parse().ok())
        .max()
        .unwrap_or_default();
    let line = |(step, amount): &(&str, &str)| {
        let bar = amount
            .parse()
            .ok()
            .filter(|_| has_bars)
            .map(|amount| bar(amount, largest));
        let text = format!(
            "{:<name_width$}  {amount:>amount_width$}  {}",
            name(step),
            bar.unwrap_or_default()
        );
        text.trim_end().to_owned()
    };
    members.iter().map(line).collect()
}

/// A bar as long as the amount, where the largest one has the full length.
fn bar(amount: u64, largest: u64) -> String {
    if largest == 0 {
        return String::new();
    }
    let eighths = u128::from(amount) * u128::from(BAR_WIDTH * 8) / u128::from(largest);
    let eighths = usize::try_from(eighths).unwrap_or_default();
    // Any amount above 0 is visible.
    let eighths = if amount > 0 { eighths.max(1) } else { 0 };
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_become_a_tree_with_bars() {
        let steps = [
            ("table", "ks.t"),
            ("access", "partitions by key"),
            ("partition", "1 (token 7)"),
            ("memtables", "1"),
            ("limit", "10"),
            ("elapsed_micros", "200"),
            ("rows_scanned", "8"),
            ("rows_returned", "1"),
            ("disk_wait_micros", "50"),
            ("disk_reads", "3"),
        ];
        let steps = steps.map(|(step, detail)| (step.to_owned(), detail.to_owned()));
        let expected = "\
ks.t
├─ read
│  ├─ access: partitions by key
│  └─ partition: 1 (token 7)
├─ from
│  └─ memtables: 1
├─ rows
│  └─ limit: 10
├─ time, in microseconds
│  ├─ elapsed    200  ████████████████████████
│  └─ disk wait   50  ██████
├─ rows
│  ├─ rows scanned   8  ████████████████████████
│  └─ rows returned  1  ███
└─ also
   └─ disk reads  3";
        assert_eq!(explain_tree(&steps).join("\n"), expected);
    }

    #[test]
    fn bars_are_proportional_and_small_amounts_are_seen() {
        assert_eq!(bar(0, 10), "");
        assert_eq!(bar(1, 1_000_000), "▏");
        assert_eq!(bar(5, 10).chars().count(), 12);
        assert_eq!(bar(0, 0), "");
        assert_eq!(bar(u64::MAX, u64::MAX).chars().count(), 24);
    }
}
