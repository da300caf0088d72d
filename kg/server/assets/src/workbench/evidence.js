// Why a row is in a result: the queries that list what it counts, and the statements that it rests on.
import { element, pageOf } from "../dom.js";
import { labelOf, loadLabels } from "./labels.js";

/** Build the function that opens the evidence of a row. @param {{prefixes: Record<string, string>, query: () => string, snapshot: () => number | null}} page */
export function buildEvidence(page) {
  return async (number, row, opener) => {
    const body = element("div", {}, element("p", { class: "note" }, "Looking for the statements…"));
    const dialog = element("dialog", { class: "evidence", "aria-label": `Why row ${number + 1}?` },
      element("header", {}, element("h2", {}, `Why row ${number + 1}?`),
        element("button", { type: "button", onclick: () => dialog.close() }, "Close")),
      body);
    dialog.addEventListener("close", () => { dialog.remove(); opener.focus(); });
    document.body.append(dialog);
    dialog.showModal();
    const answer = await fetch("/sparql/why", {
      method: "POST", headers: { "Content-Type": "application/json", Accept: "application/json" },
      body: JSON.stringify({ query: page.query(), row, snapshot: page.snapshot() }),
    }).catch(() => null);
    const found = answer ? await answer.json().catch(() => null) : null;
    if (!answer?.ok || !found) {
      body.replaceChildren(element("p", { class: "warn" }, found?.detail ?? "The server does not answer."));
      return;
    }
    await loadLabels(found.statements.flatMap((one) => [one.subject, one.predicate, one.object]).filter((term) => term.type === "uri").map((term) => term.value));
    const show = (term) => term.type === "uri"
      ? element("a", { href: pageOf(term.value), title: term.value }, labelOf(term.value, page.prefixes))
      : element("span", { dir: "auto" }, term.value.length > 300 ? `${term.value.slice(0, 299)}…` : term.value);
    body.replaceChildren(
      ...(found.reason ? [element("p", { class: "note" }, found.reason)] : []),
      ...(found.statements.length ? [element("div", { class: "wide-table", tabindex: "0", role: "region", "aria-label": "Statements behind the row" }, element("table", {},
        element("thead", {}, element("tr", {}, ...["Subject", "Property", "Value", "Graph", ""].map((name) => element("th", { scope: "col" }, name)))),
        element("tbody", {}, ...found.statements.map((one) => element("tr", {},
          element("td", {}, show(one.subject)), element("td", {}, show(one.predicate)), element("td", {}, show(one.object)),
          element("td", {}, one.graph ? element("a", { class: "graph-name", href: pageOf(one.graph), title: one.graph }, one.graph_name.replace(/^graph\//, "")) : ""),
          element("td", {}, element("a", { href: one.why }, "why")))))))] : []),
      ...found.traces.map((trace) => element("section", {}, element("h3", {}, trace.of),
        trace.sparql ? element("a", { href: `/sparql?${new URLSearchParams({ query: trace.sparql })}` }, "The query that lists this evidence") : element("p", { class: "note" }, trace.reason ?? ""))),
    );
  };
}
