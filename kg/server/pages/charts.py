"""Charts (``/charts``): documents by place and year, speeches by party and year, concepts of a place, comparisons.

The numbers are those that the tools return to agents. Each chart has its table, which is complete without scripts, and
the SPARQL behind it. ``/charts/places?a=&b=&by=`` compares two places, ``/charts/codes?a=&b=&use=`` two municipalities.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, get_args
from urllib.parse import urlencode

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kg.errors import InvalidInputError, QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.notes import select_for_people, word_for_people
from kg.retrieval.reader import Reader
from kg.server.html import page
from kg.server.pages.plots import Bars, Columns, draw_bars, draw_columns
from kg.server.pages.reading import why_href
from kg.server.pages.site import Site, ask, list_queries
from kg.text import quoted
from kg.tools.climate import jurisdictions
from kg.tools.climate.document_counts import DocumentCount, count_documents
from kg.tools.parliament import speakers
from kg.tools.schema.term_index import split_words
from kg.tools.zoning import compare
from kg.tools.zoning.name_lookup import load_places as load_municipalities

PLACES: Final = 25
"""Maximum places of a chart. The table has all."""
SERIES: Final = 7
"""Maximum series with a colour of their own."""
OTHERS: Final = "others"
NAMED: Final = 12
"""Series among the others that a note names."""
SEVERAL: Final = "A document of several places counts in each of them."
ROWS: Final = 100

Mark = Literal["bar", "stack"]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart and its table. `drawn` are the rows that the chart shows; the table has `rows`."""

    id: str
    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str | int]]
    mark: Mark
    x: str
    y: str
    by: str | None = None
    drawn: Sequence[Mapping[str, Any]] = ()
    notes: Sequence[str] = ()
    queries: Sequence[dict[str, str]] = field(default=())

    @property
    def plot(self) -> Bars | Columns:
        """The drawing of its rows."""
        if self.mark == "bar":
            return draw_bars(self.drawn, self.x, self.y, self.by)
        return draw_columns(self.drawn, self.x, self.y, self.by, self.columns[1:-1])


def routes(site: Site) -> list[Route]:
    """Build the routes of the charts."""

    def overview(request: Request) -> Response:
        charts = [*_chart_documents(site.kg), *_chart_speeches(site.kg)]
        places = _rank_places(count_documents(site.kg).by_place)
        place = request.query_params.get("place") or (places[0][1] if places else "")
        mentions, problem = None, ""
        if place:
            try:
                mentions = _chart_concepts(site.kg, place)
            except QuadciteError as error:
                problem = word_for_people(str(error))
        context = {
            "charts": charts,
            "place": place,
            "places": [{"code": code, "name": name} for name, code, _ in places],
            "mentions": mentions,
            "problem": problem,
            "comparison": None,
            "tab": "overview",
        }
        return page(request, "charts.html", context)

    return [
        site.route("/charts", overview, ("place",)),
        site.route("/charts/places", lambda request: _compare_places(site.kg, request), ("a", "b", "by")),
        site.route("/charts/codes", lambda request: _compare_codes(site.kg, request), ("a", "b", "use")),
    ]


# Documents.


def _rank_places(counts: Sequence[DocumentCount]) -> list[tuple[str, str, int]]:
    """List name, code and number of documents of each place, the largest number first."""
    totals: Counter[tuple[str, str]] = Counter()
    for each in counts:
        if each.place is not None and each.code is not None:
            totals[each.place, each.code] += each.documents
    return [(name, code, count) for (name, code), count in sorted(totals.items(), key=lambda item: (-item[1], item[0]))]


