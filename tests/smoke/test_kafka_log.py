"""The logs of a cluster on a real Kafka broker: all readers read the same, and nothing that was acknowledged is missing, whatever fails."""

import os
import subprocess
from collections import defaultdict

import pytest
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ResourceType,
)

from broker import CERTIFICATES, RUN_SECS, Broker, wait_for_records

TABLETS = 16


@pytest.fixture(scope="module")
def broker(request, tmp_path_factory):
    if request.config.getoption("--against"):
        pytest.skip("it starts its own broker")
    if not os.path.exists(os.environ["SMOKE_KAFKA_LOG"]):
        pytest.skip("it needs: cargo build --release -p ilion-kafka-log --example kafka_log")
    broker = Broker(str(tmp_path_factory.mktemp("broker")))
    broker.format()
    broker.start()
    yield broker
    broker.kill()


class Program:
    """`kafka_log`, whose lines go to a file."""

    def __init__(self, directory, address, prefix, verb, **settings):
        self.lines_path = os.path.join(directory, f"{prefix}-{verb}-{settings.get('node', 0)}-{len(os.listdir(directory))}")
        named = [f"{name.replace('_', '-')}={value}" for name, value in settings.items()]
        command = [os.environ["SMOKE_KAFKA_LOG"], verb, f"kafka://{address}/{prefix}", *named]
        with open(self.lines_path, "w") as lines:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=lines, stderr=subprocess.PIPE, text=True
            )

    def finish(self):
        """Exit code and messages. What goes on `until` standard input ends, ends now."""
        messages = self.process.communicate(timeout=RUN_SECS)[1]
        return self.process.returncode, messages

    def records(self):
        """(log, offset, node, seq) of each line, once it has ended well."""
        code, messages = self.finish()
        assert code == 0, messages
        with open(self.lines_path) as lines:
            return [tuple(map(int, line.split())) for line in lines]


def run(directory, address, prefix, verb, **settings):
    return Program(str(directory), address, prefix, verb, **settings).finish()


def check(acknowledged, readers):
    """The readers agree, what was acknowledged is where that said, and each sender's acknowledged records are in order, copies left out.

    A record that nobody acknowledged may come behind newer ones: it was given up while its request waited at a broker that was paused.
    """
    known = {(log, node, seq) for log, _, node, seq in acknowledged}
    by_log = [defaultdict(list) for _ in readers]
    for logs, records in zip(by_log, readers):
        for log, offset, node, seq in records:
            logs[log].append((offset, node, seq))
    assert all(logs == by_log[0] for logs in by_log)
    assert set(acknowledged) <= set(readers[0])
    for log, records in by_log[0].items():
        offsets = [offset for offset, _, _ in records]
        assert offsets == sorted(set(offsets))
        seen, newest = set(), defaultdict(int)
        for _, node, seq in records:
            if (log, node, seq) in known and (node, seq) not in seen:
                assert seq > newest[node], f"record {seq} of node {node} comes after {newest[node]}"
                newest[node] = seq
                seen.add((node, seq))


def test_two_readers_read_the_same_of_what_two_nodes_append(broker, tmp_path):
    directory, count = str(tmp_path), 50_000
    run(directory, broker.address, "same", "tail", idle=1)
    readers = [Program(directory, broker.address, "same", "tail", idle=3, until="stdin") for _ in range(2)]
    writers = [
        Program(directory, broker.address, "same", "append", node=node, count=count, in_flight=500) for node in (1, 2)
    ]
    acknowledged = [record for writer in writers for record in writer.records()]
    assert len(acknowledged) == 2 * count
    read = [reader.records() for reader in readers]
    assert len(read[0]) == 2 * count, "no copies without a failure"
    check(acknowledged, read)


def test_nothing_acknowledged_is_missing_when_the_broker_is_killed_and_paused(broker, tmp_path):
    directory = str(tmp_path)
    run(directory, broker.address, "killed", "tail", idle=1)
    readers = [Program(directory, broker.address, "killed", "tail", idle=5, until="stdin") for _ in range(2)]
    writers = [
        Program(directory, broker.address, "killed", "append", node=node, count=0, until="stdin", rate=500, in_flight=4000)
        for node in (1, 2)
    ]
    goal = 500
    wait_for_records(broker.address, "killed.data", goal)
    broker.kill()
    broker.start()
    # After a start the broker has what it acknowledged; more must come.
    found = wait_for_records(broker.address, "killed.data", goal)
    wait_for_records(broker.address, "killed.data", found + goal)
    broker.pause(10)
    found = wait_for_records(broker.address, "killed.data", goal)
    wait_for_records(broker.address, "killed.data", found + goal)
    acknowledged = [record for writer in writers for record in writer.records()]
    check(acknowledged, [reader.records() for reader in readers])


