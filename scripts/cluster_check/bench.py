"""Run by cluster-bench.sh: `ilion bench write`, `count` and `read` on a single node and on three nodes with three brokers, and a table."""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace
from types import SimpleNamespace

from node import OwnNode
from world import World

NODES = 3
REPLICATION = "{'class': 'SimpleStrategy', 'replication_factor': %d}"
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass
class Kind:
    """Requests of one kind."""

    name: str
    command: str
    options: tuple
    # Another seed has other keys: conditions must find no row.
    seed: int = 1
    clients: int = 4
    in_flight: int = 16
    # Of the keys, so many are written or read.
    share: float = 1.0

    def one_at_a_time(self):
        """The same with one request under way. Writes have other keys."""
        return replace(
            self,
            name=f"{self.name}, one at a time",
            seed=self.seed + 2 * (self.command != "read"),
            clients=1,
            in_flight=1,
            share=0.05,
        )

    def warm_up(self):
        """Fewer of the same requests. Writes have other keys."""
        return replace(self, seed=self.seed + 100 * (self.command != "read"), share=self.share * 0.2)


WRITES = Kind("writes, QUORUM", "write", ("--consistency", "QUORUM"))
READS = Kind("reads, QUORUM", "read", ("--consistency", "QUORUM"))
BUSY = [
    WRITES,
    Kind("reads, ONE", "read", ("--consistency", "ONE")),
    READS,
    Kind("INSERT IF NOT EXISTS", "write", ("--consistency", "QUORUM", "--if-not-exists"), seed=2),
    Kind("counters, QUORUM", "count", ("--consistency", "QUORUM")),
]
KINDS = [*BUSY, *(kind.one_at_a_time() for kind in BUSY)]
GROUPS = ("node asked", "other nodes", "brokers")
# Metrics of the requests that nodes send to brokers.
TO_BROKERS = {kind: f"ilion_cluster_log_{kind}_requests_total" for kind in ("produce", "fetch", "end")}


def cpu_secs(pid):
    """User and system time of a process so far."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def bench(binary, node, kind, keys):
    """The result of `ilion bench`."""
    operations = max(1, int(keys * kind.share))
    command = [binary, "bench", kind.command, "--host", node.host, "--port", str(node.port), "--json", *kind.options]
    command += ["--clients", str(kind.clients), "--in-flight", str(kind.in_flight), "--seed", str(kind.seed)]
    # Writes and counts have a key each; reads are of the keys that were written.
    command += ["--keys", str(keys if kind.command == "read" else operations), "--operations", str(operations)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert result["errors"] == 0, result["error_messages"]
    return result


def to_brokers(nodes):
    """How many requests of each kind the nodes have sent to brokers so far."""
    return {kind: sum(node.metric(name) for node in nodes) for kind, name in TO_BROKERS.items()}


def measured(binary, node, groups, kind, keys, members):
    """A line of the table: the result, CPU by group of processes in us for each request, and requests of the nodes to the brokers for each."""
    before = {name: sum(map(cpu_secs, pids)) for name, pids in groups.items()}
    sent_before = to_brokers(members)
    result = bench(binary, node, kind, keys)
    spent = {name: sum(map(cpu_secs, pids)) - before[name] for name, pids in groups.items()}
    sent = to_brokers(members)
    waits = result["latency_micros"]
    # Of Cassandra's nodes nobody knows the processes.
    cpu = [f"{spent.get(name, 0) * 1e6 / result['operations']:.0f}" if groups else "?" for name in GROUPS]
    asked = [f"{(sent[kind] - sent_before[kind]) / result['operations']:.2f}" for kind in TO_BROKERS]
    return [f"{result['operations_per_sec']:,.0f}", f"{waits['p50'] / 1000:.2f}", f"{waits['p99'] / 1000:.2f}", *cpu, *asked]


def prepare(binary, node, factor):
    """Creates the keyspace of `ilion bench`."""
    statement = f"CREATE KEYSPACE IF NOT EXISTS ilion_bench WITH replication = {REPLICATION % factor}"
    subprocess.run([binary, "cql", f"{node.host}:{node.port}", "-e", statement], check=True)


def warm(binary, node, keys, secs):
    """Writes and reads for a while: brokers are programs of Java, and slow before their code is compiled."""
    ends = time.monotonic() + secs
    seed = 1000
    while time.monotonic() < ends:
        seed += 1
        bench(binary, node, replace(WRITES, seed=seed, share=0.2), keys)
        bench(binary, node, replace(READS, seed=seed), int(keys * 0.2))


def rows(title, binary, node, groups, keys, kinds, members=()):
    """Measures each kind, and prints its line. `members`: the nodes of a cluster of ours."""
    for kind in kinds:
        bench(binary, node, kind.warm_up(), keys)
        line = [title, kind.name, *measured(binary, node, groups, kind, keys, members)]
        print(f"| {' | '.join(line)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=100_000, help="rows of a measurement (default 100000)")
    parser.add_argument("--kinds", nargs="*", metavar="WORD", help="only requests whose names have one of these words; reads need writes")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of all nodes, such as log_options_partitions=12")
    parser.add_argument("--cassandra", metavar="HOST[:PORT]", help="measures the nodes of Cassandra that run there, too")
    parser.add_argument("--warm-secs", type=int, default=60, help="how long the cluster is used before (default 60)")
    given = parser.parse_args()
    keys = given.keys
    kinds = [kind for kind in KINDS if not given.kinds or any(word in kind.name for word in given.kinds)]
    binary = os.environ["ILION"]
    directory = tempfile.mkdtemp(prefix="cluster-bench-")
    world = alone = None
    columns = ["a second", "p50 ms", "p99 ms", *(f"CPU us a request: {name}" for name in GROUPS), *(f"{kind} to brokers" for kind in TO_BROKERS)]
    print(f"| nodes | requests | {' | '.join(columns)} |")
    print(f"| --- | --- | {' | '.join(['---:'] * len(columns))} |", flush=True)
    try:
        alone = OwnNode(binary, os.path.join(directory, "alone"))
        alone.start()
        prepare(binary, alone, 1)
        rows("one, without a cluster", binary, alone, {GROUPS[0]: [alone.process.pid]}, keys, kinds)
        alone.stop()
        world = World(directory, binary, settings=given.set)
        for _ in range(NODES):
            world.new_node().start()
        asked, *others = world.nodes
        prepare(binary, asked, NODES)
        by_group = [asked], others, world.brokers
        groups = {name: [one.process.pid for one in group] for name, group in zip(GROUPS, by_group)}
        warm(binary, asked, keys, given.warm_secs)
        rows("three, three replicas", binary, asked, groups, keys, kinds, world.nodes)
        if given.cassandra:
            world.end()
            world = None
            host, _, port = given.cassandra.partition(":")
            other = SimpleNamespace(host=host, port=int(port or 9042))
            prepare(binary, other, NODES)
            warm(binary, other, keys, given.warm_secs)
            rows("Cassandra, three replicas", binary, other, {}, keys, kinds)
    finally:
        if alone is not None and alone.is_running():
            alone.kill()
        if world is not None:
            world.end()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
