// CQL text as pieces: names, quoted names, strings, numbers, comments, marks. Pure; the node alone decides what is valid.

const FORMS = [
  ["space", /\s+/y],
  ["comment", /(?:--|\/\/)[^\n]*|\/\*[\s\S]*?(?:\*\/|$)/y],
  ["string", /'(?:[^']|'')*(?:'|$)|\$\$[\s\S]*?(?:\$\$|$)/y],
  ["quoted", /"(?:[^"]|"")*(?:"|$)/y],
  ["name", /[a-z_][a-z0-9_]*/iy],
  ["number", /[0-9][a-z0-9._-]*/iy],
  ["mark", /[\s\S]/y],
];

// [{kind, text, from, to}], without spaces.
export function pieces(text) {
  const found = [];
  for (let at = 0; at < text.length;) {
    for (const [kind, form] of FORMS) {
      form.lastIndex = at;
      const match = form.exec(text);
      if (!match) continue;
      if (kind !== "space") found.push({ kind, text: match[0], from: at, to: at + match[0].length });
      at += match[0].length;
      break;
    }
  }
  return found;
}

// True if the text goes on inside of this piece: a string, a quoted name or a comment that is not ended before this place.
export function isOpen(piece, at) {
  if (piece.kind === "comment") return piece.text.startsWith("/*") ? at < piece.to || !/^\/\*[\s\S]*\*\/$/.test(piece.text) : at <= piece.to;
  if (piece.kind === "string" && piece.text.startsWith("$$")) return at < piece.to || !/^\$\$[\s\S]*\$\$$/.test(piece.text);
  if (piece.kind === "string" || piece.kind === "quoted") return at < piece.to || !isPaired(piece.text);
  return false;
}

function isPaired(text) {
  return text.length > 1 && text.split(text[0]).length % 2 === 1;
}

// A name as CQL writes it. Reserved words are names only in quotes.
export const quoted = (name) => (/^[a-z][a-z0-9_]*$/.test(name) && !RESERVED.has(name) ? name : `"${name.replaceAll('"', '""')}"`);

// The name that a piece means.
export function meant(piece) {
  if (!piece) return "";
  if (piece.kind !== "quoted") return piece.text.toLowerCase();
  return piece.text.replace(/^"/, "").replace(/"$/, "").replaceAll('""', '"');
}

// The word of a piece, to compare it with keywords; "" for all that is no plain name.
export const wordOf = (piece) => (piece?.kind === "name" ? piece.text.toLowerCase() : "");

const RESERVED = new Set(("add allow alter and apply asc authorize batch begin by columnfamily create default delete desc describe drop entries "
  + "execute from full grant if in index infinity insert into is keyspace limit materialized mbean mbeans modify nan norecursive not null of on or order "
  + "primary rename replace revoke schema select set table to token truncate unlogged unset update use using view where with").split(" "));
