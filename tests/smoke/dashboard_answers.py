"""Answers of nodes that never change, for tests of the dashboard: a busy single node, an empty one, and a member of a cluster of three."""

import json
import math
import re
import urllib.parse

# 2026-11-27 10:00:00 UTC.
EPOCH_MILLIS = 1_795_773_600_000
SECONDS = 300
BOUNDS = [1000 << bucket for bucket in range(23)]
NONE = {"p50": 0, "p75": 0, "p95": 0, "p98": 0, "p99": 0, "min": 0, "max": 0, "mean": 0}
MIB = 1 << 20


# Has the page send its statements in addresses: WebDriver BiDi does not show the bodies of requests.
STATEMENTS_IN_ADDRESSES = """
    const ask = window.fetch;
    window.fetch = (path, options) => ask(path === "/api/query" ? `${path}?cql=${encodeURIComponent(JSON.parse(options.body).cql)}` : path, options);
"""


class Answers:
    """Answers by path; those to statements by words in them."""

    def give(self, page):
        """Has the page get these answers instead of those of the node."""
        page.add_init_script(STATEMENTS_IN_ADDRESSES)
        page.route(re.compile("/(admin|api)/|/metrics$"), self.answer)

    def __init__(self, by_path, by_words):
        self.by_path = by_path
        self.by_words = by_words

    def answer(self, route):
        path = re.sub(r"^https?://[^/]+/|\?.*$", "", route.request.url)
        found = self.by_path.get(path)
        if path == "api/history":
            after = int(re.search(r"after=(\d+)|$", route.request.url).group(1) or 0)
            found = {**found, "samples": [sample for sample in found["samples"] if sample["millis"] > after]}
        if path == "api/query":
            cql = urllib.parse.unquote(route.request.url.partition("?cql=")[2])
            found = next((answer for words, answer in self.by_words.items() if words in cql), None)
        if found is None:
            route.fulfill(status=400, json={"error": f"there is no answer to {path}"})
        elif isinstance(found, str):
            route.fulfill(body=found, content_type="text/plain")
        else:
            route.fulfill(body=json.dumps(found), content_type="application/json")


def rows(names, values, types="text", trace=(), elapsed_micros=900):
    """An answer to a statement."""
    columns = [{"name": name, "type": kind} for name, kind in zip(names.split(), types.split() * len(names.split()))]
    return {
        "columns": columns, "rows": values, "paging_state": None, "warnings": [], "elapsed_micros": elapsed_micros, "keyspace": None,
        "trace": [{"elapsed_micros": micros, "activity": activity} for micros, activity in trace],
    }  # fmt: skip


def sample(second):
    """What a node under waves of load did in a second."""
    wave = 1 + math.sin(second / 20)
    latencies = [round(400 * wave * math.exp(-((bucket - 8 - wave) ** 2) / 3)) for bucket in range(15)]
    if second % 40 == 7:
        latencies[13] = 3
    return {
        "millis": 1000 * second, "elapsed_millis": 1000, "requests": [round(20 * wave), 0, sum(latencies), 2, 0],
        "latencies": latencies, "errors": 1 if second % 60 == 0 else 0, "read_bytes": round(3 * MIB * wave),
        "written_bytes": 8 * MIB if second % 30 < 4 else MIB, "memtable_bytes": (second % 60) * MIB,
        "chunk_cache_bytes": 300 * MIB, "other_cache_bytes": 12 * MIB, "clients": 4,
    }  # fmt: skip


def idle(second):
    """The same of a node that nobody asks."""
    nothing = {"requests": [0] * 5, "latencies": [], "errors": 0, "read_bytes": 0, "written_bytes": 0, "clients": 0}
    return {**sample(second), **nothing, "memtable_bytes": MIB, "chunk_cache_bytes": 0}


def history(samples):
    kinds = ["query", "prepare", "execute", "batch", "other"]
    return {"epoch_millis": EPOCH_MILLIS, "kept_millis": 900_000, "kinds": kinds, "bounds_nanos": BOUNDS, "samples": samples}


TABLE = {"keyspace": "shop", "table": "orders", "sstables": 7, "levels": [7], "sstable_bytes": 812 * MIB, "memtable_bytes": 3 * MIB,
         "estimated_partitions": 15_000, "is_auto_compacting": True}  # fmt: skip
