"""Random CQL types and literals for check_random_sstables.py."""

import datetime
import ipaddress
import uuid

INTEGERS = {"tinyint": 8, "smallint": 16, "int": 32, "bigint": 64}
SCALARS = ["ascii", "bigint", "blob", "boolean", "date", "decimal", "double", "duration", "float", "inet", "int", "smallint",
           "text", "time", "timestamp", "timeuuid", "tinyint", "uuid", "varint"]
WORDS = "alder beech cedar elm fir hazel ivy larch maple oak pine rowan spruce teak".split()
ODD_TEXTS = ["", " ", "it's", "tab\there", "Ω≈ç√", "日本語", "🜁🜂", "line\nbreak", '"quoted" \\ back', "\x7f", "é" * 40]
EXTREMES = {
    "date": ["0", "4294967295", "2147483648"],
    "decimal": ["-0.000000000000000000000000000000000001", "123456789012345678901234567890E20", "0"],
    "double": ["-1.7976931348623157E308", "4.9E-324", "NaN", "Infinity", "-0.0"],
    "duration": ["-178956970mo", "1y2mo3w4d5h6m7s8ms9us10ns", "0s"],
    "float": ["-3.4028235E38", "1.4E-45", "NaN", "-Infinity", "-0.0"],
    "time": ["'00:00:00'", "'23:59:59.999999999'"],
    "timestamp": ["-62135596800000", "253402300799999", "0"],
    "timeuuid": ["00000000-0000-1000-8080-808080808080", "ffffffff-ffff-1fff-bf7f-7f7f7f7f7f7f"],
    "uuid": ["00000000-0000-0000-0000-000000000000", "ffffffff-ffff-4fff-bfff-ffffffffffff"],
}


def quoted(text):
    return "'" + text.replace("'", "''") + "'"


class Type:
    """A type: its name in CQL, and literals of it."""

    def __init__(self, name, parts=(), kind="scalar", fields=(), size=0):
        self.name, self.parts, self.kind, self.fields, self.size = name, parts, kind, fields, size

    @property
    def is_multi_cell(self):
        return self.kind in ("list", "set", "map", "udt") and not self.name.startswith("frozen")

    def has(self, name):
        return self.name == name or any(part.has(name) for part in self.parts)

    def frozen(self):
        return Type(f"frozen<{self.name}>", self.parts, self.kind, self.fields, self.size) if self.is_multi_cell else self

    def literal(self, r):
        return getattr(self, "_" + self.kind)(r)

    def _scalar(self, r):
        return scalar(self.name, r)

    def _some(self, part, r, least=1):
        return [part.literal(r) for _ in range(r.randint(least, 4))]

    def _list(self, r):
        return "[" + ", ".join(self._some(self.parts[0], r)) + "]"

    # Keys are not repeated: of equal keys Cassandra keeps any one, not always the same.

    def _set(self, r):
        return "{" + ", ".join(sorted(set(self._some(self.parts[0], r)))) + "}"

    def _map(self, r):
        keys = sorted(set(self._some(self.parts[0], r)))
        return "{" + ", ".join(f"{key}: {self.parts[1].literal(r)}" for key in keys) + "}"

    def _tuple(self, r):
        return "(" + ", ".join(part.literal(r) if r.random() < 0.8 else "null" for part in self.parts) + ")"

    def _udt(self, r):
        named = [f"{name}: {part.literal(r)}" for name, part in zip(self.fields, self.parts) if r.random() < 0.8]
        return "{" + ", ".join(named or [f"{self.fields[0]}: null"]) + "}"

    def _vector(self, r):
        return "[" + ", ".join(self.parts[0].literal(r) for _ in range(self.size)) + "]"


