// A box for each marker of the statement in the query editor, and the values of a row of its table for them.

import * as ask from "./ask.js";
import { literal, markers, sampleOf, withValues } from "./markers.js";
import { element, put } from "./tables.js";
import { quoted } from "./words.js";

const at = (id) => document.getElementById(id);
const boxes = () => [...document.querySelectorAll("#query-boxes input")];
// What LIMIT and its like get from no row.
const PLAIN = { LIMIT: "10", TTL: "60", TIMESTAMP: "1" };

export function bind() {
  at("cql").addEventListener("input", offer);
  at("query-sample").addEventListener("click", sample);
}

// Shows as many boxes as the statement has markers; those that stay keep their values.
export function offer() {
  const found = markers(at("cql").value);
  at("query-values").hidden = !found.length;
  at("query-sample").hidden = sampleOf(at("cql").value, quoted) === null;
  const known = boxes();
  if (known.length === found.length && found.every((marker, place) => known[place].dataset.name === marker.name)) return;
  put(at("query-boxes"), ...found.map((marker, place) => element("label", {}, `${marker.name || `marker ${place + 1}`} `,
    element("input", { size: 14, autocomplete: "off", spellcheck: "false", "data-name": marker.name }))));
  boxes().forEach((box, place) => {
    if (known[place]?.dataset.name === found[place].name) box.value = known[place].value;
  });
}

// The statement with its values. An error says which is missing.
export function statement() {
  const empty = boxes().find((box) => !box.value.trim());
  if (empty) {
    empty.focus();
    throw new Error(`A value is missing: ${empty.labels[0].textContent.trim()}. Write it as CQL does, such as 5 or 'text', or take those of a row.`);
  }
  return withValues(at("cql").value, boxes().map((box) => box.value));
}

async function sample() {
  at("query-error").hidden = true;
  try {
    const found = await ask.query({ cql: sampleOf(at("cql").value, quoted), keyspace: at("query-keyspace").value || null, page_size: 1 });
    if (!found.rows.length) throw new Error("The table has no row.");
    const values = Object.fromEntries(found.columns.map((column, place) => [column.name, literal(found.rows[0][place], column.type)]));
    for (const box of boxes()) box.value = values[box.dataset.name] ?? PLAIN[box.dataset.name] ?? "";
  } catch (error) {
    at("query-error").textContent = error.message;
    at("query-error").hidden = false;
  }
}
