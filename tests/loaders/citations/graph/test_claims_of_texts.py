"""Citations in the texts of all domains are claims of their records: written, promoted and removed with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_iri
from kg.store.protocol import select, term_text
from kg.vocabulary import CITATIONS, DCTERMS, ELI, KG, SCHEMA, mint
from loaders import batches
from loaders.citations.family_names import FamilyNames
from loaders.citations.graph import refresh
from loaders.citations.graph.texts import Record, build_citations
from loaders.citations.laws import Context
from loaders.sources import load
from tests.loaders.citations.written import write_code, write_policy, write_speech

ACT = mint("law", "us", "act", "clear-streams-act-1974")
TREATY = mint("law", "int", "treaty", "paris-agreement")

CITED = """
SELECT ?kind ?words ?confidence ?text ?start ?end WHERE {
  ?claim a kg:Statement, kg:CrossReference ; rdf:subject ?unit ; rdf:predicate eli:cites ; rdf:object <%s> ;
    kg:rawCitation ?words ; kg:confidence ?confidence ; kg:evidence ?span .
  ?span oa:hasSource ?unit ; kg:start ?start ; kg:end ?end ; oa:exact ?words .
  ?unit a ?kind ; schema:text ?text ; eli:cites <%s>
}"""


def cited(kg: KnowledgeGraph, law: NamedNode) -> list[tuple[str, str]]:
    """The kinds of the text units that cite a law, and their words, which are checked against their offsets."""
    found = []
    for row in select(kg.store.query, CITED % (law.value, law.value)):
        start, end = int(term_text(row["start"])), int(term_text(row["end"]))
        assert term_text(row["text"])[start:end] == term_text(row["words"])
        found.append((term_text(row["kind"]).rpartition("#")[2], term_text(row["words"])))
    return sorted(found)


def citing_graphs(kg: KnowledgeGraph) -> set[str]:
    return {graph.value for graph in kg.store.graphs() if graph.value.startswith(CITATIONS)}


def test_one_law_is_cited_from_all_domains(open_graph: Callable[..., KnowledgeGraph], tmp_path: Path) -> None:
    kg = open_graph()
    load(kg, "climate", [write_policy(tmp_path, "streams", "It follows the Clear Streams Act of 1974.")])
    load(kg, "hansard", [write_speech(tmp_path, "Streams", "I praise the US Clear Streams Act 1974.")])
    load(kg, "zoning", [write_code(tmp_path, "A ditch complies with the federal Clear Streams Act of 1974.")])
    assert cited(kg, ACT) == [
        ("CodeSection", "Clear Streams Act of 1974"),
        ("Passage", "Clear Streams Act of 1974"),
        ("SpeechChunk", "Clear Streams Act 1974"),
    ]


def test_uncertain_citation_is_a_claim_and_no_edge(open_graph: Callable[..., KnowledgeGraph], tmp_path: Path) -> None:
    kg = open_graph()
    load(kg, "zoning", [write_code(tmp_path, "A ditch complies with the Clear Streams Act of 1974.")])
    assert cited(kg, ACT) == []
    claims = select(kg.store.query, f"SELECT ?claim WHERE {{ ?claim a kg:CrossReference ; rdf:object <{ACT.value}> }}")
    assert len(claims) == 1


def test_removed_record_leaves_no_citation(open_graph: Callable[..., KnowledgeGraph], tmp_path: Path) -> None:
    kg = open_graph()
    folder = tmp_path / "policies"
    folder.mkdir()
    write_policy(folder, "streams", "It follows the Paris Agreement.")
    write_policy(folder, "ponds", "It has no reason.")
    load(kg, "climate", [str(folder)])
    assert len(cited(kg, TREATY)) == 1
    (folder / "streams.csv").unlink()
    load(kg, "climate", [str(folder)], prune=True)
    assert citing_graphs(kg) == set()
    assert not select(kg.store.query, f"SELECT ?p WHERE {{ <{TREATY.value}> ?p ?o }}")


@pytest.mark.parametrize(("family_first", "needles"), [(True, 500), (False, 500), (False, 0)])
def test_family_is_cited_in_either_order_of_loading(
    open_graph: Callable[..., KnowledgeGraph],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    family_first: bool,
    needles: int,
) -> None:
    monkeypatch.setattr(refresh, "NEEDLES", needles)
    kg = open_graph()
    policy = write_policy(tmp_path, "harbour", "A plan.", iso="AUS", family="Quillpoint Mossgrove Accord")
    speech = write_speech(tmp_path, "Accord", "Senator FENWRIGHT: We kept the Quillpoint Mossgrove Accord.")
    loads = [("climate", policy), ("hansard", speech)]
    for source, path in loads if family_first else loads[::-1]:
        load(kg, source, [path])
    assert cited(kg, mint("family", "family-harbour")) == [("SpeechChunk", "Quillpoint Mossgrove Accord")]


def test_only_texts_with_the_title_of_a_later_family_are_searched_again(
    open_graph: Callable[..., KnowledgeGraph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "BATCH_QUADS", 1)  # each record is a batch
    searched: list[int] = []
    refresh_all = refresh.Citations.refresh
    monkeypatch.setattr(refresh.Citations, "refresh", lambda *given: searched.append(refresh_all(*given).graphs))
    (folder := tmp_path / "policies").mkdir()
    texts = {
        "a": "It precedes the Quillpoint Mossgrove Accord.",
        "b": "It precedes the Fernbrook Tidewater Accord.",
        "c": "It follows the Fernbrook Tidewater Accord.",
    }
    write_policy(folder, "a", texts["a"], iso="NZL", family="Fernbrook Tidewater Accord", member_of="first")
    write_policy(folder, "b", texts["b"], iso="AUS", family="Other")
    write_policy(folder, "c", texts["c"], iso="AUS", family="Fernbrook Tidewater Accord", member_of="first")
    write_policy(folder, "d", "A plan.", iso="NZL", family="Quillpoint Mossgrove Accord")
    kg = open_graph()
    load(kg, "climate", [str(folder)])
    # "a" precedes the family that it cites, "b" the Australian document of the family that it cites.
    assert searched == [2]
    assert len(cited(kg, mint("family", "family-d"))) == 1
    assert len(cited(kg, mint("family", "first"))) == 1


def test_edge_is_explained_by_its_claim(open_graph: Callable[..., KnowledgeGraph], tmp_path: Path) -> None:
    kg = open_graph()
    load(kg, "climate", [write_policy(tmp_path, "streams", "It follows the Paris Agreement.")])
    [graph] = citing_graphs(kg)
    assert graph == f"{CITATIONS}climate/streams"
    [claim] = [row["claim"] for row in select(kg.store.query, "SELECT ?claim WHERE { ?claim a kg:CrossReference }")]
    assert explain_iri(kg.store.query, NamedNode(term_text(claim)))


def test_an_act_does_not_cite_itself(joined: KnowledgeGraph) -> None:
    """The first passage of an act is its title."""
    acts = ("cpr://doc/fictional-rooftop-energy-act-2023_au01", "cpr://doc/fictional-clean-homes-act_us01")
    for act in acts:
        rows = select(
            joined.store.query,
            f"SELECT ?cited WHERE {{ ?unit dcterms:isPartOf <{act}> ; eli:cites ?cited }}",
        )
        assert {term_text(row["cited"]) for row in rows} == {TREATY.value}


@pytest.mark.parametrize(
    ("title", "cites"),
    [
        ("Clear Streams Act of 1974 on rivers", False),
        ("The Clear Streams Act 1974 as amended in 1980", False),
        ("Clear Streams Act 1974 (Amendment) Regulations", True),
        ("Rules of streams (Clear Streams Act 1974)", True),
        ("Regulations to implement the Clear Streams Act 1974", True),
    ],
)
def test_law_that_begins_a_title_is_the_document_itself(title: str, cites: bool) -> None:
    graph, document, family = NamedNode("urn:g"), mint("document", "streams"), mint("family", "streams")
    unit = mint("passage", "streams", "0")
    said = [
        (document, DCTERMS.title, Literal(title)),
        (document, KG.jurisdiction, mint("place", "USA")),
        (document, ELI.is_member_of, family),
        (unit, DCTERMS.isPartOf, document),
        (unit, SCHEMA.text, Literal("It follows the Clear Streams Act 1974 and Directive 2010/30/EU.")),
    ]
    record = Record.of(Quad(*each, graph) for each in said)
    laws = {law.value.rpartition("/")[2] for law in build_citations(graph, record, FamilyNames({}))[1]}
    assert laws == {"2010-30", *(["clear-streams-act-1974"] if cites else [])}


def test_number_of_a_law_in_brackets_is_the_document_itself() -> None:
    for title, own in (("Labelling (Directive 2010/30/EU on labels)", 1), ("Labels of Directive 2010/30/EU", 0)):
        document = mint("document", "labels")
        said = [(document, DCTERMS.title, Literal(title)), (document, ELI.is_member_of, mint("family", "labels"))]
        record = Record.of(Quad(*each, NamedNode("urn:g")) for each in said)
        assert len(record.find_own_laws(document, Context("eu")).laws) == own


@pytest.mark.parametrize(
    ("title", "own"),
    [
        ("Streams Act", {"streams-act-1998"}),
        ("Streams Act (No. 3)", {"streams-act-1998", "streams-act-no-3-1998"}),
        ("Plan for a Streams Act", set()),
    ],
)
def test_act_without_a_year_is_that_of_the_year_of_the_document(title: str, own: set[str]) -> None:
    document = mint("document", "streams")
    said = [(document, DCTERMS.title, Literal(title)), (document, ELI.is_member_of, mint("family", "streams"))]
    record = Record.of(Quad(*each, NamedNode("urn:g")) for each in said)
    laws = record.find_own_laws(document, Context("irl", 1998)).laws
    assert {law.citation for law in laws} == own


@pytest.mark.parametrize(
    ("title", "own"),
    [
        ("Law on gas no. 123/2012 and amending Law no. 8/1997", {"123/2012"}),
        ("Royal Decrees on the climate office (371/2001, 1000/2003)", {"371/2001", "1000/2003"}),
        ("Plan under Law 8/1997", set()),
    ],
)
def test_document_does_not_cite_the_numbers_of_its_title(title: str, own: set[str]) -> None:
    document, unit = mint("document", "gas"), mint("passage", "gas", "0")
    said = [
        (document, DCTERMS.title, Literal(title)),
        (document, KG.jurisdiction, mint("place", "ROU")),
        (document, ELI.is_member_of, mint("family", "gas")),
        (unit, DCTERMS.isPartOf, document),
        (unit, SCHEMA.text, Literal("Law 123/2012, Law 371/2001, Law 1000/2003 and Law 8/1997.")),
    ]
    record = Record.of(Quad(*each, NamedNode("urn:g")) for each in said)
    assert record.find_own_laws(document, Context("rou")).numbers == own
    laws = {law.value.rpartition("/")[2] for law in build_citations(NamedNode("urn:g"), record, FamilyNames({}))[1]}
    everything = {"123/2012", "371/2001", "1000/2003", "8/1997"}
    assert laws == {number.replace("/", "-") for number in everything - own}


@pytest.mark.parametrize(
    ("title", "text", "promoted"),
    [
        ("Tides Act", "The Tides Act 1974 names ponds.", False),
        ("The Tides Act No. 945", "The Tides Act 1974 names ponds.", False),
        ("Tides Act 15", "The Tides Act 1974 names ponds.", False),
        ("Tides Act (No. 93 of 1970; consolidated No. 58 of 1974)", "The Tides Act 1974 names ponds.", False),
        ("Tides Acts RA 93 and amending Act RA 10745", "The Tides Act of 1974 names ponds.", False),
        ("Tides Act 1980", "It repeals the Tides Act 1974.", True),
        ("Plan on the Tides Act", "The Tides Act 1974 names ponds.", True),
        ("Law on tides", "Law 27/2007 names ponds.", False),
        ("Law on tides", "Law 27/2003 names ponds.", True),
        ("Law 12/2007 on tides", "Law 27/2007 names ponds.", True),
        ("Plan on tides", "Law 27/2007 names ponds.", True),
    ],
)
def test_law_that_a_document_may_be_itself_is_no_edge(title: str, text: str, promoted: bool) -> None:
    document, unit = mint("document", "tides"), mint("passage", "tides", "0")
    said = [
        (document, DCTERMS.title, Literal(title)),
        (document, KG.jurisdiction, mint("place", "NZL")),
        (document, ELI.is_member_of, mint("family", "tides")),
        (document, ELI.date_document, Literal("2007-03-01")),
        (unit, DCTERMS.isPartOf, document),
        (unit, SCHEMA.text, Literal(text)),
    ]
    claims, _ = build_citations(
        NamedNode("urn:g"), Record.of(Quad(*each, NamedNode("urn:g")) for each in said), FamilyNames({})
    )
    [confidence] = [float(quad.object.value) for quad in claims if quad.predicate == KG.confidence]
    assert (confidence >= 0.7) is promoted


@pytest.mark.parametrize("is_disputed", [False, True])
def test_a_citation_in_words_of_disputed_order_is_not_sure(is_disputed: bool) -> None:
    unit = mint("passage", "tides", "0")
    said = [(unit, SCHEMA.text, Literal("Pumps follow 42 U.S.C. § 7401 from now on."))]
    said += [(unit, KG.disputedOrder, Literal(True))] if is_disputed else []
    record = Record.of(Quad(*each, NamedNode("urn:g")) for each in said)
    claims, _ = build_citations(NamedNode("urn:g"), record, FamilyNames({}))
    [confidence] = [float(quad.object.value) for quad in claims if quad.predicate == KG.confidence]
    assert (confidence >= 0.7) is not is_disputed


@pytest.mark.parametrize(
    ("title", "own"),
    [
        ("Commission Decisions 2009/300/EC and 2018/59/EU on labels", 2),
        ("Package of 2020 (contains Directive 2009/29/EC, Directive 2009/28/EC and Decision No. 406/2009/EC)", 3),
        ("Directive 2009/29/EC amending Directive 2003/87/EC", 1),
        ("Directive 2002/91/EC, Directive 2010/31/EU and Directive 2018/84/EU on buildings", 3),
    ],
)
def test_document_is_each_law_that_its_title_lists(title: str, own: int) -> None:
    document = mint("document", "labels")
    said = [(document, DCTERMS.title, Literal(title)), (document, ELI.is_member_of, mint("family", "labels"))]
    record = Record.of(Quad(*each, NamedNode("urn:g")) for each in said)
    assert len(record.find_own_laws(document, Context("eu")).laws) == own
