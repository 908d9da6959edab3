"""Run by cluster-bench.sh: `ilion bench write` and `read` on a single node and on a cluster of three with three brokers, and a table."""

import argparse
import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass, replace

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
    options: tuple = ()
    # Another seed has other keys: conditions must find no row.
    seed: int = 1
    in_flight: int = 16
    share: float = 1.0


KINDS = [
    Kind("writes, QUORUM", "write", ("--consistency", "QUORUM")),
    Kind("reads, ONE", "read", ("--consistency", "ONE")),
    Kind("reads, QUORUM", "read", ("--consistency", "QUORUM")),
    Kind("INSERT IF NOT EXISTS", "write", ("--consistency", "QUORUM", "--if-not-exists"), seed=2),
    Kind("writes, QUORUM, one at a time", "write", ("--consistency", "QUORUM"), seed=3, in_flight=0, share=0.05),
    Kind("reads, ONE, one at a time", "read", ("--consistency", "ONE"), in_flight=0, share=0.05),
    Kind("reads, QUORUM, one at a time", "read", ("--consistency", "QUORUM"), in_flight=0, share=0.05),
    Kind(
        "INSERT IF NOT EXISTS, one at a time",
        "write",
        ("--consistency", "QUORUM", "--if-not-exists"),
        seed=4,
        in_flight=0,
        share=0.05,
    ),
]


def cpu_secs(pid):
    """User and system time of a process so far."""
    with open(f"/proc/{pid}/stat") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND


def bench(binary, node, kind, keys):
    """The result of `ilion bench`."""
    load = ("--clients", "4", "--in-flight", str(kind.in_flight)) if kind.in_flight else ("--clients", "1", "--in-flight", "1")
    command = [binary, "bench", kind.command, "--host", node.host, "--port", str(node.port), "--json", *load, *kind.options]
    # Writes have a key each; reads are of the keys that were written.
    operations = max(1, int(keys * kind.share))
    sizes = {"write": ["--keys", str(operations)], "read": ["--keys", str(keys), "--operations", str(operations)]}
    done = subprocess.run([*command, *sizes[kind.command], "--seed", str(kind.seed)], capture_output=True, text=True, check=True)
    result = json.loads(done.stdout)
    assert result["errors"] == 0, result["error_messages"]
    return result


def measured(binary, node, groups, kind, keys):
    """A line of the table: the result, and CPU by group of processes in us for each request."""
    before = {name: sum(map(cpu_secs, pids)) for name, pids in groups.items()}
    result = bench(binary, node, kind, keys)
    spent = {name: sum(map(cpu_secs, pids)) - before[name] for name, pids in groups.items()}
    waits = result["latency_micros"]
    cpu = [f"{spent.get(name, 0) * 1e6 / result['operations']:.0f}" for name in ("node asked", "other nodes", "brokers")]
    return [f"{result['operations_per_sec']:,.0f}", f"{waits['p50'] / 1000:.2f}", f"{waits['p99'] / 1000:.2f}", *cpu]


def prepare(binary, node, factor):
    statement = f"CREATE KEYSPACE ilion_bench WITH replication = {REPLICATION % factor}"
    subprocess.run([binary, "cql", f"{node.host}:{node.port}", "-e", statement], check=True)


def warm(binary, node, keys, secs):
    """Writes for a while: brokers are programs of Java, and slow before their code is compiled."""
    ends = time.monotonic() + secs
    seed = 1000
    while time.monotonic() < ends:
        seed += 1
        bench(binary, node, Kind("", "write", ("--consistency", "QUORUM"), seed, share=0.2), keys)


def rows(title, binary, node, groups, keys):
    for kind in KINDS:
        # The first run of a kind warms up, with other keys where it writes.
        seed = kind.seed + 100 if kind.command == "write" else kind.seed
        bench(binary, node, replace(kind, seed=seed, share=kind.share * 0.2), keys)
        line = [title, kind.name, *measured(binary, node, groups, kind, keys)]
        print(f"| {' | '.join(line)} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=100_000, help="rows of a measurement (default 100000)")
    parser.add_argument("--warm-secs", type=int, default=60, help="how long the cluster is written to before (default 60)")
    given = parser.parse_args()
    keys = given.keys
    binary = os.environ["ILION"]
    directory = tempfile.mkdtemp(prefix="cluster-bench-")
    world = alone = None
    print("| nodes | requests | a second | p50 ms | p99 ms | CPU us a request: node asked | other nodes | brokers |")
    print("| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |", flush=True)
    try:
        alone = OwnNode(binary, os.path.join(directory, "alone"))
        alone.start()
        prepare(binary, alone, 1)
        rows("one, without a cluster", binary, alone, {"node asked": [alone.process.pid]}, keys)
        alone.stop()
        world = World(directory, binary)
        for _ in range(NODES):
            world.new_node().start()
        asked, *others = world.nodes
        prepare(binary, asked, NODES)
        groups = {
            "node asked": [asked.process.pid],
            "other nodes": [node.process.pid for node in others],
            "brokers": [broker.process.pid for broker in world.brokers],
        }
        warm(binary, asked, keys, given.warm_secs)
        rows("three, three replicas", binary, asked, groups, keys)
    finally:
        if alone is not None and alone.is_running():
            alone.kill()
        if world is not None:
            world.end()
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main()
