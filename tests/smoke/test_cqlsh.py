"""A stock cqlsh: statements, DESCRIBE, COPY, paging, EXPAND, CONSISTENCY, SOURCE, and completion of names in a terminal."""

import re

import pexpect
import pytest

from shell import Cqlsh


@pytest.fixture(scope="module")
def shell(node, session):
    return Cqlsh(node, session.keyspace)


def fields(line):
    return [field.strip() for field in line.split("|")]


def table_of(said):
    """The rows of a printed table as lists of fields, its header first."""
    lines = [line for line in said.splitlines() if "|" in line]
    return [fields(line) for line in lines]


def test_create_insert_select(shell, fresh):
    name = fresh("shelled")
    said = shell.run(
        f"""
        CREATE TABLE {name} (k int, c text, v list<int>, PRIMARY KEY (k, c));
        INSERT INTO {name} (k, c, v) VALUES (1, 'a', [1, 2]);
        INSERT INTO {name} (k, c) VALUES (1, 'b');
        SELECT * FROM {name};
        """
    )
    assert table_of(said) == [["k", "c", "v"], ["1", "a", "[1, 2]"], ["1", "b", "null"]]
    assert "(2 rows)" in said


def test_a_keyspace_is_created_used_and_dropped(shell, fresh):
    name = fresh("other")
    said = shell.run(
        f"""
        CREATE KEYSPACE {name} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}};
        USE {name};
        CREATE TABLE t (k int PRIMARY KEY);
        DESCRIBE TABLES;
        DROP KEYSPACE {name};
        """
    )
    assert said.split() == ["t"]


def test_errors_are_shown_and_end_a_script_with_a_failure(shell):
    said = shell.run("SELECT * FROM missing;\n", fails=True)
    assert "InvalidRequest" in said and "missing" in said
    said = shell.run("SELEKT 1;\n", fails=True)
    assert "SyntaxException" in said and "line 1:0" in said


def test_describe_gives_statements_that_make_the_same_again(shell, session, fresh):
    name, kind = fresh("described"), fresh("kind")
    shell.run(
        f"""
        CREATE TYPE {kind} (a int, b frozen<list<text>>);
        CREATE TABLE {name} (k1 int, k2 text, c1 timeuuid, "C2" int, s text STATIC, v frozen<{kind}>, m map<text, int>,
            PRIMARY KEY ((k1, k2), c1, "C2")) WITH CLUSTERING ORDER BY (c1 DESC, "C2" ASC)
            AND comment = 'it''s described' AND default_time_to_live = 60 AND gc_grace_seconds = 7
            AND compaction = {{'class': 'LeveledCompactionStrategy'}};
        """
    )
    described = shell.run(f"DESCRIBE TABLE {name};")
    for part in (
        f"CREATE TABLE {session.keyspace}.{name} (",
        "PRIMARY KEY ((k1, k2), c1, \"C2\")",
        "s text static",
        "CLUSTERING ORDER BY (c1 DESC, \"C2\" ASC)",
        "comment = 'it''s described'",
        "default_time_to_live = 60",
        "gc_grace_seconds = 7",
        "LeveledCompactionStrategy",
    ):
        assert part in described
    shell.run(f"DROP TABLE {name};" + described)
    assert shell.run(f"DESCRIBE TABLE {name};") == described

    keyspace = shell.run(f"DESCRIBE KEYSPACE {session.keyspace};")
    assert f"CREATE KEYSPACE {session.keyspace} WITH replication" in keyspace
    assert described.strip() in keyspace and f"CREATE TYPE {session.keyspace}.{kind}" in keyspace
    assert f"CREATE TYPE {session.keyspace}.{kind}" in shell.run(f"DESCRIBE TYPE {kind};")


def test_describe_lists_what_there_is(shell, session, fresh):
    name = fresh("listed")
    session.execute(f"CREATE TABLE {name} (k int PRIMARY KEY)")
    assert {"system", "system_schema", session.keyspace} <= set(shell.run("DESCRIBE KEYSPACES;").split())
    assert name in shell.run("DESCRIBE TABLES;").split()
    assert "Cluster:" in shell.run("DESCRIBE CLUSTER;")
    assert f"CREATE TABLE {session.keyspace}.{name}" in shell.run("DESCRIBE SCHEMA;")


