//! LIMIT, PER PARTITION LIMIT and DISTINCT: how much other nodes are asked for, and send.

use ilion_coordinator::ReadOptions;

use crate::routes::watched;
use crate::world::{How, NOW_SECS, run};

#[test]
fn other_nodes_send_little_more_than_a_limit_wants() {
    let watched = watched(1, ReadOptions::default());
    // A wide partition in each of the other nodes.
    for node in [2, 3] {
        let key = (60..).find(|key| watched.replicas(*key) == [node]).unwrap();
        for row in 0..1000 {
            let text = format!("INSERT INTO ks.t (k, c, v) VALUES ({key}, {row}, 1)");
            watched.world.write(0, &text, &How::default());
        }
    }
    let schema = watched.world.engines[0].schema();
    // How many pages are asked for, and how many rows other nodes send.
    let sent = |text: &str, rows: u32| {
        watched.asked.take();
        watched.asked.take_rows(&schema);
        assert_eq!(watched.rows(0, text), rows, "{text}");
        (watched.asked.take().len(), watched.asked.take_rows(&schema))
    };
    let (pages, rows) = sent("SELECT * FROM ks.t", 2600);
    assert!(pages > 4 && rows > 2000, "{pages} pages, {rows} rows");
    let (pages, rows) = sent("SELECT * FROM ks.t LIMIT 10", 10);
    assert!(pages <= 2 && rows <= 20, "{pages} pages, {rows} rows");
    // Other nodes send no more rows of a partition than the statement wants, so each range needs one page.
    for text in [
        "SELECT DISTINCT k FROM ks.t",
        "SELECT * FROM ks.t PER PARTITION LIMIT 1",
    ] {
        let (pages, rows) = sent(text, 62);
        let ranges = sent("SELECT k FROM ks.t WHERE v = 99 ALLOW FILTERING", 0).0;
        assert!(
            pages < ranges && rows <= 62,
            "{pages} pages of {ranges}, {rows} rows"
        );
    }
    let (_, rows) = sent("SELECT * FROM ks.t PER PARTITION LIMIT 3 LIMIT 20", 20);
    assert!(rows <= 40, "{rows} rows");
    // Rows that may be dead by the time of the request do not count.
    let key = (60..).find(|key| watched.replicas(*key) == [2]).unwrap();
    for row in 0..5 {
        let text =
            format!("INSERT INTO ks.t (k, c, v) VALUES ({key}, {row}, 1) USING TTL 10 AND TIMESTAMP 2");
        watched.world.write(0, &text, &How::default());
    }
    let text = format!("DELETE FROM ks.t USING TIMESTAMP 1 WHERE k = {key} AND c < 5");
    watched.world.write(0, &text, &How::default());
    let later = How {
        now_secs: NOW_SECS + 20,
        ..How::default()
    };
    let text = format!("SELECT c FROM ks.t WHERE k = {key} PER PARTITION LIMIT 2");
    let single = run(&watched.world.single, &text, &later);
    assert_eq!(run(&watched.world.coordinators[0], &text, &later), single);
    assert_eq!(single.unwrap().rows(), 2);
}
