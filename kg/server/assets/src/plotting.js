// Charts of Observable Plot in the colours of the page, without the inline style that Plot writes.
import * as Plot from "@observablehq/plot";
import { SERIES } from "./series.js";

export { Plot };

/** The text of a tick of counts: there is no half of one. */
export const formatCount = (value) => (Number.isInteger(value) ? value.toLocaleString("en") : "");

/**
 * Draw a chart into `holder`, as wide as it is, again when its width changes.
 *
 * The policy of the pages allows no inline style: the rules that Plot puts into each chart are in the style sheet.
 * @param {HTMLElement} holder
 * @param {(width: number) => Record<string, any>} options
 * @param {string} label what the chart shows, for those who cannot see it
 */
export function draw(holder, options, label) {
  let width = 0;
  const redraw = () => {
    const now = Math.max(280, Math.floor(holder.clientWidth));
    if (now === width || !holder.isConnected) return;
    width = now;
    const chart = Plot.plot({
      width,
      className: "chart",
      style: { background: "transparent", fontFamily: "inherit", fontSize: "12px", overflow: "visible" },
      color: { range: SERIES },
      ...options(width),
    });
    for (const style of chart.querySelectorAll("style")) style.remove();
    const svg = chart instanceof SVGElement ? chart : chart.querySelector("svg.chart:last-of-type");
    // Groups have no role that may have a name.
    for (const group of chart.querySelectorAll("g[aria-label]")) {
      group.setAttribute("data-mark", group.getAttribute("aria-label") ?? "");
      group.removeAttribute("aria-label");
    }
    svg?.setAttribute("role", "img");
    svg?.setAttribute("aria-label", label);
    holder.replaceChildren(chart);
  };
  redraw();
  new ResizeObserver(redraw).observe(holder);
}
