"""Fixtures of the smoke tests: the node, sessions in every dialect of the protocol, and keyspaces for one test."""

import collections
import itertools
import os

import pytest
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile
from cassandra.policies import RoundRobinPolicy

from node import Node, OwnNode

Dialect = collections.namedtuple("Dialect", "version compression")

DIALECTS = [
    Dialect(3, None),
    Dialect(3, "lz4"),
    Dialect(3, "snappy"),
    Dialect(4, None),
    Dialect(4, "lz4"),
    Dialect(4, "snappy"),
    Dialect(5, None),
    Dialect(5, "lz4"),
]

_numbers = itertools.count(1)


@pytest.fixture
def own(node, tmp_path):
    """A running node of the test's own."""
    if not node.is_ours:
        pytest.skip("it starts a node of its own")
    own = OwnNode(node.binary, str(tmp_path / "data"))
    own.start()
    yield own
    if own.is_running():
        own.stop()


# Files whose tests share no fixture that is dear to make: their tests may go to different workers.
SPLIT = {"test_cluster.py", "test_cluster_check.py", "test_kill.py"}
# Files that take longest, in this order: they begin first, so that the workers end at about the same time.
LONG = [
    "test_memory.py",
    "test_cluster.py",
    "test_cluster_check.py",
    "test_kafka_log.py",
    "test_kill.py",
    "test_sink.py",
    "test_backup.py",
    "test_packaging.py",
    "test_cities.py",
    "test_dashboard.py",
    "test_dashboard_fixed.py",
]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items):
    """Says which tests go to the same worker of pytest-xdist (--dist loadgroup), before it looks, and what begins first."""
    place = {name: number for number, name in enumerate(LONG)}
    items.sort(key=lambda item: place.get(item.path.name, len(LONG)))
    for item in items:
        name = item.path.name
        item.add_marker(pytest.mark.xdist_group(item.name if name in SPLIT else name))


def pytest_addoption(parser):
    parser.addoption("--against", metavar="HOST:PORT", help="a running server, instead of a node that the tests start")


@pytest.fixture(scope="session")
def node(request, tmp_path_factory):
    against = request.config.getoption("--against")
    if against:
        host, port = against.rsplit(":", 1)
        yield Node(host, int(port))
        return
    node = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path_factory.mktemp("node") / "data"))
    node.start()
    yield node
    assert node.is_running(), f"the node ended during the tests:\n{node.last_words()}"
    assert node.stop() == 0, node.last_words()


def connect(node, dialect=Dialect(5, "lz4"), **settings):
    """A cluster object of the driver; the caller shuts it down."""
    profile = ExecutionProfile(load_balancing_policy=RoundRobinPolicy(), request_timeout=60)
    return Cluster(
        [node.host],
        port=node.port,
        protocol_version=dialect.version,
        compression=dialect.compression or False,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        connect_timeout=30,
        control_connection_timeout=30,
        **settings,
    )


@pytest.fixture(scope="module", params=DIALECTS, ids=lambda d: f"v{d.version}-{d.compression or 'plain'}")
def dialect(request):
    return request.param


@pytest.fixture(scope="module")
def spoken(node, dialect):
    """A session in each dialect, with a new keyspace."""
    yield from _session(node, dialect)


@pytest.fixture(scope="module")
def session(node):
    """A session in the newest dialect, with a new keyspace."""
    yield from _session(node, Dialect(5, "lz4"))


def _session(node, dialect):
    cluster = connect(node, dialect)
    session = cluster.connect()
    keyspace = create_keyspace(session)
    session.set_keyspace(keyspace)
    yield session
    session.execute(f"DROP KEYSPACE {keyspace}")
    cluster.shutdown()


def create_keyspace(session):
    name = f"smoke_{os.getpid()}_{next(_numbers)}"
    session.execute(
        f"CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    )
    return name


@pytest.fixture
def fresh():
    """Names that no other test uses."""
    return lambda word: f"{word}_{next(_numbers)}"
