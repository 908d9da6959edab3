//! The table of verbs in `docs/nodetool.md`, made from the code.

use std::fmt::Write as _;
use std::path::Path;

use super::verbs::{Act, VERBS};

const BEGIN: &str = "<!-- Verbs: made by `REWRITE=1 cargo test -p ilion --bin ilion nodetool`. -->\n";
const END: &str = "<!-- End of the verbs. -->\n";

fn table() -> String {
    let mut text = String::from("| verb | |\n| --- | --- |\n");
    for verb in VERBS.iter() {
        let means = match verb.act {
            Act::Own(_) => verb.does.replace('|', "\\|"),
            Act::Is(command) => format!(
                "{} Its arguments are those of `ilion {}`.",
                verb.does,
                command.join(" ")
            ),
            Act::Refused(_) => continue,
        };
        let _ = writeln!(text, "| `{}` | {means} |", verb.name);
    }
    let mut refused: Vec<(&str, Vec<&str>)> = Vec::new();
    for verb in VERBS.iter() {
        let Act::Refused(reason) = verb.act else {
            continue;
        };
        match refused.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, names)) => names.push(verb.name),
            None => refused.push((reason, vec![verb.name])),
        }
    }
    text.push_str("\nRefused, since they mean nothing here:\n\n| verbs | reason |\n| --- | --- |\n");
    for (reason, names) in refused {
        let _ = writeln!(text, "| `{}` | {reason} |", names.join("`, `"));
    }
    text
}

#[test]
fn the_document_lists_the_verbs() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/nodetool.md");
    let page = std::fs::read_to_string(&path).unwrap();
    let (before, rest) = page.split_once(BEGIN).expect("the page has the mark");
    let (found, after) = rest.split_once(END).expect("the page has the mark of the end");
    let wanted = table();
    if std::env::var_os("REWRITE").is_some() {
        std::fs::write(&path, format!("{before}{BEGIN}{wanted}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(found, wanted, "docs/nodetool.md is stale: run with REWRITE=1");
}
