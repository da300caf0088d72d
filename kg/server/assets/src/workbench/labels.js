// Labels of IRIs, asked for in batches and kept for as long as the page is open.
import { shortName, toCurie } from "../dom.js";

const MOST = 500;
/** @type {Map<string, string>} */
const known = new Map();

/** Load the labels of those of `iris` that are not known yet. @param {Iterable<string>} iris */
export async function loadLabels(iris) {
  const missing = [...new Set(iris)].filter((iri) => !known.has(iri));
  for (let start = 0; start < missing.length; start += MOST) {
    const asked = missing.slice(start, start + MOST);
    const answer = await fetch("/sparql/labels", {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ iris: asked }),
    });
    if (!answer.ok) return; // the IRIs themselves are shown
    const { labels } = await answer.json();
    for (const iri of asked) known.set(iri, labels[iri] ?? "");
  }
}

/** The label of an IRI, else its prefixed name, else its last part. @param {string} iri */
export function labelOf(iri, prefixes) {
  return known.get(iri) || toCurie(iri, prefixes) || shortName(iri);
}
