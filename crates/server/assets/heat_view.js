// The latency heat map of the overview: a picture, the value below the pointer or the cursor of the keys, a legend, and a table of the same.

import { clock, count, nanos } from "./format.js";
import { COLUMNS, grid, limits, minutes } from "./heat.js";
import { BACKGROUND, drawScale, shade } from "./ramp.js";
import { element, refresh, table } from "./tables.js";

const MARGIN = { left: 64, right: 8, top: 6, bottom: 20 };
const at = (id) => document.getElementById(id);
const canvas = at("heat");

let bounds = [];
let seconds = 300;
let points = [];
let map = null;
let pointer = null;
let cursor = null;

export function show(history, window) {
  [points, bounds, seconds] = [history.points, history.bounds, window];
  if (!bounds.length) return;
  map = grid(points, bounds, seconds);
  draw();
  const rows = minutes(points, bounds, seconds);
  const slowest = (row) => row.slowest && row.slowest[0];
  refresh(at("heat-table"), table("heat", "Statements and batches by minute and latency", [
    { name: "minute", of: (row) => row.at, show: (value) => clock(value).slice(0, 5) },
    { name: "requests", of: (row) => row.requests, show: count, number: true },
    ...["p50", "p95", "p99"].map((name) => ({ name, of: (row) => row[name], show: nanos, number: true, missing: "-" })),
    { name: "slowest, at least", of: slowest, show: nanos, number: true, missing: "-" },
  ], rows));
}

function inside() {
  return { width: canvas.clientWidth - MARGIN.left - MARGIN.right, height: canvas.clientHeight - MARGIN.top - MARGIN.bottom };
}

export function draw() {
  if (!map || !canvas.clientWidth) return;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = canvas.clientWidth * ratio;
  canvas.height = canvas.clientHeight * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  const { width, height } = inside();
  const x = (column) => MARGIN.left + (width * column) / COLUMNS;
  const y = (row) => MARGIN.top + height * (1 - row / map.rows);
  pen.fillStyle = BACKGROUND;
  pen.fillRect(MARGIN.left, MARGIN.top, width, height);
  map.counts.forEach((rows, column) => rows.forEach((found, row) => {
    if (!found) return;
    pen.fillStyle = shade(found, map.most);
    pen.fillRect(x(column), y(row + 1), x(column + 1) - x(column) + 0.3, y(row) - y(row + 1) + 0.3);
  }));
  axes(pen, x, y, height);
  if (cursor) {
    pen.strokeStyle = "#ffffff";
    pen.strokeRect(x(cursor.column) - 1, y(cursor.row + 1), x(cursor.column + 1) - x(cursor.column) + 2, y(cursor.row) - y(cursor.row + 1));
  }
  drawScale(at("heat-scale"));
  at("heat-most").textContent = count(Math.max(map.most, 2));
  tell();
}

// Latencies at the borders of rows; times as those of the charts.
function axes(pen, x, y, height) {
  pen.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--quiet");
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "right";
  const step = Math.ceil(map.rows / Math.max(1, Math.floor(height / 22)));
  for (let row = step; row < map.rows; row += step) pen.fillText(nanos(limits(bounds, map.first + row)[0]), MARGIN.left - 6, y(row) + 4);
  pen.textAlign = "center";
  const parts = Math.max(1, Math.min(6, Math.floor((x(COLUMNS) - x(0)) / 80)));
  for (let part = 0; part < parts; part += 1) {
    const column = Math.round((COLUMNS * (part + 0.5)) / parts);
    pen.fillText(clock(map.from + column * map.each), x(column), canvas.clientHeight - 5);
  }
}

// The cell below the pointer or the cursor in words, and the whole for screen readers.
function tell() {
  const cell = pointer ?? cursor;
  at("heat-hover").textContent = cell ? words(cell) : "Point at the picture to read its values.";
  const last = minutes(points, bounds, seconds).find((row) => row.requests);
  const newest = last ? ` In the minute from ${clock(last.at).slice(0, 5)}: half took up to ${nanos(last.p50)}, 99 of 100 up to ${nanos(last.p99)}.` : "";
  const whole = map.total ? `${count(map.total)} statements and batches in ${seconds / 60} minutes.${newest}` : `No statement of a client in ${seconds / 60} minutes.`;
  at("heat-summary").textContent = whole;
  canvas.setAttribute("aria-label", `Latency heat map. ${cell ? words(cell) : whole}`);
}

function words({ column, row }) {
  const [lower, upper] = limits(bounds, map.first + row);
  const latency = upper === null ? `${nanos(lower)} and more` : `${nanos(lower)} to ${nanos(upper)}`;
  const found = map.counts[column]?.[row] ?? 0;
  return `${clock(map.from + column * map.each)}, ${latency}: ${count(found)} ${found === 1 ? "request" : "requests"} in ${map.each} s`;
}

function cellOf(event) {
  const box = canvas.getBoundingClientRect();
  const { width, height } = inside();
  const clamp = (value, most) => Math.min(Math.max(Math.floor(value), 0), most - 1);
  return {
    column: clamp(((event.clientX - box.left - MARGIN.left) / width) * COLUMNS, COLUMNS),
    row: clamp((1 - (event.clientY - box.top - MARGIN.top) / height) * map.rows, map.rows),
  };
}

const MOVES = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };

canvas.addEventListener("pointermove", (event) => {
  if (!map) return;
  pointer = cellOf(event);
  tell();
});
canvas.addEventListener("pointerleave", () => {
  pointer = null;
  if (map) tell();
});
canvas.addEventListener("keydown", (event) => {
  if (!map || !(MOVES[event.key] || event.key === "Escape")) return;
  event.preventDefault();
  const [across, up] = MOVES[event.key] ?? [0, 0];
  const before = cursor ?? { column: COLUMNS - 1, row: Math.floor(map.rows / 2) };
  const clamp = (value, most) => Math.min(Math.max(value, 0), most - 1);
  const stride = event.ctrlKey ? 10 : 1;
  cursor = event.key === "Escape" ? null : { column: clamp(before.column + across * stride, COLUMNS), row: clamp(before.row + up, map.rows) };
  draw();
});
canvas.addEventListener("blur", () => {
  cursor = null;
  draw();
});
new ResizeObserver(draw).observe(canvas);
