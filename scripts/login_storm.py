#!/usr/bin/env python3
"""What a storm of wrong passwords costs the reads beside it.

Usage: login_storm.py ILION [--logins 10000] [--addresses 10000] [--clients 400] [--rate 500] [--secs 20]

Starts a node on loopback that wants passwords. Reads by key run all the time; their rate is taken without the storm, with clients that only
connect (so that the cost of the storm's own clients is known), and with the storm: each login has a wrong password and one of so many source
addresses (127.x.y.z, so Linux only). Meanwhile roles log in that have not done so before, and one that has. Prints rates, processor
time of the node's threads, and the times of the right logins. Needs no driver.
"""

import argparse
import itertools
import os
import shutil
import socket
import statistics
import struct
import subprocess
import tempfile
import threading
import time
import multiprocessing
from collections import Counter

ERROR, READY, AUTHENTICATE, AUTH_SUCCESS = 0x00, 0x02, 0x03, 0x10
STARTUP, QUERY, PREPARE, EXECUTE, AUTH_RESPONSE = 0x01, 0x07, 0x09, 0x0A, 0x0F
COLD_ROLES = 60
IN_FLIGHT = 32


def frame(opcode, body, stream=0):
    return struct.pack(">BBhBI", 4, 0, stream, opcode, len(body)) + body


def short(text):
    return struct.pack(">H", len(text)) + text


STARTUP_FRAME = frame(STARTUP, struct.pack(">H", 1) + short(b"CQL_VERSION") + short(b"3.0.0"))


def token(role, password):
    plain = b"\0" + role.encode() + b"\0" + password.encode()
    return frame(AUTH_RESPONSE, struct.pack(">i", len(plain)) + plain)


class Client:
    def __init__(self, port, source="127.0.0.1"):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=60, source_address=(source, 0))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.bytes = b""

    def receive(self):
        while len(self.bytes) < 9 or len(self.bytes) < 9 + struct.unpack(">I", self.bytes[5:9])[0]:
            more = self.socket.recv(1 << 16)
            if not more:
                raise ConnectionError("the node has closed the connection")
            self.bytes += more
        length = 9 + struct.unpack(">I", self.bytes[5:9])[0]
        answer, self.bytes = self.bytes[:length], self.bytes[length:]
        return answer[4], answer[9:]

    def ask(self, request):
        self.socket.sendall(request)
        return self.receive()

    def log_in(self, role, password):
        assert self.ask(STARTUP_FRAME)[0] == AUTHENTICATE
        opcode, body = self.ask(token(role, password))
        return "right" if opcode == AUTH_SUCCESS else f"error {struct.unpack('>I', body[:4])[0]:#06x}"

    def query(self, text):
        text = text.encode()
        opcode, body = self.ask(frame(QUERY, struct.pack(">I", len(text)) + text + struct.pack(">HB", 1, 0)))
        assert opcode != ERROR, body

    def close(self):
        self.socket.close()


def read(port, count):
    """Reads by key, and counts."""
    client = Client(port)
    assert client.log_in("app", "right") == "right"
    text = b"SELECT v FROM storm.rows WHERE k = ?"
    _, body = client.ask(frame(PREPARE, struct.pack(">I", len(text)) + text))
    statement = body[4 : 6 + struct.unpack(">H", body[4:6])[0]]
    requests = b"".join(
        frame(EXECUTE, statement + struct.pack(">HBHii", 1, 1, 1, 4, key), key) for key in range(IN_FLIGHT)
    )
    while True:
        client.socket.sendall(requests)
        for _ in range(IN_FLIGHT):
            assert client.receive()[0] != ERROR
        count.value += IN_FLIGHT


def address(index):
    return f"127.{1 + index // 62500}.{index // 250 % 250}.{1 + index % 250}"


