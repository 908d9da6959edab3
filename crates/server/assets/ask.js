// Requests to the node. If it requires a token, the token is stored for this tab only. If it requires a login, the browser has the
// session in a cookie that this code cannot read.

const KEY = "ilion-token";
let whenRefused = () => {};

export function onRefused(callback) { whenRefused = callback; }
export function setToken(token) { sessionStorage.setItem(KEY, token); }

export class AskError extends Error {}

async function ask(path, options = {}) {
  const headers = { ...options.headers };
  const token = sessionStorage.getItem(KEY);
  if (token) headers.Authorization = `Bearer ${token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers });
  } catch {
    throw new AskError("the node does not answer");
  }
  if (response.ok) return response;
  if (response.status === 401 && path !== "/api/login") whenRefused();
  const text = await response.text();
  let reason = text;
  try { reason = JSON.parse(text).error ?? text; } catch { /* not JSON */ }
  throw new AskError(reason || `the node answered ${response.status}`);
}

export async function json(path) { return (await ask(path)).json(); }
export async function text(path) { return (await ask(path)).text(); }

async function post(path, order) {
  const headers = { "Content-Type": "application/json" };
  return (await ask(path, { method: "POST", headers, body: JSON.stringify(order) })).json();
}

export function query(order) { return post("/api/query", order); }

// What the node asks for, and who is logged in.
export function session() { return json("/api/session"); }
export function logIn(role, password) { return post("/api/login", { role, password }); }
export function logOut() { return post("/api/logout", {}); }

// All rows of a statement as objects.
export async function rows(cql) {
  const found = [];
  let paging_state = null;
  do {
    const page = await query({ cql, page_size: 1000, paging_state });
    const names = page.columns.map((column) => column.name);
    for (const row of page.rows) found.push(Object.fromEntries(names.map((name, at) => [name, row[at]])));
    paging_state = page.paging_state;
  } while (paging_state);
  return found;
}
