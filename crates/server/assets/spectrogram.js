// The spectrogram: time from left to right, latency from bottom to top, count as colour. The slowest I/Os of a rectangle are listed.

import * as ask from "./ask.js";
import { bytes, clock, count, moment, nanos } from "./format.js";
import { BACKGROUND, drawScale, shade } from "./ramp.js";
import { element, put, table } from "./tables.js";

const MARGIN = { left: 64, bottom: 22, top: 6, right: 8 };
// Stands for the number of a table that the report does not name.
const UNKNOWN = "?";

export class Spectrogram {
  constructor() {
    this.canvas = document.getElementById("spectrogram");
    this.slots = new Map();
    this.from = 0;
    this.report = null;
    this.tables = {};
    this.cursor = null;
    this.anchor = null;
    this.pointer = null;
    this.most = 2;
    // What the address of the view names: kinds and a table, once they are known.
    this.wanted = {};
    this.whenChanged = () => {};
    this.bindPointer();
    this.bindKeys();
    for (const id of ["io-table", "io-window"]) document.getElementById(id).addEventListener("change", () => this.changed());
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  // Takes the choices of an address.
  enter(values) {
    this.wanted = values;
    const window = document.getElementById("io-window");
    window.value = [...window.options].some((option) => option.value === values.window) ? values.window : "600";
    const kinds = values.kinds?.split(",");
    for (const box of document.querySelectorAll("#io-kinds input")) box.checked = !kinds || kinds.includes(box.dataset.kind);
    this.offerTables();
    this.draw();
  }

  // The choices, for the address.
  choices() {
    const boxes = [...document.querySelectorAll("#io-kinds input")];
    const checked = boxes.filter((box) => box.checked).map((box) => box.dataset.kind);
    const window = document.getElementById("io-window").value;
    return {
      table: this.tableName() ?? "",
      kinds: checked.length === boxes.length ? "" : checked.join(",") || "none",
      window: window === "600" ? "" : window,
    };
  }

  tableName() {
    const select = document.getElementById("io-table");
    return select.value === "" ? null : select.selectedOptions[0].textContent;
  }

  changed() {
    this.wanted = this.choices();
    this.whenChanged(this.wanted);
    this.draw();
  }

  async load() {
    const report = await ask.json(`/api/spectrogram?from=${this.from}`);
    if (this.report && report.epoch_millis !== this.report.epoch_millis) {
      // The node was restarted: slots count from 0 again.
      this.slots.clear();
      this.from = 0;
      this.report = null;
      return this.load();
    }
    if (!this.report) this.offerKinds(report.kinds);
    this.report = report;
    Object.assign(this.tables, report.tables);
    for (const slot of report.slots) this.slots.set(slot.slot, slot.cells);
    this.from = report.current_slot;
    for (const slot of this.slots.keys()) if (slot + report.slots_kept < report.current_slot) this.slots.delete(slot);
    this.offerTables();
    this.draw();
  }

  offerKinds(kinds) {
    const place = document.getElementById("io-kinds");
    if (place.querySelector("input")) return;
    kinds.forEach((kind, at) => {
      const box = element("input", { type: "checkbox", value: at, "data-kind": kind, onchange: () => this.changed() });
      box.checked = !this.wanted.kinds || this.wanted.kinds.split(",").includes(kind);
      place.append(element("label", {}, box, ` ${kind}`));
    });
  }

  offerTables() {
    const select = document.getElementById("io-table");
    const known = new Set([...select.options].map((option) => option.value));
    for (const [number, name] of Object.entries(this.tables)) {
      if (name && !known.has(number)) select.append(element("option", { value: number }, name));
    }
    const wanted = this.wanted.table ?? "";
    const named = [...select.options].filter((option) => option.value !== "" && option.textContent === wanted);
    // A table of which no I/O is known has no number yet: nothing is shown, rather than the I/O of all.
    if (wanted && !named.length) named.push(select.appendChild(element("option", { value: UNKNOWN }, wanted)));
    if (named.length > 1) named.filter((option) => option.value === UNKNOWN).forEach((option) => option.remove());
    select.value = named.find((option) => option.isConnected && option.value !== UNKNOWN)?.value ?? named[0]?.value ?? "";
  }

  window() { return Number(document.getElementById("io-window").value); }

  chosen() {
    const kinds = new Set([...document.querySelectorAll("#io-kinds input:checked")].map((box) => Number(box.value)));
    const only = document.getElementById("io-table").value;
    return ([of, kind]) => kinds.has(kind) && (only === "" || String(of) === only);
  }

  geometry() {
    const width = this.canvas.clientWidth - MARGIN.left - MARGIN.right;
    const height = this.canvas.clientHeight - MARGIN.top - MARGIN.bottom;
    const columns = Math.max(1, Math.min(this.window(), Math.floor(width / 2)));
    const last = this.report.current_slot - 1;
    return {
      width, height, columns, steps: this.report.bounds_nanos.length,
      slotsEach: this.window() / columns, first: last - this.window() + 1,
    };
  }

  // Counts by column and step.
  grid(geometry) {
    const wanted = this.chosen();
    const grid = Array.from({ length: geometry.columns }, () => new Float64Array(geometry.steps));
    let total = 0;
    for (const [slot, cells] of this.slots) {
      const column = Math.floor((slot - geometry.first) / geometry.slotsEach);
      if (column < 0 || column >= geometry.columns) continue;
      for (const cell of cells) {
        if (!wanted(cell)) continue;
        grid[column][cell[2]] += cell[3];
        total += cell[3];
      }
    }
    return { grid, total };
  }

  draw() {
    if (!this.report || !this.canvas.clientWidth) return;
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = this.canvas.clientWidth * ratio;
    this.canvas.height = this.canvas.clientHeight * ratio;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const geometry = this.geometry();
    const { grid, total } = this.grid(geometry);
    const style = getComputedStyle(document.documentElement);
    pen.fillStyle = BACKGROUND;
    pen.fillRect(MARGIN.left, MARGIN.top, geometry.width, geometry.height);
    this.most = Math.max(2, ...grid.map((steps) => Math.max(...steps)));
    const cellWidth = geometry.width / geometry.columns;
    const cellHeight = geometry.height / geometry.steps;
    grid.forEach((steps, column) => steps.forEach((found, step) => {
      if (!found) return;
      pen.fillStyle = shade(found, this.most);
      pen.fillRect(MARGIN.left + column * cellWidth, this.y(step + 1, geometry), Math.ceil(cellWidth), Math.ceil(cellHeight));
    }));
    this.drawAxes(pen, geometry, style);
    this.drawSelection(pen, geometry, style);
    this.summarize(grid, total);
    this.drawScale();
    this.tell(grid, geometry);
  }

  // What the colours mean.
  drawScale() {
    drawScale(document.getElementById("io-scale"));
    document.getElementById("io-most").textContent = count(this.most);
  }

  // The cell below the pointer or the cursor of the keys, in words.
  tell(grid, geometry) {
    const cell = this.pointer ?? this.cursor;
    const place = document.getElementById("io-hover");
    if (!cell || cell.column >= geometry.columns) {
      place.textContent = "Point at the picture to read its values.";
      return;
    }
    const bounds = this.report.bounds_nanos;
    const slot = geometry.first + cell.column * geometry.slotsEach;
    const at = clock((this.report.epoch_millis + slot * this.report.slot_millis) / 1000);
    const upper = bounds[cell.step + 1];
    const latency = upper ? `${nanos(bounds[cell.step])} to ${nanos(upper)}` : `${nanos(bounds[cell.step])} and more`;
    place.textContent = `${at}, ${latency}: ${count(grid[cell.column][cell.step])} reads, writes and syncs`;
  }

  y(step, geometry) { return MARGIN.top + geometry.height * (1 - step / geometry.steps); }

  drawAxes(pen, geometry, style) {
    pen.fillStyle = style.getPropertyValue("--quiet");
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "right";
    this.report.bounds_nanos.forEach((bound, step) => {
      if (step % 5 === 0) pen.fillText(nanos(bound).replace(/\.0+(?= )/, ""), MARGIN.left - 6, this.y(step, geometry) + 3);
    });
    pen.textAlign = "center";
    const seconds = (this.window() * this.report.slot_millis) / 1000;
    for (let part = 0; part <= 6; part += 1) {
      const x = MARGIN.left + (geometry.width * part) / 6;
      pen.fillText(part === 6 ? "now" : `-${Math.round(seconds * (1 - part / 6))} s`, Math.min(x, MARGIN.left + geometry.width - 14), this.canvas.clientHeight - 6);
    }
  }

  drawSelection(pen, geometry, style) {
    const area = this.area();
    if (!area) return;
    const x = (column) => MARGIN.left + (geometry.width * column) / geometry.columns;
    pen.strokeStyle = "#ffffff";
    pen.lineWidth = 1.5;
    pen.strokeRect(x(area.left), this.y(area.top + 1, geometry), x(area.right + 1) - x(area.left), this.y(area.bottom, geometry) - this.y(area.top + 1, geometry));
  }

  summarize(grid, total) {
    const steps = new Float64Array(this.report.bounds_nanos.length);
    for (const column of grid) column.forEach((found, step) => { steps[step] += found; });
    const at = (share) => {
      let seen = 0;
      for (let step = 0; step < steps.length; step += 1) {
        seen += steps[step];
        if (seen >= share * total && steps[step]) return nanos(this.report.bounds_nanos[step]);
      }
      return "-";
    };
    const text = total
      ? `${count(total)} reads, writes and syncs; half took up to ${at(0.5)}, 99 of 100 up to ${at(0.99)}, the slowest about ${at(1)}.`
      : "No I/O in this window.";
    document.getElementById("io-summary").textContent = text;
    this.canvas.setAttribute("aria-label", `Spectrogram. ${text}`);
  }

  // The rectangle between anchor and cursor, in columns and steps.
  area() {
    if (!this.cursor) return null;
    const from = this.anchor ?? this.cursor;
    return {
      left: Math.min(from.column, this.cursor.column), right: Math.max(from.column, this.cursor.column),
      bottom: Math.min(from.step, this.cursor.step), top: Math.max(from.step, this.cursor.step),
    };
  }

  at(event) {
    const geometry = this.geometry();
    const box = this.canvas.getBoundingClientRect();
    const across = (event.clientX - box.left - MARGIN.left) / geometry.width;
    const up = 1 - (event.clientY - box.top - MARGIN.top) / geometry.height;
    const clamp = (value, most) => Math.min(Math.max(Math.floor(value), 0), most - 1);
    return { column: clamp(across * geometry.columns, geometry.columns), step: clamp(up * geometry.steps, geometry.steps) };
  }

  bindPointer() {
    let isDown = false;
    this.canvas.addEventListener("pointerdown", (event) => {
      if (!this.report) return;
      isDown = true;
      this.canvas.setPointerCapture(event.pointerId);
      this.anchor = this.cursor = this.at(event);
      this.draw();
    });
    this.canvas.addEventListener("pointermove", (event) => {
      if (!this.report) return;
      this.pointer = this.at(event);
      if (isDown) this.cursor = this.pointer;
      this.draw();
    });
    this.canvas.addEventListener("pointerleave", () => {
      this.pointer = null;
      this.draw();
    });
    this.canvas.addEventListener("pointerup", () => {
      if (isDown) this.list();
      isDown = false;
    });
  }

  bindKeys() {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] };
    this.canvas.addEventListener("keydown", (event) => {
      if (!this.report) return;
      const geometry = this.geometry();
      if (event.key === "Escape") {
        this.cursor = this.anchor = null;
      } else if (event.key === "Enter") {
        this.list();
      } else if (moves[event.key]) {
        const [across, up] = moves[event.key];
        const before = this.cursor ?? { column: geometry.columns - 1, step: Math.floor(geometry.steps / 2) };
        if (!event.shiftKey) this.anchor = null;
        else this.anchor ??= before;
        const clamp = (value, most) => Math.min(Math.max(value, 0), most - 1);
        const stride = event.ctrlKey ? 10 : 1;
        this.cursor = {
          column: clamp(before.column + across * stride, geometry.columns),
          step: clamp(before.step + up * stride, geometry.steps),
        };
      } else {
        return;
      }
      event.preventDefault();
      this.draw();
    });
  }

  async list() {
    const area = this.area();
    if (!area) return;
    const geometry = this.geometry();
    const bounds = this.report.bounds_nanos;
    const from = Math.max(0, Math.floor(geometry.first + area.left * geometry.slotsEach));
    const to = Math.max(0, Math.ceil(geometry.first + (area.right + 1) * geometry.slotsEach) - 1);
    // The first step includes all lower latencies, and the last one all higher latencies.
    const min = area.bottom === 0 ? 0 : bounds[area.bottom];
    const max = area.top === geometry.steps - 1 ? "" : `&max_nanos=${bounds[area.top + 1] - 1}`;
    const place = document.getElementById("slowest");
    // Only what the picture shows.
    const { kinds, table } = this.choices();
    const only = new URLSearchParams(Object.entries({ kinds, table }).filter(([, value]) => value)).toString();
    try {
      const { slowest } = await ask.json(`/api/slowest?from=${from}&to=${to}&min_nanos=${min}${max}${only ? `&${only}` : ""}`);
      put(place, this.slowestTable(slowest));
    } catch (error) {
      put(place, element("p", { class: "alert" }, error.message));
    }
  }

  slowestTable(slowest) {
    return table("slowest", `The slowest reads, writes and syncs of the rectangle (${slowest.length})`, [
      { name: "time", of: (io) => io.at_millis, show: moment, short: true },
      { name: "took", of: (io) => io.nanos, show: nanos, number: true },
      { name: "what", of: (io) => (io.kind === "fsync" ? "sync" : `${io.verb} (${io.kind})`), short: true },
      { name: "bytes", of: (io) => (io.verb === "sync" ? null : io.bytes), show: bytes, number: true, missing: "-" },
      { name: "table", of: (io) => io.table },
      { name: "file", of: (io) => io.file },
      { name: "offset", of: (io) => (io.verb === "sync" ? null : io.offset), number: true, missing: "-" },
      { name: "statement", of: (io) => io.statement ?? "", code: true },
    ], slowest);
  }
}
