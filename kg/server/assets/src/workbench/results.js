// Results of a query as this server sends them, read from the response itself: Yasr's own parser replaces "{{x}}" in
// literals and drops what SPARQL JSON says about a cut.
import { Parser } from "n3";

/**
 * @typedef {{type: "uri" | "literal" | "bnode" | "triple", value: any, "xml:lang"?: string, datatype?: string}} Term
 * @typedef {{form: "SELECT" | "ASK" | "GRAPH", vars: string[], rows: Record<string, Term>[], boolean?: boolean,
 *   cut: boolean, limit: number | null, snapshot: number | null}} Results
 */


const read = new WeakMap();

/** The response behind what Yasr has, or null for an error. @returns {Results | null} */
export function readResults(yasr) {
  const response = yasr.results?.res;
  if (!response?.ok) return null;
  if (!read.has(response)) read.set(response, parse(response));
  return read.get(response);
}

/** @returns {Results} */
function parse(response) {
  const header = (name) => response.headers.get(name);
  const number = (name) => (header(name) === null ? null : Number(header(name)));
  const base = { cut: header("Quadcite-Truncated") === "true", limit: number("Quadcite-Row-Limit"), snapshot: number("Quadcite-Snapshot") };
  if ((header("Content-Type") ?? "").includes("json")) {
    const document = JSON.parse(response.content);
    if (typeof document.boolean === "boolean") return { ...base, form: "ASK", vars: [], rows: [], boolean: document.boolean };
    const cut = base.cut || document.meta?.truncated === true || (document.head.link ?? []).some((link) => link.endsWith("/truncated"));
    return { ...base, form: "SELECT", vars: document.head.vars, rows: document.results.bindings, cut };
  }
  const rows = new Parser({ format: "N-Triples" }).parse(response.content).map((quad) => ({
    subject: toTerm(quad.subject), predicate: toTerm(quad.predicate), object: toTerm(quad.object),
  }));
  return { ...base, form: "GRAPH", vars: ["subject", "predicate", "object"], rows };
}

/** @returns {Term} */
function toTerm(term) {
  if (term.termType === "NamedNode") return { type: "uri", value: term.value };
  if (term.termType === "BlankNode") return { type: "bnode", value: term.value };
  if (term.termType === "Quad") {
    return { type: "triple", value: { subject: toTerm(term.subject), predicate: toTerm(term.predicate), object: toTerm(term.object) } };
  }
  const datatype = term.datatype?.value;
  return { type: "literal", value: term.value, ...(term.language ? { "xml:lang": term.language } : { datatype }) };
}

/** A term as text. @param {Term | undefined} term @returns {string} */
export function textOf(term) {
  if (!term) return "";
  if (term.type !== "triple") return String(term.value);
  return `<< ${["subject", "predicate", "object"].map((part) => textOf(term.value[part])).join(" ")} >>`;
}

/** A term in the syntax of SPARQL; null for what a query cannot name. @param {Term | undefined} term */
export function toSparql(term) {
  if (!term || term.type === "bnode" || term.type === "triple") return null;
  if (term.type === "uri") return `<${term.value}>`;
  const text = JSON.stringify(String(term.value)).replace(/\u2028|\u2029/g, (found) => `\\u${found.charCodeAt(0).toString(16)}`);
  if (term["xml:lang"]) return `${text}@${term["xml:lang"]}`;
  return term.datatype && !term.datatype.endsWith("#string") ? `${text}^^<${term.datatype}>` : text;
}

const NUMBERS = /#(integer|decimal|double|float|int|long|short|byte|nonNegativeInteger|positiveInteger|unsigned\w+)$/;
const DATES = /#(date|dateTime|dateTimeStamp|gYear|gYearMonth)$/;

/** The number of a numeric literal, else null. @param {Term | undefined} term */
export function numberOf(term) {
  if (term?.type !== "literal" || !NUMBERS.test(term.datatype ?? "")) return null;
  const value = Number(term.value);
  return Number.isFinite(value) ? value : null;
}

/** The date of a literal of a type of dates, or of a text such as "2019-05-04"; else null. @param {Term | undefined} term */
export function dateOf(term) {
  if (term?.type !== "literal") return null;
  const text = String(term.value);
  const dated = DATES.test(term.datatype ?? "") || /^\d{4}-\d{2}(-\d{2})?$/.test(text);
  const found = dated ? /^(-?\d{4,6})(?:-(\d{2}))?(?:-(\d{2}))?/.exec(text) : null;
  if (!found) return null;
  const date = new Date(Date.UTC(2000, Number(found[2] ?? 1) - 1, Number(found[3] ?? 1)));
  date.setUTCFullYear(Number(found[1]));
  return date;
}

/** Rows by which columns are described: to look at 100,000 of them takes longer than to draw a page. */
const SAMPLE = 5_000;
const described = new WeakMap();

/**
 * The columns of results by what their values are: a column is of numbers if all that its first rows have are. Whole
 * numbers from 1000 to 2199 may be years, which are no amounts if the result has another number.
 */
export function describeColumns(results) {
  if (described.has(results)) return described.get(results);
  const rows = results.rows.slice(0, SAMPLE);
  const columns = results.vars.map((name) => {
    const terms = rows.map((row) => row[name]).filter(Boolean);
    const all = (read) => terms.length > 0 && terms.every((term) => read(term) !== null);
    const kind = all(numberOf) ? "number" : all(dateOf) ? "date" : terms.some((term) => term.type === "uri") ? "iri" : "text";
    const isYear = kind === "number" && terms.every((term) => Number.isInteger(numberOf(term)) && numberOf(term) > 999 && numberOf(term) < 2200);
    return { name, kind, isYear, distinct: new Set(terms.map(textOf)).size };
  });
  described.set(results, columns);
  return columns;
}
