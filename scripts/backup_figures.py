#!/usr/bin/env python3
"""What a snapshot, a backup, its check and a restore of a large node cost.

Usage: backup_figures.py ILION DIR [--keys 1000000] [--value-size 2000]

Starts a node on loopback in DIR/node, writes rows with `ilion bench write` and waits until compactions are done. Then each step: seconds,
MiB per second, CPU seconds and most resident memory of the tool, CPU seconds of the node meanwhile. Before each step the files below DIR
are dropped from the page cache, so it reads from the disk. At last a node is started in the restored directory, and `ilion bench scan`
checks every row. DIR takes three times the data; a node that is in it already is used as it is. Prints a table for docs/benchmarks.md.
Linux only.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

MIB = 1 << 20
TICKS = os.sysconf("SC_CLK_TCK")
START_SECS = 600


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def size_of(place):
    """Bytes of the files below a directory; links to the same file count once."""
    found = [file.stat() for file in pathlib.Path(place).rglob("*") if file.is_file()]
    return sum({one.st_ino: one.st_size for one in found}.values())


def drop_pages(place):
    """Writes the files below a directory to the disk and drops them from the page cache."""
    for file in pathlib.Path(place).rglob("*"):
        if file.is_file():
            with open(file, "rb") as opened:
                os.fsync(opened.fileno())
                os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


class Node:
    def __init__(self, program, data):
        self.program = program
        self.port, self.admin_port = free_port(), free_port()
        ports = ["--port", str(self.port), "--admin-port", str(self.admin_port)]
        with open(f"{data}.log", "w", encoding="utf-8") as log:
            self.process = subprocess.Popen([program, "serve", "--data", data, *ports], stdout=log, stderr=log)
        self.wait_until(self.is_ready)

    def wait_until(self, is_true):
        deadline = time.monotonic() + START_SECS
        while not is_true():
            assert self.process.poll() is None, "the node ended"
            assert time.monotonic() < deadline, "the node takes too long"
            time.sleep(0.1)

    def run(self, *words):
        return subprocess.run([self.program, *words], text=True, capture_output=True, check=False)

    def is_ready(self):
        return self.run("ready", "--admin-port", str(self.admin_port)).returncode == 0

    def has_compacted(self):
        lines = self.run("nodetool", "-p", str(self.admin_port), "compactionstats").stdout.splitlines()
        return any(line.split() == ["pending", "tasks", "0"] for line in lines)

    def bench(self, kind, options):
        done = self.run("bench", kind, "--port", str(self.port), *options)
        assert done.returncode == 0 and " 0 errors" in done.stdout, done.stdout + done.stderr
        return done.stdout

    def cpu_secs(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    def memory_max(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))

    def stop(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(START_SECS) == 0


def measured(node, place, name, words, moved):
    """Runs a tool and prints a line about it. `moved` gets its report and says how many bytes it has read or written."""
    drop_pages(place)
    before, begun = node.cpu_secs(), time.monotonic()
    tool = subprocess.Popen([node.program, *words, "--json"], stdout=subprocess.PIPE, text=True)
    report = tool.stdout.read()
    _, status, used = os.wait4(tool.pid, 0)
    secs = time.monotonic() - begun
    tool.returncode = os.waitstatus_to_exitcode(status)
    assert tool.returncode == 0, f"{name} ended with {tool.returncode}"
    size = moved(json.loads(report))
    rate = f"{size / MIB / secs:.0f}" if size else ""
    of_tool = f"{used.ru_utime + used.ru_stime:.1f} | {used.ru_maxrss / 1024:.0f}"
    print(f"| {name} | {size / 1e9:.2f} | {secs:.2f} | {rate} | {of_tool} | {node.cpu_secs() - before:.1f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("Usage: ")[1].split("\n")[0])
    parser.add_argument("ilion")
    parser.add_argument("directory")
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--value-size", type=int, default=2000)
    asked = parser.parse_args()
    place = pathlib.Path(asked.directory)
    place.mkdir(parents=True, exist_ok=True)
    data, destination, target = str(place / "node"), str(place / "backups"), str(place / "restored")
    for old in (destination, target):
        shutil.rmtree(old, ignore_errors=True)
    rows = ["--keys", str(asked.keys), "--value-size", str(asked.value_size)]
    is_loaded = os.path.exists(data)
    node = Node(asked.ilion, data)
    try:
        if not is_loaded:
            print(node.bench("write", rows), flush=True)
        # Something to flush: rows are written again, with the same values.
        node.bench("write", [*rows, "--operations", str(asked.keys // 50)])
        node.wait_until(node.has_compacted)
        admin = ["--admin-port", str(node.admin_port)]
        create = ["backup", "create", destination, *admin, "--name"]
        print("| | GB | seconds | MiB/s | CPU s | memory, MiB | node's CPU s |\n| --- " + "| ---: " * 6 + "|")
        nothing = lambda report: 0
        measured(node, place, "snapshot with the flush", ["snapshot", "-t", "first", *admin], nothing)
        measured(node, place, "snapshot of what is on disk", ["snapshot", "-t", "second", *admin], nothing)
        uploaded = lambda report: report["uploaded_bytes"]
        measured(node, place, "`create`, the first", [*create, "one"], uploaded)
        measured(node, place, "`create`, nothing new", [*create, "two"], uploaded)
        whole = size_of(destination)
        measured(node, place, "`verify`", ["backup", "verify", destination], lambda report: whole)
        restore = ["backup", "restore", destination, "two", "--into", target]
        measured(node, place, "`restore --into`", restore, lambda report: size_of(target))
        print(f"the node had {node.memory_max() / MIB:.0f} MiB at most, SSTables {size_of(place / 'node' / 'data') / 1e9:.2f} GB")
    finally:
        node.stop()
    restored = Node(asked.ilion, target)
    try:
        print(restored.bench("scan", rows))
    finally:
        restored.stop()


main()
