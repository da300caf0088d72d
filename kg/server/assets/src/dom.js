// Elements without markup in strings: text never becomes HTML.

/**
 * @param {string} tag
 * @param {Record<string, any>} [attributes] functions become listeners, `false` and `null` are left out
 * @param {...(Node | string | number | null | undefined | false)} children
 * @returns {any}
 */
export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === false || value === null || value === undefined) continue;
    if (typeof value === "function") made.addEventListener(name.replace(/^on/, ""), value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children) {
    if (child !== null && child !== undefined && child !== false) made.append(child instanceof Node ? child : String(child));
  }
  return made;
}

/** The content of a JSON script block of the page. */
export function readData(id) {
  const block = document.getElementById(id);
  return block ? JSON.parse(block.textContent || "null") : null;
}

/** The page of an IRI on this server. */
export const pageOf = (iri) => `/resolve?iri=${encodeURIComponent(iri)}`;

/** The last part of an IRI. */
export function shortName(iri) {
  const end = iri.replace(/[/#]+$/, "");
  const local = end.slice(Math.max(end.lastIndexOf("/"), end.lastIndexOf("#")) + 1);
  try {
    return decodeURIComponent(local) || iri;
  } catch {
    return local || iri;
  }
}

/** Write an IRI with one of `prefixes` if the rest is a plain local name. */
export function toCurie(iri, prefixes) {
  let best = null;
  for (const [name, start] of Object.entries(prefixes)) {
    if (iri.startsWith(start) && (!best || start.length > best[1].length)) best = [name, start];
  }
  const local = best ? iri.slice(best[1].length) : "";
  return best && /^[A-Za-z_0-9][\w-]*$/.test(local) ? `${best[0]}:${local}` : null;
}

export const isDark = () => matchMedia("(prefers-color-scheme: dark)").matches;

/** The value of a custom property of the page's style. */
export const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
