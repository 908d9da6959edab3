"""Clients of the cluster. They note what was acknowledged, what was tried, and how long they waited between two successes.

Each client has one request on its way, and tries nothing twice by itself: a request that failed is counted, and the next one is another.
"""

import itertools
import threading
import time

from cassandra import ConsistencyLevel, DriverException, Unavailable
from cassandra.cluster import EXEC_PROFILE_DEFAULT, Cluster, ExecutionProfile, NoHostAvailable
from cassandra.connection import ConnectionException
from cassandra.policies import ConstantReconnectionPolicy, FallthroughRetryPolicy, RoundRobinPolicy, TokenAwarePolicy
from cassandra.protocol import ErrorMessage, OverloadedErrorMessage

FAILURES = (DriverException, NoHostAvailable, ErrorMessage, ConnectionException, OSError)
# Nothing was written.
REFUSALS = (Unavailable, OverloadedErrorMessage)
REQUEST_SECS = 12
# Readers wait for a write at most so long.
NEWS_SECS = 0.05
PARTITIONS = 48
REGISTERS = 24
COUNTERS = 4
CONDITIONS = 6


def connect(hosts, port, level=ConsistencyLevel.QUORUM, policy=None):
    """A cluster object of the driver; the caller shuts it down."""
    profile = ExecutionProfile(
        load_balancing_policy=policy or TokenAwarePolicy(RoundRobinPolicy()),
        retry_policy=FallthroughRetryPolicy(),
        consistency_level=level,
        request_timeout=REQUEST_SECS,
    )
    return Cluster(
        hosts,
        port=port,
        protocol_version=5,
        execution_profiles={EXEC_PROFILE_DEFAULT: profile},
        reconnection_policy=ConstantReconnectionPolicy(0.5, None),
        connect_timeout=5,
    )


def create(session, keyspace):
    session.execute(
        f"CREATE KEYSPACE {keyspace} WITH replication = {{'class': 'SimpleStrategy', 'replication_factor': 3}}"
    )
    session.execute(f"CREATE TABLE {keyspace}.rows (k int, c int, v text, PRIMARY KEY (k, c))")
    session.execute(f"CREATE TABLE {keyspace}.registers (k int PRIMARY KEY, v int)")
    session.execute(f"CREATE TABLE {keyspace}.counts (k int PRIMARY KEY, n counter)")
    session.execute(f"CREATE TABLE {keyspace}.conditions (k int PRIMARY KEY, v int)")
    for key in range(CONDITIONS):
        session.execute(f"INSERT INTO {keyspace}.conditions (k, v) VALUES ({key}, 0) IF NOT EXISTS")


class Client(threading.Thread):
    """Repeats a request until the load ends."""

    kind = ""

    def __init__(self, load):
        super().__init__(daemon=True)
        self.load = load
        self.succeeded = 0
        self.failed = 0
        # Of all waits between two successes, the longest.
        self.gap = 0.0
        self.last = None
        self.problem = None

    def run(self):
        self.last = time.monotonic()
        try:
            while not self.load.is_over.is_set():
                try:
                    self.step()
                except FAILURES as error:
                    self.failed += 1
                    self.load.note_failure(self.kind, error)
                    # A node that is gone refuses at once.
                    time.sleep(0.02)
                else:
                    self.succeeded += 1
                    self.pause_ended()
            self.pause_ended()
        except Exception as error:  # noqa: BLE001: a client that ends early has checked nothing
            self.problem = f"{type(error).__name__}: {error}"

    def pause_ended(self):
        now = time.monotonic()
        self.gap = max(self.gap, now - self.last)
        self.last = now

    def step(self):
        raise NotImplementedError


class Writer(Client):
    """Inserts rows, each once."""

    kind = "write"
    numbers = itertools.count(1)

    def __init__(self, load):
        super().__init__(load)
        self.acknowledged = []

    def step(self):
        number = next(self.numbers)
        key = number % PARTITIONS
        self.load.session.execute(self.load.insert_row, (key, number, f"value {number}"))
        self.acknowledged.append((key, number))


class RegisterWriter(Client):
    """Gives its registers ascending numbers. No other client writes them."""

    kind = "write"

    def __init__(self, load, keys):
        super().__init__(load)
        self.keys = itertools.cycle(keys)
        self.numbers = itertools.count(1)

    def step(self):
        key, number = next(self.keys), next(self.numbers)
        self.load.tried[key] = number
        self.load.session.execute(self.load.set_register, (number, key))
        self.load.wrote(key, number)


