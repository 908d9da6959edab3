// Numbers, times and dates as text for people. Pure.

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

// Three digits, never with an exponent.
export function digits(value) {
  if (!Number.isFinite(value)) return "-";
  if (Math.abs(value) >= 1000) return count(value);
  const text = value.toPrecision(3);
  if (text.includes("e")) return "0";
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

export function nanos(value) {
  if (value < 1e3) return `${Math.round(value)} ns`;
  if (value < 1e6) return `${digits(value / 1e3)} us`;
  if (value < 1e9) return `${digits(value / 1e6)} ms`;
  if (value < 120e9) return `${digits(value / 1e9)} s`;
  return duration(value / 1e9);
}

export function millis(value) { return nanos(value * 1e6); }

// "4 min", "3 h 20 min", "12 d 4 h".
export function duration(seconds) {
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1) return `${Math.floor(seconds)} s`;
  if (minutes < 60) return `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${Math.floor(minutes / 1440)} d ${Math.floor((minutes % 1440) / 60)} h`;
}

const two = (number) => String(number).padStart(2, "0");

// "10:25:05", in the zone of the browser.
export function clock(seconds) {
  const date = new Date(seconds * 1000);
  return [date.getHours(), date.getMinutes(), date.getSeconds()].map(two).join(":");
}

// "2026-11-27 10:25:05.100", in the zone of the browser.
export function moment(unixMillis) {
  const date = new Date(unixMillis);
  const day = [date.getFullYear(), two(date.getMonth() + 1), two(date.getDate())].join("-");
  return `${day} ${clock(unixMillis / 1000)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
