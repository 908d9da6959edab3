"""Memory: however much is written and read, the process takes little more than its budgets."""

import os
import re
import subprocess
import sys

import pytest

from node import OwnNode

RUN_SECS = 300
BUDGETS_MIB = {"memtable_heap_space": 64, "file_cache_size": 32, "key_cache_size": 4, "counter_cache_size": 4}
# The program (50 MiB of a debug build), threads and their buffers, token maps, requests in flight, running flushes and compactions.
BESIDE_MIB = 96
KEYS = 300_000

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")


def peak_mib(node):
    """The largest resident memory so far."""
    with open(f"/proc/{node.process.pid}/status") as status:
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read())[1]) // 1024


def test_memory_stays_within_its_budgets_under_load(request, tmp_path):
    if request.config.getoption("--against"):
        pytest.skip("only for a process of ours")
    settings = [f"{name}={mib}MiB" for name, mib in BUDGETS_MIB.items()]
    node = OwnNode(os.environ["SMOKE_ILION"], str(tmp_path / "data"), settings)
    node.start()
    try:
        # Five columns of 34 bytes: more than all budgets together. Written twice, so that compactions have something to merge.
        for workload in ("write", "read", "write", "scan", "read"):
            command = [node.binary, "bench", workload, "--port", str(node.port), "--keys", str(KEYS), "--json"]
            subprocess.run(command, check=True, capture_output=True, timeout=RUN_SECS)
        peak = peak_mib(node)
        print(f"\nat most {peak} MiB resident, budgets {sum(BUDGETS_MIB.values())} MiB")
        assert peak < sum(BUDGETS_MIB.values()) + BESIDE_MIB
    finally:
        node.stop()
