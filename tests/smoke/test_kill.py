"""kill -9 under load: acknowledged writes are there after a restart."""

import os
import random
import threading

import pytest
from cassandra import DriverException
from cassandra.cluster import NoHostAvailable

from conftest import connect, create_keyspace
from node import OwnNode

CLIENTS = 8


def goals():
    """For each kill, the number of acknowledged writes before it. Other writes are in flight then."""
    rounds = os.environ.get("ILION_CAMPAIGN_TRIALS")
    if rounds is None:
        return [300, 2000, 5000]
    chance = random.Random(int(os.environ.get("ILION_CAMPAIGN_SEED", "1")))
    return [int(20 * 100 ** chance.random()) for _ in range(int(rounds))]


# Memtables so small that flushes and compactions run all the time.
CRAMPED = ["memtable_heap_space=1MiB", "commitlog_segment_size=1MiB"]
# Writes are answered before a sync, and written to the log through mapped memory.
PERIODIC = ["commitlog_sync=periodic"]


class Load:
    """Writers that record acknowledged writes until the server is gone."""

    def __init__(self, session, first):
        self.session = session
        self.insert = session.prepare("INSERT INTO kept (k, c, v) VALUES (?, ?, ?)")
        self.acknowledged = []
        self.attempted = set()
        self.lock = threading.Lock()
        self.enough = threading.Event()
        self.goal = 0
        self.threads = [threading.Thread(target=self.write, args=(first + client,)) for client in range(CLIENTS)]

    def run_until(self, goal):
        self.goal = goal
        for thread in self.threads:
            thread.start()
        assert self.enough.wait(120), "the writers are too slow, or failed"

    def write(self, k):
        c = 0
        while True:
            c += 1
            row = (k, c, f"{k}/{c} " + 500 * "x")
            with self.lock:
                self.attempted.add(row)
            try:
                self.session.execute(self.insert, row)
            except (DriverException, NoHostAvailable, OSError):
                return
            with self.lock:
                self.acknowledged.append(row)
                if len(self.acknowledged) >= self.goal:
                    self.enough.set()

    def join(self):
        for thread in self.threads:
            thread.join(120)
            assert not thread.is_alive()


@pytest.fixture(params=[(), CRAMPED, PERIODIC, CRAMPED + PERIODIC], ids=["usual", "cramped", "periodic", "cramped-periodic"])
def victim(request, tmp_path):
    if request.config.getoption("--against"):
        pytest.skip("that server is not ours to kill")
    node = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path / "data"), request.param)
    node.start()
    yield node
    if node.is_running():
        node.stop()


def rows_of(session):
    return {tuple(row) for row in session.execute("SELECT k, c, v FROM kept")}


def test_every_acknowledged_write_survives_a_kill(victim, request):
    cluster = connect(victim)
    session = cluster.connect()
    keyspace = create_keyspace(session)
    session.execute(f"CREATE TABLE {keyspace}.kept (k int, c int, v text, PRIMARY KEY (k, c))")
    cluster.shutdown()

    attempted, acknowledged = set(), set()
    for number, goal in enumerate(goals()):
        cluster = connect(victim)
        load = Load(cluster.connect(keyspace), first=number * CLIENTS)
        load.run_until(goal)
        victim.kill()
        load.join()
        cluster.shutdown()
        attempted |= load.attempted
        acknowledged |= set(load.acknowledged)

        victim.start()
        cluster = connect(victim)
        rows = rows_of(cluster.connect(keyspace))
        cluster.shutdown()
        assert not acknowledged - rows, "acknowledged writes are lost"
        assert not rows - attempted, "rows that nobody wrote"
    print(f"\ncampaign | kill -9 ({request.node.callspec.id}) | {len(goals())} | none of {len(acknowledged)} acknowledged writes lost")


def test_a_schema_survives_a_kill(victim):
    cluster = connect(victim)
    session = cluster.connect()
    keyspace = create_keyspace(session)
    session.execute(f"CREATE TABLE {keyspace}.one (k int PRIMARY KEY)")
    session.execute(f"ALTER TABLE {keyspace}.one ADD v text")
    session.execute(f"CREATE TABLE {keyspace}.two (k int PRIMARY KEY)")
    session.execute(f"DROP TABLE {keyspace}.two")
    victim.kill()
    cluster.shutdown()
    victim.start()
    cluster = connect(victim)
    cluster.connect()
    tables = cluster.metadata.keyspaces[keyspace].tables
    assert list(tables) == ["one"] and list(tables["one"].columns) == ["k", "v"]
    cluster.shutdown()


def test_an_orderly_stop_loses_nothing_and_says_so(victim):
    cluster = connect(victim)
    session = cluster.connect()
    keyspace = create_keyspace(session)
    session.execute(f"CREATE TABLE {keyspace}.kept (k int, c int, v text, PRIMARY KEY (k, c))")
    session.execute(f"INSERT INTO {keyspace}.kept (k, c, v) VALUES (1, 2, 'x')")
    cluster.shutdown()
    assert victim.stop() == 0
    victim.start()
    cluster = connect(victim)
    assert rows_of(cluster.connect(keyspace)) == {(1, 2, "x")}
    cluster.shutdown()
