// The overview: how to connect, tiles, charts, running tasks, caches and counters.

import * as ask from "./ask.js";
import * as metrics from "./metrics.js";
import * as cluster from "./cluster.js";
import { Chart } from "./charts.js";
import { bytes, count, digits, duration, millis } from "./format.js";
import { CHARTS, lines } from "./history.js";
import { element, put, refresh, table } from "./tables.js";
import { print } from "./route.js";

const at = (id) => document.getElementById(id);
const charts = Object.fromEntries(Object.entries(CHARTS).map(([name, of]) => [name, new Chart(at(`chart-${name}`), Object.keys(of))]));

export function redraw() {
  for (const chart of Object.values(charts)) chart.draw();
}

export function draw({ points, status, compactions, info, role }) {
  const seconds = Number(at("overview-window").value);
  for (const [name, chart] of Object.entries(charts)) chart.set(lines(name, points), seconds);
  tiles(points[points.length - 1], status, compactions);
  tasks(compactions);
  connect(status, info, role);
}

function tiles(last, status, compactions) {
  const pending = compactions.pending.reduce((all, table) => all + table.compactions, 0);
  const of = (value, show) => (value === null || value === undefined ? "-" : show(value));
  const shown = [
    ["Requests / s", of(last?.requests, digits)],
    ["p99", of(last?.p99, millis)],
    ["Errors / s", of(last?.errors, digits)],
    ["Clients", String(status.clients)],
    ["Memtables", bytes(status.memtable_bytes)],
    ["Read / s", of(last?.read, bytes)],
    ["Written / s", of(last?.written, bytes)],
    ["Compactions due", String(pending)],
  ];
  put(at("tiles"), ...shown.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, value))));
}

function tasks(report) {
  const lines = report.running.map((task) => element("div", { class: "task" },
    element("span", {}, `${task.kind} of ${task.keyspace}.${task.table}, ${task.sstables} SSTables`),
    element("progress", { max: Math.max(task.total_bytes, 1), value: task.done_bytes, "aria-label": `${task.kind} of ${task.keyspace}.${task.table}` }),
    element("span", {}, `${bytes(task.done_bytes)} of ${bytes(task.total_bytes)}`)));
  put(at("tasks"), ...(lines.length ? lines : [element("p", {}, "No compaction is going on.")]));
}

// Where clients connect: an address for all interfaces is the host of this page. Pure.
export function clientAddress(cqlAddress, pageHost) {
  const cut = cqlAddress.lastIndexOf(":");
  const [host, port] = [cqlAddress.slice(0, cut).replace(/^\[|\]$/g, ""), cqlAddress.slice(cut + 1)];
  return { host: host === "0.0.0.0" || host === "::" ? pageHost : host, port };
}

const FIRST = `CREATE KEYSPACE first WITH replication = {'class': 'SimpleStrategy', 'replication_factor': 1}`;

// A node without tables says how to connect to it.
function connect(status, info, role) {
  const isEmpty = status.tables.length === 0;
  at("connect").hidden = !isEmpty;
  if (!isEmpty || !info || at("connect-ways").childElementCount) return;
  const { host, port } = clientAddress(info.cql_address, location.hostname);
  const user = role ? ` -u ${role}` : "";
  const way = (name, text) => element("div", {}, element("dt", {}, name), element("dd", {}, element("pre", { tabindex: "0" }, text)));
  put(at("connect-ways"),
    way("Shell", `ilion cql ${host.includes(":") ? `[${host}]` : host}:${port}${user}`),
    way("cqlsh", `cqlsh ${host} ${port}${user}`),
    way("Python, pip install cassandra-driver", `from cassandra.cluster import Cluster\nsession = Cluster(["${host}"], port=${port}).connect()`));
  at("connect-first").setAttribute("href", print({ view: "query", values: { cql: FIRST } }));
}

// What changes slowly.
export async function drawCounters(info) {
  const found = metrics.parse(await ask.text("/metrics"));
  const gauge = (name) => metrics.sum(found, name);
  at("name").textContent = `${info.cluster_name}, ${info.version}, up ${duration(info.uptime_secs)}`;
  const glance = cluster.glance(found);
  at("glance").hidden = !glance;
  if (glance) put(at("glance"), element("a", { href: "#cluster", class: glance.level }, glance.text));
  const share = (cache) => (cache.hits + cache.misses ? `${((100 * cache.hits) / (cache.hits + cache.misses)).toFixed(1)} %` : "-");
  refresh(at("caches"), table("caches", "What is kept in memory of what is on disk", [
    { name: "cache", of: (cache) => cache.name },
    { name: "memory", of: (cache) => cache.bytes, show: bytes, number: true },
    { name: "of", of: (cache) => cache.bytes_max, show: bytes, number: true },
    { name: "entries", of: (cache) => cache.entries, show: count, number: true },
    { name: "hits", of: share },
  ], info.caches.filter((cache) => cache.bytes_max > 0)));
  const facts = [
    ["commit log", bytes(gauge("ilion_commit_log_bytes"))],
    ["records appended", count(gauge("ilion_commit_log_records_total"))],
    ["syncs of the log", count(gauge("ilion_commit_log_syncs_total"))],
    ["flushes", count(gauge("ilion_flushes_total"))],
    ["compactions", count(gauge("ilion_compactions_total"))],
    ["SSTables that reads touch only for compaction debt", count(gauge("ilion_compaction_debt"))],
    ["token maps", bytes(gauge("ilion_token_map_bytes"))],
  ];
  refresh(at("engine"), table("engine", "Since the start of the node", [
    { name: "what", of: ([name]) => name }, { name: "value", of: ([, value]) => value, number: true },
  ], facts));
}
