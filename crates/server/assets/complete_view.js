// The list of completions below the cursor of the query editor. While it is open, the editor is a combobox (ARIA): the arrow keys choose,
// Enter or Tab takes, Escape closes. Ctrl+Space opens it.

import * as ask from "./ask.js";
import { catalog, complete } from "./complete.js";
import { element, put } from "./tables.js";

const COLUMNS = "keyspace_name, table_name, column_name, kind, position";
const at = (id) => document.getElementById(id);

let schema = catalog([]);
let offered = null;
// The place of the chosen option; -1 if none is.
let chosen = -1;

// Asks for the names of the schema. A role that may not read them completes keywords only.
export async function load() {
  const rows = (cql) => ask.rows(cql).catch(() => []);
  const [stored, virtual, types, functions, aggregates] = await Promise.all([
    rows(`SELECT ${COLUMNS} FROM system_schema.columns`),
    rows(`SELECT ${COLUMNS} FROM system_virtual_schema.columns`),
    rows("SELECT keyspace_name, type_name FROM system_schema.types"),
    rows("SELECT keyspace_name, function_name FROM system_schema.functions"),
    rows("SELECT keyspace_name, aggregate_name FROM system_schema.aggregates"),
  ]);
  schema = catalog([...stored, ...virtual], types, [...functions, ...aggregates]);
}

export function bind() {
  const editor = at("cql");
  editor.addEventListener("input", () => offer(false));
  editor.addEventListener("keydown", press);
  editor.addEventListener("blur", close);
  editor.addEventListener("scroll", close);
  // The cursor was moved by the pointer.
  editor.addEventListener("pointerup", close);
}

// `isWanted`: also where no word was begun.
function offer(isWanted) {
  const editor = at("cql");
  const [from, to] = [editor.selectionStart, editor.selectionEnd];
  const found = complete(editor.value, from, schema, at("query-keyspace").value);
  const isBegun = found.from < found.to || editor.value[from - 1] === ".";
  // Nothing is offered for a word that is one already: then Enter begins a line, and Tab leaves the editor.
  if (from !== to || !found.options.length || !(isWanted || (isBegun && !found.isWhole))) {
    close();
    return;
  }
  offered = found;
  chosen = found.isWhole ? -1 : 0;
  draw();
}

function draw() {
  const [editor, list] = [at("cql"), at("completions")];
  put(list, ...offered.options.map((option, place) => element("li", {
    id: `completion-${place}`, role: "option", "aria-selected": String(place === chosen),
    // Before the editor loses the focus.
    onpointerdown: (event) => {
      event.preventDefault();
      take(place);
    },
  }, element("span", {}, option.text), " ", element("small", {}, option.kind))));
  list.hidden = false;
  const where = cursor(editor, offered.from);
  list.style.top = `${where.top}px`;
  list.style.left = `${Math.max(0, Math.min(where.left, editor.offsetWidth - list.offsetWidth))}px`;
  list.children[Math.max(chosen, 0)].scrollIntoView({ block: "nearest" });
  editor.setAttribute("role", "combobox");
  editor.setAttribute("aria-expanded", "true");
  editor.setAttribute("aria-controls", "completions");
  if (chosen >= 0) editor.setAttribute("aria-activedescendant", `completion-${chosen}`);
  else editor.removeAttribute("aria-activedescendant");
}

function close() {
  if (!offered) return;
  offered = null;
  at("completions").hidden = true;
  put(at("completions"));
  for (const name of ["role", "aria-expanded", "aria-controls", "aria-activedescendant"]) at("cql").removeAttribute(name);
}

// Before the page's own keys of the editor.
function press(event) {
  if (event.key === " " && event.ctrlKey) {
    event.preventDefault();
    offer(true);
    return;
  }
  if (!offered || event.isComposing || event.ctrlKey || event.metaKey || event.altKey) return;
  const last = offered.options.length - 1;
  const moves = { ArrowDown: chosen === last ? 0 : chosen + 1, ArrowUp: chosen <= 0 ? last : chosen - 1 };
  if (event.key in moves) {
    chosen = moves[event.key];
    draw();
  } else if (event.key === "Escape") {
    close();
  } else if ((event.key === "Enter" || event.key === "Tab") && !event.shiftKey && chosen >= 0) {
    take(chosen);
  } else {
    if (["ArrowLeft", "ArrowRight", "Home", "End", "Enter", "Tab"].includes(event.key)) close();
    return;
  }
  event.preventDefault();
}

function take(place) {
  const editor = at("cql");
  const { from, to, options } = offered;
  close();
  editor.focus();
  editor.setSelectionRange(from, to);
  // So that the browser can undo it. It tells the editor, which offers what may follow: the tables of a keyspace.
  if (!document.execCommand("insertText", false, options[place].text)) editor.setRangeText(options[place].text, from, to, "end");
}

// Where a place of the text is, below its line and relative to the editor: measured in a copy of the editor.
function cursor(editor, place) {
  const mark = element("span", {}, "\u200b");
  const copy = element("div", { class: "editor-copy", "aria-hidden": "true" }, editor.value.slice(0, place), mark, editor.value.slice(place));
  copy.style.width = `${editor.clientWidth}px`;
  editor.after(copy);
  const where = { top: mark.offsetTop + mark.offsetHeight - editor.scrollTop, left: mark.offsetLeft };
  copy.remove();
  return where;
}
