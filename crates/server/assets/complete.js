// Completion of CQL: the words that may stand at a place of a text, by the names of the schema. Pure.

import { isOpen, meant, pieces, quoted, wordOf } from "./words.js";

const BEGINNINGS = ["SELECT", "INSERT INTO", "UPDATE", "DELETE", "CREATE", "ALTER", "DROP", "DESCRIBE", "EXPLAIN", "EXPLAIN ANALYZE", "BEGIN BATCH",
  "BEGIN UNLOGGED BATCH", "GRANT", "LIST", "REVOKE", "TRUNCATE", "USE"];
const OBJECTS = ["AGGREGATE", "CUSTOM INDEX", "FUNCTION", "INDEX", "KEYSPACE", "MATERIALIZED VIEW", "ROLE", "TABLE", "TYPE"];
const DESCRIBED = ["CLUSTER", "KEYSPACE", "KEYSPACES", "SCHEMA", "TABLE", "TABLES", "TYPE", "TYPES"];
const TYPES = ["ascii", "bigint", "blob", "boolean", "counter", "date", "decimal", "double", "duration", "float", "frozen<", "inet", "int", "list<", "map<",
  "set<", "smallint", "text", "time", "timestamp", "timeuuid", "tinyint", "tuple<", "uuid", "varint", "vector<"];
// Words inside of a statement, by its first word.
const INSIDE = {
  select: ["FROM", "WHERE", "AND", "LIMIT", "ORDER BY", "GROUP BY", "ALLOW FILTERING", "PER PARTITION LIMIT", "DISTINCT", "JSON", "AS", "ASC", "DESC", "IN",
    "CONTAINS", "CONTAINS KEY", "LIKE", "ANN OF", "BETWEEN", "NOT", "NULL", "IS NOT NULL", "CAST(", "COUNT(*)", "MIN(", "MAX(", "SUM(", "AVG(", "TOKEN(",
    "TTL(", "WRITETIME("],
  insert: ["VALUES", "IF NOT EXISTS", "USING TTL", "USING TIMESTAMP", "AND", "JSON", "DEFAULT NULL", "DEFAULT UNSET"],
  update: ["SET", "WHERE", "AND", "IF", "IF EXISTS", "IN", "USING TTL", "USING TIMESTAMP", "NULL"],
  delete: ["FROM", "WHERE", "AND", "IF", "IF EXISTS", "IN", "USING TIMESTAMP"],
  create: ["IF NOT EXISTS", "PRIMARY KEY", "WITH", "AND", "CLUSTERING ORDER BY", "ASC", "DESC", "STATIC", "ON", "USING 'sai'", "AS", "SELECT", "FROM", "WHERE",
    "IS NOT NULL", "replication = {'class': 'SimpleStrategy', 'replication_factor': 1}", "default_time_to_live =", "gc_grace_seconds =", "comment =",
    "compaction =", "compression =", ...TYPES],
  alter: ["ADD", "DROP", "RENAME", "TO", "WITH", "AND", "default_time_to_live =", "gc_grace_seconds =", "comment =", "compaction =", "compression =", ...TYPES],
  drop: ["IF EXISTS"],
  begin: ["INSERT INTO", "UPDATE", "DELETE", "APPLY BATCH", "USING TIMESTAMP"],
  grant: ["SELECT", "MODIFY", "ALL PERMISSIONS", "CREATE", "ALTER", "DROP", "AUTHORIZE", "ON", "TO", "ALL KEYSPACES", "KEYSPACE", "TABLE"],
  revoke: ["SELECT", "MODIFY", "ALL PERMISSIONS", "CREATE", "ALTER", "DROP", "AUTHORIZE", "ON", "FROM", "ALL KEYSPACES", "KEYSPACE", "TABLE"],
  list: ["ROLES", "ALL PERMISSIONS", "OF"],
};
// A table follows these words.
const BEFORE_TABLES = new Set(["from", "into", "update", "table", "truncate", "on", "view"]);
const OPTIONS_MAX = 50;

// keyspace -> {tables: table -> [column], types: [name]}, from rows of system_schema and system_virtual_schema.
export function catalog(columns, types = []) {
  const found = new Map();
  const of = (name) => {
    if (!found.has(name)) found.set(name, { tables: new Map(), types: [] });
    return found.get(name);
  };
  const places = { partition_key: 0, clustering: 1, static: 2, regular: 3 };
  const ordered = [...columns].sort((a, b) => places[a.kind] - places[b.kind] || a.position - b.position);
  for (const row of ordered) {
    const { tables } = of(row.keyspace_name);
    if (!tables.has(row.table_name)) tables.set(row.table_name, []);
    tables.get(row.table_name).push(row.column_name);
  }
  for (const row of types) of(row.keyspace_name).types.push(row.type_name);
  return new Map([...found].sort(([a], [b]) => (a < b ? -1 : 1)));
}

