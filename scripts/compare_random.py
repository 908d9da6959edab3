"""Random writes and reads to two servers; every answer must be the same, byte for byte.

    python3 scripts/compare_random.py HOST:PORT HOST:PORT [SEED [STATEMENTS [COMMAND..]]]

One of the servers is meant to be a real Cassandra. Writes carry timestamps out of a small range, so that they meet older and
newer ones and equal ones; keys are few, so that deletions hit something. COMMAND, if given, is run now and then: for instance
`ilion flush --admin-port 9043`, so that reads merge files. The seed is printed; the same seed asks the same.
"""

import random
import subprocess
import sys

from compare_answers import FIRST_TIMESTAMP, Server, shown

KEYSPACE = "compared"
TABLES = {
    "flat": "k int PRIMARY KEY, a text, b int, s set<int>, m map<text, int>, f frozen<list<int>>",
    "wide": "k int, c int, d text, st text STATIC, ss set<int> STATIC, a text, b int, s set<int>, m map<text, int>, "
    "PRIMARY KEY (k, c, d)",
    "back": "k int, c int, d text, st text STATIC, a text, b int, s set<int>, m map<text, int>, PRIMARY KEY (k, c, d)",
}
OPTIONS = {"back": " WITH CLUSTERING ORDER BY (c DESC, d ASC)"}
KEYS, CLUSTERINGS, TEXTS = 6, 8, ["", "a", "b", "bb", "c"]


