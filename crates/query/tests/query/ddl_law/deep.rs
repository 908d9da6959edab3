//! The deepest types that a statement may have, on half the stack of a server thread.

use ilion_types::TYPE_DEPTH_MAX;

use super::node::{Node, stored};

/// Threads of Rust have 2 MiB. `STACK_KIB=n` finds out how much is needed.
const STACK_KIB: usize = 1024;

#[test]
fn the_deepest_types_are_made_written_read_and_found_again_on_half_a_stack() {
    let kib = std::env::var("STACK_KIB").map_or(STACK_KIB, |text| text.parse().unwrap());
    let thread = std::thread::Builder::new().stack_size(kib << 10);
    let ended = thread.spawn(make_write_and_read).unwrap().join();
    ended.unwrap();
}

fn nested(open: &str, inner: &str, close: &str, levels: usize) -> String {
    format!("{}{inner}{}", open.repeat(levels), close.repeat(levels))
}

fn make_write_and_read() {
    let levels = TYPE_DEPTH_MAX - 1;
    let types = [
        nested("frozen<list<", "int", ">>", levels),
        nested("frozen<map<int, ", "int", ">>", levels),
        nested("frozen<tuple<", "int", ">>", levels),
        nested("frozen<vector<", "int", ", 1>>", levels),
        nested("vector<", "int", ", 1>", levels),
        nested("frozen<", "list<int>", ">", levels),
    ];
    let values = [
        nested("[", "1", "]", levels),
        nested("{1: ", "1", "}", levels),
        nested("(", "1", ")", levels),
        nested("[", "1", "]", levels),
        nested("[", "1", "]", levels),
        "[1]".to_owned(),
    ];
    let mut node = Node::new(1);
    let ask = |node: &Node, cql: &str| {
        let answer = node.execute(cql);
        assert!(answer.is_ok(), "{cql}: {answer:?}");
    };
    let replication = "{'class': 'SimpleStrategy', 'replication_factor': 1}";
    ask(
        &node,
        &format!("CREATE KEYSPACE ks WITH replication = {replication}"),
    );
    for (number, (ty, value)) in types.iter().zip(&values).enumerate() {
        ask(
            &node,
            &format!("CREATE TABLE ks.t{number} (k int PRIMARY KEY, v {ty})"),
        );
        ask(&node, &format!("ALTER TABLE ks.t{number} ADD w {ty}"));
        ask(&node, &format!("ALTER TABLE ks.t{number} DROP v"));
        ask(
            &node,
            &format!("INSERT INTO ks.t{number} (k, w) VALUES (1, {value})"),
        );
        let deeper = format!("CREATE TABLE ks.deeper (k int PRIMARY KEY, v frozen<list<{ty}>>)");
        assert!(node.execute(&deeper).is_err(), "{ty}");
    }
    let before = stored(&node.schema());
    for _ in 0..2 {
        node.restart().unwrap();
        assert_eq!(stored(&node.schema()), before);
        for number in 0..types.len() {
            ask(
                &node,
                &format!("SELECT w, toJson(w) FROM ks.t{number} WHERE k = 1"),
            );
        }
        node.flush().unwrap();
    }
}
