"""Snapshots over the command line: taken, listed, brought back, cleared; before TRUNCATE and DROP; with kill -9."""

import json
import os
import subprocess

import pytest

from conftest import connect, create_keyspace


@pytest.fixture
def session(own):
    cluster = connect(own)
    session = cluster.connect()
    session.set_keyspace(create_keyspace(session))
    yield session
    cluster.shutdown()


def run(node, *arguments, fails=False):
    command = [node.binary, *arguments, "--admin-port", str(node.admin_port)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert (done.returncode != 0) == fails, done
    return done.stderr if fails else done.stdout


def snapshots(node):
    return json.loads(run(node, "list-snapshots", "--json"))["snapshots"]


def fill(session):
    session.execute("CREATE TABLE t (k int PRIMARY KEY, v text, w text)")
    session.execute("CREATE INDEX by_v ON t (v)")
    session.execute("CREATE INDEX by_w ON t (w) USING 'sai'")
    for k in range(100):
        session.execute("INSERT INTO t (k, v, w) VALUES (%s, %s, %s)", (k, f"v{k % 5}", f"w{k % 10}"))


def check(session):
    assert len(list(session.execute("SELECT * FROM t"))) == 100
    assert len(list(session.execute("SELECT * FROM t WHERE v = 'v3'"))) == 20
    assert len(list(session.execute("SELECT * FROM t WHERE w = 'w7'"))) == 10


def bring_back(node, keyspace, directory):
    run(node, "sstable", "import", "--copy-data", keyspace, "t", directory)


def test_a_snapshot_is_taken_emptied_and_brought_back(own, session):
    keyspace = session.keyspace
    fill(session)
    told = run(own, "snapshot", "-t", "first", keyspace)
    assert told == (
        f"Requested creating snapshot(s) for [{keyspace}] with snapshot name [first] and options {{skipFlush=false}}\n"
        "Snapshot directory: first\n"
    )
    assert "Snapshot first already exists." in run(own, "snapshot", "-t", "first", keyspace, fails=True)
    [first] = snapshots(own)
    assert sorted(name for name in os.listdir(first["directory"]) if not name.startswith("nb-")) == [
        ".by_v",
        "manifest.json",
        "schema.cql",
    ]
    with open(os.path.join(first["directory"], "manifest.json")) as file:
        manifest = json.load(file)
    assert manifest["files"] == ["nb-1-big-Data.db", ".by_v/nb-1-big-Data.db"]
    assert manifest["created_at"] == first["created_at"] and manifest["expires_at"] is None
    data = os.path.join(first["directory"], "nb-1-big-Data.db")
    assert os.stat(data).st_nlink == 2
    session.execute("TRUNCATE t")
    assert not list(session.execute("SELECT * FROM t WHERE v = 'v3'"))
    bring_back(own, keyspace, first["directory"])
    check(session)
    listed = run(own, "listsnapshots").splitlines()
    assert listed[0] == "Snapshot Details: "
    columns = "Snapshot name Keyspace name Column family name True size Size on disk Creation time Expiration time"
    assert " ".join(listed[1].split()) == columns
    assert [line.split()[0].split("-")[0] for line in listed[2:4]] == ["first", "truncated"]
    rows = session.execute("SELECT name, table_name FROM system_views.snapshots")
    assert {row.name.split("-")[0] for row in rows} == {"first", "truncated"}
    run(own, "clear-snapshot", fails=True)
    assert run(own, "clearsnapshot", "--all") == (
        "Requested clearing snapshot(s) for [all keyspaces] with [all snapshots]\n"
    )
    assert run(own, "list-snapshots") == "Snapshot Details: \nThere are no snapshots\n"
    check(session)


def test_what_was_dropped_can_be_brought_back_after_kill_9(own, session):
    keyspace = session.keyspace
    fill(session)
    session.execute("DROP TABLE t")
    own.kill()
    own.start()
    cluster = connect(own)
    session = cluster.connect(keyspace)
    [dropped] = snapshots(own)
    assert dropped["tag"].startswith("dropped-") and dropped["table"] == "t"
    with open(os.path.join(dropped["directory"], "schema.cql")) as file:
        for statement in file.read().split(";"):
            if statement.strip():
                session.execute(statement)
    bring_back(own, keyspace, dropped["directory"])
    check(session)
    cluster.shutdown()


def test_files_of_a_snapshot_are_put_back_by_hand(own, session):
    keyspace = session.keyspace
    fill(session)
    run(own, "snapshot", "-kt", f"{keyspace}.t", "--ttl", "1h", "--tag", "s")
    [taken] = snapshots(own)
    assert taken["expires_at"] > taken["created_at"]
    session.execute("TRUNCATE t")
    run(own, "drain")
    assert own.stop() == 0
    table = os.path.dirname(os.path.dirname(taken["directory"]))
    subprocess.run(["cp", "-r", taken["directory"] + "/.", table], check=True)
    own.start()
    cluster = connect(own)
    check(cluster.connect(keyspace))
    cluster.shutdown()


def test_the_longest_name_of_a_table_is_no_obstacle(own, session):
    name = "t" * 222
    for statement in ["TRUNCATE", "DROP TABLE"]:
        session.execute(f"CREATE TABLE IF NOT EXISTS {name} (k int PRIMARY KEY)")
        session.execute(f"INSERT INTO {name} (k) VALUES (1)")
        session.execute(f"{statement} {name}")
    tags = [one["tag"].split("-")[0] for one in snapshots(own)]
    assert sorted(tags) == ["dropped", "truncated"]
    run(own, "clear-snapshot", "--all")
    assert not snapshots(own)
