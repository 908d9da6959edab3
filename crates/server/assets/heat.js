// From the samples of the node to the latency heat map: columns of time, rows of latency, the number of requests in each cell. Pure.

import { quantile } from "./history.js";

export const COLUMNS = 150;
// The fewest rows of a picture.
const ROWS_MIN = 8;

// {counts: column -> row -> requests, from: seconds of the left edge, each: seconds of a column, first: bucket of the lowest row, rows,
// most: the largest count, total}. Columns begin at whole multiples of their width, so that the picture moves without trembling.
export function grid(points, bounds, seconds) {
  const each = seconds / COLUMNS;
  const newest = points.length ? points[points.length - 1].at : 0;
  const from = (Math.floor(newest / each) + 1) * each - seconds;
  const all = Array.from({ length: COLUMNS }, () => new Array(bounds.length + 1).fill(0));
  for (const point of points) {
    const column = Math.floor((point.at - from) / each);
    if (column >= 0 && column < COLUMNS) point.latencies.forEach((found, bucket) => { all[column][bucket] += found; });
  }
  const used = bounds.map((_, bucket) => bucket).concat(bounds.length).filter((bucket) => all.some((counts) => counts[bucket]));
  const { first, last } = range(used, bounds.length);
  const counts = all.map((column) => column.slice(first, last + 1));
  const flat = counts.flat();
  return { counts, from, each, first, rows: last + 1 - first, most: Math.max(0, ...flat), total: flat.reduce((sum, found) => sum + found, 0) };
}

// The buckets to show: those with requests and one around them, and enough of them.
function range(used, top) {
  const wanted = used.length ? [used[0] - 1, used[used.length - 1] + 1] : [7, 14];
  let [first, last] = [Math.max(0, wanted[0]), Math.min(top, wanted[1])];
  while (last - first + 1 < Math.min(ROWS_MIN, top + 1)) {
    if (last < top) last += 1;
    if (last - first + 1 < ROWS_MIN && first > 0) first -= 1;
  }
  return { first, last };
}

// The latencies of a bucket in nanoseconds: [lower, upper]; the upper one of the last bucket is null.
export function limits(bounds, bucket) {
  return [bucket ? bounds[bucket - 1] : 0, bucket < bounds.length ? bounds[bucket] : null];
}

// For the table: a row for each minute, the newest first. Latencies are in nanoseconds, null without requests.
export function minutes(points, bounds, seconds) {
  const newest = points.length ? points[points.length - 1].at : 0;
  const byMinute = new Map();
  for (const point of points.filter((one) => one.at > newest - seconds)) {
    const minute = Math.floor(point.at / 60) * 60;
    if (!byMinute.has(minute)) byMinute.set(minute, new Array(bounds.length + 1).fill(0));
    point.latencies.forEach((found, bucket) => { byMinute.get(minute)[bucket] += found; });
  }
  return [...byMinute].sort(([a], [b]) => b - a).map(([at, counts]) => {
    const slowest = counts.findLastIndex((found) => found > 0);
    return {
      at, requests: counts.reduce((sum, found) => sum + found, 0),
      p50: quantile(bounds, counts, 0.5), p95: quantile(bounds, counts, 0.95), p99: quantile(bounds, counts, 0.99),
      slowest: slowest < 0 ? null : limits(bounds, slowest),
    };
  });
}
