"""Tables and statements for check-sstables.sh: everything that a file format has to encode, with fixed timestamps."""

import itertools

KEYSPACE = "checked"


class Table:
    """A table, the statements that fill it, and how it is read."""

    def __init__(self, name, columns, fill, options="", select="*", is_counter=False):
        self.name = name
        self.columns = columns
        self.fill = fill
        self.options = options
        self.selected = select
        self.is_counter = is_counter

    def create(self):
        return f"CREATE TABLE {KEYSPACE}.{self.name} ({self.columns}) {self.options}"

    def select(self):
        return f"SELECT {self.selected} FROM {KEYSPACE}.{self.name}"

    def statements(self):
        # Both servers get the same timestamps.
        clock = itertools.count(1_700_000_000_000_000, 1000)
        for statement in self.fill():
            yield statement.replace("{t}", f"{KEYSPACE}.{self.name}").replace("{ts}", str(next(clock)))


def schema():
    yield f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
    yield f"CREATE TYPE {KEYSPACE}.address (street text, zip int)"
    for table in TABLES:
        yield table.create()


def simple():
    for k in range(100):
        yield f"INSERT INTO {{t}} (k, a, b) VALUES ({k}, 'a{k}', {k * k}) USING TIMESTAMP {{ts}}"
    for k in range(0, 100, 7):
        yield f"DELETE a FROM {{t}} USING TIMESTAMP {{ts}} WHERE k = {k}"
    for k in range(0, 100, 11):
        yield f"DELETE FROM {{t}} USING TIMESTAMP {{ts}} WHERE k = {k}"
    yield "UPDATE {t} USING TIMESTAMP {ts} SET a = 'no liveness' WHERE k = 1000"
    yield "INSERT INTO {t} (k) VALUES (1001) USING TIMESTAMP {ts}"
    yield "INSERT INTO {t} (k, a) VALUES (1002, 'dies later') USING TIMESTAMP {ts} AND TTL 864000"


VECTOR = "v vector<float, 3>, "
TYPES = (
    "k int PRIMARY KEY, a ascii, b bigint, c blob, d boolean, e date, f decimal, g double, h duration, i float, j inet, "
    "l smallint, m text, n time, o timestamp, p timeuuid, q tinyint, r uuid, s varint, t tuple<int, text>, "
    "u frozen<map<int, text>>, v vector<float, 3>, w frozen<address>"
)


def types():
    yield (
        "INSERT INTO {t} (k, a, b, c, d, e, f, g, h, i, j, l, m, n, o, p, q, r, s, t, u, v, w) VALUES (1, 'plain', -5, "
        "0xcafe, true, '2026-11-21', -12.345, 1.5e300, 1y2mo3d4s5ns, -0.5, '2001:db8::1', -300, 'Zürich', "
        "'13:30:54.234567891', '2026-11-21T11:00:00.123Z', 50554d6e-29bb-11e5-b345-feff819cdc9f, -128, "
        "123e4567-e89b-42d3-a456-426614174000, 100000000000000000000000000000000000000000, (1, 'a'), {1: 'one'}, "
        "[0.5, -1, 2], {street: 'Main', zip: 12345}) USING TIMESTAMP {ts}"
    )
    yield "INSERT INTO {t} (k, m, c) VALUES (2, '', 0x) USING TIMESTAMP {ts}"


def clustered():
    for k, c, d in itertools.product(range(5), range(30), ("x", "y", "z")):
        yield f"INSERT INTO {{t}} (k, c, d, v) VALUES ({k}, {c}, '{d}', 'v{k}/{c}/{d}') USING TIMESTAMP {{ts}}"
    for k in range(4):
        yield f"UPDATE {{t}} USING TIMESTAMP {{ts}} SET s = 'static {k}' WHERE k = {k}"
    yield "DELETE FROM {t} USING TIMESTAMP {ts} WHERE k = 0 AND c > 5 AND c <= 9"
    yield "DELETE FROM {t} USING TIMESTAMP {ts} WHERE k = 0 AND c = 7 AND d >= 'y'"
    yield "INSERT INTO {t} (k, c, d, v) VALUES (0, 8, 'x', 'after the range') USING TIMESTAMP {ts}"
    yield "DELETE FROM {t} USING TIMESTAMP {ts} WHERE k = 1 AND c < 3"
    yield "DELETE FROM {t} USING TIMESTAMP {ts} WHERE k = 1 AND c >= 3 AND c < 5"
    yield "DELETE FROM {t} USING TIMESTAMP {ts} WHERE k = 2 AND c = 4 AND d = 'x'"
    yield "DELETE FROM {t} USING TIMESTAMP {ts} WHERE k = 3"
    yield "INSERT INTO {t} (k, c, d, v) VALUES (3, 1, 'x', 'after the partition') USING TIMESTAMP {ts}"
    yield "DELETE s FROM {t} USING TIMESTAMP {ts} WHERE k = 2"
    yield "INSERT INTO {t} (k, s) VALUES (9, 'only static') USING TIMESTAMP {ts}"


def wide():
    # Larger than column_index_size, so the partition gets an index of its rows.
    for c in range(1500):
        yield f"INSERT INTO {{t}} (k, c, v) VALUES (1, {c}, '{'long value ' * 5}{c}') USING TIMESTAMP {{ts}}"
    yield "DELETE FROM {t} USING TIMESTAMP {ts} WHERE k = 1 AND c > 200 AND c < 1200"
    for c in range(500, 600):
        yield f"INSERT INTO {{t}} (k, c, v) VALUES (1, {c}, 'again') USING TIMESTAMP {{ts}}"


