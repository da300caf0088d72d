// Errors of the server, as it explains them: problem details (RFC 9457).
import { element } from "../dom.js";

/** Build the Yasr plugin of errors. */
export function buildErrors() {
  return class Errors {
    priority = 20;
    hideFromSelection = true;

    constructor(yasr) {
      this.yasr = yasr;
    }

    canHandleResults() {
      return Boolean(this.yasr.results?.getError());
    }

    draw() {
      const text = this.yasr.results.getError()?.text ?? "";
      let problem = null;
      try {
        problem = JSON.parse(text);
      } catch {
        // not from this server's handlers
      }
      const stopped = /abort/i.test(text);
      const message = stopped ? "The query was stopped." : (problem?.detail ?? (/fetch/i.test(text) ? "The server does not answer." : text));
      this.yasr.resultsEl.append(element("p", { class: stopped ? "note" : "warn pre", role: "alert" },
        message, problem?.code && element("span", { class: "note" }, ` (${problem.code})`)));
    }

    getIcon() {
      return null;
    }
  };
}
