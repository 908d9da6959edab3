"""Random statements with TTLs to two servers, at times that the requests give; every answer must be the same, byte for byte.

    python3 scripts/compare_expiry.py HOST:PORT HOST:PORT [SEED [STATEMENTS [COMMAND..]]]

The statements are those of `compare_features.py`, with short TTLs. Requests of protocol v5 give the time at which they are executed
(`now_in_seconds`); it advances by a second or some more from one statement to the next. It begins far in the future, so that flushes and
compactions, which go by the clock, remove no data. Arguments and output are those of `compare_random.py`. FAMILY is that of
`compare_features.py`, without counters, which have no TTL, and without indexes: Cassandra 5.0 also finds values that have expired at the time
of the request.

Cassandra leaves out rows whose INSERT has expired and whose living values are older and not selected (docs/compatibility.md). So LIMIT and COUNT
are left out here, and an answer with more rows is right if SELECT * shows the same rows on both servers.
"""

import os
import re
import struct
import time
import zlib

import compare_features
from compare_answers import PAGE_SIZE, PAGING_STATE, QUERY, TIMESTAMP, Server, decode, long_string
from compare_features import is_known
from compare_random import CONSISTENCY, run

NOW_IN_SECONDS = 0x100
VERSION = 5
AHEAD_SECS = 1000 * 86_400
HEADER_CRC_START, HEADER_CRC_POLYNOMIAL = 0x875060, 0x1974F0B
PAYLOAD_CRC_START = zlib.crc32(b"\xfa\x2d\x55\xca")
SELF_CONTAINED = 1 << 17


def header_crc(value):
    """CRC-24 of the three bytes of a segment's header."""
    crc = HEADER_CRC_START
    for _ in range(3):
        crc ^= (value & 0xFF) << 16
        value >>= 8
        for _ in range(8):
            crc <<= 1
            if crc & 0x1000000:
                crc ^= HEADER_CRC_POLYNOMIAL
    return crc


class TimedServer(Server):
    """A connection, protocol v5. Each query gives the time at which it is executed."""

    now = 0

    def __init__(self, address):
        self.is_framed = False
        self.received = b""
        super().__init__(address)

    def ask(self, opcode, body):
        envelope = struct.pack(">BBhBi", VERSION, 0, 0, opcode, len(body)) + body
        self.socket.sendall(self.segment(envelope) if self.is_framed else envelope)
        _, flags, _, opcode, length = struct.unpack(">BBhBi", self.exactly(9))
        body = self.exactly(length)
        # The answer to STARTUP is the last one without segments.
        self.is_framed = True
        return opcode, flags, body

    @staticmethod
    def segment(envelope):
        assert len(envelope) < SELF_CONTAINED
        header = len(envelope) | SELF_CONTAINED
        crc = zlib.crc32(envelope, PAYLOAD_CRC_START)
        return header.to_bytes(3, "little") + header_crc(header).to_bytes(3, "little") + envelope + crc.to_bytes(4, "little")

    def exactly(self, count):
        if not self.is_framed:
            return super().exactly(count)
        while len(self.received) < count:
            header = int.from_bytes(super().exactly(6)[:3], "little")
            self.received += super().exactly(header & (SELF_CONTAINED - 1))
            super().exactly(4)
        taken, self.received = self.received[:count], self.received[count:]
        return taken

    def page(self, text, timestamp, page, consistency=1, state=None):
        flags, place = PAGE_SIZE | TIMESTAMP | NOW_IN_SECONDS, b""
        if state is not None:
            flags |= PAGING_STATE
            place = struct.pack(">i", len(state)) + state
        params = struct.pack(">HIi", consistency, flags, page) + place + struct.pack(">qi", timestamp, TimedServer.now)
        return decode(*self.ask(QUERY, long_string(text) + params))


class Expiring:
    """Statements with short TTLs, and the TTLs of what is stored."""

    def create(self):
        text = super().create()
        if self.chance.random() < 0.3:
            text += f"{' AND' if ' WITH ' in text else ' WITH'} default_time_to_live = {self.chance.choice([20, 60])}"
        return text

    def using(self, ttl=True):
        text = super().using(False)
        if not ttl or self.chance.random() < 0.4:
            return text
        return f"{text + ' AND' if text else 'USING'} TTL {self.chance.choice([0, 1, 3, 10, 30, 100])}"

    def what(self):
        text = super().what()
        return "*" if text == "COUNT(*)" else text

    def read(self):
        return re.sub(r"( PER PARTITION)? LIMIT \d+", "", super().read())

    def expression(self):
        column = self.chance.choice(self.columns)
        if column in self.partition + self.clustering or self.chance.random() < 0.6:
            return super().expression()
        choices = [f"TTL({column.name})"]
        if column.form in ("set", "map"):
            choices.append(f"TTL({column.name}[{column.element()}])")
        if column.form == "udt":
            choices.append(f"TTL({column.name}.a)")
        return self.chance.choice(choices)


FAMILIES = {
    name: type(f"Expiring{compare_features.FAMILIES[name].__name__}", (Expiring, compare_features.FAMILIES[name]), {})
    for name in ("plain", "viewed", "conditional")
}


def make_tables(chance, servers):
    return compare_features.make_tables(chance, servers, FAMILIES)


def ask(chance, servers, text, timestamp, page):
    """The statement as it is shown to people, and the answers of the servers."""
    TimedServer.now += chance.choice([0, 0, 0, 1, 1, 2, 5])
    shown = f"{text}\n  at {TimedServer.now}"
    answers = [server.all_pages(text, timestamp, page, CONSISTENCY) for server in servers]
    if answers[0] != answers[1] and text.startswith("SELECT") and is_part(answers[0].get("rows"), answers[1].get("rows")):
        whole = re.sub(r"^SELECT .*? FROM ", "SELECT * FROM ", text)
        return f"{shown}\n  {whole}", [server.all_pages(whole, timestamp, page, CONSISTENCY) for server in servers]
    return shown, answers


def is_part(some, all_rows):
    """True if the first rows are among the second ones, in the same order."""
    rest = iter(all_rows or [])
    return some is not None and all(row in rest for row in some)


if __name__ == "__main__":
    TimedServer.now = int(os.environ.get("NOW", time.time() + AHEAD_SECS))
    run(__doc__, make_tables=make_tables, is_known=is_known, ask=ask, server=TimedServer)
