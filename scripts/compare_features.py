"""Random statements of the features that `compare_random.py` leaves out, to two servers; every answer must be the same, byte for byte.

    python3 scripts/compare_features.py HOST:PORT HOST:PORT [SEED [STATEMENTS [COMMAND..]]]

One of the servers should be a real Cassandra. The tables have secondary indexes (SAI and the older kind), or materialized views, or are
written by conditional statements only, or have counters; reads use indexes, filters, functions, parts of collections, relations of several
columns and IN. Arguments and output are those of `compare_random.py`. FAMILY in the environment names one kind of table: plain, indexed,
viewed, conditional or counters.
"""

import os
import sys

from compare_answers import FIRST_TIMESTAMP, shown
from compare_random import NUMBERS, VALUES, Table, make_keyspace, run

# Server error, read failure.
FAILURES = ("0x0", "0x1300")
REFUSED_BY_CASSANDRA = ("ORDER BY with 2ndary indexes is not supported", "Multi-column slice restrictions cannot be used for filtering")


class Features(Table):
    """A table, and statements about it that `Table` does not make."""

    # False if the servers choose the times of writes.
    has_own_times = True

    def __init__(self, chance, number):
        super().__init__(chance, number)
        self.clock = 0

    def schema(self):
        return [self.create()]

    @property
    def columns(self):
        return self.partition + self.clustering + self.static + self.regular

    def statement(self):
        kinds = [self.insert, self.update, self.delete, self.read, self.batch, self.json, self.several]
        return self.chance.choices(kinds, [40, 40, 25, 90, 10, 8, 15])[0]()

    def keys_in(self, count):
        """A relation of the partition key, with IN for its last column."""
        fixed = "".join(f"{column.name} = {value} AND " for column, value in zip(self.partition[:-1], self.chance.choice(self.keys)))
        values = ", ".join(self.chance.choice(self.keys)[-1] for _ in range(count))
        return f"{fixed}{self.partition[-1].name} IN ({values})"

    def several(self):
        """A write to several rows or partitions."""
        chance = self.chance
        keys = self.keys_in(2)
        if not self.clustering or chance.random() < 0.3:
            return f"DELETE FROM {self.place} {self.using(False)} WHERE {chance.choice([keys, self.key()])}{self.clustering_where()}"
        rows = [chance.choice(self.rows) for _ in range(3)]
        group = ", ".join("(" + ", ".join(row) + ")" for row in rows)
        row = " AND ".join(f"{column.name} = {value}" for column, value in list(zip(self.clustering, rows[0]))[:-1])
        one_in = f"{row + ' AND ' if row else ''}{self.clustering[-1].name} IN ({rows[0][-1]}, {rows[1][-1]})"
        tuple_in = "(" + ", ".join(column.name for column in self.clustering) + f") IN ({group})"
        where = f"{chance.choice([keys, self.key()])} AND {chance.choice([one_in, tuple_in])}"
        what = chance.choice(self.regular)
        return chance.choice(
            [
                f"UPDATE {self.place} {self.using()} SET {what.change()} WHERE {where}",
                f"DELETE FROM {self.place} {self.using(False)} WHERE {where}",
                f"DELETE {what.name} FROM {self.place} {self.using(False)} WHERE {where}",
            ]
        )

    def write(self):
        return self.chance.choice([self.insert, self.update, self.delete])()

    def batch(self):
        """A batch; the time stands in its members."""
        members = "; ".join(self.write() for _ in range(self.chance.randrange(1, 5)))
        return f"BEGIN {self.chance.choice(['', 'UNLOGGED '])}BATCH {members}; APPLY BATCH"

    def json(self):
        """INSERT JSON of numbers and booleans; other columns are missing."""
        simple = [column for column in self.columns if column.form == "scalar" and column.scalar in ("int", "bigint", "boolean", "smallint", "tinyint", "double")]
        if not all(column in simple for column in self.partition + self.clustering):
            return self.insert()
        keys = list(zip(self.partition, self.chance.choice(self.keys))) + list(zip(self.clustering, self.chance.choice(self.rows)))
        members = [f'"{column.name}": {value}' for column, value in keys]
        members += [f'"{column.name}": {column.value()}' for column in simple if column in self.regular and self.chance.random() < 0.7]
        default = self.chance.choice(["", " DEFAULT UNSET", " DEFAULT NULL"])
        return f"INSERT INTO {self.place} JSON '{{{', '.join(members)}}}'{default} {self.using()}"

    def expression(self):
        """A selected expression of one column."""
        column = self.chance.choice(self.columns)
        name = column.name
        choices = [name, f"to_json({name})"]
        if column not in self.partition + self.clustering and self.has_own_times:
            choices += [f"WRITETIME({name})", f"MAXWRITETIME({name})"]
        if column.form == "scalar":
            choices += [f"CAST({name} AS text)", f"{column.scalar}_as_blob({name})"] if column.scalar not in ("text", "blob", "ascii") else []
            if column.scalar in NUMBERS:
                sign = self.chance.choice("+-*")
                choices += [f"{name} {sign} 1", f"-{name}", f"abs({name})"]
                # Cassandra 5.0 refuses to cast a clustering column with descending order to its own type, or names the result differently.
                # It keeps 64 bits of a decimal as a varint.
                other = self.chance.choice(NUMBERS)
                if other != column.scalar and (column.scalar, other) != ("decimal", "varint"):
                    choices.append(f"CAST({name} AS {other})")
        if column.form == "set":
            choices += [f"{name}[{column.element()}]", f"collection_count({name})", f"collection_min({name})", f"{name}[..{column.element()}]"]
        if column.form == "map":
            choices += [f"{name}[{column.element()}]", f"map_keys({name})", f"map_values({name})"]
            choices += [f"WRITETIME({name}[{column.element()}])"] if self.has_own_times else []
        if column.form == "list":
            choices += [f"collection_count({name})", f"collection_max({name})"]
        if column.form == "udt":
            choices += [f"{name}.a", f"{name}.b"] + ([f"WRITETIME({name}.a)"] if self.has_own_times else [])
        return self.chance.choice(choices)

    def what(self):
        names = ", ".join(self.expression() for _ in range(self.chance.randrange(1, 4)))
        key = ", ".join(column.name for column in self.partition)
        return self.chance.choice(["*", names, names, names, f"token({key}), {names}", f"JSON {names}", "COUNT(*)"])

    def clustering_where(self):
        """Relations of the clustering columns."""
        if not self.clustering:
            return ""
        chance = self.chance
        low, high = chance.choice(self.rows), chance.choice(self.rows)
        depth = chance.randrange(1, len(self.clustering) + 1)
        names = [column.name for column in self.clustering[:depth]]
        group = lambda row: "(" + ", ".join(row[:depth]) + ")"
        tuple_of = "(" + ", ".join(names) + ")"
        fixed = "".join(f" AND {name} = {value}" for name, value in zip(names[:-1], low))
        return chance.choice(
            [
                "",
                self.slice(),
                f" AND {tuple_of} {chance.choice(['>', '>=', '<', '<='])} {group(low)}",
                f" AND {tuple_of} > {group(low)} AND {tuple_of} <= {group(high)}",
                f" AND {tuple_of} IN ({group(low)}, {group(high)}, {group(chance.choice(self.rows))})",
                f"{fixed} AND {names[-1]} IN ({low[depth - 1]}, {high[depth - 1]})",
                f" AND {tuple_of} = {group(low)}",
            ]
        )

    def relation(self, column):
        """A restriction of a column that an index or a filter answers."""
        chance, name = self.chance, column.name
        # In static sets and the keys of static maps, Cassandra 5.0 also finds what was deleted.
        if column.form == "set" and column in self.static:
            return f"{name} = {column.literal()}"
        if column.form in ("set", "list"):
            return chance.choice([f"{name} CONTAINS {column.element()}", f"{name} CONTAINS {column.element()}", f"{name} = {column.literal()}"])
        if column.form == "map":
            choices = [f"{name} CONTAINS {column.entry_value()}", f"{name}[{column.element()}] = {column.entry_value()}"]
            choices += [f"{name} CONTAINS KEY {column.element()}"] if column not in self.static else []
            return chance.choice(choices)
        if column.form == "scalar":
            sign = chance.choice(["=", "=", ">", ">=", "<", "<="])
            return chance.choice([f"{name} {sign} {column.literal()}"] * 3 + [f"{name} IN ({column.element()}, {column.element()})"])
        return f"{name} = {column.literal()}"

    def tail(self, ordered=True):
        chance = self.chance
        order = ""
        if ordered and self.clustering and chance.random() < 0.4:
            direction = chance.choice([("ASC", "DESC"), ("DESC", "ASC")])
            depth = chance.randrange(1, len(self.clustering) + 1)
            own = [direction[order != "ASC"] for order in self.orders]
            order = " ORDER BY " + ", ".join(f"{column.name} {way}" for column, way in list(zip(self.clustering, own))[:depth])
        return order + chance.choice(["", "", " LIMIT 4", " PER PARTITION LIMIT 1", " PER PARTITION LIMIT 2 LIMIT 5"])

    def read(self):
        chance = self.chance
        select = f"SELECT {self.what()} FROM {self.place}"
        kind = chance.randrange(6)
        key = ", ".join(column.name for column in self.partition)
        if kind == 0:
            return select + chance.choice(["", " LIMIT 5", " PER PARTITION LIMIT 1"])
        if kind == 1:
            low, high = (", ".join(chance.choice(self.keys)) for _ in range(2))
            return f"{select} WHERE token({key}) >= token({low}) AND token({key}) {chance.choice(['<', '<='])} token({high}){self.tail(False)}"
        if kind == 2:
            wheres = " AND ".join(self.relation(column) for column in self.some(self.columns)[:3])
            return f"{select} WHERE {wheres}{self.tail(False)} ALLOW FILTERING" if wheres else select
        if kind == 3:
            return f"{select} WHERE {self.keys_in(3)}{self.clustering_where()}{self.tail()}"
        if kind == 4:
            extra = self.relation(chance.choice(self.static + self.regular))
            return f"{select} WHERE {self.key()}{self.clustering_where()} AND {extra}{self.tail()} ALLOW FILTERING"
        return f"{select} WHERE {self.key()}{self.clustering_where()}{self.tail()}"


