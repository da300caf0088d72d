// Completion in the editor: classes, properties and individuals of this store, and the variables of the query.
//
// Yasqe's own completers of classes, properties and prefixes ask public services. They are removed.
import { element } from "../dom.js";

const CLASS_PROPERTIES = ["a", "rdf:type", "rdfs:domain", "rdfs:range", "rdfs:subClassOf", "sh:targetClass"];

/** Which kind of term fits at the cursor; null where none does. */
function findKind(yasqe) {
  const token = yasqe.getCompleteToken();
  if (!token.string.trim() || /^[?$"'#{}().,;\d]/.test(token.string) || token.type === "comment") return null;
  const cursor = yasqe.getDoc().getCursor();
  const before = yasqe.getPreviousNonWsToken(cursor.line, token);
  if (CLASS_PROPERTIES.includes(before.string)) return "class";
  if ((token.state.possibleCurrent ?? []).includes("a")) return "property";
  if (token.type === "keyword" && !token.string.includes(":")) return null;
  return "individual";
}

/** Replace Yasqe's completers. @param {any} Yasqe @param {Record<string, string>} prefixes known without a declaration */
export function registerCompletion(Yasqe, prefixes) {
  for (const name of ["class", "property", "prefixes"]) delete Yasqe.Autocompleters[name];
  Yasqe.defaults.autocompleters.length = 0; // Yasqe merges lists by their positions
  Yasqe.defaults.autocompleters.push("variables");
  /** @type {Map<string, any>} */
  let found = new Map();
  Yasqe.registerAutocompleter({
    name: "terms",
    bulk: false,
    autoShow: false,
    isValidCompletionPosition: (yasqe) => findKind(yasqe) !== null,
    preProcessToken(yasqe, token) {
      return { ...token, autocompletionString: token.string.trim().replace(/^<|>$/g, "") };
    },
    async get(yasqe, token) {
      const kind = findKind(yasqe);
      const text = token?.autocompletionString ?? "";
      if (!kind || !text) return [];
      const declared = yasqe.getPrefixesFromQuery();
      const parameters = new URLSearchParams({ text: expand(text, declared, prefixes), kind });
      const answer = await fetch(`/sparql/terms?${parameters}`, { headers: { Accept: "application/json" } });
      if (!answer.ok) return [];
      const { terms } = await answer.json();
      found = new Map(terms.map((term) => [write(term, declared, prefixes), term]));
      return [...found.keys()];
    },
    postprocessHints(yasqe, hints) {
      return hints.map((hint) => ({ ...hint, render: (holder) => render(holder, hint.text, found.get(hint.text)) }));
    },
  });
}

/** A name that was typed with a prefix of the query, with the server's own prefix where that differs. */
function expand(text, declared, prefixes) {
  const [prefix, ...rest] = text.split(":");
  const start = declared[prefix];
  if (!rest.length || !start || prefixes[prefix] === start) return text;
  const own = Object.keys(prefixes).find((name) => prefixes[name] === start);
  return own ? `${own}:${rest.join(":")}` : start + rest.join(":");
}

/** A term as the query can name it. */
function write(term, declared, prefixes) {
  const [prefix] = term.curie ? term.curie.split(":") : [null];
  if (!prefix) return `<${term.iri}>`;
  return declared[prefix] && declared[prefix] !== prefixes[prefix] ? `<${term.iri}>` : term.curie;
}

function render(holder, text, term) {
  holder.append(element("span", { class: "hint-name" }, text));
  if (!term) return;
  const uses = term.uses === null || term.uses === undefined ? "" : ` · ${term.uses.toLocaleString()}`;
  holder.append(element("span", { class: "hint-about" }, `${term.label}${uses}`));
}
