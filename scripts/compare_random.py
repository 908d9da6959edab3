"""Random schemas, writes and reads to two servers; every answer must be the same, byte for byte.

    python3 scripts/compare_random.py HOST:PORT HOST:PORT [SEED [STATEMENTS [COMMAND..]]]

One of the servers should be a real Cassandra. Writes have timestamps from a small range, so that they meet older, newer and
equal ones; there are few keys, so that deletions hit rows. After a thousand statements, other tables are made. COMMAND, if
given, is run from time to time: for instance `ilion flush --admin-port 9043`, so that reads merge files. The seed is printed;
the same seed gives the same statements.

REPLICAS=3 in the environment makes keyspaces with three replicas on the second server, and CONSISTENCY=4 reads and writes at QUORUM: for a
cluster beside a single node.
"""

import os
import random
import subprocess
import sys

from compare_answers import FIRST_TIMESTAMP, Server, shown

KEYSPACE = "compared"
# Of the keyspaces of each server; the level of each request, as the protocol numbers it (1 is ONE).
REPLICAS = [1, int(os.environ.get("REPLICAS", "1"))]
CONSISTENCY = int(os.environ.get("CONSISTENCY", "1"))
READ_FAILURE, PROTOCOL_ERROR = "0x1300", "0xa"
FAILURES_IN_GROUPS = (READ_FAILURE, PROTOCOL_ERROR)
TABLES_AT_ONCE, STATEMENTS_FOR_TABLES, DIFFERENCES_MAX = 3, 1000, 20
# Few values of each type, with its smallest and largest.
VALUES = {
    "ascii": ["''", "'a'", "'b'", "'bb'"],
    "bigint": ["-9223372036854775808", "0", "7", "9223372036854775807"],
    "blob": ["0x", "0x00", "0xff00", "0xff"],
    "boolean": ["true", "false"],
    "date": ["'1969-12-31'", "'2024-02-29'", "'2024-03-01'"],
    "decimal": ["0", "-1.5", "1e10", "12345678901234567890.5"],
    "double": ["-1.5", "0.0", "2.25", "1e300"],
    "float": ["-1.5", "0.0", "2.25"],
    "inet": ["'127.0.0.1'", "'::1'", "'10.0.0.7'"],
    "int": ["-5", "0", "1", "2", "300"],
    "smallint": ["-32768", "0", "5"],
    "text": ["''", "'a'", "'b'", "'bb'", "'\u00e9'"],
    "time": ["'00:00:00'", "'12:30:00.000000001'"],
    "timestamp": ["'1969-12-31T23:59:59.999Z'", "'2024-02-29T12:00:00Z'", "0"],
    "timeuuid": ["50554d6e-29bb-11e5-b345-feff819cdc9f", "00000000-0000-1000-8080-808080808080"],
    "tinyint": ["-128", "0", "127"],
    "uuid": ["123e4567-e89b-42d3-a456-426614174000", "00000000-0000-0000-0000-000000000000"],
    "varint": ["0", "-1", "123456789012345678901234567890"],
}
SCALARS = list(VALUES)
NUMBERS = ["bigint", "decimal", "double", "float", "int", "smallint", "tinyint", "varint"]


