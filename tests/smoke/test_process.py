"""The process: start, refused settings, commands of operators, stop."""

import json
import os
import socket
import subprocess
import urllib.error
import urllib.request

import pytest

from conftest import connect
from node import OwnNode, free_port

RUN_SECS = 60


@pytest.fixture
def own(request, tmp_path):
    if request.config.getoption("--against"):
        pytest.skip("only for a process of ours")
    node = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path / "data"))
    yield node
    if node.is_running():
        node.stop()


def refused(command):
    """Runs a node that should not start; returns its exit code and its output."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=RUN_SECS)
    assert done.returncode != 0
    return done.returncode, done.stdout + done.stderr


def test_three_lines_say_where_everything_is(own):
    own.start()
    # They are written after the port has been opened.
    own.wait_for_words("cqlsh")
    said = own.last_words()
    for part in (own.data, f"127.0.0.1:{own.port}", "cqlsh", "log"):
        assert part in said


def test_a_second_process_on_the_same_data_is_refused(own, tmp_path):
    own.start()
    second = OwnNode(own.binary, own.data)
    _, said = refused(second.command())
    assert own.data in said
    cluster = connect(own)
    assert cluster.connect().execute("SELECT key FROM system.local").one().key == "local"
    cluster.shutdown()


def test_a_port_in_use_is_named(own, tmp_path):
    own.start()
    second = OwnNode(own.binary, str(tmp_path / "other"))
    second.port = own.port
    _, said = refused(second.command())
    assert str(own.port) in said


@pytest.mark.parametrize(
    "setting, part",
    [("no_such_setting=1", "no_such_setting"), ("commitlog_sync=sometimes", "sometimes"), ("native_transport_port=x", "x")],
)
def test_a_wrong_setting_is_named(own, setting, part):
    code, said = refused(own.command() + ["--set", setting])
    assert code == 2 and part in said


def test_a_file_in_place_of_the_data_directory_is_named(own):
    with open(own.data, "w") as file:
        file.write("not a directory")
    _, said = refused(own.command())
    assert own.data in said


def test_the_admin_door_tells_what_goes_on(own):
    own.start()
    cluster = connect(own)
    session = cluster.connect()
    session.execute("CREATE KEYSPACE told WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE told.t (k int PRIMARY KEY)")
    session.execute("INSERT INTO told.t (k) VALUES (1)")

    def ask(*words):
        command = [own.binary, words[0], "--admin-port", str(own.admin_port), *words[1:]]
        return subprocess.run(command, check=True, capture_output=True, text=True, timeout=RUN_SECS).stdout

    assert "told" in ask("status")
    assert json.loads(ask("info", "--json"))
    ask("flush", "told", "t")
    ask("compact", "told")
    [directory] = [name for name in os.listdir(os.path.join(own.data, "data", "told")) if name.startswith("t-")]
    files = os.listdir(os.path.join(own.data, "data", "told", directory))
    assert any(name.endswith("-big-Data.db") for name in files)
    with urllib.request.urlopen(f"http://127.0.0.1:{own.admin_port}/metrics", timeout=RUN_SECS) as answer:
        assert b"# TYPE" in answer.read()
    ask("drain")
    cluster.shutdown()


# Not in the range of loopback addresses, so a token is required, but other machines cannot reach it.
BEYOND = "::ffff:127.0.0.1"


def status_of(node, path, **headers):
    request = urllib.request.Request(f"http://127.0.0.1:{node.admin_port}{path}", headers=headers)
    try:
        with urllib.request.urlopen(request, timeout=RUN_SECS) as answer:
            return answer.status
    except urllib.error.HTTPError as error:
        return error.code


@pytest.mark.parametrize("address", ["0.0.0.0", BEYOND])
def test_an_admin_port_for_other_machines_needs_a_token(own, address):
    _, said = refused(own.command() + ["--set", f"admin_address={address}"])
    assert "admin_token_file" in said


@pytest.mark.parametrize("address", ["127.0.0.1", BEYOND])
def test_an_admin_port_with_a_token_answers_who_shows_it(own, tmp_path, address):
    if address == BEYOND:
        try:
            socket.create_server((address, 0), family=socket.AF_INET6).close()
        except OSError:
            pytest.skip("no IPv6")
    token = tmp_path / "token"
    token.write_text("open-sesame\n")
    own.settings = [f"admin_address={address}", f"admin_token_file={token}"]
    own.start()
    for path in ("/metrics", "/admin/status", "/admin/compactions"):
        assert status_of(own, path) == 401
        assert status_of(own, path, Authorization="Bearer open") == 401
        assert status_of(own, path, Authorization="Bearer open-sesame") == 200
    # The page itself needs no token: it asks for one.
    assert status_of(own, "/") == 200


def test_asking_where_nobody_is_fails_with_a_word(own):
    command = [own.binary, "status", "--admin-port", str(free_port())]
    code, said = refused(command)
    assert code == 1 and "127.0.0.1" in said


def test_the_bench_finds_no_fault(own):
    own.start()
    for workload in ("write", "read", "scan"):
        command = [own.binary, "bench", workload, "--port", str(own.port), "--keys", "2000", "--json"]
        done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=RUN_SECS)
        result = json.loads(done.stdout)
        assert result["errors"] == 0 and result["rows"] == 2000


@pytest.mark.parametrize("mix", ["a", "d", "e", "f"])
def test_the_soak_finds_no_fault_and_says_what_it_saw(own, tmp_path, mix):
    own.start()
    result = tmp_path / "soak.json"
    target = ["--port", str(own.port), "--admin-port", str(own.admin_port), "--pid", str(own.process.pid)]
    command = [own.binary, "bench", "soak", *target, "--data", own.data, "--mix", mix, "--rows", "500", "--secs", "1"]
    done = subprocess.run([*command, "--json", str(result)], check=True, capture_output=True, text=True, timeout=RUN_SECS)
    assert f"mix {mix.upper()}, " in done.stdout and "slowest second" in done.stdout
    found = json.loads(result.read_text())
    assert found["operations"] > 100 and found["memory_most_bytes"] > 1 << 20
    assert (found["rows_after"] > found["rows_before"]) == (mix in "de")


def test_a_soak_at_a_rate_does_no_more(own, tmp_path):
    directory, result = tmp_path / "embedded", tmp_path / "soak.json"
    command = [own.binary, "bench", "soak", "--embedded", "--data", directory, "--rows", "500", "--secs", "1", "--rate", "200"]
    subprocess.run([*command, "--json", result], check=True, capture_output=True, text=True, timeout=RUN_SECS)
    assert 50 < json.loads(result.read_text())["operations"] <= 200


@pytest.mark.parametrize("where, find_by", [("server", "partition"), ("embedded", "partition"), ("server", "sai"), ("embedded", "table-index")])
def test_a_queue_gives_an_entry_that_waits_in_every_cycle(own, tmp_path, where, find_by):
    result = tmp_path / "queue.json"
    target = ["--embedded", "--data", tmp_path / "embedded"]
    if where == "server":
        own.start()
        target = ["--port", str(own.port), "--admin-port", str(own.admin_port), "--pid", str(own.process.pid)]
    command = [own.binary, "bench", "queue", *target, "--find-by", find_by, "--queues", "2", "--cycles", "600", "--json", result]
    subprocess.run(command, check=True, capture_output=True, text=True, timeout=RUN_SECS)
    found = json.loads(result.read_text())
    assert [part["cycles"] for part in found["parts"]] == [60] * 10
    assert all(part["reads"]["p50_micros"] > 0 for part in found["parts"])
