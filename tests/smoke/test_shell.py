"""ilion cql: the same text as cqlsh prints, scripts, exit codes, and the editor in a terminal."""

import json
import os
import pathlib
import re
import subprocess
import time

import pexpect
import pytest

from node import OwnNode
from shell import Cqlsh

RUN_SECS = 120
PASTE = re.compile(r"\x1b\[\?2004[hl]")


@pytest.fixture(scope="module")
def binary():
    return os.environ["SMOKE_ILION"]


@pytest.fixture(scope="module")
def cqlsh(node, session):
    return Cqlsh(node, session.keyspace)


@pytest.fixture
def ilion_cql(binary, node, session):
    """Runs `ilion cql` in the keyspace of the session."""

    def run(*arguments, script=None, code=0):
        command = [binary, "cql", f"{node.host}:{node.port}", "-k", session.keyspace, *arguments]
        done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=RUN_SECS)
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout

    return run


SCHEMA = """
CREATE TYPE {name}_kind (a int, "B" frozen<list<text>>);
CREATE TABLE {name} (k int, c text, s text STATIC, b blob, bo boolean, d date, de decimal, du duration, f float, g double, i inet,
    l list<text>, m map<text, timestamp>, se set<int>, t time, ts timestamp, tu tuple<int, text>, ty frozen<{name}_kind>, u uuid, vi varint,
    ve vector<float, 2>, PRIMARY KEY (k, c));
INSERT INTO {name} (k, c, s, b, bo, d, de, du, f, g, i, l, m, se, t, ts, tu, ty, u, vi, ve) VALUES (1, 'tab\tand \\ and ''quote''', 'static',
    0xcafe, true, '2026-01-02', 1.50, 1y2mo3d4h5m6s7ms8us9ns, 0.1, 123456.789, '::1', ['it''s', 'ä'], {{'x': '2026-01-02T03:04:05.678Z'}},
    {{3, 1}}, '03:04:05.000000001', '1969-12-31T23:59:59Z', (1, 'y'), {{a: 7, "B": ['x']}}, 123e4567-e89b-12d3-a456-426614174000,
    123456789012345678901234567890, [1.5, 0.00001]);
INSERT INTO {name} (k, c, f, g) VALUES (1, '日本語', 1e10, 3.14159265358979);
INSERT INTO {name} (k, c) VALUES (2, '');
"""

# Every line is executed by both shells, in this order.
COMPARED = """
SELECT * FROM {name};
SELECT c, m, l FROM {name} WHERE k = 1;
SELECT * FROM {name} WHERE k = 77;
SELECT count(*) FROM {name};
SELECT DISTINCT k, s FROM {name};
INSERT INTO {name} (k, c) VALUES (2, '') IF NOT EXISTS;
UPDATE {name} SET f = 1 WHERE k = 3 AND c = 'x' IF f = 2;
CONSISTENCY
CONSISTENCY QUORUM
SERIAL CONSISTENCY
TRACING
EXPAND ON
SELECT * FROM {name};
SELECT * FROM {name} WHERE k = 77;
EXPAND OFF
EXPAND OFF
PAGING 1
SELECT k, c FROM {name};
PAGING OFF
SELECT k, c FROM {name};
DESCRIBE TABLES
DESCRIBE KEYSPACES
DESCRIBE TYPES
DESCRIBE TABLE {name}
DESCRIBE CLUSTER
DESCRIBE KEYSPACE
LIST ROLES;
"""


def test_the_text_is_that_of_cqlsh(ilion_cql, cqlsh, fresh):
    name = fresh("compared")
    ilion_cql(script=SCHEMA.format(name=name))
    # LIST ROLES needs a login; the others are answered.
    script = COMPARED.replace("LIST ROLES;\n", "").format(name=name)
    assert ilion_cql(script=script) == cqlsh.run(script)


def errors_of(text):
    """The errors without the places in the script, which differ on purpose."""
    return re.findall(r"^<stdin>:\d+:(.*)$", text, re.MULTILINE)


def test_errors_are_those_of_cqlsh(binary, node, session, cqlsh, fresh):
    name = fresh("failing")
    script = f"""
        CREATE TABLE {name} (k int PRIMARY KEY);
        CREATE TABLE {name} (k int PRIMARY KEY);
        SELECT * FROM missing;
        SELEKT 1;
        INSERT INTO {name} (k) VALUES ('x');
        DESCRIBE TABLE missing;
        CREATE KEYSPACE {session.keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}};
        SELECT k FROM {name}
    """
    command = [binary, "cql", f"{node.host}:{node.port}", "-k", session.keyspace]
    done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=RUN_SECS)
    assert done.returncode == 2
    session.execute(f"DROP TABLE {name}")
    theirs = errors_of(cqlsh.run(script, fails=True))
    assert errors_of(done.stderr) == theirs and len(theirs) == 7


