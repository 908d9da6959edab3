// The answer to EXPLAIN ANALYZE as bars: where time went, and how much was looked at for the rows of the answer.

import { count } from "./format.js";
import { element } from "./tables.js";

// Steps after this one were measured, those before it are the plan.
const FIRST_MEASURED = "elapsed_micros";

const GROUPS = [
  ["Time, microseconds", (step) => step.endsWith("_micros")],
  ["Rows and tombstones", (step) => step.startsWith("rows_") || step.endsWith("_scanned")],
  ["Files", (step) => step.startsWith("sstables_") || step === "memtables"],
  ["Bytes", (step) => step.includes("bytes")],
];

// [{title, lines: [{name, amount, share of the largest}]}]; none if the answer is of another statement. Pure.
export function groups(columns, rows) {
  if (columns.length !== 2 || columns[0] !== "step" || columns[1] !== "detail") return [];
  const first = rows.findIndex(([step]) => step === FIRST_MEASURED);
  if (first < 0) return [];
  const measured = rows.slice(first).filter(([, detail]) => /^\d+$/.test(detail));
  const groupOf = (step) => GROUPS.findIndex(([, is]) => is(step));
  return GROUPS.map(([title], index) => {
    const members = measured.filter(([step]) => groupOf(step) === index).map(([step, detail]) => [step, Number(detail)]);
    const largest = Math.max(1, ...members.map(([, amount]) => amount));
    const name = (step) => step.replace(/_micros$/, "").replaceAll("_", " ");
    return { title, lines: members.filter(([, amount]) => amount > 0).map(([step, amount]) => ({ name: name(step), amount, share: amount / largest })) };
  }).filter((group) => group.lines.length);
}

export function drawPlan(report) {
  const found = groups(report.columns.map((column) => column.name), report.rows);
  if (!found.length) return [];
  return [element("div", { class: "plan" }, ...found.map((group) => element("section", {},
    element("h3", {}, group.title),
    ...group.lines.map((line) => {
      // A bar compares; one alone has nothing to be compared with.
      const bar = element("i", {});
      // A property, not an attribute: the page's policy allows no styles inside it.
      bar.style.width = `${Math.max(100 * line.share, 0.5)}%`;
      bar.hidden = group.lines.length < 2;
      return element("div", { class: "measure" }, element("span", {}, line.name), element("span", { class: "track" }, bar), element("b", {}, count(line.amount)));
    }))))];
}
