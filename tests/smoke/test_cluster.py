"""Three nodes are one cluster over a Kafka broker: whatever is killed, what was acknowledged is there, on every node."""

import json
import os
import queue
import shutil
import signal
import subprocess
import threading
import time

import pytest
from cassandra import AuthenticationFailed, ConsistencyLevel, DriverException, InvalidRequest, Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.connection import ConnectionException
from cassandra.protocol import ErrorMessage
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.policies import FallthroughRetryPolicy, WhiteListRoundRobinPolicy
from cassandra.query import SimpleStatement

from broker import CERTIFICATES, Broker
from dashboard import CHROMIUM, cells, launched, opened
from node import MemberNode, OwnNode, answers, free_port
from shell import Cqlsh

NODES = 3
WRITERS_EACH = 2
TABLETS = 8


class Member(MemberNode):
    """A node of a cluster on one broker."""

    def __init__(self, *of_member):
        super().__init__(*of_member, [f"tablets={TABLETS}", "log_options_replication_factor=1"])

    def connect(self, who=None):
        """A session with this node only, which tries nothing twice. `who` is a role and its password."""
        profile = ExecutionProfile(
            load_balancing_policy=WhiteListRoundRobinPolicy([self.host]),
            retry_policy=FallthroughRetryPolicy(),
            consistency_level=ConsistencyLevel.QUORUM,
            request_timeout=30,
        )
        cluster = Cluster(
            [self.host],
            port=self.port,
            protocol_version=5,
            execution_profiles={EXEC_PROFILE_DEFAULT: profile},
            auth_provider=who and PlainTextAuthProvider(*who),
        )
        return cluster, cluster.connect()

    def refuses(self, who):
        """Whether a login fails because of its password or its role."""
        try:
            cluster, _ = self.connect(who)
        except NoHostAvailable as failed:
            [error] = failed.errors.values()
            return isinstance(error, AuthenticationFailed)
        cluster.shutdown()
        return False


@pytest.fixture
def members(request, tmp_path):
    if request.config.getoption("--against"):
        pytest.skip("it starts its own nodes")
    broker = Broker(str(tmp_path))
    broker.format()
    broker.start()
    ports = (free_port(), free_port())
    log = f"kafka://{broker.address}/smoke"
    binary = os.environ["SMOKE_ILION"]
    nodes = [Member(number, binary, str(tmp_path), log, ports) for number in range(1, NODES + 1)]
    for node in nodes:
        node.settings += [setting.format(number=node.number) for setting in getattr(request, "param", [])]
    for node in nodes:
        node.start()
    yield broker, nodes
    for node in nodes:
        if node.is_running():
            node.kill()
    broker.kill()


class Load:
    """Writers on every node. They note what was acknowledged, and what was tried."""

    def __init__(self, nodes):
        self.nodes = nodes
        self.lock = threading.Lock()
        self.acknowledged = set()
        self.counted = [0, 0]
        self.is_over = False
        self.grown = threading.Condition(self.lock)
        self.threads = [
            threading.Thread(target=self.write, args=(node, place * WRITERS_EACH + writer))
            for place, node in enumerate(nodes)
            for writer in range(WRITERS_EACH)
        ]
        for thread in self.threads:
            thread.start()

    def write(self, node, writer):
        number, cluster, session = 0, None, None
        while not self.is_over:
            number += 1
            try:
                if session is None:
                    cluster, session = node.connect()
                session.execute("INSERT INTO ks.rows (k, c, v) VALUES (%s, %s, 'x')", (writer, number))
                with self.grown:
                    self.acknowledged.add((writer, number))
                    self.grown.notify_all()
                    self.counted[1] += 1
                session.execute("UPDATE ks.counts SET n = n + 1 WHERE k = 0")
                with self.lock:
                    self.counted[0] += 1
            except (DriverException, NoHostAvailable, ErrorMessage, ConnectionException, OSError):
                if cluster is not None:
                    cluster.shutdown()
                cluster = session = None
        if cluster is not None:
            cluster.shutdown()

    def grow(self, rows):
        """Waits until so many more rows are acknowledged."""
        with self.grown:
            goal = len(self.acknowledged) + rows
            assert self.grown.wait_for(lambda: len(self.acknowledged) >= goal, 120), "writes do not go on"

    def end(self):
        self.is_over = True
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive()


def check(nodes, load):
    """Every node has what was acknowledged, and counted it once."""
    for node in nodes:
        cluster, session = node.connect()
        found = set(tuple(row) for row in session.execute("SELECT k, c FROM ks.rows"))
        assert load.acknowledged <= found, f"{len(load.acknowledged - found)} rows are missing on {node.host}"
        count = session.execute("SELECT n FROM ks.counts WHERE k = 0").one()[0]
        assert load.counted[0] <= count <= load.counted[1], f"{count} on {node.host}, {load.counted}"
        cluster.shutdown()


