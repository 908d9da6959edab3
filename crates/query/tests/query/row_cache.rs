//! The row cache, seen by its clients.

use crate::engine::EngineDisk;
use crate::session::Session;

/// The row lives by its INSERT, which is older than all its cells.
#[test]
fn a_cached_row_stays_when_its_newer_cells_expire() {
    let mut disk = EngineDisk::new();
    let mut session = Session::over(disk.open());
    session.script(
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
         CREATE TABLE ks.t (k int PRIMARY KEY, v int) WITH caching = {'keys': 'ALL', 'rows_per_partition': 'ALL'};
         INSERT INTO ks.t (k, v) VALUES (1, 1)",
    );
    disk.flush();
    session.script("UPDATE ks.t USING TTL 10 SET v = 2 WHERE k = 1");
    for _ in 0..2 {
        assert_eq!(
            session.query("SELECT * FROM ks.t WHERE k = 1"),
            "k | v\n1 | 2\n(1 rows)\n"
        );
    }
    assert!(disk.row_cache_hits() > 0);
    session.advance_secs(11);
    assert_eq!(
        session.query("SELECT * FROM ks.t WHERE k = 1"),
        "k | v\n1 | null\n(1 rows)\n"
    );
}
