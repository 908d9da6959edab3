//! Groups of addresses (CIDR groups): `nodetool listcidrgroups` and related verbs.

use ilion_server::admin::{CidrGroupsReport, NodeTableReport, laid_out};

use super::call::Call;
use crate::Failure;
use crate::ask::say;

/// Compat: like `printSet` of Cassandra, prints no title if there are no values.
fn say_set(title: &str, values: impl Iterator<Item = String>) {
    let values: Vec<Vec<String>> = values.map(|value| vec![value]).collect();
    if !values.is_empty() {
        let rows: Vec<Vec<String>> = [vec![title.to_owned()]].into_iter().chain(values).collect();
        say(laid_out(&rows).trim_end_matches('\n'));
    }
}

/// Lists groups, or the addresses of one.
pub fn list(call: &Call) -> Result<(), Failure> {
    let report: CidrGroupsReport = call.get("cidr-groups", &[])?;
    match call.value(0) {
        None => say_set("CIDR Groups", report.groups.into_keys()),
        Some(name) => {
            let cidrs = report.groups.get(name).cloned();
            let cidrs = cidrs.ok_or_else(|| Failure::nodetool(format!("there is no CIDR group {name}")))?;
            say_set("CIDRs", cidrs.into_iter());
        }
    }
    Ok(())
}

/// Lists the groups of an address.
pub fn of_address(call: &Call) -> Result<(), Failure> {
    let report: CidrGroupsReport = call.get("cidr-groups", &[("address", call.value(0))])?;
    say_set("CIDR Groups", report.groups.into_keys());
    Ok(())
}

/// Creates or changes a group.
pub fn update(call: &Call) -> Result<(), Failure> {
    // Compat: the message of `UpdateCIDRGroup`.
    let [name, cidrs @ ..] = &*call.values else {
        return Err(missing());
    };
    if cidrs.is_empty() {
        return Err(missing());
    }
    let parts = [("name", Some(&**name)), ("cidrs", Some(&*cidrs.join("\n")))];
    call.post("cidr-group", &parts).map(drop)
}

fn missing() -> Failure {
    Failure::nodetool("updatecidrgroup command requires a cidr group name and atleast one CIDR")
}

/// Removes a group.
pub fn remove(call: &Call) -> Result<(), Failure> {
    let name = call.value(0).unwrap_or_default();
    call.post("cidr-group", &[("name", Some(name))])?;
    say(&format!("Deleted CIDR group {name}"));
    Ok(())
}

/// Prints counts and latencies of the checks of clients against CIDR groups.
pub fn stats(call: &Call) -> Result<(), Failure> {
    let tables = [
        ("cidr_filtering_metrics_counts", "cidr-counts"),
        ("cidr_filtering_metrics_latencies", "cidr-latencies"),
    ];
    for (name, action) in tables {
        let report: NodeTableReport = call.get(action, &[])?;
        let rows: Vec<Vec<String>> = [report.columns].into_iter().chain(report.rows).collect();
        // Compat: `CIDRFilteringStats` has a blank behind the colon, too.
        say(&format!("{name}: \n{}", laid_out(&rows)));
    }
    Ok(())
}
