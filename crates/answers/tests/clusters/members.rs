//! Three members of a cluster answer the scripts of `tests/cql` as a single node does: every write goes through a log, its replicas apply it,
//! and clients talk to one member.

use ilion_answers::Replicas;
use ilion_env::RealEnv;
use ilion_member::{InProcess, MemLogs};
use ilion_protocol::Consistency;
use ilion_server::ServerOptions;

use crate::compare::{all_answers_are_right, settings, small_pages};
use crate::opener::{Opened, open};

#[test]
fn three_members_with_all_rows_each_answer_at_quorum_as_one_node() {
    three_members_answer(Replicas {
        count: 3,
        level: Consistency::Quorum,
    });
}

#[test]
fn three_members_with_a_part_each_answer_as_one_node() {
    three_members_answer(Replicas::default());
}

fn three_members_answer(replicas: Replicas) {
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
    all_answers_are_right(&address, replicas);
    for opened in &members {
        assert_eq!(opened.member.halted(), None);
    }
}
