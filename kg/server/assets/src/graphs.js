// Graphs: draws each <div class="graph" data-graph="#id or address"> of a page.
//
// The data is a JSON script block of the page, or what the address answers:
// {"nodes": [{"id", "label", "kind"?, "href"?}], "edges": [{"source", "target", "label"?, "href"?}]}.
// The page has the same content as text, so a graph is hidden from screen readers.
import { readData } from "./dom.js";
import { drawGraph } from "./graph.js";

for (const holder of document.querySelectorAll(".graph[data-graph]")) show(/** @type {HTMLElement} */ (holder));

/** @param {HTMLElement} holder */
async function show(holder) {
  const source = holder.dataset.graph ?? "";
  try {
    let data;
    if (source.startsWith("#")) data = readData(source.slice(1));
    else {
      const answer = await fetch(source, { headers: { Accept: "application/json" } });
      if (!answer.ok) throw new Error(`status ${answer.status}`);
      data = await answer.json();
    }
    if (data?.nodes?.length) drawGraph(holder, data);
    else holder.hidden = true;
  } catch (error) {
    holder.textContent = `The graph cannot be drawn (${error instanceof Error ? error.message : error}).`;
  }
}
