// Line charts of the last five minutes, drawn by uPlot.

import { count } from "./metrics.js";
import { element } from "./tables.js";

const KEPT = 300;
const COLOURS = ["#2f7fc1", "#d9822b", "#3d9a5f", "#b0589f", "#8a8f98"];

function short(value) {
  if (value === null || value === undefined) return "-";
  return value >= 100 ? count(value) : value.toPrecision(3);
}

export class Chart {
  constructor(place, names) {
    this.place = place;
    this.names = names;
    this.data = [[], ...names.map(() => [])];
    this.legend = names.map((name, at) => {
      const value = element("span", {}, "-");
      // Not an attribute: the page's policy allows no styles inside it.
      const colour = element("i", {});
      colour.style.background = COLOURS[at];
      place.after(element("span", { class: "key" }, colour, `${name} `, value));
      return value;
    });
    this.draw();
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(place);
  }

  size() { return { width: Math.max(this.place.clientWidth, 200), height: this.place.clientHeight }; }

  // The colours depend on the theme, so a change of the theme redraws.
  draw() {
    this.plot?.destroy();
    const style = getComputedStyle(document.documentElement);
    const axis = { stroke: style.getPropertyValue("--quiet"), grid: { stroke: style.getPropertyValue("--line"), width: 1 } };
    this.plot = new uPlot({
      ...this.size(),
      legend: { show: false },
      cursor: { drag: { x: false, y: false } },
      scales: {
        x: { range: (_, low, high) => (high > 1e9 ? [high - KEPT, high] : [Date.now() / 1000 - KEPT, Date.now() / 1000]) },
        y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] },
      },
      axes: [axis, { ...axis, size: 60 }],
      series: [{}, ...this.names.map((label, at) => ({
        label, stroke: COLOURS[at], width: 1.5, points: { show: false },
        spanGaps: true,
      }))],
    }, this.data, this.place);
    this.describe();
  }

  add(seconds, values) {
    this.data[0].push(seconds);
    values.forEach((value, at) => this.data[at + 1].push(value));
    for (const line of this.data) if (line.length > KEPT) line.shift();
    this.plot.setData(this.data);
    this.describe();
  }

  describe() {
    const last = this.names.map((name, at) => {
      const line = this.data[at + 1];
      const text = short(line[line.length - 1]);
      this.legend[at].textContent = text;
      return `${name} ${text}`;
    });
    this.place.setAttribute("role", "img");
    this.place.setAttribute("aria-label", `now: ${last.join(", ")}`);
  }
}
