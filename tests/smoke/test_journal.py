"""The log of a node in the journal of systemd. The test plays the journal, in a mount namespace where /run is its own."""

import os
import shutil
import subprocess
import sys

import pytest

from node import OwnNode

# Becomes the journal of the program in its arguments: what arrives goes to a file.
JOURNAL = """
import os, signal, socket, subprocess, sys
subprocess.run(["mount", "-t", "tmpfs", "tmpfs", "/run"], check=True)
os.makedirs("/run/systemd/journal")
journal = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
journal.bind("/run/systemd/journal/socket")
journal.settimeout(0.1)
program = subprocess.Popen(sys.argv[2:])
signal.signal(signal.SIGTERM, lambda *_: program.terminate())
with open(sys.argv[1], "wb") as entries:
    while True:
        has_ended = program.poll() is not None
        try:
            entries.write(journal.recv(1 << 20) + b"\\n")
            entries.flush()
        except socket.timeout:
            if has_ended:
                break
sys.exit(program.returncode)
"""


def field(name, value):
    """A field as the protocol of the journal has it."""
    return name.encode() + b"\n" + len(value).to_bytes(8, "little") + value.encode() + b"\n"


class NodeWithJournal(OwnNode):
    def command(self):
        own_mounts = ["unshare", "--mount", "--propagation", "private"]
        return [*own_mounts, sys.executable, "-c", JOURNAL, f"{self.data}.journal", *super().command()]


def test_the_journal_gets_the_log_with_levels_and_fields(request, tmp_path):
    if request.config.getoption("--against"):
        pytest.skip("it starts its own node")
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        pytest.skip("needs root, for a /run of its own")
    allowed = subprocess.run(["unshare", "--mount", "--propagation", "private", "true"], capture_output=True)
    if allowed.returncode != 0:
        pytest.skip(f"a mount namespace is not to be had here: {allowed.stderr}")
    node = NodeWithJournal(os.environ["SMOKE_ILION"], str(tmp_path / "data"), ["log_to=journal"])
    node.start()
    assert node.stop() == 0, node.last_words()
    with open(f"{node.data}.journal", "rb") as file:
        entries = file.read()
    assert field("MESSAGE", "stopped") in entries
    # The levels WARN and INFO.
    assert field("PRIORITY", "4") in entries or field("PRIORITY", "5") in entries
    # A field of the last event: the time of the stop.
    assert b"ILION_MILLIS\n" in entries.split(field("MESSAGE", "stopped"))[-1]


def test_without_a_journal_the_start_says_so(request, tmp_path):
    if request.config.getoption("--against") or os.path.exists("/run/systemd/journal/socket"):
        pytest.skip("this machine has a journal")
    node = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path / "data"), ["log_to=journal"])
    with pytest.raises(AssertionError, match="there is no journal of systemd"):
        node.start()
