"""A node as a child process."""

from __future__ import annotations

import os
import re
import select
import subprocess
import time
from typing import Any, Iterable, Optional, Union

from ilion.program import program

START_SECS = 60
STOP_SECS = 60
# What the program says when clients can connect, and where its page is.
CLIENTS = re.compile(r"^CQL clients connect to (\S+):(\d+),", re.MULTILINE)
PAGE = re.compile(r"administration at https?://\S+:(\d+)\.$", re.MULTILINE)
LOG_LINES = 20


class StartError(RuntimeError):
    """The node does not start; the message has the last lines of its log."""


class Node:
    """A node on free ports of 127.0.0.1, with its data in a directory.

    `settings` are those of docs/settings.md, as NAME=VALUE. The variables ILION_* of this process do not count for it.

        with ilion.Node("data") as node:
            session = node.driver().connect()
    """

    def __init__(self, directory: Union[str, os.PathLike[str]], settings: Iterable[str] = ()) -> None:
        self.directory = os.fspath(directory)
        self.settings = list(settings)
        self.host: Optional[str] = None
        self.port: Optional[int] = None
        self.admin_port: Optional[int] = None
        self._process: Any = None
        self._log = os.path.join(self.directory, "node.log")

    def start(self) -> Node:
        """Returns when clients can connect."""
        if self._process:
            raise RuntimeError("the node runs")
        os.makedirs(self.directory, exist_ok=True)
        own = ["--data", self.directory, "--port", "0", "--admin-port", "0", "--set=log_to=stderr"]
        variables = {name: value for name, value in os.environ.items() if not name.startswith("ILION_")}
        with open(self._log, "wb") as log:
            self._process = subprocess.Popen(
                [program(), "serve", *own, *(f"--set={setting}" for setting in self.settings)],
                env=variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
            )
        try:
            clients, page = self._greeting()
        except BaseException:
            self.kill()
            raise
        self.host, self.port, self.admin_port = clients[1], int(clients[2]), int(page[1])
        return self

    def _greeting(self) -> tuple[re.Match[str], re.Match[str]]:
        output, text, deadline = self._process.stdout, "", time.monotonic() + START_SECS
        while True:
            clients, page = CLIENTS.search(text), PAGE.search(text)
            if clients and page:
                return clients, page
            ready, _, _ = select.select([output], [], [], max(0, deadline - time.monotonic()))
            if not ready:
                raise StartError(f"the node does not start within {START_SECS} s:\n{self._last_lines()}")
            piece = os.read(output.fileno(), 4096)
            if not piece:
                raise StartError(f"the node does not start:\n{self._last_lines()}")
            text += piece.decode(errors="replace")

    def stop(self) -> None:
        """Stops the node: what clients have sent is answered and stored."""
        if not self._process:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECS)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        self._forget()

    def kill(self) -> None:
        """Ends the process at once."""
        if self._process:
            self._process.kill()
            self._process.wait()
            self._forget()

    def _forget(self) -> None:
        self._process.stdout.close()
        self._process = None

    def log(self) -> str:
        """The log of the last start."""
        with open(self._log, encoding="utf-8", errors="replace") as log:
            return log.read()

    def _last_lines(self) -> str:
        return "\n".join(self.log().splitlines()[-LOG_LINES:])

    def driver(self, **options: Any) -> Any:
        """A Cluster of the stock driver for this node; `options` are more arguments of it."""
        try:
            from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
            from cassandra.policies import RoundRobinPolicy
        except ImportError as error:
            raise ImportError("the driver is missing: pip install 'ilion[pytest]', or cassandra-driver") from error
        options.setdefault("protocol_version", 5)
        if "execution_profiles" not in options:
            profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy())
            options["execution_profiles"] = {EXEC_PROFILE_DEFAULT: profile}
        return Cluster([self.host], port=self.port, **options)

    def __enter__(self) -> Node:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()
