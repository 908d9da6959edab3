"""Nodes of the cluster under test, and what they say of themselves."""

import os
import re
import shutil
import signal
import time
import urllib.request

from node import MemberNode

TABLETS = 12
# For the case of a node that is away for longer. It matters only if a log has many records.
DOWN_MAX_SECS = 20
JOIN_SECS = 120
STANDING = re.compile(r"^ilion_cluster_(lag_records|tablets_[a-z]+) (\d+)$", re.M)


class Member(MemberNode):
    """A node of the cluster under test."""

    def __init__(self, *of_member):
        super().__init__(*of_member, [f"tablets={TABLETS}", f"down_max={DOWN_MAX_SECS}s"])
        # So much of its log was looked at.
        self.log_read = 0
        # So much of it is of earlier processes.
        self.log_before = 0

    def start(self):
        self.log_before = os.path.getsize(self.log) if os.path.exists(self.log) else 0
        super().start()

    def words_since_start(self):
        with open(self.log, errors="replace") as log:
            log.seek(self.log_before)
            return log.read()

    def pause(self):
        self.process.send_signal(signal.SIGSTOP)

    def resume(self):
        self.process.send_signal(signal.SIGCONT)

    def wipe(self):
        shutil.rmtree(self.data)

    def new_errors(self):
        """Lines of its log at level ERROR, and panics, since the last call."""
        with open(self.log, errors="replace") as log:
            log.seek(self.log_read)
            lines = log.readlines()
            self.log_read = log.tell()
        return [line.strip() for line in lines if " ERROR " in line or "panicked" in line]

    def metrics(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin_port}/metrics", timeout=5) as answer:
            return answer.read().decode()

    def metric(self, name):
        """A number from its metrics."""
        return int(re.search(rf"^{name} (\d+)$", self.metrics(), re.M).group(1))

    def standing(self):
        """Numbers from its metrics, by name."""
        return {name: int(value) for name, value in STANDING.findall(self.metrics())}

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