def create(session, replicas=3):
    session.execute(
        f"CREATE KEYSPACE ks WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': {replicas}}}"
    )
    session.execute("CREATE TABLE ks.rows (k int, c int, v text, PRIMARY KEY (k, c))")
    session.execute("CREATE TABLE ks.counts (k int PRIMARY KEY, n counter)")


def test_nothing_acknowledged_is_lost_when_nodes_and_the_broker_are_killed(members):
    broker, nodes = members
    cluster, session = nodes[0].connect()
    create(session)
    load = Load(nodes)
    load.grow(300)
    nodes[1].kill()
    load.grow(200)
    nodes[1].start()
    load.grow(200)
    broker.kill()
    broker.start()
    load.grow(200)
    # The schema changes while nodes write.
    session.execute(SimpleStatement("ALTER TABLE ks.rows ADD more text"))
    nodes[2].kill()
    load.grow(100)
    nodes[2].start()
    load.end()
    cluster.shutdown()
    check(nodes, load)
    # A clean stop and start of all.
    for node in nodes:
        assert node.stop() == 0, node.last_words()
    for node in nodes:
        node.start()
    check(nodes, load)


def test_a_lost_node_is_replaced_by_an_empty_one(members):
    _, nodes = members
    cluster, session = nodes[0].connect()
    create(session)
    load = Load(nodes[:2])
    load.grow(300)
    nodes[2].kill()
    shutil.rmtree(nodes[2].data)
    refused = run(nodes[2])
    assert "A node with address 127.0.0.3" in refused and "replace_address_first_boot" in refused, refused
    nodes[2].settings += ["replace_address_first_boot=127.0.0.3"]
    # A node is thought to be down when it was silent for some seconds.
    until(lambda: "DN  127.0.0.3" in nodes[0].nodetool("status"))
    nodes[2].start()
    load.grow(100)
    load.end()
    cluster.shutdown()
    check(nodes, load)
    assert members_of(nodes[0]) == {"127.0.0.1", "127.0.0.2", "127.0.0.3"}
    # Later starts find that it is done.
    assert nodes[2].stop() == 0
    nodes[2].start()
    check(nodes, load)


def test_nodes_leave_and_are_removed_while_clients_write(members):
    _, nodes = members
    first, second, third = nodes
    cluster, session = first.connect()
    create(session, replicas=2)
    load = Load(nodes[:2])
    load.grow(300)
    third.nodetool("decommission")
    assert members_of(first) == {"127.0.0.1", "127.0.0.2"}
    assert "Mode: NORMAL" in first.nodetool("netstats") and "Mode: DECOMMISSIONED" in third.nodetool("netstats")
    until(lambda: not answers(third.host, third.port))
    load.grow(100)
    assert third.stop() == 0
    refused = run(third)
    assert "has left it: start it with an empty data directory" in refused, refused
    refused = nodetool_fails(second, "decommission")
    assert "Not enough live nodes to maintain replication factor in keyspace ks (RF = 2, N = 2)" in refused, refused
    # An empty one joins, and is lost.
    shutil.rmtree(third.data)
    third.start()
    load.grow(100)
    lost = next(line for line in first.nodetool("status").splitlines() if "127.0.0.3" in line).split()
    host = next(word for word in lost if word.count("-") == 4)
    assert "is alive and owns this ID" in nodetool_fails(first, "removenode", host)
    third.kill()
    until(lambda: "DN  127.0.0.3" in first.nodetool("status"))
    first.nodetool("removenode", host)
    assert members_of(second) == {"127.0.0.1", "127.0.0.2"}
    assert "No token removals in process" in first.nodetool("removenode", "status")
    load.grow(100)
    for node in (first, second):
        node.nodetool("cleanup")
    load.end()
    cluster.shutdown()
    check(nodes[:2], load)
    for node in (first, second):
        assert node.stop() == 0, node.last_words()
        node.start()
    check(nodes[:2], load)


def test_drivers_find_all_nodes_and_route_by_token(members):
    _, nodes = members
    cluster, session = nodes[0].connect()
    create(session)
    cluster.shutdown()
    # An unmodified driver, with its usual policy.
    cluster = Cluster([nodes[0].host], port=nodes[0].port, protocol_version=5)
    session = cluster.connect()
    deadline = time.monotonic() + 60
    while {host.address for host in cluster.metadata.all_hosts() if host.is_up} != {node.host for node in nodes}:
        assert time.monotonic() < deadline, cluster.metadata.all_hosts()
        time.sleep(0.05)
    insert = session.prepare("INSERT INTO ks.rows (k, c, v) VALUES (?, 0, 'x')")
    asked = set()
    for key in range(60):
        future = session.execute_async(insert, (key,))
        future.result()
        asked.add(future.coordinator_host.address)
        replicas = cluster.metadata.get_replicas("ks", insert.bind((key,)).routing_key)
        assert {host.address for host in replicas} == {node.host for node in nodes}
    assert asked == {node.host for node in nodes}
    assert len({row[0] for row in session.execute("SELECT schema_version FROM system.peers")}) == 1
    # A node that is gone is not asked; the others answer.
    nodes[1].kill()
    for key in range(60, 120):
        session.execute(insert.bind((key,)))
    statement = SimpleStatement("SELECT k FROM ks.rows", consistency_level=ConsistencyLevel.QUORUM)
    assert len({row[0] for row in session.execute(statement)}) == 120
    cluster.shutdown()


