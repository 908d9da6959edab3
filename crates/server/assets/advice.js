// Advice in words, each with its evidence. Pure: from reports of the node to a list.
//
// A rule speaks only of what was seen often enough, and says what to do. The limits are below, in one place.

import { bytes, count, digits, millis } from "./format.js";

const LIMITS = {
  calls: 20, // Statements with fewer calls are no habit yet.
  tombstones: 100, // Looked at by a call; Cassandra warns at 1000.
  rowsForOne: 100, // Rows looked at for each row of the answer.
  rowsScanned: 1000,
  sstables: 8, // Touched by a read.
  errors: 0.05, // Share of the calls.
  partitionBytes: 100 * 1024 * 1024, // Cassandra's compaction_large_partition_warning_threshold.
  cells: 1000000,
  pending: 20,
  droppable: 0.2, // Share of the cells.
  diskForOne: 1000, // Bytes read for each byte of answers.
  diskBytes: 64 * 1024 * 1024,
};

// What a call of the statement costs, on the average or in 99 of 100 calls.
function costs(row) {
  const calls = Math.max(row.calls, 1);
  const counts = row.counts;
  return {
    calls,
    errors: row.errors / calls,
    tombstones: counts.tombstones_scanned / calls,
    tombstonesP99: row.tombstones_p99,
    rows: counts.rows_scanned / calls,
    answered: counts.rows_returned / calls,
    sstables: counts.sstables_touched / calls,
    disk: row.disk_bytes,
    returned: counts.bytes_returned,
    p99: row.latency_millis[2],
  };
}

const STATEMENT_RULES = [
  (cost) => cost.tombstones >= LIMITS.tombstones && {
    title: cost.answered >= 1
      ? `looks at ${count(cost.tombstones / cost.answered)} tombstones for each row that it answers`
      : `looks at ${count(cost.tombstones)} tombstones in each call, and answers hardly any row`,
    evidence: `${count(cost.calls)} calls, ${digits(cost.answered)} rows each; 99 of 100 looked at up to ${count(cost.tombstonesP99)} tombstones, and took up to ${millis(cost.p99)}.`,
    remedy: "Deleted and expired rows must be passed over until gc_grace_seconds is over and a compaction removes them. Put less time into a partition, name the rows that live (a lower bound of the clustering), or let TimeWindowCompactionStrategy drop whole files.",
  },
  (cost) => cost.rows >= LIMITS.rowsScanned && cost.rows >= LIMITS.rowsForOne * Math.max(cost.answered, 1) && {
    title: `looks at ${count(cost.rows)} rows for each call, and answers ${digits(cost.answered)}`,
    evidence: `${count(cost.calls)} calls; 99 of 100 took up to ${millis(cost.p99)}.`,
    remedy: "It filters or counts what it reads. A table whose primary key begins with the columns of the condition, or an index, reads only the rows of the answer.",
  },
  (cost) => cost.sstables >= LIMITS.sstables && {
    title: `reads from ${digits(cost.sstables)} SSTables for each call`,
    evidence: `${count(cost.calls)} calls; 99 of 100 took up to ${millis(cost.p99)}.`,
    remedy: "A partition that is written for a long time is in many files. LeveledCompactionStrategy keeps it in few; see whether compactions are behind.",
  },
  (cost) => cost.disk >= LIMITS.diskBytes && cost.disk >= LIMITS.diskForOne * Math.max(cost.returned, 1) && {
    title: `reads ${count(cost.disk / Math.max(cost.returned, 1))} bytes from disk for each byte that it answers`,
    evidence: `${bytes(cost.disk)} read by ${count(cost.calls)} calls, ${bytes(cost.returned)} answered.`,
    remedy: "Smaller chunks (chunk_length_in_kb of the table's compression) read less for a small row.",
  },
  (cost) => cost.errors >= LIMITS.errors && {
    title: `fails in ${digits(100 * cost.errors)} % of its calls`,
    evidence: `${count(cost.calls)} calls.`,
    remedy: "Run it in the query view: the error says what is wrong.",
  },
];

function ofStatements(rows) {
  return rows
    .filter((row) => row.calls >= LIMITS.calls && !/^system(_|$)/.test(row.keyspace))
    .flatMap((row) => STATEMENT_RULES.map((rule) => rule(costs(row))).filter(Boolean).map((found) => ({
      ...found, level: "warn", about: row.statement, isCode: true, view: "statements", values: { filter: row.statement },
    })));
}

