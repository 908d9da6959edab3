// Keyspaces and their objects, with their CQL.

import * as ask from "./ask.js";
import { element, put } from "./tables.js";
import { quoted } from "./words.js";

const KINDS = [
  ["tables", "table_name", "TABLE"],
  ["views", "view_name", "MATERIALIZED VIEW"],
  ["types", "type_name", "TYPE"],
  ["indexes", "index_name", "INDEX"],
  ["functions", "function_name", "FUNCTION"],
  ["aggregates", "aggregate_name", "AGGREGATE"],
];

// The object that is shown, as the address names it: "keyspace" or "keyspace.object".
let chosen = "";
let whenChosen = () => {};

export function onChoose(callback) { whenChosen = callback; }

export async function load(wanted) {
  chosen = wanted;
  const place = document.getElementById("schema-tree");
  try {
    const keyspaces = await ask.rows("SELECT keyspace_name FROM system_schema.keyspaces");
    const objects = await Promise.all(KINDS.map(([table, name]) => ask.rows(`SELECT keyspace_name, ${name} FROM system_schema.${table}`)));
    const names = keyspaces.map((row) => row.keyspace_name).sort();
    put(place, element("ul", { "aria-label": "Keyspaces" }, ...names.map((name) => keyspace(name, objects))));
    const button = [...place.querySelectorAll("button")].find((one) => one.dataset.name === chosen);
    if (button) {
      button.closest("details").open = true;
      button.click();
    } else {
      document.getElementById("schema-text").textContent = chosen ? `There is no ${chosen}.` : "Choose an object to see its CQL.";
    }
  } catch (error) {
    put(place, element("p", { class: "alert" }, error.message));
  }
}

function keyspace(name, objects) {
  const items = KINDS.flatMap(([, column, kind], at) => {
    const own = new Set(objects[at].filter((row) => row.keyspace_name === name).map((row) => row[column]));
    return [...own].sort().map((object) => element("li", {}, choose(object, `${name}.${object}`, `DESCRIBE ${kind} ${quoted(name)}.${quoted(object)}`, kind)));
  });
  const details = element("details", {}, element("summary", {}, name), choose("the keyspace itself", name, `DESCRIBE KEYSPACE ${quoted(name)}`, ""), element("ul", {}, ...items));
  if (!name.startsWith("system")) details.open = true;
  return element("li", {}, details);
}

function choose(label, name, cql, kind) {
  const suffix = kind && kind !== "TABLE" ? ` (${kind.toLowerCase()})` : "";
  return element("button", { type: "button", "data-name": name, onclick: (event) => show(event.currentTarget, cql) }, label + suffix);
}

async function show(button, cql) {
  document.querySelectorAll("#schema-tree [aria-current]").forEach((known) => known.removeAttribute("aria-current"));
  button.setAttribute("aria-current", "true");
  chosen = button.dataset.name;
  whenChosen(chosen);
  const place = document.getElementById("schema-text");
  try {
    const rows = await ask.rows(cql);
    if (chosen !== button.dataset.name) return;
    place.textContent = rows.map((row) => row.create_statement).join("\n\n");
  } catch (error) {
    place.textContent = error.message;
  }
}
