"""Common uses of a driver, in every version and compression of the protocol."""

import uuid

import pytest
from cassandra import AlreadyExists, ConsistencyLevel, InvalidRequest
from cassandra.protocol import SyntaxException
from cassandra.query import BatchStatement, BatchType, SimpleStatement, UNSET_VALUE



def test_the_agreed_version_and_compression_are_used(spoken, dialect):
    assert spoken.cluster.protocol_version == dialect.version
    [pool] = spoken.get_pools()
    connections = list(pool.get_connections()) if hasattr(pool, "get_connections") else [pool._connection]
    for connection in connections:
        assert connection._compression_type == dialect.compression


def test_the_server_introduces_itself(spoken):
    local = spoken.execute("SELECT * FROM system.local WHERE key = 'local'").one()
    assert local.release_version
    assert local.partitioner.startswith("org.apache.cassandra.dht.")
    assert local.schema_version and local.host_id and local.tokens
    assert list(spoken.execute("SELECT * FROM system.peers")) == []


def test_a_new_table_shows_in_the_schema_metadata(spoken, fresh):
    name = fresh("people")
    spoken.execute(
        f"CREATE TABLE {name} (team text, id int, motto text STATIC, name text, tags set<text>, "
        f"PRIMARY KEY (team, id)) WITH CLUSTERING ORDER BY (id DESC) AND comment = 'who is who'"
    )
    table = spoken.cluster.metadata.keyspaces[spoken.keyspace].tables[name]
    assert [column.name for column in table.partition_key] == ["team"]
    assert [column.name for column in table.clustering_key] == ["id"]
    assert table.columns["id"].is_reversed and table.columns["motto"].is_static
    assert table.columns["tags"].cql_type == "set<text>"
    assert table.options["comment"] == "who is who"
    assert f"CREATE TABLE {spoken.keyspace}.{name}" in table.as_cql_query()

    spoken.execute(f"ALTER TABLE {name} ADD born date")
    assert "born" in spoken.cluster.metadata.keyspaces[spoken.keyspace].tables[name].columns
    spoken.execute(f"DROP TABLE {name}")
    assert name not in spoken.cluster.metadata.keyspaces[spoken.keyspace].tables


def test_prepared_statements_take_values_by_position_and_by_name(spoken, fresh):
    name = fresh("prepared")
    spoken.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, a text, b text)")
    by_position = spoken.prepare(f"INSERT INTO {name} (k, a, b) VALUES (?, ?, ?)")
    spoken.execute(by_position, (1, "one", None))
    by_name = spoken.prepare(f"UPDATE {name} SET a = :first, b = :second WHERE k = :key")
    spoken.execute(by_name, {"key": 2, "first": "zwei", "second": "deux"})
    select = spoken.prepare(f"SELECT k, a, b FROM {name} WHERE k IN (?, ?)")
    assert sorted(map(tuple, spoken.execute(select, (1, 2)))) == [(1, "one", None), (2, "zwei", "deux")]


def test_an_unset_value_leaves_the_column_alone(spoken, fresh, dialect):
    if dialect.version < 4:
        pytest.skip("v3 has no unset values")
    name = fresh("unset")
    spoken.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, a text, b text)")
    insert = spoken.prepare(f"INSERT INTO {name} (k, a, b) VALUES (?, ?, ?)")
    spoken.execute(insert, (1, "a", "b"))
    spoken.execute(insert, (1, UNSET_VALUE, "c"))
    assert tuple(spoken.execute(f"SELECT a, b FROM {name} WHERE k = 1").one()) == ("a", "c")


