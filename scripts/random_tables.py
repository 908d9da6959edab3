"""Random tables and statements for check_random_sstables.py. `{ks}` stands for the keyspace."""

import random

from random_types import WORDS, Type, Types, quoted

FIRST_TIMESTAMP = 850_000_000_000_000
FLUSH = "flush"
# After 2038, which `nb` cannot store and refuses.
FAR_TTL, NEAR_TTL = 600_000_000, 86_400_000
NAMES = ["a", "b", "c", "d", '"Mixed Case"', '"select"', '"näme"', "zz", "x1", "x2", "x3"]


class Column:
    """A column: its name, type, kind and possible values."""

    def __init__(self, name, type_, kind, r, count=0, reverse=False):
        self.name, self.type, self.kind, self.is_reversed = name, type_, kind, reverse
        self.values = [type_.literal(r) for _ in range(count)]

    def value(self, r):
        return r.choice(self.values) if self.values else self.type.literal(r)

    def declared(self):
        return f"{self.name} {self.type.name}{' STATIC' if self.kind == 'static' else ''}"


class Table:
    """A table, the statements that fill it, and the queries that read it."""

    def __init__(self, seed, index, format_):
        self.ttl = NEAR_TTL if format_ == "nb" else FAR_TTL
        self.r = r = random.Random(f"{seed}/{index}")
        self.index, self.name = index, f"t{index}"
        self.types = Types(r, f"u{index}")
        self.is_counter = r.random() < 0.08
        self.shape = r.choices(["small", "wide", "many"], [8, 2, 1])[0]
        self.clock, self.expiring = FIRST_TIMESTAMP, set()
        self.default_ttl = r.choice([0] * 12 + [864_000, self.ttl]) if not self.is_counter else 0
        self.dropped = None
        self.make_columns()
        self.schema = list(self.make_schema())
        self.steps = list(self.make_steps())

    def make_columns(self):
        r = self.r
        self.keys = [self.key_column(f"k{number}") for number in range(r.choice([1, 1, 1, 2, 3]))]
        count = r.choice([0, 1, 1, 2, 3, 4]) if self.shape != "wide" else r.choice([1, 2])
        self.clusterings = [self.clustering_column(number) for number in range(count)]
        names = NAMES[: r.choice([0, 1, 2, 3, 5, 8])] if r.random() < 0.95 else [f"v{number:02}" for number in range(70)]
        if self.is_counter:
            names = names or ["n"]
        self.regulars = [Column(name, self.value_type(len(names)), "regular", r) for name in names]
        if self.shape == "wide" and not self.is_counter:
            self.regulars.append(Column("padding", Type("text"), "regular", r))
        statics = r.choice([0, 0, 1, 3]) if self.clusterings else 0
        self.statics = [Column(f"s{number}", self.value_type(statics), "static", r) for number in range(statics)]
        # A user type that is not frozen cannot be dropped.
        droppable = [column for column in self.regulars if not (column.type.kind == "udt" and column.type.is_multi_cell)]
        if droppable and not self.is_counter and r.random() < 0.1:
            self.dropped = r.choice(droppable)

    def key_column(self, name):
        while True:
            column = Column(name, self.types.nested(comparable=True), "key", self.r, 6)
            # An empty partition key is refused.
            column.values = [value for value in column.values if value not in ("''", "0x")]
            if column.values:
                return column

    def clustering_column(self, number):
        kind = Type("int") if self.shape == "wide" and number == 0 else self.types.nested(comparable=True)
        return Column(f"c{number}", kind, "clustering", self.r, 5, self.r.random() < 0.4)

    def value_type(self, count):
        if self.is_counter:
            return Type("counter")
        if count > 20 or self.r.random() < 0.55:
            return self.types.scalar()
        made = self.types.composed()
        return made if self.r.random() < 0.6 else made.frozen()

    # The schema.

    def make_schema(self):
        yield from self.types.statements
        columns = ", ".join(column.declared() for column in self.keys + self.clusterings + self.statics + self.regulars)
        key = f"({', '.join(column.name for column in self.keys)})"
        primary = ", ".join([key] + [column.name for column in self.clusterings])
        yield f"CREATE TABLE {{ks}}.{self.name} ({columns}, PRIMARY KEY ({primary})) WITH {' AND '.join(self.options())}"

    def options(self):
        r = self.r
        yield f"compression = {self.compression()}"
        if self.clusterings:
            order = ", ".join(f"{column.name} {'DESC' if column.is_reversed else 'ASC'}" for column in self.clusterings)
            yield f"CLUSTERING ORDER BY ({order})"
        if r.random() < 0.5:
            yield f"bloom_filter_fp_chance = {r.choice([0.0001, 0.01, 0.1, 1.0])}"
        if r.random() < 0.3:
            yield f"crc_check_chance = {r.choice([0.0, 0.5, 1.0])}"
        if r.random() < 0.3:
            yield f"gc_grace_seconds = {r.choice([0, 60, 864_000])}"
        if r.random() < 0.3:
            yield f"min_index_interval = {r.choice([2, 16, 128])}"
        if self.default_ttl:
            yield f"default_time_to_live = {self.default_ttl}"

    def compression(self):
        r = self.r
        name = r.choice(["none", "LZ4", "LZ4", "Snappy", "Deflate", "Zstd", "Noop"])
        if name == "none":
            return "{'enabled': 'false'}"
        options = {"class": f"{name}Compressor"}
        if r.random() < 0.7:
            options["chunk_length_in_kb"] = r.choice([1, 2, 4, 16, 64])
        if r.random() < 0.3:
            options["min_compress_ratio"] = r.choice([1.1, 2.5, 4])
        if name == "Zstd" and r.random() < 0.5:
            options["compression_level"] = r.choice([1, 5])
        if name == "LZ4" and r.random() < 0.2:
            options["lz4_compressor_type"] = "high"
        return "{" + ", ".join(f"'{option}': '{value}'" for option, value in options.items()) + "}"

    # The statements: pairs of timestamp and text, FLUSH, or (None, text) for a change of the schema.

    def make_steps(self):
        r = self.r
        if self.is_counter:
            yield from (self.counted() for _ in range(60))
            return
        for phase in range(r.choice([1, 1, 2])):
            if phase:
                yield FLUSH
            yield from self.bulk()
            yield from (self.statement() for _ in range(r.randint(20, 90)))
        if self.dropped:
            yield FLUSH
            yield None, f"ALTER TABLE {{ks}}.{self.name} DROP {self.dropped.name}"
            self.regulars.remove(self.dropped)
            yield None, f"ALTER TABLE {{ks}}.{self.name} ADD added text"
            self.regulars.append(Column("added", Type("text"), "regular", r))
            yield from (self.insert() for _ in range(10))

    def bulk(self):
        """Many rows of one partition, or many partitions, so that the file has an index."""
        r = self.r
        if self.shape == "wide":
            self.clusterings[0].values = list(map(str, range(r.choice([400, 1000]))))
            key = self.partition()
            for start in range(0, len(self.clusterings[0].values), 50):
                rows = self.clusterings[0].values[start : start + 50]
                texts = [self.insert_text(key | {"c0": row}, padding=200) for row in rows]
                yield self.timestamp(), f"BEGIN UNLOGGED BATCH {'; '.join(texts)}; APPLY BATCH"
        if self.shape == "many":
            self.keys[0].values = [self.keys[0].type.literal(r) for _ in range(400)]
            self.keys[0].values = [value for value in self.keys[0].values if value not in ("''", "0x")]
            yield from (self.insert() for _ in range(400))

    def timestamp(self, expires=False, least=-1000):
        """Writes may have equal timestamps, except with expiring writes: which of those wins depends on the server's clock."""
        while True:
            made = max(self.any_timestamp(), least) * 2 + bool(expires or self.default_ttl)
            if made not in self.expiring:
                break
        if made % 2:
            self.expiring.add(made)
        return made

    def any_timestamp(self):
        r = self.r
        self.clock += r.choice([0, 1, 1, 1000])
        if r.random() < 0.02:
            # Cassandra fails to read cells that are newer than the drop of their column.
            return r.choice([-1000, 0, 1] + ([] if self.dropped else [2**61, FIRST_TIMESTAMP]))
        return self.clock - (r.randrange(50) if r.random() < 0.2 else 0)

    def statement(self):
        made = self.r.choices([self.insert, self.update, self.delete], [6, 3, 3])[0]()
        return made or self.insert()

    def table(self):
        return f"{{ks}}.{self.name}"

    def partition(self):
        return {column.name: column.value(self.r) for column in self.keys}

    def clustering(self):
        return {column.name: column.value(self.r) for column in self.clusterings}

    def using(self):
        r = self.r
        if r.random() > 0.15:
            return ""
        # Cells with a time to live of one second have expired when they are read.
        return f" USING TTL {r.choice([1, 864_000, NEAR_TTL, self.ttl])}"

    def insert(self):
        key, using = self.partition(), self.using()
        text = self.insert_text(key, self.statics) if self.statics and self.r.random() < 0.1 else self.insert_text(key | self.clustering())
        return self.timestamp(using), text + using

    def insert_text(self, values, columns=None, padding=0):
        r = self.r
        values = (self.clustering() if columns is None else {}) | values
        for column in self.regulars + (self.statics if r.random() < 0.2 else []) if columns is None else columns:
            chance = r.random()
            if chance < 0.7:
                values[column.name] = column.value(r)
                if padding and column.type.name == "text":
                    values[column.name] = quoted(" ".join(r.choices(WORDS, k=padding // 5)))
            elif chance < 0.8:
                values[column.name] = "null"
        if columns and columns[0].name not in values:
            # An INSERT without clustering columns needs a static column.
            values[columns[0].name] = columns[0].value(r)
        return f"INSERT INTO {self.table()} ({', '.join(values)}) VALUES ({', '.join(values.values())})"

    def where(self, values):
        return " AND ".join(f"{name} = {value}" for name, value in values.items())

    def update(self):
        r = self.r
        is_static = bool(self.statics) and r.random() < 0.3
        columns = self.statics if is_static else self.regulars
        if not columns:
            return None
        column = r.choice(columns)
        where = self.partition() if is_static else self.partition() | self.clustering()
        using = self.using()
        return self.timestamp(using), f"UPDATE {self.table()}{using} SET {self.change(column)} WHERE {self.where(where)}"

    def change(self, column):
        r, name, type_ = self.r, column.name, column.type
        if not type_.is_multi_cell or r.random() < 0.2:
            return f"{name} = {column.value(r)}"
        if type_.kind == "udt":
            number = r.randrange(len(type_.fields))
            return f"{name}.{type_.fields[number]} = {type_.parts[number].literal(r)}"
        if type_.kind == "map":
            pick = r.randrange(3)
            key = type_.parts[0].literal(r)
            return [f"{name}[{key}] = {type_.parts[1].literal(r)}", f"{name} = {name} - {{{key}}}", f"{name} = {name} + {type_.literal(r)}"][pick]
        if type_.kind == "list" and r.random() < 0.3:
            return f"{name} = {type_.literal(r)} + {name}"
        return f"{name} = {name} {r.choice('++-')} {type_.literal(r)}"

    def delete(self):
        r = self.r
        # Deletions of partitions and ranges that are older than 1970 make files that Cassandra 5.0 cannot read.
        kind = r.choice(["cell", "row", "range", "range", "partition"])
        head = f"FROM {self.table()} WHERE {self.where(self.partition())}"
        row = "".join(f" AND {name} = {value}" for name, value in self.clustering().items())
        if kind == "cell" and self.regulars + self.statics:
            column = r.choice(self.regulars + self.statics)
            what = column.name
            if column.type.kind == "map" and column.type.is_multi_cell and r.random() < 0.5:
                what = f"{what}[{column.type.parts[0].literal(r)}]"
            return self.timestamp(), f"DELETE {what} {head}{row if column.kind == 'regular' else ''}"
        if kind == "range" and self.clusterings:
            return self.timestamp(least=0), f"DELETE {head}{self.slice()}"
        if kind == "partition" and r.random() < 0.5:
            return self.timestamp(least=0), f"DELETE {head}"
        return self.timestamp(least=0), f"DELETE {head}{row}"

    def slice(self):
        r = self.r
        depth = r.randrange(len(self.clusterings))
        where = "".join(f" AND {column.name} = {column.value(r)}" for column in self.clusterings[:depth])
        column = self.clusterings[depth]
        low, high = column.value(r), column.value(r)
        if column.type.kind == "vector":
            return f"{where} AND {column.name} = {low}"
        if column.type.name == "int":
            low, high = sorted((low, high), key=int)
        bounds = [f"= {low}", f"> {low}", f">= {low}", f"< {high}", f"<= {high}"]
        if low != high:
            bounds.append(f"{r.choice(['>', '>='])} {low} AND {column.name} {r.choice(['<', '<='])} {high}")
        return f"{where} AND {column.name} {r.choice(bounds)}"

    def counted(self):
        r = self.r
        is_static = bool(self.statics) and r.random() < 0.3
        column = r.choice(self.statics if is_static else self.regulars)
        where = self.where(self.partition() if is_static else self.partition() | self.clustering())
        if r.random() < 0.05:
            return self.timestamp(), f"DELETE {column.name} FROM {self.table()} WHERE {where}"
        amount = r.choice([1, 5, 2**40, 0])
        return self.timestamp(), f"UPDATE {self.table()} SET {column.name} = {column.name} {r.choice('+-')} {amount} WHERE {where}"

    # The queries.

    def questions(self):
        yield f"SELECT * FROM {self.table()}"
        # Every column is selected: otherwise Cassandra loses a row whose INSERT expired and that has only older cells of other columns.
        columns = self.regulars + self.statics
        if any(not column.type.is_multi_cell for column in columns) and not self.is_counter:
            asked = (column.name if column.type.is_multi_cell else f"WRITETIME({column.name})" for column in columns)
            yield f"SELECT {', '.join(asked)} FROM {self.table()}"
        if self.clusterings:
            r = random.Random(self.index)
            key = " AND ".join(f"{column.name} = {r.choice(column.values)}" for column in self.keys)
            order = "ASC" if self.clusterings[0].is_reversed else "DESC"
            yield f"SELECT * FROM {self.table()} WHERE {key} ORDER BY {self.clusterings[0].name} {order}"
