// Graphs: draws each element of a page with data-graph, in its place.
//
// The value is the data itself, "#id" of a JSON script block of the page, or the address of a resource:
// {"nodes": [{"id", "label", "kind"?, "href"?}], "edges": [{"source", "target", "label"?, "href"?}]}.
// The page has the same content as text, so a graph is hidden from screen readers. Where the server has drawn the graph
// already, a button replaces its drawing by one that can be moved and zoomed.
import { readData } from "./dom.js";

for (const holder of /** @type {NodeListOf<HTMLElement>} */ (document.querySelectorAll("[data-graph]"))) {
  if (!holder.querySelector("svg")) show(holder);
  else {
    const button = holder.nextElementSibling; // its place is kept from the start, so that nothing moves when it appears
    if (!button?.matches("button.explore")) continue;
    button.classList.remove("away");
    button.addEventListener("click", () => { button.remove(); show(holder); });
  }
}

/** @param {HTMLElement} holder */
async function show(holder) {
  const source = holder.dataset.graph ?? "";
  try {
    let data;
    if (source.startsWith("{")) data = JSON.parse(source);
    else if (source.startsWith("#")) data = readData(source.slice(1));
    else {
      const answer = await fetch(source, { headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      data = await answer.json();
    }
    if (!data?.nodes?.length) return; // what the server has drawn stays
    const { drawGraph } = await import("./graph.js"); // the library is loaded when a graph is drawn
    holder.classList.remove("chain");
    holder.classList.add("graph");
    drawGraph(holder, data);
  } catch (error) {
    holder.textContent = `The graph cannot be drawn (${error instanceof Error ? error.message : error}).`;
  }
}