class Column:
    """A column of a random type."""

    def __init__(self, chance, name, kind):
        self.chance, self.name = chance, name
        self.scalar = chance.choice(SCALARS)
        self.value_type = chance.choice(SCALARS)
        self.form = "scalar"
        if kind == "regular" and chance.random() < 0.5:
            self.form = chance.choice(["set", "list", "map", "udt", "tuple", "frozen"])
        elif kind == "static" and chance.random() < 0.3:
            self.form = chance.choice(["set", "map"])
        elif kind == "clustering" and chance.random() < 0.1:
            self.form = "frozen"

    @property
    def type(self):
        return {
            "scalar": self.scalar,
            "set": f"set<{self.scalar}>",
            "list": f"list<{self.scalar}>",
            "map": f"map<{self.scalar}, {self.value_type}>",
            "udt": "pair",
            "tuple": f"tuple<{self.scalar}, {self.value_type}>",
            "frozen": f"frozen<list<{self.scalar}>>",
        }[self.form]

    def element(self):
        return self.chance.choice(VALUES[self.scalar])

    def entry_value(self):
        return self.chance.choice(VALUES[self.value_type])

    def elements(self):
        return [self.element() for _ in range(self.chance.randrange(4))]

    def literal(self):
        """A value; never null."""
        if self.form == "scalar":
            return self.element()
        if self.form == "set":
            return "{" + ", ".join(sorted(set(self.elements()))) + "}"
        if self.form in ("list", "frozen"):
            return "[" + ", ".join(self.elements()) + "]"
        if self.form == "map":
            return "{" + ", ".join(f"{key}: {self.entry_value()}" for key in sorted(set(self.elements()))) + "}"
        if self.form == "udt":
            return f"{{a: {self.chance.choice(VALUES['int'])}, b: {self.chance.choice(VALUES['text'])}}}"
        return f"({self.element()}, {self.chance.choice([self.entry_value(), 'null'])})"

    def value(self):
        return "null" if self.chance.random() < 0.15 else self.literal()

    def change(self):
        """An assignment of UPDATE."""
        name = self.name
        if self.form == "set" and self.chance.random() < 0.7:
            return f"{name} = {name} {self.chance.choice('+-')} {self.literal()}"
        if self.form == "map" and self.chance.random() < 0.7:
            one = f"{name}[{self.element()}] = {self.chance.choice([self.entry_value(), 'null'])}"
            return self.chance.choice([one, f"{name} = {name} - {{{self.element()}}}"])
        if self.form == "udt" and self.chance.random() < 0.5:
            return self.chance.choice([f"{name}.a = {self.chance.choice(VALUES['int'])}", f"{name}.b = null"])
        return f"{name} = {self.value()}"


