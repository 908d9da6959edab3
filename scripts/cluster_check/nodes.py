"""Nodes of the cluster under test, and what they say of themselves."""

import os
import re
import shutil
import signal
import subprocess
import time
import urllib.request

from node import OwnNode

TABLETS = 12
JOIN_SECS = 120
STANDING = re.compile(r"^ilion_cluster_(lag_records|tablets_[a-z]+) (\d+)$", re.M)


class Member(OwnNode):
    """A node. Nodes differ in their addresses and have the same ports."""

    def __init__(self, number, binary, directory, log, ports):
        settings = [
            f"storage_port={ports[1]}",
            f"tablets={TABLETS}",
            f"rack=rack{number}",
        ]
        super().__init__(binary, os.path.join(directory, f"node{number}"), settings)
        self.number = number
        self.host = f"127.0.0.{number}"
        self.port = ports[0]
        self.log_url = log
        # So much of its log was looked at.
        self.log_read = 0

    def command(self):
        return [*super().command(), "--address", self.host, "--log", self.log_url]

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def nodetool(self, *words):
        """What nodetool prints; it must succeed."""
        command = [self.binary, "nodetool", "-p", str(self.admin_port), *words]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"nodetool {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout

    def wipe(self):
        shutil.rmtree(self.data)

    def new_errors(self):
        """Lines of its log at level ERROR, and panics, since the last call."""
        with open(self.log, errors="replace") as log:
            log.seek(self.log_read)
            lines = log.readlines()
            self.log_read = log.tell()
        return [line.strip() for line in lines if " ERROR " in line or "panicked" in line]

    def standing(self):
        """Numbers from its metrics, by name."""
        url = f"http://127.0.0.1:{self.admin_port}/metrics"
        with urllib.request.urlopen(url, timeout=5) as answer:
            return {name: int(value) for name, value in STANDING.findall(answer.read().decode())}

    def wait_caught_up(self):
        """Waits until it has applied everything. Returns the reason if it does not."""
        deadline = time.monotonic() + JOIN_SECS
        said = None
        while time.monotonic() < deadline:
            try:
                said = self.standing()
            except OSError as error:
                said = error
            else:
                is_ready = said["tablets_ready"] == said["tablets_followed"] > 0
                if is_ready and said["lag_records"] == said["tablets_lacking"] == said["tablets_halted"] == 0:
                    return None
            time.sleep(0.2)
        return f"node {self.number} has not caught up: {said}"