const TABLE_RULES = [
  (table) => table.partition_bytes.max > LIMITS.partitionBytes && {
    title: "has a partition larger than 100 MiB",
    evidence: `The largest has about ${bytes(table.partition_bytes.max)} and ${count(table.cells.max)} cells; 99 of 100 have up to ${bytes(table.partition_bytes.p99)}.`,
    remedy: "Add to the partition key what divides it, such as the day. Large partitions take long to compact and to repair, and all of their load is on the same replicas.",
  },
  (table) => table.pending_compactions >= LIMITS.pending && {
    title: `has ${count(table.pending_compactions)} compactions due`,
    evidence: `${table.sstables} SSTables, ${bytes(table.sstable_bytes)}.`,
    remedy: "Compactions are behind the writes. Raise compaction_throughput and concurrent_compactors if disk and processors have room.",
  },
  (table) => table.droppable_tombstones >= LIMITS.droppable && {
    title: `is to ${digits(100 * table.droppable_tombstones)} % tombstones that may be removed`,
    evidence: `${table.sstables} SSTables, ${bytes(table.sstable_bytes)}; gc_grace_seconds of these tombstones is over.`,
    remedy: "`nodetool garbagecollect` removes what newer SSTables have deleted.",
  },
];

function ofTables(tables) {
  return tables.flatMap((table) => TABLE_RULES.map((rule) => rule(table)).filter(Boolean).map((found) => ({
    ...found, level: "warn", about: `${table.keyspace}.${table.table}`, view: "tables", argument: `${table.keyspace}.${table.table}`,
  })));
}

function ofNode(status) {
  const bad = (about, title, evidence, remedy) => ({ level: "bad", about, title, evidence, remedy });
  const found = [];
  if (status.failure) found.push(bad("The node", "refuses writes", status.failure, "Mend the cause, then start the node again: what was acknowledged is in the log."));
  if (status.stalled) found.push(bad("The node", "cannot flush memtables", status.stalled, "Make room. The node tries again by itself."));
  for (const object of status.set_aside ?? []) found.push(bad("The start", "could not open a table or object", object, "Restore its files from a backup, or scrub them, and start again."));
  if (status.log_losses) {
    found.push(bad("The start", "could not read all of the commit log", `${count(status.log_losses.places)} damaged places, ${bytes(status.log_losses.bytes)}; ${count(status.log_losses.records_given_up)} records not replayed.`, "The log of the node says where. Restore a backup if you need these writes."));
  }
  if (status.clock_behind_secs > 0) found.push(bad("The clock", `is ${count(status.clock_behind_secs)} s before the newest timestamp of this node`, "Timestamps never step back, so the node counts on from there.", "Mend the clock if it is wrong."));
  for (const table of status.tables ?? []) {
    if (table.is_auto_compacting === false) {
      found.push({ level: "warn", about: `${table.keyspace}.${table.table}`, title: "is not compacted by itself", evidence: `${table.sstables} SSTables.`, remedy: "`nodetool enableautocompaction` turns compactions on again.", view: "tables", argument: `${table.keyspace}.${table.table}` });
    }
  }
  return found;
}

// Statements that are sent as text all the time, though a driver could prepare them.
function ofRequests(points) {
  const [queries, executions] = ["query", "execute"].map((kind) => points.reduce((all, one) => all + one.kinds[kind], 0));
  if (points.length < 60 || queries / points.length < 50 || queries < 4 * executions) return [];
  return [{
    level: "warn", about: "Clients", title: "send most statements as text",
    evidence: `${count(queries / points.length)} a second as text in the last ${Math.round(points.length / 60)} minutes, ${count(executions / points.length)} a second prepared.`,
    remedy: "Prepare a statement once and bind its values: the node then does not parse and plan each of them.",
  }];
}

// The worst first. What could not be asked is left out.
export function advise({ status, statements, tables, points }) {
  const all = [...ofNode(status ?? {}), ...ofTables(tables ?? []), ...ofStatements(statements ?? []), ...ofRequests(points ?? [])];
  return all.sort((a, b) => (a.level === b.level ? 0 : a.level === "bad" ? -1 : 1));
}
