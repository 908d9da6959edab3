"""The faults. A case gets the running cluster and the time that it may take; it leaves all brokers and nodes running."""

import itertools
import subprocess
import threading
import time

from cassandra.policies import WhiteListRoundRobinPolicy

from bulk import TABLE, Bulk
from clients import FAILURES, connect
from nodes import DOWN_MAX_SECS
from small_disk import SmallDisk, why_not

PAUSE_SECS = 10
SKEW_SECS = 300
# Longer than logs wait to be trimmed: a minute, and what a minute may take on a busy machine.
WAIT_SECS = 180
# A log is trimmed of no fewer.
TRIMMED_RECORDS = 11_000
FEW_BYTES = 16 << 20
VALUE_BYTES = 8 << 10
# What a node says whose memtables are full.
CANNOT_APPLY = "cannot apply the logs for now"
# What a node says whose log was trimmed.
WAS_TRIMMED = "was trimmed while this node was away"


class Skipped(Exception):
    """A case cannot be run here, for this reason."""


def quiet(world, seconds):
    """No fault: what the load does by itself."""
    time.sleep(seconds)


def node_killed(world, seconds):
    """kill -9 of a node, which starts again after half of the time."""
    kill(seconds, world.nodes[1])


def broker_killed(world, seconds):
    """kill -9 of a broker, which starts again after half of the time."""
    kill(seconds, world.brokers[0])


def both_killed(world, seconds):
    """kill -9 of a node and of a broker at once."""
    kill(seconds, world.brokers[1], world.nodes[2])


def kill(seconds, *processes):
    """kill -9 of processes, which start again, in this order, a quarter of the time later."""
    time.sleep(seconds / 4)
    for process in processes:
        process.kill()
    time.sleep(seconds / 4)
    for process in processes:
        process.start()
    time.sleep(seconds / 2)


def node_paused(world, seconds):
    """SIGSTOP of a node for 10 s: its connections stay open."""
    pause(world.nodes[0], seconds)


def broker_paused(world, seconds):
    """SIGSTOP of a broker for 10 s."""
    pause(world.brokers[2], seconds)


def leader_isolated(world, seconds):
    """For 10 s a broker that leads logs reaches neither nodes nor other brokers, and they do not reach it."""
    cut("isolate", world, seconds)


def leader_hidden(world, seconds):
    """For 10 s no node reaches a broker that leads logs; the other brokers do, so that it goes on leading."""
    cut("hide", world, seconds)


def leader_parted(world, seconds):
    """For 10 s a broker that leads logs reaches no other broker, but nodes reach it: it does not know that another one leads now."""
    cut("part", world, seconds)


def cut(kind, world, seconds):
    """Cuts links to the broker that leads most logs. What was sent meanwhile arrives later."""
    rest = max(seconds - PAUSE_SECS, 4)
    time.sleep(rest / 2)
    [(broker, before)] = world.leaders().most_common(1)
    world.links.tell(kind, broker)
    time.sleep(PAUSE_SECS)
    world.links.tell("heal")
    after = world.leaders()[broker]
    world.notes.append(f"broker {broker} led {before} logs of tablets before it was cut off, and {after} just afterwards")
    time.sleep(rest / 2)


def pause(process, seconds):
    rest = max(seconds - PAUSE_SECS, 4)
    time.sleep(rest / 2)
    process.pause()
    time.sleep(PAUSE_SECS)
    process.resume()
    time.sleep(rest / 2)


def broker_wiped(world, seconds):
    """A broker is killed and loses its disk. It starts empty, and copies what the others have."""
    broker = world.brokers[0]
    time.sleep(seconds / 4)
    broker.kill()
    broker.wipe()
    broker.start()
    time.sleep(seconds / 2)


def rolling_restart(world, seconds):
    """SIGTERM and start of one node after another."""
    ends = time.monotonic() + seconds
    time.sleep(seconds / 10)
    for node in world.nodes:
        code = node.stop()
        if code != 0:
            world.problems.append(f"node {node.number} stopped with exit code {code}")
        node.start()
        time.sleep(seconds / 10)
    time.sleep(max(0, ends - time.monotonic()))