class Reader(Client):
    """Reads registers at QUORUM: at least what was acknowledged before, and no older than an earlier read.

    It reads what was acknowledged a moment ago, since a replica that is behind is behind by milliseconds.
    """

    kind = "read"

    def __init__(self, load):
        super().__init__(load)
        self.stale = []

    def step(self):
        key = self.load.newest()
        floor = max(self.load.written[key], self.load.seen[key])
        row = self.load.session.execute(self.load.read_register, (key,)).one()
        found = row.v if row is not None else 0
        if found < floor or found > self.load.tried[key]:
            self.stale.append((key, floor, found))
        self.load.see(key, found)


class Counter(Client):
    """Adds one to counters."""

    kind = "counter"

    def __init__(self, load):
        super().__init__(load)
        self.keys = itertools.cycle(range(COUNTERS))
        self.added = [0] * COUNTERS
        self.unknown = [0] * COUNTERS

    def step(self):
        key = next(self.keys)
        try:
            self.load.session.execute(self.load.add, (key,))
        except REFUSALS:
            raise
        except FAILURES:
            self.unknown[key] += 1
            raise
        self.added[key] += 1


class Conditional(Client):
    """Replaces a value by a number of its own, if it is still the one that it knows."""

    kind = "condition"
    numbers = itertools.count(1)

    def __init__(self, load, number):
        super().__init__(load)
        self.keys = itertools.cycle(range(number, number + CONDITIONS))
        # The value before and after, of those that were applied.
        self.applied = []
        self.known = [0] * CONDITIONS

    def step(self):
        key = next(self.keys) % CONDITIONS
        before, after = self.known[key], next(self.numbers)
        row = self.load.session.execute(self.load.replace, (after, key, before)).one()
        if row.applied:
            self.applied.append((key, before, after))
            self.known[key] = after
        else:
            self.known[key] = row.v


class Load:
    """All clients of a case."""

    def __init__(self, hosts, port, keyspace):
        self.cluster = connect(hosts, port)
        self.session = self.cluster.connect()
        create(self.session, keyspace)
        prepare = self.session.prepare
        self.insert_row = prepare(f"INSERT INTO {keyspace}.rows (k, c, v) VALUES (?, ?, ?)")
        self.set_register = prepare(f"UPDATE {keyspace}.registers SET v = ? WHERE k = ?")
        self.read_register = prepare(f"SELECT v FROM {keyspace}.registers WHERE k = ?")
        self.add = prepare(f"UPDATE {keyspace}.counts SET n = n + 1 WHERE k = ?")
        self.replace = prepare(f"UPDATE {keyspace}.conditions SET v = ? WHERE k = ? IF v = ?")
        self.is_over = threading.Event()
        self.lock = threading.Lock()
        self.news = threading.Condition()
        self.newest_key = 0
        self.tried = [0] * REGISTERS
        self.written = [0] * REGISTERS
        self.seen = [0] * REGISTERS
        self.failures = {}
        self.writers = [Writer(self) for _ in range(3)]
        self.setters = [RegisterWriter(self, range(first, REGISTERS, 2)) for first in range(2)]
        self.readers = [Reader(self) for _ in range(3)]
        self.counters = [Counter(self)]
        self.conditionals = [Conditional(self, number) for number in range(2)]
        self.clients = [*self.writers, *self.setters, *self.readers, *self.counters, *self.conditionals]

    def start(self):
        for client in self.clients:
            client.start()

    def wrote(self, key, number):
        """A register has this number at least, from now on."""
        with self.news:
            self.written[key] = number
            self.newest_key = key
            self.news.notify_all()

    def newest(self):
        """Waits a moment for a register to be written; the one that was written last."""
        with self.news:
            self.news.wait(NEWS_SECS)
            return self.newest_key

    def see(self, key, found):
        with self.lock:
            self.seen[key] = max(self.seen[key], found)

    def note_failure(self, kind, error):
        name = f"{kind}: {type(error).__name__}"
        with self.lock:
            self.failures[name] = self.failures.get(name, 0) + 1

    def end(self):
        self.is_over.set()
        for client in self.clients:
            client.join(5 * REQUEST_SECS)
        stuck = [client.kind for client in self.clients if client.is_alive()]
        self.cluster.shutdown()
        return stuck