STATS = {
    "keyspace": "shop", "table": "orders", "sstables": 7, "sstables_in_levels": [], "sstable_bytes": 812 * MIB, "sstable_bytes_max": 400 * MIB,
    "snapshots_bytes": 0, "data_bytes": 2000 * MIB, "compression_ratio": 0.41, "estimated_partitions": 15_000, "memtable_bytes": 3 * MIB,
    "memtable_partitions": 70, "pending_compactions": 1, "droppable_tombstones": 0.03, "reads": 41_780, "reads_failed": 0, "writes": 14_450,
    "writes_failed": 0, "read_micros": {**NONE, "p50": 328, "p99": 3146}, "write_micros": {**NONE, "p50": 80, "p99": 503},
    "sstables_per_read": {**NONE, "p99": 2}, "rows_per_read": {**NONE, "p50": 1}, "tombstones_per_read": {**NONE, "p99": 2},
    "partition_bytes": {**NONE, "p50": 2580, "p99": 90_000, "max": 310 * MIB}, "cells": {**NONE, "p50": 14, "max": 900_000},
}  # fmt: skip
COUNTS = ["bytes_returned", "disk_wait_nanos", "log_wait_nanos", "rows_returned", "rows_scanned", "sstables_touched", "tombstones_scanned"]
STATEMENT = {
    "keyspace": "shop", "statement": "SELECT * FROM shop.orders WHERE customer = ?", "calls": 41_780, "errors": 0, "total_millis": 19_763.0,
    "latency_millis": [0.33, 1.1, 3.15, 52.3], "disk_bytes": 90 * MIB, "amplification_p99": 41.5, "rows_p99": 50, "tombstones_p99": 2,
    "counts": {**dict.fromkeys(COUNTS, 0), "bytes_returned": 9 * MIB, "rows_returned": 125_000, "rows_scanned": 130_000},
}  # fmt: skip
STATUS = {
    "failure": None, "set_aside": [], "stalled": None, "clients": 4, "requests": 56_000, "memtable_bytes": 23 * MIB, "memtable_bytes_max": 4096 * MIB,
    "flushes": 12, "compactions": 5, "compactions_failed": 0, "disk_read_bytes": 90 * MIB, "clock_behind_secs": 0, "log_losses": None,
    "is_of_cluster": False, "tables": [TABLE],
}  # fmt: skip
NODE = {
    "release_version": "5.0.9", "schema_version": "0c22f44a-a80b-30a6-871b-875d7827f466", "cluster_name": "Shop", "listen_address": "127.0.0.1",
    "native_address": "127.0.0.1:9042", "host_id": "eabd7080-5058-4bf1-a197-da109c3c517b", "data_center": "datacenter1", "rack": "rack1",
    "tokens": ["7582531718233027642"], "members": [], "shares": {}, "ranges": {}, "load_bytes": 812 * MIB, "uptime_secs": 93_784,
}  # fmt: skip


def cache(name, size, entries, hits, misses):
    return {"name": name, "bytes": size, "bytes_max": 512 * MIB, "entries": entries, "hits": hits, "misses": misses}


