"""The lines of RDF files: what stands at a line is found there, and where that is not certain, no line is told."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, Triple, parse

from kg.shacl.line_numbers import MAX_DEPTH, SEARCHED, LineLocator, _parse_lines, _TurtleParser
from kg.shacl.report import Location, Violation
from kg.store.protocol import Term
from tests.examples import dear

BASE = "http://made.up/folder/file.ttl"
X = "http://made.up/"


def line(path: Path, focus: Term, predicate: NamedNode | None = None, value: Term | None = None) -> int | None:
    found = LineLocator().locate(Violation(focus, "Odd.", path=predicate, value=value, source=str(path)))
    assert found is not None
    assert found.document == str(path)
    return found.line


@pytest.fixture
def written(tmp_path: Path) -> Callable[[str, str], Path]:
    def write(name: str, text: str) -> Path:
        path = tmp_path / name
        path.write_bytes(text.encode())
        return path

    return write


TURTLE = '''# <http://made.up/a> is only named here
@prefix : <http://made.up/> .
PREFIX p: <http://made.up/p#>
@base <http://made.up/folder/> .
:other :says """a long text
:a :p 1 .
""" , <http://made.up/a#frag> ;
  :and [ :in ( :list :a ) ;
    :deep :a ] .
:a a :Thing ;
   p:size 12 ,
     -3.5 , true ;
   p:name "A"@en , "B"^^p:Code ; ;
   .
<file> :p :o . <../up> :p :o .
p:we\\~ird%20name :p :o .
'''


@pytest.mark.parametrize(
    ("focus", "predicate", "value", "expected"),
    [
        ("a", None, None, 10),
        ("a", "p#size", Literal(12), 11),
        ("a", "p#size", Literal("-3.5", datatype=NamedNode("http://www.w3.org/2001/XMLSchema#decimal")), 12),
        ("a", "p#name", Literal("B", datatype=NamedNode(X + "p#Code")), 13),
        ("a", "p#size", Literal("not there"), 10),
        ("other", "says", NamedNode(X + "a#frag"), 7),
        ("folder/file", None, None, 15),
        ("up", None, None, 15),
        ("p#we~ird%20name", None, None, 16),
        ("list", None, None, None),
    ],
)
def test_a_triple_stands_at_its_line_and_a_node_where_it_is_first_described(
    focus: str, predicate: str | None, value: Term | None, expected: int | None, written: Callable[[str, str], Path]
) -> None:
    path = written("a.ttl", TURTLE)
    assert line(path, NamedNode(X + focus), predicate and NamedNode(X + predicate), value) == expected  # type: ignore


def test_graphs_of_trig_are_no_subjects(written: Callable[[str, str], Path]) -> None:
    text = (
        "<http://made.up/g> {\n<http://made.up/a> a <http://made.up/T> .\n<http://made.up/b> a <http://made.up/T>\n}\n"
        "GRAPH _:g { }\n{ <http://made.up/c> a <http://made.up/T> }\n<http://made.up/g> a <http://made.up/T> ."
    )
    path = written("a.trig", text)
    assert [line(path, NamedNode(X + name)) for name in "abcg"] == [2, 3, 6, 7]
    assert line(written("a.ttl", text), NamedNode(X + "a")) is None


def test_lines_of_n_triples_are_told_whatever_the_way_of_writing(written: Callable[[str, str], Path]) -> None:
    text = (
        '# a comment\n\n<http://made.up/a> <http://made.up/p> "\\u0041 \\"b\\"\\n"@EN-gb .\r\n'
        '_:b <http://made.up/p> <http://made.up/a> .\n  <http://made.up/\\u00e9><http://made.up/p> "x" .\n'
        '<http://made.up/a> <http://made.up/p> "x" <http://made.up/graph> .\n'
    )
    path = written("a.nq", text)
    a, p = NamedNode(X + "a"), NamedNode(X + "p")
    assert line(path, a) == 3
    assert line(path, a, p, Literal('A "b"\n', language="en-gb")) == 3
    assert line(path, a, p, Literal("x")) == 6
    assert line(path, NamedNode(X + "é")) == 5
    assert line(path, BlankNode("b")) is None


LINES = st.lists(
    st.tuples(
        st.sampled_from(["", " ", "\t"]),
        st.sampled_from(["<urn:a>", "<urn:\\u0061>", "<urn:ab>", "<urn:é>", "<urn:\\u00e9>", "_:a"]),
        st.sampled_from(["<urn:p>", "<urn:q>"]),
        st.sampled_from(["<urn:a>", "<urn:é>", '"x"', '"\\u0078"', '"x"@EN', '"<urn:a>"']),
    ).map(lambda parts: f"{parts[0]}{' '.join(parts[1:])} ."),
    max_size=12,
)


@settings(max_examples=dear(75))
@given(LINES, st.sampled_from(["urn:a", "urn:é", "urn:ab", "urn:none"]), st.sampled_from([None, "urn:a", "x"]))
def test_a_search_finds_the_line_that_an_index_of_all_lines_has(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], focus: str, value: str | None
) -> None:
    path = tmp_path_factory.mktemp("lines") / "a.nt"
    path.write_text("\n".join(lines) + "\n")
    wanted = None if value is None else NamedNode(value) if value.startswith("urn:") else Literal(value)
    violation = Violation(NamedNode(focus), "Odd.", path=NamedNode("urn:p"), value=wanted, source=str(path))
    one, many = LineLocator(), LineLocator()
    for _ in range(SEARCHED):
        many.locate(violation)
    found, indexed = one.locate(violation), many.locate(violation)
    assert found is not None
    assert indexed is not None
    assert (found.line is None) == (indexed.line is None)
    if found.line is not None:
        parsed = [set(named(quad.triple)) for quad in parse(lines[found.line - 1], format=RdfFormat.N_TRIPLES)]
        assert f"<{focus}>" in parsed[0]
        triple = f"<{focus}> <urn:p> {wanted}"
        everything = {key for quad in parse("\n".join(lines), format=RdfFormat.N_TRIPLES) for key in named(quad.triple)}
        assert triple not in everything or triple in parsed[0]


def test_few_results_of_n_triples_need_no_index(
    written: Callable[[str, str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = written("a.nt", "".join(f'<urn:{n}> <urn:p> "{n}" .\n' for n in range(100)))
    monkeypatch.setattr("kg.shacl.line_numbers._LineIndex.from_file", lambda _: pytest.fail("all lines were indexed"))
    assert line(path, NamedNode("urn:42"), NamedNode("urn:p"), Literal("42")) == 43
    assert line(path, NamedNode("urn:1000")) is None


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.ttl", "<http://made.up/a> <http://made.up/p> << <http://made.up/a> <http://made.up/p> 1 >> ."),
        ("a.ttl", "<http://made.up/a> ?variable 1 ."),
        ("a.ttl", "<http://made.up/a> <http://made.up/p> " + "[ <http://made.up/p> " * (MAX_DEPTH + 1)),
        ("a.ttl", "undeclared:a <http://made.up/p> 1 . <http://made.up/a> <http://made.up/p> 1 ."),
        ("a.jsonld", '{"@id": "http://made.up/a", "http://made.up/p": 1}'),
        ("a.rdf", "<http://made.up/a>"),
    ],
)
def test_what_is_not_read_for_certain_has_no_line(name: str, text: str, written: Callable[[str, str], Path]) -> None:
    assert line(written(name, text), NamedNode(X + "a")) is None


def test_a_file_that_is_gone_a_literal_and_no_node_at_all_have_no_line(tmp_path: Path) -> None:
    assert line(tmp_path / "gone.ttl", NamedNode(X + "a")) is None
    assert line(tmp_path / "gone.ttl", Literal("a")) is None
    assert LineLocator().locate(Violation(None, "Odd.", source="a.ttl")) == Location("a.ttl")
    assert LineLocator().locate(Violation(NamedNode(X), "Odd.")) is None


# Texts that the two readers must read alike: names with escapes and dots, relative IRIs, strings with anything in them,
# comments between all tokens, and brackets in brackets. Each piece is valid Turtle wherever it stands.
SPACE = st.sampled_from([" ", "\n", " \t\n ", ' # it\'s a "comment" <x> .\n', "\r\n", "\n\n"])
IRI = st.sampled_from(
    [":a", ":b.c", "p:x", "p:a\\,b", "p:%41", ":", "<x>", "<#y>", "<../z?q='1'#f>", "<http://e.x/\\u00e9>", "<urn:x:1>"]
)
TEXT = st.text(st.sampled_from("ab \"'\\\n#<>.;:é"), max_size=8)


def quoted(text: str) -> st.SearchStrategy[str]:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("'", "\\'")
    short = escaped.replace("\n", "\\n")
    return st.sampled_from([f'"{short}"', f"'{short}'", f'"""{escaped}"""', f"'''{escaped}'''"])


LITERAL = st.one_of(
    st.tuples(TEXT.flatmap(quoted), st.sampled_from(["", "@en", "@de-AT", "^^:T", "^^<t>"])).map("".join),
    st.sampled_from(["1", "-2", "+3.50", "1.0e7", ".5", "true", "false", "4E-2"]),
)


def spaced(*parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.tuples(*(each for part in parts for each in (part, SPACE))).map("".join)


def predicates(value: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    values = st.lists(value, min_size=1, max_size=3).flatmap(lambda found: joined(found, ","))
    one = spaced(st.one_of(IRI, st.just("a")), values)
    return st.lists(one, min_size=1, max_size=3).flatmap(lambda found: joined(found, ";"))


def joined(parts: list[str], mark: str) -> st.SearchStrategy[str]:
    between = st.sampled_from([f" {mark} ", f"\n{mark}\n", f" {mark} # and\n"])
    return st.lists(between, min_size=len(parts), max_size=len(parts)).map(
        lambda marks: "".join(part + mark for part, mark in zip(parts, [*marks[1:], ""], strict=True))
    )


VALUE = st.recursive(
    st.one_of(IRI, LITERAL, st.sampled_from(["_:n", "_:m.1", "[]", "()"])),
    lambda inner: st.one_of(
        spaced(st.just("["), predicates(inner), st.just("]")),
        st.lists(inner, min_size=1, max_size=3).map(lambda values: f"({' '.join(values)}\n)"),
    ),
    max_leaves=6,
)
SUBJECT = st.one_of(IRI, st.sampled_from(["_:n", "[]", "()", "( 1 :a )"]))
STATEMENT = st.one_of(
    spaced(SUBJECT, predicates(VALUE), st.sampled_from([".", ";;."])),
    spaced(st.just("["), predicates(VALUE), st.just("] .")),
    st.sampled_from(["@prefix p: <http://e.x/p2/> .\n", "PREFIX p: <p3#>\n", "@base <other/> .\n", "BASE <#>\n"]),
)
DOCUMENT = st.lists(STATEMENT, max_size=6).map(lambda made: "@prefix : <d#> . @prefix p: <p/>.\n" + "".join(made))


def named(triple: Triple) -> list[str]:
    """The keys that a triple is found by."""
    if not isinstance(triple.subject, NamedNode):
        return []
    whole = [] if isinstance(triple.object, BlankNode) else [f"{triple.subject} {triple.predicate} {triple.object}"]
    return [str(triple.subject), *whole]


@settings(max_examples=dear(75))
@given(DOCUMENT)
def test_what_is_found_in_turtle_is_what_the_parser_finds_and_at_lines_in_order(text: str) -> None:
    parsed = {key for quad in parse(text, format=RdfFormat.TURTLE, base_iri=BASE) for key in named(quad.triple)}
    found = list(_TurtleParser(text, BASE, graphs=False).parse())
    assert {key for key, _ in found} == parsed
    assert [at for _, at in found] == sorted(at for _, at in found)
    lines = text.split("\n")
    for key, at in found:
        assert 1 <= at <= len(lines)
        if key.startswith("<urn:x:1>") and " " not in key:
            assert "<urn:x:1>" in lines[at - 1]


@settings(max_examples=dear(60))
@given(st.lists(STATEMENT, max_size=3), st.lists(spaced(SUBJECT, predicates(VALUE)), max_size=3), st.booleans())
def test_what_is_found_in_trig_is_what_the_parser_finds(outside: list[str], inside: list[str], closed: bool) -> None:
    block = "{" + ".\n".join(inside) + ("." if closed and inside else "") + "}"
    text = "@prefix : <d#> . @prefix p: <p/>.\n" + "".join(outside) + f"\n:graph {block} GRAPH <g> {block}\n{block}"
    parsed = {key for quad in parse(text, format=RdfFormat.TRIG, base_iri=BASE) for key in named(quad.triple)}
    assert {key for key, _ in _TurtleParser(text, BASE, graphs=True).parse()} == parsed


@settings(max_examples=dear(60))
@given(
    st.lists(st.tuples(st.sampled_from(["a", "b/c", "é"]), TEXT, st.sampled_from(["", "en", "zh-hans"])), max_size=8)
)
def test_each_statement_of_n_triples_is_found_at_its_first_line(said: list[tuple[str, str, str]]) -> None:
    triples = [
        Triple(NamedNode(X + name), NamedNode(X), Literal(text, language=tag) if tag else Literal(text))
        for name, text, tag in said
    ]
    written = [f"{triple} .".encode() for triple in triples]
    found = list(_parse_lines(written))
    assert found == [(key, at) for at, triple in enumerate(triples, 1) for key in named(triple)]
