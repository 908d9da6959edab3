//! A row among large ones is read without the others.

use ilion_env::Seeded;

use crate::engine::EngineDisk;
use crate::session::Session;

const BLOB_BYTES: usize = 10_000;

fn hex(random: &mut Seeded) -> String {
    let mut bytes = vec![0; BLOB_BYTES];
    random.fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn a_row_among_large_ones_costs_what_is_asked_of_it() {
    let mut disk = EngineDisk::new();
    let mut session = Session::over(disk.open());
    session.script(
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};
         USE ks; CREATE TABLE t (k int, c int, v blob, PRIMARY KEY (k, c))",
    );
    let mut random = Seeded::new(3);
    for row in 0..60 {
        let blob = hex(&mut random);
        session.script(&format!("INSERT INTO t (k, c, v) VALUES (1, {row}, 0x{blob})"));
    }
    disk.flush();
    // What is read once of each file.
    session.query("SELECT v FROM t WHERE k = 1 AND c = 0");
    let rows = [57, 30, 12, 44];
    let before = disk.bytes_served();
    for row in rows {
        let found = session.query(&format!("SELECT v FROM t WHERE k = 1 AND c = {row}"));
        assert!(found.len() > 2 * BLOB_BYTES, "row {row}");
    }
    let read = disk.bytes_served() - before;
    let most = (rows.len() * 4 * BLOB_BYTES) as u64;
    assert!(read <= most, "{read} bytes were read for {} rows", rows.len());
}