INFO = {
    "version": "0.1.0", "release_version": "5.0.9", "pid": 7509, "uptime_secs": 93_784, "cluster_name": "Shop", "host_id": NODE["host_id"],
    "cql_address": "127.0.0.1:9042", "data_directory": "/var/lib/ilion/data", "commitlog_directory": "/var/lib/ilion/commitlog",
    "caches": [cache("chunks", 300 * MIB, 18_000, 963, 37), cache("keys", 12 * MIB, 90_000, 4, 1)],
}  # fmt: skip
METRICS = """# TYPE ilion_commit_log_bytes gauge
ilion_commit_log_bytes 67108864
ilion_commit_log_records_total 14450
ilion_commit_log_syncs_total 9380
ilion_flushes_total 12
ilion_compactions_total 5
ilion_compaction_debt 3
ilion_token_map_bytes 181000
"""
SPECTRUM = {
    "slot_millis": 100, "slots_kept": 3000, "epoch_millis": EPOCH_MILLIS, "current_slot": 3000, "bounds_nanos": [round(100 * 10 ** (step / 5)) for step in range(40)],
    "kinds": ["data", "index", "log", "flush", "compaction", "fsync", "other"], "tables": {"0": "", "1": "shop.orders"},
    "slots": [{"slot": slot, "cells": [[1, 0, 15 + slot % 5, 1 + slot % 9], [0, 5, 24 + slot % 3, 1]]} for slot in range(2400, 3000)],
}  # fmt: skip
TASK = {"id": "1", "kind": "Compaction", "keyspace": "shop", "table": "orders", "sstables": 4, "done_bytes": 300 * MIB, "total_bytes": 400 * MIB}
COLUMN_NAMES = "keyspace_name table_name column_name kind position"
EXPLAINED = rows(
    "step detail",
    [
        ["table", "shop.orders"], ["access", "one partition by its key"], ["partition", "customer = 2 (token -3248873570005575792)"],
        ["memtables", "0"], ["sstables", "2 of 2 may be read: nb-2-big, nb-1-big"], ["limit", "5"], ["elapsed_micros", "590"],
        ["sstables_considered", "2"], ["sstables_touched", "1"], ["partitions_scanned", "1"], ["rows_scanned", "8"], ["rows_returned", "5"],
        ["bytes_returned", "190"], ["disk_reads", "3"], ["disk_bytes", "770"], ["disk_wait_micros", "113"],
    ],
    trace=[
        (80, "Parsing EXPLAIN ANALYZE SELECT"), (151, "Preparing statement"), (1013, "Executing single-partition query on orders"),
        (1108, "Reading sstable nb-2-big"), (1250, "Read 154 bytes of nb-2-big-Checksums.db at 0 in 8 us"),
        (1389, "Read 569 bytes of nb-2-big-Data.db at 0 in 103 us"), (1517, "Read 5 live rows and 0 tombstone cells"),
    ],
    elapsed_micros=1755,
)  # fmt: skip
BY_WORDS = {
    "EXPLAIN ANALYZE": EXPLAINED,
    "system_schema.columns": rows(COLUMN_NAMES, [["shop", "orders", "customer", "partition_key", "0"], ["shop", "orders", "id", "clustering", "0"],
                                                 ["shop", "orders", "item", "regular", "-1"]]),
    "system_virtual_schema.columns": rows(COLUMN_NAMES, []),
    "system_schema.keyspaces": rows("keyspace_name", [["shop"], ["system"]]),
    "system_schema.tables": rows("keyspace_name table_name", [["shop", "orders"]]),
    "system_schema.views": rows("keyspace_name view_name", []),
    "system_schema.types": rows("keyspace_name type_name", []),
    "system_schema.indexes": rows("keyspace_name index_name", []),
    "system_schema.functions": rows("keyspace_name function_name", []),
    "system_schema.aggregates": rows("keyspace_name aggregate_name", []),
    "DESCRIBE": rows("create_statement", [["CREATE TABLE shop.orders (customer int, id int, item text, PRIMARY KEY (customer, id))"]]),
}  # fmt: skip
BUSY = {
    "api/session": {"asks_for": "nothing", "role": None, "may_watch": False, "may_administer": False},
    "api/history": history([sample(second) for second in range(1, SECONDS + 1)]),
    "api/spectrogram": SPECTRUM,
    "api/slowest": {"slowest": []},
    "admin/status": STATUS,
    "admin/info": INFO,
    "admin/node": NODE,
    "admin/compactions": {"running": [TASK], "pending": [{"keyspace": "shop", "table": "orders", "compactions": 1}]},
    "admin/table-stats": {"tables": [STATS]},
    "admin/statements": {"statements": [STATEMENT]},
    "admin/settings": {"settings": [["log", "local"]], "at_start": []},
    "metrics": METRICS,
}

busy = Answers(BUSY, BY_WORDS)
empty = Answers(
    {
        **BUSY,
        "api/history": history([idle(second) for second in range(1, SECONDS + 1)]),
        "admin/status": {**STATUS, "tables": [], "clients": 0, "memtable_bytes": 0},
        "admin/compactions": {"running": [], "pending": []},
        "admin/table-stats": {"tables": []},
        "admin/statements": {"statements": []},
    },
    BY_WORDS,
)

