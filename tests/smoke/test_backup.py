"""Backups of a running node: to a directory and to object stores, restored, and with the tool killed in the middle."""

import json
import os
import shutil
import subprocess
import time

import pytest

from conftest import connect, create_keyspace
from node import PATIENCE_SECS, OwnNode, wait_until
from object_stores import SERVERS, Destination


@pytest.fixture(scope="module")
def servers(tmp_path_factory):
    """Servers of object stores by scheme: each is started by the first test that needs it."""
    running = {}

    def server(scheme):
        if scheme not in running:
            SERVERS[scheme].fetch()
            running[scheme] = SERVERS[scheme](tmp_path_factory.mktemp(scheme))
        return running[scheme]

    yield server
    for one in running.values():
        one.stop()


@pytest.fixture(params=["directory", "s3"])
def destination(request, servers, tmp_path):
    if request.param == "directory":
        return Destination(str(tmp_path / "backups"))
    return servers(request.param).destination(tmp_path.name)


@pytest.fixture
def source(request, tmp_path):
    if request.config.getoption("--against"):
        pytest.skip("backups are made on the machine of the node")
    settings = [f"commitlog_archive_directory={tmp_path / 'archive'}", "commitlog_segment_size=1MiB"]
    node = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path / "data"), settings)
    node.start()
    yield node
    if node.is_running():
        assert node.stop() == 0


def command_of(verb, *arguments):
    return [os.environ["SMOKE_ILION"], "backup", verb, *arguments]


def ilion(destination, verb, *arguments, fails=False):
    environment = {**os.environ, **destination.variables}
    done = subprocess.run(command_of(verb, *arguments), capture_output=True, text=True, env=environment)
    assert (done.returncode != 0) == fails, f"{verb} {arguments}: {done.stdout}{done.stderr}"
    return done.stderr if fails else json.loads(done.stdout)


def of_node(node):
    return ["--admin-port", str(node.admin_port), "--json"]


def fill(session, keyspace, first, count):
    insert = session.prepare(f"INSERT INTO {keyspace}.kept (k, v) VALUES (?, ?)")
    for k in range(first, first + count):
        session.execute(insert, (k, os.urandom(1500).hex()))


def rows_of(node, table):
    cluster = connect(node)
    rows = {tuple(row) for row in cluster.connect().execute(f"SELECT k, v FROM {table}")}
    cluster.shutdown()
    return rows


def prepared(node):
    cluster = connect(node)
    session = cluster.connect()
    keyspace = create_keyspace(session)
    session.execute(f"CREATE TABLE {keyspace}.kept (k int PRIMARY KEY, v text)")
    fill(session, keyspace, 0, 300)
    return cluster, session, keyspace


def restored_rows(target, table):
    """What a node has that is started in a restored directory."""
    node = OwnNode(os.environ["SMOKE_ILION"], str(target))
    node.start()
    rows = rows_of(node, table)
    assert node.stop() == 0
    shutil.rmtree(target)
    return rows


