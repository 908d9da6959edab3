"""Run by cluster-check.sh: a cluster of three brokers and three nodes, a load for each fault, and a table of what was seen."""

import argparse
import os
import shutil
import sys
import tempfile
import time

from cases import CASES, OF_LINKS, Skipped
from clients import Load
from sstables import check, why_no_cassandra
from verdict import TABLES, Verdict, contents, judge, table
from world import World

NODES = 3


def run(world, name, case, seconds, is_last=False):
    """Runs a case, and returns its verdict. After the last one, Cassandra's tool reads the SSTables, too."""
    world.keyspace = "case_" + name.replace("-", "_")
    world.begin_case()
    load = Load([node.host for node in world.nodes], world.nodes[0].port, world.keyspace)
    load.start()
    try:
        case(world, seconds)
    finally:
        stuck = load.end()
    late = [reason for reason in (node.wait_caught_up() for node in world.nodes) if reason]
    verdict = judge(name, load, contents(world.nodes, world.keyspace), world.nodes)
    logged = [(node.number, line) for node in world.nodes for line in node.new_errors()]
    expected = world.expected_errors
    errors = [f"node {number} has logged {line}" for number, line in logged if not any(words in line for words in expected)]
    reason = why_no_cassandra() if is_last else None
    if reason:
        world.notes.append(f"Cassandra's sstabledump has read nothing: {reason}")
    partitions, different = check(world, [*TABLES, *world.more_tables], is_last and not reason)
    verdict.cells["SSTables"] = f"{'differ' if different else 'equal'}: {partitions}"
    verdict.problems += [*different, *late, *errors, *world.problems, *(f"a client of kind {kind} is stuck" for kind in stuck)]
    return verdict


def tried(world, name, seconds, is_last):
    """As `run`; a case that cannot be run to its end is a failure, too. None if it cannot be run here."""
    try:
        return run(world, name, CASES[name], seconds, is_last)
    except Skipped as reason:
        print(f"{name}: skipped, since {reason}", flush=True)
        return None
    except Exception as error:  # noqa: BLE001: the other cases are still worth running
        verdict = Verdict(name)
        verdict.problems = [f"the case ended: {type(error).__name__}: {error}", *world.problems]
        return verdict


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=20, help="length of a case (default 20)")
    parser.add_argument("--cases", default=",".join(CASES), help="which, separated by commas; see --list")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a setting of all nodes, such as log_options_partitions=12")
    parser.add_argument("--list", action="store_true", help="prints the cases")
    parser.add_argument("--keep", action="store_true", help="keeps the directory with data and logs")
    parser.add_argument("--stop-at-failure", action="store_true", help="ends after the first case that failed")
    given = parser.parse_args()
    unknown = [name for name in given.cases.split(",") if name not in CASES]
    if unknown:
        parser.error(f"there is no case {unknown[0]}; there are {', '.join(CASES)}")
    if given.seconds < 4:
        parser.error("a case takes 4 seconds at least")
    return given


def main():
    given = arguments()
    if given.list:
        for name, case in CASES.items():
            print(f"{name:16} {case.__doc__}")
        return 0
    directory = tempfile.mkdtemp(prefix="cluster-check-")
    world = None
    verdicts = []
    try:
        began = time.monotonic()
        has_links = not OF_LINKS.isdisjoint(given.cases.split(","))
        world = World(directory, os.environ["ILION"], has_links, settings=given.set)
        for _ in range(NODES):
            world.new_node().start()
        print(f"{len(world.brokers)} brokers and {NODES} nodes run after {time.monotonic() - began:.0f} s", flush=True)
        chosen = [name for name in CASES if name in given.cases.split(",")]
        for name in chosen:
            verdict = tried(world, name, given.seconds, name == chosen[-1])
            if verdict is None:
                continue
            verdicts.append(verdict)
            print(f"{name}: {'good' if verdict.is_good() else 'FAILED'}", flush=True)
            for line in [*verdict.problems, *world.notes[-3:]]:
                print(f"  {line}", flush=True)
            for failure, count in sorted(verdict.failures.items()):
                print(f"  {count} x {failure}", flush=True)
            if given.stop_at_failure and not verdict.is_good():
                break
    finally:
        if world is not None:
            world.end()
        if given.keep:
            print(f"data and logs are in {directory}")
        else:
            shutil.rmtree(directory, ignore_errors=True)
    print()
    print(table(verdicts))
    failed = [verdict.name for verdict in verdicts if not verdict.is_good()]
    print(f"\nfailed: {', '.join(failed)}" if failed else "\nall cases are good")
    return 1 if failed or not verdicts else 0


if __name__ == "__main__":
    sys.exit(main())