def test_pages_come_one_after_the_other_and_can_be_resumed(spoken, fresh):
    name = fresh("pages")
    spoken.execute(f"CREATE TABLE {name} (k int, c int, v text, PRIMARY KEY (k, c))")
    insert = spoken.prepare(f"INSERT INTO {name} (k, c, v) VALUES (?, ?, ?)")
    futures = [spoken.execute_async(insert, (k, c, f"{k}/{c}")) for k in range(5) for c in range(101)]
    for future in futures:
        future.result()

    statement = SimpleStatement(f"SELECT c FROM {name} WHERE k = 3", fetch_size=25)
    result = spoken.execute(statement)
    pages = [len(result.current_rows)]
    state = result.paging_state
    while result.has_more_pages:
        result.fetch_next_page()
        pages.append(len(result.current_rows))
    assert sum(pages) == 101 and pages[:4] == [25, 25, 25, 25]
    resumed = spoken.execute(statement, paging_state=state)
    assert [row.c for row in resumed] == list(range(25, 101))

    everything = spoken.execute(SimpleStatement(f"SELECT k, c FROM {name}", fetch_size=7))
    assert {tuple(row) for row in everything} == {(k, c) for k in range(5) for c in range(101)}


@pytest.mark.parametrize("kind", [BatchType.LOGGED, BatchType.UNLOGGED], ids=["logged", "unlogged"])
def test_a_batch_applies_text_and_prepared_statements(spoken, fresh, kind):
    name = fresh("batch")
    spoken.execute(f"CREATE TABLE {name} (k int, c int, v text, PRIMARY KEY (k, c))")
    insert = spoken.prepare(f"INSERT INTO {name} (k, c, v) VALUES (?, ?, ?)")
    spoken.execute(insert, (1, 9, "to go"))
    batch = BatchStatement(batch_type=kind, consistency_level=ConsistencyLevel.ONE)
    batch.add(insert, (1, 1, "prepared"))
    batch.add(SimpleStatement(f"INSERT INTO {name} (k, c, v) VALUES (%s, %s, %s)"), (2, 1, "text"))
    batch.add(f"DELETE FROM {name} WHERE k = 1 AND c = 9")
    spoken.execute(batch)
    assert sorted(map(tuple, spoken.execute(f"SELECT k, c, v FROM {name}"))) == [(1, 1, "prepared"), (2, 1, "text")]


def test_counters_count(spoken, fresh):
    name = fresh("counts")
    spoken.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, hits counter)")
    add = spoken.prepare(f"UPDATE {name} SET hits = hits + ? WHERE k = ?")
    for amount in (1, 10, -3):
        spoken.execute(add, (amount, 1))
    batch = BatchStatement(batch_type=BatchType.COUNTER)
    batch.add(add, (100, 1))
    spoken.execute(batch)
    assert spoken.execute(f"SELECT hits FROM {name} WHERE k = 1").one().hits == 108


def test_a_value_larger_than_a_segment_comes_back_whole(spoken, fresh):
    name = fresh("large")
    spoken.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v blob)")
    insert = spoken.prepare(f"INSERT INTO {name} (k, v) VALUES (?, ?)")
    value = bytes(range(256)) * 4096
    spoken.execute(insert, (1, value))
    assert spoken.execute(f"SELECT v FROM {name} WHERE k = 1").one().v == value


def test_many_requests_in_flight_get_their_own_answers(spoken, fresh):
    name = fresh("flight")
    spoken.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v text)")
    insert = spoken.prepare(f"INSERT INTO {name} (k, v) VALUES (?, ?)")
    select = spoken.prepare(f"SELECT v FROM {name} WHERE k = ?")
    for future in [spoken.execute_async(insert, (k, str(k))) for k in range(1000)]:
        future.result()
    futures = [(k, spoken.execute_async(select, (k,))) for k in range(1000)]
    assert all(future.result().one().v == str(k) for k, future in futures)


def test_errors_have_their_codes_and_say_what_is_wrong(spoken, fresh):
    name = fresh("errors")
    spoken.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v int)")
    with pytest.raises(SyntaxException, match="line 1:"):
        spoken.execute("SELEKT * FROM nowhere")
    with pytest.raises(InvalidRequest, match="no_such_table"):
        spoken.execute("SELECT * FROM no_such_table")
    with pytest.raises(InvalidRequest, match="nope"):
        spoken.execute(f"SELECT nope FROM {name}")
    with pytest.raises(InvalidRequest, match="ALLOW FILTERING"):
        spoken.execute(f"SELECT * FROM {name} WHERE v = 1")
    with pytest.raises(InvalidRequest):
        spoken.execute(f"INSERT INTO {name} (k, v) VALUES (1, 'text')")
    with pytest.raises(AlreadyExists) as caught:
        spoken.execute(f"CREATE TABLE {name} (k int PRIMARY KEY)")
    assert (caught.value.keyspace, caught.value.table) == (spoken.keyspace, name)


