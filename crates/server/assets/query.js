// The query view.

import * as ask from "./ask.js";
import { element, put, table } from "./tables.js";

const at = (id) => document.getElementById(id);
let next = null;
let rowsBefore = 0;

export function bind() {
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
  at("query-analyze").addEventListener("click", () => start(`EXPLAIN ANALYZE ${at("cql").value}`));
  at("query-next").addEventListener("click", () => run({ ...next.order, paging_state: next.paging_state }));
}

function start(cql) {
  rowsBefore = 0;
  return run({ cql, keyspace: at("query-keyspace").value || null, page_size: Number(at("query-page-size").value) || null, trace: at("query-trace").checked });
}

async function run(order) {
  at("query-error").hidden = true;
  at("query-status").textContent = "running";
  at("query-run").disabled = true;
  try {
    show(order, await ask.query(order));
  } catch (error) {
    at("query-error").textContent = error.message;
    at("query-error").hidden = false;
    at("query-status").textContent = "";
  } finally {
    at("query-run").disabled = false;
  }
}

function show(order, report) {
  if (report.keyspace) at("query-keyspace").value = report.keyspace;
  const columns = report.columns.map((column, index) => ({
    name: `${column.name} (${column.type})`,
    of: (row) => row[index],
    number: /^(tinyint|smallint|int|bigint|counter|varint|float|double|decimal)$/.test(column.type),
  }));
  const from = rowsBefore + 1;
  rowsBefore += report.rows.length;
  const took = `${(report.elapsed_micros / 1000).toFixed(2)} ms`;
  const rows = report.columns.length ? `rows ${report.rows.length ? from : 0} to ${rowsBefore}` : "done";
  at("query-status").textContent = [`${rows}, ${took}`, ...report.warnings.map((warning) => `Warning: ${warning}`)].join("\n");
  put(at("query-result"), report.columns.length ? table(`query ${order.cql}`, "Answer", columns, report.rows) : element("p", {}, "The statement answers no rows."));
  put(at("query-steps"), ...(report.trace.length ? [table("query-steps", "Steps", [
    { name: "us", of: (step) => step.elapsed_micros, number: true },
    { name: "activity", of: (step) => step.activity },
  ], report.trace)] : []));
  next = report.paging_state ? { order, paging_state: report.paging_state } : null;
  at("query-next").disabled = !next;
}
