"""The dataset shapes over a store: they name what was corrupted in it, agree with pySHACL and stay quick."""

from __future__ import annotations

from pathlib import Path

import pyshacl
import pytest
import rdflib
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from pyoxigraph import Literal, NamedNode, Quad, Store, Triple, parse
from rdflib.namespace import SH as SHACL

from kg import bundle
from kg.access.actors import ADMIN, CURATE, WRITE, Actor
from kg.shacl.data_graph import DataGraph
from kg.shacl.shapes import Shapes
from kg.user_graphs import UserGraphs
from kg.vocabulary import DCTERMS, ELI, KG, KGS, OA, PROV, PROV_GRAPH, RDF, SCHEMA, SH, SKOS, mint, sha256
from loaders.sources import load
from tests.examples import dear
from tests.folders import open_graph
from tests.shacl.test_differential import ODD_VALUES, OURS, assert_agreed

ADA = Actor("ada", frozenset({WRITE, CURATE, ADMIN}))
BOB = Actor("bob", frozenset({WRITE, CURATE, ADMIN}))

FIXTURES = bundle.folder("fixtures")
SUITE = Shapes.load_dataset()
LAWS = FIXTURES / "climate" / "laws.csv"


def found(store: Store) -> set[tuple[str, str]]:
    """What the dataset shapes find in a store: the shape and the focus node."""
    results = SUITE.validate(DataGraph.from_store(store))
    return {(str(each.shape).strip("<>").removeprefix(KGS.iri), str(each.focus).strip("<>")) for each in results}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> list[Quad]:
    """The quads of a store into which laws were loaded, and into which people wrote, also what is loaded later."""
    folder = tmp_path_factory.mktemp("suites")
    laws = folder / "laws.csv"
    laws.write_bytes(LAWS.read_bytes())
    with open_graph(folder / "data") as kg:
        assert load(kg, "climate", [str(laws)]).rejected == 0
        graphs = UserGraphs(kg)
        [document, *_] = [quad.subject for graph in kg.store.graphs() for quad in kg.store.graph(graph)
                          if quad.object == KG.PolicyDocument]  # fmt: skip
        notes, decisions = mint("graph", "user", "notes"), mint("graph", "cur", "decisions")
        graphs.put(notes, [Triple(document, DCTERMS.subject, Literal("tides"))], ADA)
        graphs.post(notes, [Triple(document, SKOS.note, Literal("The tide tables are out."))], BOB)
        graphs.post(decisions, [Triple(document, SKOS.editorialNote, Literal("Read twice."))], ADA)
        graphs.put(mint("graph", "user", "gone"), [Triple(document, SKOS.note, Literal("gone"))], ADA)
        graphs.delete(mint("graph", "user", "gone"), ADA)
        laws.write_text(laws.read_text(encoding="utf-8").replace("Fictional Zero", "Fictional Low"), encoding="utf-8")
        load(kg, "climate", [str(laws)])
        return [quad for graph in kg.store.graphs() for quad in kg.store.graph(graph)]


@pytest.fixture
def store(loaded: list[Quad]) -> Store:
    kept = Store()
    kept.extend(loaded)
    return kept


def one(store: Store, predicate: NamedNode, value: NamedNode | Literal | None = None) -> Quad:
    """The first quad with `predicate`, in the order of their texts."""
    return min(store.quads_for_pattern(None, predicate, value, None), key=str)


def change(store: Store, quad: Quad, value: NamedNode | Literal) -> None:
    store.remove(quad)
    store.add(Quad(quad.subject, quad.predicate, value, quad.graph_name))


def test_a_store_that_only_quadcite_wrote_to_conforms(store: Store) -> None:
    assert found(store) == set()


@pytest.mark.parametrize(
    ("shape", "predicate", "value"),
    [
        ("Text-hash", SCHEMA.text, Literal("The law was never so.")),
        ("Text-hash", KG.textSha256, Literal("0" * 64)),
        ("ContentGraph-hash", KG.contentSha256, Literal("none")),
        ("Snapshot-iri", KG.sha256, Literal("0" * 64)),
        ("SnapshotRead-retrieved", KG.retrievedAt, Literal("yesterday")),
        ("StoredDocument-family", ELI.is_member_of, NamedNode("cpr://family/lost")),
        ("StoredDocument-place", KG.jurisdiction, mint("place", "XXX")),
        ("StoredPassage-document", DCTERMS.isPartOf, NamedNode("cpr://doc/lost")),
        ("Commit-iri", KG.generation, Literal(77)),
        ("Head-quads", KG.quadCount, Literal("many")),
    ],
)
def test_what_was_altered_is_named(store: Store, shape: str, predicate: NamedNode, value: NamedNode | Literal) -> None:
    of_commits = predicate == KG.generation
    quad = min(store.quads_for_pattern(None, RDF.type, KG.Commit, None), key=str) if of_commits else None
    altered = next(store.quads_for_pattern(quad.subject, predicate, None, None)) if quad else one(store, predicate)
    change(store, altered, value)
    assert (shape, str(altered.subject).strip("<>")) in found(store)


