"""A node under test: a process that the tests start, or a running server."""

import os
import random
import signal
import socket
import subprocess
import time

OPTIONS = b"\x04\x00\x00\x00\x05\x00\x00\x00\x00"
SUPPORTED = 0x06
START_SECS = 60
STOP_SECS = 60
PATIENCE_SECS = 60


# Below those that the system gives to clients: none of these takes a port before its server does.
PORTS = range(20_000, 32_000)
# Each worker of pytest-xdist has ports of its own. They begin anywhere, for other runs on this machine.
WORKER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0")[2:])
WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_turn = random.SystemRandom().randrange(len(PORTS))


def free_port():
    """A port that nobody uses, and that this process has not got before."""
    global _turn
    for _ in PORTS:
        _turn += 1
        port = PORTS[(_turn * WORKERS + WORKER) % len(PORTS)]
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise AssertionError(f"no port of {PORTS} is free")


def wait_until(is_true, what):
    deadline = time.monotonic() + PATIENCE_SECS
    while not is_true():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.005)


def answers(host, port):
    """True if a server at this address answers in the native protocol."""
    try:
        with socket.create_connection((host, port), timeout=2) as connection:
            connection.sendall(OPTIONS)
            head = connection.recv(9)
    except OSError:
        return False
    return len(head) >= 5 and head[4] == SUPPORTED


class Node:
    """Host and port of a server."""

    is_ours = False

    def __init__(self, host, port):
        self.host = host
        self.port = port


class OwnNode(Node):
    """A process that the tests start, stop and kill."""

    is_ours = True

    def __init__(self, binary, data, settings=(), variables=None):
        super().__init__("127.0.0.1", free_port())
        self.admin_port = free_port()
        self.binary = binary
        self.data = data
        self.settings = settings
        # Of its environment.
        self.variables = variables or {}
        self.process = None
        self.log = os.path.join(os.path.dirname(data), os.path.basename(data) + ".log")

    def command(self):
        ports = ["--port", str(self.port), "--admin-port", str(self.admin_port)]
        return [self.binary, "serve", "--data", self.data, *ports, *(f"--set={setting}" for setting in self.settings)]

    def start(self):
        with open(self.log, "ab") as log:
            environment = {**os.environ, **self.variables}
            self.process = subprocess.Popen(
                self.command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=environment
            )
        deadline = time.monotonic() + START_SECS
        while not answers(self.host, self.port):
            assert self.process.poll() is None, f"the node ended with {self.process.returncode}:\n{self.last_words()}"
            assert time.monotonic() < deadline, f"no CQL on port {self.port}:\n{self.last_words()}"
            time.sleep(0.02)

    def wait_for_words(self, words):
        """Waits until the process has written these words."""
        deadline = time.monotonic() + START_SECS
        while words not in self.last_words():
            assert time.monotonic() < deadline, f"no {words!r} in:\n{self.last_words()}"
            time.sleep(0.02)

    def flush(self, *names):
        """Flushes the memtables of a keyspace, of a table, or all."""
        command = [self.binary, "flush", "--admin-port", str(self.admin_port), *names]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def stop(self):
        """Stops the process with SIGTERM and returns its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_SECS)

    def kill(self):
        """Ends the process as a crash does: it flushes nothing."""
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(STOP_SECS)

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def last_words(self):
        with open(self.log, errors="replace") as log:
            return "".join(log.readlines()[-40:])


class MemberNode(OwnNode):
    """A node of a cluster. Members differ in their addresses and have the same ports."""

    def __init__(self, number, binary, directory, log, ports, settings):
        settings = [f"storage_port={ports[1]}", f"rack=rack{number}", *settings]
        super().__init__(binary, os.path.join(directory, f"node{number}"), settings)
        self.number = number
        self.host = f"127.0.0.{number}"
        self.port = ports[0]
        self.log_url = log

    def command(self):
        return [*super().command(), "--address", self.host, "--log", self.log_url]

    def nodetool(self, *words):
        """What nodetool prints; it must succeed."""
        command = [self.binary, "nodetool", "-p", str(self.admin_port), *words]
        done = subprocess.run(command, capture_output=True, text=True)
        assert done.returncode == 0, f"nodetool {' '.join(words)}: {done.stdout}{done.stderr}"
        return done.stdout