def scalar(name, r):
    if name in EXTREMES and r.random() < 0.2:
        return r.choice(EXTREMES[name])
    if name in INTEGERS:
        bits = INTEGERS[name]
        return str(r.choice([r.getrandbits(bits) - (1 << (bits - 1)), r.randint(-9, 9), -(1 << (bits - 1)), (1 << (bits - 1)) - 1]))
    if name == "timeuuid":
        return str(uuid.UUID(fields=(r.getrandbits(32), r.getrandbits(16), 0x1000 | r.getrandbits(12), 0x80 | r.getrandbits(6),
                                     r.getrandbits(8), r.getrandbits(48))))
    return {
        "ascii": lambda: quoted(" ".join(r.choices(WORDS, k=r.randint(0, 3)))),
        "text": lambda: quoted(r.choice([" ".join(r.choices(WORDS, k=r.randint(1, 5))), r.choice(ODD_TEXTS)])),
        "blob": lambda: "0x" + r.randbytes(r.choice([0, 1, 5, 40])).hex(),
        "boolean": lambda: r.choice(["true", "false"]),
        "date": lambda: quoted(str(datetime.date(1600, 1, 1) + datetime.timedelta(days=r.randrange(300_000)))),
        "decimal": lambda: f"{r.choice(['', '-'])}{1 + r.getrandbits(r.choice([4, 30, 120]))}.{r.getrandbits(r.choice([3, 20, 60]))}",
        "double": lambda: repr(r.choice([r.gauss(0, 1), r.gauss(0, 1e200), float(r.randint(-5, 5))])),
        "duration": lambda: f"{r.choice(['', '-'])}{r.randint(0, 30)}mo{r.randint(0, 40)}d{r.randint(0, 10**13)}ns",
        "float": lambda: repr(round(r.gauss(0, 1e6), 3)),
        "inet": lambda: quoted(str(r.choice([ipaddress.IPv4Address(r.getrandbits(32)), ipaddress.IPv6Address(r.getrandbits(128))]))),
        "time": lambda: quoted(f"{r.randint(0, 23):02}:{r.randint(0, 59):02}:{r.randint(0, 59):02}.{r.randrange(10**9):09}"),
        "timestamp": lambda: str(r.randint(-(10**13), 10**13)),
        "uuid": lambda: str(uuid.UUID(int=r.getrandbits(128), version=4)),
        "varint": lambda: str(r.getrandbits(r.choice([3, 8, 64, 200])) * r.choice([1, -1])),
    }[name]()


class Types:
    """Makes types, and the user-defined types that they need."""

    def __init__(self, r, prefix):
        self.r, self.prefix = r, prefix
        self.statements = []
        self.made = []

    def scalar(self, comparable=False):
        return Type(self.r.choice([name for name in SCALARS if not (comparable and name == "duration")]))

    def nested(self, depth=0, comparable=False):
        """A type that is possible inside other types and in keys: frozen."""
        if depth >= 3 or self.r.random() < 0.6:
            return self.scalar(comparable)
        return self.composed(depth, comparable).frozen()

    def composed(self, depth=0, comparable=False):
        kind = self.r.choice(["list", "set", "map", "tuple", "udt", "vector"])

        def inner(is_key=False):
            return self.nested(depth + 1, comparable or is_key)

        if kind == "list":
            part = inner()
            return Type(f"list<{part.name}>", (part,), kind)
        if kind == "set":
            part = inner(True)
            return Type(f"set<{part.name}>", (part,), kind)
        if kind == "map":
            parts = inner(True), inner()
            return Type(f"map<{parts[0].name}, {parts[1].name}>", parts, kind)
        if kind == "tuple":
            parts = tuple(inner() for _ in range(self.r.randint(1, 4)))
            return Type(f"tuple<{', '.join(part.name for part in parts)}>", parts, kind)
        if kind == "vector":
            part, size = inner(), self.r.randint(1, 5)
            return Type(f"vector<{part.name}, {size}>", (part,), kind, size=size)
        return self.user_type(depth, comparable)

    def user_type(self, depth, comparable):
        known = [made for made in self.made if not (comparable and made.has("duration"))]
        if known and self.r.random() < 0.3:
            return self.r.choice(known)
        parts = tuple(self.nested(depth + 1, comparable) for _ in range(self.r.randint(1, 4)))
        fields = tuple(f"f{number}" for number in range(len(parts)))
        made = Type(f"{self.prefix}_{len(self.made)}", parts, "udt", fields)
        listed = ", ".join(f"{field} {part.name}" for field, part in zip(fields, parts))
        self.statements.append(f"CREATE TYPE {{ks}}.{made.name} ({listed})")
        self.made.append(made)
        return made
