// The SPARQL workbench: Yasgui with the completion, checks and views of this server.
//
// The page works without this script, by a form and tables that the server renders. The script hides the form and
// starts with its query. No request goes to another host: all of Yasgui's defaults that name one are replaced, and the
// policy of the page would block it.
import Yasgui from "@zazuko/yasgui";
import "@zazuko/yasgui/build/yasgui.min.css";
import { element, readData } from "./dom.js";
import { watchQuery } from "./workbench/checking.js";
import { registerCompletion } from "./workbench/completion.js";
import { buildAnswer, buildErrors } from "./workbench/errors.js";
import { buildEvidence } from "./workbench/evidence.js";
import { readResults } from "./workbench/results.js";
import { watchQueries } from "./workbench/running.js";
import { buildSaved } from "./workbench/saved.js";
import { buildTable } from "./workbench/table.js";
import { buildViews } from "./workbench/views.js";
import "./workbench/workbench.css";

const ENDPOINT = new URL("/sparql", location.href).href;
const LONGEST_LINK = 16_000;
const LONGEST_INDENTED = 1_000_000;
const DOWNLOADS = {
  SELECT: [["csv", "CSV"], ["tsv", "TSV"], ["json", "JSON"], ["xml", "XML"]],
  GRAPH: [["ttl", "Turtle"], ["nt", "N-Triples"], ["jsonld", "JSON-LD"], ["rdf", "RDF/XML"], ["trig", "TriG"], ["nq", "N-Quads"]],
};

const page = readData("workbench-data");
const form = /** @type {HTMLFormElement} */ (document.getElementById("sparql-form"));
const holder = /** @type {HTMLElement} */ (document.getElementById("workbench"));
if (page && form && holder) start();

