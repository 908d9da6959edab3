"""`ilion sstable load`: SSTables of one node come into another one over its port; with kill -9, damage and a wrong table."""

import json
import os
import random
import shutil
import subprocess
import time

import pytest

from conftest import connect
from node import OwnNode

KEYSPACE = "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
# The number of SSTables is known.
UNCOMPACTED = "WITH compaction = {'class': 'SizeTieredCompactionStrategy', 'enabled': 'false'}"
TABLES = [
    f"CREATE TABLE shop.t (k int, c int, s text static, v text, m map<text, int>, PRIMARY KEY (k, c)) {UNCOMPACTED}",
    f"CREATE TABLE shop.n (k int PRIMARY KEY, n counter) {UNCOMPACTED}",
]
SELECTS = [
    "SELECT k, c, s, v, m, writetime(v), writetime(s) FROM shop.t",
    "SELECT * FROM shop.n",
]


@pytest.fixture
def pair(node, tmp_path):
    """Two nodes with the same empty tables."""
    if not node.is_ours:
        pytest.skip("it starts nodes of its own")
    nodes = [OwnNode(node.binary, str(tmp_path / name / "data")) for name in ("source", "target")]
    for one in nodes:
        os.makedirs(os.path.dirname(one.data))
        one.start()
        cluster = connect(one)
        session = cluster.connect()
        for statement in [KEYSPACE, *TABLES]:
            session.execute(statement)
        cluster.shutdown()
    yield nodes
    for one in nodes:
        if one.is_running():
            one.stop()


def execute(node, *statements):
    cluster = connect(node)
    session = cluster.connect()
    rows = [list(session.execute(statement)) for statement in statements]
    cluster.shutdown()
    return rows


def answers(node):
    return [sorted(map(repr, rows)) for rows in execute(node, *SELECTS)]


def fill(node, number):
    """Writes rows, deletions and counts of any kind, in several SSTables."""
    rng = random.Random(number)
    for _ in range(4):
        statements = []
        for _ in range(60):
            k, c, micros = rng.randrange(8), rng.randrange(8), rng.randrange(1, 1000)
            v = "v" * rng.choice([1, 10, 3000])
            kind = rng.randrange(7)
            if kind == 0:
                statements.append(f"DELETE FROM shop.t USING TIMESTAMP {micros} WHERE k = {k} AND c > {c}")
            elif kind == 1:
                statements.append(f"DELETE v FROM shop.t USING TIMESTAMP {micros} WHERE k = {k} AND c = {c}")
            elif kind == 2:
                statements.append(f"INSERT INTO shop.t (k, s) VALUES ({k}, '{v}') USING TIMESTAMP {micros}")
            elif kind == 3:
                statements.append(f"UPDATE shop.n SET n = n + {c} WHERE k = {k}")
            elif kind == 4:
                statements.append(
                    f"UPDATE shop.t USING TIMESTAMP {micros} AND TTL 9000 SET m['{c}'] = {k} WHERE k = {k} AND c = {c}"
                )
            else:
                statements.append(
                    f"INSERT INTO shop.t (k, c, v) VALUES ({k}, {c}, '{v}') USING TIMESTAMP {micros}"
                )
        execute(node, *statements)
        node.flush("shop")


def snapshot(node, tag):
    """Directories of a snapshot's tables."""
    subprocess.run([node.binary, "snapshot", "-t", tag, "shop", "--admin-port", str(node.admin_port)], check=True)
    listed = subprocess.run(
        [node.binary, "list-snapshots", "--json", "--admin-port", str(node.admin_port)],
        capture_output=True,
        check=True,
    )
    taken = json.loads(listed.stdout)["snapshots"]
    return sorted(one["directory"] for one in taken if one["tag"] == tag and one["keyspace"] == "shop")


def command(node, *arguments):
    place = ["--host", node.host, "--admin-port", str(node.admin_port)]
    return [node.binary, "sstable", "load", *place, *arguments]


def load(node, *arguments, fails=False):
    done = subprocess.run(command(node, *arguments), capture_output=True, text=True)
    assert (done.returncode != 0) == fails, done
    return done.stdout + done.stderr


def left(node):
    return [name for name in os.listdir(os.path.join(node.data, "data")) if name.startswith("ilion.load-")]


def test_what_one_node_has_another_one_loads(pair):
    source, target = pair
    fill(source, 20261124)
    tables = snapshot(source, "all")
    assert len(tables) == 2
    told = load(target, *tables)
    assert "load: 8 SSTables, 0 refused" in told
    assert not left(target)
    expected = answers(source)
    assert answers(target) == expected
    # Again, and with a restart between: it changes nothing.
    target.kill()
    target.start()
    report = json.loads(load(target, "--json", *tables))
    assert len(report["loaded"]) == 8 and report["refused"] == []
    assert answers(target) == expected
    # Counting goes on from what came.
    for one in pair:
        execute(one, "UPDATE shop.n SET n = n + 5 WHERE k = 3")
    assert answers(target) == answers(source)


def test_damage_and_a_wrong_table_are_refused_and_the_rest_is_loaded(pair, tmp_path):
    source, target = pair
    fill(source, 1)
    [counters, rows] = snapshot(source, "some")
    told = load(target, "--table", "n", rows, fails=True)
    assert "load: 0 SSTables, 4 refused" in told and "its clustering is (int), that of the table ()" in told
    assert "is not KEYSPACE/TABLE" not in told
    copy = tmp_path / "shop" / "t"
    shutil.copytree(rows, copy)
    [damaged, *_] = sorted(path for path in copy.iterdir() if path.name.endswith("-Data.db"))
    content = bytearray(damaged.read_bytes())
    content[len(content) // 2] ^= 0x10
    damaged.write_bytes(content)
    told = load(target, str(copy), fails=True)
    assert "load: 3 SSTables, 1 refused" in told and f"{damaged} was refused: corrupt file {damaged.name}" in told
    assert not left(target)
    told = load(target, str(tmp_path), fails=True)
    assert "there is no SSTable in it" in told


def test_a_node_that_is_killed_in_the_middle_has_all_or_nothing(pair):
    source, target = pair
    execute(source, *(f"INSERT INTO shop.t (k, c, v) VALUES ({k}, 0, '{os.urandom(400_000).hex()}')" for k in range(12)))
    source.flush("shop")
    [_, rows] = snapshot(source, "large")
    # Several pieces, of which the second one waits.
    loading = subprocess.Popen(
        command(target, "--throttle", "1", rows), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    deadline = time.monotonic() + 60
    while not left(target):
        assert loading.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    target.kill()
    told, _ = loading.communicate(timeout=60)
    assert loading.returncode == 1 and "was not loaded: cannot reach a node's administration" in told
    assert left(target)
    target.start()
    assert not left(target)
    assert execute(target, "SELECT k FROM shop.t") == [[]]
    assert "load: 1 SSTables, 0 refused" in load(target, rows)
    assert answers(target) == answers(source)
