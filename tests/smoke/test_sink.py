"""Changes of tables in topics of a real Kafka broker: nothing is lost, whoever is killed, and each partition is in order."""

import json
import os
import random
import subprocess
import threading
import time

import pytest
from cassandra import DriverException
from cassandra.cluster import NoHostAvailable
from confluent_kafka.admin import AdminClient, NewTopic

from broker import CERTIFICATES, RUN_SECS, Broker, open_topic, wait_for_records
from conftest import connect
from node import OwnNode

WRITERS = 4
KEYS = 5
SETTINGS = ("cdc_enabled=true", "commitlog_segment_size=1MiB")


@pytest.fixture(scope="module")
def broker(request, tmp_path_factory):
    if request.config.getoption("--against"):
        pytest.skip("it starts its own node")
    broker = Broker(str(tmp_path_factory.mktemp("broker")))
    broker.format()
    broker.start()
    yield broker
    broker.kill()


@pytest.fixture(scope="module")
def capturing(broker, tmp_path_factory):
    node = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path_factory.mktemp("capturing") / "data"), SETTINGS)
    node.start()
    cluster = connect(node)
    session = cluster.connect()
    session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    cluster.shutdown()
    yield node
    node.kill()


class Sink:
    """`ilion cdc sink` as a process."""

    def __init__(self, node, url, *arguments):
        self.node = node
        self.command = [node.binary, "cdc", "sink", url, "--admin-port", str(node.admin_port), *arguments]
        self.process = None

    def start(self):
        with open(f"{self.node.data}.sink.log", "ab") as log:
            self.process = subprocess.Popen(self.command, stderr=log)

    def kill(self):
        self.process.kill()
        self.process.wait(RUN_SECS)

    def run(self):
        """Sends what there is, and returns exit code and messages."""
        done = subprocess.run([*self.command, "--once"], stderr=subprocess.PIPE, text=True, timeout=RUN_SECS, check=False)
        return done.returncode, done.stderr


class Load:
    """Writers of a table, each with keys of its own. A statement that failed is tried again: the node may have been killed."""

    def __init__(self, node):
        self.node = node
        self.is_over = threading.Event()
        self.written = 0
        self.progress = threading.Condition()
        self.threads = [threading.Thread(target=self.write, args=(writer,), daemon=True) for writer in range(WRITERS)]

    def write(self, writer):
        cluster, number, chance = None, 0, random.Random(writer)
        while not self.is_over.is_set():
            key, row = writer * KEYS + number % KEYS, number // KEYS % 7
            statements = [
                f"INSERT INTO shop.orders (k, c, v, n) VALUES ({key}, {row}, '{number}', {number})",
                f"UPDATE shop.orders SET v = '{number}' WHERE k = {key} AND c = {row}",
                f"INSERT INTO shop.orders (k, c, v) VALUES ({key}, {row}, '{number}')",
                f"UPDATE shop.orders SET n = {number}, v = null WHERE k = {key} AND c = {row}",
                f"DELETE FROM shop.orders WHERE k = {key} AND c = {row}",
                f"DELETE FROM shop.orders WHERE k = {key}",
            ]
            [statement] = chance.choices(statements, weights=[8, 8, 8, 8, 2, 1])
            try:
                if cluster is None:
                    cluster = connect(self.node)
                    session = cluster.connect()
                session.execute(statement, timeout=5)
            except (DriverException, NoHostAvailable, OSError):
                if cluster is not None:
                    cluster.shutdown()
                cluster = None
                # The node starts again meanwhile.
                self.is_over.wait(0.1)
                continue
            number += 1
            with self.progress:
                self.written += 1
                self.progress.notify_all()
        if cluster is not None:
            cluster.shutdown()

    def start(self):
        for thread in self.threads:
            thread.start()

    def go_on(self, count):
        """Returns when so many more writes were acknowledged."""
        with self.progress:
            goal = self.written + count
            assert self.progress.wait_for(lambda: self.written >= goal, RUN_SECS), "the writers are too slow"

    def stop(self):
        self.is_over.set()
        for thread in self.threads:
            thread.join(RUN_SECS)


