// The steps of a statement as a picture: when each began, how long it took, and how many bytes it read.

import { bytes, count } from "./format.js";
import { element, table } from "./tables.js";

// A read says its bytes and its time, and is told when it is over.
const READ = /^Read (\d+) bytes of .* in (\d+) us$/;

// [{activity, from, took, bytes}] in microseconds: a step lasts until the next one, the last one until the end. Pure.
export function timeline(trace, elapsed) {
  const end = Math.max(elapsed, ...trace.map((step) => step.elapsed_micros));
  return trace.map((step, place) => {
    const read = READ.exec(step.activity);
    if (read) return { activity: step.activity, from: Math.max(0, step.elapsed_micros - Number(read[2])), took: Number(read[2]), bytes: Number(read[1]) };
    const next = place + 1 < trace.length ? trace[place + 1].elapsed_micros : end;
    return { activity: step.activity, from: step.elapsed_micros, took: Math.max(0, next - step.elapsed_micros), bytes: null };
  });
}

// A bar in a track, from one share of its width to another.
export function bar(from, to) {
  const made = element("i", {});
  // Properties, not attributes: the page's policy allows no styles inside it.
  made.style.marginLeft = `${100 * Math.min(from, 0.995)}%`;
  made.style.width = `${Math.max(100 * (to - from), 0.5)}%`;
  return element("span", { class: "track", "aria-hidden": "true" }, made);
}

export function drawSteps(report) {
  if (!report.trace.length) return [];
  const steps = timeline(report.trace, report.elapsed_micros);
  const end = Math.max(1, ...steps.map((step) => step.from + step.took));
  const most = Math.max(1, ...steps.map((step) => step.bytes ?? 0));
  const isReading = steps.some((step) => step.bytes !== null);
  return [table("query-steps", "Steps, by time and bytes", [
    { name: "began, us", of: (step) => step.from, number: true },
    { name: "took, us", of: (step) => step.took, show: count, number: true },
    { name: "time", of: (step) => step.from, draw: (step) => bar(step.from / end, (step.from + step.took) / end) },
    ...(isReading ? [
      { name: "read", of: (step) => step.bytes, show: bytes, number: true, missing: "" },
      { name: "bytes", of: (step) => step.bytes, draw: (step) => (step.bytes === null ? "" : bar(0, step.bytes / most)) },
    ] : []),
    { name: "activity", of: (step) => step.activity },
  ], steps)];
}
