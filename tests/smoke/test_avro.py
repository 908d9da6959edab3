"""Changes as Avro: files of `ilion cdc tail`, and records with the numbers of a schema registry, read by fastavro."""

import base64
import http.server
import io
import json
import os
import struct
import subprocess
import threading

import fastavro
import pytest

from broker import RUN_SECS, Broker, open_topic
from conftest import connect
from node import OwnNode

MANY = 3000


@pytest.fixture(scope="module")
def node(request, tmp_path_factory):
    if request.config.getoption("--against"):
        pytest.skip("it starts its own node")
    node = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path_factory.mktemp("avro") / "data"), ("cdc_enabled=true",))
    node.start()
    run(
        node,
        "CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}",
        "CREATE TYPE shop.place (street text, number int)",
        "CREATE TABLE shop.orders (k int, c text, s text static, v decimal, at timestamp, day date, id uuid, home frozen<place>, "
        "tags set<text>, prices map<text, varint>, PRIMARY KEY (k, c)) WITH cdc = true",
        "INSERT INTO shop.orders (k, c, v, at, day, id, home, tags, prices) VALUES (1, 'a', 1.50, '2026-01-02T03:04:05.678Z', "
        "'1969-12-31', 9f1bd1a0-8a0c-11ee-b9d1-0242ac120002, {street: 'Am Markt', number: 7}, {'x', 'y'}, {'p': 12345678901234567890})",
        "UPDATE shop.orders USING TTL 1000 SET s = 'static' WHERE k = 1",
        "UPDATE shop.orders SET v = null, prices['p'] = null WHERE k = 1 AND c = 'a'",
        "DELETE FROM shop.orders WHERE k = 1 AND c > 'a' AND c <= 'b'",
        "DELETE FROM shop.orders WHERE k = 1 AND c = 'a'",
        "DELETE FROM shop.orders WHERE k = 1",
        "TRUNCATE shop.orders",
    )
    yield node
    node.kill()


def run(node, *statements):
    cluster = connect(node)
    session = cluster.connect()
    for statement in statements:
        session.execute(statement)
    cluster.shutdown()


def tail(node, table, *arguments, start="earliest"):
    command = [node.binary, "cdc", "tail", table, "--from", start, "--admin-port", str(node.admin_port), *arguments]
    return subprocess.run(command, capture_output=True, timeout=RUN_SECS, check=False)


def without_nulls(value):
    if isinstance(value, dict):
        return {name: without_nulls(field) for name, field in value.items() if field is not None}
    return value


def check(changes):
    """The changes that `node` made."""
    assert [change["op"] for change in changes] == ["i", "u", "u", "r", "d", "d", "t"]
    inserted = changes[0]["after"]
    assert inserted["k"]["value"] == 1 and inserted["c"]["value"] == "a"
    assert inserted["v"]["value"] == "1.50"
    assert inserted["at"]["value"].isoformat() == "2026-01-02T03:04:05.678000+00:00"
    assert inserted["day"]["value"].isoformat() == "1969-12-31"
    assert str(inserted["id"]["value"]) == "9f1bd1a0-8a0c-11ee-b9d1-0242ac120002"
    assert inserted["home"]["value"] == {"street": "Am Markt", "number": 7}
    assert [tag["key"] for tag in inserted["tags"]["value"]] == ["x", "y"]
    assert [(price["key"], price["value"]) for price in inserted["prices"]["value"]] == [("p", "12345678901234567890")]
    assert inserted["s"] is None
    static = changes[1]["after"]
    assert (static["c"], static["s"]["value"], static["s"]["ttl"]) == (None, "static", 1000)
    updated = changes[2]["after"]
    assert updated["v"]["value"] is None and updated["v"]["deletion_ts"] is not None
    deleted = changes[3]["after"]
    assert deleted["_range_start"] == {"method": "EXCL_START", "values": {"c": "a"}}
    assert deleted["_range_end"] == {"method": "INCL_END", "values": {"c": "b"}}
    assert changes[6]["after"] is None


def test_a_file_of_tail_is_read_by_fastavro_and_says_what_json_says(node):
    done = tail(node, "shop.orders", "--format", "avro", "--once")
    assert done.returncode == 0, done.stderr
    reader = fastavro.reader(io.BytesIO(done.stdout))
    assert reader.writer_schema["name"] == "shop.orders.Envelope"
    changes = list(reader)
    check(changes)
    lines = [json.loads(line) for line in tail(node, "shop.orders", "--once").stdout.splitlines()]
    assert len(changes) == len(lines)
    for change, line in zip(changes, lines):
        source = {"cluster_position": None, **line["source"]}
        assert (change["op"], change["ts_ms"], change["source"]) == (line["op"], line["ts_ms"], source)
        row, expected = (change["after"] or {}).get("_row"), (line["after"] or {}).get("_row")
        assert without_nulls(row) == without_nulls(expected)


