// Charts: draws each <div class="chart-holder" data-chart="id of a JSON script block"> of a page.
//
// The block is {"mark": "bar" | "line" | "stack", "title", "x", "y", "by"?, "rows": [{column: value}]}. The page has
// the same rows as a table.
import { colour, readData } from "./dom.js";
import { draw, formatCount, Plot } from "./plotting.js";
import { SERIES } from "./series.js";

for (const holder of document.querySelectorAll(".chart-holder[data-chart]")) {
  const spec = readData(/** @type {HTMLElement} */ (holder).dataset.chart ?? "");
  if (spec?.rows.length) show(/** @type {HTMLElement} */ (holder), spec);
}

/** @param {HTMLElement} holder @param {any} spec */
function show(holder, { mark, title, x, y, by, rows }) {
  const fill = by ?? colour("--link");
  const legend = by ? { legend: true } : {};
  const longest = (name) => Math.max(...rows.map((row) => Math.min(String(row[name]).length, 34)));
  const short = (text) => (String(text).length > 34 ? `${String(text).slice(0, 33)}…` : String(text));
  if (mark === "line" || mark === "stack") {
    const years = rows.map((row) => ({ ...row, [x]: Number(row[x]) }));
    const range = [Math.min(...years.map((row) => row[x])), Math.max(...years.map((row) => row[x]))];
    const span = range[1] - range[0];
    const marks = mark === "line"
      ? [Plot.lineY(years, { x, y, stroke: fill, z: by ?? null }), Plot.dot(years, { x, y, fill, r: 2.5, tip: true })]
      : [Plot.rectY(years, { x1: (row) => row[x] - 0.45, x2: (row) => row[x] + 0.45, y, fill, tip: { format: { x1: false, x2: false } }, title: (row) => `${row[x]}${by ? ` · ${row[by]}` : ""}: ${row[y].toLocaleString()}` })];
    draw(holder, (width) => ({
      height: Math.min(360, Math.max(220, width * 0.45)), marginBottom: 36,
      x: { label: null, tickFormat: (year) => (Number.isInteger(year) ? String(year) : ""), domain: span ? [range[0] - 0.6, range[1] + 0.6] : [range[0] - 2, range[0] + 2], ticks: Math.min(span + 1, Math.floor(width / 70)) },
      y: { label: y, grid: true, zero: true, tickFormat: formatCount, ticks: 5 }, color: { range: SERIES, ...legend }, marks: [...marks, Plot.ruleY([0])],
    }), title);
    return;
  }
  const names = [...new Set(rows.map((row) => row[x]))];
  draw(holder, (width) => ({
    height: 62 + names.length * 24, marginBottom: 42, marginLeft: Math.min(width * 0.42, 24 + 6.6 * longest(x)), marginRight: 40,
    x: { label: y, grid: true, tickFormat: formatCount, ticks: ticksOf(rows.map((row) => row[y])) }, y: { label: null, domain: names, tickFormat: short }, color: { range: SERIES, ...legend },
    marks: [Plot.barX(rows, { x: y, y: x, fill, fillOpacity: by ? 1 : 0.75, tip: true }), ...(by ? [] : [Plot.text(rows, { x: y, y: x, text: (row) => row[y].toLocaleString(), textAnchor: "start", dx: 5 })]), Plot.ruleX([0])],
  }), title);
}

/** No more ticks than whole numbers. */
function ticksOf(values) {
  return Math.max(1, Math.min(8, Math.ceil(Math.max(...values, 1))));
}
