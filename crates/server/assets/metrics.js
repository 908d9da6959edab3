// Parses OpenMetrics text. Pure.

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

export function sum(metrics, name) {
  return (metrics.get(name) ?? []).reduce((all, sample) => all + sample.value, 0);
}
