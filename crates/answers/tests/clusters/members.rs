//! Three members of a cluster answer the scripts of `tests/cql` as a single node does: every write goes through a log, every node applies
//! it, and clients talk to one of them.

use ilion_env::RealEnv;
use ilion_member::{InProcess, MemLogs};
use ilion_server::ServerOptions;

use crate::compare::{all_answers_are_right, settings, small_pages};
use crate::opener::{Opened, open};

#[test]
fn three_members_answer_as_one_node() {
    let directory = tempfile::tempdir().unwrap();
    let logs = MemLogs::new(RealEnv::new());
    let peers = InProcess::default();
    let members: Vec<Opened> = (1..=3)
        .map(|number| {
            let settings = settings(&directory.path().join(number.to_string()));
            open(number, &settings, small_pages(), &logs, &peers)
        })
        .collect();
    let settings = settings(directory.path());
    let server = members[0].node.serve(&ServerOptions::of(&settings)).unwrap();
    let address = server.address().to_string();
    all_answers_are_right(&address);
    for opened in &members {
        assert_eq!(opened.member.halted(), None);
    }
}
