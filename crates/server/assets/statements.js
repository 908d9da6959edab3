// The statements view: what each kind of statement costs.

import * as ask from "./ask.js";
import { bytes, count, digits, millis, nanos } from "./format.js";
import { element, filter, put, setOrder, table } from "./tables.js";
import { print } from "./route.js";

const at = (id) => document.getElementById(id);
const CAPTION = "Statements by shape since the start of the node or the last reset";
let found = [];

// Value, heading, format.
const COSTS = [
  [(row) => row.calls, "calls", count],
  [(row) => row.errors, "errors", count],
  [(row) => row.total_millis, "time, all", millis],
  [(row) => row.latency_millis[0], "p50", millis],
  [(row) => row.latency_millis[2], "p99", millis],
  [(row) => row.disk_bytes, "read from disk", bytes],
  [(row) => row.disk_bytes / Math.max(row.counts.bytes_returned, 1), "read per byte of answers", digits],
  [(row) => row.amplification_p99, "the same, p99", digits],
  [(row) => row.rows_p99, "rows, p99", count],
  [(row) => row.tombstones_p99, "tombstones, p99", count],
  [(row) => row.counts.sstables_touched, "SSTables touched", count],
  [(row) => row.counts.disk_wait_nanos, "waiting for disk", nanos],
  [(row) => row.counts.log_wait_nanos, "waiting for the log", nanos],
];

export async function load() {
  try {
    found = (await ask.json("/admin/statements")).statements;
    draw();
  } catch (error) {
    found = [];
    put(at("statements-table"), element("p", { class: "alert" }, error.message));
  }
}

export function draw() {
  const shown = filter(found, at("statements-filter").value, (row) => [row.statement, row.keyspace]);
  put(at("statements-table"), table("statements", `${CAPTION}: ${shown.length} of ${found.length}`, [
    { name: "statement", of: (row) => row.statement, code: true, link: (row) => print({ view: "query", values: { cql: row.statement, keyspace: row.keyspace } }) },
    { name: "keyspace", of: (row) => row.keyspace },
    ...COSTS.map(([of, name, show]) => ({ name, of, show, number: true })),
  ], shown));
}

export async function reset() {
  try {
    await ask.query({ cql: "TRUNCATE system_views.statements" });
  } catch (error) {
    put(at("statements-table"), element("p", { class: "alert" }, error.message));
    return;
  }
  load();
}

// What takes most of the node's time comes first, until another order is chosen.
export function enter(values) {
  at("statements-filter").value = values.filter ?? "";
  setOrder("statements", values.sort ?? "-time, all");
  load();
}