function start() {
  const given = new URLSearchParams(location.search);
  /** The snapshot that queries are pinned to; null: the newest. @type {string | null} */
  let pinned = given.get("snapshot");
  const { Yasqe, Yasr } = Yasgui;
  registerCompletion(Yasqe, page.prefixes);
  Yasqe.defaults.requestConfig.endpoint = ENDPOINT;
  Yasqe.defaults.prefixCcApi = null;
  Yasqe.defaults.editorHeight = "14rem";
  Yasr.defaults.pluginOrder = ["table", "chart", "timeline", "graph", "map", "boolean", "response"];
  Yasgui.defaults.endpointCatalogueOptions.getData = () => [];
  Yasgui.defaults.corsProxy = undefined;

  const current = () => yasgui.getTab();
  const snapshotOf = (tab) => readResults(tab.getYasr())?.snapshot ?? null;
  const why = buildEvidence({ prefixes: page.prefixes, query: () => current().ranQuery ?? current().getQuery(), snapshot: () => snapshotOf(current()) });
  registerPlugins(Yasr, { ...page, why });
  Yasgui.Tab.prototype.getShareableLink = function () {
    return new URL(`/sparql?${parametersOf(this)}`, location.href).href;
  };

  const parametersOf = (tab, more = {}) => {
    const view = tab.getYasr()?.getSelectedPluginName();
    return new URLSearchParams({
      query: tab.getQuery(), ...(view && view !== "table" ? { view } : {}), ...(pinned ? { snapshot: pinned } : {}), ...more,
    });
  };

  /** What is stored with a tab of an earlier visit must not decide where a query goes. */
  const requestConfig = () => ({
    endpoint: ENDPOINT, method: "POST", headers: {}, namedGraphs: [], defaultGraphs: [], acceptHeaderGraph: "application/n-triples",
    acceptHeaderSelect: "application/sparql-results+json", args: pinned ? [{ name: "snapshot", value: pinned }] : [],
  });
  form.hidden = true;
  const yasgui = new Yasgui(holder, /** @type {any} */ ({
    persistenceId: "quadcite", populateFromUrl: false, autofocus: false, copyEndpointOnNewTab: false, autoAddOnInit: true,
    requestConfig: requestConfig(),
    yasqe: { value: page.example, syntaxErrorCheck: false, resizeable: true },
    yasr: { defaultPlugin: "table", maxPersistentResponseSize: 0, prefixes: page.prefixes },
  }));
  document.documentElement.classList.add("has-workbench");
  for (const id of yasgui.persistentConfig.getTabs()) prepare(yasgui.getTab(id));

  // Each tab is drawn when it is first shown.
  function prepare(tab) {
    if (!tab) return;
    tab.setEndpoint(ENDPOINT);
    tab.setRequestConfig(requestConfig());
    const yasqe = tab.getYasqe();
    if (!yasqe || tab.prepared) return;
    tab.prepared = true;
    describeParts(tab.rootEl, yasqe);
    watchQuery(yasqe);
    yasqe.on("query", () => { tab.ranQuery = yasqe.getValue(); });
    tab.getYasr().on("drawn", () => {
      showOutcome(tab);
      for (const field of tab.getYasr().resultsEl.querySelectorAll("textarea")) field.setAttribute("aria-label", "Response");
      queueMicrotask(() => disableViews(tab.getYasr())); // Yasr marks them right after this event
    });
  }

  yasgui.on("tabAdd", (_, id) => queueMicrotask(() => { prepare(yasgui.getTab(id)); nameTabs(); }));
  yasgui.on("tabSelect", (_, id) => { prepare(yasgui.getTab(id)); showOutcome(yasgui.getTab(id)); nameTabs(); });
  yasgui.on("tabClose", () => nameTabs());
  yasgui.on("query", (_, tab) => {
    document.getElementById("server-result")?.remove();
    setTimeout(() => showOutcome(tab)); // Yasqe notes the request after this event
  });
  yasgui.on("queryResponse", (_, tab) => setTimeout(() => showOutcome(tab))); // the request is over after this event
  yasgui.on("queryAbort", (_, tab) => setTimeout(() => showOutcome(tab)));

  // What is above and below the editor.
  const status = element("p", { class: "outcome", role: "status" });
  const pin = element("input", { type: "checkbox", onchange: () => {
    pinned = pin.checked ? String(snapshotOf(current()) ?? page.snapshot) : null;
    for (const id of yasgui.persistentConfig.getTabs()) yasgui.getTab(id)?.setRequestConfig(requestConfig());
    showPinned();
  } });
  const pinLabel = element("span", {});
  const downloads = element("details", { class: "menu away" }, element("summary", {}, "Download"), element("ul", {}));
  const share = element("button", { type: "button", onclick: copyLink }, "Copy link");
  const saved = buildSaved({
    current: () => ({ name: current().getName(), query: current().getQuery() }),
    open: (name, query) => open(name, query),
  });
  const savedMenu = element("details", { class: "menu", ontoggle: () => saved.suggest() }, element("summary", {}, "Saved queries"), saved.element);
  holder.before(element("div", { class: "workbench-tools" },
    element("button", { type: "button", class: "primary", onclick: () => toggleRun() }, "Run"),
    savedMenu, share,
    element("label", { class: "pin" }, pin, " ", pinLabel),
    downloads, // last, and its place kept while there is no result: nothing moves when one arrives
    element("span", { class: "note keys" }, "Ctrl+Enter runs, Ctrl+Space completes")));

  const running = /** @type {HTMLDetailsElement} */ (document.getElementById("running-queries"));
  if (running) {
    running.classList.remove("away"); // its place is kept while the page loads
    watchQueries(running, running.querySelector("div"));
  }
  const examples = /** @type {HTMLDetailsElement | null} */ (document.getElementById("examples"));
  const beside = matchMedia("(min-width: 75rem)"); // as in the style sheet
  if (examples) examples.open = beside.matches;
  for (const link of document.querySelectorAll("a[data-query]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      open(link.textContent?.trim().slice(0, 40) ?? "Example", /** @type {HTMLElement} */ (link).dataset.query ?? "");
      if (examples && !beside.matches) examples.open = false; // it is above the editor
      holder.scrollIntoView({ block: "start" });
    });
  }

  const query = given.get("query");
  if (query) {
    const view = given.get("view");
    const same = yasgui.persistentConfig.getTabs().find((id) => yasgui.persistentConfig.getTab(id)?.yasqe.value === query);
    if (same) yasgui.selectTabId(same);
    else open("From a link", query);
    prepare(current());
    if (view) current().getYasr().selectPlugin(view);
    document.getElementById("server-result")?.remove();
    if (given.get("run") !== "check") current().query().catch(() => {});
  }
  prepare(current());
  showPinned();
  showOutcome(current());
  nameTabs();

  function open(name, text) {
    const tab = yasgui.addTab(true, { name: yasgui.createTabName(name), yasqe: { value: text } });
    prepare(tab);
    showOutcome(tab);
    nameTabs();
    return tab;
  }

  function toggleRun() {
    const yasqe = current().getYasqe();
    if (yasqe.req) yasqe.abortQuery();
    else current().query().catch(() => {});
  }

  function showPinned() {
    pin.checked = pinned !== null;
    pinLabel.textContent = pinned === null ? "Keep this snapshot" : `Snapshot ${pinned} is kept`;
  }

  function showOutcome(tab) {
    if (tab !== current()) return;
    tab.getYasr()?.rootEl.before(status); // between the editor and the result
    const button = document.querySelector(".workbench-tools .primary");
    if (button) button.textContent = tab.getYasqe()?.req ? "Stop" : "Run";
    const results = readResults(tab.getYasr());
    showDownloads(tab, results);
    if (tab.getYasqe()?.req) {
      status.textContent = "Running…";
      return;
    }
    if (!results) {
      status.textContent = tab.getYasr()?.results?.hasError() ? "" : "Not run yet.";
      return;
    }
    const rows = results.rows.length.toLocaleString();
    const kind = results.form === "GRAPH" ? "statements" : "rows";
    const seconds = (tab.getYasr().results.getResponseTime() / 1000).toFixed(2);
    const limit = results.limit ?? results.rows.length;
    const count = results.form === "ASK" ? "" : `${rows} ${kind}.`;
    const cut = results.cut || (results.rows.length > 0 && results.rows.length === results.limit && !tab.getYasr().results.res.headers.has("Quadcite-Truncated"));
    status.replaceChildren(
      ...(cut ? [element("strong", {}, `Cut at ${rows} ${kind}${results.rows.length === limit ? ", the limit of this server" : ""}: more exist. `)] : [`${count} `]),
      element("span", { class: "note" }, `${seconds} s, snapshot ${results.snapshot ?? "unknown"}`));
  }

  function showDownloads(tab, results) {
    const formats = results ? (results.form === "GRAPH" ? DOWNLOADS.GRAPH : DOWNLOADS.SELECT) : [];
    downloads.classList.toggle("away", !formats.length);
    downloads.querySelector("ul").replaceChildren(...formats.map(([format, name]) =>
      element("li", {}, element("a", { href: "#", onclick: (event) => download(event, tab, format) }, name))));
  }

  async function download(event, tab, format) {
    event.preventDefault();
    downloads.open = false;
    const parameters = parametersOf(tab, { format });
    parameters.delete("view");
    const link = element("a", { download: `result.${format}` });
    if (String(parameters).length < LONGEST_LINK) link.href = `/sparql?${parameters}`;
    else {
      const answer = await fetch("/sparql", { method: "POST", body: parameters });
      if (!answer.ok) {
        status.textContent = (await answer.json().catch(() => ({}))).detail ?? "The download failed.";
        return;
      }
      link.href = URL.createObjectURL(await answer.blob());
    }
    link.click();
  }

  async function copyLink() {
    const address = current().getShareableLink();
    history.replaceState(null, "", address);
    try {
      await navigator.clipboard.writeText(address);
      share.textContent = "Copied";
    } catch {
      share.textContent = "In the address bar";
    }
    setTimeout(() => { share.textContent = "Copy link"; }, 2_000);
  }

  /** Yasgui's close buttons are no buttons; its field to rename a tab has no name. */
  function nameTabs() {
    for (const input of holder.querySelectorAll(".tab input")) input.setAttribute("aria-label", "Name of the tab");
    const tabs = holder.querySelector(".tabsList"); // scrolls where it is narrow
    const chosen = /** @type {HTMLElement | null} */ (tabs?.querySelector(".tab.active"));
    if (tabs && chosen) tabs.scrollLeft = chosen.offsetLeft - tabs.offsetLeft;
    const add = holder.querySelector(".addTab");
    if (add) {
      add.setAttribute("aria-label", "New query");
      add.setAttribute("role", "tab"); // a tab list has nothing but tabs
      add.setAttribute("aria-selected", "false");
    }
  }
}

