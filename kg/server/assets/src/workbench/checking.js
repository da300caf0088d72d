// Errors and hints of /sparql/check at their lines, with buttons that repair the query.
import { element } from "../dom.js";

const PAUSE_MS = 500;

/** Check the query of an editor whenever it has not changed for a moment. @param {any} yasqe */
export function watchQuery(yasqe) {
  const list = element("ul", { class: "hints", "aria-label": "Errors and hints" });
  yasqe.rootEl.append(list);
  let timer = 0;
  let asked = 0;
  /** @type {any[]} */
  let marks = [];

  const clear = () => {
    for (const mark of marks) mark.clear();
    marks = [];
    yasqe.clearGutter("gutterErrorBar");
  };

  const check = async () => {
    const query = yasqe.getValue();
    const number = ++asked;
    if (!query.trim() || yasqe.getQueryMode() === "update") {
      clear();
      list.replaceChildren();
      return;
    }
    const answer = await fetch("/sparql/check", {
      method: "POST", headers: { "Content-Type": "application/sparql-query", Accept: "application/json" }, body: query,
    }).catch(() => null);
    if (number !== asked || !answer) return;
    const report = await answer.json().catch(() => ({}));
    clear();
    const hints = answer.ok ? report.hints : [{ code: report.code, message: report.detail, line: null, suggestions: [] }];
    list.replaceChildren(...hints.map((hint) => show(hint)));
  };

  const show = (hint) => {
    const wrong = hint.code === "syntax" || hint.code === "undeclared_prefix" || hint.line === null;
    const place = hint.line === null ? null : { line: hint.line - 1, ch: hint.column - 1 };
    const repairs = hint.suggestions.slice(0, 4);
    const message = hint.message.replace(/^line \d+, column \d+: /, "").replace(repairs.length ? / Did you mean [^?]*\?$/ : /$^/, "");
    if (place) {
      const end = { line: place.line, ch: place.ch + Math.max(1, (hint.found ?? "").split("\n")[0].length) };
      marks.push(yasqe.getDoc().markText(place, end, { className: wrong ? "mark-error" : "mark-hint", attributes: { title: message } }));
      yasqe.setGutterMarker(place.line, "gutterErrorBar",
        element("span", { class: wrong ? "gutter-error" : "gutter-hint", title: message, "aria-label": message, role: "img" }, wrong ? "✕" : "!"));
    }
    return element("li", { class: wrong ? "error" : "hint" },
      place && element("button", { type: "button", class: "quiet", onclick: () => go(place) }, `Line ${hint.line}`), " ",
      element("span", {}, message), repairs.length > 0 && element("span", { class: "note" }, "Use"),
      ...repairs.map((suggestion) =>
        element("button", { type: "button", class: "repair", onclick: () => repair(hint, suggestion) }, suggestion)));
  };

  const go = (place) => {
    yasqe.getDoc().setCursor(place);
    yasqe.focus();
  };

  /** Put `suggestion` in the place of what was found, in every place where the query has it as a word of its own. */
  const repair = (hint, suggestion) => {
    const start = { line: hint.line - 1, ch: hint.column - 1 };
    const end = { line: start.line, ch: start.ch + hint.found.length };
    if (yasqe.getDoc().getRange(start, end) === hint.found) yasqe.getDoc().replaceRange(suggestion, start, end);
    clearTimeout(timer);
    check();
    yasqe.focus();
  };

  yasqe.on("changes", () => {
    clearTimeout(timer);
    timer = setTimeout(check, PAUSE_MS);
  });
  check();
}
