// Errors of the server, as it explains them: problem details (RFC 9457).
import { element } from "../dom.js";

const BROKE_OFF = "The result broke off: the query reached its limit of time or memory, or was cancelled, after its first rows were sent. "
  + "Ask for fewer rows or columns, or add a LIMIT.";

/** Explain the message of an error of fetch: of a connection that was refused, or that ended within the result. */
function explain(text) {
  if (/failed to fetch|NetworkError when/i.test(text)) return "The server does not answer.";
  return /network error|incomplete|terminated|body/i.test(text) ? BROKE_OFF : text;
}

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
      // The whole message of an error of syntax is next to the editor, at its line.
      const line = problem?.code === "query_syntax" ? /line (\d+)/.exec(problem.detail ?? "")?.[1] : null;
      const told = line ? `The query was not run, since line ${line} has an error.` : problem?.detail;
      const message = stopped ? "The query was stopped." : (told ?? explain(text));
      this.yasr.resultsEl.append(element("p", { class: stopped ? "note" : "warn pre", role: "alert" },
        message, problem?.code && element("span", { class: "note" }, ` (${problem.code})`)));
    }

    getIcon() {
      return null;
    }
  };
}

/** Build the Yasr plugin of the answer to ASK. */
export function buildAnswer(readResults) {
  return class Answer {
    priority = 15;
    label = "Answer";
    hideFromSelection = true;

    constructor(yasr) {
      this.yasr = yasr;
    }

    canHandleResults() {
      return readResults(this.yasr)?.form === "ASK";
    }

    draw() {
      this.yasr.resultsEl.append(element("p", { class: "answer" }, readResults(this.yasr)?.boolean ? "Yes" : "No"));
    }

    getIcon() {
      return null;
    }
  };
}
