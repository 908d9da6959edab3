// The query view.

import * as ask from "./ask.js";
import * as completions from "./complete_view.js";
import * as values from "./values_view.js";
import { millis } from "./format.js";
import { drawPlan } from "./plan.js";
import { drawSteps } from "./steps.js";
import { element, put, table } from "./tables.js";

const at = (id) => document.getElementById(id);
let next = null;
let rowsBefore = 0;
let whenRun = () => {};

// `keep` is called with what the address of the view should name.
export function bind(keep) {
  whenRun = keep;
  completions.bind();
  values.bind();
  at("query-form").addEventListener("submit", (event) => {
    event.preventDefault();
    start("");
  });
  at("cql").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      start("");
    }
  });
  at("query-explain").addEventListener("click", () => start("EXPLAIN "));
  at("query-analyze").addEventListener("click", () => start("EXPLAIN ANALYZE ", true));
  at("query-next").addEventListener("click", () => run({ ...next.order, paging_state: next.paging_state }));
}

// A statement of the address is shown, and runs only when somebody says so.
export function enter(wanted) {
  if (wanted.cql !== undefined) at("cql").value = wanted.cql;
  if (wanted.keyspace !== undefined) at("query-keyspace").value = wanted.keyspace;
  values.offer();
  completions.load();
}

// Runs the statement of the editor behind this word.
function start(before, isTraced = at("query-trace").checked) {
  rowsBefore = 0;
  let cql;
  try {
    cql = before + values.statement();
  } catch (error) {
    refuse(error);
    return;
  }
  whenRun({ cql: at("cql").value, keyspace: at("query-keyspace").value });
  run({ cql, keyspace: at("query-keyspace").value || null, page_size: Number(at("query-page-size").value) || null, trace: isTraced });
}

// Nothing of an earlier answer stays beside a new one, or beside an error.
function clear() {
  at("query-error").hidden = true;
  for (const id of ["query-result", "query-plan", "query-steps"]) put(at(id));
  next = null;
  at("query-next").disabled = true;
}

function refuse(error) {
  clear();
  at("query-error").textContent = error.message;
  at("query-error").hidden = false;
  at("query-status").textContent = "";
}

async function run(order) {
  at("query-status").textContent = "running";
  at("query-run").disabled = true;
  try {
    const report = await ask.query(order);
    clear();
    show(order, report);
  } catch (error) {
    refuse(error);
  } finally {
    at("query-run").disabled = false;
  }
}

function show(order, report) {
  if (report.keyspace) at("query-keyspace").value = report.keyspace;
  if (/^\s*(create|alter|drop)\b/i.test(order.cql)) completions.load();
  const columns = report.columns.map((column, index) => ({
    name: `${column.name} (${column.type})`,
    of: (row) => row[index],
    number: /^(tinyint|smallint|int|bigint|counter|varint|float|double|decimal)$/.test(column.type),
  }));
  const from = rowsBefore + 1;
  rowsBefore += report.rows.length;
  const rows = report.columns.length ? `rows ${report.rows.length ? from : 0} to ${rowsBefore}` : "done";
  at("query-status").textContent = [`${rows}, ${millis(report.elapsed_micros / 1000)}`, ...report.warnings.map((warning) => `Warning: ${warning}`)].join("\n");
  put(at("query-result"), report.columns.length ? table(`query ${order.cql}`, "Answer", columns, report.rows) : element("p", {}, "The statement answers no rows."));
  put(at("query-plan"), ...drawPlan(report));
  put(at("query-steps"), ...drawSteps(report));
  next = report.paging_state ? { order, paging_state: report.paging_state } : null;
  at("query-next").disabled = !next;
}
