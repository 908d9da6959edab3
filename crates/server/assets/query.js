// The query view.

import * as ask from "./ask.js";
import * as completions from "./complete_view.js";
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
  at("query-form").addEventListener("submit", (event) => {
    event.preventDefault();
    start(at("cql").value);
  });
  at("cql").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      start(at("cql").value);
    }
  });
  at("query-explain").addEventListener("click", () => start(`EXPLAIN ${at("cql").value}`));
  at("query-analyze").addEventListener("click", () => start(`EXPLAIN ANALYZE ${at("cql").value}`, true));
  at("query-next").addEventListener("click", () => run({ ...next.order, paging_state: next.paging_state }));
}

// A statement of the address is shown, and runs only when somebody says so.
export function enter(values) {
  if (values.cql !== undefined) at("cql").value = values.cql;
  if (values.keyspace !== undefined) at("query-keyspace").value = values.keyspace;
  completions.load();
}

function start(cql, isTraced = at("query-trace").checked) {
  rowsBefore = 0;
  whenRun({ cql: at("cql").value, keyspace: at("query-keyspace").value });
  return run({ cql, keyspace: at("query-keyspace").value || null, page_size: Number(at("query-page-size").value) || null, trace: isTraced });
}

// Nothing of an earlier answer stays beside a new one, or beside an error.
function clear() {
  at("query-error").hidden = true;
  for (const id of ["query-result", "query-plan", "query-steps"]) put(at(id));
  next = null;
  at("query-next").disabled = true;
}

async function run(order) {
  at("query-status").textContent = "running";
  at("query-run").disabled = true;
  try {
    const report = await ask.query(order);
    clear();
    show(order, report);
  } catch (error) {
    clear();
    at("query-error").textContent = error.message;
    at("query-error").hidden = false;
    at("query-status").textContent = "";
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