def test_a_statement_that_the_server_does_not_know_is_prepared_again(spoken, fresh):
    name = fresh("again")
    spoken.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v int)")
    insert = spoken.prepare(f"INSERT INTO {name} (k, v) VALUES (?, ?)")
    spoken.execute(f"DROP TABLE {name}")
    spoken.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v int)")
    spoken.execute(insert, (1, 2))
    assert spoken.execute(f"SELECT v FROM {name}").one().v == 2


def test_a_prepared_star_sees_a_new_column(spoken, fresh, dialect):
    name = fresh("star")
    spoken.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, a int)")
    spoken.execute(f"INSERT INTO {name} (k, a) VALUES (1, 2)")
    select = spoken.prepare(f"SELECT * FROM {name} WHERE k = ?")
    assert spoken.execute(select, (1,)).one()._fields == ("k", "a")
    spoken.execute(f"ALTER TABLE {name} ADD b int")
    spoken.execute(f"UPDATE {name} SET b = 3 WHERE k = 1")
    before = select.result_metadata_id
    assert spoken.execute(select, (1,)).one()._asdict() == {"k": 1, "a": 2, "b": 3}
    # The driver has stored the new columns.
    assert [column[2] for column in select.result_metadata] == ["k", "a", "b"]
    if dialect.version >= 5:
        assert select.result_metadata_id != before


def test_a_statement_of_a_dropped_table_says_what_is_wrong(spoken, fresh):
    name = fresh("gone")
    spoken.execute(f"CREATE TABLE {name} (k int PRIMARY KEY)")
    select = spoken.prepare(f"SELECT * FROM {name} WHERE k = ?")
    spoken.execute(f"DROP TABLE {name}")
    with pytest.raises(InvalidRequest, match="does not exist"):
        spoken.execute(select, (1,))


def test_a_page_that_is_full_at_the_end_is_followed_by_an_empty_one(spoken, fresh):
    name = fresh("full")
    spoken.execute(f"CREATE TABLE {name} (k int, c int, PRIMARY KEY (k, c))")
    for c in range(4):
        spoken.execute(f"INSERT INTO {name} (k, c) VALUES (1, {c})")
    result = spoken.execute(SimpleStatement(f"SELECT c FROM {name} WHERE k = 1", fetch_size=2))
    pages = [len(result.current_rows)]
    while result.has_more_pages:
        result.fetch_next_page()
        pages.append(len(result.current_rows))
    assert pages == [2, 2, 0]
    assert len(list(spoken.execute(SimpleStatement(f"SELECT c FROM {name} WHERE k = 1", fetch_size=2)))) == 4


def test_timestamps_and_ttls_of_the_client_are_kept(spoken, fresh):
    name = fresh("times")
    spoken.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v int)")
    insert = spoken.prepare(f"INSERT INTO {name} (k, v) VALUES (?, ?) USING TIMESTAMP ? AND TTL ?")
    spoken.execute(insert, (1, 2, 1234567, 3600))
    row = spoken.execute(f"SELECT WRITETIME(v) AS written, TTL(v) AS ttl FROM {name}").one()
    assert row.written == 1234567 and 3500 < row.ttl <= 3600
    spoken.execute(f"UPDATE {name} USING TIMESTAMP 1234566 SET v = 3 WHERE k = 1")
    assert spoken.execute(f"SELECT v FROM {name}").one().v == 2


def test_tracing_and_custom_payloads_do_not_disturb(spoken, dialect):
    future = spoken.execute_async("SELECT key FROM system.local", trace=True)
    assert future.result().one().key == "local"
    if dialect.version >= 4:
        future = spoken.execute_async("SELECT key FROM system.local", custom_payload={"app": b"smoke"})
        assert future.result().one().key == "local"


def test_ids_from_the_server_are_ids(spoken):
    row = spoken.execute("SELECT uuid() AS random, now() AS time FROM system.local").one()
    assert isinstance(row.random, uuid.UUID) and row.random.version == 4
    assert row.time.version == 1
