"""The brokers and nodes of a check or benchmark."""

import collections
import os
import subprocess

from confluent_kafka import Consumer, TopicPartition
from confluent_kafka.admin import AdminClient

from brokers import start_brokers
from node import free_port
from nodes import Member

CLUSTER = "check"
DATA_TOPIC = f"{CLUSTER}.data"
ASK_SECS = 20
HERE = os.path.dirname(os.path.abspath(__file__))


class World:
    """Brokers, and the nodes that are started beside them; what cases have to say."""

    def __init__(self, directory, binary, has_links=False, brokers=3, settings=()):
        self.directory = directory
        # Of all nodes, as text.
        self.settings = [f"log_options_replication_factor={brokers}", *settings]
        self.binary = binary
        self.nodes = []
        self.made = 0
        self.brokers, self.links = start_brokers(directory, brokers, has_links)
        self.addresses = ",".join(broker.address for broker in self.brokers)
        self.log = f"kafka://{self.addresses}/{CLUSTER}"
        self.ports = (free_port(), free_port())
        self.keyspace = None
        self.begin_case()

    def begin_case(self):
        self.notes = []
        self.problems = []
        # Beside those of the load.
        self.more_tables = []
        # Words of errors that nodes log.
        self.expected_errors = []

    def new_node(self):
        self.made += 1
        node = Member(self.made, self.binary, self.directory, self.log, self.ports)
        node.settings.extend(self.settings)
        self.nodes.append(node)
        return node

    def leaders(self):
        """How many logs of tablets each broker leads, by the number of the broker."""
        topics = AdminClient({"bootstrap.servers": self.addresses}).list_topics(DATA_TOPIC, timeout=ASK_SECS).topics
        return collections.Counter(partition.leader for partition in topics[DATA_TOPIC].partitions.values())

    def logs(self):
        """The first offset of the log of each tablet, and the one behind its last record."""
        consumer = Consumer({"bootstrap.servers": self.addresses, "group.id": CLUSTER})
        partitions = consumer.list_topics(DATA_TOPIC, timeout=ASK_SECS).topics[DATA_TOPIC].partitions
        logs = [TopicPartition(DATA_TOPIC, partition) for partition in partitions]
        offsets = {log.partition: consumer.get_watermark_offsets(log, timeout=ASK_SECS) for log in logs}
        consumer.close()
        return offsets

    def skew(self, node, seconds):
        """From its next start on, the wall clock of a node is so many seconds ahead."""
        library = os.path.join(self.directory, "skewed_clock.so")
        if not os.path.exists(library):
            source = os.path.join(HERE, "skewed_clock.c")
            subprocess.run(["cc", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        node.variables = {"LD_PRELOAD": library, "SKEW_SECS": str(seconds)} if seconds else {}

    def end(self):
        for process in [*self.nodes, *self.brokers, self.links]:
            if process is not None and process.is_running():
                process.kill()
