"""Events."""

import queue

import pytest
from cassandra.connection import DefaultEndPoint

from conftest import DIALECTS, connect

WAIT_SECS = 30


@pytest.fixture
def listener(node):
    """A queue with the events of a connection that registered for schema changes."""
    cluster = connect(node)
    cluster.connect()
    connection = cluster.connection_factory(DefaultEndPoint(node.host, node.port), is_control_connection=True)
    arrived = queue.Queue()
    connection.register_watcher("SCHEMA_CHANGE", arrived.put, register_timeout=WAIT_SECS)
    yield arrived
    connection.close()
    cluster.shutdown()


def test_changes_of_the_schema_are_told(session, fresh, listener):
    def next_event():
        # Other keyspaces change when other tests end.
        while True:
            event = listener.get(timeout=WAIT_SECS)
            if event["keyspace"] == session.keyspace:
                return event["change_type"], event["target_type"], event.get("table") or event.get("type")

    table, kind = fresh("told"), fresh("kind")
    session.execute(f"CREATE TABLE {table} (k int PRIMARY KEY)")
    assert next_event() == ("CREATED", "TABLE", table)
    session.execute(f"ALTER TABLE {table} ADD v int")
    assert next_event() == ("UPDATED", "TABLE", table)
    session.execute(f"CREATE TYPE {kind} (a int)")
    assert next_event() == ("CREATED", "TYPE", kind)
    session.execute(f"DROP TABLE {table}")
    assert next_event() == ("DROPPED", "TABLE", table)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda d: f"v{d.version}-{d.compression or 'plain'}")
def test_another_client_learns_of_a_new_table(node, session, fresh, dialect):
    cluster = connect(node, dialect, schema_event_refresh_window=0)
    cluster.connect()
    learned = queue.Queue()
    refresh = cluster.control_connection.refresh_schema
    cluster.control_connection.refresh_schema = lambda **about: (refresh(**about), learned.put(about))
    name = fresh("learned")
    session.execute(f"CREATE TABLE {name} (k int PRIMARY KEY)")
    while name not in cluster.metadata.keyspaces[session.keyspace].tables:
        learned.get(timeout=WAIT_SECS)
    cluster.shutdown()
