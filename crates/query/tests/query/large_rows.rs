//! A row among large ones is read without the others, for every kind of statement.

use ilion_env::Seeded;

use crate::engine::EngineDisk;
use crate::session::Session;

const BLOB_BYTES: usize = 10_000;
const ROWS: usize = 60;

fn hex(random: &mut Seeded) -> String {
    let mut bytes = vec![0; BLOB_BYTES];
    random.fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A session with rows of one partition, on disk.
fn large_rows(disk: &mut EngineDisk, with: &str) -> Session {
    let mut session = Session::over(disk.open());
    session.script(&format!(
        "CREATE KEYSPACE ks WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}};
         USE ks; CREATE TABLE t (k int, c int, v blob, PRIMARY KEY (k, c)){with}",
    ));
    let mut random = Seeded::new(3);
    for row in 0..ROWS {
        let blob = hex(&mut random);
        session.script(&format!("INSERT INTO t (k, c, v) VALUES (1, {row}, 0x{blob})"));
    }
    disk.flush();
    // Reads the parts of a file that are read only once.
    session.query("SELECT v FROM t WHERE k = 1 AND c = 0");
    session
}

#[test]
fn a_row_among_large_ones_costs_what_is_asked_of_it() {
    let of_tables = ["", " WITH compression = {'enabled': false}"];
    for (with, asked) in of_tables
        .iter()
        .flat_map(|with| ["v", "*", "k, c, v"].map(|asked| (with, asked)))
    {
        let mut disk = EngineDisk::new();
        let mut session = large_rows(&mut disk, with);
        let rows = [57, 30, 12, 44];
        let before = disk.bytes_served();
        for row in rows {
            let found = session.query(&format!("SELECT {asked} FROM t WHERE k = 1 AND c = {row}"));
            assert!(found.len() > 2 * BLOB_BYTES, "row {row}");
        }
        let read = disk.bytes_served() - before;
        let most = (rows.len() * 4 * BLOB_BYTES) as u64;
        assert!(
            read <= most,
            "{read} bytes were read for {} rows of {asked}{with}",
            rows.len()
        );
    }
}

#[test]
fn large_rows_of_slices_cost_what_is_asked_of_them() {
    for (rows, clauses) in [
        (1, "ORDER BY c DESC LIMIT 1"),
        (1, "AND c < 43 ORDER BY c DESC LIMIT 1"),
        (1, "AND c > 43 LIMIT 1"),
        (2, "AND c > 20 AND c < 23"),
        (2, "AND c > 20 AND c < 23 ORDER BY c DESC"),
        (3, "AND c IN (5, 24, 47)"),
        (3, "AND c IN (5, 24, 47) ORDER BY c DESC"),
    ] {
        for asked in ["v", "*"] {
            let mut disk = EngineDisk::new();
            let mut session = large_rows(&mut disk, "");
            let before = disk.bytes_served();
            let found = session.query(&format!("SELECT {asked} FROM t WHERE k = 1 {clauses}"));
            assert!(found.len() > rows * 2 * BLOB_BYTES, "{clauses}");
            let read = disk.bytes_served() - before;
            let most = (rows * 4 * BLOB_BYTES) as u64;
            assert!(
                read <= most,
                "{read} bytes were read for {rows} rows of {asked} {clauses}"
            );
        }
    }
}

/// Writes a row of three large columns without a liveness, and a deletion of a part of it in another SSTable; returns the last
/// column.
fn after_deleting(delete: &str) -> String {
    let mut disk = EngineDisk::new();
    let mut session = Session::over(disk.open());
    let mut random = Seeded::new(4);
    let [a, b, d] = [(); 3].map(|()| hex(&mut random));
    session.script(&format!(
        "CREATE KEYSPACE ks WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}};
         USE ks; CREATE TABLE t (k int PRIMARY KEY, a blob, b blob, d blob);
         UPDATE t USING TIMESTAMP 10 SET a = 0x{a}, b = 0x{b}, d = 0x{d} WHERE k = 1"
    ));
    disk.flush();
    session.script(delete);
    disk.flush();
    session.query("SELECT d FROM t WHERE k = 1")
}

#[test]
fn a_row_lives_by_a_column_that_is_not_asked_for() {
    let found = after_deleting("DELETE a, d FROM t USING TIMESTAMP 20 WHERE k = 1");
    assert!(found.contains("null") && found.contains("(1 row"), "{found}");
    for delete in [
        "DELETE a, b, d FROM t USING TIMESTAMP 20 WHERE k = 1",
        "DELETE FROM t USING TIMESTAMP 20 WHERE k = 1",
    ] {
        let found = after_deleting(delete);
        assert!(found.contains("(0 row"), "{delete}: {found}");
    }
}
