//! Caches that are saved and loaded over restarts.

use std::time::Duration;

use ilion_engine::CacheFacts;
use ilion_protocol::Version;

use crate::client::rows_of;
use crate::{Setup, run, start, start_on};

fn counters(setup: &Setup) -> CacheFacts {
    let caches = setup.node.engine().facts().caches;
    caches.into_iter().find(|facts| facts.name == "counters").unwrap()
}

#[test]
fn what_was_counted_is_known_after_a_restart() {
    let setup = start();
    let mut client = setup.client(Version::V5);
    for text in [
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TABLE ks.seen (k int, c int, n counter, s counter static, PRIMARY KEY (k, c))",
    ] {
        run(&mut client, text);
    }
    for k in 0..4 {
        let update = format!("UPDATE ks.seen SET n = n + 5, s = s + 1 WHERE k = {k} AND c = 1");
        run(&mut client, &update);
    }
    run(&mut client, "DELETE FROM ks.seen WHERE k = 3");
    let env = setup.env.clone();
    drop(client);
    setup.server.stop(Duration::from_secs(5));
    drop(setup.node);
    let setup = start_on(env);
    setup.node.engine().wait_caches_loaded();
    let before = counters(&setup);
    // Static counters are not saved, and deleted counters have no value to save.
    assert_eq!(before.entries, 3);
    let mut client = setup.client(Version::V5);
    for k in 0..3 {
        run(
            &mut client,
            &format!("UPDATE ks.seen SET n = n + 2 WHERE k = {k} AND c = 1"),
        );
        run(
            &mut client,
            &format!("UPDATE ks.seen SET s = s + 1 WHERE k = {k}"),
        );
        let rows = rows_of(run(
            &mut client,
            &format!("SELECT n, s FROM ks.seen WHERE k = {k}"),
        ));
        let counts: Vec<_> = rows.rows().next().unwrap().into_iter().flatten().collect();
        assert_eq!(counts, [7_i64.to_be_bytes(), 2_i64.to_be_bytes()]);
    }
    let after = counters(&setup);
    let asked = (after.hits - before.hits, after.misses - before.misses);
    assert_eq!(
        asked,
        (3, 3),
        "of those that are not static, the updates did not read"
    );
}