class Table:
    """A table of random columns."""

    def __init__(self, chance, number):
        self.chance, self.name = chance, f"t{number}"
        columns = lambda prefix, count, kind: [Column(chance, f"{prefix}{i}", kind) for i in range(count)]
        self.partition = columns("k", chance.choice([1, 1, 1, 2]), "partition")
        self.clustering = columns("c", chance.choice([0, 1, 1, 2, 3]), "clustering")
        self.static = columns("s", chance.randrange(3) if self.clustering else 0, "static")
        self.regular = columns("v", chance.randrange(1, 5), "regular")
        self.orders = [chance.choice(["ASC", "ASC", "DESC"]) for _ in self.clustering]
        # A few partitions and rows, so that writes go to the same ones.
        self.keys = [[column.literal() for column in self.partition] for _ in range(4)]
        self.rows = [[column.literal() for column in self.clustering] for _ in range(7)]

    def create(self):
        parts = [f"{column.name} {column.type}" for column in self.partition + self.clustering + self.regular]
        parts += [f"{column.name} {column.type} static" for column in self.static]
        key = ", ".join(column.name for column in self.partition)
        parts.append("PRIMARY KEY (" + ", ".join([f"({key})"] + [column.name for column in self.clustering]) + ")")
        text = f"CREATE TABLE {KEYSPACE}.{self.name} ({', '.join(parts)})"
        if self.clustering:
            order = ", ".join(f"{column.name} {order}" for column, order in zip(self.clustering, self.orders))
            text += f" WITH CLUSTERING ORDER BY ({order})"
        return text

    def statement(self):
        kinds = [self.insert, self.update, self.delete, self.select, self.alter]
        return self.chance.choices(kinds, [50, 40, 30, 60, 1])[0]()

    def alter(self):
        """Adds a column whose name comes before the others'."""
        column = Column(self.chance, f"a{1000 - len(self.regular)}", "regular")
        self.regular.append(column)
        return f"ALTER TABLE {self.place} ADD {column.name} {column.type}"

    def some(self, items):
        return [item for item in items if self.chance.random() < 0.5]

    def using(self, ttl=True):
        parts = [f"TIMESTAMP {FIRST_TIMESTAMP + self.chance.randrange(300)}"]
        if ttl and self.chance.random() < 0.1:
            parts.append(f"TTL {self.chance.choice([100000, 200000])}")
        return "USING " + " AND ".join(parts)

    def key(self):
        return " AND ".join(f"{column.name} = {value}" for column, value in zip(self.partition, self.chance.choice(self.keys)))

    def row(self):
        values = zip(self.clustering, self.chance.choice(self.rows))
        return " AND ".join([self.key()] + [f"{column.name} = {value}" for column, value in values])

    def insert(self):
        values = dict(zip((column.name for column in self.partition), self.chance.choice(self.keys)))
        values |= zip((column.name for column in self.clustering), self.chance.choice(self.rows))
        for column in self.some(self.regular + self.static):
            values[column.name] = column.value()
        return f"INSERT INTO {self.place} ({', '.join(values)}) VALUES ({', '.join(values.values())}) {self.using()}"

    @property
    def place(self):
        return f"{KEYSPACE}.{self.name}"

    def update(self):
        is_static = bool(self.static) and self.chance.random() < 0.2
        column = self.chance.choice(self.static if is_static else self.regular)
        where = self.key() if is_static else self.row()
        return f"UPDATE {self.place} {self.using()} SET {column.change()} WHERE {where}"

    def delete(self):
        kind = self.chance.randrange(4)
        what, where = "", self.key() + self.slice()
        if kind == 0:
            what, where = self.chance.choice(self.regular).name + " ", self.row()
        elif kind == 1:
            where = self.row()
        return f"DELETE {what}FROM {self.place} {self.using(False)} WHERE {where}"

    def slice(self):
        """Restrictions of the first clustering columns."""
        if not self.clustering or self.chance.random() < 0.2:
            return ""
        low, high = self.chance.choice(self.rows), self.chance.choice(self.rows)
        depth = self.chance.randrange(len(self.clustering))
        name = self.clustering[depth].name
        fixed = "".join(f" AND {column.name} = {value}" for column, value in zip(self.clustering[:depth], low))
        return fixed + self.chance.choice(
            [
                "",
                f" AND {name} = {low[depth]}",
                f" AND {name} {self.chance.choice(['>', '>='])} {low[depth]}",
                f" AND {name} {self.chance.choice(['<', '<='])} {high[depth]}",
                f" AND {name} > {low[depth]} AND {name} <= {high[depth]}",
            ]
        )

    def selected(self):
        names = [column.name for column in self.some(self.partition + self.clustering + self.static + self.regular)]
        plain = [column.name for column in self.regular + self.static if column.form in ("scalar", "frozen", "tuple")]
        names += [f"WRITETIME({name})" for name in self.some(plain)]
        key = ", ".join(column.name for column in self.partition)
        counted = f"COUNT({self.chance.choice(self.regular).name})"
        if self.chance.random() < 0.3:
            return ", ".join(["COUNT(*)"] + [self.aggregate() for _ in range(self.chance.randrange(4))])
        return self.chance.choice(["*", "*", ", ".join(names) or "*", "COUNT(*)", counted, f"DISTINCT {key}", f"JSON {key}"])

    def aggregate(self):
        scalars = [column for column in self.partition + self.clustering + self.static + self.regular if column.form == "scalar"]
        if not scalars:
            return f"COUNT({self.partition[0].name})"
        column = self.chance.choice(scalars)
        # Cassandra 5.0 gives the least timeuuid a type of its own.
        kinds = ["COUNT"] + (["MIN", "MAX"] if column.scalar != "timeuuid" else [])
        kinds += ["SUM", "AVG"] if column.scalar in NUMBERS else []
        return f"{self.chance.choice(kinds)}({column.name})"

    def group(self, columns):
        """GROUP BY of the partition key, sometimes with clustering columns."""
        if not columns.startswith("COUNT(*),") or self.chance.random() < 0.5:
            return ""
        depth = self.chance.choice([0, 0, self.chance.randrange(len(self.clustering) + 1)])
        return " GROUP BY " + ", ".join(column.name for column in self.partition + self.clustering[:depth])

    def select(self):
        columns = self.selected()
        select = f"SELECT {columns} FROM {self.place}"
        limits = ["", "", " LIMIT 3", " PER PARTITION LIMIT 2"]
        tail = "" if "DISTINCT" in columns else self.chance.choice(limits)
        kind = self.chance.randrange(6)
        key = ", ".join(column.name for column in self.partition)
        group = self.group(columns)
        tail = group + tail
        if kind == 0 or "DISTINCT" in columns:
            return select + tail
        if kind == 1:
            return f"{select} WHERE token({key}) > {self.chance.randrange(-(2**63), 2**63)}{tail}"
        if kind == 2 and len(self.partition) == 1:
            keys = ", ".join(self.chance.choice(self.keys)[0] for _ in range(2))
            return f"{select} WHERE {self.partition[0].name} IN ({keys}){tail}"
        if kind == 3:
            column = self.chance.choice(self.regular + self.static)
            sign = self.chance.choice(["=", ">", "<="]) if column.form == "scalar" else "="
            return f"{select} WHERE {column.name} {sign} {column.literal()}{tail} ALLOW FILTERING"
        order = ""
        if self.clustering:
            order = self.chance.choice(["", f" ORDER BY {self.clustering[0].name} {self.chance.choice(['ASC', 'DESC'])}"])
        limit = tail.removeprefix(group)
        return f"{select} WHERE {self.key()}{self.slice()}{group}{order}{limit}"


