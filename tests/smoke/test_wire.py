"""Requests that no driver sends: named values, unknown versions, broken frames. Plain sockets, protocol v4."""

import socket
import struct

import pytest

ERROR, READY, SUPPORTED, RESULT = 0x00, 0x02, 0x06, 0x08
STARTUP, OPTIONS, QUERY = 0x01, 0x05, 0x07
PROTOCOL_ERROR, INVALID = 0x000A, 0x2200
ONE, WITH_VALUES, WITH_NAMES = 0x0001, 0x01, 0x40


def string(text):
    return struct.pack(">H", len(text)) + text.encode()


def long_string(text):
    return struct.pack(">i", len(text)) + text.encode()


def value(content):
    return struct.pack(">i", len(content)) + content


class Wire:
    """A socket that sends and receives frames."""

    def __init__(self, node):
        self.socket = socket.create_connection((node.host, node.port), timeout=30)

    def send(self, opcode, body=b"", version=4, stream=1, length=None):
        length = len(body) if length is None else length
        self.socket.sendall(struct.pack(">BBhBi", version, 0, stream, opcode, length) + body)

    def receive(self):
        version, _, stream, opcode, length = struct.unpack(">BBhBi", self.exactly(9))
        return version, stream, opcode, self.exactly(length)

    def exactly(self, count):
        data = b""
        while len(data) < count:
            piece = self.socket.recv(count - len(data))
            assert piece, "the server closed the connection"
            data += piece
        return data

    def ask(self, opcode, body=b"", **head):
        self.send(opcode, body, **head)
        return self.receive()

    def startup(self):
        options = struct.pack(">H", 1) + string("CQL_VERSION") + string("3.0.0")
        assert self.ask(STARTUP, options)[2] == READY

    def is_closed(self):
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True


@pytest.fixture
def wire(node):
    wire = Wire(node)
    yield wire
    wire.socket.close()


def error_of(body):
    [code, length] = struct.unpack(">iH", body[:6])
    return code, body[6 : 6 + length].decode()


def test_values_can_be_named_on_the_wire(wire, session, fresh):
    name = fresh("named")
    session.execute(f"CREATE TABLE {name} (k int PRIMARY KEY, v text)")
    wire.startup()
    text = f"INSERT INTO {session.keyspace}.{name} (k, v) VALUES (:key, :content)"
    values = string("content") + value(b"by name") + string("key") + value(struct.pack(">i", 7))
    body = long_string(text) + struct.pack(">HBH", ONE, WITH_VALUES | WITH_NAMES, 2) + values
    assert wire.ask(QUERY, body)[2] == RESULT
    assert tuple(session.execute(f"SELECT k, v FROM {name}").one()) == (7, "by name")


def test_options_are_answered_before_startup(wire):
    _, stream, opcode, body = wire.ask(OPTIONS, stream=77)
    assert (stream, opcode) == (77, SUPPORTED)
    for word in (b"CQL_VERSION", b"COMPRESSION", b"lz4", b"snappy", b"5/v5"):
        assert word in body


@pytest.mark.parametrize("version", [1, 2, 66])
def test_an_unsupported_version_is_answered_with_what_is_supported(wire, version):
    wire.send(OPTIONS, version=version)
    # Versions 1 and 2 have stream ids of one byte, in requests and in answers.
    opcode, length = struct.unpack(">Bi", wire.exactly(9 if version > 2 else 8)[-5:])
    code, message = error_of(wire.exactly(length))
    assert opcode == ERROR and code == PROTOCOL_ERROR
    assert "Invalid or unsupported protocol version" in message and "5/v5" in message


def test_a_frame_beyond_the_limit_is_passed_over_and_refused(wire):
    wire.startup()
    _, stream, opcode, body = wire.ask(QUERY, b"x" * (17 << 20), stream=9)
    assert (stream, opcode) == (9, ERROR)
    length = 9 + (17 << 20)
    assert error_of(body) == (INVALID, f"Request is too big: length {length} exceeds maximum allowed length {16 << 20}.")
    wire.send(OPTIONS, stream=10)
    assert wire.receive()[1:3] == (10, SUPPORTED)


def test_a_broken_body_is_an_error_on_its_stream_and_no_more(wire):
    wire.startup()
    _, stream, opcode, body = wire.ask(QUERY, b"\x7f\xff\xff\xff", stream=9)
    assert (stream, opcode) == (9, ERROR)
    assert error_of(body)[0] == PROTOCOL_ERROR
    wire.send(OPTIONS, stream=10)
    assert wire.receive()[1:3] == (10, SUPPORTED)


def test_a_query_before_startup_is_refused(wire):
    body = long_string("SELECT key FROM system.local") + struct.pack(">HB", ONE, 0)
    _, _, opcode, answer = wire.ask(QUERY, body)
    assert opcode == ERROR and error_of(answer)[0] == PROTOCOL_ERROR
