"""Run by open-in-place.sh: a data directory goes from Cassandra to Ilion and back, without unexpected errors in Cassandra's log."""

import os
import shutil
import sys
import tempfile

import check_sstables_data as data
import open_in_place_data as kinds
from cassandra import InvalidRequest, Unauthorized
from cassandra.auth import PlainTextAuthProvider
from cassandra_log import complaints, text_of
from check_sstables import Cassandra, Verdicts, equal, read, write
from conftest import connect
from node import OwnNode

VERSION = tuple(map(int, os.environ.get("CASSANDRA_VERSION", "5.0.9").split(".")))
SCHEMA_TABLES = ["keyspaces", "tables", "columns", "dropped_columns", "types", "views", "indexes", "aggregates", "functions"]


class Client:
    """A session and its cluster, both closed at the end."""

    def __init__(self, node, user="cassandra", password="cassandra"):
        self.cluster = connect(node, auth_provider=PlainTextAuthProvider(user, password))
        self.session = self.cluster.connect()

    def __enter__(self):
        return self.session

    def __exit__(self, *_):
        self.cluster.shutdown()


def answer(session, query):
    """Rows as text, sorted: rows from an index have no order."""
    rows = [str(tuple(row)) for row in session.execute(query)]
    return sorted(rows) if "WHERE" in query else rows


def answers(session, queries):
    return {query: answer(session, query) for query in queries}


def schema_of(session):
    """The rows of system_schema about the keyspaces of the test."""
    names = [row.keyspace_name for row in session.execute("SELECT keyspace_name FROM system_schema.keyspaces")]
    seen = {}
    for keyspace in filter(lambda name: not name.startswith("system"), names):
        for table in SCHEMA_TABLES:
            for row in session.execute(f"SELECT * FROM system_schema.{table} WHERE keyspace_name = %s", (keyspace,)):
                row = row._asdict()
                key = [str(row[name]) for name in row if name.endswith("_name") and row[name] is not None]
                seen[" ".join([table, *key, *map(str, row.get("argument_types") or ())])] = row
    return seen


def same_schema(seen, expected):
    """Rows that one side lacks, and columns of both sides that differ."""
    equal(sorted(seen), sorted(expected))
    for name, row in seen.items():
        both = row.keys() & expected[name].keys()
        equal({c: row[c] for c in sorted(both)}, {c: expected[name][c] for c in sorted(both)})


def roles_of(session):
    return {table: answer(session, f"SELECT * FROM system_auth.{table}") for table in kinds.ROLE_TABLES}


def fill(session):
    for statement in data.schema():
        session.execute(statement)
    write(session)
    session.execute(kinds.create_keyspace())
    session.set_keyspace(kinds.KEYSPACE)
    for kind in kinds.KINDS:
        for statement in kind.before:
            session.execute(statement)
    for statement in kinds.ROLES:
        session.execute(statement)


def write_again(session):
    """Runs every statement once more, so that counters grow and lists are written again; then the statements for Ilion only."""
    write(session)
    for kind in kinds.KINDS:
        for statement in [*kind.during, *kind.unshared]:
            session.execute(statement)


def state(session, queries):
    """The answers to all queries; `queries` returns those of a kind."""
    session.set_keyspace(kinds.KEYSPACE)
    seen = {f"table {name}": rows for name, rows in read(session).items()}
    for kind in kinds.KINDS:
        seen[kind.name] = answers(session, queries(kind))
    seen["roles"] = roles_of(session)
    return seen


def same_state(verdicts, what, seen, expected):
    for name in expected:
        verdicts.check(f"{name}: {what}", lambda: equal(seen[name], expected[name]))


def refuses(session, statement):
    try:
        session.execute(statement)
    except InvalidRequest as refused:
        assert "Cassandra 4" in str(refused), f"{statement}: {refused}"
        return
    raise AssertionError(f"{statement} was accepted")


def roles_work(node, *more):
    """Checks that passwords and permissions work: those of alice, and of more roles that may do the same."""
    for role, password in [("alice", "secret"), *more]:
        with Client(node, role, password) as session:
            session.execute(f"SELECT * FROM {kinds.KEYSPACE}.a")
            try:
                session.execute(f"INSERT INTO {kinds.KEYSPACE}.emptied (k) VALUES (1)")
            except Unauthorized:
                continue
            raise AssertionError(f"{role} may write")