def read(address, topic):
    """All records of each partition: key and value."""
    consumer, partitions = open_topic(address, topic)
    found = {partition.partition: [] for partition in partitions}
    consumer.assign(partitions)
    ended = 0
    while ended < len(partitions):
        message = consumer.poll(RUN_SECS)
        assert message is not None, "the broker is silent"
        if message.error():
            ended += 1
        else:
            key = message.key() and json.loads(message.key())
            found[message.partition()].append((key, json.loads(message.value())))
    consumer.close()
    return found


def without_repeats(records):
    """Leaves out what comes again, as docs/cdc.md says: what is not larger than the largest before."""
    largest = ((0, 0), -1)
    for key, change in records:
        source = change["source"]
        number = (tuple(map(int, source["position"].split(":"))), source["event"])
        if number > largest:
            largest = number
            yield key, change


def fold(changes):
    """The rows that the changes make."""
    rows = {}
    for _, change in changes:
        after = change["after"]
        key = after["k"]["value"]
        if change["op"] == "d":
            wanted = (lambda row: row == (key, after["c"]["value"])) if "c" in after else (lambda row: row[0] == key)
            deleted = after["_row"]["ts_us"]
            for row in filter(wanted, rows):
                rows[row] = {name: cell for name, cell in rows[row].items() if cell[0] > deleted}
            continue
        cells = rows.setdefault((key, after["c"]["value"]), {})
        written = {name: (cell["ts_us"], cell["value"]) for name, cell in after.items() if name in ("v", "n")}
        if "_row" in after:
            written["_row"] = (after["_row"]["ts_us"], True)
        for name, cell in written.items():
            if cell[0] >= cells.get(name, (0, None))[0]:
                cells[name] = cell
    alive = {row: {name: value for name, (_, value) in cells.items()} for row, cells in rows.items()}
    alive = {row: cells for row, cells in alive.items() if any(value is not None for value in cells.values())}
    return sorted((k, c, cells.get("v"), cells.get("n")) for (k, c), cells in alive.items())


def select(node):
    cluster = connect(node)
    rows = cluster.connect().execute("SELECT k, c, v, n FROM shop.orders")
    found = sorted(tuple(row) for row in rows)
    cluster.shutdown()
    return found


def run(node, *statements):
    cluster = connect(node)
    session = cluster.connect()
    for statement in statements:
        session.execute(statement)
    cluster.shutdown()


def ilion(node, *arguments):
    command = [node.binary, *arguments, "--admin-port", str(node.admin_port)]
    return subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECS, check=True).stdout