@pytest.mark.parametrize("destination", ["directory", *SERVERS], indirect=True)
def test_a_node_and_its_tables_come_back(source, destination, tmp_path):
    cluster, session, keyspace = prepared(source)
    table = f"{keyspace}.kept"
    first = rows_of(source, table)
    created = ilion(destination, "create", destination.name, "--name", "one", *of_node(source))
    assert created["uploaded_bytes"] > 0
    fill(session, keyspace, 1000, 10)
    second = rows_of(source, table)
    millis = time.time_ns() // 1_000_000
    instant = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(millis // 1000)) + f".{millis % 1000:03}Z"
    wait_until(lambda: time.time_ns() // 1_000_000 > millis, "the instant ends")
    session.execute(f"TRUNCATE {table}")
    assert ilion(destination, "log", destination.name, *of_node(source))["segments"] > 0
    created = ilion(destination, "create", destination.name, "--name", "two", *of_node(source))
    assert created["uploaded_bytes"] < 1 << 20
    assert ilion(destination, "verify", destination.name, "--json")["findings"] == []
    listed = ilion(destination, "list", destination.name, "--json")["backups"]
    assert [backup["name"] for backup in listed] == ["one", "two"]

    target = str(tmp_path / "restored")
    for choice, expected in [(["one"], first), (["--to", instant], second), (["--to", "latest"], set())]:
        ilion(destination, "restore", destination.name, *choice, "--into", target, "--json")
        assert restored_rows(target, table) == expected, choice
    of_table = ["--keyspace", keyspace, "--table", "kept", *of_node(source)]
    reason = ilion(destination, "restore", destination.name, "one", *of_table, fails=True)
    assert "exists; give the restored one another name with --as" in reason
    ilion(destination, "restore", destination.name, "one", *of_table, "--as", "was")
    assert rows_of(source, f"{keyspace}.was") == first
    assert rows_of(source, table) == set()
    ilion(destination, "delete", destination.name, "one", "--json")
    assert ilion(destination, "verify", destination.name, "--json")["findings"] == []
    reason = ilion(destination, "restore", destination.name, "one", "--into", target, fails=True)
    assert "there is no backup one at" in reason
    cluster.shutdown()

    assert source.stop() == 0
    stopped = ["--stopped", "--data", source.data, "--json"]
    ilion(destination, "create", destination.name, "--name", "three", *stopped)
    ilion(destination, "restore", destination.name, "three", "--into", target, "--json")
    assert restored_rows(target, f"{keyspace}.was") == first


def files_below(directory):
    return sum(len(files) for _, _, files in os.walk(directory))


def killed_when(command, is_time, what):
    """Starts a tool and kills it at that time, or when it has ended."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: is_time() or process.poll() is not None, what)
    process.kill()
    return process.wait() != 0


def test_a_tool_that_is_killed_harms_nothing_and_can_run_again(source, tmp_path):
    cluster, session, keyspace = prepared(source)
    table = f"{keyspace}.kept"
    place = Destination(str(tmp_path / "backups"))
    ilion(place, "create", place.name, "--name", "one", *of_node(source))
    first = rows_of(source, table)
    killed = 0
    for number in range(4):
        fill(session, keyspace, 2000 + number * 300, 300)
        objects = files_below(tmp_path / "backups" / "objects")
        create = command_of("create", place.name, "--name", "two", "--rate", "1", *of_node(source))
        has_more = lambda: files_below(tmp_path / "backups" / "objects") > objects + number
        killed += killed_when(create, has_more, "the backup has begun")
        assert ilion(place, "verify", place.name, "--json")["findings"] == []
        names = [backup["name"] for backup in ilion(place, "list", place.name, "--json")["backups"]]
        if "two" in names:
            ilion(place, "delete", place.name, "two", "--json")
    reason = ilion(place, "delete", place.name, "one", fails=True)
    assert "is running at" in reason
    ilion(place, "create", place.name, "--name", "two", *of_node(source))
    second = rows_of(source, table)
    assert not [tag for tag in os.listdir(tmp_path) if tag.endswith(".restoring")]

    target = tmp_path / "restored"
    restoring = tmp_path / "restored.restoring"
    for number in range(3):
        restore = command_of("restore", place.name, "two", "--into", str(target), "--rate", "2")
        begun = files_below(restoring)
        killed += killed_when(restore, lambda: files_below(restoring) > begun + 20, "the restore has begun")
        if target.exists():
            assert restored_rows(target, table) == second
    ilion(place, "restore", place.name, "two", "--into", str(target), "--json")
    assert restored_rows(target, table) == second
    assert killed >= 4, "most tools had ended before they were killed"

    manifest = tmp_path / "backups" / "backups" / "one.json"
    killed_when(command_of("delete", place.name, "one"), lambda: not manifest.exists(), "the backup is deleted")
    assert ilion(place, "verify", place.name, "--json")["findings"] == []
    ilion(place, "delete", place.name, "--json")
    ilion(place, "restore", place.name, "two", "--into", str(target), "--json")
    assert restored_rows(target, table) == second
    assert first < second
    cluster.shutdown()


def unfinished(node):
    """Snapshots of tables that the node is making, those of a backup included."""
    return [place for place, _, _ in os.walk(node.data) if place.endswith(".making")]


def tables_named(node, name):
    return [place for place, _, _ in os.walk(node.data) if os.path.basename(place).startswith(f"{name}-")]


def test_a_node_that_is_killed_in_the_middle_loses_nothing_and_can_try_again(source, destination):
    cluster, session, keyspace = prepared(source)
    table = f"{keyspace}.kept"
    ilion(destination, "create", destination.name, "--name", "one", *of_node(source))
    first = rows_of(source, table)
    admin = ["--admin-port", str(source.admin_port)]
    snapshot = [source.binary, "snapshot", "-t", "cut", keyspace, *admin]
    create = command_of("create", destination.name, "--name", "two", *of_node(source))
    of_table = ["--keyspace", keyspace, "--table", "kept", "--as", "was"]
    restore = command_of("restore", destination.name, "one", *of_table, *of_node(source))
    environment = {**os.environ, **destination.variables}
    works = {
        "snapshot": (snapshot, lambda: unfinished(source)),
        "create": (create, lambda: unfinished(source)),
        "restore": (restore, lambda: tables_named(source, "was")),
    }
    interrupted = []
    for name, (command, has_begun) in works.items():
        fill(session, keyspace, 5000 + len(interrupted) * 100, 50)
        expected = rows_of(source, table)
        # A snapshot takes a while: so it is found in the middle.
        throttle = [source.binary, "nodetool", "-p", str(source.admin_port), "setsnapshotthrottle", "20"]
        subprocess.run(throttle, check=True)
        tool = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_until(lambda: has_begun() or tool.poll() is not None, f"{name} has begun")
        source.kill()
        cluster.shutdown()
        if tool.wait(PATIENCE_SECS) != 0:
            interrupted.append(name)
        source.start()
        assert rows_of(source, table) == expected, name
        cluster = connect(source)
        session = cluster.connect()
        session.execute(f"DROP TABLE IF EXISTS {keyspace}.was")
        subprocess.run([source.binary, "clear-snapshot", "-t", "cut", *admin], check=True)
        names = [backup["name"] for backup in ilion(destination, "list", destination.name, "--json")["backups"]]
        if "two" in names:
            ilion(destination, "delete", destination.name, "two", "--json")
        again = subprocess.run(command, env=environment, capture_output=True, text=True)
        assert again.returncode == 0, f"{name}: {again.stdout}{again.stderr}"
        assert not unfinished(source), name
    assert {"snapshot", "create"} <= set(interrupted), "most tools had ended before the node was killed"
    assert rows_of(source, f"{keyspace}.was") == first
    assert ilion(destination, "verify", destination.name, "--json")["findings"] == []
    cluster.shutdown()