@pytest.mark.parametrize(
    ("shape", "predicate"),
    [
        ("ContentGraph-activity", PROV.wasGeneratedBy),
        ("ContentGraph-hash", KG.contentSha256),
        ("Snapshot-hash", KG.sha256),
        ("SoftwareAgent-version", SCHEMA.softwareVersion),
        ("Run-started", PROV.startedAtTime),
        ("WrittenGraph-sender", PROV.wasAttributedTo),
        ("Commit-ended", PROV.endedAtTime),
    ],
)
def test_what_is_missing_is_named(store: Store, shape: str, predicate: NamedNode) -> None:
    for quad in list(store.quads_for_pattern(None, predicate, None, PROV_GRAPH)):
        store.remove(quad)
    assert shape in {name for name, _ in found(store)}


def test_a_graph_of_which_nothing_is_said_is_named(store: Store) -> None:
    graph = one(store, RDF.type, KG.UserGraph).subject
    for quad in list(store.quads_for_pattern(graph, None, None, PROV_GRAPH)):
        store.remove(quad)
    assert isinstance(graph, NamedNode)
    assert found(store) == {("TouchedGraph", graph.value)}


texts = st.text(st.sampled_from("a b🌊e\u0301ñ\u200d𝒳\n\"\\'"), min_size=1, max_size=12).filter(str.strip)


@settings(max_examples=dear(60))
@given(text=texts, start=st.integers(-1, 13), end=st.integers(-1, 14), data=st.data())
def test_a_span_is_sound_if_python_slices_the_same_words(text: str, start: int, end: int, data: st.DataObject) -> None:
    """Offsets count code points, as Python does."""
    cut = text[max(start, 0) : max(end, 0)] or "x"
    exact = data.draw(st.sampled_from([cut, cut + "x", cut[:-1] or "y"]))
    unit = NamedNode("cpr://doc/act#p=0")
    span = NamedNode(f"{unit.value}&char={start},{end}")
    triples = [
        Triple(unit, SCHEMA.text, Literal(text)),
        Triple(span, RDF.type, KG.TextSpan),
        Triple(span, OA.hasSource, unit),
        Triple(span, KG.start, Literal(start)),
        Triple(span, KG.end, Literal(end)),
        Triple(span, OA.exact, Literal(exact)),
    ]
    sound = 0 <= start < end <= len(text) and text[start:end] == exact
    assert (SUITE.check(triples) == []) == sound


# -- the same as pySHACL finds, over what loaders of texts and concepts will write

U, SPAN = "cpr://doc/act#p=0", "cpr://doc/act#p=0&char=6,13"
NODES = [NamedNode(U), NamedNode(SPAN), NamedNode(SPAN + "&q=Q1"), NamedNode("cpr://concept/Q1"),
         NamedNode("cpr://concept/Q2"), mint("place", "NMK"), mint("place", "NM-X"), mint("commit", "1")]  # fmt: skip
SOUND: list[Triple] = [
    Triple(quad.subject, quad.predicate, quad.object)
    for name in ("claim", "concepts", "climate", "commits", "load", "computed", "provenance")
    for quad in parse(path=FIXTURES / "shapes" / "passing" / f"{name}.ttl")
]
PREDICATES = sorted({triple.predicate for triple in SOUND} - {RDF.type}, key=str)
KINDS = [KG.TextSpan, KG.Statement, KG.Snapshot, KG.Commit, KG.Cession, KG.Rule, KG.InferredGraph, SKOS.Concept,
         KG.UserGraph, PROV.Activity, PROV.Derivation, KG.Place]  # fmt: skip


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(name for name in OURS if name.startswith("dataset-") and "graphs" not in name))
@settings(max_examples=dear(5), phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow])
@given(
    removed=st.lists(st.integers(0, len(SOUND) - 1), max_size=6),
    added=st.lists(
        st.tuples(st.integers(0, 99), st.sampled_from(PREDICATES), st.sampled_from([*ODD_VALUES, *NODES])), max_size=6
    ),
    typed=st.lists(st.tuples(st.integers(0, 99), st.sampled_from(KINDS)), max_size=2),
)
def test_the_dataset_shapes_find_what_pyshacl_finds(
    name: str,
    removed: list[int],
    added: list[tuple[int, NamedNode, Literal | NamedNode]],
    typed: list[tuple[int, NamedNode]],
) -> None:
    data = [triple for at, triple in enumerate(SOUND) if at not in removed]
    subjects = list(dict.fromkeys(triple.subject for triple in data))
    data += [Triple(subjects[at % len(subjects)], predicate, value) for at, predicate, value in added]
    data += [Triple(subjects[at % len(subjects)], RDF.type, kind) for at, kind in typed]
    assert_agreed(OURS[name], list(dict.fromkeys(data)))


