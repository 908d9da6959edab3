"""Every CQL type written and read, as a bound value and as a literal, in every version of the protocol."""

import collections
import datetime
import decimal
import ipaddress
import uuid

import pytest
from cassandra.util import Date, Duration, OrderedMapSerializedKey, SortedSet, Time

from conftest import Dialect, connect, create_keyspace

UUID = uuid.UUID("123e4567-e89b-42d3-a456-426614174000")
TIME_UUID = uuid.UUID("50554d6e-29bb-11e5-b345-feff819cdc9f")
Address = collections.namedtuple("Address", "street zip phones")

# Type, value, and the same value as a literal.
SIMPLE = [
    ("ascii", "plain", "'plain'"),
    ("bigint", -(2**63), "-9223372036854775808"),
    ("blob", b"\x00\xff", "0x00ff"),
    ("boolean", True, "true"),
    ("date", Date("2026-11-21"), "'2026-11-21'"),
    ("decimal", decimal.Decimal("-12345678901234567890.123456789"), "-12345678901234567890.123456789"),
    ("double", 1.5e300, "1.5e300"),
    ("duration", Duration(14, 3, 4_000_000_005), "1y2mo3d4s5ns"),
    ("float", -0.5, "-0.5"),
    ("inet", "192.168.0.1", "'192.168.0.1'"),
    ("inet", "2001:db8::1", "'2001:db8::1'"),
    ("int", 2**31 - 1, "2147483647"),
    ("smallint", -(2**15), "-32768"),
    ("text", "Zürich 東京 \U0001f600 it's", "'Zürich 東京 \U0001f600 it''s'"),
    ("time", Time("13:30:54.234567891"), "'13:30:54.234567891'"),
    ("timestamp", datetime.datetime(2026, 11, 21, 11, 0, 0, 123000), "'2026-11-21T11:00:00.123Z'"),
    ("timeuuid", TIME_UUID, str(TIME_UUID)),
    ("tinyint", -128, "-128"),
    ("uuid", UUID, str(UUID)),
    ("varchar", "", "''"),
    ("varint", 10**40, "1" + "0" * 40),
]

COMPLEX = [
    ("list<int>", [3, 1, 3], "[3, 1, 3]"),
    ("set<text>", {"b", "a"}, "{'b', 'a'}"),
    ("map<text, int>", {"two": 2, "one": 1}, "{'two': 2, 'one': 1}"),
    ("frozen<list<int>>", [1, 2], "[1, 2]"),
    ("frozen<set<int>>", {1, 2}, "{1, 2}"),
    ("frozen<map<int, frozen<list<text>>>>", {1: ["a", "b"]}, "{1: ['a', 'b']}"),
    ("list<frozen<tuple<int, text>>>", [(1, "a"), (2, None)], "[(1, 'a'), (2, null)]"),
    ("tuple<int, text, double>", (1, "a", 2.5), "(1, 'a', 2.5)"),
    ("vector<float, 3>", [0.5, -1.0, 2.0], "[0.5, -1.0, 2.0]"),
    ("vector<text, 2>", ["a", "bc"], "['a', 'bc']"),
    ("address", Address("Main", 12345, {"a"}), "{street: 'Main', zip: 12345, phones: {'a'}}"),
    ("list<frozen<address>>", [Address("Main", None, None)], "[{street: 'Main', zip: null, phones: null}]"),
]


@pytest.fixture(scope="module", params=[3, 4, 5], ids=lambda version: f"v{version}")
def typed(node, request):
    cluster = connect(node, Dialect(request.param, None))
    session = cluster.connect()
    keyspace = create_keyspace(session)
    session.set_keyspace(keyspace)
    session.execute("CREATE TYPE address (street text, zip int, phones frozen<set<text>>)")
    cluster.register_user_type(keyspace, "address", Address)
    yield session
    session.execute(f"DROP KEYSPACE {keyspace}")
    cluster.shutdown()


def plain(value):
    """The containers of the driver as those of Python."""
    if isinstance(value, (SortedSet, set, frozenset)):
        return {plain(item) for item in value}
    if isinstance(value, (OrderedMapSerializedKey, dict)):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [plain(item) for item in value]
    if isinstance(value, tuple):
        return tuple(plain(item) for item in value)
    if isinstance(value, (ipaddress.IPv4Address, ipaddress.IPv6Address)):
        return str(value)
    return value


def names(rows):
    """The same in every process; a set of Python is printed in any order."""
    return [f"{cql_type} {literal[:40]}" for cql_type, _, literal in rows]


@pytest.mark.parametrize("cql_type, value, literal", SIMPLE + COMPLEX, ids=names(SIMPLE + COMPLEX))
def test_a_value_is_the_same_bound_or_as_a_literal(typed, fresh, cql_type, value, literal):
    name = fresh("one")
    typed.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v {cql_type})")
    typed.execute(typed.prepare(f"INSERT INTO {name} (k, v) VALUES (1, ?)"), (value,))
    typed.execute(f"INSERT INTO {name} (k, v) VALUES (2, {literal})")
    typed.execute(typed.prepare(f"INSERT INTO {name} (k, v) VALUES (3, ?)"), (None,))
    select = typed.prepare(f"SELECT v FROM {name} WHERE k = ?")
    bound, written, null = (plain(typed.execute(select, (k,)).one().v) for k in (1, 2, 3))
    assert bound == plain(value)
    assert written == plain(value)
    assert not null
    typed.execute(f"DROP TABLE {name}")


KEY_TYPES = [row for row in SIMPLE if row[0] != "duration" and row[1] != ""]


@pytest.mark.parametrize("cql_type, value, literal", KEY_TYPES, ids=names(KEY_TYPES))
def test_a_value_can_be_a_key(typed, fresh, cql_type, value, literal):
    name = fresh("key")
    typed.execute(f"CREATE TABLE {name} (k {cql_type}, c {cql_type}, v int, PRIMARY KEY (k, c))")
    typed.execute(typed.prepare(f"INSERT INTO {name} (k, c, v) VALUES (?, ?, 7)"), (value, value))
    row = typed.execute(f"SELECT k, c, v FROM {name} WHERE k = {literal} AND c = {literal}").one()
    assert (plain(row.k), plain(row.c), row.v) == (plain(value), plain(value), 7)
    typed.execute(f"DROP TABLE {name}")


def test_elements_of_collections_are_changed_alone(typed, fresh):
    name = fresh("elements")
    typed.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, l list<int>, s set<text>, m map<text, int>, a address)")
    typed.execute(
        f"INSERT INTO {name} (k, l, s, m, a) VALUES (1, [1, 2, 3], {{'a', 'b'}}, {{'x': 1, 'y': 2}}, {{street: 'S', zip: 1}})"
    )
    typed.execute(f"UPDATE {name} SET l[1] = 9, s = s + {{'c'}}, m['x'] = 5, a.zip = 2 WHERE k = 1")
    typed.execute(f"UPDATE {name} SET l = [0] + l, s = s - {{'a'}}, m = m - {{'y'}} WHERE k = 1")
    typed.execute(f"UPDATE {name} SET l = l + [4] WHERE k = 1")
    typed.execute(f"DELETE l[3] FROM {name} WHERE k = 1")
    row = typed.execute(f"SELECT l, s, m, a FROM {name}").one()
    assert plain(row.l) == [0, 1, 9, 4]
    assert plain(row.s) == {"b", "c"}
    assert plain(row.m) == {"x": 5}
    assert row.a == Address("S", 2, None)
