"""Fixtures for pytest: a node for the run, and a session with a keyspace of its own for each test."""

import itertools
import tempfile

import pytest

from ilion.node import Node

# A test loses nothing if the machine fails, and looks at no snapshot of a dropped table.
SETTINGS = ["commitlog_sync=periodic", "auto_snapshot=false"]
REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': 1}"

_numbers = itertools.count(1)


def pytest_addoption(parser):
    parser.addini("ilion_settings", "settings of the node of ilion_cluster: NAME=VALUE each", type="linelist", default=[])


@pytest.fixture(scope="session")
def ilion_cluster(request):
    """A running node with its data in a temporary directory."""
    settings = [*SETTINGS, *request.config.getini("ilion_settings")]
    with tempfile.TemporaryDirectory(prefix="ilion-") as directory, Node(directory, settings) as node:
        yield node


@pytest.fixture(scope="session")
def _ilion_driver(ilion_cluster):
    driver = ilion_cluster.driver()
    yield driver, driver.connect()
    driver.shutdown()


@pytest.fixture
def ilion_session(_ilion_driver):
    """A session of the stock driver, in an empty keyspace that is dropped after the test."""
    driver, own = _ilion_driver
    keyspace = f"test_{next(_numbers)}"
    own.execute(f"CREATE KEYSPACE {keyspace} WITH replication = {REPLICATION}")
    session = driver.connect(keyspace)
    yield session
    session.shutdown()
    own.execute(f"DROP KEYSPACE IF EXISTS {keyspace}")