def test_a_file_ends_when_the_table_is_altered_and_another_one_goes_on(node):
    run(node, "CREATE TABLE shop.altered (k int PRIMARY KEY) WITH cdc = true", "INSERT INTO shop.altered (k) VALUES (1)")
    command = [node.binary, "cdc", "tail", "shop.altered", "--from", "earliest", "--format", "avro"]
    command += ["--admin-port", str(node.admin_port)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as tailing:
        # fastavro returns the first change as soon as its block is there: nothing of it is held back.
        changes = fastavro.reader(tailing.stdout)
        assert next(changes)["after"]["k"]["value"] == 1
        run(node, "ALTER TABLE shop.altered ADD v text", "INSERT INTO shop.altered (k, v) VALUES (2, 'b')")
        assert list(changes) == []
        message = tailing.stderr.read().decode()
        assert tailing.wait(RUN_SECS) == 1
    assert "the table was altered" in message
    position = message.split("--from ")[1].split()[0]
    done = tail(node, "shop.altered", "--format", "avro", "--once", start=position)
    assert done.returncode == 0, done.stderr
    [change] = fastavro.reader(io.BytesIO(done.stdout))
    assert (change["after"]["k"]["value"], change["after"]["v"]["value"]) == (2, "b")


def test_the_changes_of_a_stopped_node_and_many_blocks(node):
    cluster = connect(node)
    session = cluster.connect()
    session.execute("CREATE TABLE shop.many (k int PRIMARY KEY, v text) WITH cdc = true")
    insert = session.prepare("INSERT INTO shop.many (k, v) VALUES (?, ?)")
    for key in range(MANY):
        session.execute(insert, (key, "x" * 100))
    cluster.shutdown()
    done = tail(node, "shop.many", "--format", "avro", "--once")
    assert [change["after"]["k"]["value"] for change in fastavro.reader(io.BytesIO(done.stdout))] == list(range(MANY))
    node.kill()
    done = tail(node, "shop.many", "--format", "avro", "--data", node.data)
    node.start()
    assert done.returncode == 0, done.stderr
    assert [change["after"]["k"]["value"] for change in fastavro.reader(io.BytesIO(done.stdout))] == list(range(MANY))


class SchemaRegistry(http.server.ThreadingHTTPServer):
    """Gives schemas numbers, as Confluent's registry does."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.schemas, self.subjects = [], []
        threading.Thread(target=self.serve_forever, daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        _, subjects, subject, versions = self.path.split("/")
        assert (subjects, versions) == ("subjects", "versions")
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if self.headers["authorization"] != "Basic " + base64.b64encode(b"ann:secret").decode():
            return self.answer(401, {"error_code": 401, "message": "who are you"})
        schemas = self.server.schemas
        if body["schema"] not in schemas:
            schemas.append(body["schema"])
        self.server.subjects.append(subject)
        return self.answer(200, {"id": 1000 + schemas.index(body["schema"])})

    def answer(self, status, body):
        body = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture(scope="module")
def broker(node, tmp_path_factory):
    broker = Broker(str(tmp_path_factory.mktemp("broker")))
    broker.format()
    broker.start()
    yield broker
    broker.kill()


def test_records_have_the_numbers_of_their_schemas(node, broker, tmp_path):
    registry = SchemaRegistry()
    secret = tmp_path / "secret"
    secret.write_text("secret\n")

    def sink(user):
        command = [node.binary, "cdc", "sink", f"kafka://{broker.address}/avro", "shop.orders", "--create-topics", "--once"]
        command += ["--schema-registry", f"http://127.0.0.1:{registry.server_port}", "--schema-registry-user", user]
        command += ["--schema-registry-password-file", str(secret), "--partitions", "1", "--admin-port", str(node.admin_port)]
        return subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECS, check=False)

    refused = sink("bob")
    assert refused.returncode == 1 and "it refused the login (401" in refused.stderr, refused.stderr
    done = sink("ann")
    assert done.returncode == 0, done.stderr
    assert registry.subjects == ["avro.shop.orders-key", "avro.shop.orders-value"]

    def decode(data):
        magic, number = struct.unpack(">bI", data[:5])
        assert magic == 0
        schema = fastavro.parse_schema(json.loads(registry.schemas[number - 1000]))
        datum = io.BytesIO(data[5:])
        value = fastavro.schemaless_reader(datum, schema)
        assert datum.read() == b""
        return schema["name"], value

    consumer, partitions = open_topic(broker.address, "avro.shop.orders")
    consumer.assign(partitions)
    records = []
    while not (message := consumer.poll(RUN_SECS)).error():
        records.append((message.key() and decode(message.key()), decode(message.value())))
    consumer.close()
    key = ("shop.orders.Key", {"k": 1})
    assert [key for key, _ in records] == [key] * 6 + [None]
    assert {name for _, (name, _) in records} == {"shop.orders.Envelope"}
    check([change for _, (_, change) in records])
    registry.shutdown()