REPLICATIONS = {
    "simple1": "{'class': 'SimpleStrategy', 'replication_factor': 1}",
    "simple2": "{'class': 'SimpleStrategy', 'replication_factor': 2}",
    "racks2": "{'class': 'NetworkTopologyStrategy', 'datacenter1': 2}",
}


def nodetool_fails(node, *words):
    """What nodetool says that fails."""
    command = [node.binary, "nodetool", "-p", str(node.admin_port), *words]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode != 0, done.stdout
    return done.stdout + done.stderr


def members_of(node):
    """The addresses of the members, as a node sees them."""
    lines = node.nodetool("status").splitlines()
    return {line.split()[1] for line in lines if "127.0.0." in line}


def silences_of(node):
    """Phi of the other members, as nodetool shows it."""
    header, *lines = node.nodetool("failuredetector").splitlines()
    assert header == "  Endpoint,             Phi", header
    return {address.strip().lstrip("/"): float(phi) for address, phi in (line.split(",") for line in lines)}


def until(is_so):
    """Waits until something is so."""
    deadline = time.monotonic() + 60
    while not is_so():
        assert time.monotonic() < deadline, "it does not come"
        time.sleep(0.1)


def ilion(node, *words):
    command = [node.binary, *words, "--admin-port", str(node.admin_port)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_drivers_compute_the_replicas_that_the_nodes_have(members):
    _, nodes = members
    cluster, session = nodes[0].connect()
    for keyspace, replication in REPLICATIONS.items():
        session.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {replication}")
        session.execute(f"CREATE TABLE {keyspace}.t (k int PRIMARY KEY)")
    for keyspace in REPLICATIONS:
        insert = session.prepare(f"INSERT INTO {keyspace}.t (k) VALUES (?)")
        primaries = set()
        for key in range(12):
            replicas = cluster.metadata.get_replicas(keyspace, insert.bind((key,)).routing_key)
            for node in nodes[key % 3 :: 3]:
                told = node.nodetool("getendpoints", keyspace, "t", str(key)).split()
                assert told == [host.address for host in replicas], f"{keyspace}, {key}, of {node.host}"
            primaries.add(replicas[0].address)
        assert len(primaries) > 1
    said = Cqlsh(nodes[1], "racks2").run("DESCRIBE CLUSTER;")
    owners = [line for line in said.splitlines() if "[127.0.0." in line]
    assert len(owners) == TABLETS and all(line.count("127.0.0.") == 2 for line in owners), said
    cluster.shutdown()


def look_at_the_dashboard(broker, nodes):
    """What the first node's dashboard shows of the cluster while the last node is down; in a browser, if there is one."""
    from playwright.sync_api import expect

    with launched("chromium") as browser, opened(browser, nodes[0], "#cluster?keyspace=ks") as page:
        rows = page.locator("#cluster-nodes tbody tr")
        expect(rows).to_have_count(NODES)
        found = [cells(page, "#cluster-nodes", rows.nth(place)) for place in range(NODES)]
        assert [row["node"] for row in found] == [f"{nodes[0].host} (this one)", nodes[1].host, nodes[2].host]
        assert [(row["state"], row["owns"]) for row in found] == [("up", "100 %"), ("up", "100 %"), ("down", "100 %")]
        # The other node that is up was asked for what it says of itself.
        assert [row["load"] == "?" for row in found] == [not row["records behind"].isdigit() for row in found] == [False, False, True]
        expect(page.locator("#cluster-findings")).to_have_text(f"{nodes[2].host} (rack3) is down.")
        expect(page.locator("#cluster-slices tbody tr")).to_have_count(TABLETS)
        expect(page.locator("#cluster-tablets tbody tr")).to_have_count(TABLETS)
        # Reads at QUORUM have waited for barriers.
        waits = page.locator("#cluster-barriers tbody tr").first
        assert int(cells(page, "#cluster-barriers", waits)["how often"]) >= 5
        expect(page.locator("#cluster-brokers-facts")).to_contain_text(broker.address)
        expect(page.locator("#cluster-others tbody tr")).to_have_count(NODES - 1)


def test_nodetool_and_events_show_who_is_there(members):
    broker, nodes = members
    cluster, session = nodes[0].connect()
    create(session)
    for key in range(5):
        session.execute("SELECT v FROM ks.rows WHERE k = %s", (key,))
    told = queue.Queue()
    watching = cluster.connection_factory(cluster.metadata.get_host(nodes[0].host, nodes[0].port).endpoint)
    kinds = ("STATUS_CHANGE", "SCHEMA_CHANGE")
    watching.register_watchers({kind: lambda event: told.put(event) for kind in kinds}, register_timeout=10)

    def wait_for(**event):
        while True:
            got = told.get(timeout=60)
            if all(got.get(name) == value for name, value in event.items()):
                return got

    addresses = [node.host for node in nodes]
    status = nodes[1].nodetool("status", "ks")
    rows = [line.split() for line in status.splitlines() if line.startswith("UN ")]
    assert sorted(row[1] for row in rows) == addresses, status
    assert sum("100.0%" in row for row in rows) == NODES, status
    # The others were asked for their load.
    assert not any(row[2] == "?" for row in rows), status
    shown = ilion(nodes[1], "status")
    rows = [line.split() for line in shown.splitlines() if line.startswith("UN ")]
    assert sorted(row[1] for row in rows) == addresses and not any("?" in row for row in rows), shown
    standing = json.loads(ilion(nodes[1], "status", "--json"))["members"]
    assert all(member["lag_records"] is not None and member["tablets_behind"] == 0 for member in standing), standing
    assert len(json.loads(ilion(nodes[2], "ring", "ks", "--json"))) == TABLETS
    described = nodes[1].nodetool("describecluster")
    assert f"[{', '.join(addresses)}]" in described and "Live: 3" in described, described
    assert all(f"/{address}\n" in nodes[2].nodetool("gossipinfo") for address in addresses)
    # Nobody is silent for as long as a node that is down.
    silences = silences_of(nodes[1])
    assert silences.keys() == {nodes[0].host, nodes[2].host} and all(phi < 8 for phi in silences.values()), silences
    assert nodes[1].nodetool("repair", "ks") == "All replicas apply the same log. No repair is needed for keyspace 'ks'\n"
    assert len([line for line in nodes[0].nodetool("ring", "ks").splitlines() if " Up " in line]) == TABLETS
    # Clients of a node hear of what clients of others change.
    other, elsewhere = nodes[1].connect()
    elsewhere.execute("CREATE TABLE ks.made_elsewhere (k int PRIMARY KEY)")
    wait_for(change_type="CREATED", keyspace="ks", table="made_elsewhere")
    other.shutdown()
    nodes[2].kill()
    lost = (nodes[2].host, nodes[2].port)
    wait_for(change_type="DOWN", address=lost)
    assert f"DN  {nodes[2].host}  ? " in nodes[0].nodetool("status", "ks")
    assert f"UNREACHABLE: [{nodes[2].host}]" in nodes[0].nodetool("describecluster")
    assert silences_of(nodes[0])[nodes[2].host] > 8
    if CHROMIUM:
        look_at_the_dashboard(broker, nodes)
    nodes[2].start()
    wait_for(change_type="UP", address=lost)
    cluster.shutdown()


ENCRYPTED = [
    "server_encryption_options_internode_encryption=all",
    f"server_encryption_options_keystore={os.path.join(CERTIFICATES, 'node.pem')}",
    f"server_encryption_options_truststore={os.path.join(CERTIFICATES, 'ca.pem')}",
]


COPIED_ROWS = 3000


def copy_to(node, path):
    """Imports a file through a node: the rows of one request are of several tablets."""
    path.write_text("".join(f"{k},value {k}\n" for k in range(COPIED_ROWS)))
    script = f"CREATE TABLE ks.copied (k int PRIMARY KEY, v text); CONSISTENCY QUORUM; COPY ks.copied (k, v) FROM '{path}'"
    command = [os.environ["SMOKE_ILION"], "cql", node.host, str(node.port), "-e", script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert f"{COPIED_ROWS} rows imported" in done.stdout, done.stdout + done.stderr


@pytest.mark.parametrize("members", [[], ENCRYPTED], indirect=True, ids=["plain", "encrypted"])
def test_nodes_answer_for_each_other(members, tmp_path):
    _, nodes = members
    sessions = [node.connect() for node in nodes]
    create(sessions[0][1], replicas=1)
    # Each partition has one replica, so most requests are for another node.
    for key in range(40):
        session = sessions[key % 3][1]
        insert = "INSERT INTO ks.rows (k, c, v) VALUES (%s, 0, 'x') IF NOT EXISTS"
        assert session.execute(insert, (key,)).one().applied
        assert not sessions[(key + 1) % 3][1].execute(insert, (key,)).one().applied
        session.execute("UPDATE ks.counts SET n = n + %s WHERE k = %s", (key, key % 5))
    for _, session in sessions:
        # At ONE as well, since one replica is all.
        for level in (ConsistencyLevel.ONE, ConsistencyLevel.QUORUM):
            statement = SimpleStatement("SELECT k FROM ks.rows", consistency_level=level, fetch_size=7)
            assert {row.k for row in session.execute(statement)} == set(range(40))
            counts = SimpleStatement("SELECT k, n FROM ks.counts", consistency_level=level)
            assert sum(row.n for row in session.execute(counts)) == sum(range(40))
    copy_to(nodes[1], tmp_path / "copied.csv")
    copied = sessions[2][1].execute("SELECT k, v FROM ks.copied")
    assert {(row.k, row.v) for row in copied} == {(k, f"value {k}") for k in range(COPIED_ROWS)}
    for name, column in (("internode_outbound", "sent_count"), ("internode_inbound", "processed_count")):
        rows = list(sessions[0][1].execute(f"SELECT * FROM system_views.{name}"))
        assert {row.address for row in rows} == {node.host for node in nodes[1:]}, rows
        assert all(getattr(row, column) > 0 for row in rows), rows
    _, versions = nodes[0].nodetool("describecluster").split("Database versions:\n")
    [release, addresses] = versions.splitlines()[0].split(": ")
    released = {row.release_version for row in sessions[0][1].execute("SELECT release_version FROM system.peers_v2")}
    assert released == {release.strip()} and all(node.host in addresses for node in nodes), versions
    for cluster, _ in sessions:
        cluster.shutdown()


READ_AGAIN = "certificates were read again"


@pytest.mark.parametrize("members", [ENCRYPTED], indirect=True, ids=["encrypted"])
def test_certificates_between_nodes_are_read_again(members):
    _, nodes = members
    node = nodes[0]
    assert READ_AGAIN not in node.last_words()
    node.nodetool("reloadssl")
    ilion(node, "reload")
    assert node.last_words().count(READ_AGAIN) == 2, node.last_words()
    node.process.send_signal(signal.SIGHUP)
    deadline = time.monotonic() + 60
    while node.last_words().count(READ_AGAIN) < 3:
        assert time.monotonic() < deadline, node.last_words()
        time.sleep(0.05)


LOGINS = [
    "authenticator=PasswordAuthenticator",
    "authorizer=CassandraAuthorizer",
    "network_authorizer=CassandraNetworkAuthorizer",
    "data_center=dc{number}",
    "permissions_validity=1h",
]


@pytest.mark.parametrize("members", [LOGINS], indirect=True, ids=["logins"])
def test_roles_are_those_of_the_cluster(members):
    _, nodes = members
    first, second, third = nodes
    # Only the node that made the cluster has made a superuser.
    with_password = [node for node in nodes if os.path.exists(os.path.join(node.data, "superuser-password"))]
    assert with_password == [first]
    with open(os.path.join(first.data, "superuser-password"), encoding="ascii") as file:
        root = ("cassandra", file.read().strip())
    clusters, roots = zip(*(node.connect(root) for node in nodes))
    create(roots[0])
    ann, bob = ("ann", "ann's"), ("bob", "bob's")
    assert third.refuses(ann)
    roots[0].execute("CREATE ROLE ann WITH PASSWORD = 'ann''s' AND LOGIN = true")
    roots[1].execute("CREATE ROLE bob WITH PASSWORD = 'bob''s' AND LOGIN = true")
    cluster, session = third.connect(ann)
    # Rights are kept for an hour, but every node forgets them when any node changes them.
    select = "SELECT k FROM ks.rows"
    for _ in range(3):
        with pytest.raises(Unauthorized):
            session.execute(select)
        roots[1].execute("GRANT SELECT ON ks.rows TO ann")
        assert list(session.execute(select)) == []
        roots[0].execute("REVOKE SELECT ON ks.rows FROM ann")
    # The creator of a table has all rights on it, also on other nodes; they end with the table.
    roots[0].execute("GRANT CREATE ON KEYSPACE ks TO ann")
    session.execute("CREATE TABLE ks.own (k int PRIMARY KEY)")
    elsewhere, session_elsewhere = second.connect(ann)
    session_elsewhere.execute("INSERT INTO ks.own (k) VALUES (1)")
    session.execute("DROP TABLE ks.own")
    roots[1].execute("CREATE TABLE ks.own (k int PRIMARY KEY)")
    with pytest.raises(Unauthorized):
        session_elsewhere.execute("INSERT INTO ks.own (k) VALUES (1)")
    elsewhere.shutdown()
    # A role that may use two of three data centers.
    with pytest.raises(InvalidRequest, match="All values must be valid datacenters"):
        roots[0].execute("CREATE ROLE dan WITH LOGIN = true AND ACCESS TO DATACENTERS {'dc1', 'dc4'}")
    roots[0].execute("CREATE ROLE dan WITH PASSWORD = 'd' AND LOGIN = true AND ACCESS TO DATACENTERS {'dc1', 'dc3'}")
    roots[0].execute("GRANT SELECT ON ks.rows TO dan")
    for node, is_allowed in zip(nodes, (True, False, True)):
        try:
            of_dan, session_of_dan = node.connect(("dan", "d"))
            session_of_dan.execute(select)
            of_dan.shutdown()
            assert is_allowed, node.host
        except (NoHostAvailable, Unauthorized) as refused:
            assert not is_allowed and "access to this datacenter (dc2)" in str(refused), refused
    roots[1].execute("ALTER ROLE ann WITH PASSWORD = 'new'")
    assert all(node.refuses(ann) for node in nodes)
    assert not any(node.refuses(("ann", "new")) for node in nodes)
    # What a node missed while it was down.
    second.kill()
    roots[0].execute("DROP ROLE bob")
    roots[2].execute("ALTER ROLE ann WITH PASSWORD = 'newer'")
    second.start()
    assert all(node.refuses(bob) and node.refuses(("ann", "new")) for node in nodes)
    assert not any(node.refuses(("ann", "newer")) for node in nodes)
    # A lost password of the superuser.
    assert third.stop() == 0
    settings = [f"--set={setting}" for setting in (*third.settings, f"log={third.log_url}", f"rpc_address={third.host}")]
    command = [third.binary, "auth", "reset-password", "--data", third.data, f"--set=native_transport_port={third.port}", *settings]
    reset = subprocess.run([*command, "cassandra"], capture_output=True, text=True, timeout=120)
    assert reset.returncode == 0, reset.stderr
    assert first.refuses(root) and not first.refuses(("cassandra", reset.stdout.strip()))
    third.start()
    assert third.refuses(root) and not third.refuses(("cassandra", reset.stdout.strip()))
    for one in (cluster, *clusters):
        one.shutdown()


LOADED_ROWS = 2000


def load(node, *directories):
    """Loads SSTables into a node."""
    command = [node.binary, "sstable", "load", "--host", "127.0.0.1", "--admin-port", str(node.admin_port), *directories]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


def directory_of(node, table):
    """The directory of a table's SSTables."""
    keyspace = os.path.join(node.data, "data", "ks")
    [name] = [name for name in os.listdir(keyspace) if name.startswith(f"{table}-")]
    return os.path.join(keyspace, name)


def test_sstables_are_loaded_into_a_cluster_and_out_of_it(members, tmp_path):
    _, nodes = members
    alone = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path / "alone"))
    alone.start()
    outside = Cluster([alone.host], port=alone.port, protocol_version=5)
    session = outside.connect()
    create(session, replicas=1)
    insert = session.prepare("INSERT INTO ks.rows (k, c, v) VALUES (?, ?, ?) USING TIMESTAMP ? AND TTL ?")
    for number in range(LOADED_ROWS):
        session.execute(insert, (number % 50, number, f"value {number}", 1000 + number, (number % 3) * 100_000))
    session.execute("DELETE FROM ks.rows USING TIMESTAMP 1000000 WHERE k = 7 AND c > 100 AND c < 900")
    session.execute("DELETE FROM ks.rows USING TIMESTAMP 1000000 WHERE k = 8")
    session.execute("UPDATE ks.counts SET n = n + 1 WHERE k = 1")
    alone.flush()
    select = "SELECT k, c, v, writetime(v) AS written FROM ks.rows"
    expected = sorted(session.execute(select))
    assert len(expected) > LOADED_ROWS * 0.9
    cluster, inside = nodes[0].connect()
    create(inside)
    # Newer than what is loaded, also than its deletions.
    inside.execute("INSERT INTO ks.rows (k, c, v) VALUES (8, 8, 'new')")
    for _ in range(2):
        loaded = load(nodes[1], directory_of(alone, "rows"))
        assert loaded.returncode == 0 and "its rows are in the cluster now" in loaded.stdout, loaded.stdout + loaded.stderr
        for node in nodes:
            one, at_node = node.connect()
            found = sorted(row for row in at_node.execute(select) if row.v != "new")
            assert found == expected
            [new] = at_node.execute("SELECT c FROM ks.rows WHERE k = 8")
            assert new.c == 8
            left = at_node.execute("SELECT ttl(v) AS left FROM ks.rows WHERE k = 1 AND c = 1").one().left
            assert 90_000 < left <= 100_000
            one.shutdown()
    # Counts of another node are added to those of the cluster, once.
    for _ in range(2):
        loaded = load(nodes[1], directory_of(alone, "counts"))
        assert loaded.returncode == 0, loaded.stdout + loaded.stderr
    [counted] = inside.execute("SELECT n FROM ks.counts WHERE k = 1")
    assert counted.n == 1
    command = [nodes[1].binary, "nodetool", "-p", str(nodes[1].admin_port), "import", "ks", "rows", directory_of(alone, "rows")]
    refused = subprocess.run(command, capture_output=True, text=True)
    assert "sstable load" in refused.stdout + refused.stderr, refused
    # The replicas have the same counts, so that they are counted once.
    for _ in range(5):
        inside.execute("UPDATE ks.counts SET n = n + 2 WHERE k = 1")
    session.execute("TRUNCATE ks.rows")
    session.execute("TRUNCATE ks.counts")
    for node in nodes:
        node.flush()
        loaded = load(alone, directory_of(node, "rows"), directory_of(node, "counts"))
        assert loaded.returncode == 0, loaded.stdout + loaded.stderr
    assert sorted(row for row in session.execute(select) if row.v != "new") == expected
    assert session.execute("SELECT n FROM ks.counts WHERE k = 1").one().n == 11
    outside.shutdown()
    cluster.shutdown()
    assert alone.stop() == 0


