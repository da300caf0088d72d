"""The SKOS view follows its items: from statements of best rank, through merged items, in one step with each item."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Store

from kg import bundle
from kg.knowledge_graph import KnowledgeGraph
from kg.settings import Settings, Wikibase
from kg.shacl.data_graph import DataGraph
from kg.shacl.shapes import Shapes
from kg.vocabulary import BASE, KG, PROV, PROV_GRAPH, RDF, SKOS
from loaders.load_report import LoadReport
from loaders.sources import load
from loaders.wikibase.skos import find_cycles

CONCEPTS = bundle.folder("fixtures") / "wikibase"
VIEW = BASE + "graph/der/skos/"


def loaded(kg: KnowledgeGraph, *entities: Any, folder: Path, base: str = "climate") -> LoadReport:
    path = folder / "entities.json"
    path.write_text(json.dumps(entities), encoding="utf-8")
    return load(kg, "wikibase", [str(path)], base=base)


def item(number: int, **claims: Any) -> dict[str, Any]:
    return {
        "type": "item",
        "id": f"Q{number}",
        "labels": {"en": {"language": "en", "value": f"label {number}"}},
        "aliases": {"en": [{"language": "en", "value": f"label {number}"}, {"language": "en", "value": "other"}]},
        "claims": {name: [statement(number, name, *each) for each in given] for name, given in claims.items()},
    }


def statement(owner: int, property_id: str, value: int | str, rank: str = "normal") -> dict[str, Any]:
    number = f"{owner:04d}{int(property_id[1:]):04d}{abs(hash((value, rank))) % 10_000:04d}"
    snak: dict[str, Any] = {"snaktype": "value", "property": property_id}
    if isinstance(value, int):
        entity = {"entity-type": "item", "id": f"Q{value}"}
        snak |= {"datatype": "wikibase-item", "datavalue": {"type": "wikibase-entityid", "value": entity}}
    else:
        snak |= {"datatype": "string", "datavalue": {"type": "string", "value": value}}
    guid = f"Q{owner}$00000000-0000-4000-8000-{number}"
    return {"mainsnak": snak, "type": "statement", "rank": rank, "id": guid}


def view(kg: KnowledgeGraph, number: int, name: str = "climate") -> set[tuple[str, str]]:
    graph = NamedNode(f"{VIEW}{name}/Q{number}")
    return {
        (quad.predicate.value.rpartition("#")[2], quad.object.value)
        for quad in kg.store.graph(graph)
        if isinstance(quad.object, NamedNode | Literal)
    }


def test_the_fixtures_are_sixty_concepts_and_more_with_all_that_a_concept_may_have(kg: KnowledgeGraph) -> None:
    report = load(kg, "wikibase", [str(CONCEPTS)], base="climate")
    assert (report.rejections, report.unread) == ([], {".md": 1})
    graphs = [graph for graph in kg.store.graphs() if graph.value.startswith(VIEW)]
    assert len(graphs) >= 60
    said: dict[NamedNode, int] = {}
    languages = set()
    for graph in graphs:
        for quad in kg.store.graph(graph):
            assert quad.subject.value == "cpr://concept/" + graph.value.rpartition("/")[2]
            said[quad.predicate] = said.get(quad.predicate, 0) + 1
            if quad.predicate == SKOS.altLabel:
                languages.add(quad.object.language)
    assert languages == {"en", "pt"}
    wanted = (
        SKOS.prefLabel, SKOS.altLabel, SKOS.definition, SKOS.broader, SKOS.narrower, SKOS.related, SKOS.exactMatch,
        KG.negativeLabel, KG.notToBeConfusedWith, KG.wikibaseEntity,
    )  # fmt: skip
    assert {term for term in wanted if not said.get(term)} == set()
    zoning = kg.store.graph(NamedNode(VIEW + "climate/Q1062"))
    # The preferred definition alone: another one is deprecated.
    assert [quad.object.value for quad in zoning if quad.predicate == SKOS.definition] == [
        "Rules that say, district by district, what may be built and done."
    ]


def test_no_triple_of_a_view_stands_in_another_graph(kg: KnowledgeGraph, tmp_path: Path) -> None:
    load(kg, "wikibase", [str(CONCEPTS)], base="climate")
    load(kg, "wikibase", [str(CONCEPTS)], base="wikidata")
    seen: dict[tuple[Any, ...], NamedNode] = {}
    for graph in kg.store.graphs():
        for quad in kg.store.graph(graph) if graph != PROV_GRAPH else ():
            key = (quad.subject, quad.predicate, quad.object)
            assert seen.setdefault(key, graph) == graph, key


def test_the_best_rank_decides(kg: KnowledgeGraph, tmp_path: Path) -> None:
    ranked = item(1, P2=[(2, "normal"), (3, "preferred"), (4, "deprecated")], P7=[("old", "deprecated")])
    loaded(kg, ranked, folder=tmp_path)
    assert view(kg, 1) == {
        ("type", SKOS.Concept.value), ("prefLabel", "label 1"), ("altLabel", "other"),
        ("broader", "cpr://concept/Q3"), ("wikibaseEntity", "https://climatepolicyradar.wikibase.cloud/entity/Q1"),
    }  # fmt: skip


def test_a_concept_of_another_wikibase_is_its_entity_and_says_nothing_twice(kg: KnowledgeGraph, tmp_path: Path) -> None:
    loaded(kg, item(1, P279=[(2,)]), folder=tmp_path, base="wikidata")
    [subject] = {quad.subject.value for quad in kg.store.graph(NamedNode(VIEW + "wikidata/Q1"))}
    assert subject == "http://www.wikidata.org/entity/Q1"
    assert view(kg, 1, "wikidata") == {
        ("type", SKOS.Concept.value),
        ("broader", "http://www.wikidata.org/entity/Q2"),
    }


def test_what_properties_mean_is_configuration(open_graph: Any, tmp_path: Path) -> None:
    kg = open_graph()
    mine = Wikibase(base="https://own.example.org/", skos={"P50": "broader"}, concepts=False)
    settings = kg.settings.model_copy(update={"wikibases": {"own": mine}, "wikibase": "own"})
    own = replace(kg, settings=settings)
    path = tmp_path / "own.json"
    path.write_text(json.dumps([item(1, P50=[(2,)])]))
    assert load(own, "wikibase", [str(path)]).loaded == 1
    assert ("broader", "https://own.example.org/entity/Q2") in view(kg, 1, "own")
    # With another meaning the entity is made anew, though its file is the same.
    other = mine.model_copy(update={"skos": {"P50": "related"}})
    own.settings = settings.model_copy(update={"wikibases": {"own": other}})
    assert load(own, "wikibase", [str(path)]).quads_added == 1
    assert ("related", "https://own.example.org/entity/Q2") in view(kg, 1, "own")


def test_the_settings_take_wikibases_as_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUADCITE_WIKIBASES", '{"own": {"base": "https://own.example.org/", "skos": {"P5": "broader"}}}')
    assert Settings(_env_file=None).wikibases["own"].skos == {"P5": "broader"}  # type: ignore[call-arg]


def redirect(old: int, new: int) -> dict[str, Any]:
    return {"entity": f"Q{old}", "redirect": f"Q{new}"}


@pytest.mark.parametrize("order", [(0, 1), (1, 0)], ids=["item first", "redirect first"])
@pytest.mark.parametrize("together", [True, False])
def test_a_link_to_a_merged_item_is_one_to_what_it_was_merged_into(
    kg: KnowledgeGraph, tmp_path: Path, order: tuple[int, ...], together: bool
) -> None:
    entities = [[item(1, P2=[(2,)])], [redirect(2, 3)]]
    chosen = [entities[place] for place in order]
    for part in [[each for group in chosen for each in group]] if together else chosen:
        assert loaded(kg, *part, folder=tmp_path).rejections == []
    assert ("broader", "cpr://concept/Q3") in view(kg, 1)
    assert ("broader", "cpr://concept/Q2") not in view(kg, 1)
    # Statements stay as they are; only the view goes through the redirect.
    loaded(kg, item(2), folder=tmp_path)
    assert ("broader", "cpr://concept/Q2") in view(kg, 1)


def test_a_merge_into_an_item_that_is_merged_itself_and_the_end_of_one_are_followed(
    kg: KnowledgeGraph, tmp_path: Path
) -> None:
    loaded(kg, item(1, P2=[(2,)]), redirect(2, 3), folder=tmp_path)
    path = tmp_path / "more.json"
    path.write_text(json.dumps([redirect(3, 4)]))
    load(kg, "wikibase", [str(path)], base="climate")
    assert ("broader", "cpr://concept/Q4") in view(kg, 1)
    path.write_text(json.dumps([item(9)]))
    load(kg, "wikibase", [str(path)], base="climate", prune=True)
    assert ("broader", "cpr://concept/Q3") in view(kg, 1)


def test_redirects_are_known_in_each_of_their_forms(kg: KnowledgeGraph, tmp_path: Path) -> None:
    folder = tmp_path / "answers"
    folder.mkdir()
    target = {**item(3), "redirects": {"from": "Q2", "to": "Q3"}}
    (folder / "answer.json").write_text(json.dumps({"entities": {"Q3": target}}))
    (folder / "special.json").write_text(json.dumps({"entities": {"Q8": item(9)}}))
    (folder / "merged.nt").write_text(
        "<https://climatepolicyradar.wikibase.cloud/entity/Q6> <http://www.w3.org/2002/07/owl#sameAs> "
        "<https://climatepolicyradar.wikibase.cloud/entity/Q7> .\n"
    )
    report = load(kg, "wikibase", [str(folder)], base="climate")
    assert report.rejections == []
    merged = {
        (quad.subject.value[-2:], quad.object.value[-2:])
        for graph in kg.store.graphs()
        for quad in kg.store.graph(graph)
        if quad.predicate.value.endswith("#sameAs")
    }
    assert merged == {("Q2", "Q3"), ("Q8", "Q9"), ("Q6", "Q7")}


def test_circles_in_the_hierarchy_are_told_and_kept(kg: KnowledgeGraph, tmp_path: Path) -> None:
    report = loaded(kg, item(1, P2=[(2,)]), item(2, P2=[(3,)]), item(3, P2=[(1,)]), item(4, P2=[(4,)]), folder=tmp_path)
    assert [each for each in report.warnings if "cycle" in each] == [
        "cycle of broader: " + " -> ".join(f"cpr://concept/Q{n}" for n in (1, 2, 3, 1)),
        "cycle of broader: cpr://concept/Q4 -> cpr://concept/Q4",
    ]
    assert ("broader", "cpr://concept/Q1") in view(kg, 3)


@given(st.dictionaries(st.sampled_from("abcdef"), st.sets(st.sampled_from("abcdef"), max_size=3)))
def test_a_circle_is_found_where_there_is_one_and_each_is_one(above: dict[str, set[str]]) -> None:
    found = find_cycles(above)
    for circle in found:
        assert all(following in above[node] for node, following in zip(circle, [*circle[1:], circle[0]], strict=True))
    reach = {node: set(higher) for node, higher in above.items()}
    for _ in range(6):
        for node in reach:
            reach[node] = reach[node].union(*(reach.get(higher, set()) for higher in reach[node]))
    assert bool(found) == any(node in higher for node, higher in reach.items())


def test_a_view_says_what_it_is_made_from_and_goes_with_it(kg: KnowledgeGraph, tmp_path: Path) -> None:
    loaded(kg, item(1), item(2), folder=tmp_path)
    graph = NamedNode(VIEW + "climate/Q1")
    said = {(quad.predicate, quad.object) for quad in kg.store.graph(PROV_GRAPH) if quad.subject == graph}
    assert (RDF.type, KG.DerivedGraph) in said
    assert (PROV.wasDerivedFrom, NamedNode(BASE + "graph/src/wikibase/climate/Q1")) in said
    path = tmp_path / "entities.json"
    path.write_text(json.dumps([item(2)]))
    assert load(kg, "wikibase", [str(path)], base="climate", prune=True).removed == 1
    subjects = {quad.subject for quad in kg.store.graph(PROV_GRAPH)}
    assert graph not in subjects
    assert NamedNode(BASE + "graph/src/wikibase/climate/Q2") in subjects
    rule = NamedNode(BASE + "id/rule/skos@1")
    assert (KG.Rule, 1) == (one_of(kg, rule), len({q.subject for q in kg.store.graph(PROV_GRAPH) if q.object == rule}))
    # A changed view leaves what is said of the item's graph as it is.
    loaded(kg, item(2, P2=[(1,)]), folder=tmp_path)
    kept = {
        quad.predicate for quad in kg.store.graph(PROV_GRAPH) if quad.subject.value.endswith("src/wikibase/climate/Q2")
    }
    assert {PROV.wasDerivedFrom, KG.contentSha256, KG.sourceSha256, RDF.type} <= kept
    path.write_text("[]")
    load(kg, "wikibase", [str(path)], base="climate", prune=True)
    assert rule not in {quad.subject for quad in kg.store.graph(PROV_GRAPH)}


def one_of(kg: KnowledgeGraph, rule: NamedNode) -> object:
    [kind] = [quad.object for quad in kg.store.graph(PROV_GRAPH) if quad.subject == rule and quad.predicate == RDF.type]
    return kind


def test_what_is_loaded_and_found_in_text_conforms_as_a_whole(kg: KnowledgeGraph) -> None:
    """By the dataset shapes: provenance with the rule of the views, SKOS, mentions with their offsets."""
    load(kg, "wikibase", [str(CONCEPTS)], base="climate")
    load(kg, "climate", [str(CONCEPTS.parent / "climate")])
    assert any(graph.value.startswith(BASE + "graph/ext/mentions/") for graph in kg.store.graphs())
    with kg.store.snapshot(kg.store.statistics().generation) as snapshot:
        data = DataGraph.from_store(Store.read_only(str(snapshot.path)))
        assert [str(result.message) for result in Shapes.load_dataset().results(data)] == []


@pytest.mark.long
def test_odd_labels_are_labels_and_five_thousand_of_them_load(kg: KnowledgeGraph, tmp_path: Path) -> None:
    odd = item(1, P9=[("x",), ("(a+)+$",)])
    odd["aliases"]["en"] = [{"language": "en", "value": f"label number {n}"} for n in range(5_000)]
    odd["labels"]["en"]["value"] = ".*"
    report = loaded(kg, odd, folder=tmp_path)
    assert report.rejections == []
    said = view(kg, 1)
    assert {("prefLabel", ".*"), ("negativeLabel", "x"), ("negativeLabel", "(a+)+$")} <= said
    assert sum(name == "altLabel" for name, _ in said) == 5_000


def test_no_alias_of_the_fixtures_is_a_word_that_names_other_things_too() -> None:
    """A word that ends the name of a concept which is not a kind of it, as ``zone`` does ``flood zone``, is none."""
    lines = (CONCEPTS / "concepts.json").read_text(encoding="utf-8").splitlines()
    entities = [json.loads(line.rstrip(",")) for line in lines if line.startswith("{")]
    items = {each["id"]: each for each in entities if each.get("type") == "item" and each.get("labels")}
    broader = {
        qid: {
            each["mainsnak"]["datavalue"]["value"]["id"]
            for each in item["claims"].get("P2", ())
            if each["mainsnak"]["snaktype"] == "value"
        }
        for qid, item in items.items()
    }

    def kinds_of(qid: str) -> set[str]:
        found, queue = {qid}, [qid]
        while queue:
            wider = queue.pop()
            queue += (new := {each for each, above in broader.items() if wider in above} - found)
            found |= new
        return found

    def names(item: dict[str, Any]) -> list[str]:
        aliases = item.get("aliases", {}).get("en", ())
        return [each["value"].casefold() for each in (item["labels"]["en"], *aliases)]

    ambiguous = {
        (alias["value"], name)
        for qid, item in items.items()
        for alias in item.get("aliases", {}).get("en", ())
        for other in items.keys() - kinds_of(qid)
        for name in names(items[other])
        if name.split()[-1:] == [alias["value"].casefold()]
    }
    assert not ambiguous
