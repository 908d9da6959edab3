"""The brokers and nodes of a check or benchmark."""

import os
import subprocess

from brokers import start_brokers
from node import free_port
from nodes import Member

HERE = os.path.dirname(os.path.abspath(__file__))


class World:
    """Three brokers, and the nodes that are started beside them; what cases have to say."""

    def __init__(self, directory, binary):
        self.directory = directory
        self.binary = binary
        self.nodes = []
        self.made = 0
        self.brokers = start_brokers(directory)
        addresses = ",".join(broker.address for broker in self.brokers)
        self.log = f"kafka://{addresses}/check"
        self.ports = (free_port(), free_port())
        self.keyspace = None
        self.notes = []
        self.problems = []

    def new_node(self):
        self.made += 1
        node = Member(self.made, self.binary, self.directory, self.log, self.ports)
        self.nodes.append(node)
        return node

    def skew(self, node, seconds):
        """From its next start on, the wall clock of a node is so many seconds ahead."""
        library = os.path.join(self.directory, "skewed_clock.so")
        if not os.path.exists(library):
            source = os.path.join(HERE, "skewed_clock.c")
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        node.variables = {"LD_PRELOAD": library, "SKEW_SECS": str(seconds)} if seconds else {}

    def end(self):
        for process in [*self.nodes, *self.brokers]:
            if process.is_running():
                process.kill()
