"""Encrypted connections: the Python driver and cqlsh."""

import os
import ssl
import subprocess

import pytest
from cassandra.cluster import NoHostAvailable

from conftest import DIALECTS, connect
from node import OwnNode
from shell import CQLSH, environment

CERTIFICATES = os.path.join(os.path.dirname(__file__), "..", "..", "crates", "server", "testdata", "tls")
RUN_SECS = 120


def file(name):
    return os.path.abspath(os.path.join(CERTIFICATES, name))


# Clients without encryption are taken too, so that the tests can see that the node is up.
SETTINGS = (
    "client_encryption_options_enabled=true",
    "client_encryption_options_optional=true",
    f"client_encryption_options_keystore={file('node.pem')}",
)


@pytest.fixture(scope="module")
def encrypted(request, tmp_path_factory):
    if request.config.getoption("--against"):
        pytest.skip("it starts its own node")
    node = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path_factory.mktemp("encrypted") / "data"), SETTINGS)
    node.start()
    yield node
    assert node.is_running(), node.last_words()
    assert node.stop() == 0, node.last_words()


def context(issuer="ca.pem"):
    made = ssl.create_default_context(cafile=file(issuer))
    made.check_hostname = False
    return made


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: f"v{d.version}-{d.compression or 'plain'}")
def test_statements_and_large_answers(encrypted, dialect):
    cluster = connect(encrypted, dialect, ssl_context=context())
    session = cluster.connect()
    session.execute(
        "CREATE KEYSPACE IF NOT EXISTS ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}"
    )
    session.execute("CREATE TABLE IF NOT EXISTS ks.t (k int PRIMARY KEY, v text)")
    insert = session.prepare("INSERT INTO ks.t (k, v) VALUES (?, ?)")
    for key in range(8):
        session.execute(insert, (key, str(key) * 500_000))
    futures = [session.execute_async("SELECT k, v FROM ks.t") for _ in range(10)]
    for future in futures:
        assert {row.k: row.v for row in future.result()} == {key: str(key) * 500_000 for key in range(8)}
    protocols = {row.ssl_protocol for row in session.execute("SELECT ssl_protocol FROM system_views.clients")}
    assert protocols == {"TLSv1.3"}
    cluster.shutdown()


def test_a_client_that_trusts_others_goes_away(encrypted):
    with pytest.raises(NoHostAvailable):
        # The certificate of the node is none that issues others.
        connect(encrypted, ssl_context=context("client.pem")).connect()


def test_cqlsh(encrypted):
    done = subprocess.run(
        [CQLSH, "--no-color", "--cqlshrc=/dev/null", "--ssl", "-e", "SELECT cluster_name FROM system.local"]
        + [encrypted.host, str(encrypted.port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_SECS,
        env=environment(SSL_CERTFILE=file("ca.pem")),
    )
    assert done.returncode == 0 and "Ilion" in done.stdout, done.stdout
