"""Traces as the driver and cqlsh show them, and the costs of statements."""

import json

import pytest
from cassandra.query import SimpleStatement

from shell import Cqlsh


@pytest.fixture
def table(session, fresh):
    name = fresh("traced")
    session.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v text)")
    session.execute(f"INSERT INTO {name} (k, v) VALUES (1, 'one')")
    return name


def test_the_driver_reads_traces_of_reads_and_writes(session, table):
    future = session.execute_async(f"INSERT INTO {table} (k, v) VALUES (2, 'two')", trace=True)
    future.result()
    trace = future.get_query_trace()
    told = [event.description for event in trace.events]
    assert "Appending to commitlog" in told and f"Adding to {table} memtable" in told, told
    result = session.execute(f"SELECT v FROM {table} WHERE k = 2", trace=True)
    assert result.one().v == "two"
    trace = result.get_query_trace()
    assert trace.request_type == "Execute CQL3 query"
    assert trace.parameters["query"] == f"SELECT v FROM {table} WHERE k = 2"
    assert trace.duration.total_seconds() > 0 and trace.client == trace.coordinator
    told = [event.description for event in trace.events]
    assert f"Executing single-partition query on {table}" in told, told
    assert "Read 1 live rows and 0 tombstone cells" in told, told
    elapsed = [event.source_elapsed for event in trace.events]
    assert elapsed == sorted(elapsed)
    assert all(event.thread_name for event in trace.events)


def test_prepared_statements_and_errors_are_traced(session, table):
    prepared = session.prepare(f"SELECT v FROM {table} WHERE k = ?")
    trace = session.execute(prepared, (1,), trace=True).get_query_trace()
    assert trace.request_type == "Execute CQL3 prepared query"
    assert trace.parameters["bound_var_0_k"] == "1"
    future = session.execute_async("SELECT * FROM nowhere_at_all", trace=True)
    with pytest.raises(Exception, match="nowhere_at_all"):
        future.result()
    assert "Parsing SELECT * FROM nowhere_at_all" in [event.description for event in future.get_query_trace().events]


def test_cqlsh_shows_traces(node, session, table):
    shell = Cqlsh(node, session.keyspace)
    said = shell.run(f"TRACING ON;\nSELECT v FROM {table} WHERE k = 1;\nTRACING OFF;\nSELECT k FROM {table};\n")
    assert "Tracing session:" in said
    lines = [[field.strip() for field in line.split("|")] for line in said.splitlines() if "|" in line]
    assert ["activity", "timestamp", "source", "source_elapsed", "client"] in lines, said
    told = [line[0].split(" [")[0] for line in lines if len(line) == 5]
    assert told[1] == "Execute CQL3 query" and told[-1] == "Request complete", said
    assert f"Executing single-partition query on {table}" in told, said


def test_statements_are_told_with_what_they_cost(session, table):
    for key in (1, 2, 3):
        session.execute(f"SELECT v FROM {table} WHERE k = {key}")
    shape = f"SELECT v FROM {table} WHERE k = ?"
    row = session.execute(
        "SELECT * FROM system_views.statements WHERE keyspace_name = %s AND statement = %s", (session.keyspace, shape)
    ).one()
    assert (row.calls, row.errors, row.rows_returned_total, row.memtables_total) == (3, 0, 1, 1)
    assert 0 < row.latency_ms_p50 <= row.latency_ms_p99 <= row.latency_ms_max


def test_the_custom_payload_asks_for_the_cost(session, table):
    future = session.execute_async(f"SELECT v FROM {table} WHERE k = 1", custom_payload={"ilion.cost": b""})
    assert future.result().one().v == "one"
    cost = json.loads(future.custom_payload["ilion.cost"])
    assert cost["rows_scanned"] == 1 and cost["disk_bytes"] == 0


def test_a_select_is_explained(session, table):
    rows = session.execute(SimpleStatement(f"EXPLAIN ANALYZE SELECT * FROM {table} WHERE k = 1"))
    told = {row.step: row.detail for row in rows}
    assert told["access"] == "one row by its primary key"
    assert told["rows_returned"] == "1"
