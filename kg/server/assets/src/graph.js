// One graph, drawn by Cytoscape.js in the colours of the page.
import cytoscape from "cytoscape";
import { colour, element } from "./dom.js";
import { SERIES } from "./series.js";

/** Cytoscape adds an inline style unless an element with this id exists; its rule is in the style sheet. */
const STYLE_ID = "__________cytoscape_stylesheet";

/** The least zoom at which labels can be read. */
const READABLE = 0.75;
const MOST_SEPARATED = 300;

/**
 * @typedef {{id: string, label: string, kind?: string, href?: string}} Node
 * @typedef {{source: string, target: string, label?: string, href?: string}} Edge
 * @param {HTMLElement} holder
 * @param {{nodes: Node[], edges: Edge[]}} data
 * @param {{layout?: string}} [options]
 */
export function drawGraph(holder, data, options = {}) {
  if (!document.getElementById(STYLE_ID)) document.head.append(element("meta", { id: STYLE_ID, name: "graph-style" }));
  const kinds = [...new Set(data.nodes.map((node) => node.kind ?? ""))].filter(Boolean);
  const known = new Set(data.nodes.map((node) => node.id));
  holder.replaceChildren();
  const canvas = element("div", { class: "graph-canvas", "aria-hidden": "true" });
  holder.append(canvas);
  const drawn = cytoscape({
    container: canvas,
    elements: {
      nodes: data.nodes.map((node) => ({ data: { ...node, short: cut(node.label) }, classes: className(kinds, node.kind) })),
      edges: data.edges
        .filter((edge) => known.has(edge.source) && known.has(edge.target))
        .map((edge, number) => ({ data: { id: `edge-${number}`, label: "", ...edge } })),
    },
    style: buildStyle(kinds),
    layout: chooseLayout(data, options.layout),
    userZoomingEnabled: false, // the wheel scrolls the page; the buttons zoom
    maxZoom: 2.5,
    minZoom: 0.1,
  });
  separate(drawn);
  // A graph too large for its place begins at a size that can be read, with its most connected node in the middle.
  if (drawn.zoom() < READABLE) {
    drawn.zoom(READABLE);
    drawn.center(drawn.nodes().max((node) => node.degree(false)).ele);
  }
  drawn.on("tap", "node[href], edge[href]", (event) => location.assign(event.target.data("href")));
  drawn.on("mouseover", "node[href], edge[href]", () => canvas.classList.add("link"));
  drawn.on("mouseout", "node, edge", () => canvas.classList.remove("link"));
  const zoom = (factor) => drawn.zoom({ level: drawn.zoom() * factor, renderedPosition: { x: drawn.width() / 2, y: drawn.height() / 2 } });
  holder.append(
    element("div", { class: "graph-tools" },
      element("button", { type: "button", "aria-label": "Zoom in", onclick: () => zoom(1.3) }, "+"),
      element("button", { type: "button", "aria-label": "Zoom out", onclick: () => zoom(1 / 1.3) }, "−"),
      element("button", { type: "button", onclick: () => drawn.fit(undefined, 24) }, "Fit")),
  );
  if (kinds.length > 1) {
    holder.append(element("ul", { class: "graph-legend" },
      ...kinds.map((kind, number) => element("li", { class: `series-${number % SERIES.length}` }, kind))));
  }
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.style(buildStyle(kinds)));
  return drawn;
}

/** Width and height of the box of a label, at some 6.6 pixels for a letter and 22 letters in a line. */
function boxOf(label) {
  label = label.replaceAll("\u200b", "");
  const lines = Math.max(1, Math.ceil(label.length / 22));
  return [Math.min(160, 22 + 6.6 * Math.min(label.length, 22)), 14 + 15 * lines];
}

/** A label of at most 60 letters, in which lines may end after separators. */
const cut = (text) => (text.length > 60 ? `${text.slice(0, 59)}…` : text).replace(/[/_.#:-](?=.)/g, "$&\u200b");

/** Move boxes that overlap apart, which the layouts do not prevent, then fit the graph into its place. */
function separate(drawn) {
  const nodes = drawn.nodes().toArray();
  if (nodes.length > MOST_SEPARATED) return;
  const boxes = nodes.map((node) => ({ node, ...node.position(), width: node.width() + 12, height: node.height() + 12 }));
  for (let round = 0, moved = true; moved && round < 60; round += 1) {
    moved = false;
    for (let first = 0; first < boxes.length; first += 1) {
      for (let second = first + 1; second < boxes.length; second += 1) {
        const [a, b] = [boxes[first], boxes[second]];
        const across = (a.width + b.width) / 2 - Math.abs(a.x - b.x);
        const down = (a.height + b.height) / 2 - Math.abs(a.y - b.y);
        if (across <= 0.5 || down <= 0.5) continue;
        moved = true;
        const axis = across < down ? "x" : "y";
        const step = ((axis === "x" ? across : down) / 2) * (a[axis] <= b[axis] ? 1 : -1);
        a[axis] -= step;
        b[axis] += step;
      }
    }
  }
  drawn.batch(() => boxes.forEach(({ node, x, y }) => node.position({ x, y })));
  drawn.fit(undefined, 24);
}

function className(kinds, kind) {
  const at = kinds.indexOf(kind ?? "");
  return at < 0 ? "" : `kind-${at}`;
}

function chooseLayout(data, wanted) {
  if (wanted) return { name: wanted, animate: false, padding: 24 };
  const counts = new Map();
  for (const { source } of data.edges) counts.set(source, (counts.get(source) ?? 0) + 1);
  const broadest = Math.max(0, ...counts.values());
  const chain = data.edges.length < data.nodes.length + 2 && data.nodes.length <= 40 && broadest <= 5;
  if (chain) return { name: "breadthfirst", directed: true, animate: false, padding: 24, spacingFactor: 1.1 };
  const star = counts.size === 1 && broadest <= 24;
  if (star) return { name: "concentric", animate: false, padding: 24, minNodeSpacing: 16, concentric: (node) => node.outdegree(), levelWidth: () => 1 };
  return { name: "cose", animate: false, padding: 24, nodeRepulsion: () => 40000, idealEdgeLength: () => 90, nodeOverlap: 40, componentSpacing: 40, randomize: false };
}

function buildStyle(kinds) {
  const [ink, soft, card, line] = ["--ink", "--soft", "--card", "--strong-line"].map(colour);
  return /** @type {any} */ ([
    { selector: "node", style: {
      "background-color": card, "border-color": soft, "border-width": 1.5, shape: "round-rectangle", label: "data(short)",
      color: ink, "font-size": 12, "text-wrap": "wrap", "text-max-width": "150px", "text-valign": "center",
      width: (node) => boxOf(node.data("short"))[0], height: (node) => boxOf(node.data("short"))[1], "text-overflow-wrap": "whitespace" } },
    ...kinds.map((_, number) => ({ selector: `.kind-${number}`, style: { "border-color": SERIES[number % SERIES.length], "border-width": 2 } })),
    { selector: "edge", style: {
      "line-color": line, "target-arrow-color": soft, "target-arrow-shape": "triangle", "curve-style": "bezier", width: 1.5,
      label: "data(label)", color: soft, "font-size": 10, "text-rotation": "autorotate",
      "text-background-color": card, "text-background-opacity": 0.9, "text-background-padding": "2px" } },
    { selector: "node:active, edge:active", style: { "overlay-opacity": 0 } },
  ]);
}
