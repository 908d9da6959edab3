"""The faults. A case gets the running cluster and the time that it may take; it leaves all brokers and nodes running."""

import itertools
import threading
import time

from cassandra.policies import WhiteListRoundRobinPolicy

from clients import FAILURES, connect

PAUSE_SECS = 10
SKEW_SECS = 300


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
OF_LINKS = {"leader-isolated", "leader-hidden"}

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
    "broker-wiped": broker_wiped,
    "rolling-restart": rolling_restart,
    "ddl-storm": ddl_storm,
    "clock-skewed": clock_skewed,
    "node-added": node_added,
    "node-wiped": node_wiped,
    "node-left": node_left,
    "node-removed": node_removed,
}
