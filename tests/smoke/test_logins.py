"""Logins, roles and permissions: the Python driver and cqlsh against a node that wants passwords."""

import os
import stat
import subprocess

import pytest
from cassandra import AuthenticationFailed, InvalidRequest, Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra.cluster import NoHostAvailable
from cassandra.query import BatchStatement, SimpleStatement

from conftest import DIALECTS, Dialect, connect
from node import OwnNode
from shell import CQLSH, environment

ROOT = ("cassandra", "root's")
SETTINGS = ("authenticator=PasswordAuthenticator", "authorizer=CassandraAuthorizer")
RUN_SECS = 120


@pytest.fixture(scope="module")
def guarded(request, tmp_path_factory):
    """A node that wants passwords."""
    if request.config.getoption("--against"):
        pytest.skip("it starts its own node")
    data = str(tmp_path_factory.mktemp("guarded") / "data")
    node = OwnNode(os.environ["SMOKE_ILION"], data, SETTINGS, {"ILION_SUPERUSER_PASSWORD": ROOT[1]})
    node.start()
    cluster, session = log_in(node, ROOT)
    session.execute("CREATE KEYSPACE shop WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
    session.execute("CREATE TABLE shop.orders (k int PRIMARY KEY, v text)")
    session.execute("CREATE TABLE shop.secrets (k int PRIMARY KEY, v text)")
    session.execute("CREATE ROLE reader")
    session.execute("CREATE ROLE app WITH PASSWORD = 'app''s' AND LOGIN = true")
    session.execute("GRANT SELECT, MODIFY ON shop.orders TO reader")
    session.execute("GRANT reader TO app")
    cluster.shutdown()
    yield node
    assert node.is_running(), node.last_words()
    assert node.stop() == 0, node.last_words()


APP = ("app", "app's")


def log_in(node, who, dialect=Dialect(5, "lz4")):
    cluster = connect(node, dialect, auth_provider=PlainTextAuthProvider(*who))
    return cluster, cluster.connect()


def failed_login(node, who):
    with pytest.raises(NoHostAvailable) as failed:
        log_in(node, who)
    [error] = failed.value.errors.values()
    assert isinstance(error, AuthenticationFailed)
    return str(error)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: f"v{d.version}-{d.compression or 'plain'}")
def test_a_role_logs_in_in_every_dialect(guarded, dialect):
    cluster, session = log_in(guarded, APP, dialect)
    insert = session.prepare("INSERT INTO shop.orders (k, v) VALUES (?, ?)")
    session.execute(insert, (dialect.version, "x"))
    select = session.prepare("SELECT v FROM shop.orders WHERE k = ?")
    assert session.execute(select, (dialect.version,)).one().v == "x"
    for statement in ("SELECT * FROM shop.secrets", "CREATE TABLE shop.t (k int PRIMARY KEY)", "CREATE ROLE x"):
        with pytest.raises(Unauthorized):
            session.execute(statement)
    # The driver has read the schema.
    assert "orders" in cluster.metadata.keyspaces["shop"].tables
    cluster.shutdown()


def test_without_or_with_the_wrong_password_nobody_gets_in(guarded):
    said = failed_login(guarded, ("app", "wrong"))
    assert "Provided username app and/or password are incorrect" in said
    assert "Provided username nobody and/or password are incorrect" in failed_login(guarded, ("nobody", "x"))
    with pytest.raises(NoHostAvailable) as failed:
        connect(guarded).connect()
    [error] = failed.value.errors.values()
    assert "requires authentication" in str(error)


def test_a_revoked_permission_ends_for_prepared_statements_of_open_sessions(guarded):
    root, superuser = log_in(guarded, ROOT)
    superuser.execute("CREATE ROLE temp WITH PASSWORD = 'temp' AND LOGIN = true")
    superuser.execute("GRANT MODIFY ON shop.orders TO temp")
    cluster, session = log_in(guarded, ("temp", "temp"))
    insert = session.prepare("INSERT INTO shop.orders (k, v) VALUES (?, ?)")
    batch = BatchStatement()
    batch.add(insert, (100, "a"))
    batch.add(SimpleStatement("INSERT INTO shop.orders (k, v) VALUES (101, 'b')"))
    session.execute(batch)
    with pytest.raises(Unauthorized, match="SELECT permission on <table shop.orders>"):
        session.execute("INSERT INTO shop.orders (k, v) VALUES (100, 'c') IF NOT EXISTS")
    superuser.execute("REVOKE MODIFY ON shop.orders FROM temp")
    for statement in (insert.bind((1, "x")), batch):
        with pytest.raises(Unauthorized, match="MODIFY permission on <table shop.orders>"):
            session.execute(statement)
    superuser.execute("DROP ROLE temp")
    with pytest.raises(Unauthorized):
        session.execute("SELECT * FROM shop.orders")
    assert "incorrect" in failed_login(guarded, ("temp", "temp"))
    with pytest.raises(InvalidRequest, match="temp doesn't exist"):
        superuser.execute("DROP ROLE temp")
    root.shutdown()
    cluster.shutdown()


