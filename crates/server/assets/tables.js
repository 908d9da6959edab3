// Sortable tables. Data is inserted as text, never as HTML.

export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else if (key === "class") made.className = value;
    else if (value !== undefined && value !== null) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

const order = new Map();

// columns: [{name, of: row => value, show?: value => text, number?, code?}]; the sort order is kept by `id`.
export function table(id, caption, columns, rows) {
  const sorted = order.get(id);
  const shown = sorted ? sort(rows, columns[sorted.column], sorted.descending) : rows;
  const heads = columns.map((column, at) => {
    const is = sorted?.column === at;
    const press = () => {
      order.set(id, { column: at, descending: is ? !sorted.descending : Boolean(column.number) });
      const next = table(id, caption, columns, rows);
      made.replaceWith(next);
      next.querySelectorAll("th button")[at].focus();
    };
    return element("th", {
      scope: "col", class: column.number ? "number" : "",
      "aria-sort": is ? (sorted.descending ? "descending" : "ascending") : undefined,
    }, element("button", { type: "button", onclick: press }, column.name));
  });
  const body = shown.map((row) => element("tr", {}, ...columns.map((column) => cell(column, column.of(row)))));
  if (!body.length) body.push(element("tr", {}, element("td", { colspan: columns.length }, "nothing yet")));
  const made = element("div", { class: "scroll" },
    element("table", { "data-id": id }, element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...body)));
  return made;
}

function cell(column, value) {
  if (value === null || value === undefined) return element("td", { class: "null" }, "null");
  const text = column.show ? column.show(value) : String(value);
  return element("td", { class: column.number ? "number" : column.code ? "code" : "" }, text);
}

function sort(rows, column, descending) {
  const value = (row) => {
    const found = column.of(row);
    return column.number ? Number(found ?? -Infinity) : String(found ?? "");
  };
  const compare = (a, b) => (value(a) < value(b) ? -1 : value(a) > value(b) ? 1 : 0);
  return [...rows].sort((a, b) => (descending ? compare(b, a) : compare(a, b)));
}

// Replaces the content of an element.
export function put(place, ...children) {
  place.replaceChildren(...children);
}

// Replaces content that is redrawn every second, unless the focus is in it.
export function refresh(place, ...children) {
  if (!place.contains(document.activeElement)) put(place, ...children);
}
