// Views of a result besides the table: chart, timeline, graph and map, each drawn by a library that is loaded with it.
import { colour, element, pageOf } from "../dom.js";
import { labelOf, loadLabels } from "./labels.js";
import { SERIES } from "../series.js";
import { dateOf, describeColumns, numberOf, readResults, textOf } from "./results.js";

const MOST_BARS = 40;
const MOST_MARKS = 5_000;
const MOST_EDGES = 400;

/** Build the Yasr plugins. @param {{prefixes: Record<string, string>, countries: Record<string, string>, countryNames: Record<string, string>}} page */
export function buildViews(page) {
  const labelled = async (results) =>
    loadLabels(results.rows.slice(0, MOST_MARKS).flatMap((row) => Object.values(row)).filter((term) => term.type === "uri").map((term) => term.value));
  const nameOf = (term) => (term?.type === "uri" ? labelOf(term.value, page.prefixes) : textOf(term));

  class View {
    priority = 0;
    helpReference = "/docs/explorer#results";

    constructor(yasr) {
      this.yasr = yasr;
    }

    get results() {
      return readResults(this.yasr);
    }

    canHandleResults() {
      const results = this.results;
      return results !== null && results.rows.length > 0 && this.fits(results, describeColumns(results));
    }

    async draw() {
      const results = this.results;
      await labelled(results);
      const holder = element("div", { class: "result-view" });
      this.yasr.resultsEl.append(holder);
      await this.show(holder, results, describeColumns(results));
    }

    getIcon() {
      return null;
    }
  }

  class Chart extends View {
    label = "Chart";

    fits(results, columns) {
      return results.form === "SELECT" && columns.some((column) => column.kind === "number");
    }

    async show(holder, results, columns) {
      const { Plot, draw, formatCount } = await import("../plotting.js");
      const numbers = columns.filter((column) => column.kind === "number");
      const others = columns.filter((column) => column.kind !== "number");
      const value = numbers.find((column) => !column.isYear) ?? numbers[0];
      const years = numbers.find((column) => column.isYear && column !== value);
      const along = years ?? others[0] ?? numbers.find((column) => column !== value) ?? value;
      const series = others.filter((column) => column !== along && column.distinct <= 8).map((column) => column.name);
      const state = { y: value.name, x: along.name, by: series[0] ?? "" };
      const canvas = element("div", { class: "chart-holder" });
      const note = element("p", { class: "note", role: "status" });
      const choose = (label, key, choices) => {
        const select = element("select", { onchange: (event) => { state[key] = event.target.value; redraw(); } },
          ...choices.map((name) => element("option", { value: name, selected: state[key] === name }, name || "none")));
        return element("label", {}, `${label} `, select);
      };
      const redraw = () => {
        const x = columns.find((column) => column.name === state.x);
        const rows = results.rows.slice(0, MOST_MARKS).filter((row) => numberOf(row[state.y]) !== null);
        const marks = rows.map((row) => ({
          x: x.kind === "number" ? numberOf(row[state.x]) : x.kind === "date" ? dateOf(row[state.x]) : nameOf(row[state.x]),
          y: numberOf(row[state.y]),
          by: state.by ? nameOf(row[state.by]) : undefined,
        }));
        const fresh = element("div", { class: "chart-holder" });
        canvas.replaceChildren(fresh);
        const whole = marks.every((mark) => Number.isInteger(mark.y)) ? { tickFormat: formatCount } : {};
        const by = state.by ? "by" : undefined;
        const legend = state.by ? { color: { legend: true } } : {};
        const cut = [results.rows.length > MOST_MARKS && `The first ${MOST_MARKS.toLocaleString()} of ${results.rows.length.toLocaleString()} rows.`];
        if (x.kind === "number" || x.kind === "date") {
          marks.sort((a, b) => (a.x > b.x ? 1 : a.x < b.x ? -1 : 0));
          draw(fresh, () => ({
            ...withColours(legend), x: { label: state.x, ...(x.isYear ? { tickFormat: String } : {}) }, y: { label: state.y, grid: true, zero: true, ...whole },
            marks: [Plot.ruleY([0]), ...(marks.length > 1 ? [Plot.lineY(marks, { x: "x", y: "y", stroke: by ?? colour("--link"), z: by ?? null })] : []),
              Plot.dot(marks, { x: "x", y: "y", fill: by ?? colour("--link"), r: 2.5, tip: true })],
          }), `${state.y} by ${state.x}`);
        } else {
          const names = [...new Set(marks.map((mark) => mark.x))];
          const kept = new Set(names.slice(0, MOST_BARS));
          if (names.length > MOST_BARS) cut.push(`The first ${MOST_BARS} of ${names.length} values of ${state.x}.`);
          const bars = marks.filter((mark) => kept.has(mark.x));
          draw(fresh, (width) => ({
            ...withColours(legend), marginLeft: Math.min(width * 0.4, 30 + 6.5 * Math.max(...[...kept].map((name) => Math.min(name.length, 34)))),
            height: 66 + kept.size * 24, marginBottom: 42, marginRight: 56, x: { label: state.y, grid: true, ...whole },
            y: { label: null, domain: [...kept], tickFormat: (name) => (name.length > 34 ? `${name.slice(0, 33)}…` : name) },
            marks: [Plot.barX(bars, { x: "y", y: "x", fill: by ?? colour("--link"), fillOpacity: by ? 1 : 0.75, tip: true }), Plot.ruleX([0]),
              ...(by || bars.length > kept.size ? [] : [Plot.text(bars, { x: "y", y: "x", text: (bar) => bar.y.toLocaleString(), textAnchor: "start", dx: 5 })])],
          }), `${state.y} by ${state.x}`);
        }
        note.textContent = cut.filter(Boolean).join(" ");
      };
      holder.append(
        element("div", { class: "result-tools" },
          choose("Value", "y", numbers.map((column) => column.name)),
          choose("By", "x", columns.map((column) => column.name)),
          series.length > 0 && choose("Colour", "by", ["", ...series])),
        canvas, note);
      redraw();
    }
  }

  class Timeline extends View {
    label = "Timeline";

    fits(results, columns) {
      return results.form === "SELECT" && columns.some((column) => column.kind === "date");
    }

    async show(holder, results, columns) {
      const { Plot, draw } = await import("../plotting.js");
      const date = columns.find((column) => column.kind === "date").name;
      const rest = columns.filter((column) => column.name !== date);
      const title = rest.find((column) => column.kind === "text" || column.kind === "iri")?.name;
      const rows = results.rows.slice(0, MOST_MARKS).filter((row) => dateOf(row[date]) !== null);
      const events = rows.map((row) => ({
        date: dateOf(row[date]), title: title ? nameOf(row[title]) : "",
        about: rest.filter((column) => row[column.name]).map((column) => `${column.name}: ${nameOf(row[column.name]).slice(0, 120)}`).join("\n"),
      }));
      const canvas = element("div", { class: "chart-holder" });
      holder.append(canvas);
      if (events.length <= 60 && title) {
        events.sort((a, b) => a.date - b.date);
        draw(canvas, (width) => ({
          height: 60 + events.length * 20, marginLeft: 20, marginRight: Math.min(320, width * 0.45), x: { label: date, type: "utc", grid: true }, y: { axis: null, reverse: true },
          marks: [Plot.dot(events, { x: "date", y: (_, number) => number, fill: colour("--link"), r: 4, title: "about", tip: true }),
            Plot.text(events, { x: "date", y: (_, number) => number, text: (event) => (event.title.length > 48 ? `${event.title.slice(0, 47)}…` : event.title), textAnchor: "start", dx: 9 })],
        }), `${events.length} rows by ${date}`);
      } else {
        draw(canvas, () => ({
          x: { label: date, type: "utc" }, y: { label: "rows", grid: true },
          marks: [Plot.rectY(events, Plot.binX({ y: "count" }, { x: "date", fill: colour("--link"), tip: true })), Plot.ruleY([0])],
        }), `Number of rows by ${date}`);
      }
      if (results.rows.length > MOST_MARKS) holder.append(element("p", { class: "note" }, `The first ${MOST_MARKS.toLocaleString()} of ${results.rows.length.toLocaleString()} rows.`));
    }
  }

  class Graph extends View {
    label = "Graph";

    fits(results, columns) {
      return results.form === "GRAPH" || columns.filter((column) => column.kind === "iri").length > 1;
    }

    async show(holder, results, columns) {
      const { drawGraph } = await import("../graph.js");
      const iris = columns.filter((column) => column.kind === "iri").map((column) => column.name);
      const [from, over, to] = results.form === "GRAPH" ? results.vars : iris.length > 2 ? iris : [iris[0], null, iris[1]];
      const nodes = new Map();
      const edges = [];
      const node = (term, ofLiteral) => {
        const id = ofLiteral ? `${ofLiteral} ${textOf(term)}` : textOf(term);
        if (!nodes.has(id)) {
          const href = term.type === "uri" ? pageOf(term.value) : undefined;
          nodes.set(id, { id, label: nameOf(term), kind: { uri: "resource", literal: "value", bnode: "blank node", triple: "triple" }[term.type], href });
        }
        return id;
      };
      for (const row of results.rows) {
        if (edges.length >= MOST_EDGES) break;
        if (!row[from] || !row[to]) continue;
        const source = node(row[from]);
        const target = node(row[to], row[to].type === "uri" ? null : source);
        edges.push({ source, target, label: over && row[over] ? nameOf(row[over]) : "", href: over && row[over]?.type === "uri" ? pageOf(row[over].value) : undefined });
      }
      const canvas = element("div", { class: "graph" });
      holder.append(canvas);
      if (edges.length < results.rows.length) holder.append(element("p", { class: "note" }, `${edges.length.toLocaleString()} of ${results.rows.length.toLocaleString()} statements are drawn. The table has all.`));
      drawGraph(canvas, { nodes: [...nodes.values()], edges });
    }
  }

  class CountryMap extends View {
    label = "Map";

    fits(results) {
      return results.form === "SELECT" && this.findCountries(results) !== null;
    }

    /** The column in which most values are countries: their IRIs or codes. */
    findCountries(results) {
      const rows = results.rows.slice(0, MOST_MARKS);
      const found = results.vars.map((name) => ({ name, count: rows.filter((row) => codeOf(row[name])).length }));
      const best = found.sort((a, b) => b.count - a.count)[0];
      return best && best.count * 2 >= rows.length && best.count > 0 ? best.name : null;
    }

    async show(holder, results, columns) {
      const [{ Plot, draw }, { feature }, answer] = await Promise.all([
        import("../plotting.js"), import("topojson-client"), fetch(new URL("./countries.json", import.meta.url)),
      ]);
      const atlas = await answer.json();
      const place = this.findCountries(results);
      const measure = columns.find((column) => column.kind === "number")?.name;
      const values = new Map();
      let elsewhere = 0;
      const drawable = new Set(atlas.objects.countries.geometries.map((shape) => shape.id));
      for (const row of results.rows) {
        const code = codeOf(row[place]);
        const id = code ? page.countries[code] : undefined;
        if (!id || !drawable.has(id)) elsewhere += 1;
        else values.set(id, (values.get(id) ?? 0) + (measure ? (numberOf(row[measure]) ?? 0) : 1));
      }
      const countries = feature(atlas, atlas.objects.countries);
      const label = measure ?? "rows";
      const canvas = element("div", { class: "chart-holder" });
      holder.append(canvas, element("p", { class: "note" },
        `${label} by ${place}: ${values.size} countries.` + (elsewhere ? ` ${elsewhere.toLocaleString()} rows are of no country that a map of this scale shows.` : "")));
      const known = countries.features.filter((country) => values.has(country.id));
      draw(canvas, (width) => ({
        projection: { type: "equal-earth", domain: { type: "Sphere" } }, height: width * 0.5,
        color: { type: values.size > 1 ? "sqrt" : "linear", domain: [0, Math.max(...values.values(), 1)], range: [colour("--low"), colour("--link")], interpolate: "rgb", label, legend: true },
        marks: [Plot.geo(countries, { fill: colour("--card"), stroke: colour("--strong-line"), strokeWidth: 0.5 }),
          Plot.geo(known, { fill: (country) => values.get(country.id), stroke: colour("--page"), strokeWidth: 0.5, tip: true,
            title: (country) => `${country.properties.name}: ${values.get(country.id).toLocaleString()}` }),
          Plot.sphere({ stroke: colour("--line") })],
      }), `${label} by ${place}, as a map of countries`);
    }
  }

  const codeOf = (term) => {
    if (!term || (term.type !== "uri" && term.type !== "literal")) return null;
    const code = /(?:^|\/)([A-Z]{3})$/.exec(String(term.value))?.[1];
    return code && code in page.countries ? code : null;
  };
  const withColours = ({ color, ...rest }) => (color ? { color: { ...color, range: SERIES }, ...rest } : rest);
  return { chart: Chart, timeline: Timeline, graph: Graph, map: CountryMap };
}
