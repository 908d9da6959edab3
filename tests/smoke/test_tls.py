"""Encrypted connections: the Python driver and cqlsh."""

import os
import ssl
import subprocess

import pytest
from cassandra import Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import NoHostAvailable

from conftest import DIALECTS, connect
from node import OwnNode
from shell import CQLSH, environment

CERTIFICATES = os.path.join(os.path.dirname(__file__), "..", "..", "crates", "tls", "testdata")
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


def context(issuer="ca.pem", shown=None):
    made = ssl.create_default_context(cafile=file(issuer))
    made.check_hostname = False
    if shown:
        made.load_cert_chain(file(shown))
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


ROOT = ("cassandra", "root's")
LOGINS = SETTINGS + (
    "authenticator=MutualTlsWithPasswordFallbackAuthenticator",
    "authorizer=CassandraAuthorizer",
    "client_encryption_options_require_client_auth=optional",
    f"client_encryption_options_truststore={file('clients-ca.pem')}",
)


@pytest.fixture(scope="module")
def by_certificate(request, tmp_path_factory):
    """A node that knows the certificate of alice."""
    if request.config.getoption("--against"):
        pytest.skip("it starts its own node")
    data = str(tmp_path_factory.mktemp("certificates") / "data")
    node = OwnNode(os.environ["SMOKE_ILION"], data, LOGINS, {"ILION_SUPERUSER_PASSWORD": ROOT[1]})
    node.start()
    cluster = connect(node, ssl_context=context(), auth_provider=PlainTextAuthProvider(*ROOT))
    session = cluster.connect()
    session.execute("CREATE ROLE alice WITH LOGIN = true")
    session.execute("ADD IDENTITY 'spiffe://ilion.example/alice' TO ROLE 'alice'")
    cluster.shutdown()
    yield node
    assert node.is_running(), node.last_words()
    assert node.stop() == 0, node.last_words()


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: f"v{d.version}-{d.compression or 'plain'}")
def test_a_certificate_is_a_login(by_certificate, dialect):
    cluster = connect(by_certificate, dialect, ssl_context=context(shown="alice.pem"))
    session = cluster.connect()
    assert session.execute("SELECT cluster_name FROM system.local").one().cluster_name == "Ilion"
    with pytest.raises(Unauthorized, match="User alice"):
        session.execute("CREATE ROLE eve")
    cluster.shutdown()


def test_a_certificate_without_an_identity_is_refused(by_certificate):
    with pytest.raises(NoHostAvailable) as failed:
        connect(by_certificate, ssl_context=context(shown="robot.pem")).connect()
    [error] = failed.value.errors.values()
    assert "Bad credentials" in str(error) and "Unable to extract Spiffe" in str(error)


def test_cqlsh_with_a_certificate(by_certificate, tmp_path):
    settings = tmp_path / "cqlshrc"
    settings.write_text(
        f"[ssl]\ncertfile = {file('ca.pem')}\nuserkey = {file('alice.pem')}\nusercert = {file('alice.pem')}\n"
    )
    done = subprocess.run(
        [CQLSH, "--no-color", f"--cqlshrc={settings}", "--ssl", "-e", "LIST ROLES"]
        + [by_certificate.host, str(by_certificate.port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_SECS,
        env=environment(),
    )
    assert done.returncode == 0 and "alice" in done.stdout, done.stdout
