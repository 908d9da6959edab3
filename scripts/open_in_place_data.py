"""Data for open-in-place.sh in addition to the tables of check_sstables_data: schema objects of every kind.

A kind has statements for Cassandra, statements for Ilion once it has the directory, and queries for both. All answers must be the
same on both sides."""

KEYSPACE = "kinds"


class Kind:
    """Statements by Cassandra, statements by Ilion, and queries."""

    def __init__(self, name, before, queries, during=(), after=(), gone=(), unshared=(), theirs=()):
        self.name = name
        self.before = before
        self.queries = queries
        self.during = during
        # Queries that are possible only after the statements by Ilion, and queries that are no longer possible then.
        self.after = after
        self.gone = gone
        # Statements for Ilion in a language that Cassandra does not have: it must still start.
        self.unshared = unshared
        # Queries for Cassandra only.
        self.theirs = theirs

    def before_ilion(self):
        return self.queries

    def after_ilion(self):
        return [query for query in [*self.queries, *self.after] if query not in self.gone]


def rows(template, numbers):
    return [template.format(n=n, m=n % 3, sq=n * n) for n in numbers]


UDT = Kind(
    "types",
    [
        "CREATE TYPE inner (a int, b text)",
        "CREATE TYPE outer (i frozen<inner>, l frozen<list<int>>)",
        "ALTER TYPE inner ADD c uuid",
        "CREATE TABLE u (k int PRIMARY KEY, f frozen<outer>, n inner, m map<text, frozen<inner>>, "
        "t tuple<int, frozen<inner>>)",
        "INSERT INTO u (k, f, n, m, t) VALUES (1, {i: {a: 1, b: 'x'}, l: [1, 2]}, {a: 2, b: 'y'}, {'m': {a: 3}}, (4, {b: 'z'}))",
        "UPDATE u SET n.b = 'changed' WHERE k = 1",
    ],
    ["SELECT * FROM u"],
    [
        "ALTER TYPE inner RENAME b TO bb",
        "ALTER TYPE inner ADD d int",
        "INSERT INTO u (k, n) VALUES (2, {a: 5, bb: 'Ilion', d: 6})",
        "CREATE TYPE later (o frozen<outer>)",
        "CREATE TABLE of_later (k int PRIMARY KEY, v frozen<later>)",
        "INSERT INTO of_later (k, v) VALUES (1, {o: {l: [7]}})",
    ],
    after=["SELECT * FROM of_later"],
)

INDEX = Kind(
    "indexes",
    [
        "CREATE TABLE i (k int, c int, v int, s set<text>, m map<text, int>, f frozen<list<int>>, PRIMARY KEY (k, c))",
        "CREATE INDEX i_v ON i (v)",
        "CREATE INDEX i_c ON i (c)",
        "CREATE INDEX i_s ON i (s)",
        "CREATE INDEX i_m ON i (KEYS(m))",
        "CREATE INDEX i_e ON i (ENTRIES(m))",
        "CREATE INDEX i_f ON i (FULL(f))",
        *rows("INSERT INTO i (k, c, v, s, m, f) VALUES ({n}, {m}, {m}, {{'s{m}'}}, {{'k{m}': {n}}}, [{m}])", range(30)),
        "UPDATE i SET v = 77 WHERE k = 3 AND c = 0",
        "DELETE FROM i WHERE k = 6",
    ],
    [
        *(f"SELECT k, c, v FROM i WHERE v = {v}" for v in (0, 1, 2, 77, 78)),
        "SELECT k FROM i WHERE c = 2",
        "SELECT k FROM i WHERE s CONTAINS 's1'",
        "SELECT k FROM i WHERE m CONTAINS KEY 'k2'",
        "SELECT k FROM i WHERE m['k1'] = 4",
        "SELECT k FROM i WHERE f = [1]",
    ],
    [
        "UPDATE i SET v = 78 WHERE k = 9 AND c = 0",
        "UPDATE i SET s = s + {'s1'}, m['k2'] = 8 WHERE k = 12 AND c = 0",
        "DELETE v FROM i WHERE k = 4 AND c = 1",
        "DELETE FROM i WHERE k = 7",
        "INSERT INTO i (k, c, v, f) VALUES (100, 2, 1, [1])",
        "DROP INDEX i_e",
        "CREATE TABLE i2 (k int PRIMARY KEY, v int)",
        *rows("INSERT INTO i2 (k, v) VALUES ({n}, {m})", range(20)),
        "CREATE INDEX i2_v ON i2 (v)",
    ],
    after=["SELECT k FROM i2 WHERE v = 1"],
    gone=["SELECT k FROM i WHERE m['k1'] = 4"],
)

