//! Prints `docs/settings.md` from the lists of settings.

use std::fmt::Write as _;

use crate::{ENVIRONMENT_PREFIX, FOREIGN, Fate, LIVE, SETTINGS};

/// The text of `docs/settings.md`.
pub fn document() -> String {
    let mut text = format!(
        "# Settings\n\n\
         <!-- Made from crates/settings by `REWRITE=1 cargo test -p ilion-settings --test settings`. -->\n\n\
         A setting comes from its default, then the file (`ilion serve --config FILE`, YAML), then the environment \
         (`{ENVIRONMENT_PREFIX}` and the name in capitals), then the command line (`--set name=value`, or the flag that \
         `ilion serve --help` names). Names and units are those of Cassandra 5.0 where the meaning is: durations `10s`, \
         `500ms`; sizes `16MiB`; rates `64MiB/s`. Old names of Cassandra with a unit in them \
         (`commitlog_segment_size_in_mb`) work too, and a stock \
         cassandra.yaml of 4.0, 4.1 or 5.0 starts a node.\n\n\
         A setting with a star can be changed while the node runs, until the next start: `UPDATE system_views.settings SET value = \
         '10s' WHERE name = 'read_request_timeout'`, the setters of nodetool, or the file and `ilion reload` \
         ([operating.md](operating.md#settings-at-run-time)).\n\n\
         | setting | default | meaning |\n| --- | --- | --- |\n"
    );
    for setting in SETTINGS {
        let meaning = setting.document.trim().replace('|', "\\|");
        let star = match LIVE.contains(&setting.name) {
            true => "\\*",
            false => "",
        };
        let _ = writeln!(
            text,
            "| `{}`{star} | `{}` | {meaning} |",
            setting.name, setting.default
        );
    }
    text.push_str("\n## Settings of Cassandra without use here\n\n");
    for foreign in FOREIGN {
        let fate = match foreign.fate {
            Fate::PassedOver => "Passed over with a warning",
            Fate::RefusedUnless([only]) => &format!("Refused, unless `{only}`"),
            Fate::RefusedUnless(_) => "Refused, unless switched off",
        };
        let names = foreign.names.join("`, `");
        let _ = writeln!(text, "{fate}, since {}: `{names}`.\n", foreign.reason);
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    text
}
