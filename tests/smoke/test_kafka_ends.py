"""The end of a log, as three real brokers give it: one that was cut off from the others does not know the end, and is not believed."""

import os
import subprocess
import sys
import time
from collections import Counter

import pytest
from confluent_kafka.admin import AdminClient

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "cluster_check"))

from brokers import start_brokers  # noqa: E402

TABLETS = 16
PATIENCE_SECS = 60
NEW_RECORDS = 200


@pytest.fixture(scope="module")
def cluster(request, tmp_path_factory):
    if request.config.getoption("--against"):
        pytest.skip("it starts its own brokers")
    brokers, links = start_brokers(str(tmp_path_factory.mktemp("brokers")), 3, has_links=True)
    yield ",".join(broker.address for broker in brokers), links
    for process in [*brokers, links]:
        process.kill()


class Node:
    """A program with its own view of the brokers, asked line by line."""

    def __init__(self, addresses, number):
        command = [os.environ["SMOKE_KAFKA_LOG"], "ask", f"kafka://{addresses}/ends", f"node={number}", "replicas=3"]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, verb, log):
        """A number, or None."""
        self.process.stdin.write(f"{verb} {log}\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline().strip()
        assert answer, "the program has ended"
        return None if answer == "none" else int(answer)

    def insist(self, verb, log):
        """The number, as soon as there is one."""
        ends = time.monotonic() + PATIENCE_SECS
        while time.monotonic() < ends:
            number = self.ask(verb, log)
            if number is not None:
                return number
        raise AssertionError(f"{verb} {log} has no answer")

    def stop(self):
        self.process.stdin.close()
        assert self.process.wait(PATIENCE_SECS) == 0


def leaders(addresses):
    topic = AdminClient({"bootstrap.servers": addresses}).list_topics("ends.data", timeout=PATIENCE_SECS).topics["ends.data"]
    return {number: partition.leader for number, partition in topic.partitions.items()}


def test_a_leader_that_was_cut_off_is_not_believed(cluster):
    addresses, links = cluster
    writer, reader = Node(addresses, 1), Node(addresses, 2)
    for log in range(TABLETS):
        acknowledged = writer.insist("append", log)
        assert reader.insist("end", log) > acknowledged
    led = leaders(addresses)
    [(broker, _)] = Counter(led.values()).most_common(1)
    logs = [log for log in range(TABLETS) if led[log] == broker]
    links.tell("part", broker)
    known = 0
    # The writer learns of the new leader, since nothing is acknowledged by the old one. The reader has no reason to look for one.
    for number in range(NEW_RECORDS):
        log = logs[number % len(logs)]
        acknowledged = writer.insist("append", log)
        found = reader.ask("end", log)
        assert found is None or found > acknowledged, f"log {log} ends at {found}, and {acknowledged} was acknowledged before"
        known += found is not None
    assert known > NEW_RECORDS / 2, "the new leader and its follower are enough"
    links.tell("heal")
    for log in range(TABLETS):
        acknowledged = writer.insist("append", log)
        assert reader.insist("end", log) > acknowledged
    writer.stop()
    reader.stop()
