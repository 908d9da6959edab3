"""The dashboard for Grafana: its file is one by Grafana's schema, and a real Prometheus has data for every panel of nodes under load.

Grafana itself is not in the registries that the tests use. Its schema is: grafana-foundation-sdk is generated from it.
"""

import json
import math
import os
import pathlib
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from http import HTTPStatus

import pytest
from cassandra import InvalidRequest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import WhiteListRoundRobinPolicy

from broker import Broker
from node import MemberNode, OwnNode, free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
DASHBOARD = ROOT / "docs" / "grafana" / "ilion.json"
WAIT_SECS = 120
# Grafana computes four scrapes for $__rate_interval.
SCRAPE = "1s"
RATE_INTERVAL = "4s"


def panels():
    return json.loads(DASHBOARD.read_text())["panels"]


def lost(given, kept, place=""):
    """Parts of the file that do not come back from the schema's types."""
    if isinstance(given, dict):
        if not isinstance(kept, dict):
            return [place]
        return [
            part
            for name, value in given.items()
            for part in (lost(value, kept[name], f"{place}/{name}") if name in kept else [f"{place}/{name}"])
        ]
    if isinstance(given, list):
        if not isinstance(kept, list) or len(given) != len(kept):
            return [place]
        pairs = enumerate(zip(given, kept))
        return [part for index, (one, other) in pairs for part in lost(one, other, f"{place}[{index}]")]
    return [] if given == kept else [place]


def test_the_file_has_only_what_the_schema_of_grafana_knows():
    pytest.importorskip("grafana_foundation_sdk", reason="grafana-foundation-sdk needs Python 3.11")
    from grafana_foundation_sdk.cog import encoder, plugins, runtime
    from grafana_foundation_sdk.models.dashboard import Dashboard

    def kept(given):
        return json.loads(encoder.JSONEncoder().encode(Dashboard.from_json(given)))

    plugins.register_default_plugins()
    given = json.loads(DASHBOARD.read_text())
    assert lost(given, kept(given)) == []
    assert all(runtime.panelcfg_config(panel["type"]) for panel in given["panels"])
    numbers = [panel["id"] for panel in given["panels"]]
    assert len(set(numbers)) == len(numbers)
    # The same check finds a name that the schema does not have.
    given["panels"][0]["fieldConfig"]["defaults"]["units"] = "s"
    assert lost(given, kept(given)) == ["/panels[0]/fieldConfig/defaults/units"]


class Prometheus:
    """A server that scrapes nodes on this machine."""

    def __init__(self, directory, nodes):
        self.address = f"127.0.0.1:{free_port()}"
        self.log = directory / "prometheus.log"
        targets = [f"127.0.0.1:{node.admin_port}" for node in nodes]
        job = {"job_name": "ilion", "scrape_interval": SCRAPE, "static_configs": [{"targets": targets}]}
        settings = directory / "prometheus.yml"
        # JSON is YAML.
        settings.write_text(json.dumps({"scrape_configs": [job]}))
        command = ["prometheus", f"--config.file={settings}", f"--storage.tsdb.path={directory / 'prometheus'}"]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                [*command, f"--web.listen-address={self.address}"], stdout=log, stderr=log, stdin=subprocess.DEVNULL
            )

    def ask(self, query):
        """The series of an expression now; `None` while the server does not answer."""
        url = f"http://{self.address}/api/v1/query?{urllib.parse.urlencode({'query': query})}"
        try:
            with urllib.request.urlopen(url, timeout=10) as answer:
                return json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            # It listens before it has read what it stored.
            if error.code == HTTPStatus.SERVICE_UNAVAILABLE:
                return None
            raise AssertionError(f"{query}: {error.read().decode()}") from error
        except OSError:
            assert self.process.poll() is None, self.log.read_text()
            return None

    def end(self):
        self.process.terminate()
        self.process.wait(60)


def has_data(series):
    """Whether a graph would have a point."""
    return any(math.isfinite(float(one["value"][1])) for one in series or [])