class Plain(Features):
    """A table whose columns are dropped, and added again."""

    def __init__(self, chance, number):
        super().__init__(chance, number)
        self.dropped = []

    def statement(self):
        if self.chance.random() < 0.98:
            return super().statement()
        if self.dropped and self.chance.random() < 0.6:
            column = self.dropped.pop()
            self.regular.append(column)
            return f"ALTER TABLE {self.place} ADD {column.name} {column.type}"
        if len(self.regular) < 2:
            return super().statement()
        column = self.regular.pop(self.chance.randrange(len(self.regular)))
        self.dropped.append(column)
        return f"ALTER TABLE {self.place} DROP {column.name}"


class Indexed(Features):
    """A table with indexes."""

    def schema(self):
        texts = [self.create()]
        self.with_index = []
        for number, column in enumerate(self.columns):
            if column in self.partition and len(self.partition) == 1 or self.chance.random() < 0.4:
                continue
            # With descending order, Cassandra 5.0 does not find empty texts, and allows ranges of uuids.
            if (column, "DESC") in zip(self.clustering, self.orders):
                continue
            target = column.name
            if column.form == "map":
                target = self.chance.choice([f"KEYS({target})", f"VALUES({target})", f"ENTRIES({target})"])
            elif column.form == "frozen":
                target = f"FULL({target})"
            using = self.chance.choice([" USING 'sai'", " USING 'sai'", ""])
            if not using and (column.form == "udt" or column in self.static):
                using = " USING 'sai'"
            texts.append(f"CREATE INDEX {self.name}_i{number} ON {self.place} ({target}){using}")
            self.with_index.append(column)
        return texts

    def read(self):
        if not self.with_index or self.chance.random() < 0.3:
            return super().read()
        wheres = [self.relation(self.chance.choice(self.with_index)) for _ in range(self.chance.choice([1, 1, 2]))]
        if self.chance.random() < 0.3:
            wheres.append(self.key())
        filtering = self.chance.choice(["", " ALLOW FILTERING"])
        return f"SELECT {self.what()} FROM {self.place} WHERE {' AND '.join(wheres)}{self.tail(False)}{filtering}"


