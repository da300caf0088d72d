"""A Hansard reference that the source does not have is derived, by a rule, and answers report it as derived."""

from __future__ import annotations

import csv
from pathlib import Path

from pyoxigraph import Literal

from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_triple
from kg.store.protocol import Rows, term_text
from kg.tools.parliament.search import search_speeches
from kg.tools.parliament.speeches import get_speech
from kg.tools.search.passages import search
from kg.vocabulary import KG, mint
from loaders.hansard.graph.references import REFERENCE
from loaders.sources import load

COLUMNS = ("speech_id", "date", "chamber", "speaker", "party", "state", "text", "title", "hansard_reference")
STATED = "Senate Hansard, 16 Oct 2024, p. 9"


def write(path: Path, references: dict[str, str | None]) -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(COLUMNS)
        for name, reference in references.items():
            words = f"Quokkas of {name} graze.", f"On {name}", reference or ""
            lines.writerow([name, "2024-10-16", "Senate", "Fern Ashby", "ALP", "NSW", *words])
    return str(path)


def references(live: KnowledgeGraph) -> dict[str, tuple[str, str]]:
    """The reference of each record, and the family of its graph."""
    rows = live.store.query("SELECT ?record ?text ?graph { GRAPH ?graph { ?record kg:hansardReference ?text } }")
    assert isinstance(rows, Rows)
    assert len({row["record"] for row in rows}) == len(rows)
    return {
        term_text(row["record"]).rpartition("/")[2]: (
            term_text(row["text"]),
            term_text(row["graph"]).split("/graph/")[1].split("/")[0],
        )
        for row in rows
    }


def test_reference_is_derived_only_where_the_source_has_none(live: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "speeches.csv"
    report = load(live, "hansard", [write(path, {"a": STATED, "b": None, "c": None})])
    assert (report.loaded, report.rejected) == (3, 0)
    day = "Senate Hansard, 16 Oct 2024"
    assert references(live) == {"a": (STATED, "src"), "b": (day, "der"), "c": (day, "der")}
    [why] = explain_triple(live.store.query, mint("speech", "b"), KG.hansardReference, Literal(day))
    assert why.kind == "derived"
    sources = live.store.query(f"SELECT ?g {{ ?graph prov:wasDerivedFrom ?g FILTER(?graph = <{why.graph}>) }}")
    assert isinstance(sources, Rows)
    assert len(sources) == 2
    assert live.store.query(f"ASK {{ ?run prov:used {REFERENCE.iri} . <{why.graph}> prov:wasGeneratedBy ?run }}")
    load(live, "hansard", [write(path, {"a": None, "b": STATED, "c": None})])
    assert references(live) == {"a": (day, "der"), "b": (STATED, "src"), "c": (day, "der")}
    load(live, "hansard", [write(path, {"b": STATED})], prune=True)
    assert references(live) == {"b": (STATED, "src")}


def test_answers_report_a_derived_reference(live: KnowledgeGraph, tmp_path: Path) -> None:
    load(live, "hansard", [write(tmp_path / "speeches.csv", {"a": STATED, "b": None})])
    found = {each.speech_id: each for each in search_speeches(live, "quokkas").results}
    assert (found["a"].hansard_reference, found["a"].derived_reference) == (STATED, False)
    assert (found["b"].hansard_reference, found["b"].derived_reference) == ("Senate Hansard, 16 Oct 2024", True)
    assert [get_speech(live, name).derived_reference for name in ("a", "b")] == [False, True]
    titles = {hit.id.partition("#")[0].rpartition("/")[2]: hit.title for hit in search(live, "quokkas").results}
    assert ("derived" in titles["a"], "derived" in titles["b"]) == (False, True)


def test_sitting_without_references_has_derived_ones_with_the_pages(live: KnowledgeGraph) -> None:
    [file] = (bundle.folder("fixtures") / "hansard").glob("house-*.xml")
    load(live, "hansard", [str(file)])
    found = references(live)
    assert {family for _, family in found.values()} == {"der"}
    assert found["2024-03-21"][0] == "House Hansard, 21 Mar 2024"
    assert any(", p. " in text for text, _ in found.values())
