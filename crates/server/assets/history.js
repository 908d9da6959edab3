// From the samples of the node (/api/history) to the lines of the charts. Pure.

const MIB = 1024 * 1024;

// A quantile of counts by latency, in nanoseconds: the middle of its bucket, or null if nothing was counted.
export function quantile(bounds, counts, q) {
  const total = counts.reduce((all, count) => all + count, 0);
  if (!total) return null;
  let seen = 0;
  for (let bucket = 0; bucket < counts.length; bucket += 1) {
    seen += counts[bucket];
    const lower = bucket ? bounds[bucket - 1] : 0;
    if (seen >= q * total) return bucket < bounds.length ? (lower + bounds[bucket]) / 2 : lower;
  }
  return null;
}

// A sample as rates per second, latencies in milliseconds, and sizes.
export function point(report, sample) {
  const seconds = Math.max(sample.elapsed_millis, 1) / 1000;
  const kinds = Object.fromEntries(report.kinds.map((kind, at) => [kind, sample.requests[at] / seconds]));
  const latency = (q) => {
    const found = quantile(report.bounds_nanos, sample.latencies, q);
    return found === null ? null : found / 1e6;
  };
  return {
    at: (report.epoch_millis + sample.millis) / 1000,
    kinds,
    requests: Object.entries(kinds).reduce((all, [kind, rate]) => (kind === "other" ? all : all + rate), 0),
    errors: sample.errors / seconds,
    latencies: sample.latencies,
    p50: latency(0.5), p95: latency(0.95), p99: latency(0.99),
    read: sample.read_bytes / seconds,
    written: sample.written_bytes / seconds,
    memtables: sample.memtable_bytes,
    chunks: sample.chunk_cache_bytes,
    others: sample.other_cache_bytes,
    clients: sample.clients,
  };
}

// Adds what a report has to the points that are known. A node that was started again begins with none.
export function extend(known, report) {
  const isSame = known.epoch === report.epoch_millis;
  const points = isSame ? [...known.points] : [];
  for (const sample of report.samples) points.push(point(report, sample));
  const newest = report.samples.length ? report.samples[report.samples.length - 1].millis : isSame ? known.after : 0;
  const oldest = (report.epoch_millis + newest - report.kept_millis) / 1000;
  return { epoch: report.epoch_millis, after: newest, bounds: report.bounds_nanos, points: points.filter((one) => one.at > oldest) };
}

export const NOTHING = { epoch: null, after: 0, bounds: [], points: [] };

// The lines of each chart: name -> point to value.
export const CHARTS = {
  requests: {
    query: (one) => one.kinds.query, execute: (one) => one.kinds.execute,
    batch: (one) => one.kinds.batch, prepare: (one) => one.kinds.prepare, errors: (one) => one.errors,
  },
  latency: { p50: (one) => one.p50, p95: (one) => one.p95, p99: (one) => one.p99 },
  disk: { read: (one) => one.read / MIB, written: (one) => one.written / MIB },
  memory: {
    memtables: (one) => one.memtables / MIB, "chunk cache": (one) => one.chunks / MIB, "other caches": (one) => one.others / MIB,
  },
};

// The data of a chart as uPlot wants it: the times, then a line of values for each name.
export function lines(chart, points) {
  return [points.map((one) => one.at), ...Object.values(CHARTS[chart]).map((of) => points.map(of))];
}
