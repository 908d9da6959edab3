// The page: its views and their addresses, the login, and what is asked of the node every second.

import * as advice from "./advice_view.js";
import * as ask from "./ask.js";
import * as cluster from "./cluster_view.js";
import * as heat from "./heat_view.js";
import * as overview from "./overview.js";
import * as queryBox from "./query.js";
import * as route from "./route.js";
import * as schema from "./schema.js";
import * as statements from "./statements.js";
import * as tableView from "./table_view.js";
import * as grids from "./tables.js";
import { NOTHING, extend } from "./history.js";
import { Spectrogram } from "./spectrogram.js";

const VIEWS = ["overview", "cluster", "advice", "io", "statements", "tables", "schema", "query"];
const COUNTERS_EVERY_MILLIS = 5000;
const at = (id) => document.getElementById(id);

const spectrogram = new Spectrogram();
let here = route.parse("", VIEWS);
let isPaused = false;
// False for a role that may not see metrics and reports.
let isWatching = true;
let role = null;
let history = NOTHING;
let info = null;
let countersAsked = -Infinity;

// Shows the view of the address.
function choose() {
  here = route.parse(location.hash, VIEWS);
  for (const name of VIEWS) at(name).hidden = name !== here.view;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === `#${here.view}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  document.title = `Ilion: ${at(`${here.view}-title`).textContent}`;
  const { view, argument, values } = here;
  if (view === "overview") at("overview-window").value = values.seconds === "900" ? "900" : "300";
  if (view === "cluster") cluster.enter(values);
  if (view === "io") spectrogram.enter(values);
  if (view === "statements") statements.enter(values);
  if (view === "tables") tableView.enter(values);
  if (view === "schema") schema.load(argument);
  if (view === "query") queryBox.enter(values);
  countersAsked = -Infinity;
  tick(true);
}

// Puts what was chosen in the view into its address; empty values are left out.
function keep(values, argument = here.argument) {
  here = { ...here, argument, values: { ...here.values, ...values } };
  window.history.replaceState(null, "", route.print(here));
}

function state(text, kind) {
  const pill = at("state");
  if (pill.textContent !== text) pill.textContent = text;
  pill.className = `pill ${kind}`;
}

async function live() {
  const [found, status] = await Promise.all([ask.json(`/api/history?after=${history.after}`), ask.json("/admin/status")]);
  const isAnew = history.epoch !== null && found.epoch_millis !== history.epoch;
  // The node was started again: its samples count from 0.
  history = extend(history, isAnew ? await ask.json("/api/history") : found);
  const stalled = status.stalled ? `Flushes fail and are tried again: ${status.stalled}` : "";
  const trouble = status.failure ? `Writes are refused: ${status.failure}` : stalled;
  state(status.failure ? "writes are refused" : stalled ? "flushes fail" : "serving", trouble ? "bad" : "good");
  at("failure").hidden = !trouble;
  at("failure").textContent = trouble;
  return status;
}

async function show(status) {
  const { points } = history;
  const now = performance.now();
  const reports = await advice.load(now);
  advice.show(status, points);
  const isDue = now - countersAsked >= COUNTERS_EVERY_MILLIS;
  if (!info || (here.view === "overview" && isDue)) {
    countersAsked = now;
    info = await ask.json("/admin/info");
    await overview.drawCounters(info);
  }
  if (here.view === "overview") {
    overview.draw({ points, status, info, role, compactions: await ask.json("/admin/compactions") });
    heat.show(history, Number(at("overview-window").value));
  }
  if (here.view === "cluster") await cluster.load(now, status);
  if (here.view === "io") await spectrogram.load();
  if (here.view === "tables") tableView.show(reports.tables, here.argument);
}

let isTicking = false;
// A page that is paused asks only if somebody wants to see something else.
async function tick(isWanted = false) {
  if ((isPaused && !isWanted) || isTicking || document.hidden || !isWatching || !at("login-form").hidden) return;
  isTicking = true;
  try {
    await show(await live());
  } catch (error) {
    state(error.message, "bad");
  } finally {
    isTicking = false;
  }
}

function bindTheme() {
  const themes = ["system", "light", "dark"];
  const apply = (theme) => {
    if (theme === "system") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    at("theme").textContent = `Theme: ${theme}`;
    overview.redraw();
    heat.draw();
    spectrogram.draw();
  };
  let theme = localStorage.getItem("ilion-theme") ?? "system";
  at("theme").addEventListener("click", () => {
    theme = themes[(themes.indexOf(theme) + 1) % themes.length];
    localStorage.setItem("ilion-theme", theme);
    apply(theme);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => apply(theme));
  apply(theme);
}

at("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  at("pause").setAttribute("aria-pressed", String(isPaused));
  at("pause").textContent = isPaused ? "Go on" : "Pause";
});
at("overview-window").addEventListener("change", (event) => {
  keep({ seconds: event.target.value === "300" ? "" : event.target.value });
  tick(true);
});
at("statements-refresh").addEventListener("click", statements.load);
at("statements-reset").addEventListener("click", statements.reset);
at("statements-filter").addEventListener("input", (event) => {
  keep({ filter: event.target.value });
  statements.draw();
});
at("tables-filter").addEventListener("input", (event) => {
  keep({ filter: event.target.value });
  tableView.draw();
});
cluster.bind(keep, () => tick(true));
spectrogram.whenChanged = keep;
schema.onChoose((name) => keep({}, name));
queryBox.bind(keep);
grids.onSort((id) => {
  if (id === here.view) keep({ sort: grids.order(id) });
});

at("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  ask.setToken(at("token").value);
  at("token-form").hidden = true;
  choose();
});

// Asks for what the node wants; `true` if there is nothing to ask for.
async function admit() {
  const session = await ask.session();
  role = session.role;
  at("token-form").hidden = true;
  at("login-form").hidden = session.asks_for !== "login" || role !== null;
  at("main").hidden = !at("login-form").hidden;
  at("log-out").hidden = role === null;
  at("log-out").textContent = `Log out ${role}`;
  isWatching = session.asks_for !== "login" || session.may_watch;
  history = NOTHING;
  info = null;
  if (!at("login-form").hidden) {
    state("log in", "bad");
    at("login-role").focus();
    return false;
  }
  if (!isWatching) {
    state(`${role} has no SELECT on KEYSPACE system_views, which these views need`, "");
    if (!location.hash) location.hash = "query";
  }
  return true;
}

at("login-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  at("login-error").hidden = true;
  try {
    await ask.logIn(at("login-role").value, at("login-password").value);
    at("login-password").value = "";
    if (await admit()) choose();
  } catch (error) {
    at("login-error").textContent = error.message;
    at("login-error").hidden = false;
  }
});
at("log-out").addEventListener("click", async () => {
  await ask.logOut();
  // What was on the page was for this role only.
  location.reload();
});
ask.onRefused(async () => {
  if ((await ask.session()).asks_for === "token") at("token-form").hidden = false;
  else admit();
});
window.addEventListener("hashchange", choose);
bindTheme();
admit().catch(() => true).then((isIn) => {
  if (isIn) choose();
  setInterval(() => tick(), 1000);
});
