// Queries that this browser keeps, by name.
import { element } from "../dom.js";

const KEY = "quadcite.queries";

function load() {
  try {
    const kept = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(kept) ? kept.filter((each) => typeof each?.name === "string" && typeof each?.query === "string") : [];
  } catch {
    return []; // storage is off, or another program wrote there
  }
}

function store(queries) {
  try {
    localStorage.setItem(KEY, JSON.stringify(queries));
    return true;
  } catch {
    return false;
  }
}

/** Build the list of saved queries. @param {{current: () => {name: string, query: string}, open: (name: string, query: string) => void}} page */
export function buildSaved(page) {
  const list = element("ul", { class: "list" });
  const name = element("input", { type: "text", "aria-label": "Name of the query", placeholder: "Name of the query", maxlength: "120", required: true });
  const note = element("span", { class: "note", role: "status" });
  const redraw = () => {
    const kept = load();
    list.replaceChildren(...kept.map((each) => element("li", {},
      element("button", { type: "button", class: "quiet", onclick: () => page.open(each.name, each.query) }, each.name), " ",
      element("a", { href: `/sparql?${new URLSearchParams({ query: each.query })}` }, "link"), " ",
      element("button", { type: "button", class: "quiet", "aria-label": `Delete ${each.name}`, onclick: () => { store(load().filter((other) => other.name !== each.name)); redraw(); } }, "delete"))));
    if (!kept.length) list.replaceChildren(element("li", { class: "note" }, "No query is saved in this browser."));
  };
  const form = element("form", { class: "result-tools", onsubmit: (event) => {
    event.preventDefault();
    const { query } = page.current();
    const kept = load().filter((each) => each.name !== name.value);
    note.textContent = store([{ name: name.value, query }, ...kept]) ? "Saved." : "This browser does not store queries.";
    redraw();
  } }, name, element("button", {}, "Save"), note);
  redraw();
  return { element: element("div", {}, form, list), suggest: () => { name.value ||= page.current().name; } };
}
