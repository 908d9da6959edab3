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
    "CONTAINS", "CONTAINS KEY", "LIKE", "ANN OF", "BETWEEN", "NOT", "NULL", "IS NOT NULL", "CAST(", "COUNT(*)", "TTL(", "WRITETIME(",
    "MAXWRITETIME("],
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
// Native functions and aggregates: `FUNCTION_NAMES` of the query layer.
const FUNCTIONS = ("abs ascii_as_blob avg bigint_as_blob blob_as_ascii blob_as_bigint blob_as_boolean blob_as_date blob_as_decimal blob_as_double "
  + "blob_as_duration blob_as_float blob_as_inet blob_as_int blob_as_smallint blob_as_text blob_as_time blob_as_timestamp blob_as_timeuuid "
  + "blob_as_tinyint blob_as_uuid blob_as_varint boolean_as_blob collection_avg collection_count collection_max collection_min "
  + "collection_sum count current_date current_time current_timestamp current_timeuuid date_as_blob decimal_as_blob double_as_blob "
  + "duration_as_blob exp float_as_blob floor from_json inet_as_blob int_as_blob log log10 map_keys map_values mask_default mask_hash "
  + "mask_inner mask_null mask_outer mask_replace max max_timeuuid min min_timeuuid now round similarity_cosine similarity_dot_product "
  + "similarity_euclidean smallint_as_blob sum text_as_blob time_as_blob timestamp_as_blob timeuuid_as_blob tinyint_as_blob to_date to_json "
  + "to_timestamp to_unix_timestamp token uuid uuid_as_blob varint_as_blob").split(" ");
// Statements in which functions are called.
const CALLERS = new Set(["select", "insert", "update", "delete", "begin"]);
// A table follows these words.
const BEFORE_TABLES = new Set(["from", "into", "update", "table", "truncate", "on", "view"]);
const OPTIONS_MAX = 50;

// keyspace -> {tables: table -> [column], types: [name], functions: [name]}, from rows of system_schema and system_virtual_schema. `functions`
// are rows of functions and of aggregates.
export function catalog(columns, types = [], functions = []) {
  const found = new Map();
  const of = (name) => {
    if (!found.has(name)) found.set(name, { tables: new Map(), types: [], functions: [] });
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
  for (const row of functions) of(row.keyspace_name).functions.push(row.function_name ?? row.aggregate_name);
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
  // There are many native functions: they are offered for a word that was begun.
  const offered = fitting.filter((option) => typed !== "" || !option.isNative);
  const isThere = (option) => typed !== "" && (option.text === typed || (option.kind === "keyword" && option.text.toLowerCase() === wanted));
  const options = offered.filter((option) => !isThere(option)).map((option) => ({ kind: option.kind, text: inCaseOf(option, typed) }));
  const kept = options.filter((option, place) => options.findIndex((one) => one.text === option.text) === place);
  return { from, to, options: kept.slice(0, OPTIONS_MAX), isWhole: fitting.some(isThere) };
}

// Keywords and native functions in the case of what was typed.
function inCaseOf({ kind, text, isNative }, typed) {
  if (kind === "keyword" && /^[a-z]/.test(typed)) return text.toLowerCase();
  return isNative && /^[A-Z]/.test(typed) ? text.toUpperCase() : text;
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
  const [keyspace, table] = tableOf(whole, current);
  const columns = schema.get(keyspace)?.tables.get(table) ?? [];
  const native = CALLERS.has(first) ? FUNCTIONS.map((name) => ({ name, text: `${name}(`, kind: "function", isNative: true })) : [];
  return [...names(columns, "column"), ...functionsOf(schema.get(keyspace)), ...keywords(INSIDE[first] ?? []), ...native];
}

// Keyspace and name of the table that the statement names, before or after the cursor.
function tableOf(whole, current) {
  const at = whole.findIndex((piece) => BEFORE_TABLES.has(wordOf(piece)));
  if (at < 0) return [current, ""];
  const [, first, point, second] = whole.slice(at, at + 4);
  const isQualified = point?.text === "." && second;
  return [isQualified ? meant(first) : current, meant(isQualified ? second : first)];
}

const keywords = (words) => words.map((word) => ({ name: word, text: word, kind: "keyword" }));
const names = (found, kind) => found.map((name) => ({ name, text: quoted(name), kind }));
const keyspaces = (schema) => [...schema.keys()].map((name) => ({ name, text: `${quoted(name)}.`, kind: "keyspace" }));
const members = (keyspace) => (keyspace ? [...names([...keyspace.tables.keys()].sort(), "table"), ...names(keyspace.types, "type"), ...functionsOf(keyspace)] : []);
const functionsOf = (keyspace) => (keyspace?.functions ?? []).map((name) => ({ name, text: `${quoted(name)}(`, kind: "function" }));