VIEW = Kind(
    "views",
    [
        "CREATE TABLE b (k int, c int, v int, w text, PRIMARY KEY (k, c))",
        *rows("INSERT INTO b (k, c, v, w) VALUES ({n}, {m}, {m}, 'w{n}')", range(12)),
        "CREATE MATERIALIZED VIEW b_by_v AS SELECT * FROM b WHERE v IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL "
        "PRIMARY KEY (v, k, c)",
        "CREATE MATERIALIZED VIEW b_part AS SELECT k, c, w FROM b WHERE k > 3 AND c IS NOT NULL AND k IS NOT NULL "
        "PRIMARY KEY ((c), k) WITH CLUSTERING ORDER BY (k DESC) AND comment = 'some of it'",
        *rows("INSERT INTO b (k, c, v, w) VALUES ({n}, {m}, {m}, 'w{n}')", range(12, 24)),
        "UPDATE b SET v = 9 WHERE k = 1 AND c = 1",
        "DELETE FROM b WHERE k = 2",
        "UPDATE b SET v = null WHERE k = 3 AND c = 0",
    ],
    ["SELECT * FROM b", "SELECT * FROM b_by_v", "SELECT * FROM b_part", "SELECT k, c, w FROM b_by_v WHERE v = 9"],
    [
        "UPDATE b SET v = 9, w = 'Ilion' WHERE k = 4 AND c = 1",
        "DELETE FROM b WHERE k = 5 AND c = 2",
        "INSERT INTO b (k, c, v, w) VALUES (200, 1, 9, 'new')",
        "UPDATE b SET v = 8 WHERE k = 1 AND c = 1",
        "CREATE MATERIALIZED VIEW b_by_w AS SELECT k, c, w FROM b WHERE w IS NOT NULL AND k IS NOT NULL AND c IS NOT NULL "
        "PRIMARY KEY (w, k, c)",
    ],
    after=["SELECT * FROM b_by_w"],
)

EXPIRY = Kind(
    "expiry",
    [
        "CREATE TABLE e (k int, c int, v int, s int STATIC, PRIMARY KEY (k, c)) WITH default_time_to_live = 8640000",
        *rows("INSERT INTO e (k, c, v) VALUES (1, {n}, {sq})", range(5)),
        "INSERT INTO e (k, c, v) VALUES (1, 10, 1) USING TTL 1",
        "UPDATE e USING TTL 0 SET v = 11, s = 3 WHERE k = 1 AND c = 11",
        "DELETE FROM e WHERE k = 1 AND c >= 2 AND c < 4",
    ],
    ["SELECT k, c, v, s, writetime(v) FROM e"],
    ["INSERT INTO e (k, c, v) VALUES (2, 1, 1)", "DELETE FROM e WHERE k = 1 AND c = 0"],
)

CHANGED = Kind(
    "changed tables",
    [
        "CREATE TABLE a (k int PRIMARY KEY, x int, y text, z int, l list<int>)",
        *rows("INSERT INTO a (k, x, y, z, l) VALUES ({n}, {sq}, 'y{n}', {n}, [{n}, {m}])", range(10)),
        "ALTER TABLE a DROP x",
        "ALTER TABLE a ADD w int",
        "ALTER TABLE a ADD x int",
        "INSERT INTO a (k, x, w) VALUES (20, 1, 2)",
        "CREATE TABLE short_lived (k int PRIMARY KEY, v int)",
        "INSERT INTO short_lived (k, v) VALUES (1, 1)",
        "CREATE TABLE emptied (k int PRIMARY KEY, v int)",
        "INSERT INTO emptied (k, v) VALUES (1, 1)",
    ],
    ["SELECT * FROM a", "SELECT * FROM emptied"],
    [
        "ALTER TABLE a DROP l",
        "ALTER TABLE a ADD n map<int, int>",
        "ALTER TABLE a DROP z",
        "INSERT INTO a (k, n, y) VALUES (30, {1: 2}, 'y30')",
        "ALTER TABLE a WITH comment = 'by Ilion' AND gc_grace_seconds = 1000",
        "DROP TABLE short_lived",
        "CREATE TABLE short_lived (k text PRIMARY KEY, v text)",
        "INSERT INTO short_lived (k, v) VALUES ('a', 'b')",
        "TRUNCATE emptied",
        "INSERT INTO emptied (k, v) VALUES (2, 2)",
    ],
    after=["SELECT * FROM short_lived"],
)

