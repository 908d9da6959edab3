"""Random prepared statements to two servers; the descriptions of their markers and all answers must be the same, byte for byte.

    python3 scripts/compare_prepared.py HOST:PORT HOST:PORT [SEED [STATEMENTS [COMMAND..]]]

The statements are those of `compare_features.py` with markers in place of some values. Most markers are bound to the value that they replace, the
others to null, to no value (unset), or to random bytes. Arguments and output are those of `compare_random.py`; FAMILY is that of
`compare_features.py`.
"""

import decimal
import ipaddress
import re
import struct
import uuid

from compare_answers import PAGE_SIZE, PAGING_STATE, RESULT, TIMESTAMP, Input, Server, decode, joined_pages, long_string
from compare_features import is_known, make_tables
from compare_random import CONSISTENCY, run

PREPARE, EXECUTE, PREPARED = 0x09, 0x0A, 4
WITH_VALUES = 0x01
UNSET = object()
BOOLEAN, DECIMAL = 0x04, 0x06
LIST, MAP, SET, UDT, TUPLE = 0x20, 0x21, 0x22, 0x30, 0x31
TOKEN = re.compile(
    r"(?P<text>'(?:[^']|'')*')|(?P<uuid>[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})|(?P<blob>0x[0-9a-f]*)"
    r"|(?P<word>[A-Za-z_]\w*)|(?P<number>-?\d+(?:\.\d+)?(?:e\d+)?)|(?P<space>\s+)|(?P<sign>.)",
    re.S,
)
LITERALS = ("text", "uuid", "blob", "number")
CLOSING = {"(": ")", "[": "]", "{": "}"}
DATES = {"'1969-12-31'": -1, "'2024-02-29'": 19782, "'2024-03-01'": 19783}
TIMES = {"'00:00:00'": 0, "'12:30:00.000000001'": 45_000_000_000_001}
TIMESTAMPS = {"'1969-12-31T23:59:59.999Z'": -1, "'2024-02-29T12:00:00Z'": 1_709_208_000_000}


class Literal(str):
    """The text of a value that a marker may replace."""


def end_of_group(tokens, at):
    """The position behind the bracket that closes the one at this position."""
    depth = 0
    for end in range(at, len(tokens)):
        depth += tokens[end] in CLOSING
        depth -= tokens[end] in CLOSING.values()
        if depth == 0:
            return end + 1
    return len(tokens)


def pieces(text):
    """The statement in pieces: whole literals of scalars, collections and tuples, and the texts between them."""
    found = [(match.lastgroup, match.group()) for match in TOKEN.finditer(text)]
    tokens = [token for _, token in found]
    at = 0
    while at < len(found):
        kind, token = found[at]
        before = "".join(tokens[:at]).rstrip()
        is_value = before.endswith(("=", "<", ">", "+", "-", "(", ",", " IN", "CONTAINS", "KEY"))
        is_group = token in CLOSING and is_value and not before.endswith("BATCH")
        if kind in LITERALS or token in ("true", "false", "null"):
            yield Literal(token)
        elif is_group and not (at and found[at - 1][0] == "word"):
            end = end_of_group(tokens, at)
            group = "".join(tokens[at:end])
            if all(kind in (*LITERALS, "space", "sign") or word in ("true", "false", "null", "a", "b") for kind, word in found[at:end]):
                yield Literal(group)
                at = end
                continue
            yield token
        else:
            yield token
        at += 1


def with_markers(chance, text):
    """The statement with some values replaced by markers, and these values."""
    if text.startswith(("ALTER", "CREATE")):
        return text, []
    share = chance.choice([0.1, 0.5, 1])
    named = chance.random() < 0.1
    result, values = "", []
    for piece in pieces(text):
        if not isinstance(piece, Literal):
            result += piece
        elif chance.random() >= share:
            result += group_with_markers(chance, piece, values) if piece[0] in CLOSING and not named else piece
        else:
            values.append(piece)
            result += f":m{len(values) % 4}" if named else "?"
    return result, values


