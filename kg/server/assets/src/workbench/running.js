// Running and waiting queries of the server, with a button that cancels each.
import { element } from "../dom.js";

const PAUSE_MS = 1_500;

/** Fill `holder` with the queries for as long as `details`, which it is in, is open. */
export function watchQueries(details, holder) {
  let timer = 0;
  const show = async () => {
    clearTimeout(timer);
    if (!details.open || document.hidden) return;
    const answer = await fetch("/sparql/queries", { headers: { Accept: "application/json" } }).catch(() => null);
    const queries = answer?.ok ? (await answer.json()).queries : null;
    if (queries === null) holder.replaceChildren("The server does not answer.");
    else if (!queries.length) holder.replaceChildren(element("p", { class: "note" }, "No query is running or waiting."));
    else {
      holder.replaceChildren(element("table", {},
        element("thead", {}, element("tr", {}, ...["Query", "State", "Seconds", ""].map((name) => element("th", { scope: "col", class: name === "Seconds" && "number" }, name)))),
        element("tbody", {}, ...queries.map((query) => element("tr", {},
          element("td", {}, element("code", { title: `SHA-256 of the text: ${query.sha256}` }, query.sha256.slice(0, 8))),
          element("td", { title: `Slot: ${query.lane}` }, query.state),
          element("td", { class: "number" }, query.age_s.toFixed(1)),
          element("td", {}, element("button", { type: "button", "aria-label": `Cancel query ${query.id}`, onclick: () => cancel(query.id) }, "Cancel")))))));
    }
    timer = setTimeout(show, PAUSE_MS);
  };
  const cancel = async (id) => {
    await fetch(`/sparql/queries/${id}`, { method: "DELETE" }).catch(() => null);
    show();
  };
  details.addEventListener("toggle", show);
  document.addEventListener("visibilitychange", show);
}