def test_formats_for_programs(ilion_cql, fresh):
    name = fresh("formatted")
    ilion_cql("-e", f"CREATE TABLE {name} (k int PRIMARY KEY, v text); INSERT INTO {name} (k, v) VALUES (1, 'a,\"b')")
    assert json.loads(ilion_cql("--format", "json", "-e", f"SELECT * FROM {name}")) == {"k": 1, "v": 'a,"b'}
    assert ilion_cql("--format", "csv", "-e", f"SELECT * FROM {name}") == 'k,v\n1,"a,""b"\n'


def test_requests_are_traced(ilion_cql):
    said = ilion_cql("-e", "TRACING ON\nSELECT key FROM system.local")
    session = re.search(r"^Tracing session: ([0-9a-f-]{36})$", said, re.MULTILINE)[1]
    for words in (r"^ +activity +\| timestamp +\| source +\| source_elapsed \| client$", r"^ +Execute CQL3 query \|", r"^ +Request complete \|"):
        assert re.search(words, said, re.MULTILINE), said
    assert f"Tracing session: {session}" in ilion_cql("-e", f"SHOW SESSION {session}")


def test_exit_codes(ilion_cql, binary, tmp_path):
    script = tmp_path / "script.cql"
    script.write_text("SELECT key FROM system.local;\nSELECT * FROM missing;\n")
    assert "local" in ilion_cql("-f", str(script), code=2)
    ilion_cql("-f", str(tmp_path / "none.cql"), code=1)
    ilion_cql("--format", "xml", code=2)
    done = subprocess.run([binary, "cql", "127.0.0.1:1", "-e", "SELECT 1"], capture_output=True, text=True, timeout=RUN_SECS)
    assert done.returncode == 1 and "connecting to 127.0.0.1:1" in done.stderr


def test_copied_files_go_from_one_shell_to_the_other(ilion_cql, cqlsh, session, fresh, tmp_path):
    name, copy, back = fresh("typed"), fresh("typed"), fresh("typed")
    columns = "k int PRIMARY KEY, a ascii, b blob, d decimal, f double, i inet, l list<text>, m map<int, text>, " \
        "s set<int>, t timestamp, dt date, ti time, u uuid, bo boolean, tu tuple<int, text>"
    for table in (name, copy, back):
        session.execute(f"CREATE TABLE {table} ({columns})")
    session.execute(
        f"INSERT INTO {name} (k, a, b, d, f, i, l, m, s, t, dt, ti, u, bo, tu) VALUES (1, 'x,\"y\\', 0xcafe, 1.50, 2.5, "
        "'::1', ['a', 'b,c'], {1: 'it''s'}, {3, 1}, '2026-01-02T03:04:05.678Z', '2026-01-02', '03:04:05', uuid(), true, (1, 'z'))"
    )
    session.execute(f"INSERT INTO {name} (k) VALUES (2)")
    session.execute(f"INSERT INTO {name} (k, a) VALUES (3, 'say \"x\"')")
    ours, theirs = tmp_path / "ours.csv", tmp_path / "theirs.csv"

    assert "3 rows exported to 1 files in" in ilion_cql("-e", f"COPY {name} TO '{ours}' WITH HEADER = true")
    assert "3 rows imported" in cqlsh.run(f"COPY {copy} FROM '{ours}' WITH HEADER = true;")
    assert rows_of(session, copy) == rows_of(session, name)
    # cqlsh exports each backslash twice, so there is none on this way.
    session.execute(f"UPDATE {name} SET a = 'x,\"y' WHERE k = 1")
    assert "3 rows exported" in cqlsh.run(f"COPY {name} TO '{theirs}';")
    assert "3 rows imported from 1 files in" in ilion_cql("-e", f"COPY {back} FROM '{theirs}'")
    assert rows_of(session, back) == rows_of(session, name)


def rows_of(session, table):
    return sorted(session.execute(f"SELECT * FROM {table}"), key=lambda row: row.k)