def _chart_documents(kg: KnowledgeGraph) -> list[Chart]:
    found = count_documents(kg)
    if not found.by_year:
        return []
    queries = list_queries(found.queries)
    places = _rank_places(found.by_place)
    unplaced = sum(each.documents for each in found.by_place if each.place is None)
    several = sum(each.documents for each in found.by_place) > sum(found.by_year.values())
    place_notes = [f"{unplaced:,} documents have no place."] if unplaced else []
    if several:
        place_notes.append(SEVERAL)
    if len(places) > PLACES:
        place_notes.append(f"The chart shows the first {PLACES} of {len(places)} places, the table all.")
    charts = [
        Chart(
            "documents-by-place", "Policy documents by place", ("Place", "Documents"),
            [(name, count) for name, _, count in places], "bar", "place", "documents", None,
            [{"place": name, "documents": count} for name, _, count in places[:PLACES]], place_notes, queries,
        )
    ]  # fmt: skip
    of_series: dict[str, Counter[int]] = defaultdict(Counter)
    for each in found.by_place:
        if each.year is not None:
            of_series[each.place or "no place"][each.year] += each.documents
    totals = {year: count for year, count in found.by_year.items() if year is not None}
    if totals:
        undated = found.by_year.get(None, 0)
        notes = [f"{undated:,} documents have no date."] if undated else []
        notes += [SEVERAL] if several else []
        charts.append(
            _stack("documents-by-year", "Policy documents by year and place", "place", "documents", of_series, totals,
                   notes, queries)
        )  # fmt: skip
    return charts


def _stack(
    id_: str,
    title: str,
    by: str,
    counted: str,
    of_series: Mapping[str, Counter[Any]],
    totals: Mapping[Any, int],
    notes: Sequence[str],
    queries: Sequence[dict[str, str]],
) -> Chart:
    """Build a chart of counts by year, stacked by series.

    The series with most have a colour each. Two or more others are one, and a note names them.
    """
    ranked = sorted((name for name, of in of_series.items() if of.total()), key=lambda name: -of_series[name].total())
    names, rest = (ranked[:SERIES], ranked[SERIES:]) if len(ranked) > SERIES + 1 else (ranked, [])
    if rest:
        of_series = {**of_series, OTHERS: sum((of_series[name] for name in rest), Counter[Any]())}
        names = [*names, OTHERS]
        listed = ", ".join(f"{name} ({of_series[name].total():,})" for name in rest[:NAMED])
        more = f" and {len(rest) - NAMED} more" if len(rest) > NAMED else ""
        notes = [*notes, f"“{OTHERS}” are {len(rest)}: {listed}{more}."]
    years = sorted({year for of in of_series.values() for year, count in of.items() if count})
    rows: list[list[str | int]] = []
    drawn = []
    for year in years:
        counts = [of_series[name][year] for name in names]
        rows.append([str(year), *counts, totals.get(year, sum(counts))])
        drawn += [{"year": year, by: name, counted: count} for name, count in zip(names, counts, strict=True) if count]
    return Chart(id_, title, ("Year", *names, "All"), rows, "stack", "year", counted, by, drawn, notes, queries)


# Speeches.


def _chart_speeches(kg: KnowledgeGraph) -> list[Chart]:
    parties = ask(kg, speakers.speech_stats, group_by="party", limit=ROWS)
    groups = [group for group in parties.result.groups if group.speeches]
    if not groups:
        return []
    charts = [
        Chart(
            "speeches-by-party", "Speeches by party", ("Party", "Speeches", "Words", "Interjections by others"),
            [(group.label, group.speeches, group.words, group.interjections) for group in groups], "bar", "party",
            "speeches", None, [{"party": group.label, "speeches": group.speeches} for group in groups[:PLACES]],
            select_for_people(parties.result.notes), list_queries(parties.queries),
        )
    ]  # fmt: skip
    yearly = speakers.count_speeches_by_year(kg)
    labels = {group.key: group.label for group in groups}
    of_series: dict[str, Counter[str]] = defaultdict(Counter)
    undated = 0
    for (party, year), count in yearly.speeches.items():
        if year is None or not year.isdigit():
            undated += count
        else:
            of_series[labels.get(party) or party or "no party"][year] += count
    notes = [f"{undated:,} speeches have no date."] if undated else []
    if any(of_series.values()):
        charts.append(
            _stack("speeches-by-year", "Speeches by year and party", "party", "speeches", of_series,
                   {}, notes, list_queries(yearly.queries))
        )  # fmt: skip
    return charts


# Mentions.


def _chart_concepts(kg: KnowledgeGraph, place: str) -> Chart | None:
    asked = ask(kg, jurisdictions.jurisdiction_overview, place=place, limit=50)
    concepts = asked.result.top_concepts
    if not concepts:
        return None
    return Chart(
        "concepts", f"Concepts mentioned most in {asked.result.name}", ("Concept", "Passages", "Documents"),
        [(concept.label, concept.passages, concept.documents) for concept in concepts], "bar", "concept", "passages",
        None, [{"concept": concept.label, "passages": concept.passages} for concept in concepts[:PLACES]],
        select_for_people(asked.result.notes), list_queries(asked.queries),
    )  # fmt: skip