def make_keyspace(servers):
    """Makes the keyspace anew, without tables, and its user type."""
    for text in (
        f"DROP KEYSPACE IF EXISTS {KEYSPACE}",
        f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': REPLICAS}}",
        f"CREATE TYPE {KEYSPACE}.pair (a int, b text)",
    ):
        for server, replicas in zip(servers, REPLICAS):
            must(server, text.replace("REPLICAS", str(replicas)))


def must(server, text):
    """Sends a statement that the server must accept."""
    answer = server.query(text, FIRST_TIMESTAMP)
    if "error" in answer:
        sys.exit(f"{server.address} refuses {text}\n  {answer['message']}")


def make_tables(chance, servers):
    """Makes new tables in an empty keyspace."""
    tables = [Table(chance, number) for number in range(TABLES_AT_ONCE)]
    make_keyspace(servers)
    for table in tables:
        for server in servers:
            must(server, table.create())
    return tables


def fails_in_groups(text, answers):
    """Cassandra 5.0 cannot end a page of groups within a range tombstone, and cannot always continue from its own paging state."""
    return "GROUP BY" in text and answers[0].get("error") in FAILURES_IN_GROUPS and "error" not in answers[1]


def ask_both(_, servers, text, timestamp, page):
    """The statement as it is shown to people, and the answers of the servers."""
    return text, [server.all_pages(text, timestamp, page, CONSISTENCY) for server in servers]


def main(addresses, seed, count, command, make_tables=make_tables, is_known=fails_in_groups, ask=ask_both, server=Server):
    """Compares the answers to random statements about the tables that `make_tables` makes. `is_known` recognises differences of which the
    reason is known, by the statement and both answers. `ask` sends a statement to connections of the class `server`."""
    servers = [server(address) for address in addresses]
    chance = random.Random(seed)
    print(f"seed {seed}", flush=True)
    different = refused = known = 0
    for number in range(count):
        if number % STATEMENTS_FOR_TABLES == 0:
            tables = make_tables(chance, servers)
        if command and chance.randrange(150) == 0:
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        text = chance.choice(tables).statement()
        page = chance.choice([3, 7, 5000])
        text, answers = ask(chance, servers, text, FIRST_TIMESTAMP + 150, page)
        refused += "error" in answers[0]
        if answers[0] != answers[1] and is_known(text, answers):
            known += 1
        elif answers[0] != answers[1]:
            different += 1
            print(f"statement {number}, page {page}\n  {text}")
            for table in tables:
                if f"{table.place} " in text:
                    print(f"  {table.create()}")
            for server, answer in zip(servers, answers):
                print(f"    {server.address}\n      {shown(answer)}", flush=True)
            if different >= DIFFERENCES_MAX:
                break
    print(f"{different} answers of {number + 1} differ; {refused} were errors; {known} more differ for known reasons")
    return 1 if different else 0


def run(usage, **choices):
    """Runs `main` with the arguments of the command line."""
    if len(sys.argv) < 3:
        sys.exit(usage)
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(2**32)
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 5000
    sys.exit(main(sys.argv[1:3], seed, count, sys.argv[5:], **choices))


if __name__ == "__main__":
    run(__doc__)
