// The page: its views, and the values that are updated every second.

import * as ask from "./ask.js";
import * as metrics from "./metrics.js";
import * as queryBox from "./query.js";
import * as schema from "./schema.js";
import { Chart } from "./charts.js";
import { Spectrogram } from "./spectrogram.js";
import { element, put, refresh, table } from "./tables.js";

const VIEWS = ["overview", "io", "statements", "tables", "schema", "query"];
const at = (id) => document.getElementById(id);
const MIB = 1024 * 1024;
const ofRequests = (labels) => labels.kind !== "other";

const charts = {
  requests: new Chart(at("chart-requests"), ["query", "execute", "batch", "prepare"]),
  latency: new Chart(at("chart-latency"), ["p50", "p95", "p99"]),
  disk: new Chart(at("chart-disk"), ["read", "written"]),
  memory: new Chart(at("chart-memory"), ["memtables", "chunk cache", "other caches"]),
};
const spectrogram = new Spectrogram();
let before = null;
let isPaused = false;
// False for a role that may not see metrics and reports.
let isWatching = true;
let view = "overview";

function choose() {
  const wanted = location.hash.slice(1);
  view = VIEWS.includes(wanted) ? wanted : "overview";
  for (const name of VIEWS) at(name).hidden = name !== view;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${view}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `Ilion: ${at(`${view}-title`).textContent}`;
  if (view === "schema") schema.load();
  if (view === "statements") statements();
  tick();
}

function state(text, kind) {
  const pill = at("state");
  if (pill.textContent !== text) pill.textContent = text;
  pill.className = `pill ${kind}`;
}

async function live() {
  const [text, status, compactions] = await Promise.all([ask.text("/metrics"), ask.json("/admin/status"), ask.json("/admin/compactions")]);
  const now = { seconds: performance.now() / 1000, at: Date.now() / 1000, metrics: metrics.parse(text), status, compactions };
  const stalled = status.stalled ? `Flushes fail and are tried again: ${status.stalled}` : "";
  const trouble = status.failure ? `Writes are refused: ${status.failure}` : stalled;
  state(status.failure ? "writes are refused" : stalled ? "flushes fail" : "serving", trouble ? "bad" : "good");
  at("failure").hidden = !trouble;
  at("failure").textContent = trouble;
  if (before && now.status.requests >= before.status.requests) draw(before, now);
  before = now;
}

function draw(old, now) {
  const elapsed = now.seconds - old.seconds;
  const rate = (name, where) => Math.max(0, (metrics.sum(now.metrics, name, where) - metrics.sum(old.metrics, name, where)) / elapsed);
  const gauge = (name) => metrics.sum(now.metrics, name);
  const kinds = charts.requests.names.map((kind) => rate("ilion_cql_request_seconds_count", (labels) => labels.kind === kind));
  charts.requests.add(now.at, kinds);
  const [was, is] = [old, now].map((moment) => metrics.buckets(moment.metrics, "ilion_cql_request_seconds", ofRequests));
  const quantiles = [0.5, 0.95, 0.99].map((q) => metrics.quantile(was, is, q)).map((value) => (value === null ? null : value * 1000));
  charts.latency.add(now.at, quantiles);
  const [read, written] = [rate("ilion_disk_read_bytes_total"), rate("ilion_disk_written_bytes_total")];
  charts.disk.add(now.at, [read / MIB, written / MIB]);
  const others = gauge("ilion_key_cache_bytes") + gauge("ilion_rows_cache_bytes") + gauge("ilion_counters_cache_bytes");
  charts.memory.add(now.at, [gauge("ilion_memtable_bytes") / MIB, gauge("ilion_chunk_cache_bytes") / MIB, others / MIB]);
  tiles(now, { requests: kinds.reduce((a, b) => a + b, 0), errors: rate("ilion_cql_errors_total"), p99: quantiles[2], read, written });
  tasks(now.compactions);
  engine(now);
}

function tiles(now, rates) {
  const { status, compactions } = now;
  const pending = compactions.pending.reduce((all, table) => all + table.compactions, 0);
  const shown = [
    ["Requests / s", metrics.count(rates.requests)],
    ["p99", rates.p99 === null ? "-" : `${rates.p99.toPrecision(2)} ms`],
    ["Errors / s", metrics.count(rates.errors)],
    ["Clients", status.clients],
    ["Memtables", `${metrics.bytes(status.memtable_bytes)}`],
    ["Read / s", metrics.bytes(rates.read)],
    ["Written / s", metrics.bytes(rates.written)],
    ["Compactions due", pending],
  ];
  put(at("tiles"), ...shown.map(([name, value]) => element("div", {}, element("dt", {}, name), element("dd", {}, String(value)))));
}

