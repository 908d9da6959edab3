// The address of a view: #view/argument?key=value. So a view can be reloaded, kept as a bookmark and sent to others.

export function parse(hash, views) {
  const [path, query = ""] = split(hash.replace(/^#/, ""), "?");
  const [view, argument = ""] = split(path, "/");
  const values = Object.fromEntries(new URLSearchParams(query));
  return views.includes(view) ? { view, argument: decoded(argument), values } : { view: views[0], argument: "", values: {} };
}

// Values that are empty are left out.
export function print({ view, argument = "", values = {} }) {
  const kept = Object.entries(values).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(kept).toString();
  return `#${view}${argument ? `/${encodeURIComponent(argument)}` : ""}${query ? `?${query}` : ""}`;
}

function split(text, mark) {
  const at = text.indexOf(mark);
  return at < 0 ? [text] : [text.slice(0, at), text.slice(at + 1)];
}

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return text; }
}
