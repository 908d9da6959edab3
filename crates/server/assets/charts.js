// Line charts, drawn by uPlot. The legend has the values under the pointer, or the newest ones.

import { clock, digits } from "./format.js";
import { element } from "./tables.js";

// One after another for the lines of a chart: colours of the theme, and dashes for those who see colours alike.
const COLOURS = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5"];
const DASHES = [[], [7, 3], [2, 3], [9, 3, 2, 3], [4, 4]];

const shown = (value) => (value === null || value === undefined ? "-" : digits(value));

export class Chart {
  constructor(place, names) {
    this.place = place;
    this.names = names;
    this.data = [[], ...names.map(() => [])];
    this.seconds = 300;
    this.when = element("span", { class: "when" }, "now");
    this.values = names.map(() => element("span", { class: "value" }, "-"));
    this.marks = names.map(() => element("i", {}));
    const keys = names.map((name, at) => element("span", { class: "key" }, this.marks[at], `${name} `, this.values[at]));
    place.after(element("div", { class: "legend" }, this.when, ...keys));
    place.setAttribute("role", "img");
    place.setAttribute("tabindex", "0");
    place.addEventListener("keydown", (event) => this.step(event));
    place.addEventListener("blur", () => this.plot.setCursor({ left: -10, top: -10 }));
    this.draw();
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(place);
  }

  size() { return { width: Math.max(this.place.clientWidth, 200), height: this.place.clientHeight }; }

  // The colours depend on the theme, so a change of the theme redraws.
  draw() {
    this.plot?.destroy();
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue(name).trim();
    const axis = { stroke: of("--quiet"), grid: { stroke: of("--line"), width: 1 }, ticks: { stroke: of("--line") } };
    // A property, not an attribute: the page's policy allows no styles inside it.
    this.marks.forEach((mark, at) => { mark.style.background = of(COLOURS[at]); });
    this.plot = new uPlot({
      ...this.size(),
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, sync: { key: "charts" }, points: { size: 6 } },
      scales: {
        x: { range: (_, low, high) => (high > 1e9 ? [high - this.seconds, high] : [Date.now() / 1000 - this.seconds, Date.now() / 1000]) },
        y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] },
      },
      axes: [
        { ...axis, space: 70, values: (_, ticks) => ticks.map(clock) },
        { ...axis, size: 56, values: (_, ticks) => ticks.map(digits) },
      ],
      series: [{}, ...this.names.map((label, at) => ({
        label, stroke: of(COLOURS[at]), dash: DASHES[at], width: 1.5, points: { show: false }, spanGaps: true,
      }))],
      hooks: { setCursor: [() => this.describe()] },
    }, this.data, this.place);
    this.describe();
  }

  set(data, seconds) {
    this.data = data;
    this.seconds = seconds;
    this.plot.setData(data);
    this.describe();
  }

  // The arrow keys move the cursor from sample to sample.
  step(event) {
    const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const last = this.data[0].length - 1;
    if (!by || last < 0) return;
    event.preventDefault();
    const at = Math.min(Math.max((this.plot.cursor.idx ?? last) + by, 0), last);
    this.plot.setCursor({ left: this.plot.valToPos(this.data[0][at], "x"), top: 10 });
  }

  describe() {
    const hovered = this.plot?.cursor.idx;
    const isHovering = hovered !== null && hovered !== undefined && hovered < this.data[0].length;
    const at = isHovering ? hovered : this.data[0].length - 1;
    const when = isHovering ? clock(this.data[0][at]) : "now";
    this.when.textContent = when;
    const said = this.names.map((name, line) => {
      const text = shown(this.data[line + 1][at]);
      this.values[line].textContent = text;
      return `${name} ${text}`;
    });
    this.place.setAttribute("aria-label", `${when}: ${said.join(", ")}`);
  }
}