# Comparisons.


def _compare_places(kg: KnowledgeGraph, request: Request) -> Response:
    given = request.query_params
    a, b, by = (given.get(name, "").strip() for name in ("a", "b", "by"))
    by = by or "kind"
    if by not in get_args(jurisdictions.By):
        raise InvalidInputError(f"Invalid by {quoted(by)}. Valid: {', '.join(get_args(jurisdictions.By))}.")
    places = _rank_places(count_documents(kg).by_place)
    charts: list[Chart] = []
    problem = ""
    if a and b:
        try:
            asked = ask(
                kg,
                jurisdictions.compare_jurisdictions,
                {"iso3_a": "a", "iso3_b": "b"},
                iso3_a=a,
                iso3_b=b,
                by=by,
                limit=50,
            )
        except QuadciteError as error:
            problem = word_for_people(str(error))
        else:
            result = asked.result
            rows = list(zip(result.bins, result.a, result.b, strict=True))
            names = {code: name for name, code, _ in places}
            named = [names.get(code, code) for code in (result.iso3_a, result.iso3_b)]
            drawn = [
                {"bin": name, "place": place, result.counted: count}
                for name, *counts in rows[:PLACES]
                for place, count in zip(named, counts, strict=True)
            ]
            charts = [
                Chart(
                    "comparison", f"{' and '.join(named)}: {result.counted} by {by.replace('_', ' ')}",
                    (by.replace("_", " ").capitalize(), *named), rows, "bar", "bin",
                    result.counted, "place", drawn, select_for_people(result.notes), list_queries(asked.queries),
                )
            ]  # fmt: skip
    context = {
        "charts": charts,
        "problem": problem,
        "tab": "places",
        "a": a,
        "b": b,
        "by": by,
        "choices": [(name, name.replace("_", " ")) for name in get_args(jurisdictions.By)],
        "options": [{"value": code, "text": f"{name} ({code})"} for name, code, _ in places],
    }
    return page(request, "charts.html", context, status=400 if problem else 200)


def _compare_codes(kg: KnowledgeGraph, request: Request) -> Response:
    given = request.query_params
    a, b, use = (given.get(name, "").strip() for name in ("a", "b", "use"))
    names = [place.shown for place in load_municipalities(Reader(kg))]
    result, queries, problem = None, [], ""
    if a and b:
        try:
            asked = ask(
                kg,
                compare.compare_zoning,
                {"municipalities": "a and b"},
                municipalities=[a, b],
                use=use or None,
                limit=50,
            )
        except QuadciteError as error:
            problem = word_for_people(str(error))
        else:
            result, queries = asked.result, list_queries(asked.queries)
    charts = []
    if result is not None:
        for number, row in enumerate(result.standards):
            cells = [cell for cell in row.places if cell.median is not None or cell.lowest is not None]
            if len(cells) < 2:
                continue
            title = " ".join(filter(None, (row.standard_type, f"({row.bound})" if row.bound else "")))
            value = f"median{f' in {row.unit}' if row.unit else ''}"
            charts.append(
                Chart(
                    f"standard-{number}", title, ("Municipality", "Lowest", "Median", "Highest", "Districts"),
                    [
                        (cell.municipality, *map(_format, (cell.lowest, cell.median, cell.highest)), cell.districts)
                        for cell in row.places
                    ],
                    "bar", "municipality", value, None,
                    [{"municipality": cell.municipality, value: cell.median} for cell in cells if cell.median],
                )
            )  # fmt: skip
    context = {
        "charts": charts,
        "problem": problem,
        "tab": "codes",
        "a": a,
        "b": b,
        "use": use,
        "options": [{"value": name, "text": name} for name in names],
        "zoning": result,
        "split_words": split_words,
        "select_for_people": select_for_people,
        "why_href": why_href,
        "queries": queries,
        "address": "/charts/codes?" + urlencode({"a": a, "b": b}),
    }
    return page(request, "charts.html", context, status=400 if problem else 200)


def _format(value: float | None) -> str:
    return "" if value is None else f"{value:,.10g}"