class Viewed(Features):
    """A table with a materialized view; times only grow, as clocks do."""

    def schema(self):
        keys = self.partition + self.clustering
        # Cassandra 5.0 cannot read view partitions with an empty key.
        may_lead = lambda column: column.form == "scalar" and "''" not in VALUES[column.scalar] and "0x" not in VALUES[column.scalar]
        extra = [column for column in self.regular if column.form in ("scalar", "frozen") and self.chance.random() < 0.8][:1]
        order = sorted(extra + self.chance.sample(keys, len(keys)), key=lambda column: not may_lead(column))
        if not may_lead(order[0]):
            self.view_key = None
            return [self.create()]
        others = [column for column in self.regular if column not in extra and self.chance.random() < 0.7]
        names = ", ".join(column.name for column in keys + extra + others)
        filters = " AND ".join(f"{column.name} IS NOT NULL" for column in order)
        chosen = self.chance.choice(["*", names]) if not self.static else names
        self.view_key, self.view_order = order[0], order
        view = (
            f"CREATE MATERIALIZED VIEW {self.place}_view AS SELECT {chosen} FROM {self.place} WHERE {filters}"
            f" PRIMARY KEY ({', '.join(column.name for column in order)})"
        )
        return [self.create(), view]

    def using(self, ttl=True):
        del ttl
        self.clock += 1
        return f"USING TIMESTAMP {FIRST_TIMESTAMP + self.clock}"

    def read(self):
        if not self.view_key or self.chance.random() < 0.3:
            return super().read()
        if self.chance.random() < 0.3:
            # One entry, by its whole key.
            values = dict(zip((column.name for column in self.partition), self.chance.choice(self.keys)))
            values |= zip((column.name for column in self.clustering), self.chance.choice(self.rows))
            where = " AND ".join(f"{column.name} = {values.get(column.name) or column.literal()}" for column in self.view_order)
            return f"SELECT * FROM {self.place}_view WHERE {where}"
        # No IN: if the key is a clustering column with descending order in the table, Cassandra 5.0 returns its partitions in descending order.
        key = f"{self.view_key.name} = {self.view_key.literal()}"
        where = self.chance.choice(["", f" WHERE {key}", f" WHERE {key} AND {self.relation(self.chance.choice(self.clustering + self.regular))} ALLOW FILTERING"])
        return f"SELECT * FROM {self.place}_view{where}"


