"""Commands that take long show a bar on a terminal, and nothing of it elsewhere."""

import os
import pty
import subprocess

import pytest

from conftest import connect
from node import OwnNode

ROWS = 200


@pytest.fixture(scope="module")
def node(request, tmp_path_factory):
    if request.config.getoption("--against"):
        pytest.skip("it starts its own node")
    node = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path_factory.mktemp("bars") / "data"), ["cdc_enabled=true"])
    node.start()
    cluster = connect(node)
    session = cluster.connect()
    session.execute("CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE ks.t (k int PRIMARY KEY, v text) WITH cdc = true")
    insert = session.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)")
    for k in range(ROWS):
        session.execute(insert, (k, "x" * 2000))
    cluster.shutdown()
    yield node
    assert node.stop() == 0


def on_a_terminal(command, label):
    """Runs a command whose stderr is a terminal; returns its stdout, which is read once the terminal has shown the label."""
    terminal, inside = pty.openpty()
    tool = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=inside, env={**os.environ, "TERM": "xterm"})
    os.close(inside)
    shown = b""
    try:
        while label not in shown:
            shown += os.read(terminal, 1024)
        told = tool.stdout.read()
        assert tool.wait() == 0, shown
    except OSError:
        # All that had the terminal have ended.
        pytest.fail(f"no bar, but {shown!r}")
    finally:
        os.close(terminal)
        tool.kill()
        tool.wait()
    return told


COMMANDS = {
    "top-partitions": ["top-partitions", "--duration", "700", "--admin-port"],
    "toppartitions": ["nodetool", "toppartitions", "700", "-p"],
    "cdc tail": ["cdc", "tail", "ks.t", "--from", "earliest", "--once", "--admin-port"],
}


@pytest.mark.parametrize("label", COMMANDS)
def test_a_long_command_shows_a_bar_on_a_terminal_only(node, label):
    command = [node.binary, *COMMANDS[label], str(node.admin_port)]
    told = on_a_terminal(command, label.encode())
    silent = subprocess.run(command, capture_output=True, check=True)
    assert silent.stderr == b""
    if label == "cdc tail":
        assert told == silent.stdout and told.count(b"\n") == ROWS
