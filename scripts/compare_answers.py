"""Sends the same statements to two servers and shows where their answers differ: columns, types, bytes of values, codes and texts of
errors.

    python3 scripts/compare_answers.py HOST:PORT HOST:PORT [FILE...]

The statements are those of crates/query/testdata (or of the named files); one of the servers should be a real Cassandra. Every
keyspace that is not the server's own is dropped before each file. This program sets the timestamps, so both servers write the same
ones. Cases that need a stopped clock or bound values are skipped.

Both servers may want logins; then the role `cassandra` must have the password `cassandra` (PasswordAuthenticator and
CassandraAuthorizer; an Ilion is started with ILION_SUPERUSER_PASSWORD=cassandra), and its other roles are dropped before each
file. The files of crates/query/testdata/access are for such servers only.
"""

import glob
import os
import re
import socket
import struct
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
ERROR, RESULT, STARTUP, QUERY, BATCH = 0x00, 0x08, 0x01, 0x07, 0x0D
AUTHENTICATE, AUTH_RESPONSE, AUTH_SUCCESS = 0x03, 0x0F, 0x10
SUPERUSER = "cassandra"
WARNINGS = 0x08
ROWS, SET_KEYSPACE, SCHEMA_CHANGE = 2, 3, 5
PAGE_SIZE, PAGING_STATE, TIMESTAMP = 0x04, 0x08, 0x20
BATCH_KINDS = {"logged": 0, "unlogged": 1, "counter": 2}
FIRST_TIMESTAMP = 1_700_000_000_000_000


class Input:
    """Reads the basic types of the protocol."""

    def __init__(self, body):
        self.body = body
        self.at = 0

    def take(self, count):
        self.at += count
        return self.body[self.at - count : self.at]

    def number(self, form):
        [number] = struct.unpack(">" + form, self.take(struct.calcsize(form)))
        return number

    def string(self):
        return self.take(self.number("H")).decode()

    def bytes(self):
        length = self.number("i")
        return None if length < 0 else self.take(length)

    def skip_warnings(self, flags):
        """Skips the warnings of an answer with these flags."""
        if flags & WARNINGS:
            for _ in range(self.number("H")):
                self.string()

    def columns(self, count, have_same_table):
        """Keyspace, table, name and type of each column or marker."""
        table = (self.string(), self.string()) if have_same_table else None
        return [(*(table or (self.string(), self.string())), self.string(), self.option()) for _ in range(count)]

    def option(self):
        kind = self.number("H")
        if kind == 0x00:
            return self.string()
        if kind in (0x20, 0x22):
            return (kind, self.option())
        if kind == 0x21:
            return (kind, self.option(), self.option())
        if kind == 0x30:
            names = (self.string(), self.string())
            return (kind, names, [(self.string(), self.option()) for _ in range(self.number("H"))])
        if kind == 0x31:
            return (kind, [self.option() for _ in range(self.number("H"))])
        return kind


def rows(source):
    """Columns, rows, and the paging state."""
    flags, count = source.number("i"), source.number("i")
    state = source.bytes() if flags & 2 else None
    columns = source.columns(count, flags & 1)
    cells = [[source.bytes() for _ in range(count)] for _ in range(source.number("i"))]
    return {"columns": columns, "rows": cells, "state": state}


def decode(opcode, flags, body):
    """The content of an answer, without the parts that may differ between equal servers."""
    source = Input(body)
    source.skip_warnings(flags)
    if opcode == ERROR:
        return {"error": hex(source.number("i")), "message": source.string()}
    assert opcode == RESULT, opcode
    kind = source.number("i")
    if kind == ROWS:
        return rows(source)
    if kind == SET_KEYSPACE:
        return {"keyspace": source.string()}
    if kind == SCHEMA_CHANGE:
        return {"change": body[source.at :]}
    return {"kind": kind}


def joined_pages(page_at):
    """An answer with the rows of all pages. `page_at` asks for the page at a paging state, for the first one at None."""
    answer = page_at(None)
    state = answer.pop("state", None)
    while state is not None:
        more = page_at(state)
        if "rows" not in more:
            return more
        answer["rows"] += more["rows"]
        state = more["state"]
    return answer