OPTIONS = Kind(
    "options",
    [
        "CREATE TABLE o1 (k int PRIMARY KEY, v text) WITH compression = {'class': 'ZstdCompressor', 'compression_level': '5'} "
        "AND compaction = {'class': 'LeveledCompactionStrategy', 'sstable_size_in_mb': '10'} AND comment = 'it''s'",
        "CREATE TABLE o2 (k int PRIMARY KEY, v text) WITH caching = {'keys': 'NONE', 'rows_per_partition': '10'} "
        "AND speculative_retry = '50p' AND bloom_filter_fp_chance = 0.2 AND min_index_interval = 64 "
        "AND compaction = {'class': 'TimeWindowCompactionStrategy', 'compaction_window_size': '2'}",
        'CREATE TABLE "Quoted" ("K" int PRIMARY KEY, "a b" text)',
        *(f"INSERT INTO {name} (k, v) VALUES ({k}, 'v')" for name in ("o1", "o2") for k in range(5)),
        'INSERT INTO "Quoted" ("K", "a b") VALUES (1, \'x\')',
    ],
    ["SELECT * FROM o1", "SELECT * FROM o2", 'SELECT * FROM "Quoted"'],
    [
        "INSERT INTO o1 (k, v) VALUES (100, 'Ilion')",
        'INSERT INTO "Quoted" ("K", "a b") VALUES (2, \'y\')',
        "CREATE TABLE o3 (k int PRIMARY KEY, v text)",
        "INSERT INTO o3 (k, v) VALUES (1, 'in a table of Ilion')",
        "CREATE KEYSPACE \"Other\" WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1} "
        "AND durable_writes = false",
        'CREATE TABLE "Other".t (k int PRIMARY KEY, n counter)',
        'UPDATE "Other".t SET n = n + 5 WHERE k = 1',
    ],
    after=["SELECT * FROM o3", 'SELECT * FROM "Other".t'],
)

COMPACT = Kind(
    "compact storage",
    [
        "CREATE TABLE cs1 (k int PRIMARY KEY, a text, b int) WITH COMPACT STORAGE",
        "CREATE TABLE cs2 (k int, c int, v text, PRIMARY KEY (k, c)) WITH COMPACT STORAGE",
        "CREATE TABLE cs3 (k int, c int, d int, PRIMARY KEY (k, c, d)) WITH COMPACT STORAGE",
        "CREATE TABLE cs4 (k int PRIMARY KEY, n counter) WITH COMPACT STORAGE",
        *rows("INSERT INTO cs1 (k, a, b) VALUES ({n}, 'a{n}', {sq})", range(5)),
        *rows("INSERT INTO cs2 (k, c, v) VALUES ({m}, {n}, 'v{n}')", range(9)),
        *rows("INSERT INTO cs3 (k, c, d) VALUES ({m}, {n}, {sq})", range(9)),
        "UPDATE cs4 SET n = n + 2 WHERE k = 1",
        "DELETE FROM cs2 WHERE k = 1 AND c = 4",
        "DELETE b FROM cs1 WHERE k = 3",
    ],
    [f"SELECT * FROM cs{n}" for n in (1, 2, 3, 4)],
    [
        "INSERT INTO cs1 (k, a) VALUES (10, 'Ilion')",
        "INSERT INTO cs2 (k, c, v) VALUES (1, 4, 'again')",
        "INSERT INTO cs3 (k, c, d) VALUES (10, 1, 1)",
        "UPDATE cs4 SET n = n + 3 WHERE k = 1",
        "DELETE FROM cs3 WHERE k = 0",
    ],
)