def test_many_rows_are_copied_and_bad_ones_are_kept(ilion_cql, session, fresh, tmp_path):
    name = fresh("many")
    session.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v text)")
    source, bad = tmp_path / "many.csv", tmp_path / "bad.csv"
    source.write_text("".join(f"{'x' if k % 1000 == 0 else k},value {k}\n" for k in range(20_000)))
    script = f"COPY {name} FROM '{source}' WITH ERRFILE = '{bad}'"
    assert "19980 rows imported" in ilion_cql("-e", script, code=2)
    assert bad.read_text().splitlines() == [f"x,value {k}" for k in range(0, 20_000, 1000)]
    assert session.execute(f"SELECT count(*) FROM {name}").one().count == 19_980


def kill_when_progress_is_kept(binary, node, script, progress):
    """Runs a COPY and kills it as soon as it has saved its progress."""
    copy = subprocess.Popen(
        [binary, "cql", f"{node.host}:{node.port}", "-e", script], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    deadline = time.monotonic() + RUN_SECS
    while not progress.exists():
        assert copy.poll() is None, f"it ended before it could be killed: {copy.stdout.read()}"
        assert time.monotonic() < deadline
        time.sleep(0.001)
    copy.kill()
    copy.wait()
    assert progress.exists(), "the COPY was complete before it was killed"


def test_a_copy_that_was_killed_goes_on_where_it_stopped(ilion_cql, binary, node, session, fresh, tmp_path):
    rows = 30_000
    name = fresh("resumed")
    session.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v text)")
    source, bad = tmp_path / "resumed.csv", tmp_path / "bad.csv"
    source.write_text("".join(f"{'x' if k % 1000 == 500 else k},value {k}\n" for k in range(rows)))
    table = f"{session.keyspace}.{name}"
    # One row at a time, so that there is time to kill it.
    copy = f"COPY {table} FROM '{source}' WITH ERRFILE = '{bad}' AND MAXREQUESTS = 1 AND MAXBATCHSIZE = 1"
    kill_when_progress_is_kept(binary, node, copy, tmp_path / f"import_{session.keyspace}_{name}_resumed.csv.progress")
    written = session.execute(f"SELECT count(*) FROM {name}").one().count
    assert 0 < written < rows - 30
    said = ilion_cql("-e", f"COPY {table} FROM '{source}' WITH ERRFILE = '{bad}' AND RESUME = true", code=2)
    resumed = int(re.search(r"^(\d+) rows imported", said, re.MULTILINE)[1])
    assert rows - 30 - written <= resumed < rows - 30, "it did not begin anew"
    assert {row.k for row in session.execute(f"SELECT k FROM {name}")} == {k for k in range(rows) if k % 1000 != 500}
    # A record that failed shortly before the kill may be there twice.
    assert set(bad.read_text().splitlines()) == {f"x,value {k}" for k in range(500, rows, 1000)}

    target = tmp_path / "out.csv"
    copy = f"COPY {table} TO '{target}' WITH PAGESIZE = 1"
    kill_when_progress_is_kept(binary, node, copy, tmp_path / "out.csv.progress")
    assert len(target.read_text().splitlines()) < rows - 30
    # The size of a page may be another one.
    ilion_cql("-e", f"COPY {table} TO '{target}' WITH RESUME = true")
    whole = tmp_path / "whole.csv"
    ilion_cql("-e", f"COPY {table} TO '{whole}'")
    assert target.read_text() == whole.read_text()


def test_a_password_is_needed_where_logins_are(binary, node, tmp_path):
    if not node.is_ours:
        pytest.skip("it starts a node of its own")
    settings = ("authenticator=PasswordAuthenticator",)
    guarded = OwnNode(binary, str(tmp_path / "guarded"), settings, {"ILION_SUPERUSER_PASSWORD": "secret"})
    guarded.start()

    def run(*arguments, **variables):
        command = [binary, "cql", f"{guarded.host}:{guarded.port}", "-e", "SELECT key FROM system.local", *arguments]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=RUN_SECS, env={**os.environ, **variables}, stdin=subprocess.DEVNULL
        )
        return done.returncode, done.stdout + done.stderr

    assert run("-u", "cassandra", "-p", "secret")[0] == 0
    assert run("-u", "cassandra", ILION_PASSWORD="secret")[0] == 0
    code, said = run()
    assert code == 1 and "wants authentication" in said
    code, said = run("-u", "cassandra", "-p", "wrong")
    assert code == 1 and "are incorrect" in said
    assert guarded.stop() == 0