def test_nothing_is_lost_and_partitions_are_in_order_whoever_is_killed(broker, capturing):
    node, topic = capturing, "smoke.shop.orders"
    run(node, "CREATE TABLE shop.orders (k int, c int, v text, n int, PRIMARY KEY (k, c)) WITH cdc = true")
    sink = Sink(node, f"kafka://{broker.address}/smoke", "shop.orders", "--create-topics", "--partitions", "3")
    sink.command += ["--release", "--request-timeout-ms", "3000"]
    load = Load(node)
    load.start()
    sink.start()
    load.go_on(200)
    for kill in ("sink", "broker", "node", "sink", "node"):
        wait_for_records(broker.address, topic, wait_for_records(broker.address, topic, 1) + 100)
        killed = {"sink": sink, "broker": broker, "node": node}[kill]
        killed.kill()
        if kill != "node":
            load.go_on(100)
        killed.start()
        load.go_on(100)
    load.stop()
    sink.kill()
    code, messages = sink.run()
    assert code == 0, messages

    partitions = read(broker.address, topic)
    assert all(partitions.values()), "each partition has keys"
    of_key = {json.dumps(key): number for number, records in partitions.items() for key, _ in records}
    assert sorted(of_key) == sorted(json.dumps({"k": k}) for k in range(WRITERS * KEYS))
    for number, records in partitions.items():
        assert all(of_key[json.dumps(key)] == number for key, _ in records), "a key is in one partition"
        assert all(key == {"k": change["after"]["k"]["value"]} for key, change in records)
    changes = [change for records in partitions.values() for change in without_repeats(records)]
    assert len(changes) >= load.written
    assert fold(changes) == select(node)

    [consumer] = json.loads(ilion(node, "cdc", "consumers", "--json"))["consumers"]
    assert (consumer["consumer"], consumer["table"], consumer["lag_millis"]) == ("smoke", "orders", 0)
    kept = [int(name[len("ilion-1-") : -len(".log")]) for name in os.listdir(f"{node.data}/cdc_raw") if name.endswith(".log")]
    assert all(number >= int(consumer["position"].split(":")[0]) for number in kept)
    # What was sent is not sent again.
    before = sum(map(len, partitions.values()))
    assert sink.run()[0] == 0
    assert sum(map(len, read(broker.address, topic).values())) == before


def test_failures_that_do_not_pass_say_who_must_act(broker, capturing):
    node = capturing
    run(
        node,
        "CREATE TABLE shop.large (k int PRIMARY KEY, v text) WITH cdc = true",
        "INSERT INTO shop.large (k, v) VALUES (1, 'small')",
        f"INSERT INTO shop.large (k, v) VALUES (2, '{'x' * 20_000}')",
    )
    admin = AdminClient({"bootstrap.servers": broker.address})
    topic = NewTopic("small.shop.large", 1, 1, config={"max.message.bytes": "10000"})
    admin.create_topics([topic])["small.shop.large"].result(RUN_SECS)
    for url, table, problem in [
        ("kafka://127.0.0.1:1/x", "shop.large", "no broker of 127.0.0.1:1 answers"),
        (f"kafka://{broker.address}/absent", "shop.large", "topic absent.shop.large does not exist"),
        (f"kafka://{broker.address}/small", "shop.large", "raise max.message.bytes of the topic"),
        (f"kafka://{broker.address}/small", "shop", "expected KEYSPACE.TABLE"),
    ]:
        code, messages = Sink(node, url, table).run()
        assert code != 0 and problem in messages, messages
    # The record before the one that is too large is there.
    assert [key for key, _ in read(broker.address, "small.shop.large")[0]] == [{"k": 1}]


def test_encrypted_connections_and_logins(broker, capturing, tmp_path):
    node = capturing
    run(node, "CREATE TABLE shop.secret (k int PRIMARY KEY) WITH cdc = true", "INSERT INTO shop.secret (k) VALUES (1)")
    issuer = os.path.abspath(os.path.join(CERTIFICATES, "ca.pem"))
    passwords = {"secret": tmp_path / "secret", "wrong": tmp_path / "wrong"}
    for password, path in passwords.items():
        path.write_text(password + "\n")

    def sink(user, mechanism, password):
        login = ["--sasl-username", user, "--sasl", mechanism, "--sasl-password-file", str(passwords[password])]
        url = f"kafka://{broker.secured}/secured"
        return Sink(node, url, "shop.secret", "--create-topics", "--tls-ca", issuer, *login).run()

    for user, mechanism in [("ann", "plain"), ("bob", "scram-sha-512")]:
        code, messages = sink(user, mechanism, "wrong")
        assert code != 0 and "the brokers refused the login" in messages, messages
    # ann may log in, and has no permission.
    code, messages = sink("ann", "plain", "secret")
    assert code != 0 and "needs Describe and Write" in messages, messages
    code, messages = sink("bob", "scram-sha-512", "secret")
    assert code == 0, messages
    assert sum(map(len, read(broker.address, "secured.shop.secret").values())) == 1
