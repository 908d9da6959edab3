"""`nodetool scrub`: a damaged SSTable of a running node is replaced by what can be read of it."""

import glob
import os
import subprocess

from conftest import connect, create_keyspace


def nodetool(node, *arguments):
    command = [node.binary, "nodetool", "-p", str(node.admin_port), *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, done.stdout + done.stderr


def damage(path):
    with open(path, "r+b") as file:
        file.seek(os.path.getsize(path) // 2)
        byte = file.read(1)
        file.seek(-1, os.SEEK_CUR)
        file.write(bytes([byte[0] ^ 0x10]))


def data_files(node, keyspace, table):
    return sorted(glob.glob(os.path.join(node.data, "data", keyspace, f"{table}-*", "nb-*-Data.db")))


def test_what_can_be_read_takes_the_place_of_a_damaged_sstable(own):
    cluster = connect(own)
    session = cluster.connect()
    keyspace = create_keyspace(session)
    session.set_keyspace(keyspace)
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v text)")
    session.execute("CREATE TABLE n (k int PRIMARY KEY, n counter)")
    session.execute("CREATE INDEX ON t (v)")
    for start in (0, 1000):
        for k in range(start, start + 200):
            session.execute("INSERT INTO t (k, v) VALUES (%s, %s)", (k, os.urandom(200).hex()))
        own.flush(keyspace, "t")
    for k in range(300):
        session.execute("UPDATE n SET n = n + 1 WHERE k = %s", (k,))
    own.flush(keyspace, "n")
    assert nodetool(own, "scrub", keyspace) == (0, "")
    [first, second] = data_files(own, keyspace, "t")
    [counters] = data_files(own, keyspace, "n")
    damage(first)
    damage(counters)
    assert nodetool(own, "verify", "-f", keyspace, "t")[0] == 2
    code, told = nodetool(own, "scrub", keyspace, "t")
    assert code == 0 and f"{first} was damaged:" in told and "lost" in told
    assert "scrub: 2 SSTables, 1 damaged, 0 of them still" in told
    assert nodetool(own, "verify", "-f", keyspace, "t") == (0, ""), told
    assert not os.path.exists(first) and os.path.exists(second)
    # The damaged files are in the snapshot.
    [snapshot] = glob.glob(os.path.join(os.path.dirname(first), "snapshots", "pre-scrub-*"))
    assert os.path.exists(os.path.join(snapshot, os.path.basename(first)))
    found = {row.k: row.v for row in session.execute("SELECT k, v FROM t")}
    assert set(range(1000, 1200)) < set(found) and 250 < len(found) < 400
    some = next(iter(found))
    assert [row.k for row in session.execute("SELECT k FROM t WHERE v = %s", (found[some],))] == [some]
    # Counts that are too low are worse than none.
    code, told = nodetool(own, "scrub", keyspace, "n")
    assert code == 2 and "-s accepts that" in told and os.path.exists(counters)
    assert nodetool(own, "scrub", "-s", "-ns", keyspace, "n")[0] == 0
    assert not os.path.exists(counters)
    # All of it holds after a crash. What was lost may come back: the new SSTable does not cover the commit log.
    own.kill()
    own.start()
    assert nodetool(own, "verify", "-f", keyspace) == (0, "")
    cluster.shutdown()
    cluster = connect(own)
    rows = {row.k: row.v for row in cluster.connect(keyspace).execute("SELECT k, v FROM t")}
    assert found.items() <= rows.items()
    cluster.shutdown()
    assert not [name for name in os.listdir(os.path.join(own.data, "data")) if name.startswith("ilion.load-")]