def test_a_connection_may_be_encrypted(binary, node, tmp_path):
    if not node.is_ours:
        pytest.skip("it starts a node of its own")
    certificates = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..", "crates", "tls", "testdata"))
    settings = (
        "client_encryption_options_enabled=true",
        "client_encryption_options_optional=true",
        f"client_encryption_options_keystore={certificates}/node.pem",
    )
    encrypted = OwnNode(binary, str(tmp_path / "encrypted"), settings)
    encrypted.start()
    command = [binary, "cql", f"localhost:{encrypted.port}", "--tls-ca", f"{certificates}/ca.pem", "--format", "csv"]
    command += ["-e", "SELECT ssl_protocol FROM system_views.clients"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECS)
    assert (done.returncode, done.stdout) == (0, "ssl_protocol\nTLSv1.3\n"), done.stderr
    assert encrypted.stop() == 0


def test_a_directory_needs_no_server(binary, tmp_path):
    def run(script):
        command = [binary, "cql", "--data", str(tmp_path / "data")]
        done = subprocess.run(command, input=script, capture_output=True, text=True, timeout=RUN_SECS)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run(
        "CREATE KEYSPACE ks WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1};"
        "CREATE TABLE ks.t (k int PRIMARY KEY, v text); INSERT INTO ks.t (k, v) VALUES (1, 'kept');"
    )
    assert "kept" in run("SELECT * FROM ks.t;")
    assert "one row by its primary key" in run("EXPLAIN ANALYZE SELECT * FROM ks.t WHERE k = 1;")


def test_files_of_cassandra_are_read_with_a_schema(binary, tmp_path):
    case = pathlib.Path(__file__).parents[2] / "crates/sstable/testdata/static_columns-nb"

    def run(*words):
        command = [binary, "cql", *words, "--format", "csv", "-e", "SELECT count(*) FROM fx.static_columns WHERE pk = 'p1'"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=RUN_SECS)
        return done.returncode, done.stdout.splitlines()[1:], done.stderr

    # The schema is found in the folder.
    assert run("--sstables", case) == (0, ["4"], "")
    table = case / "fx" / "static_columns"
    code, _, errors = run("--sstables", table)
    assert code == 1 and "--schema FILE" in errors, errors
    schema = tmp_path / "schema.cql"
    schema.write_text((case / "describe.cql").read_text() + "CREATE INDEX i ON fx.static_columns (v);")
    code, rows, errors = run("--sstables", table, "--schema", schema)
    assert (code, rows) == (0, ["4"])
    assert errors == "note: left out: CREATE INDEX i ON fx.static_columns (v)\n"
    assert run("--sstables", table, "--data", tmp_path)[0] == 2


@pytest.fixture
def terminal(binary, node, session, tmp_path):
    """An `ilion cql` in a terminal, at its first prompt."""
    environment = dict(os.environ, TERM="xterm", NO_COLOR="1", XDG_STATE_HOME=str(tmp_path))
    arguments = ["cql", f"{node.host}:{node.port}", "-k", session.keyspace]
    child = pexpect.spawn(binary, arguments, timeout=60, encoding="utf-8", dimensions=(50, 200), env=environment)
    child.state = tmp_path
    answer_cursor(child)
    child.expect_exact(f"cql:{session.keyspace}")
    yield child
    child.close(force=True)


def answer_cursor(child):
    """Answers the question of the editor where the cursor is, as a terminal does."""
    child.expect_exact("\x1b[6n")
    child.send("\x1b[1;1R")


def test_a_statement_may_have_several_lines(terminal):
    terminal.send("SELECT key\r")
    terminal.expect_exact(" ... ")
    terminal.send("FROM system.local;\r")
    terminal.expect_exact("(1 rows)")
    terminal.expect_exact("\x1b[6n")
    terminal.send("\x1b[20;1R")
    terminal.send("EXIT\r")
    terminal.expect(pexpect.EOF)
    terminal.wait()
    assert terminal.exitstatus == 0
    history = (terminal.state / "ilion" / "cql_history").read_text()
    assert "FROM system.local;" in history and oct((terminal.state / "ilion" / "cql_history").stat().st_mode)[-3:] == "600"


def test_ctrl_c_gives_up_the_line(terminal):
    terminal.send("SELECT nonsense")
    terminal.send("\x03")
    terminal.expect_exact("\x1b[6n")
    terminal.send("\x1b[20;1R")
    terminal.send("CONSISTENCY\r")
    terminal.expect_exact("Current consistency level is ONE.")


def test_tab_completes_names_of_the_schema(terminal, session):
    terminal.send("SELECT release_ver\t")
    terminal.send("\x03")
    terminal.expect_exact("\x1b[6n")
    terminal.send("\x1b[20;1R")
    terminal.send("SELECT cluster_name FROM system.loc\t;\r")
    terminal.expect_exact("(1 rows)")
