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

// Table -> {name of the column, isDescending}.
const orders = new Map();
let whenSorted = () => {};

export function onSort(callback) { whenSorted = callback; }

// The order of a table as text, for addresses: "calls", or "-calls" for the largest first.
export function order(id) {
  const known = orders.get(id);
  return known ? `${known.isDescending ? "-" : ""}${known.name}` : "";
}

export function setOrder(id, text) {
  if (text) orders.set(id, { name: text.replace(/^-/, ""), isDescending: text.startsWith("-") });
  else orders.delete(id);
}

// columns: [{name, of: row => value, show?: value => text, draw?: row => element, link?: row => address, number?, code?, short?,
// missing?}]; the order is kept by `id`. A short text is not wrapped; `missing` stands for no value.
export function table(id, caption, columns, rows) {
  const sorted = orders.get(id);
  const by = columns.find((column) => column.name === sorted?.name);
  const shown = by ? sort(rows, by, sorted.isDescending) : rows;
  const heads = columns.map((column, at) => {
    const is = column === by;
    const press = () => {
      orders.set(id, { name: column.name, isDescending: is ? !sorted.isDescending : Boolean(column.number) });
      const next = table(id, caption, columns, rows);
      made.replaceWith(next);
      next.querySelectorAll("th button")[at].focus();
      whenSorted(id);
    };
    return element("th", {
      scope: "col", class: column.number ? "number" : "",
      "aria-sort": is ? (sorted.isDescending ? "descending" : "ascending") : undefined,
    }, element("button", { type: "button", title: "sort by this column", onclick: press }, column.name));
  });
  const body = shown.map((row) => element("tr", {}, ...columns.map((column) => cell(column, row))));
  if (!body.length) body.push(element("tr", {}, element("td", { colspan: columns.length }, "nothing yet")));
  const made = element("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    element("table", { "data-id": id }, element("caption", {}, caption),
      element("thead", {}, element("tr", {}, ...heads)), element("tbody", {}, ...body)));
  return made;
}

function cell(column, row) {
  if (column.draw) return element("td", { class: "picture" }, column.draw(row));
  const value = column.of(row);
  if (value === null || value === undefined) return element("td", { class: column.number ? "number null" : "null" }, column.missing ?? "null");
  const text = column.show ? column.show(value) : String(value);
  const inner = column.link ? element("a", { href: column.link(row) }, text) : text;
  return element("td", { class: column.number ? "number" : column.code ? "code" : column.short ? "short" : "" }, inner);
}

// A new array. What has no value comes last. Pure.
export function sort(rows, column, isDescending) {
  const value = (row) => {
    const found = column.of(row);
    return found === null || found === undefined || !column.number ? found : Number(found);
  };
  const compare = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
  return [...rows].sort((left, right) => {
    const [a, b] = [value(left), value(right)];
    if (a === null || a === undefined) return b === null || b === undefined ? 0 : 1;
    if (b === null || b === undefined) return -1;
    return isDescending ? compare(b, a) : compare(a, b);
  });
}

// The rows with all of these words in one of their texts. Pure.
export function filter(rows, words, texts) {
  const wanted = words.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter((row) => {
    const text = texts(row).join("\n").toLowerCase();
    return wanted.every((word) => text.includes(word));
  });
}

// Replaces the content of an element.
export function put(place, ...children) {
  place.replaceChildren(...children);
}

// Replaces content that is redrawn every second, unless the focus is in it.
export function refresh(place, ...children) {
  if (!place.contains(document.activeElement)) put(place, ...children);
}
