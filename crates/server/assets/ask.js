// Requests to the node. If it requires a token, the token is stored for this tab only.

const KEY = "ilion-token";
let whenRefused = () => {};

export function onTokenWanted(callback) { whenRefused = callback; }
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
  if (response.status === 401) whenRefused();
  const text = await response.text();
  let reason = text;
  try { reason = JSON.parse(text).error ?? text; } catch { /* not JSON */ }
  throw new AskError(reason || `the node answered ${response.status}`);
}

export async function json(path) { return (await ask(path)).json(); }
export async function text(path) { return (await ask(path)).text(); }

export async function query(order) {
  const response = await ask("/api/query", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(order),
  });
  return response.json();
}

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
