"""The judges of scripts/cluster-check.sh find what they are there for, and its proxies cut what they should. A short form of the check itself."""

import json
import os
import sys
from types import SimpleNamespace

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scripts", "cluster_check"))

from cases import kill  # noqa: E402
from links import inode_of, is_cut  # noqa: E402
from main import run  # noqa: E402
from sstables import differences, partitions  # noqa: E402
from verdict import judge, table  # noqa: E402
from world import World  # noqa: E402

NODES = [SimpleNamespace(number=1), SimpleNamespace(number=2)]


def client(**facts):
    return SimpleNamespace(kind="k", succeeded=5, failed=1, gap=0.5, problem=None, **facts)


def load():
    """Two rows, a register with 3, a counter that got one or two, and two conditional updates."""
    writers = [client(acknowledged=[(0, 1), (1, 2)])]
    setters, readers = [client()], [client(stale=[])]
    counters = [client(added=[1, 0, 0, 0], unknown=[1, 0, 0, 0])]
    conditionals = [client(applied=[(0, 0, 7), (0, 7, 8)])]
    return SimpleNamespace(
        writers=writers,
        setters=setters,
        readers=readers,
        counters=counters,
        conditionals=conditionals,
        clients=[*writers, *setters, *readers, *counters, *conditionals],
        written=[3],
        failures={},
    )


def found():
    tables = {
        "rows": [(0, 1, "a"), (1, 2, "b")],
        "registers": [(0, 3)],
        "counts": [(0, 2)],
        "conditions": [(key, 8 if key == 0 else 0) for key in range(6)],
    }
    return {(node.number, name): list(rows) for node in NODES for name, rows in tables.items()}


def test_a_case_without_a_fault_is_good():
    verdict = judge("quiet", load(), found(), NODES)
    assert verdict.is_good(), verdict.problems
    assert "| quiet" in table([verdict]) and "exact: 1 to 2" in table([verdict])


def lost_on_both(_, there):
    for node in NODES:
        there[node.number, "rows"].pop()


def older_register(_, there):
    for node in NODES:
        there[node.number, "registers"] = [(0, 2)]


def stale_read(done, _):
    done.readers[0].stale.append((0, 3, 2))


def counted_twice(_, there):
    for node in NODES:
        there[node.number, "counts"] = [(0, 3)]


def replaced_twice(done, _):
    done.conditionals.append(client(applied=[(0, 0, 9)]))


def lost_update(_, there):
    for node in NODES:
        there[node.number, "conditions"][0] = (0, 7)


def other_rows(_, there):
    there[2, "rows"].append((0, 99, "c"))


def dead_client(done, _):
    done.clients[0].problem = "KeyError"


@pytest.mark.parametrize(
    "harm, words",
    [
        (lost_on_both, "lacks 1 acknowledged"),
        (older_register, "lacks 1 acknowledged"),
        (stale_read, "stale reads"),
        (counted_twice, "counter 0 is 3"),
        (replaced_twice, "replaced twice"),
        (lost_update, "replaced twice"),
        (other_rows, "different rows in rows"),
        (dead_client, "ended: KeyError"),
    ],
)
def test_each_broken_promise_is_found(harm, words):
    done, there = load(), found()
    harm(done, there)
    problems = judge("case", done, there, NODES).problems
    assert any(words in problem for problem in problems), problems


def dump(*rows, position=0):
    """A dump of partition 7 with these values and write times."""
    cells = [{"name": "v", "value": value, "tstamp": time} for value, time in rows]
    partition = {"key": ["7"], "position": position}
    return json.dumps({"partition": partition, "rows": [{"type": "row", "position": position + 9, "cells": cells}]}) + "\n"


@pytest.mark.parametrize(
    "second, words",
    [
        (dump(("a", 1), position=50), None),
        (dump(("b", 1)), "differs in the SSTables of nodes 1 and 2"),
        (dump(("a", 2)), "differs in the SSTables of nodes 1 and 2"),
        ("", "is in the SSTables of nodes [1], and should be on 2"),
    ],
    ids=["another place", "another value", "another write time", "nothing"],
)
def test_sstables_of_replicas_are_compared(second, words):
    problems = differences({1: partitions(dump(("a", 1))), 2: partitions(second)}, 2)
    assert (words in problems[0] and len(problems) == 1) if words else not problems, problems


NODE = None


@pytest.mark.parametrize(
    "cut, links",
    [
        (None, []),
        (("isolate", 2), [(NODE, 2), (1, 2), (2, 1)]),
        (("hide", 2), [(NODE, 2)]),
        (("part", 2), [(1, 2), (2, 1)]),
    ],
)
def test_links_of_a_broker_are_cut(cut, links):
    every = [(source, target) for source in (NODE, 1, 2) for target in (1, 2)]
    assert [link for link in every if is_cut(cut, *link)] == links


def test_the_socket_of_a_connection_is_found():
    lines = [
        "  0: 0100007F:4E20 00000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 11 1 0 100 0 0 10 0",
        "  1: 0100007F:4E20 0100007F:C350 01 00000000:00000000 00:00000000 00000000 0 0 12 1 0 20 4 30 10 -1",
        "  2: 0100007F:C350 0100007F:4E20 01 00000000:00000000 00:00000000 00000000 0 0 13 1 0 20 4 30 10 -1",
    ]
    assert inode_of(0xC350, 0x4E20, lines) == "13"
    assert inode_of(0xC351, 0x4E20, lines) is None


def test_nothing_is_lost_stale_or_different_when_a_node_and_the_broker_are_killed(request, tmp_path):
    if request.config.getoption("--against"):
        pytest.skip("it starts its own nodes")
    world = World(str(tmp_path), os.environ["SMOKE_ILION"], brokers=1)
    try:
        for _ in range(3):
            world.new_node().start()
        verdict = run(world, "short", lambda world, seconds: kill(seconds, *world.brokers, world.nodes[2]), 4)
    finally:
        world.end()
    assert verdict.is_good(), verdict.problems
    assert verdict.cells["SSTables"].startswith("equal")