def takes_saved_caches(home):
    """Checks that Cassandra reads the saved counter cache, and that saved caches name the current schema version."""
    log = text_of(home)
    assert "Reading saved cache" in log and "CounterCache-g.db" in log, "no saved cache of counters was read"
    assert "does not match current schema version" not in log, "a saved cache is of another schema"


def in_cassandra(home, verdicts, what, work):
    cassandra = Cassandra(home)
    try:
        with Client(cassandra) as session:
            done = work(cassandra, session)
        cassandra.tool("nodetool", "drain")
    finally:
        cassandra.stop()
    verdicts.check(f"Cassandra's log {what}", lambda: equal(complaints(home, kinds.EXPECTED_IN_LOG), []))
    return done


def in_ilion(home, work):
    ilion = OwnNode(os.environ["ILION"], home, kinds.SETTINGS_OF_ILION)
    ilion.start()
    try:
        with Client(ilion) as session:
            done = work(ilion, session)
    finally:
        code = ilion.stop()
    assert code == 0, ilion.last_words()
    return done


def main():
    work = tempfile.mkdtemp()
    settings = os.path.join(work, "more.yaml")
    with open(settings, "w", encoding="utf-8") as file:
        file.write(kinds.SETTINGS)
    os.environ["CASSANDRA_YAML"] = settings
    if VERSION < (5, 0):
        data.leave_out_vectors()
    home = os.path.join(work, "cassandra")
    verdicts = Verdicts()

    def first(_, session):
        fill(session)
        return state(session, kinds.Kind.before_ilion), schema_of(session)

    def ours(ilion, session):
        before = state(session, kinds.Kind.before_ilion), schema_of(session)
        session.set_keyspace(kinds.KEYSPACE)
        write_again(session)
        verdicts.check("roles: work in Ilion", lambda: roles_work(ilion))
        for statement in kinds.ROLES_OF_ILION:
            session.execute(statement)
        verdicts.check("roles: work in Ilion after changes", lambda: roles_work(ilion, kinds.ROLE_OF_ILION))
        if VERSION < (5, 0):
            for statement in kinds.REFUSED_BY_4:
                verdicts.check(f"refused: {statement}", lambda: refuses(session, statement))
        release = session.execute("SELECT release_version FROM system.local").one()[0]
        return before, (state(session, kinds.Kind.after_ilion), schema_of(session)), release

    def again(cassandra, session):
        back = state(session, kinds.Kind.after_ilion), schema_of(session)
        if VERSION >= (5, 0):
            verdicts.check("caches: Cassandra takes what Ilion saved", lambda: takes_saved_caches(home))
        for kind in kinds.KINDS:
            for query in kind.theirs:
                verdicts.check(f"{kind.name}: {query}", lambda: answer(session, query))
        verdicts.check("roles: still work, and Ilion's too", lambda: roles_work(cassandra, kinds.ROLE_OF_ILION))
        return back

    theirs = in_cassandra(home, verdicts, "of its own files", first)
    before, after, release = in_ilion(home, ours)
    same_state(verdicts, "Ilion reads what Cassandra wrote", before[0], theirs[0])
    verdicts.check("schema: Ilion's is Cassandra's", lambda: same_schema(before[1], theirs[1]))
    kept = ".".join(map(str, VERSION))
    verdicts.check("release_version stays", lambda: equal(release, kept))
    # Restarted, so that flushed data is read from its files.
    in_ilion(home, lambda ilion, session: same_state(verdicts, "the same after a restart", state(session, kinds.Kind.after_ilion), after[0]))
    back = in_cassandra(home, verdicts, "of files with Ilion's among them", again)
    same_state(verdicts, "Cassandra reads what Ilion wrote", back[0], after[0])
    verdicts.check("schema: Cassandra's is Ilion's", lambda: same_schema(back[1], after[1]))
    in_ilion(home, lambda ilion, session: same_state(verdicts, "the same on the second way", state(session, kinds.Kind.after_ilion), back[0]))
    if not verdicts.failed:
        shutil.rmtree(work)
    else:
        print(f"left in {work}")
    return verdicts.close()


if __name__ == "__main__":
    sys.exit(main())