function tasks(report) {
  const lines = report.running.map((task) => element("div", { class: "task" },
    element("span", {}, `${task.kind} of ${task.keyspace}.${task.table}, ${task.sstables} SSTables`),
    element("progress", { max: Math.max(task.total_bytes, 1), value: task.done_bytes, "aria-label": `${task.kind} of ${task.keyspace}.${task.table}` }),
    element("span", {}, `${metrics.bytes(task.done_bytes)} of ${metrics.bytes(task.total_bytes)}`)));
  put(at("tasks"), ...(lines.length ? lines : [element("p", {}, "No compaction is going on.")]));
}

function engine(now) {
  const gauge = (name) => metrics.sum(now.metrics, name);
  const caches = (info?.caches ?? []).filter((cache) => cache.bytes_max > 0);
  const share = (cache) => (cache.hits + cache.misses ? `${((100 * cache.hits) / (cache.hits + cache.misses)).toFixed(1)} %` : "-");
  refresh(at("caches"), table("caches", "What is kept in memory of what is on disk", [
    { name: "cache", of: (cache) => cache.name },
    { name: "memory", of: (cache) => cache.bytes, show: metrics.bytes, number: true },
    { name: "of", of: (cache) => cache.bytes_max, show: metrics.bytes, number: true },
    { name: "entries", of: (cache) => cache.entries, show: metrics.count, number: true },
    { name: "hits", of: share },
  ], caches));
  const facts = [
    ["commit log", metrics.bytes(gauge("ilion_commit_log_bytes"))],
    ["records appended", metrics.count(gauge("ilion_commit_log_records_total"))],
    ["syncs of the log", metrics.count(gauge("ilion_commit_log_syncs_total"))],
    ["flushes", metrics.count(gauge("ilion_flushes_total"))],
    ["compactions", metrics.count(gauge("ilion_compactions_total"))],
    ["SSTables that reads touch only for compaction debt", gauge("ilion_compaction_debt")],
    ["token maps", metrics.bytes(gauge("ilion_token_map_bytes"))],
  ];
  refresh(at("engine"), table("engine", "Since the start of the node", [
    { name: "what", of: ([name]) => name }, { name: "value", of: ([, value]) => value, number: true },
  ], facts));
}

let info = null;
async function identify() {
  info = await ask.json("/admin/info");
  at("cluster").textContent = `${info.cluster_name}, ${info.version}, up ${Math.floor(info.uptime_secs / 60)} min`;
}

// "L0: 4, L1: 10".
function levels(counts) {
  const shown = counts.map((count, level) => `L${level}: ${count}`).filter((_, level) => counts[level] > 0);
  return shown.join(", ") || "-";
}

function tablesView() {
  const rows = before?.status.tables ?? [];
  const pending = new Map((before?.compactions.pending ?? []).map((table) => [`${table.keyspace}.${table.table}`, table.compactions]));
  refresh(at("tables-table"), table("tables", "Tables of users", [
    { name: "keyspace", of: (row) => row.keyspace },
    { name: "table", of: (row) => row.table },
    { name: "on disk", of: (row) => row.sstable_bytes, show: metrics.bytes, number: true },
    { name: "SSTables", of: (row) => row.sstables, number: true },
    { name: "by level", of: (row) => levels(row.levels) },
    { name: "in memory", of: (row) => row.memtable_bytes, show: metrics.bytes, number: true },
    { name: "partitions, about", of: (row) => row.estimated_partitions, show: metrics.count, number: true },
    { name: "compactions due", of: (row) => pending.get(`${row.keyspace}.${row.table}`) ?? 0, number: true },
  ], rows));
}