FUNCTIONS = Kind(
    "functions",
    [
        "CREATE FUNCTION twice (n int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE java AS 'return 2 * n;'",
        "CREATE FUNCTION plus (a int, b int) CALLED ON NULL INPUT RETURNS int LANGUAGE java AS 'return a + (b == null ? 0 : b);'",
        "CREATE AGGREGATE total (int) SFUNC plus STYPE int INITCOND 0",
    ],
    [
        "SELECT function_name, argument_names, body, language FROM system_schema.functions WHERE keyspace_name = 'kinds'",
        "SELECT aggregate_name, argument_types, initcond FROM system_schema.aggregates WHERE keyspace_name = 'kinds'",
    ],
    unshared=[
        "CREATE FUNCTION in_lua (n int) RETURNS NULL ON NULL INPUT RETURNS int LANGUAGE lua AS 'return n + 1'",
    ],
    theirs=["SELECT twice(k), k FROM a", "SELECT total(k) FROM a"],
)

KINDS = [UDT, INDEX, VIEW, EXPIRY, CHANGED, OPTIONS, COMPACT, FUNCTIONS]


def create_keyspace():
    return f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"


# Cassandra's settings: views, functions, roles.
SETTINGS = """
enable_user_defined_functions: true
authenticator: PasswordAuthenticator
authorizer: CassandraAuthorizer
role_manager: CassandraRoleManager
"""

ROLES = [
    "CREATE ROLE staff",
    "CREATE ROLE alice WITH PASSWORD = 'secret' AND LOGIN = true",
    "GRANT staff TO alice",
    f"GRANT SELECT ON KEYSPACE {KEYSPACE} TO staff",
    "CREATE ROLE boss WITH PASSWORD = 'b' AND LOGIN = true AND SUPERUSER = true",
]
# How Ilion is started on the directory, and what it changes.
SETTINGS_OF_ILION = ("authenticator=PasswordAuthenticator", "authorizer=CassandraAuthorizer")
ROLE_OF_ILION = ("carol", "of Ilion")
ROLES_OF_ILION = [
    "CREATE ROLE carol WITH PASSWORD = 'of Ilion' AND LOGIN = true",
    "CREATE ROLE crew",
    "GRANT staff TO crew",
    "GRANT crew TO carol",
    f"GRANT MODIFY ON {KEYSPACE}.a TO crew",
    f"GRANT MODIFY ON KEYSPACE {KEYSPACE} TO crew",
    f"REVOKE MODIFY ON KEYSPACE {KEYSPACE} FROM crew",
    "ALTER ROLE boss WITH SUPERUSER = false AND PASSWORD = 'none'",
    "DROP ROLE boss",
]
ROLE_TABLES = ["roles", "role_members", "role_permissions", "resource_role_permissons_index"]

# Statements that Ilion refuses in the directory of a Cassandra 4.x, with a message that says why.
REFUSED_BY_4 = [
    "CREATE TABLE refused (k int PRIMARY KEY, v vector<float, 2>)",
    "CREATE TABLE refused (k int PRIMARY KEY) WITH compaction = {'class': 'UnifiedCompactionStrategy'}",
    "CREATE TABLE refused (k int PRIMARY KEY) WITH allow_auto_snapshot = false",
    "ALTER TABLE a WITH incremental_backups = false",
    "ALTER TABLE a ADD v vector<float, 2>",
    "CREATE TYPE refused (v frozen<vector<float, 2>>)",
    "CREATE INDEX ON a (y) USING 'sai'",
]

# Lines in Cassandra's log about the settings and statements above.
EXPECTED_IN_LOG = [
    r"WARN .*\[enable_user_defined_functions\] parameters have been deprecated",
    r"WARN .*Max sstable size of 10MB is configured for o1\.o1",
    r"WARN .*Aggregation query used without partition key",
    r"ERROR .*Cannot load function 'kinds\.in_lua' from schema",
]