def collections():
    yield "INSERT INTO {t} (k, l, s, m, a) VALUES (1, [3, 1, 3], {'b', 'a'}, {'x': 1, 'y': 2}, {street: 'S', zip: 1}) USING TIMESTAMP {ts}"
    yield "UPDATE {t} USING TIMESTAMP {ts} SET s = s + {'c'}, m['z'] = 3, a.zip = 2 WHERE k = 1"
    yield "UPDATE {t} USING TIMESTAMP {ts} SET s = s - {'a'}, m = m - {'x'} WHERE k = 1"
    yield "UPDATE {t} USING TIMESTAMP {ts} SET l = l + [4] WHERE k = 1"
    yield "UPDATE {t} USING TIMESTAMP {ts} SET s = {'new'} WHERE k = 2"
    yield "UPDATE {t} USING TIMESTAMP {ts} AND TTL 864000 SET m = m + {'t': 9} WHERE k = 2"
    yield "DELETE m FROM {t} USING TIMESTAMP {ts} WHERE k = 3"
    yield "UPDATE {t} USING TIMESTAMP {ts} SET f = {1, 2} WHERE k = 4"


def counters():
    for k, amount in ((1, 5), (1, -2), (2, 7)):
        yield f"UPDATE {{t}} SET n = n + {amount} WHERE k = {k}"


def compressed():
    for k in range(300):
        yield f"INSERT INTO {{t}} (k, v) VALUES ({k}, '{'text that compresses ' * 20}{k}') USING TIMESTAMP {{ts}}"


def large():
    # Large enough for the cell map, so Cells.db is written.
    def value(number, size=9000):
        return (f"{number:x}-" * size)[:size]

    for c in range(4):
        columns = ", ".join(f"v{number}" for number in range(8))
        values = ", ".join(f"'{value(c * 8 + number)}'" for number in range(8))
        yield f"INSERT INTO {{t}} (k, c, n, {columns}) VALUES (1, {c}, {c}, {values}) USING TIMESTAMP {{ts}}"
    yield f"UPDATE {{t}} USING TIMESTAMP {{ts}} SET s = '{value(99, 70000)}' WHERE k = 1"
    yield "UPDATE {t} USING TIMESTAMP {ts} SET n = 7 WHERE k = 1 AND c = 2"
    yield "DELETE v3 FROM {t} USING TIMESTAMP {ts} WHERE k = 1 AND c = 2"
    yield "DELETE FROM {t} USING TIMESTAMP {ts} WHERE k = 1 AND c > 2 AND c < 3"
    for number in range(12):
        yield f"UPDATE {{t}} USING TIMESTAMP {{ts}} AND TTL 864000 SET m['key {number}'] = '{value(number)}' WHERE k = 2 AND c = 1"


def queue():
    # The oldest entries are deleted one after another, so Deleted.db is written.
    for c in range(300):
        yield f"INSERT INTO {{t}} (k, c, v) VALUES (1, {c}, 'entry {c}') USING TIMESTAMP {{ts}}"
    for c in range(280):
        yield f"DELETE FROM {{t}} USING TIMESTAMP {{ts}} WHERE k = 1 AND c = {c}"


WIDE_COLUMNS = "k int, c int, v text, PRIMARY KEY (k, c)"
ONE_VALUE = "k int PRIMARY KEY, v text"

TABLES = [
    Table("simple", "k int PRIMARY KEY, a text, b int", simple, select="k, a, b, WRITETIME(a), WRITETIME(b)"),
    Table("types", TYPES, types),
    Table("clustered", "k int, c int, d text, s text STATIC, v text, PRIMARY KEY (k, c, d)", clustered,
          "WITH CLUSTERING ORDER BY (c ASC, d DESC)", select="k, c, d, s, v, WRITETIME(v)"),
    Table("reversed", "k int, c int, d text, s text STATIC, v text, PRIMARY KEY (k, c, d)", clustered,
          "WITH CLUSTERING ORDER BY (c DESC, d ASC)"),
    Table("wide", WIDE_COLUMNS, wide),
    Table("queue", WIDE_COLUMNS, queue),
    Table("collections", "k int PRIMARY KEY, l list<int>, s set<text>, m map<text, int>, f frozen<set<int>>, a address",
          collections),
    Table("counters", "k int PRIMARY KEY, n counter", counters, is_counter=True),
    Table("large", "k int, c int, n int, s text STATIC, m map<text, text>, " + ", ".join(f"v{n} text" for n in range(8))
          + ", PRIMARY KEY (k, c)", large, select="k, c, n, s, v3, v6, m['key 7']"),
    Table("plain", ONE_VALUE, compressed, "WITH compression = {'enabled': false}"),
    Table("snappy", ONE_VALUE, compressed, "WITH compression = {'class': 'SnappyCompressor', 'chunk_length_in_kb': 4}"),
    Table("deflate", ONE_VALUE, compressed, "WITH compression = {'class': 'DeflateCompressor'}"),
    Table("zstd", ONE_VALUE, compressed, "WITH compression = {'class': 'ZstdCompressor'}"),
]


def leave_out_vectors():
    """For a Cassandra before 5.0."""
    [types_table] = [table for table in TABLES if table.name == "types"]
    types_table.columns = TYPES.replace(VECTOR, "")
    types_table.fill = lambda: (
        statement.replace(", u, v, w)", ", u, w)").replace("[0.5, -1, 2], ", "") for statement in types()
    )
