// The table of a result: pages of rows, IRIs linked to their pages and shown by their labels, "why" for a row.
import { element, pageOf } from "../dom.js";
import { labelOf, loadLabels } from "./labels.js";
import { numberOf, readResults, textOf } from "./results.js";

const ROWS = 100;
const CHARACTERS = 600;
const LABEL_CHARACTERS = 120;

/** Build the Yasr plugin of the table. @param {{prefixes: Record<string, string>, why: Function}} page */
export function buildTable(page) {
  return class Table {
    priority = 10;
    label = "Table";
    helpReference = "/docs/explorer#results";

    constructor(yasr) {
      this.yasr = yasr;
    }

    canHandleResults() {
      const results = readResults(this.yasr);
      return results !== null && results.form !== "ASK";
    }

    async draw() {
      const results = readResults(this.yasr);
      const holder = element("div", { class: "result-table" });
      this.yasr.resultsEl.append(holder);
      this.filter = "";
      await this.showPage(holder, results, 0);
    }

    async showPage(holder, results, start) {
      const wanted = this.filter.toLowerCase();
      const numbered = results.rows.map((row, number) => ({ row, number }));
      const rows = wanted
        ? numbered.filter(({ row }) => results.vars.some((name) => shown(row[name], page.prefixes).toLowerCase().includes(wanted)))
        : numbered;
      const here = rows.slice(start, start + ROWS);
      await loadLabels(here.flatMap(({ row }) => Object.values(row)).filter((term) => term.type === "uri").map((term) => term.value));
      const numeric = new Set(results.vars.filter((name) => here.some(({ row }) => row[name]) && here.every(({ row }) => !row[name] || numberOf(row[name]) !== null)));
      const move = (to) => () => this.showPage(holder, results, to);
      const find = element("input", { type: "search", "aria-label": "Filter the rows", placeholder: "Filter the rows", value: this.filter });
      find.addEventListener("change", () => {
        this.filter = find.value;
        this.showPage(holder, results, 0);
      });
      const last = Math.min(start + ROWS, rows.length);
      const position = rows.length ? `Rows ${(start + 1).toLocaleString()}–${last.toLocaleString()} of ${rows.length.toLocaleString()}` : "No rows";
      holder.replaceChildren(
        element("div", { class: "result-tools" }, find,
          element("span", { class: "note", role: "status" }, position),
          start > 0 && element("button", { type: "button", onclick: move(Math.max(0, start - ROWS)) }, "← Previous"),
          last < rows.length && element("button", { type: "button", onclick: move(last) }, "Next →")),
        element("div", { class: "wide-table", tabindex: "0", role: "region", "aria-label": "Rows of the result" },
          element("table", {},
            element("thead", {}, element("tr", {},
              ...results.vars.map((name) => element("th", { scope: "col", class: numeric.has(name) && "number" }, name)),
              results.form === "SELECT" && element("th", { scope: "col" }, element("span", { class: "hidden" }, "Evidence")))),
            element("tbody", {}, ...here.map(({ row, number }) => element("tr", {},
              ...results.vars.map((name) => element("td", { class: numeric.has(name) && "number" }, cell(row[name], page.prefixes))),
              results.form === "SELECT" && element("td", { class: "row-tools" },
                element("button", { type: "button", class: "quiet", "aria-label": `Why row ${number + 1}?`, onclick: (event) => page.why(number, row, event.target) }, "why"))))))),
      );
    }

    getIcon() {
      return null;
    }
  };
}

function shown(term, prefixes) {
  if (!term) return "";
  return term.type === "uri" ? `${labelOf(term.value, prefixes)} ${term.value}` : textOf(term);
}

/** The label of a passage is its text. */
const cutLabel = (label) => (label.length > LABEL_CHARACTERS ? `${label.slice(0, LABEL_CHARACTERS - 1)}…` : label);

function cell(term, prefixes) {
  if (!term) return "";
  if (term.type === "uri") {
    return element("a", { href: pageOf(term.value), title: term.value, dir: "auto" }, cutLabel(labelOf(term.value, prefixes)));
  }
  const text = textOf(term);
  const kind = term["xml:lang"] ? `@${term["xml:lang"]}` : "";
  const cut = text.length > CHARACTERS;
  return element("span", { dir: "auto", lang: term["xml:lang"] },
    cut ? `${text.slice(0, CHARACTERS)}…` : text,
    (kind || cut) && element("span", { class: "note" }, ` ${kind}${cut ? ` ${text.length.toLocaleString()} characters` : ""}`));
}