# As a node answered that was one of three on a broker, cut short.
MEMBER = {
    "host_id": NODE["host_id"], "address": "127.0.0.1", "native_port": 9042, "storage_port": 7000, "data_center": "datacenter1", "rack": "rack1",
    "tokens": ["-4611686018427387905", "-1"], "state": "normal", "is_up": True, "silence": None, "schema_version": NODE["schema_version"],
    "load_bytes": 812 * MIB, "lag_records": 12, "tablets_behind": 0, "release_version": "5.0.9",
}  # fmt: skip
MEMBERS = [
    MEMBER,
    {**MEMBER, "host_id": "0c244ced-6fc4-44b5-88b2-f00550354b37", "address": "127.0.0.2", "rack": "rack2", "tokens": ["4611686018427387903"],
     "silence": 0.1374, "load_bytes": 790 * MIB, "lag_records": 0, "state": "leaving"},
    {**MEMBER, "host_id": "1e22de74-6149-477f-8733-1125d1bea411", "address": "127.0.0.3", "rack": "rack3", "tokens": ["9223372036854775807"],
     "is_up": False, "silence": 1.0, "load_bytes": None, "lag_records": None, "tablets_behind": None},
]  # fmt: skip
OWNED = dict(zip([member["host_id"] for member in MEMBERS], [0.75, 0.75, 0.5]))
RANGES = [["-4611686018427387905", [0, 1]], ["-1", [0, 2]], ["4611686018427387903", [1, 0]], ["9223372036854775807", [2, 1]]]
LAGS = {0: 0, 1: 9, 2: 3, 5: 0}


def barrier(step, total, counts):
    """The lines of a histogram of waits; counts of waits up to 1 ms, 8 ms, and all."""
    name = "ilion_cluster_barrier_seconds"
    bounds = ["0.001024", "0.008192", "+Inf"]
    lines = [f'{name}_bucket{{le="{bound}",step="{step}"}} {count}' for bound, count in zip(bounds, counts)]
    return [f'{name}_sum{{step="{step}"}} {total}', f'{name}_count{{step="{step}"}} {counts[-1]}', *lines]


MEMBER_METRICS = [
    'ilion_cluster_members{state="normal",up="true"} 1',
    'ilion_cluster_members{state="normal",up="false"} 1',
    'ilion_cluster_members{state="leaving",up="true"} 1',
    "ilion_cluster_tablets_followed 4",
    "ilion_cluster_tablets_ready 4",
    "ilion_cluster_tablets_lacking 0",
    "ilion_cluster_tablets_halted 1",
    "ilion_cluster_disputed_blocks_total 1",
    "ilion_cluster_lag_records 12",
    *(f'ilion_cluster_tablet_lag_records{{tablet="{tablet}"}} {lag}' for tablet, lag in LAGS.items()),
    "ilion_cluster_applied_records_total 1335",
    "ilion_cluster_appends_total 1758",
    "ilion_cluster_appends_failed_total 2",
    "ilion_cluster_appends_repeated_total 5",
    "ilion_cluster_log_produce_requests_total 1710",
    "ilion_cluster_log_produce_errors_total 4",
    "ilion_cluster_log_fetch_requests_total 2501",
    "ilion_cluster_log_fetch_errors_total 0",
    *barrier("raise", 10.0, [100, 900, 1000]),
    *barrier("apply", 2.0, [1000, 1000, 1000]),
]
OUTBOUND = "address port active_connections sent_count sent_bytes error_count expired_count overload_count"
member = Answers(
    {
        **BUSY,
        "admin/status": {**STATUS, "is_of_cluster": True},
        "admin/node": {**NODE, "members": MEMBERS, "tokens": MEMBER["tokens"], "shares": {"shop": OWNED, "system_auth": {}}, "ranges": {"shop": RANGES, "system_auth": []}},
        "admin/ring-change": {
            "change": {"number": 3, "what": "127.0.0.2 leaves", "slices": 1, "copying": [{"host_id": NODE["host_id"], "address": "127.0.0.1", "is_ready": True}]},
            "has_left": False,
        },
        "admin/settings": {"settings": [["log", "kafka://b1:9092,b2:9092/shop"]], "at_start": []},
        "metrics": METRICS + "\n".join(MEMBER_METRICS) + "\n",
    },
    {
        **BY_WORDS,
        "internode_outbound": rows(OUTBOUND, [["'127.0.0.2'", "7000", "1", "150", "11500", "1", "0", "0"], ["'127.0.0.3'", "7000", "0", "11", "676", "11", "3", "0"]]),
        "internode_inbound": rows("address port received_count received_bytes error_count", [["'127.0.0.2'", "7000", "90", "8000", "0"]]),
    },
)  # fmt: skip