class Conditional(Features):
    """A table that is written by conditional statements only: their times are those of the server."""

    has_own_times = False

    def using(self, ttl=True):
        del ttl
        return ""

    def statement(self):
        return self.chance.choices([self.condition, self.condition_batch, self.read], [60, 10, 40])[0]()

    def conditions(self):
        chance = self.chance
        column = chance.choice(self.regular)
        name = column.name
        one = f"{name} {chance.choice(['=', '!=', '<', '>=', '<=', '>'])} {column.literal()}"
        choices = ["IF EXISTS", f"IF {one}", f"IF {name} = null", f"IF {name} != null"]
        if column.form == "scalar":
            choices.append(f"IF {name} IN ({column.element()}, {column.element()})")
        # Cassandra 5.0 fails to compare values of most types with a missing element.
        if column.form == "map" and column.value_type in ("ascii", "bigint", "int", "text"):
            choices += [f"IF {name}[{column.element()}] {chance.choice(['=', '!=', '>'])} {column.entry_value()}", f"IF {name} CONTAINS {column.entry_value()}"]
        if column.form == "set":
            choices.append(f"IF {name} CONTAINS {column.element()}")
        if column.form == "list":
            choices.append(f"IF {name}[{chance.randrange(3)}] = {column.element()}")
        if column.form == "udt":
            choices.append(f"IF {name}.a {chance.choice(['=', '<'])} {chance.choice(VALUES['int'])}")
        if self.static:
            static = chance.choice(self.static)
            choices.append(f"IF {static.name} = {static.literal()}")
        return chance.choice(choices)

    def condition(self):
        kind = self.chance.randrange(4)
        if kind == 0:
            values, using, time = self.insert().rstrip().partition(" USING")
            return f"{values} IF NOT EXISTS{using}{time}"
        if kind == 1:
            return f"DELETE {self.chance.choice(['', self.chance.choice(self.regular).name + ' '])}FROM {self.place} WHERE {self.row()} {self.conditions()}"
        if kind == 2 and self.static:
            column = self.chance.choice(self.static)
            return f"UPDATE {self.place} SET {column.change()} WHERE {self.key()} IF {column.name} = {column.value()}"
        return f"UPDATE {self.place} SET {self.chance.choice(self.regular).change()} WHERE {self.row()} {self.conditions()}"

    def condition_batch(self):
        """Conditional statements about one partition."""
        chance = self.chance
        key = dict(zip((column.name for column in self.partition), chance.choice(self.keys)))
        where = " AND ".join(f"{name} = {value}" for name, value in key.items())
        members = []
        for _ in range(chance.randrange(1, 4)):
            row = dict(zip((column.name for column in self.clustering), chance.choice(self.rows)))
            place = " AND ".join([where] + [f"{name} = {value}" for name, value in row.items()])
            column = chance.choice(self.regular)
            members.append(
                chance.choice(
                    [
                        f"UPDATE {self.place} SET {column.change()} WHERE {place} {self.conditions()}",
                        f"UPDATE {self.place} SET {column.change()} WHERE {place}",
                        f"INSERT INTO {self.place} ({', '.join([*key, *row, column.name])}) VALUES ({', '.join([*key.values(), *row.values(), column.value()])}) IF NOT EXISTS",
                    ]
                )
            )
        return f"BEGIN BATCH {'; '.join(members)}; APPLY BATCH"


