"""Files of RDF: which are meant, every format, where their syntax is wrong, and shapes read from them."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyoxigraph import NamedNode, RdfFormat, Store, parse, serialize

from kg import bundle
from kg.errors import InvalidInputError, NotFoundError, SourceError
from kg.shacl.data_graph import DataGraph
from kg.shacl.documents import DataDocuments, ShapesDocuments, has_shapes
from kg.shacl.gate import RecordGate, check_record_graphs, find_record_graphs
from kg.shacl.incremental import load_touched_graphs
from kg.shacl.rdf_files import FORMATS, Document, MalformedError, expand_paths, open_document, parse_file
from kg.shacl.report import Location, Violation
from kg.shacl.shapes import Shapes
from kg.store.oxigraph import OxigraphStore
from kg.vocabulary import DCTERMS
from tests.shacl.made_up import record, without

BROKEN = bundle.folder("fixtures") / "shapes" / "failing" / "PolicyDocument-slug.ttl"
EX = "http://example.org/"
HEAD = f"@prefix sh: <http://www.w3.org/ns/shacl#> .\n@prefix ex: <{EX}> .\n"
SHAPES = HEAD + (
    "ex:Person a sh:NodeShape ; sh:targetClass ex:Person ;\n"
    "  sh:property [ sh:path ex:name ; sh:minCount 1 ] , [ sh:path ex:knows ; sh:class ex:Person ] .\n"
)


def turtle(content: str, name: str = "data.ttl") -> Document:
    return Document(name, RdfFormat.TURTLE, (HEAD + content).encode())


def shapes(content: str = SHAPES) -> Shapes:
    return ShapesDocuments.parse([Document("shapes.ttl", RdfFormat.TURTLE, content.encode())]).shapes()


def found(documents: list[Document], ontology: str = "", graph: str | None = None) -> list[tuple[str | None, str]]:
    """The focus nodes of the results and the documents they are said to be about."""
    beside = turtle(ontology).parse_all()
    whole = DataDocuments(documents, {}, beside, NamedNode(graph) if graph else None)
    return sorted((each.source, str(each.focus).removeprefix(f"<{EX}").rstrip(">")) for each in whole.results(shapes()))


@pytest.mark.parametrize("suffix", sorted(FORMATS))
def test_each_format_is_read(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"record{suffix}"
    triples = [quad.triple for quad in parse(path=BROKEN)]
    serialize(triples, str(path), FORMATS[suffix])
    quads, fault = parse_file(path)
    assert fault is None
    assert {(quad.predicate, str(quad.object)) for quad in quads} == {(t.predicate, str(t.object)) for t in triples}


@pytest.mark.parametrize(
    ("content", "place"),
    [
        (b"<urn:a> <urn:b> <urn:c> .\n<urn:a> <urn:b> .\n", "line 2, column 17"),
        (b"<urn:a> <urn:b> <urn:c> .\n<urn:a> <urn:b> 'caf\xe9' .", "line 2, column 21"),
        ("<urn:a> <urn:b> <urn:c> .\n".encode("utf-16"), "line 1, column 1"),
        (b"<urn:a> <urn:b> 'never ends", "line 1, column 17"),
    ],
)
def test_a_syntax_error_names_the_file_the_line_and_the_column(content: bytes, place: str) -> None:
    with pytest.raises(MalformedError, match=rf"^x\.ttl, {place}: not Turtle: ") as raised:
        list(Document("x.ttl", RdfFormat.TURTLE, content).parse())
    assert raised.value.place.document == "x.ttl"
    assert f"line {raised.value.place.line}," in place
    assert str(raised.value).count("line ") == 1


def test_a_syntax_error_in_xml_has_a_line_and_one_of_our_prefixes_is_told() -> None:
    with pytest.raises(MalformedError, match=r"^x\.rdf, line 2, column 27: not RDF/XML: ") as raised:
        list(Document("x.rdf", RdfFormat.RDF_XML, b"<a xmlns='urn:a:'>\n  <b xmlns='urn:b:'>text</a>").parse())
    assert raised.value.place == Location("x.rdf", 2)
    with pytest.raises(MalformedError, match=r"add @prefix kg: <https://w3id\.org/quadcite/ns#> \.$"):
        list(Document("x.ttl", RdfFormat.TURTLE, b"kg:a <urn:b> 1 .").parse())


def test_the_mark_that_editors_begin_a_file_with_is_passed_over(tmp_path: Path) -> None:
    for name, content in (("a.ttl", "<urn:a> <urn:b> <urn:c> ."), ("b.jsonld", '{"@id": "urn:a", "urn:b": 1}')):
        (tmp_path / name).write_text(content, encoding="utf-8-sig")
        assert len(open_document(str(tmp_path / name)).parse_all()) == 1


@pytest.mark.parametrize("ending", [".ttl", ".trig", ".nt", ".nq", ".n3", ".rdf"])
def test_an_empty_file_says_nothing(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"empty{ending}"
    path.touch()
    assert open_document(str(path)).parse_all() == []


@pytest.mark.parametrize(
    ("content", "taken"), [(b"<urn:a> <urn:b c> 1 .", True), (b"<urn:a> <urn:b> 1 . <urn:a> <urn:b c", False)]
)
def test_a_fault_that_a_lenient_reader_passes_over_says_so(content: bytes, taken: bool) -> None:
    with pytest.raises(MalformedError) as raised:
        list(Document("x.ttl", RdfFormat.TURTLE, content).parse())
    assert str(raised.value).endswith("lenient parser)") is taken


def test_a_file_of_an_unknown_kind_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    (tmp_path / "data.csv").touch()
    with pytest.raises(InvalidInputError, match=r"\.jsonld.*\.ttl"):
        open_document(str(tmp_path / "data.csv"))


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"absent\.ttl"):
        parse_file(tmp_path / "absent.ttl")


def test_a_folder_that_is_not_there_is_said_to_be_absent_and_not_of_an_unknown_kind() -> None:
    with pytest.raises(SourceError, match=r"^absent/: "):
        open_document("absent/")


def test_folders_and_patterns_stand_for_the_rdf_below_them(tmp_path: Path) -> None:
    names = ["a.ttl", "b.nq", "package.json", "c.csv", "deep/d.ttl", "deep/shapes.ttl", ".hidden/e.ttl"]
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()

    def relative(*places: str, leave_out: tuple[str, ...] = ()) -> list[str]:
        given = [str(tmp_path / place) for place in places]
        return [
            str(Path(name).relative_to(tmp_path))
            for name in expand_paths(given, leave_out=[str(tmp_path / name) for name in leave_out])
        ]

    assert relative(".") == ["a.ttl", "b.nq", "deep/d.ttl", "deep/shapes.ttl"]
    assert relative(".", leave_out=("deep/s*.ttl",)) == ["a.ttl", "b.nq", "deep/d.ttl"]
    assert relative("**/d.ttl", "deep", "a.ttl") == ["deep/d.ttl", "deep/shapes.ttl", "a.ttl"]
    assert relative("package.json", "absent.ttl") == ["package.json", "absent.ttl"]
    with pytest.raises(InvalidInputError, match="no file matches"):
        expand_paths([str(tmp_path / "*.trig")])
    (tmp_path / "none").mkdir()
    with pytest.raises(InvalidInputError, match=r"\.ttl, "):
        expand_paths([str(tmp_path / "none")])


def test_a_file_whose_name_is_a_pattern_is_that_file(tmp_path: Path) -> None:
    path = tmp_path / "a[1].ttl"
    path.touch()
    assert expand_paths([str(path)]) == [str(path)]


def test_documents_are_one_graph_and_each_result_names_the_one_that_it_is_about() -> None:
    one = turtle("ex:a a ex:Person ; ex:name 'A' ; ex:knows ex:b , ex:c . ex:nameless a ex:Person .", "one.ttl")
    two = turtle("ex:b a ex:Person .", "two.ttl")
    assert found([one, two]) == [("one.ttl", "a"), ("one.ttl", "nameless"), ("two.ttl", "b")]
    assert found([one]) == [("one.ttl", "a"), ("one.ttl", "a"), ("one.ttl", "nameless")]


def test_a_focus_node_that_is_only_named_is_said_of_who_names_it() -> None:
    asked = (
        HEAD + "ex:S a sh:NodeShape ; sh:targetObjectsOf ex:knows ; sh:property [ sh:path ex:name ; sh:minCount 1 ] ."
    )
    documents = [turtle("ex:x ex:p ex:y .", "one.ttl"), turtle("ex:x ex:knows ex:z .", "two.ttl")]
    [violation] = DataDocuments(documents, {}).results(shapes(asked))
    assert (str(violation.focus), violation.source) == (f"<{EX}z>", "two.ttl")


def test_blank_nodes_of_two_documents_are_two() -> None:
    documents = [turtle("_:x a ex:Person .", "one.ttl"), turtle("_:x ex:name 'X' .", "two.ttl")]
    assert [source for source, _ in found(documents)] == ["one.ttl"]


def test_what_is_not_well_formed_adds_nothing_and_hides_nothing() -> None:
    broken = turtle("ex:half a ex:Person . ex:a ex:knows", "broken.ttl")
    places: dict[Violation, Location] = {}
    results = list(DataDocuments([broken, turtle("ex:b a ex:Person .", "b.ttl")], places).results(shapes()))
    assert [(each.source, each.focus and str(each.focus)) for each in results] == [
        ("broken.ttl", None),
        ("b.ttl", f"<{EX}b>"),
    ]
    assert places[results[0]].line == 3


def test_an_ontology_counts_and_is_not_validated() -> None:
    data = turtle("ex:s a ex:Student ; ex:knows ex:teacher .")
    assert found([data]) == []
    ontology = "ex:Student <http://www.w3.org/2000/01/rdf-schema#subClassOf> ex:Person . ex:teacher a ex:Person ."
    assert found([data], ontology) == [("data.ttl", "s")]
    assert found([turtle("ex:s a ex:Student . ex:teacher a ex:Person .")], ontology) == [
        ("data.ttl", "s"),
        ("data.ttl", "teacher"),
    ]


def test_graphs_are_taken_together_unless_one_is_named() -> None:
    content = (HEAD + "ex:g { ex:a a ex:Person } ex:h { ex:a ex:name 'A' . ex:b a ex:Person }").encode()
    trig = Document("data.trig", RdfFormat.TRIG, content)
    assert found([trig]) == [("data.trig", "b")]
    assert found([trig], graph=EX + "g") == [("data.trig", "a")]
    with pytest.raises(NotFoundError, match=f"<{EX}G>.*<{EX}g>, <{EX}h>"):
        found([trig], graph=EX + "G")
    with pytest.raises(NotFoundError, match=f"<{EX}"):
        found([turtle("ex:a a ex:Person .")], graph=EX + "g")


@given(
    st.lists(st.sampled_from(["ex:a a ex:Person .", "ex:a ex:name 1 .", "ex:b a ex:Person .", "ex:b ex:knows ex:a ."]))
)
def test_how_statements_are_spread_over_documents_changes_no_result(statements: list[str]) -> None:
    spread = [turtle(each, f"{number}.ttl") for number, each in enumerate(statements)]
    whole = [focus for _, focus in found([turtle("\n".join(statements))])]
    assert sorted(focus for _, focus in found(spread)) == sorted(whole)


def test_shapes_that_are_not_turtle_are_refused_with_the_line() -> None:
    with pytest.raises(SourceError, match=r"^shapes\.ttl, line 3, column \d+: not Turtle"):
        shapes(HEAD + "<a> <b>")


@pytest.mark.parametrize("content", ["", HEAD, HEAD + "ex:a ex:b ex:c ."])
def test_a_file_without_shapes_is_none_of_shapes(content: str) -> None:
    with pytest.raises(InvalidInputError, match=r"^shapes\.ttl: no shape found"):
        shapes(content)


def test_of_several_files_of_shapes_the_ill_formed_one_is_named() -> None:
    documents = [turtle(SHAPES, "good.ttl"), turtle("ex:S a sh:NodeShape ; sh:minCuont 1 .", "bad.ttl")]
    with pytest.raises(InvalidInputError, match=r"^bad\.ttl: .*example\.org/S>, sh:minCuont: .*sh:minCount"):
        ShapesDocuments.parse(documents).shapes()


def test_a_shape_without_a_name_is_told_by_its_path_and_its_owner() -> None:
    with pytest.raises(InvalidInputError, match=r"without a name of <http://example.org/S> for <http://example.org/p>"):
        shapes(HEAD + "ex:S a sh:NodeShape ; sh:property [ sh:path ex:p ; sh:minCount 'many' ] .")


def test_documents_with_shapes_are_told() -> None:
    assert has_shapes(turtle(SHAPES))
    assert not has_shapes(turtle("ex:a a ex:Person ."))
    assert not has_shapes(turtle("ex:a a "))


def test_imports_are_told_since_nothing_is_fetched() -> None:
    graph = ShapesDocuments.parse([turtle(f"<> <http://www.w3.org/2002/07/owl#imports> <{EX}more> .", "shapes.ttl")])
    assert graph.imports == {f"<{EX}more>": "shapes.ttl"}


def test_the_store_is_checked_record_by_record(tmp_path: Path) -> None:
    graph, quads = record("bad")
    with OxigraphStore(tmp_path / "data") as store:
        generation = store.commit(dict([record("good")])).generation
        store.commit({graph: without(quads, DCTERMS.title)})
        with store.snapshot(store.statistics().generation) as snapshot:
            held = Store.read_only(str(snapshot.path))
            names = find_record_graphs(held)
            results = list(check_record_graphs(held, names, RecordGate()))
            touched = set(find_record_graphs(held, since=generation))
            assert touched == load_touched_graphs(held, generation) & set(names)
            assert Shapes.load().validate(DataGraph.from_store(held, graph))
    assert len(names) == 2
    assert {violation.graph for violation in results} == {graph} == touched


def test_a_term_that_is_longer_than_the_parser_holds_is_told() -> None:
    with pytest.raises(SourceError, match=r"^data\.ttl: a term is too long"):
        turtle(f'ex:a ex:b "{"a" * 17_000_000}" .').parse_all()
