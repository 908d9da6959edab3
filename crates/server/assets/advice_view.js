// The advice view, and its count in the navigation.

import * as ask from "./ask.js";
import { advise } from "./advice.js";
import { put, element } from "./tables.js";
import { print } from "./route.js";

const EVERY_MILLIS = 10000;
let asked = -Infinity;
let reports = {};

// Asks for what the advice needs, at most every ten seconds. Returns the reports, for other views.
export async function load(now) {
  if (now - asked < EVERY_MILLIS) return reports;
  asked = now;
  const [tables, statements] = await Promise.all([
    ask.json("/admin/table-stats"), ask.json("/admin/statements"),
  ]);
  reports = { tables: tables.tables.filter((table) => !/^system(_|$)/.test(table.keyspace)), statements: statements.statements };
  return reports;
}

export function show(status, points) {
  const found = advise({ status, points, ...reports });
  const count = document.getElementById("advice-count");
  const text = found.length ? ` (${found.length})` : "";
  if (count.textContent !== text) count.textContent = text;
  const place = document.getElementById("advice-list");
  const key = JSON.stringify(found);
  // A list that is the same is left alone, with its selection and its focus.
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  put(place, ...(found.length ? found.map(item) : [element("p", {}, "Nothing to advise: no rule found anything. The rules look at statements with 20 calls and more, at all tables, and at the state of the node.")]));
}

function item(advice) {
  const about = element(advice.isCode ? "code" : "strong", {}, advice.about);
  const title = element("h3", {}, about, ` ${advice.title}.`);
  const more = advice.view ? [element("a", { href: print({ view: advice.view, argument: advice.argument, values: advice.values }) }, "Show it")] : [];
  return element("article", { class: `advice ${advice.level}` }, title,
    element("p", {}, element("b", {}, "Evidence: "), advice.evidence),
    element("p", {}, element("b", {}, "What to do: "), advice.remedy), ...more);
}