class Counters(Features):
    """A table of counters."""

    def __init__(self, chance, number):
        super().__init__(chance, number)
        self.static, self.counters = [], [f"n{i}" for i in range(chance.randrange(1, 3))]
        self.regular = []

    def create(self):
        columns = [f"{column.name} {column.type}" for column in self.partition + self.clustering] + [f"{name} counter" for name in self.counters]
        key = ", ".join(["(" + ", ".join(column.name for column in self.partition) + ")"] + [column.name for column in self.clustering])
        return f"CREATE TABLE {self.place} ({', '.join(columns)}, PRIMARY KEY ({key})) WITH gc_grace_seconds = 864000"

    def statement(self):
        return self.chance.choices([self.add, self.add_batch, self.read], [60, 10, 40])[0]()

    def add(self):
        changes = ", ".join(f"{name} = {name} {self.chance.choice('+-')} {self.chance.choice([0, 1, 5, 9223372036854775807])}" for name in self.counters if self.chance.random() < 0.8)
        return f"UPDATE {self.place} SET {changes or f'{self.counters[0]} = {self.counters[0]} + 1'} WHERE {self.row()}"

    def add_batch(self):
        return f"BEGIN COUNTER BATCH {'; '.join(self.add() for _ in range(self.chance.randrange(1, 4)))}; APPLY BATCH"

    def read(self):
        name = self.chance.choice(self.counters)
        what = self.chance.choice(["*", name, f"CAST({name} AS text), {name}", f"SUM({name}), MIN({name}), COUNT({name})", f"{name} + 1", f"to_json({name})", f"JSON {name}"])
        where = self.chance.choice(["", f" WHERE {self.key()}{self.slice()}", f" WHERE {name} > 3 ALLOW FILTERING", f" WHERE {name} = 5 ALLOW FILTERING"])
        return f"SELECT {what} FROM {self.place}{where}"


FAMILIES = {kind.__name__.lower(): kind for kind in (Plain, Indexed, Viewed, Conditional, Counters)}


def make_tables(chance, servers, families=FAMILIES):
    """Makes a table of each family in an empty keyspace. The servers may refuse an index or a view, but both in the same words."""
    names = [os.environ["FAMILY"]] if "FAMILY" in os.environ else list(families)
    make_keyspace(servers)
    tables = []
    for number, name in enumerate(names):
        table = families[name](chance, number)
        tables.append(table)
        for text in table.schema():
            answers = [server.query(text, FIRST_TIMESTAMP) for server in servers]
            if answers[0] != answers[1]:
                sys.exit("\n".join([text] + [f"    {server.address}\n      {shown(answer)}" for server, answer in zip(servers, answers)]))
    return tables


def is_known(_, answers):
    return fails_in_cassandra(answers) or refuses_without_values(answers)


def fails_in_cassandra(answers):
    """True if the first server, a Cassandra, fails with a Java exception, or refuses a read that Ilion may carry out."""
    [answer, _] = answers
    return answer.get("error") in FAILURES or answer.get("message", "").startswith(REFUSED_BY_CASSANDRA)


def refuses_without_values(answers):
    """True if the first answer to a conditional write is `[applied] = false` alone, and the second has nulls behind it.

    A Cassandra does not count rows without a row marker when only the static row is written.
    """
    rows = [answer.get("rows") for answer in answers]
    return rows[0] == [[b"\0"]] and bool(rows[1]) and rows[1][0][0] == b"\0" and not any(rows[1][0][1:])


if __name__ == "__main__":
    run(__doc__, make_tables=make_tables, is_known=is_known)