// {from, to, options: [{text, kind}], isWhole}: each text may stand instead of the text from `from` to `to`; `isWhole` says that what is
// there is one of the words already. `at` is the place of the cursor, `current` the keyspace of names without one.
export function complete(text, at, schema, current) {
  const none = { from: at, to: at, options: [], isWhole: false };
  const all = pieces(text);
  const before = all.filter((piece) => piece.from < at);
  const begin = before.findLastIndex((piece) => piece.text === ";") + 1;
  const last = before[before.length - 1];
  const isInWord = last && (last.kind === "name" || last.kind === "quoted") && at <= last.to;
  if (last && (isInWord ? last.kind === "quoted" && !isOpen(last, at) : isOpen(last, at) || (last.kind === "number" && at <= last.to))) return none;
  // The word that the cursor is in is replaced to its end.
  const [from, to] = isInWord ? [last.from, last.to] : [at, at];
  const typed = text.slice(from, at);
  const isSaid = (piece) => piece.kind !== "comment";
  const own = before.slice(begin, isInWord ? -1 : undefined).filter(isSaid);
  const end = all.find((piece) => piece.text === ";" && piece.from >= at)?.from ?? text.length;
  const whole = [...own, ...all.filter((piece) => isSaid(piece) && piece.from >= at && piece.from < end)];
  const wanted = typed.replace(/^"/, "").toLowerCase();
  const fitting = candidates(own, whole, schema, current)
    .filter((option) => !(typed.startsWith('"') && option.kind === "keyword"))
    .filter((option) => option.name.toLowerCase().startsWith(wanted));
  const isThere = (option) => typed !== "" && (option.text === typed || (option.kind === "keyword" && option.text.toLowerCase() === wanted));
  const options = fitting.filter((option) => !isThere(option))
    .map((option) => ({ kind: option.kind, text: option.kind === "keyword" && /^[a-z]/.test(typed) ? option.text.toLowerCase() : option.text }));
  const kept = options.filter((option, place) => options.findIndex((one) => one.text === option.text) === place);
  return { from, to, options: kept.slice(0, OPTIONS_MAX), isWhole: fitting.some(isThere) };
}

// What may follow these pieces of a statement.
function candidates(own, whole, schema, current) {
  const begins = own.filter((piece) => !/^(explain|analyze)$/i.test(piece.text));
  const previous = wordOf(own[own.length - 1]);
  if (!own.length) return keywords(BEGINNINGS);
  if (!begins.length) return keywords(previous === "explain" ? ["ANALYZE", "SELECT"] : ["SELECT"]);
  if (own[own.length - 1].text === ".") return members(schema.get(meant(own[own.length - 2])));
  if (previous === "use" || previous === "keyspace") return names([...schema.keys()], "keyspace");
  if (BEFORE_TABLES.has(previous)) return [...members(schema.get(current)), ...keyspaces(schema)];
  const first = wordOf(begins[0]);
  if (begins.length === 1 && ["create", "alter", "drop"].includes(first)) return keywords(OBJECTS);
  if (begins.length === 1 && ["describe", "desc"].includes(first)) return [...keywords(DESCRIBED), ...members(schema.get(current)), ...keyspaces(schema)];
  return [...names(columnsOf(whole, schema, current), "column"), ...keywords(INSIDE[first] ?? [])];
}

// The columns of the table that the statement names, before or after the cursor.
function columnsOf(whole, schema, current) {
  const at = whole.findIndex((piece) => BEFORE_TABLES.has(wordOf(piece)));
  if (at < 0) return [];
  const [, first, point, second] = whole.slice(at, at + 4);
  const isQualified = point?.text === "." && second;
  const keyspace = isQualified ? meant(first) : current;
  return schema.get(keyspace)?.tables.get(meant(isQualified ? second : first)) ?? [];
}

const keywords = (words) => words.map((word) => ({ name: word, text: word, kind: "keyword" }));
const names = (found, kind) => found.map((name) => ({ name, text: quoted(name), kind }));
const keyspaces = (schema) => [...schema.keys()].map((name) => ({ name, text: `${quoted(name)}.`, kind: "keyspace" }));
const members = (keyspace) => (keyspace ? [...names([...keyspace.tables.keys()].sort(), "table"), ...names(keyspace.types, "type")] : []);
