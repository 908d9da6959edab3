// The tables view: sizes and costs of each table, and everything about a chosen one.

import { bytes, count, digits, millis } from "./format.js";
import { element, filter, order, put, refresh, setOrder, table } from "./tables.js";
import { print } from "./route.js";
import { quoted } from "./words.js";

const at = (id) => document.getElementById(id);
const nameOf = (row) => `${row.keyspace}.${row.table}`;
const micros = (value) => millis(value / 1000);
const percent = (value) => `${digits(100 * value)} %`;
// Without a statement there is no time.
const ofReads = (of) => (row) => (row.reads ? of(row) : null);
const ofWrites = (of) => (row) => (row.writes ? of(row) : null);

// Heading, value, format.
const COLUMNS = [
  ["on disk", (row) => row.sstable_bytes, bytes],
  ["SSTables", (row) => row.sstables, count],
  ["in memory", (row) => row.memtable_bytes, bytes],
  ["partitions, about", (row) => row.estimated_partitions, count],
  ["largest partition", (row) => row.partition_bytes.max, bytes],
  ["reads", (row) => row.reads, count],
  ["read p99", ofReads((row) => row.read_micros.p99), micros],
  ["SSTables a read, p99", ofReads((row) => row.sstables_per_read.p99), digits],
  ["tombstones a read, p99", ofReads((row) => row.tombstones_per_read.p99), count],
  ["writes", (row) => row.writes, count],
  ["write p99", ofWrites((row) => row.write_micros.p99), micros],
  ["compactions due", (row) => row.pending_compactions, count],
];

// What only the chosen table shows.
const DETAILS = [
  ["SSTables by level", (row) => levels(row.sstables_in_levels), String],
  ["largest SSTable", (row) => row.sstable_bytes_max, bytes],
  ["data before compression", (row) => row.data_bytes, bytes],
  ["compressed to", (row) => row.compression_ratio, percent],
  ["only in snapshots", (row) => row.snapshots_bytes, bytes],
  ["partition, median", (row) => row.partition_bytes.p50, bytes],
  ["partition, p99", (row) => row.partition_bytes.p99, bytes],
  ["cells of a partition, p99", (row) => row.cells.p99, count],
  ["cells of a partition, most", (row) => row.cells.max, count],
  ["tombstones that may be removed", (row) => row.droppable_tombstones, percent],
  ["reads that failed", (row) => row.reads_failed, count],
  ["read, median", ofReads((row) => row.read_micros.p50), micros],
  ["rows a read, p99", ofReads((row) => row.rows_per_read.p99), count],
  ["writes that failed", (row) => row.writes_failed, count],
  ["write, median", ofWrites((row) => row.write_micros.p50), micros],
];

// "L0: 4, L1: 10".
function levels(counts) {
  return (counts ?? []).map((count, level) => [level, count]).filter(([, count]) => count > 0).map(([level, count]) => `L${level}: ${count}`).join(", ") || null;
}

const ORDER = "-on disk";
let rows = [];
let chosen = "";

export function enter(values) {
  at("tables-filter").value = values.filter ?? "";
  setOrder("tables", values.sort ?? ORDER);
}

export function show(found, name) {
  [rows, chosen] = [found, name];
  draw();
}

// The address of a table in this view, with its filter and order.
function address(row) {
  const sort = order("tables");
  return print({ view: "tables", argument: nameOf(row), values: { filter: at("tables-filter").value, sort: sort === ORDER ? "" : sort } });
}

export function draw() {
  const shown = filter(rows, at("tables-filter").value, (row) => [nameOf(row)]);
  refresh(at("tables-table"), table("tables", `Tables of users: ${shown.length} of ${rows.length}. Costs count since the start of the node or the last reset.`, [
    { name: "keyspace", of: (row) => row.keyspace },
    { name: "table", of: (row) => row.table, link: address },
    ...COLUMNS.map(([name, of, show]) => ({ name, of, show, number: true, missing: "-" })),
  ], shown));
  details(rows.find((row) => nameOf(row) === chosen));
}

function details(row) {
  const place = at("tables-chosen");
  if (!chosen) {
    put(place);
  } else if (!row) {
    put(place, element("p", { class: "alert" }, `There is no table ${chosen}.`));
  } else {
    const facts = [...COLUMNS, ...DETAILS].map(([name, of, show]) => [name, of(row), show]);
    const link = (text, to) => element("a", { href: to }, text);
    refresh(place, element("h3", {}, chosen), element("p", { class: "links" },
      link("Its statements", print({ view: "statements", values: { filter: `${row.table}` } })), " ",
      link("Its schema", print({ view: "schema", argument: chosen })), " ",
      link("Its I/O", print({ view: "io", values: { table: chosen } })), " ",
      link("Its rows", print({ view: "query", values: { cql: `SELECT * FROM ${quoted(row.keyspace)}.${quoted(row.table)}` } }))),
    element("dl", { class: "facts" }, ...facts.filter(([, value]) => value !== null && value !== undefined)
      .map(([name, value, show]) => element("div", {}, element("dt", {}, name), element("dd", {}, show(value))))));
  }
}