def storm(port, options, kind, stopping, results):
    """Clients that log in with wrong passwords, or only connect."""
    # They stand for other machines.
    os.nice(19)
    indexes = itertools.count()
    outcomes = Counter()
    begun = time.monotonic()

    def run():
        while not stopping.is_set():
            index = next(indexes)
            if index >= options.logins:
                return
            time.sleep(max(0.0, begun + index / options.rate - time.monotonic()))
            try:
                client = Client(port, address(index % options.addresses))
                if kind == "connect":
                    client.ask(STARTUP_FRAME)
                    outcomes["connected"] += 1
                else:
                    outcomes[client.log_in("app", f"wrong {index}")] += 1
                client.close()
            except OSError as error:
                outcomes[str(error)] += 1

    threads = [threading.Thread(target=run) for _ in range(options.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put(dict(outcomes))


def processor_secs(pid):
    """Of the node's threads: those of the logins, and the others."""
    tick = os.sysconf("SC_CLK_TCK")
    logins = others = 0
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/stat") as stat:
            name, fields = stat.read().rsplit(")", 1)
        fields = fields.split()
        used = (int(fields[11]) + int(fields[12])) / tick
        if "ilion-login" in name:
            logins += used
        else:
            others += used
    return logins, others


def phase(name, node, port, options, count, kind=None, cold=None):
    stopping, results = multiprocessing.Event(), multiprocessing.Queue()
    stormer = None
    if kind:
        stormer = multiprocessing.Process(target=storm, args=(port, options, kind, stopping, results))
        stormer.start()
    before, reads, begun = processor_secs(node.pid), count.value, time.monotonic()
    times = {"cold": [], "warm": []}
    while time.monotonic() - begun < options.secs:
        for which, who in (("warm", ("app", "right")), ("cold", next(cold) if cold else None)):
            if who is None:
                continue
            asked = time.monotonic()
            try:
                client = Client(port)
                outcome = client.log_in(*who)
                client.close()
            except OSError as error:
                outcome = str(error)
            times[which].append((round(time.monotonic() - asked, 2), outcome))
        time.sleep(0.7)
    secs = time.monotonic() - begun
    rate = (count.value - reads) / secs
    logins, others = (now - then for now, then in zip(processor_secs(node.pid), before))
    print(f"{name:10} {rate:9.0f} reads/s; processors: logins {logins / secs:.2f}, other threads {others / secs:.2f}")
    for which, seen in times.items():
        if seen and kind != "connect":
            right = sorted(took for took, outcome in seen if outcome == "right")
            others = Counter(outcome for _, outcome in seen if outcome != "right")
            middle = right[len(right) // 2] if right else None
            print(f"           {which} right logins: {len(right)} of {len(seen)}, median {middle} s, most {max(right, default=None)} s; {dict(others)}")
    if stormer:
        stopping.set()
        print(f"           storm: {results.get()}", flush=True)
        stormer.join()
    return rate


def wait_for(port, node):
    for _ in range(600):
        try:
            return Client(port).close()
        except OSError:
            assert node.poll() is None, "the node has ended"
            time.sleep(0.1)
    raise TimeoutError


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("ilion")
    parser.add_argument("--logins", type=int, default=10000)
    parser.add_argument("--addresses", type=int, default=10000)
    parser.add_argument("--clients", type=int, default=400)
    parser.add_argument("--rate", type=float, default=500, help="most logins a second; more, and the clients take what the reads had")
    parser.add_argument("--secs", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    with socket.socket() as probe, socket.socket() as second:
        probe.bind(("127.0.0.1", 0))
        second.bind(("127.0.0.1", 0))
        port, admin_port = probe.getsockname()[1], second.getsockname()[1]
    directory = tempfile.mkdtemp()
    settings = ("authenticator=PasswordAuthenticator", "authorizer=CassandraAuthorizer")
    command = [options.ilion, "serve", "--data", f"{directory}/data", "--port", str(port), "--admin-port", str(admin_port)]
    environment = dict(os.environ, ILION_SUPERUSER_PASSWORD="root")
    with open(f"{directory}/log", "w") as log:
        node = subprocess.Popen(
            command + [f"--set={setting}" for setting in settings], stdout=log, stderr=log, env=environment
        )
    reader = None
    try:
        wait_for(port, node)
        root = Client(port)
        assert root.log_in("cassandra", "root") == "right"
        root.query("CREATE KEYSPACE storm WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}")
        root.query("CREATE TABLE storm.rows (k int PRIMARY KEY, v text)")
        for key in range(IN_FLIGHT):
            root.query(f"INSERT INTO storm.rows (k, v) VALUES ({key}, 'value')")
        root.query("CREATE ROLE app WITH PASSWORD = 'right' AND LOGIN = true")
        root.query("GRANT SELECT ON storm.rows TO app")
        cold = [(f"cold_{index}", f"right {index}") for index in range(COLD_ROLES)]
        for role, password in cold:
            root.query(f"CREATE ROLE {role} WITH PASSWORD = '{password}' AND LOGIN = true")
        cold = iter(cold)
        count = multiprocessing.Value("q", 0, lock=False)
        reader = multiprocessing.Process(target=read, args=(port, count), daemon=True)
        reader.start()
        time.sleep(3)
        ratios = []
        for _ in range(options.rounds):
            alone = phase("alone", node, port, options, count)
            connecting = phase("connecting", node, port, options, count, "connect")
            storming = phase("storm", node, port, options, count, "storm", cold)
            again = phase("alone", node, port, options, count)
            calm = (alone + again) / 2
            ratios.append((storming / calm, connecting / calm))
            print(f"the reads kept {ratios[-1][0]:.0%} of their rate in the storm, {ratios[-1][1]:.0%} beside clients that only connect")
        middle = [statistics.median(kind) for kind in zip(*ratios)]
        print(f"median of {len(ratios)}: {middle[0]:.0%} in the storm, {middle[1]:.0%} beside clients that only connect")
    finally:
        if reader:
            reader.terminate()
        node.terminate()
        node.wait()
        shutil.rmtree(directory)


if __name__ == "__main__":
    main()