def group_with_markers(chance, group, values):
    """A group in which some scalars are replaced."""
    result = ""
    for match in TOKEN.finditer(group):
        if match.lastgroup in LITERALS and chance.random() < 0.5:
            values.append(Literal(match.group()))
            result += "?"
        else:
            result += match.group()
    return result


def members(group):
    """The members of a collection or tuple."""
    tokens = [match.group() for match in TOKEN.finditer(group)][1:-1]
    found, depth = [""], 0
    for token in tokens:
        depth += token in CLOSING
        depth -= token in CLOSING.values()
        if token == "," and depth == 0:
            found.append("")
        else:
            found[-1] += token
    return [member.strip() for member in found if member.strip()]


def entry(member):
    """Key and value of an entry of a map or user type."""
    tokens = [match.group() for match in TOKEN.finditer(member)]
    at = tokens.index(":")
    return "".join(tokens[:at]).strip(), "".join(tokens[at + 1 :]).strip()


def sized(value):
    return struct.pack(">i", -1) if value is None else struct.pack(">i", len(value)) + value


def integer(text):
    number = int(text)
    return number.to_bytes((number if number >= 0 else ~number).bit_length() // 8 + 1, "big", signed=True)


def decimal_value(text):
    sign, digits, exponent = decimal.Decimal(text).as_tuple()
    number = int("".join(map(str, digits))) * (-1 if sign else 1)
    return struct.pack(">i", -exponent) + integer(number)


def unquoted(text):
    if text[0] != "'":
        raise ValueError(text)
    return text[1:-1].replace("''", "'")


def of_table(values, form, text):
    return struct.pack(form, values[text] if text in values else int(text))


PACKED = {0x02: ">q", 0x05: ">q", 0x07: ">d", 0x08: ">f", 0x09: ">i", 0x13: ">h", 0x14: ">b"}


def encode(kind, text):
    """The bytes of a literal as a value of a type. Raises an error if it is no literal of this type."""
    if text == "null":
        return None
    if isinstance(kind, tuple):
        return encode_parts(kind, text)
    if kind in (0x07, 0x08):
        return struct.pack(PACKED[kind], float(text))
    if kind in PACKED:
        return struct.pack(PACKED[kind], int(text))
    scalars = {
        0x01: lambda: unquoted(text).encode(),
        0x03: lambda: bytes.fromhex(text.removeprefix("0x")),
        BOOLEAN: lambda: bytes([{"false": 0, "true": 1}[text]]),
        DECIMAL: lambda: decimal_value(text),
        0x0B: lambda: of_table(TIMESTAMPS, ">q", text),
        0x0C: lambda: uuid.UUID(text).bytes,
        0x0D: lambda: unquoted(text).encode(),
        0x0E: lambda: integer(text),
        0x0F: lambda: uuid.UUID(text).bytes,
        0x10: lambda: ipaddress.ip_address(unquoted(text)).packed,
        0x11: lambda: struct.pack(">I", DATES[text] + (1 << 31)),
        0x12: lambda: of_table(TIMES, ">q", text),
    }
    return scalars[kind]()


def encode_parts(kind, text):
    found = members(text)
    if kind[0] in (LIST, SET):
        return struct.pack(">i", len(found)) + b"".join(sized(encode(kind[1], member)) for member in found)
    if kind[0] == MAP:
        pairs = [entry(member) for member in found]
        return struct.pack(">i", len(pairs)) + b"".join(sized(encode(kind[1], key)) + sized(encode(kind[2], value)) for key, value in pairs)
    if kind[0] == UDT:
        values = dict(entry(member) for member in found)
        return b"".join(sized(encode(of_field, values.get(name, "null"))) for name, of_field in kind[2])
    return b"".join(sized(encode(of_member, member)) for of_member, member in zip(kind[1], found, strict=True))


def bound(chance, marker, text, statement):
    """The value for a marker: bytes, null, or unset; and whether it is that of the literal."""
    _, _, name, kind = marker
    luck = chance.random()
    # See docs/compatibility.md: rows up to null are not deleted; IN with null; null and unset keys of elements; unset fields of literals.
    is_element = name.startswith(("key(", "value("))
    if luck < 0.04 and "DELETE" not in statement and not is_element and " IN (" not in statement:
        return None, False
    if 0.04 < luck < 0.06 and "." not in name and not is_element:
        return UNSET, False
    # Some booleans and decimals are equal and have different bytes.
    if 0.06 < luck < 0.08 and not isinstance(kind, tuple) and kind not in (BOOLEAN, DECIMAL):
        return bytes(chance.randrange(256) for _ in range(chance.randrange(9))), False
    try:
        return encode(kind, text), True
    except (ArithmeticError, KeyError, ValueError, IndexError, struct.error):
        return bytes(chance.randrange(4)), False


class PreparingServer(Server):
    """A server that is sent prepared statements."""

    def prepare(self, text):
        """The description of a statement; `id` differs between servers."""
        opcode, flags, body = self.ask(PREPARE, long_string(text))
        source = Input(body)
        source.skip_warnings(flags)
        if opcode != RESULT or source.number("i") != PREPARED:
            return decode(opcode, flags, body)
        identity = source.take(source.number("H"))
        flags, count = source.number("i"), source.number("i")
        keys = [source.number("H") for _ in range(source.number("i"))]
        markers = source.columns(count, flags & 1)
        return {"id": identity, "keys": keys, "columns": markers, "result": source.body[source.at :]}

    def execute(self, prepared, values, timestamp, page):
        """The rows of all pages."""
        return joined_pages(lambda state: self.execute_page(prepared, values, timestamp, page, state))

    def execute_page(self, prepared, values, timestamp, page, state):
        flags = WITH_VALUES | PAGE_SIZE | TIMESTAMP | (PAGING_STATE if state is not None else 0)
        coded = b"".join(struct.pack(">i", -2) if value is UNSET else sized(value) for value in values)
        identity = prepared["id"]
        body = struct.pack(">H", len(identity)) + identity + struct.pack(">HBH", CONSISTENCY, flags, len(values)) + coded
        body += struct.pack(">i", page) + (sized(state) if state is not None else b"") + struct.pack(">q", timestamp)
        return decode(*self.ask(EXECUTE, body))


def ask(chance, servers, text, timestamp, page):
    """The statement as it is shown to people, and the answers of the servers."""
    text, literals = with_markers(chance, text)
    prepared = [server.prepare(text) for server in servers]
    described = [{key: value for key, value in answer.items() if key != "id"} for answer in prepared]
    if "error" in described[1]:
        # Cassandra prints named markers as `?`.
        described[1]["message"] = re.sub(r":m\d", "?", described[1]["message"])
    if described[0] != described[1] or "error" in described[0]:
        return text, described
    drawn = [bound(chance, marker, literal, text) for marker, literal in zip(prepared[0]["columns"], literals)]
    values = [value for value, _ in drawn]
    answers = [server.execute(one, values, timestamp, page) for server, one in zip(servers, prepared)]
    if not all(is_literal for _, is_literal in drawn):
        # Which of several invalid values is named, and how, may differ.
        for answer in answers:
            answer.pop("message", None)
    shown = ["unset" if value is UNSET else value if value is None else value.hex() for value in values]
    return f"{text}\n  {shown}", answers


def is_known_difference(text, answers):
    """True if the reason is known, or if Cassandra finds another error first: it resolves operators before it looks at WHERE."""
    is_other_error = answers[0].get("message", "").startswith("Ambiguous '") and "error" in answers[1]
    return is_other_error or is_known(text, answers)


if __name__ == "__main__":
    run(__doc__, make_tables=make_tables, is_known=is_known_difference, ask=ask, server=PreparingServer)