def expression(target):
    """As Grafana sends it, with all values of the variables."""
    text = target["expr"].replace("$__rate_interval", RATE_INTERVAL)
    for variable in ("$instance", "$keyspace"):
        text = text.replace(variable, ".*")
    assert "$" not in text, text
    return text


class Load:
    """A client of a node that writes, reads, deletes, scans and asks what fails, again and again."""

    def __init__(self, node, replication):
        self.node = node
        self.is_over = threading.Event()
        policy = WhiteListRoundRobinPolicy([node.host])
        profile = ExecutionProfile(load_balancing_policy=policy, request_timeout=60)
        self.cluster = Cluster(
            [node.host], port=node.port, protocol_version=5, execution_profiles={EXEC_PROFILE_DEFAULT: profile}
        )
        self.session = self.cluster.connect()
        self.session.execute(f"CREATE KEYSPACE IF NOT EXISTS shop WITH replication = {replication}")
        self.session.execute(
            "CREATE TABLE IF NOT EXISTS shop.t (k int, c int, v text, PRIMARY KEY (k, c))"
            " WITH compaction = {'class': 'SizeTieredCompactionStrategy', 'min_threshold': 2}"
        )
        self.failure = None
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        try:
            self.work()
        except Exception as error:
            self.failure = error

    def work(self):
        insert = self.session.prepare("INSERT INTO shop.t (k, c, v) VALUES (?, ?, ?)")
        read = self.session.prepare("SELECT * FROM shop.t WHERE k = ?")
        expiring = self.session.prepare("INSERT INTO shop.t (k, c, v) VALUES (?, ?, ?) USING TTL ?")
        round_ = 0
        while not self.is_over.is_set():
            round_ += 1
            for key in range(20):
                self.session.execute(insert, (key, round_ % 50, "v" * 200))
                self.session.execute("DELETE FROM shop.t WHERE k = %s AND c = %s", (key, (round_ + 25) % 50))
                self.session.execute(read, (key,))
                self.session.execute(read, (-1 - key,))
            self.session.execute("SELECT count(*) FROM shop.t")
            # One is refused when it is parsed, one when it is executed.
            self.fail("SELECT nothing FROM shop.t")
            self.fail(expiring, (1, 1, "v", -1))
            self.node.flush("shop")

    def fail(self, statement, values=None):
        with pytest.raises(InvalidRequest):
            self.session.execute(statement, values)

    def end(self):
        self.is_over.set()
        self.thread.join()
        self.cluster.shutdown()


@pytest.fixture
def nodes(request, tmp_path):
    """A node, and a cluster of two."""
    if request.config.getoption("--against"):
        pytest.skip("it starts its own nodes")
    if shutil.which("prometheus") is None:
        pytest.skip("needs prometheus (apt-get install)")
    broker = Broker(str(tmp_path))
    broker.format()
    broker.start()
    binary, ports = os.environ["SMOKE_ILION"], (free_port(), free_port())
    # Reads go to the disk now and then.
    single = OwnNode(binary, str(tmp_path / "single"), ["file_cache_size=1MiB"])
    log = f"kafka://{broker.address}/grafana"
    settings = ["tablets=4", "log_options_replication_factor=1"]
    members = [MemberNode(number, binary, str(tmp_path), log, ports, settings) for number in (1, 2)]
    started = [single, *members]
    for node in started:
        node.start()
    yield started
    for node in started:
        if node.is_running():
            node.kill()
    broker.kill()


def test_every_panel_has_data_in_a_real_prometheus(nodes, tmp_path):
    one = "{'class': 'SimpleStrategy', 'replication_factor': 1}"
    loads = [Load(node, one) for node in nodes]
    prometheus = Prometheus(tmp_path, nodes)
    try:
        waiting = {
            (panel["title"], expression(target)) for panel in panels() for target in panel["targets"]
        }
        deadline = time.monotonic() + WAIT_SECS
        while waiting:
            waiting = {(title, query) for title, query in waiting if not has_data(prometheus.ask(query))}
            failures = [load.failure for load in loads if load.failure]
            assert not failures, failures
            assert time.monotonic() < deadline, f"no data: {sorted(waiting)}"
            time.sleep(0.5)
    finally:
        for load in loads:
            load.end()
        prometheus.end()