GRAPHS = FIXTURES / "shapes" / "passing" / "graphs.trig"
BROKEN = sorted((FIXTURES / "shapes" / "failing").glob("*.trig"))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # rdflib deprecates what pySHACL asks it for
@pytest.mark.parametrize("path", [GRAPHS, *BROKEN], ids=lambda path: path.stem)
def test_shapes_of_named_graphs_find_what_pyshacl_finds_in_a_dataset(path: Path) -> None:
    data = rdflib.Dataset(default_union=True)
    data.parse(path)
    shapes = rdflib.Graph().parse(bundle.folder("shapes") / "dataset-graphs.ttl")
    _, report, _ = pyshacl.validate(data, shacl_graph=shapes, inplace=True, advanced=True)
    theirs = {
        tuple(str(report.value(result, term)) for term in (SHACL.sourceShape, SHACL.focusNode, SHACL.value))
        for result in report.subjects(rdflib.RDF.type, SHACL.ValidationResult)
    }
    store = Store()
    store.extend(list(parse(path=path)))
    graphs = {str(shape) for shape in shapes.subjects(rdflib.RDF.type, rdflib.URIRef(SH.NodeShape.value))}
    ours = {
        tuple(str(term).strip("<>") for term in (each.shape, each.focus, each.value))
        for each in SUITE.validate(DataGraph.from_store(store))
    }
    assert {each for each in ours if each[0] in graphs} == theirs
    assert bool(theirs) == (path != GRAPHS)


# -- a promoted edge stands as long as a claim holds it up

CONFIDENCE = st.sampled_from(["0.1", "0.69", "0.7", "1.0"])


@settings(max_examples=dear(60))
@given(
    claims=st.lists(st.tuples(CONFIDENCE, st.booleans(), st.booleans()), max_size=3),
    threshold=st.sampled_from([None, "0.7"]),
)
def test_a_promoted_edge_needs_a_claim_above_the_threshold_or_accepted_and_not_rejected(
    claims: list[tuple[str, bool, bool]], threshold: str | None
) -> None:
    promote, run, rule = mint("graph", "der", "promote"), mint("run", "promote"), mint("rule", "promote@1")
    subject, value, review = NamedNode("cpr://concept/Q1"), NamedNode("cpr://concept/Q2"), mint("graph", "cur", "x")
    decimal = NamedNode("http://www.w3.org/2001/XMLSchema#decimal")
    store = Store()
    store.add(Quad(subject, KG.uses, value, promote))
    store.add(Quad(promote, PROV.wasGeneratedBy, run, PROV_GRAPH))
    store.add(Quad(run, PROV.used, rule, PROV_GRAPH))
    if threshold is not None:
        store.add(Quad(rule, KG.threshold, Literal(threshold, datatype=decimal), PROV_GRAPH))
    for at, (confidence, accepted, rejected) in enumerate(claims):
        claim, graph = NamedNode(f"urn:claim:{at}"), mint("graph", "ext", "x", sha256(str(at)))
        store.add(Quad(claim, RDF.subject, subject, graph))
        store.add(Quad(claim, RDF.predicate, KG.uses, graph))
        store.add(Quad(claim, RDF.object, value, graph))
        store.add(Quad(claim, KG.confidence, Literal(confidence, datatype=decimal), graph))
        if accepted:
            store.add(Quad(review, KG.accepts, claim, review))
        if rejected:
            store.add(Quad(review, KG.rejects, claim, review))
    held_up = any(
        (accepted or float(confidence) >= float(threshold or 0)) and not rejected
        for confidence, accepted, rejected in claims
    )
    assert ("PromotedEdge" in {name for name, _ in found(store)}) == (not held_up)