def ddl_storm(world, seconds):
    """Tables are made, changed and dropped on all nodes at once."""
    ends = time.monotonic() + seconds
    changed, failed = itertools.count(), itertools.count()

    def storm(node):
        cluster = connect([node.host], node.port, policy=WhiteListRoundRobinPolicy([node.host]))
        session = cluster.connect()
        for number in itertools.count():
            if time.monotonic() > ends:
                break
            name = f"{world.keyspace}.storm_{node.number}_{number}"
            for statement in (
                f"CREATE TABLE {name} (k int PRIMARY KEY, a text)",
                f"ALTER TABLE {name} ADD b text",
                f"CREATE INDEX ON {name} (a)",
                f"INSERT INTO {name} (k, a, b) VALUES (1, 'a', 'b')",
                f"DROP TABLE {name}",
            ):
                try:
                    session.execute(statement)
                    next(changed)
                except FAILURES as error:
                    next(failed)
                    world.notes.append(f"{statement.split(' (')[0]}: {error}")
        cluster.shutdown()

    threads = [threading.Thread(target=storm, args=(node,), daemon=True) for node in world.nodes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(seconds + 60)
    world.notes.append(f"{next(changed)} statements of the storm succeeded, {next(failed)} failed")


def clock_skewed(world, seconds):
    """A node runs with a clock that is five minutes behind, and then with one that is five minutes ahead."""
    node = world.nodes[1]
    time.sleep(seconds / 10)
    for skew in (-SKEW_SECS, SKEW_SECS, 0):
        node.stop()
        world.skew(node, skew)
        node.start()
        time.sleep(seconds / 5)
    time.sleep(seconds / 5)


def disk_full(world, seconds):
    """The disk of a node is full, until something else makes room: the node waits, and then applies what it lacks."""
    reason = why_not()
    if reason:
        raise Skipped(reason)
    node, others = world.nodes[1], [world.nodes[0], world.nodes[2]]
    node.stop()
    try:
        disk = SmallDisk(node.data)
    except subprocess.CalledProcessError as error:
        node.start()
        raise Skipped(f"no file system can be mounted: {error.stderr.decode().strip()}") from error
    # Its memtables fill during the case.
    node.settings += [f"memtable_heap_space={FEW_BYTES >> 20}MiB"]
    try:
        node.start()
        time.sleep(seconds / 4)
        bulk = Bulk(world)
        world.expected_errors.append("a flush failed; it is tried again")
        disk.fill()
        bulk.write(others, 3 * FEW_BYTES // VALUE_BYTES, VALUE_BYTES)
        failing = wait_for(lambda: node.metric("ilion_flushes_failing"), "the full node does not say that flushes fail")
        wait_for(lambda: CANNOT_APPLY in node.words_since_start(), f"the full node does not say {CANNOT_APPLY!r}")
        behind = node.metric("ilion_cluster_lag_records")
        world.notes.append(f"on the full disk {failing} flush failed, and the node was {behind} records behind")
        time.sleep(seconds / 4)
        if not node.is_running():
            world.problems.append(f"the full node has ended: {node.last_words()}")
        disk.empty()
        began = time.monotonic()
        late = node.wait_caught_up()
        if late:
            world.problems.append(late)
        world.notes.append(f"with room again it had applied everything after {time.monotonic() - began:.1f} s")
        missing = bulk.missing(node)
        if missing:
            world.problems.append(f"the node lacks {missing} acknowledged rows of the table {TABLE}")
        time.sleep(seconds / 4)
        node.settings.pop()
        node.stop()
    finally:
        if node.is_running():
            node.kill()
        disk.end()
        node.start()


def node_away(world, seconds):
    """A node is away for longer than down_max, and the log that it needs is trimmed: it copies, and never serves what it had."""
    node, others = world.nodes[2], world.nodes[:2]
    bulk = Bulk(world)
    bulk.write(others, 200, 16)
    late = node.wait_caught_up()
    assert late is None, late
    node.kill()
    before = world.logs()
    bulk.write(others, TRIMMED_RECORDS, 16)
    began = time.monotonic()
    # A change of the schema makes the others save what they have, so that the log may go.
    time.sleep(DOWN_MAX_SECS)
    change = f"ALTER TABLE {bulk.name()} WITH comment = 'saved'"
    cluster = connect([others[0].host], others[0].port)
    cluster.connect().execute(change)
    cluster.shutdown()

    def is_gone():
        return any(first > before[log][1] for log, (first, _) in world.logs().items())

    wait_for(is_gone, "no log was trimmed behind what it had when the node was killed")
    world.notes.append(f"a log was trimmed behind what the node had {time.monotonic() - began:.1f} s after the last record")
    began = time.monotonic()
    node.start()
    world.notes.append(f"the node that was away served after {time.monotonic() - began:.1f} s")
    missing = bulk.missing(node)
    if missing:
        world.problems.append(f"the node that was away has served without {missing} acknowledged rows")
    if WAS_TRIMMED not in node.words_since_start():
        world.problems.append(f"the node that was away does not say {WAS_TRIMMED!r}")
    time.sleep(seconds / 4)


def wait_for(look, problem):
    """Waits until `look` returns something true, and returns it."""
    deadline = time.monotonic() + WAIT_SECS
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < deadline, problem
        time.sleep(0.2)


def node_added(world, seconds):
    """A fourth node joins under load."""
    time.sleep(seconds / 4)
    began = time.monotonic()
    node = world.new_node()
    node.start()
    world.notes.append(f"the new node served after {time.monotonic() - began:.1f} s")
    time.sleep(seconds / 2)


def node_wiped(world, seconds):
    """A node is killed and loses its disk. An empty one takes its place."""
    node = world.nodes[2]
    time.sleep(seconds / 4)
    node.kill()
    node.wipe()
    wait_until_down(world, node)
    node.settings += [f"replace_address_first_boot={node.host}"]
    began = time.monotonic()
    node.start()
    world.notes.append(f"the empty node served after {time.monotonic() - began:.1f} s")
    time.sleep(seconds / 2)


def node_left(world, seconds):
    """A node joins, and leaves again (nodetool decommission)."""
    time.sleep(seconds / 4)
    node = world.new_node()
    node.start()
    time.sleep(seconds / 4)
    began = time.monotonic()
    node.nodetool("decommission")
    world.notes.append(f"the node had left after {time.monotonic() - began:.1f} s")
    world.nodes.remove(node)
    node.stop()
    time.sleep(seconds / 4)


def node_removed(world, seconds):
    """A node joins, is killed, and is removed (nodetool removenode)."""
    time.sleep(seconds / 4)
    node = world.new_node()
    node.start()
    host = node.nodetool("info").split("ID")[1].split()[1]
    world.nodes.remove(node)
    node.kill()
    wait_until_down(world, node)
    began = time.monotonic()
    world.nodes[0].nodetool("removenode", host)
    world.notes.append(f"the node was removed after {time.monotonic() - began:.1f} s")
    time.sleep(seconds / 2)


def wait_until_down(world, node):
    """Waits until the others think that a node is down."""
    deadline = time.monotonic() + PAUSE_SECS * 3
    while f"DN  {node.host}" not in world.nodes[0].nodetool("status"):
        assert time.monotonic() < deadline, f"{node.host} is not thought to be down"
        time.sleep(0.2)


# They need proxies in front of the brokers.
OF_LINKS = {"leader-isolated", "leader-hidden", "leader-parted"}

# In this order: the last ones change who is a member.
CASES = {
    "quiet": quiet,
    "node-killed": node_killed,
    "broker-killed": broker_killed,
    "both-killed": both_killed,
    "node-paused": node_paused,
    "broker-paused": broker_paused,
    "leader-isolated": leader_isolated,
    "leader-hidden": leader_hidden,
    "leader-parted": leader_parted,
    "broker-wiped": broker_wiped,
    "rolling-restart": rolling_restart,
    "ddl-storm": ddl_storm,
    "clock-skewed": clock_skewed,
    "disk-full": disk_full,
    "node-away": node_away,
    "node-added": node_added,
    "node-wiped": node_wiped,
    "node-left": node_left,
    "node-removed": node_removed,
}