def test_copy_takes_every_type_out_and_in_again(shell, session, fresh, tmp_path):
    name, copy = fresh("typed"), fresh("typed")
    columns = "k int PRIMARY KEY, a ascii, b blob, d decimal, f double, i inet, l list<text>, m map<int, text>, " \
        "s set<int>, t timestamp, dt date, u uuid, bo boolean, tu tuple<int, text>"
    session.execute(f"CREATE TABLE {name} ({columns})")
    session.execute(f"CREATE TABLE {copy} ({columns})")
    session.execute(
        f"INSERT INTO {name} (k, a, b, d, f, i, l, m, s, t, dt, u, bo, tu) VALUES (1, 'x,\"y', 0xcafe, 1.50, 2.5, "
        f"'::1', ['a', 'b,c'], {{1: 'it''s'}}, {{3, 1}}, '2026-01-02T03:04:05.678Z', '2026-01-02', uuid(), true, (1, 'z'))"
    )
    session.execute(f"INSERT INTO {name} (k) VALUES (2)")
    path = tmp_path / "typed.csv"
    assert "2 rows exported" in shell.run(f"COPY {name} TO '{path}';")
    assert "2 rows imported" in shell.run(f"COPY {copy} FROM '{path}';")
    both = [sorted(session.execute(f"SELECT * FROM {table}"), key=lambda row: row.k) for table in (name, copy)]
    assert both[0] == both[1]


def test_expand_shows_a_row_on_several_lines(shell, fresh):
    name = fresh("wide")
    said = shell.run(
        f"""
        CREATE TABLE {name} (k int PRIMARY KEY, first text, second text);
        INSERT INTO {name} (k, first, second) VALUES (1, 'one', 'two');
        EXPAND ON;
        SELECT * FROM {name};
        """
    )
    assert "@ Row 1" in said
    assert [["k", "1"], ["first", "one"], ["second", "two"]] == table_of(said)


def test_consistency_is_set_and_used(shell):
    said = shell.run("CONSISTENCY QUORUM;\nCONSISTENCY;\nSELECT key FROM system.local;\nSERIAL CONSISTENCY;\n")
    assert "Consistency level set to QUORUM." in said
    assert "Current consistency level is QUORUM." in said
    assert "local" in said and "Current serial consistency level is SERIAL." in said


def test_a_file_is_sourced(shell, fresh, tmp_path):
    name = fresh("sourced")
    script = tmp_path / "script.cql"
    script.write_text(
        f"-- a comment\nCREATE TABLE {name} (k int PRIMARY KEY, v text);\n"
        f"/* another */ INSERT INTO {name} (k, v)\n  VALUES (1, 'from; a file');\n"
    )
    said = shell.run(f"SOURCE '{script}';\nSELECT v FROM {name};\n")
    assert "from; a file" in said


def test_show_version_names_the_protocol(shell):
    said = shell.run("SHOW VERSION;\nSHOW HOST;\n")
    assert "CQL spec 3.4.7" in said and "Native protocol v5" in said


def test_paging_asks_before_it_goes_on(shell, session, fresh):
    name = fresh("paged")
    session.execute(f"CREATE TABLE {name} (k int, c int, PRIMARY KEY (k, c))")
    insert = session.prepare(f"INSERT INTO {name} (k, c) VALUES (1, ?)")
    for c in range(25):
        session.execute(insert, (c,))
    terminal = shell.terminal()
    terminal.sendline("PAGING 10;")
    terminal.expect_exact("Page size: 10")
    terminal.sendline(f"SELECT c FROM {name} WHERE k = 1;")
    for _ in range(2):
        terminal.expect_exact("---MORE---")
        terminal.send("\r")
    terminal.expect_exact("(25 rows)")
    terminal.sendline("EXIT")
    terminal.expect(pexpect.EOF)


def completed(shell, typed, wanted):
    """Types a text, presses Tab, and waits for the expected completion."""
    terminal = shell.terminal()
    terminal.send(typed + "\t")
    terminal.expect(wanted)
    terminal.close(force=True)


def test_tab_completes_names(shell, session, fresh):
    name = fresh("zebra")
    session.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, stripes int)")
    completed(shell, "SELECT * FROM zeb", "ra_")
    completed(shell, f"USE {session.keyspace[:-1]}", re.escape(session.keyspace[-1]))
    completed(shell, f"SELECT * FROM {session.keyspace}.zeb", "ra_")
    completed(shell, f"INSERT INTO {name} (k, str", "ipes")
    completed(shell, f"UPDATE {name} SET str", "ipes")
    completed(shell, "DESCRIBE TABLE zeb", "ra_")
    completed(shell, "SELECT * FROM system_sch", "ema")
