//! `system_auth`, `system_distributed` and `system_traces`: ordinary tables that the server fills. The operator may change
//! their replication.

use super::definition::{Definition, keyspace, table};
use super::local::compact;
use crate::{Keyspace, Release, Replication};

const AUTH: [Definition; 8] = [
    table(
        "roles",
        "role definitions",
        "role text pk; can_login boolean; is_superuser boolean; member_of set<text>; salted_hash text",
    ),
    table(
        "role_members",
        "role memberships lookup table",
        "role text pk; member text ck",
    ),
    table(
        "role_permissions",
        "permissions granted to db roles",
        "role text pk; resource text ck; permissions set<text>",
    ),
    // Compat: Cassandra spells the name this way.
    table(
        "resource_role_permissons_index",
        "index of db roles with permissions granted on a resource",
        "resource text pk; role text ck",
    ),
    table(
        "network_permissions",
        "user network permissions",
        "role text pk; dcs frozen<set<text>>",
    ),
    table(
        "cidr_permissions",
        "user cidr permissions",
        "role text pk; cidr_groups frozen<set<text>>",
    ),
    table(
        "cidr_groups",
        "cidr groups to cidrs mapping",
        "cidr_group text pk; cidrs frozen<set<frozen<tuple<inet, smallint>>>>",
    ),
    table(
        "identity_to_role",
        "mtls authorized identities lookup table",
        "identity text pk; role text",
    ),
];

const DISTRIBUTED: [Definition; 4] = [
    table(
        "repair_history",
        "Repair history",
        "keyspace_name text pk; columnfamily_name text pk; id timeuuid ck; coordinator inet; \
         coordinator_port int; exception_message text; exception_stacktrace text; finished_at timestamp; \
         parent_id timeuuid; participants set<inet>; participants_v2 set<text>; range_begin text; \
         range_end text; started_at timestamp; status text",
    ),
    table(
        "parent_repair_history",
        "Repair history",
        "parent_id timeuuid pk; columnfamily_names set<text>; exception_message text; \
         exception_stacktrace text; finished_at timestamp; keyspace_name text; options map<text, text>; \
         requested_ranges set<text>; started_at timestamp; successful_ranges set<text>",
    ),
    table(
        "view_build_status",
        "Materialized View build status",
        "keyspace_name text pk; view_name text pk; host_id uuid ck; status text",
    ),
    table(
        "partition_denylist",
        "Partition keys which have been denied access",
        "ks_name text pk; table_name text pk; key blob ck",
    ),
];

const TRACES: [Definition; 2] = [
    table(
        "sessions",
        "tracing sessions",
        "session_id uuid pk; client inet; command text; coordinator inet; coordinator_port int; duration int; \
         parameters map<text, text>; request text; started_at timestamp",
    ),
    table(
        "events",
        "tracing events",
        "session_id uuid pk; event_id timeuuid ck; activity text; source inet; source_elapsed int; \
         source_port int; thread text",
    ),
];

pub(super) fn auth(release: Release) -> Keyspace {
    keyspace(release, "system_auth", Replication::simple(), &AUTH, |builder| {
        builder.options.gc_grace_secs = 90 * 86_400;
    })
}

pub(super) fn distributed(release: Release) -> Keyspace {
    keyspace(
        release,
        "system_distributed",
        simple(3),
        &DISTRIBUTED,
        |builder| {
            if builder.name.ends_with("repair_history") {
                builder.options.default_time_to_live_secs = 30 * 86_400;
                let daily = [
                    ("class", "TimeWindowCompactionStrategy"),
                    ("compaction_window_unit", "DAYS"),
                    ("compaction_window_size", "1"),
                ];
                compact(builder, &daily);
            }
        },
    )
}

pub(super) fn traces(release: Release) -> Keyspace {
    keyspace(release, "system_traces", simple(2), &TRACES, |builder| {
        builder.options.gc_grace_secs = 0
    })
}

fn simple(factor: u32) -> Replication {
    let mut replication = Replication::simple();
    replication
        .options
        .insert("replication_factor".to_owned(), factor.to_string());
    replication
}