/** Give names to the parts of a tab that have none. */
function describeParts(root, yasqe) {
  yasqe.getInputField().setAttribute("aria-label", "SPARQL query");
  yasqe.getScrollerElement().setAttribute("tabindex", "-1");
  root.querySelector(".controlbar")?.remove(); // endpoint and request settings: there is one endpoint
  root.querySelector(".yasr_external_ref_btn")?.remove();
  root.querySelector(".yasr_downloadIcon")?.remove();
  root.querySelector(".yasqe_buttons")?.remove();
}

/** Make the buttons of views that cannot show the result what they look like: disabled. */
function disableViews(yasr) {
  for (const button of yasr.headerEl.querySelectorAll(".yasr_btnGroup button")) button.disabled = button.classList.contains("disabled");
}

/** Indent JSON for reading; anything else, and what would take long, stays as it is. */
function indentJson(text) {
  if (text.length > LONGEST_INDENTED) return text;
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text; // N-Triples
  }
}

function registerPlugins(Yasr, context) {
  const { chart, timeline, graph, map } = buildViews(context);
  const Raw = class extends Yasr.plugins.response {
    label = "JSON";
    getIcon = () => null;
    helpReference = "/docs/explorer#results";
    draw(config) {
      const results = this.yasr.results;
      if (results && !results.indented) {
        const text = indentJson(results.getOriginalResponseAsString());
        results.indented = true;
        results.getOriginalResponseAsString = () => text;
      }
      super.draw(config);
    }
  };
  Yasr.registerPlugin("table", buildTable(context));
  Yasr.registerPlugin("chart", chart);
  Yasr.registerPlugin("timeline", timeline);
  Yasr.registerPlugin("graph", graph);
  Yasr.registerPlugin("map", map);
  Yasr.registerPlugin("response", Raw);
  Yasr.registerPlugin("error", buildErrors());
  Yasr.registerPlugin("boolean", buildAnswer(readResults));
  // Yasr parses a whole result only to count its rows in a label that is not shown.
  Yasr.prototype.updateResponseInfo = () => {};
}
