//! Serves members of a cluster in one process, over logs in memory, until the standard input ends:
//! `cargo run --release -p ilion-answers --example serve_members -- DIRECTORY COUNT`. Prints the address of each member. COUNT 0 is a single
//! node without a cluster. `scripts/compare_random.py` compares the two.

#![allow(clippy::unwrap_used, reason = "an example fails where it stands")]

use std::io::Read as _;
use std::path::Path;

use ilion_coordinator::ReadOptions;
use ilion_env::RealEnv;
use ilion_member::{InProcess, MemLogs};
use ilion_server::{Server, ServerNode, ServerOptions};
use ilion_settings::{Loaded, Settings};

use opener::{Opened, open};

#[path = "../tests/clusters/opener.rs"]
mod opener;

fn settings(directory: &Path, number: u32) -> Settings {
    Settings {
        directory: directory.join(number.to_string()),
        native_transport_port: 0,
        ..Loaded::default().settings
    }
}

fn serve(node: &ServerNode, settings: &Settings) -> Server {
    let server = node.serve(&ServerOptions::of(settings)).unwrap();
    println!("{}", server.address());
    server
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(directory), Some(Ok(count))) = (
        arguments.first(),
        arguments.get(1).map(|count| count.parse::<u32>()),
    ) else {
        eprintln!("usage: serve_members DIRECTORY COUNT");
        std::process::exit(2);
    };
    let settings_of = |number| settings(Path::new(directory), number);
    let (logs, peers) = (MemLogs::new(RealEnv::new()), InProcess::default());
    let alone = (count == 0).then(|| ServerNode::open(RealEnv::new(), &settings_of(0)).unwrap());
    let members: Vec<Opened> = (1..=count)
        .map(|number| {
            open(
                number,
                &settings_of(number),
                ReadOptions::default(),
                &logs,
                &peers,
            )
        })
        .collect();
    let nodes = members.iter().map(|member| &member.node).chain(&alone);
    let _servers: Vec<_> = nodes.map(|node| serve(node, &settings_of(0))).collect();
    std::io::stdin().read_to_end(&mut Vec::new()).unwrap();
    for opened in &members {
        assert_eq!(opened.member.halted(), None);
    }
}