def test_what_is_wrong_says_what_to_do(broker, tmp_path):
    code, messages = run(tmp_path, "127.0.0.1:1", "absent", "tail", idle=0)
    assert code == 1 and messages.startswith("no broker of 127.0.0.1:1 answers: "), messages
    code, messages = run(tmp_path, broker.address, "three", "tail", idle=0, replicas=3)
    assert code == 1 and "1 brokers are up, and each log must be on 3" in messages, messages

    assert run(tmp_path, broker.address, "wrong", "append", count=32)[0] == 0
    admin = AdminClient({"bootstrap.servers": broker.address})
    entry = ConfigEntry("retention.ms", "1000000", incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(ResourceType.TOPIC, "wrong.data", incremental_configs=[entry])
    admin.incremental_alter_configs([resource])[resource].result(RUN_SECS)
    code, messages = run(tmp_path, broker.address, "wrong", "tail", idle=0)
    assert code == 1 and "topic wrong.data has retention.ms=1000000, wanted -1: " in messages, messages
    assert f"kafka-configs.sh --bootstrap-server {broker.address} --alter --entity-type topics" in messages
    code, messages = run(tmp_path, broker.address, "wrong", "tail", idle=0, tablets=8)
    assert code == 1 and "has 16 partitions, and this cluster at most 8 logs in it" in messages, messages


def test_records_of_another_cluster_are_not_read(broker, tmp_path):
    assert run(tmp_path, broker.address, "other", "append", count=16, cluster=1)[0] == 0
    assert run(tmp_path, broker.address, "other", "append", count=16, cluster=2)[0] == 0
    reader = Program(str(tmp_path), broker.address, "other", "tail", idle=2, cluster=1)
    code, messages = reader.finish()
    assert code == 1 and messages.count("two clusters use the same prefix of topics") == TABLETS, messages
    with open(reader.lines_path) as lines:
        assert len(lines.readlines()) == 16, "its own records come before that"


def test_deleted_records_are_told_and_others_stay_where_they_are(broker, tmp_path):
    assert run(tmp_path, broker.address, "deleted", "append", count=16 * 100)[0] == 0
    code, messages = run(tmp_path, broker.address, "deleted", "delete", log=3, below=60)
    assert code == 0, messages
    code, messages = run(tmp_path, broker.address, "deleted", "tail", idle=2)
    assert code == 1 and "log 3 has deleted its records below 60" in messages, messages
    records = Program(str(tmp_path), broker.address, "deleted", "tail", idle=2, **{"from": 60}).records()
    assert [offset for log, offset, _, _ in records if log == 3] == list(range(60, 100))
    code, messages = run(tmp_path, broker.address, "deleted", "delete", log=3, below=1000)
    assert code == 1 and "log 3 has no offset 1000" in messages, messages


def test_large_records_come_among_small_ones(broker, tmp_path):
    directory = str(tmp_path)
    assert run(directory, broker.address, "large", "append", count=16 * 200, node=1)[0] == 0
    large = Program(directory, broker.address, "large", "append", count=32, node=2, bytes=3_000_000, in_flight=8).records()
    assert run(directory, broker.address, "large", "append", count=16 * 200, node=3)[0] == 0
    records = Program(directory, broker.address, "large", "tail", idle=5).records()
    check(large, [records])
    assert len(records) == 2 * 16 * 200 + 32


def test_encrypted_connections_and_logins(broker, tmp_path):
    issuer = os.path.abspath(os.path.join(CERTIFICATES, "ca.pem"))

    def append(**login):
        return run(tmp_path, broker.secured, "secured", "append", count=16, ca=issuer, **login)

    for login in ({"user": "ann", "sasl": "plain"}, {"user": "bob", "sasl": "scram-sha-512"}):
        code, messages = append(password="wrong", **login)
        assert code == 1 and "the brokers refused the login: " in messages, messages
    code, messages = append(user="ann", password="secret", sasl="plain")
    assert code == 1 and "the brokers refused topic secured.data" in messages, messages
    code, messages = append(user="bob", password="secret", sasl="scram-sha-256")
    assert code == 1 and "SCRAM-SHA-256 is not permitted there, but PLAIN, SCRAM-SHA-512" in messages, messages
    code, messages = append(user="bob", password="secret", sasl="scram-sha-512")
    assert code == 0 and "appended 16 of 16" in messages, messages
    records = Program(str(tmp_path), broker.address, "secured", "tail", idle=2).records()
    assert len(records) == 16