def changes(node, table):
    """All changes of a table that a node has captured."""
    command = [node.binary, "cdc", "tail", table, "--from", "earliest", "--once", "--admin-port", str(node.admin_port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout[-500:] + done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("members", [["cdc_enabled=true", "commitlog_segment_size=1MiB"]], indirect=True)
def test_every_node_has_the_changes_of_its_tables_for_consumers(members):
    broker, nodes = members
    cluster, session = nodes[0].connect()
    create(session)
    session.execute("ALTER TABLE ks.rows WITH cdc = true")
    load = Load(nodes)
    load.grow(200)
    nodes[1].kill()
    load.grow(100)
    nodes[2].flush("ks")
    nodes[2].kill()
    nodes[1].start()
    nodes[2].start()
    load.grow(100)
    broker.kill()
    broker.start()
    load.grow(100)
    load.end()
    applied = session.execute("UPDATE ks.rows SET v = 'y' WHERE k = 0 AND c = 1 IF v = 'x'").one()
    assert applied.applied
    session.execute("BEGIN BATCH DELETE FROM ks.rows WHERE k = 0 AND c = 1; INSERT INTO ks.rows (k, c) VALUES (99, 1); APPLY BATCH")
    session.execute("TRUNCATE ks.rows")
    session.execute("INSERT INTO ks.rows (k, c, v) VALUES (100, 1, 'z')")
    cluster.shutdown()
    seen = []
    for node in nodes:
        found = changes(node, "ks.rows")
        assert {change["source"].get("cluster_position") for change in found if change["op"] == "t"} == {None}
        by_place = {}
        for change in found:
            if change["op"] == "t":
                continue
            source = change["source"]
            tablet, offset = map(int, source["cluster_position"].split(":"))
            by_place.setdefault((tablet, offset, source["event"]), (change["op"], change["after"]))
        values = [(op, *(after[name]["value"] for name in ("k", "c"))) for op, after in by_place.values()]
        inserted = {(k, c) for op, k, c in values if op == "i"}
        assert load.acknowledged | {(99, 1), (100, 1)} <= inserted
        assert ("u", 0, 1) in values and ("d", 0, 1) in values
        assert found[-1]["after"]["k"]["value"] == 100 and found[-2]["op"] == "t"
        seen.append(by_place)
    assert seen[0] == seen[1] == seen[2]


CDC_WRITE_FAILURE = 0x1600


@pytest.mark.parametrize("members", [["cdc_enabled=true", "commitlog_segment_size=1MiB", "cdc_total_space=4MiB"]], indirect=True)
def test_without_space_for_changes_only_writes_of_captured_tables_fail(members):
    _, nodes = members
    cluster, session = nodes[0].connect()
    create(session)
    session.execute("CREATE TABLE ks.captured (k int PRIMARY KEY, v text) WITH cdc = true")
    sessions = [node.connect()[1] for node in nodes]

    def is_refused(session, statement, *values):
        try:
            session.execute(statement, values)
        except ErrorMessage as error:
            assert error.code == CDC_WRITE_FAILURE, error
            return True
        return False

    insert = "INSERT INTO ks.captured (k, v) VALUES (%s, %s)"
    number = 0
    while not all([is_refused(one, insert, number, "v" * 50_000) for one in sessions]):
        number += 1
        assert number < 500
    for statement in ("UPDATE ks.captured SET v = '' WHERE k = 0 IF v = ''", "TRUNCATE ks.captured"):
        assert all(is_refused(one, statement) for one in sessions), statement
    # Everything else goes on.
    for place, one in enumerate(sessions):
        one.execute("INSERT INTO ks.rows (k, c) VALUES (1, %s)", (place,))
        assert len(list(one.execute("SELECT * FROM ks.rows"))) == place + 1
    for node in nodes:
        read = changes(node, "ks.captured")
        assert len({change["after"]["k"]["value"] for change in read}) >= number
        last = read[-1]["source"]["resume"]
        command = [node.binary, "cdc", "release", "--before", last, "--admin-port", str(node.admin_port)]
        assert subprocess.run(command, stdout=subprocess.DEVNULL).returncode == 0
    until(lambda: not any(is_refused(one, insert, number, "") for one in sessions))
    session.execute("TRUNCATE ks.captured")
    for one in sessions:
        one.cluster.shutdown()
    cluster.shutdown()


def backup(node, verb, *arguments):
    """Runs `ilion backup` on the machine of a node; returns its report."""
    command = [node.binary, "backup", verb, *arguments, "--json", "--admin-port", str(node.admin_port)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(done.stdout)


def test_a_cluster_that_is_lost_with_its_logs_comes_back_from_the_backups_of_its_nodes(members, tmp_path):
    broker, nodes = members
    cluster, session = nodes[0].connect()
    create(session)
    session.execute("CREATE INDEX by_v ON ks.rows (v)")
    session.execute("CREATE KEYSPACE single WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE single.rows (k int PRIMARY KEY, v set<text>)")
    for k in range(100):
        session.execute("INSERT INTO single.rows (k, v) VALUES (%s, {'a', 'b'})", (k,))
    session.execute("DELETE v['a'] FROM single.rows WHERE k = 7")
    single = sorted(session.execute("SELECT * FROM single.rows"))
    load = Load(nodes)
    load.grow(300)
    with load.lock:
        acknowledged, counted = set(load.acknowledged), load.counted[0]
    place = str(tmp_path / "backups")
    for node in nodes:
        backup(node, "create", place, "--name", f"node{node.number}")
    load.end()
    cluster.shutdown()
    # Everything is lost: the nodes with their disks, and the logs.
    for node in nodes:
        node.kill()
        shutil.rmtree(node.data)
        node.log_url = f"kafka://{broker.address}/again"
        node.start()

    def restore(number, keyspace):
        return backup(nodes[1], "restore", place, f"node{number}", "--keyspace", keyspace, "--merge")

    nodes[2].kill()
    assert restore(1, "ks")["tables"] == [
        {"keyspace": "ks", "name": "counts", "views_left_out": []},
        {"keyspace": "ks", "name": "rows", "views_left_out": []},
    ]
    nodes[2].start()
    # Each node had a part of this one.
    for number in (1, 2, 3):
        restore(number, "single")
    cluster, session = nodes[0].connect()
    rows, counts = set(session.execute("SELECT k, c FROM ks.rows")), session.execute("SELECT n FROM ks.counts WHERE k = 0").one().n
    assert acknowledged <= rows
    assert counted <= counts <= load.counted[1]
    assert len(rows) == len(set(session.execute("SELECT k, c FROM ks.rows WHERE v = 'x'")))
    for _ in range(5):
        session.execute("UPDATE ks.counts SET n = n + 1 WHERE k = 0")
    # What is restored again changes nothing, counters included.
    restore(1, "ks")
    for node in nodes:
        one, at_node = node.connect()
        assert set(at_node.execute("SELECT k, c FROM ks.rows")) == rows
        assert at_node.execute("SELECT n FROM ks.counts WHERE k = 0").one().n == counts + 5
        assert sorted(at_node.execute("SELECT * FROM single.rows")) == single
        one.shutdown()
    cluster.shutdown()
    # A backup of one node is a single node, too.
    backup(nodes[0], "restore", place, "node3", "--into", str(tmp_path / "alone"))
    alone = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path / "alone"))
    alone.start()
    outside = Cluster([alone.host], port=alone.port, protocol_version=5)
    assert acknowledged <= set(outside.connect().execute("SELECT k, c FROM ks.rows"))
    outside.shutdown()
    assert alone.stop() == 0


def test_directories_and_logs_are_not_mixed_up(members, tmp_path):
    broker, nodes = members
    for node in nodes:
        assert node.stop() == 0
    first = nodes[0]
    first.log_url = "local"
    refused = run(first)
    assert "is the data directory of a node of a cluster" in refused, refused
    for command in (["backup", "create", str(tmp_path / "backups"), "--stopped"], ["backup", "restore", str(tmp_path), "--keyspace", "ks", "--stopped"]):
        done = subprocess.run([first.binary, *command, "--data", first.data], capture_output=True, text=True, timeout=60)
        assert done.returncode == 1 and "is the data directory of a node of a cluster" in done.stderr, done
    first.log_url = f"kafka://{broker.address}/another"
    refused = run(first)
    assert "belongs to cluster" in refused, refused


def run(node):
    """What a node says that does not start."""
    with pytest.raises(AssertionError):
        node.start()
    return node.last_words()