class Statements:
    """Makes statements out of chance."""

    def __init__(self, seed):
        self.chance = random.Random(seed)

    def schema(self):
        yield (
            f"CREATE KEYSPACE {KEYSPACE} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 1}}"
        )
        for name, columns in TABLES.items():
            yield f"CREATE TABLE {KEYSPACE}.{name} ({columns}){OPTIONS.get(name, '')}"

    def next(self):
        table = self.chance.choice(list(TABLES))
        kind = self.chance.choices([self.insert, self.update, self.delete, self.select], [5, 4, 3, 6])[0]
        return kind(table)

    def text(self):
        return f"'{self.chance.choice(TEXTS)}'"

    def number(self, below=10):
        return str(self.chance.randrange(below))

    def numbers(self):
        return ", ".join(sorted({self.number() for _ in range(self.chance.randrange(4))}))

    def using(self, ttl=True):
        parts = [f"TIMESTAMP {FIRST_TIMESTAMP + self.chance.randrange(300)}"]
        if ttl and self.chance.random() < 0.1:
            parts.append(f"TTL {self.chance.choice([100000, 200000])}")
        return "USING " + " AND ".join(parts)

    def value(self, column):
        if self.chance.random() < 0.15:
            return "null"
        return {
            "a": self.text,
            "st": self.text,
            "b": self.number,
            "s": lambda: f"{{{self.numbers()}}}",
            "ss": lambda: f"{{{self.numbers()}}}",
            "m": lambda: "{" + ", ".join(f"'{key}': {self.number()}" for key in self.some(["x", "y", "z"])) + "}",
            "f": lambda: f"[{self.numbers()}]",
        }[column]()

    def some(self, items):
        return [item for item in items if self.chance.random() < 0.5]

    def regular(self, table):
        return ["a", "b", "s", "m"] + (["f"] if table == "flat" else [])

    def static(self, table):
        return {"flat": [], "wide": ["st", "ss"], "back": ["st"]}[table]

    def insert(self, table):
        values = {"k": self.number(KEYS)}
        if table != "flat":
            values |= {"c": self.number(CLUSTERINGS), "d": self.text()}
        for column in self.some(self.regular(table) + self.static(table)):
            values[column] = self.value(column)
        return f"INSERT INTO {{}}.{table} ({', '.join(values)}) VALUES ({', '.join(values.values())}) {self.using()}"

    def update(self, table):
        is_static = bool(self.static(table)) and self.chance.random() < 0.2
        columns = self.static(table) if is_static else self.regular(table)
        column = self.chance.choice(columns)
        change = f"{column} = {self.value(column)}"
        if column in ("s", "ss") and self.chance.random() < 0.7:
            change = f"{column} = {column} {self.chance.choice('+-')} {{{self.numbers()}}}"
        if column == "m" and self.chance.random() < 0.7:
            change = self.chance.choice([f"m['{self.chance.choice('xyz')}'] = {self.number()}", "m = m - {'x'}"])
        where = f"k = {self.number(KEYS)}" if is_static else self.row(table)
        return f"UPDATE {{}}.{table} {self.using()} SET {change} WHERE {where}"

    def row(self, table):
        where = f"k = {self.number(KEYS)}"
        return where if table == "flat" else f"{where} AND c = {self.number(CLUSTERINGS)} AND d = {self.text()}"

    def delete(self, table):
        kind = self.chance.randrange(4)
        if kind == 0:
            column = self.chance.choice(self.regular(table) + ["m['x']"])
            return f"DELETE {column} FROM {{}}.{table} {self.using(False)} WHERE {self.row(table)}"
        where = self.row(table) if kind == 1 or table == "flat" else f"k = {self.number(KEYS)}{self.slice()}"
        return f"DELETE FROM {{}}.{table} {self.using(False)} WHERE {where}"

    def slice(self):
        low, high = sorted(self.chance.randrange(CLUSTERINGS) for _ in range(2))
        return self.chance.choice(
            [
                "",
                f" AND c = {low}",
                f" AND c {self.chance.choice(['>', '>='])} {low}",
                f" AND c {self.chance.choice(['<', '<='])} {high}",
                f" AND c > {low} AND c <= {high}",
                f" AND c >= {low} AND c < {high}",
                f" AND c = {low} AND d >= {self.text()}",
                f" AND c = {low} AND d < {self.text()}",
                f" AND (c, d) > ({low}, {self.text()}) AND (c, d) <= ({high}, {self.text()})",
            ]
        )

    def select(self, table):
        columns = self.chance.choice(
            ["*", "k, a, b", "COUNT(*)", "k, a, WRITETIME(a), b, WRITETIME(b)", "k, s, m", "k, COUNT(a)", "DISTINCT k"]
        )
        select = f"SELECT {columns} FROM {{}}.{table}"
        tail = self.chance.choice(["", "", " LIMIT 3", " PER PARTITION LIMIT 2"]) if "DISTINCT" not in columns else ""
        kind = self.chance.randrange(5)
        if kind == 0 or "DISTINCT" in columns:
            return select + tail
        if kind == 1:
            return f"{select} WHERE token(k) > {self.chance.randrange(-(2**63), 2**63)}{tail}"
        if kind == 2:
            return f"{select} WHERE k IN ({self.number(KEYS)}, {self.number(KEYS)}){tail}"
        if table == "flat":
            return f"{select} WHERE k = {self.number(KEYS)}{tail}"
        order = self.chance.choice(["", " ORDER BY c ASC", " ORDER BY c DESC"])
        return f"{select} WHERE k = {self.number(KEYS)}{self.slice()}{order}{tail}"


def main(addresses, seed, count, command):
    servers = [Server(address) for address in addresses]
    for server in servers:
        server.query(f"DROP KEYSPACE IF EXISTS {KEYSPACE}", FIRST_TIMESTAMP)
    statements = Statements(seed)
    for text in statements.schema():
        for server in servers:
            server.query(text, FIRST_TIMESTAMP)
    print(f"seed {seed}")
    different = 0
    for number in range(count):
        if command and statements.chance.randrange(150) == 0:
            subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        text = statements.next().replace("{}.", KEYSPACE + ".", 1)
        page = statements.chance.choice([3, 7, 5000])
        answers = [server.all_pages(text, FIRST_TIMESTAMP + 150, page) for server in servers]
        if answers[0] != answers[1]:
            different += 1
            print(f"statement {number}, page {page}\n  {text}")
            for server, answer in zip(servers, answers):
                print(f"    {server.address}\n      {shown(answer)}")
            if different >= 20:
                break
    print(f"{different} answers of {number + 1} differ")
    return 1 if different else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(2**32)
    count = int(sys.argv[4]) if len(sys.argv) > 4 else 5000
    sys.exit(main(sys.argv[1:3], seed, count, sys.argv[5:]))
