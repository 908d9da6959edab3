"""Prints the results of compare-cassandra.sh as a table."""

import json
import os
import sys

WORKLOADS = [
    ("write", "writes", "operations_per_sec"),
    ("read", "reads by key", "operations_per_sec"),
    ("read-disk", "reads by key, flushed", "operations_per_sec"),
    ("scan-disk", "scan, flushed (rows)", "rows_per_sec"),
]


def load(directory, server, sync, workload):
    with open(os.path.join(directory, f"{server}-{sync}-{workload}.json")) as source:
        return json.load(source)


def cpu_micros(result, unit):
    """The server's CPU time for an operation or a row."""
    done = result["rows"] if unit == "rows_per_sec" else result["operations"]
    return result["server"]["cpu_secs"] / done * 1e6


def line(title, theirs, ours, ratio):
    print(f"| {title} | {theirs} | {ours} | {ratio} |")


def main(directory, syncs):
    for sync in syncs:
        line(f"commit log: {sync}", "Cassandra", "Ilion", "ratio")
        line("---", "---:", "---:", "---:")
        for workload, title, unit in WORKLOADS:
            theirs, ours = (load(directory, server, sync, workload) for server in ("cassandra", "ilion"))
            line(f"{title} per second", f"{theirs[unit]:,.0f}", f"{ours[unit]:,.0f}", f"{ours[unit] / theirs[unit]:.1f}x")
            cpu = [cpu_micros(result, unit) for result in (theirs, ours)]
            line("- server CPU each, us", f"{cpu[0]:.1f}", f"{cpu[1]:.1f}", f"1/{cpu[0] / max(cpu[1], 1e-9):.1f}")
            p99 = [result["latency_micros"]["p99"] / 1000 for result in (theirs, ours)]
            line("- p99, ms", f"{p99[0]:.1f}", f"{p99[1]:.1f}", f"1/{p99[0] / max(p99[1], 1e-9):.1f}")
        peak = [load(directory, server, sync, "scan-disk")["server"]["memory_peak_mib"] for server in ("cassandra", "ilion")]
        idle = []
        for server in ("cassandra", "ilion"):
            with open(os.path.join(directory, f"{server}-{sync}-idle.txt")) as source:
                idle.append(float(source.read()))
        line("memory when idle, MiB", f"{idle[0]:.0f}", f"{idle[1]:.0f}", f"1/{idle[0] / idle[1]:.0f}")
        line("memory at most, MiB", f"{peak[0]:.0f}", f"{peak[1]:.0f}", f"1/{peak[0] / peak[1]:.1f}")
        print()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