def test_roles_and_permissions_are_listed(guarded):
    cluster, session = log_in(guarded, APP)
    roles = [(row.role, row.super, row.login) for row in session.execute("LIST ROLES")]
    assert roles == [("app", False, True), ("reader", False, False)]
    listed = [(row.role, row.resource, row.permission) for row in session.execute("LIST ALL PERMISSIONS OF app")]
    assert listed == [
        ("reader", "<table shop.orders>", "SELECT"),
        ("reader", "<table shop.orders>", "MODIFY"),
    ]
    cluster.shutdown()


def test_roles_and_grants_survive_kill_9(guarded):
    root, session = log_in(guarded, ROOT)
    session.execute("CREATE ROLE late WITH PASSWORD = 'late' AND LOGIN = true")
    session.execute("GRANT SELECT ON KEYSPACE shop TO late")
    session.execute("REVOKE SELECT ON shop.orders FROM reader")
    session.execute("GRANT SELECT ON shop.orders TO reader")
    root.shutdown()
    guarded.kill()
    guarded.start()
    cluster, session = log_in(guarded, ("late", "late"))
    session.execute("SELECT * FROM shop.secrets")
    cluster.shutdown()
    cluster, session = log_in(guarded, APP)
    session.execute("SELECT * FROM shop.orders")
    cluster.shutdown()


def cqlsh(node, who, statement):
    command = [CQLSH, "--no-color", "--cqlshrc=/dev/null", "-u", who[0], "-p", who[1], "-e", statement]
    done = subprocess.run(
        command + [node.host, str(node.port)],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=RUN_SECS,
        env=environment(),
    )
    return done.returncode, done.stdout


def test_cqlsh_logs_in(guarded):
    code, said = cqlsh(guarded, APP, "SELECT count(*) FROM shop.orders; LIST ROLES;")
    assert code == 0, said
    assert "reader" in said
    code, said = cqlsh(guarded, APP, "SELECT * FROM shop.secrets")
    assert code != 0 and "User app has no SELECT permission on <table shop.secrets>" in said
    code, said = cqlsh(guarded, ("app", "wrong"), "SELECT * FROM shop.orders")
    assert code != 0 and "Provided username app and/or password are incorrect" in said


def test_the_first_password_is_in_a_file_of_its_own_and_can_be_reset(tmp_path):
    node = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path / "data"), SETTINGS)
    node.start()
    file = tmp_path / "data" / "superuser-password"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    password = file.read_text().strip()
    cluster, _ = log_in(node, ("cassandra", password))
    cluster.shutdown()
    assert "incorrect" in failed_login(node, ("cassandra", "cassandra"))
    reset = [node.binary, "auth", "reset-password", "--data", node.data, "cassandra"]
    assert subprocess.run(reset, capture_output=True, timeout=RUN_SECS).returncode == 1, "the node is running"
    assert node.stop() == 0
    with open(node.log) as log:
        assert password not in log.read()
    done = subprocess.run(reset, capture_output=True, text=True, timeout=RUN_SECS)
    assert done.returncode == 0, done.stderr
    made = done.stdout.strip()
    done = subprocess.run(reset + ["--stdin"], input="from stdin\n", capture_output=True, text=True, timeout=RUN_SECS)
    assert done.returncode == 0, done.stderr
    node.start()
    for old in (password, made):
        assert "incorrect" in failed_login(node, ("cassandra", old))
    cluster, _ = log_in(node, ("cassandra", "from stdin"))
    cluster.shutdown()
    assert node.stop() == 0


def test_other_machines_are_not_let_in_without_passwords(tmp_path):
    node = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path / "data"), ("rpc_address=0.0.0.0",))
    done = subprocess.run(node.command(), capture_output=True, text=True, timeout=RUN_SECS)
    assert done.returncode == 2
    assert "--insecure" in done.stderr and "PasswordAuthenticator" in done.stderr


def test_commands_log_in(guarded, tmp_path):
    """Administration needs a superuser: by file, by environment, and in the words of nodetool."""
    passwords = tmp_path / "passwords"
    passwords.write_text(f"{ROOT[0]} {ROOT[1]}\n{APP[0]} {APP[1]}\n")

    def ilion(*words, **variables):
        port = {"ILION_ADMIN_PORT": str(guarded.admin_port)}
        environment = {**os.environ, **port, **variables}
        done = subprocess.run(
            [guarded.binary, *words], capture_output=True, text=True, timeout=RUN_SECS, env=environment, check=False
        )
        return done.returncode, done.stdout + done.stderr

    code, told = ilion("flush")
    assert code == 1 and "--username, --password-file" in told
    assert ilion("flush", "-u", ROOT[0], "--password-file", str(passwords))[0] == 0
    assert ilion("flush", ILION_USERNAME=ROOT[0], ILION_PASSWORD=ROOT[1])[0] == 0
    assert ilion("nodetool", "-u", ROOT[0], "-pwf", str(passwords), "tpstats")[0] == 0
    code, told = ilion("nodetool", "-u", ROOT[0], "-pw", "wrong", "drain")
    assert code == 1 and "are incorrect" in told
    code, told = ilion("flush", "-u", APP[0], "--password-file", str(passwords))
    assert code == 1 and "Only superusers may administer the node, and app is none" in told
    code, told = ilion("flush", "-u", ROOT[0])
    assert code == 2 and "cassandra needs a password" in told