// The shown rates and percentiles of system_views.statements, with their formats.
const ms = (value) => `${Number(value).toPrecision(3)} ms`;
const digits = (value) => Number(value).toPrecision(3);
// Columns, or values computed from columns.
const COSTS = [
  ["calls", "calls", metrics.count],
  ["errors", "errors", metrics.count],
  ["latency_ms_total", "time, all", ms],
  ["latency_ms_p50", "p50", ms],
  ["latency_ms_p99", "p99", ms],
  ["disk_bytes_total", "read from disk", metrics.bytes],
  [(row) => Number(row.disk_bytes_total) / Math.max(Number(row.bytes_returned_total), 1), "read per byte of answers", digits],
  ["amplification_p99", "the same, p99", digits],
  ["rows_scanned_p99", "rows, p99", metrics.count],
  ["tombstones_scanned_p99", "tombstones, p99", metrics.count],
  ["sstables_touched_total", "SSTables touched", metrics.count],
  ["disk_wait_ms_total", "waiting for disk", ms],
  ["log_wait_ms_total", "waiting for the log", ms],
];

async function statements() {
  const place = at("statements-table");
  try {
    const found = await ask.rows("SELECT * FROM system_views.statements");
    found.sort((a, b) => Number(b.latency_ms_total) - Number(a.latency_ms_total));
    put(place, table("statements", "Statements by shape since the start of the node or the last reset, those that took the most time first", [
      { name: "statement", of: (row) => row.statement, code: true },
      ...COSTS.map(([column, name, show]) => ({
        name, number: true, of: (row) => (typeof column === "function" ? column(row) : row[column]), show: (value) => show(Number(value)),
      })),
    ], found));
  } catch (error) {
    put(place, element("p", { class: "alert" }, error.message));
  }
}

async function resetStatements() {
  try {
    await ask.query({ cql: "TRUNCATE system_views.statements" });
  } catch (error) {
    put(at("statements-table"), element("p", { class: "alert" }, error.message));
    return;
  }
  statements();
}

let isTicking = false;
async function tick() {
  if (isPaused || isTicking || document.hidden || !isWatching || !at("login-form").hidden) return;
  isTicking = true;
  try {
    await live();
    if (!info || view === "overview") await identify();
    if (view === "io") await spectrogram.load();
    if (view === "tables") tablesView();
  } catch (error) {
    state(error.message, "bad");
    before = null;
  } finally {
    isTicking = false;
  }
}

function bindTheme() {
  const themes = ["system", "light", "dark"];
  const apply = (theme) => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    at("theme").textContent = `Theme: ${theme}`;
    for (const chart of Object.values(charts)) chart.draw();
    spectrogram.draw();
  };
  let theme = localStorage.getItem("ilion-theme") ?? "system";
  at("theme").addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    localStorage.setItem("ilion-theme", theme);
    apply(theme);
  });
  apply(theme);
}

at("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  at("pause").setAttribute("aria-pressed", String(isPaused));
  at("pause").textContent = isPaused ? "Go on" : "Pause";
});
at("statements-refresh").addEventListener("click", statements);
at("statements-reset").addEventListener("click", resetStatements);
at("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  ask.setToken(at("token").value);
  at("token-form").hidden = true;
  choose();
});

// Asks for what the node wants; `true` if there is nothing to ask for.
async function admit() {
  const session = await ask.session();
  at("token-form").hidden = true;
  at("login-form").hidden = session.asks_for !== "login" || session.role !== null;
  at("main").hidden = !at("login-form").hidden;
  at("log-out").hidden = session.role === null;
  at("log-out").textContent = `Log out ${session.role}`;
  isWatching = session.asks_for !== "login" || session.may_watch;
  before = null;
  info = null;
  if (!at("login-form").hidden) {
    state("log in", "bad");
    at("login-role").focus();
    return false;
  }
  if (!isWatching) {
    state(`${session.role} has no SELECT on KEYSPACE system_views, which these views need`, "");
    if (!location.hash) location.hash = "query";
  }
  return true;
}

at("login-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  at("login-error").hidden = true;
  try {
    await ask.logIn(at("login-role").value, at("login-password").value);
    at("login-password").value = "";
    if (await admit()) choose();
  } catch (error) {
    at("login-error").textContent = error.message;
    at("login-error").hidden = false;
  }
});
at("log-out").addEventListener("click", async () => {
  await ask.logOut();
  // What was on the page was for this role only.
  location.reload();
});
ask.onRefused(async () => {
  if ((await ask.session()).asks_for === "token") at("token-form").hidden = false;
  else admit();
});
window.addEventListener("hashchange", choose);
bindTheme();
queryBox.bind();
admit().catch(() => true).then((isIn) => {
  if (isIn) choose();
  setInterval(tick, 1000);
});
