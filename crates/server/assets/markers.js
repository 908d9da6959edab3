// Markers of a statement (?), as the statements view names them: what each stands for, and the statement with values. Pure.

import { meant, pieces } from "./words.js";

const COMPARES = /^(=|<|>|!|in|contains|key|like|between|and)$/i;
const LIMITS = { limit: "LIMIT", ttl: "TTL", timestamp: "TIMESTAMP" };

// [{at, name}]: where each marker is, and the column or word that it belongs to; "" if that is not clear.
export function markers(text) {
  const all = pieces(text);
  const columns = /^insert$/i.test(all[0]?.text ?? "") ? insertColumns(all) : [];
  let place = 0;
  return all.flatMap((piece, index) => {
    if (piece.kind !== "mark" || piece.text !== "?") return [];
    const name = nameOf(all, index) || columns[place] || "";
    place += 1;
    return [{ at: piece.from, name }];
  });
}

// The names of the first parentheses of an INSERT.
function insertColumns(all) {
  const begin = all.findIndex((piece) => piece.text === "(");
  const end = all.findIndex((piece) => piece.text === ")");
  return all.slice(begin + 1, end).filter((piece) => piece.kind !== "mark").map(meant);
}

// Back from the marker over an operator to the name before it.
function nameOf(all, index) {
  const limit = LIMITS[meant(all[index - 1])];
  if (limit) return limit;
  let at = index - 1;
  while (at >= 0 && COMPARES.test(all[at].text)) at -= 1;
  const isNamed = at < index - 1 && (all[at]?.kind === "name" || all[at]?.kind === "quoted");
  return isNamed ? meant(all[at]) : "";
}

// The statement with these values, CQL literals, in the places of its markers.
export function withValues(text, values) {
  let from = 0;
  const parts = markers(text).map(({ at }, place) => {
    const part = text.slice(from, at) + values[place];
    from = at + 1;
    return part;
  });
  return parts.join("") + text.slice(from);
}

// A value of an answer as a literal: answers have texts without their quotes.
export function literal(value, type) {
  if (value === null) return "null";
  return /^(text|ascii|varchar)$/.test(type) ? `'${value.replaceAll("'", "''")}'` : value;
}

// A SELECT of one row with what the markers compare, of the table that the statement reads or writes; null if that is not clear.
export function sampleOf(text, quoted) {
  const all = pieces(text);
  const at = all.findIndex((piece) => /^(from|into|update)$/i.test(piece.text));
  const names = [...new Set(markers(text).map((marker) => marker.name))];
  if (at < 0 || !all[at + 1] || !names.length || names.some((name) => name === "")) return null;
  const columns = names.filter((name) => !Object.values(LIMITS).includes(name));
  const isQualified = all[at + 2]?.text === "." && all[at + 3];
  const table = isQualified ? `${all[at + 1].text}.${all[at + 3].text}` : all[at + 1].text;
  return columns.length ? `SELECT ${columns.map(quoted).join(", ")} FROM ${table} LIMIT 1` : null;
}
