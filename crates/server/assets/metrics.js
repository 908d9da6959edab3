// Parses OpenMetrics text, and formats numbers.

// name -> [{labels, value}]
export function parse(text) {
  const metrics = new Map();
  for (const line of text.split("\n")) {
    const found = /^([a-z_][a-z0-9_]*)(?:\{(.*)\})? (\S+)/i.exec(line);
    if (!found || line.startsWith("#")) continue;
    const labels = {};
    for (const [, name, value] of (found[2] ?? "").matchAll(/([a-z_]+)="((?:[^"\\]|\\.)*)"/gi)) labels[name] = value;
    if (!metrics.has(found[1])) metrics.set(found[1], []);
    metrics.get(found[1]).push({ labels, value: Number(found[3]) });
  }
  return metrics;
}

export function sum(metrics, name, where = () => true) {
  return (metrics.get(name) ?? []).filter((sample) => where(sample.labels)).reduce((all, sample) => all + sample.value, 0);
}

// Cumulative buckets of a histogram, added up: [[upper bound, count], ...]
export function buckets(metrics, name, where = () => true) {
  const byBound = new Map();
  for (const { labels, value } of metrics.get(`${name}_bucket`) ?? []) {
    if (!where(labels)) continue;
    const bound = labels.le === "+Inf" ? Infinity : Number(labels.le);
    byBound.set(bound, (byBound.get(bound) ?? 0) + value);
  }
  return [...byBound].sort((a, b) => a[0] - b[0]);
}

// A quantile of the values between two snapshots: the middle of its bucket, or null if there were none.
export function quantile(before, after, q) {
  const earlier = new Map(before);
  const counts = after.map(([bound, count]) => [bound, count - (earlier.get(bound) ?? 0)]);
  const total = counts.length ? counts[counts.length - 1][1] : 0;
  if (total <= 0) return null;
  let lower = 0;
  for (const [bound, count] of counts) {
    if (count >= q * total) return bound === Infinity ? lower : (lower + bound) / 2;
    lower = bound;
  }
  return lower;
}

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];
export function bytes(value) {
  let unit = 0;
  while (value >= 1024 && unit < UNITS.length - 1) { value /= 1024; unit += 1; }
  return `${unit === 0 ? Math.round(value) : value.toFixed(1)} ${UNITS[unit]}`;
}

export function count(value) {
  if (value >= 1e9) return `${(value / 1e9).toFixed(1)} G`;
  if (value >= 1e6) return `${(value / 1e6).toFixed(1)} M`;
  if (value >= 1e4) return `${(value / 1e3).toFixed(1)} k`;
  return String(Math.round(value));
}

export function nanos(value) {
  if (value >= 1e9) return `${(value / 1e9).toFixed(2)} s`;
  if (value >= 1e6) return `${(value / 1e6).toFixed(2)} ms`;
  if (value >= 1e3) return `${(value / 1e3).toFixed(1)} us`;
  return `${Math.round(value)} ns`;
}