class Server:
    """A connection, protocol v4."""

    def __init__(self, address, role=SUPERUSER):
        host, port = address.rsplit(":", 1)
        self.address = address
        self.socket = socket.create_connection((host, int(port)), timeout=120)
        opcode, _, _ = self.ask(STARTUP, struct.pack(">H", 1) + string("CQL_VERSION") + string("3.0.0"))
        self.has_logins = opcode == AUTHENTICATE
        self.refused = self.log_in(role) if self.has_logins else {}

    def log_in(self, role):
        """Logs in; every role has its name for a password. Returns the error, if there is one."""
        opcode, flags, body = self.ask(AUTH_RESPONSE, long_string(f"\0{role}\0{role}"))
        return {} if opcode == AUTH_SUCCESS else decode(opcode, flags, body)

    def become(self, role):
        """Connects again as a role."""
        self.socket.close()
        self.__init__(self.address, role)
        return self.refused

    def ask(self, opcode, body):
        self.socket.sendall(struct.pack(">BBhBi", 4, 0, 0, opcode, len(body)) + body)
        _, flags, _, opcode, length = struct.unpack(">BBhBi", self.exactly(9))
        return opcode, flags, self.exactly(length)

    def exactly(self, count):
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            assert piece, f"{self.address} closed the connection"
            data += piece
        return data

    def query(self, text, timestamp, page=5000, consistency=1):
        """One page, and whether there is a paging state."""
        answer = self.page(text, timestamp, page, consistency)
        if "only Java UDFs" in answer.get("message", ""):
            # The one body of a function that is the same in both languages, but for its semicolon.
            in_java = text.replace("LANGUAGE lua AS 'return a'", "LANGUAGE java AS 'return a;'")
            answer = self.page(in_java, timestamp, page, consistency)
        if "rows" in answer:
            answer["more"] = answer.pop("state") is not None
        return answer

    def all_pages(self, text, timestamp, page, consistency=1):
        """The rows of all pages."""
        return joined_pages(lambda state: self.page(text, timestamp, page, consistency, state))

    def page(self, text, timestamp, page, consistency=1, state=None):
        flags, place = PAGE_SIZE | TIMESTAMP, b""
        if state is not None:
            flags |= PAGING_STATE
            place = struct.pack(">i", len(state)) + state
        params = struct.pack(">HBi", consistency, flags, page) + place + struct.pack(">q", timestamp)
        return decode(*self.ask(QUERY, long_string(text) + params))

    def batch(self, kind, texts, timestamp):
        members = b"".join(b"\x00" + long_string(text) + b"\x00\x00" for text in texts)
        head = struct.pack(">BH", BATCH_KINDS[kind], len(texts))
        return decode(*self.ask(BATCH, head + members + struct.pack(">HBq", 1, TIMESTAMP, timestamp)))

    def forget(self):
        """Drops all keyspaces except the server's own, and leaves the current one by connecting again."""
        self.become(SUPERUSER)
        names = self.query("SELECT keyspace_name FROM system_schema.keyspaces", FIRST_TIMESTAMP)["rows"]
        for [name] in names:
            if not name.startswith(b"system"):
                self.query(f'DROP KEYSPACE "{name.decode()}"', FIRST_TIMESTAMP)
        if self.has_logins:
            for [name] in self.query("SELECT role FROM system_auth.roles", FIRST_TIMESTAMP)["rows"]:
                if name.decode() != SUPERUSER:
                    self.query(f"DROP ROLE '{name.decode()}'", FIRST_TIMESTAMP)
        self.become(SUPERUSER)


def string(text):
    return struct.pack(">H", len(text)) + text.encode()


def long_string(text):
    return struct.pack(">i", len(text.encode())) + text.encode()


def split(text):
    """The statements of a text; semicolons in strings, names, comments and BEGIN .. APPLY do not count."""
    token = re.compile(r"'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|\$\$.*?\$\$|--[^\n]*|//[^\n]*|/\*.*?\*/|;|\w+|.", re.S)
    statements, current, in_batch = [], "", False
    for part in token.findall(text):
        if part == ";" and not in_batch:
            statements.append(current)
            current = ""
            continue
        if part.upper() == "BEGIN" and not current.strip():
            in_batch = True
        if part.upper() == "APPLY":
            in_batch = False
        current += part
    statements.append(current)
    return [statement for statement in statements if statement.strip()]


def cases(path):
    """Line, directive, arguments and input of each case of a file."""
    line, block = 0, None
    for number, content in enumerate(open(path, encoding="utf-8").read().split("\n"), 1):
        if block is None:
            if content and not content.startswith("#"):
                line, block = number, [content]
        elif content == "----":
            directive, *arguments = block[0].split()
            pairs = dict(argument.partition("=")[::2] for argument in arguments)
            yield line, directive, pairs, "\n".join(block[1:])
            block = ()
        elif block == ():
            if not content:
                block = None
        else:
            block.append(content)


def questions(path):
    """The cases that any server can run: a place and a function of the server."""
    timestamp = FIRST_TIMESTAMP
    for line, directive, arguments, text in cases(path):
        place = f"{os.path.relpath(path, ROOT)}:{line}"
        if "now" in arguments:
            continue
        if directive == "cql":
            for statement in split(text):
                timestamp += 1000
                given = int(arguments.get("timestamp", timestamp))
                page = int(arguments.get("page", 5000))
                consistency = int(arguments.get("consistency", 1))
                yield place, statement.strip(), lambda server, s=statement: server.query(s, given, page, consistency)
        elif directive == "as":
            yield place, f"as {arguments['role']}", lambda server: server.become(arguments["role"])
        elif directive == "anonymous":
            return
        elif directive == "batch" and all(part.startswith("cql ") for part in text.split("\n")):
            timestamp += 1000
            texts = [part[4:] for part in text.split("\n")]
            kind = arguments.get("kind", "logged")
            yield place, text, lambda server: server.batch(kind, texts, timestamp)


def shown(answer):
    lines = []
    for key, value in answer.items():
        if key == "rows":
            lines.append(f"{len(value)} rows")
            lines.extend("  " + " | ".join("null" if cell is None else repr(cell)[1:] for cell in row) for row in value[:12])
        elif key == "columns":
            lines.append(" | ".join(f"{column[2]}: {column[3]}" for column in value))
        else:
            lines.append(f"{key}: {value}")
    return "\n      ".join(lines)


def main(addresses, paths):
    servers = [Server(address) for address in addresses]
    same = different = 0
    for path in paths:
        for server in servers:
            server.forget()
        if "/access/" in path and not all(server.has_logins for server in servers):
            continue
        for place, text, ask in questions(path):
            answers = [ask(server) for server in servers]
            if answers[0] == answers[1]:
                same += 1
                continue
            different += 1
            print(f"{place}\n  {text}")
            for server, answer in zip(servers, answers):
                print(f"    {server.address}\n      {shown(answer)}")
    print(f"{same} answers are the same, {different} differ")
    return 1 if different else 0


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    files = sys.argv[3:] or sorted(glob.glob(os.path.join(ROOT, "crates/query/testdata/**/*.txt"), recursive=True))
    sys.exit(main(sys.argv[1:3], files))
