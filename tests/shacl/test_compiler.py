"""The queries that shapes are compiled to find what SHACL says: the places where an engine lets a fault pass."""

from __future__ import annotations

from collections import Counter

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Quad, QuerySolutions, RdfFormat, Store, Triple, parse

from kg.errors import InvalidInputError
from kg.shacl import engine, pyshacl_engine
from kg.shacl.data_graph import DataGraph
from kg.shacl.property_paths import to_sparql
from kg.shacl.report import Violation
from kg.shacl.report_writers import to_text
from kg.shacl.shapes import Shapes
from kg.vocabulary import RDF, SH

PREFIXES = """
@prefix sh: <http://www.w3.org/ns/shacl#> .
@prefix rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix : <https://example.org/> .
"""


def read(text: str) -> list[Triple]:
    return [quad.triple for quad in parse(PREFIXES + text, format=RdfFormat.TURTLE)]


def check(shapes: str, data: str) -> list[Violation]:
    return Shapes(read(shapes)).check(read(data))


def local(term: object) -> str:
    return term.value.removeprefix("https://example.org/") if isinstance(term, NamedNode | Literal) else str(term)


def found(shapes: str, data: str) -> list[tuple[str, str | None]]:
    """The focus nodes and values of the results, in order."""
    results = check(shapes, data)
    return sorted((local(each.focus), None if each.value is None else local(each.value)) for each in results)


# -- patterns


@pytest.mark.parametrize("pattern", ["^(?=.*a).*$", r"^(a|b)\\1$", "a(?!b)", "(?<=a)b"])
def test_a_pattern_that_the_engine_refuses_is_checked_by_pyshacl_and_said_so(pattern: str) -> None:
    suite = Shapes(read(f':S a sh:NodeShape ; sh:targetNode "xyz" ; sh:pattern "{pattern}" .'))
    assert list(suite.uncompiled) == [NamedNode("https://example.org/S")]
    assert "cannot match the pattern" in str(suite.uncompiled)
    assert [local(each.focus) for each in suite.check([])] == ["xyz"]
    text = to_text([], "text", checked="no data", by_pyshacl=suite.describe_uncompiled())
    assert "run by pySHACL: <https://example.org/S> (the engine" in text


def test_only_the_shape_that_does_not_compile_is_left_to_pyshacl() -> None:
    suite = Shapes(
        read(
            ':S a sh:NodeShape ; sh:targetNode "xyz" ; sh:property [ sh:path :p ; sh:node [ sh:pattern "(?=a)a" ] ] .'
            ":T a sh:NodeShape ; sh:targetSubjectsOf :p ; sh:property [ sh:path :p ; sh:maxCount 1 ] ."
        )
    )
    assert [local(node) for node in suite.uncompiled] == ["S"]
    [result] = suite.check(read(":x :p 1, 2 ."))
    assert (local(result.focus), result.component) == ("x", SH.MaxCountConstraintComponent)


@pytest.mark.parametrize(
    "path", [":p", "[ sh:inversePath :q ]", "( :p :p )", "[ sh:alternativePath ( :p :q ) ]", "[ sh:zeroOrMorePath :p ]"]
)
@pytest.mark.parametrize("allowed", ["sh:property [ sh:path :p ]", "sh:ignoredProperties ( :q )", "sh:in ( :a :b :c )"])
def test_a_closed_property_shape_closes_its_values_as_pyshacl_does(path: str, allowed: str) -> None:
    shapes = read(
        f":S a sh:NodeShape ; sh:targetNode :a, :b ; sh:property [ sh:path {path} ; sh:closed true ; {allowed} ] ."
    )
    data = read(":a :p :b ; :q :c . :b :p :c ; :q :a, 1 . :c :p :a, 2 ; :q :b . :d :q :a .")

    def key(each: Violation) -> tuple[str, ...]:
        return tuple(map(str, (each.focus, each.value, each.path, each.component)))

    ours = Counter(map(key, Shapes(shapes).check(data)))
    assert ours == Counter(map(key, pyshacl_engine.validate(shapes, data)))
    assert ours


@pytest.mark.parametrize(
    "shapes", [":S sh:node :T . :T sh:node :S .", ":S sh:property [ sh:path :p ; sh:node :S ; sh:class :C ] ."]
)
def test_shapes_that_refer_to_themselves_are_left_to_pyshacl(shapes: str) -> None:
    suite = Shapes(read(f":S a sh:NodeShape ; sh:targetNode :a . :R sh:targetNode :a ; sh:class :C . {shapes}"))
    assert [local(node) for node in suite.uncompiled] == ["S"]
    assert ("a", "a") in {(local(each.focus), local(each.value)) for each in suite.check(read(":a :p :a ."))}


def test_a_class_of_owl_is_a_target_with_a_remark() -> None:
    for kind, remarks in (("owl:Class", 1), ("rdfs:Class", 0), ("rdfs:Class, owl:Class", 0)):
        suite = Shapes(read(f":C a sh:NodeShape, {kind} ; sh:nodeKind sh:Literal ."))
        assert [local(each.focus) for each in suite.check(read(":a a :C ."))] == ["a"]
        assert len(suite.notes) == remarks


def test_flags_of_a_pattern_count() -> None:
    shapes = ':S a sh:NodeShape ; sh:targetNode "ABC", "xyz" ; sh:pattern "^a" ; sh:flags "i" .'
    assert found(shapes, "") == [("xyz", "xyz")]


def test_a_blank_node_matches_no_pattern_and_has_no_length() -> None:
    shapes = (
        ':S sh:targetSubjectsOf :p ; sh:property [ sh:path :p ; sh:pattern "." ], [ sh:path :p ; sh:minLength 0 ] .'
    )
    assert len(check(shapes, ":x :p [] .")) == 2


# -- values


@pytest.mark.parametrize("term", ["sh:lessThan", "sh:lessThanOrEquals"])
def test_values_that_cannot_be_compared_are_not_in_order(term: str) -> None:
    shapes = f":S sh:targetSubjectsOf :p ; sh:property [ sh:path :p ; {term} :q ] ."
    assert found(shapes, ':x :p 1 ; :q "a" .') == [("x", "1")]
    assert found(shapes, ":x :p :a ; :q :b .") == [("x", "a")]
    assert found(shapes, ":x :p 1 ; :q 2 .") == []
    assert found(shapes, ":x :p 2 ; :q 1, 0 .") == [("x", "2"), ("x", "2")]


def test_times_with_and_without_a_zone_are_not_in_order() -> None:
    shapes = ':S sh:targetObjectsOf :p ; sh:minInclusive "2020-01-01T00:00:00Z"^^xsd:dateTime .'
    assert len(found(shapes, ':x :p "2020-01-01T00:00:00"^^xsd:dateTime .')) == 1


def test_in_and_has_value_are_about_terms_not_values() -> None:
    one_of = ":S sh:targetObjectsOf :p ; sh:in ( 1 :a ) ."
    assert found(one_of, ":x :p 1, 1.0, 01, :a .") == [("01", "01"), ("1.0", "1.0")]
    has = ":S sh:targetSubjectsOf :p ; sh:property [ sh:path :p ; sh:hasValue 1 ] ."
    assert found(has, ":x :p 1.0 . :y :p 01 . :z :p 1 .") == [("x", None), ("y", None)]


def test_a_long_list_is_compared_by_terms_too() -> None:
    shapes = f":S sh:targetObjectsOf :p ; sh:in ( {' '.join(map(str, range(30)))} ) ."
    assert found(shapes, ":x :p 7, 07, 30 .") == [("07", "07"), ("30", "30")]


def test_nothing_is_in_an_empty_list() -> None:
    assert found(":S sh:targetObjectsOf :p ; sh:in () .", ":x :p 1 .") == [("1", "1")]


def test_a_language_is_the_same_in_any_case_and_each_that_stands_twice_is_a_result() -> None:
    shapes = ":S sh:targetSubjectsOf :p ; sh:property [ sh:path :p ; sh:uniqueLang true ] ."
    assert found(shapes, ':x :p "a"@en, "b"@EN, "a"@de, "b"@de, "a"@en-gb, "c" . :y :p "a"@en, "a"@de, "a", "b" .') == [
        ("x", None),
        ("x", None),
    ]


# -- lexical forms


@pytest.mark.parametrize(
    ("datatype", "sound", "broken"),
    [
        ("xsd:byte", ['"12"^^xsd:byte', '"012"^^xsd:byte'], ['"300"^^xsd:byte', "12", '"a"^^xsd:byte']),
        ("xsd:integer", ["01", "+5"], ['"1"^^xsd:int', '"one"^^xsd:integer', "1.0", ":a"]),
        ("xsd:decimal", ["0.90", ".5"], ["1", '"1e0"^^xsd:decimal']),
        ("xsd:boolean", ["true", '"1"^^xsd:boolean'], ['"yes"^^xsd:boolean', "1"]),
        ("xsd:date", ['"2020-02-29"^^xsd:date'], ['"2021-02-29"^^xsd:date', '"2020"^^xsd:date']),
        ("xsd:dateTime", ['"2020-01-01T00:00:00+00:00"^^xsd:dateTime'], ['"2020-01-01"^^xsd:dateTime']),
        ("xsd:double", ["1e0", '"INF"^^xsd:double', '"NaN"^^xsd:double'], ['"inf"^^xsd:double', "1.0"]),
        ("xsd:string", ['"a"'], ['"a"@en', '"a"^^xsd:token']),
        ("rdf:langString", ['"a"@en-GB'], ['"a"']),
        (":own", ['"x"^^:own'], ['"x"']),
    ],
)
def test_a_datatype_is_that_of_the_literal_as_it_is_written(datatype: str, sound: list[str], broken: list[str]) -> None:
    shapes = f":S sh:targetObjectsOf :p ; sh:datatype {datatype} ."
    results = check(shapes, f":x :p {', '.join([*sound, *broken])} .")
    assert {str(each.value) for each in results} == {
        str(triple.object) for triple in read(f":x :p {', '.join(broken)} .")
    }


def test_lexical_forms_count_where_the_engine_would_keep_values() -> None:
    longest = ":S sh:targetObjectsOf :p ; sh:maxLength 1 ."
    assert found(longest, ":x :p 01, 1 .") == [("01", "01")]
    most = ":S sh:targetSubjectsOf :p ; sh:property [ sh:path :p ; sh:maxCount 1 ] ."
    assert found(most, ":x :p 01, 1 .") == [("x", None)]
    range_ = ":S sh:targetObjectsOf :p ; sh:minInclusive 2 ."
    assert found(range_, ':x :p 01, 02, "003"^^xsd:int, 1.50 .') == [("01", "01"), ("1.50", "1.50")]
    less = ":S sh:targetSubjectsOf :p ; sh:property [ sh:path :p ; sh:lessThan :q ] ."
    assert found(less, ":x :p 01 ; :q 002 . :y :p 03 ; :q 002 .") == [("y", "03")]


def test_a_query_of_a_shape_sees_values_and_its_results_are_as_written() -> None:
    shapes = """:S sh:targetSubjectsOf :p ; sh:sparql [ sh:select
      "SELECT $this ?value WHERE { $this <https://example.org/p> ?value FILTER(?value > 1) }" ] ."""
    assert found(shapes, ":x :p 01, 002 .") == [("x", "002")]


def test_in_a_store_an_integer_may_have_been_of_any_type_that_it_fits() -> None:
    store = Store()
    store.load(PREFIXES + ':x :p "12"^^xsd:byte, "300"^^xsd:short .', RdfFormat.TURTLE)
    results = Shapes(read(":S sh:targetObjectsOf :p ; sh:datatype xsd:byte .")).validate(DataGraph.from_store(store))
    assert [local(each.focus) for each in results] == ["300"]


# -- nodes


def test_blank_nodes_are_focus_nodes_like_others() -> None:
    shapes = """:S sh:targetClass :C ;
      sh:property [ sh:path :p ; sh:node [ sh:property [ sh:path :q ; sh:minCount 1 ] ] ] ;
      sh:sparql [ sh:select "SELECT $this WHERE { FILTER NOT EXISTS { $this <https://example.org/p> ?any } }" ] ."""
    data = read("[] a :C ; :p [ ] . [] a :C ; :p [ :q 1 ] . [] a :C .")
    results = Shapes(read(shapes)).check(data)
    assert Counter(type(each.focus) for each in results) == {BlankNode: 2}
    assert {each.focus for each in results} <= {triple.subject for triple in data}


@pytest.mark.parametrize("path", ["[ sh:zeroOrMorePath :p ]", "[ sh:zeroOrOnePath :p ]"])
def test_a_path_of_length_zero_leads_to_a_node_that_the_data_do_not_hold(path: str) -> None:
    wanted = f"[ sh:path {path} ; sh:nodeKind sh:BlankNode ; sh:minCount 1 ]"
    shapes = f':S sh:targetNode :absent, "text" ; sh:property {wanted} .'
    assert found(shapes, "") == [("absent", "absent"), ("text", "text")]


def test_a_literal_is_reached_by_an_inverse_path() -> None:
    shapes = ':S sh:targetNode "a" ; sh:property [ sh:path [ sh:inversePath :p ] ; sh:maxCount 1 ] .'
    assert found(shapes, ':x :p "a" . :y :p "a" .') == [("a", None)]


def test_instances_of_a_class_below_another_are_instances_of_both() -> None:
    shapes = ":S sh:targetClass :A ; sh:property [ sh:path :p ; sh:class :A ] ."
    data = ":B rdfs:subClassOf :A . :C rdfs:subClassOf :B . :x a :C ; :p :y, :x . :z a :D ; :p :y ."
    assert found(shapes, data) == [("x", "y")]


def test_a_class_without_a_name_may_stand_below_another() -> None:
    shapes = ":S sh:targetClass :A ; sh:property [ sh:path :p ; sh:minCount 1 ] ."
    assert found(shapes, "_:b rdfs:subClassOf :A . :x a _:b .") == [("x", None)]


def test_a_shape_that_is_a_class_looks_at_its_instances() -> None:
    shapes = ":A a rdfs:Class, sh:NodeShape ; sh:property [ sh:path :p ; sh:minCount 1 ] ."
    assert found(shapes, ":x a :A . :B rdfs:subClassOf :A . :y a :B ; :p 1 .") == [("x", None)]


def test_a_shape_without_values_fails_its_least_count_only() -> None:
    shapes = (
        ":S sh:targetNode :x ; sh:property [ sh:path :p ; sh:minCount 2 ; sh:maxCount 3 ; sh:datatype xsd:string ] ."
    )
    assert [each.component for each in check(shapes, "")] == [SH.MinCountConstraintComponent]
    assert found(shapes, ':x :p "a", "b" .') == []
    assert found(shapes, ':x :p "a", "b", "c", "d" .') == [("x", None)]


# -- shapes of shapes


def test_qualified_values_are_counted_where_no_sibling_takes_them() -> None:
    shapes = """:Hand sh:targetClass :Hand ;
      sh:property [ sh:path :digit ; sh:qualifiedValueShape [ sh:class :Thumb ] ;
                    sh:qualifiedMinCount 1 ; sh:qualifiedMaxCount 1 ; sh:qualifiedValueShapesDisjoint true ] ,
                  [ sh:path :digit ; sh:qualifiedValueShape [ sh:class :Finger ] ;
                    sh:qualifiedMinCount 2 ; sh:qualifiedValueShapesDisjoint true ] ."""
    assert found(shapes, ":h a :Hand ; :digit :t, :f, :g . :t a :Thumb . :f a :Finger . :g a :Finger .") == []
    both = ":h a :Hand ; :digit :t, :f, :g . :t a :Thumb, :Finger . :f a :Finger . :g a :Finger ."
    assert [(str(each.focus), each.component) for each in check(shapes, both)] == [
        ("<https://example.org/h>", SH.QualifiedMinCountConstraintComponent)
    ]


def test_any_severity_makes_a_value_unfit_for_a_shape_that_refers_to_it() -> None:
    shapes = """:S sh:targetSubjectsOf :p ; sh:property [ sh:path :p ; sh:node :T ] .
      :T a sh:NodeShape ; sh:severity sh:Info ; sh:nodeKind sh:IRI ."""
    [result] = check(shapes, ":x :p 1 .")
    assert (result.severity, [detail.severity for detail in result.details]) == ("Violation", ["Info"])


def test_a_deactivated_shape_is_conformed_to() -> None:
    shapes = (
        """:S sh:targetSubjectsOf :p ; sh:not :T . :T a sh:NodeShape ; sh:deactivated true ; sh:nodeKind sh:Literal ."""
    )
    assert found(shapes, ":x :p 1 .") == [("x", "x")]


def test_what_is_wrong_deep_below_makes_the_node_above_unfit() -> None:
    shapes = """:S sh:targetClass :C ;
      sh:not [ sh:property [ sh:path :p ; sh:property [ sh:path :q ; sh:minCount 1 ] ] ] ."""
    assert found(shapes, ":x a :C ; :p :y . :z a :C ; :p [ :q 1 ] .") == [("z", "z")]


# -- SPARQL


def test_a_group_of_its_own_sees_the_focus_node() -> None:
    shapes = """:S sh:targetClass :C ; sh:sparql [ sh:message "{?text} of {$this}" ; sh:select \"\"\"
      SELECT $this ?text WHERE {
        { FILTER($this != <https://example.org/y>) BIND("one" AS ?text) }
        UNION { BIND(IF($this = <https://example.org/y>, "two", 1/0) AS ?text) FILTER(BOUND(?text)) }
        UNION { { SELECT $this (COUNT(?o) AS ?n) WHERE { $this ?p ?o } GROUP BY $this HAVING (COUNT(?o) > 2) }
                BIND("three" AS ?text) }
        OPTIONAL { FILTER($this = <https://example.org/x>) BIND(1 AS ?one) }
      }\"\"\" ] ."""
    results = check(shapes, ":x a :C . :y a :C ; :p 1, 2 .")
    assert sorted(each.message for each in results) == [
        "one of https://example.org/x",
        "three of https://example.org/y",
        "two of https://example.org/y",
    ]


def test_a_subquery_inside_exists_sees_the_focus_node() -> None:
    shapes = """:S sh:targetClass :C ; sh:sparql [ sh:select \"\"\"SELECT $this WHERE {
      FILTER NOT EXISTS {
        { SELECT $this WHERE { FILTER($this = <https://example.org/x>) } }
        UNION { { FILTER($this = <https://example.org/z>) } }
      } }\"\"\" ] ."""
    assert found(shapes, ":x a :C . :y a :C . :z a :C .") == [("y", "y")]


@pytest.mark.parametrize(
    ("query", "reason"),
    [
        ("SELECT $this ?value WHERE { $this ?p ?value } ORDER BY ?value LIMIT 1", "LIMIT"),
        ("SELECT $this ?g WHERE { GRAPH ?g { ?s ?p ?o FILTER(?s = $this) } }", "GRAPH"),
    ],
)
def test_a_query_about_one_node_at_a_time_is_run_by_pyshacl(query: str, reason: str) -> None:
    suite = Shapes(read(f':S a sh:NodeShape ; sh:targetClass :C ; sh:sparql [ sh:select "{query}" ] .'))
    assert reason in str(suite.uncompiled)
    if reason == "LIMIT":
        assert len(suite.check(read(":x a :C . :y a :C ."))) == 2


@pytest.mark.parametrize("target", [":absent", '"x"'])
def test_a_query_whose_path_may_be_of_length_zero_sees_a_target_that_the_data_do_not_hold(target: str) -> None:
    shapes = f""":S sh:targetNode {target} ; sh:sparql [ sh:select
      "SELECT $this ?value WHERE {{ $this <https://example.org/p>* ?value }}" ] ."""
    assert [value for _, value in found(shapes, ":a :p :b .")] == [target.strip(':"')]
    suite = Shapes(read(shapes))
    assert not suite.uncompiled
    assert "of length zero" in suite.describe_uncompiled()["https://example.org/S"]
    held = f":a :p {target} ." if target[0] == '"' else f"{target} :p :a ."
    assert sorted(value for _, value in found(shapes, held)) == sorted(
        [target.strip(':"')] if target[0] == '"' else ["a", "absent"]
    )


def test_a_query_that_pyshacl_does_not_understand_is_a_fault_of_the_shapes() -> None:
    shapes = """[] sh:targetNode :a ; sh:path [ sh:oneOrMorePath [ sh:zeroOrMorePath :p ] ] ; sh:sparql [ sh:select
      "SELECT $this WHERE { $this $PATH ?x FILTER(?x != $currentShape) }" ] ."""
    with pytest.raises(InvalidInputError, match="Invalid shapes"):
        check(shapes, ":a :p :b .")


@pytest.mark.parametrize("counted", ["COUNT(?x)", "COUNT(*)", "SUM(?one)", "STRLEN(GROUP_CONCAT(STR(?one)))"])
def test_a_query_counts_a_triple_once_that_stands_in_several_graphs(counted: str) -> None:
    suite = Shapes(
        read(
            f""":S sh:targetSubjectsOf :p ; sh:sparql [ sh:select '''SELECT $this WHERE {{
            $this <https://example.org/p> ?x BIND(1 AS ?one) }} GROUP BY $this HAVING({counted} > 1)''' ] ."""
        )
    )
    store = Store()
    for graph in ("urn:one", "urn:two"):
        store.extend([Quad(*triple, NamedNode(graph)) for triple in read(":a :p :x . :b :p :x , :y .")])
    assert [local(each.focus) for each in suite.validate(DataGraph.from_store(store))] == ["b"]


def test_a_query_that_counts_sees_the_graphs_by_name() -> None:
    suite = Shapes(
        read(
            """:S sh:targetSubjectsOf :p ; sh:sparql [ sh:select '''SELECT $this WHERE {
            GRAPH ?g { $this <https://example.org/p> ?x } } GROUP BY $this HAVING(COUNT(?g) > 1)''' ] ."""
        )
    )
    store = Store()
    store.extend([Quad(*triple, NamedNode("urn:one")) for triple in read(":a :p :x . :b :p :x .")])
    store.extend([Quad(*triple, NamedNode("urn:two")) for triple in read(":a :p :x .")])
    assert [local(each.focus) for each in suite.validate(DataGraph.from_store(store))] == ["a"]


def test_messages_have_their_languages() -> None:
    shapes = ':S sh:targetNode 1 ; sh:nodeKind sh:IRI ; sh:message "Kein IRI"@de, "No IRI"@en .'
    [result] = check(shapes, "")
    assert result.message == "No IRI"
    assert {message.language for message in result.messages} == {"de", "en"}


# -- data


def test_one_graph_of_a_store_is_checked_or_all_of_them_as_one() -> None:
    store, graphs = Store(), [NamedNode("https://example.org/g"), NamedNode("https://example.org/h")]
    person, name = NamedNode("https://example.org/x"), NamedNode("https://example.org/name")
    store.add(Quad(person, RDF.type, NamedNode("https://example.org/C"), graphs[0]))
    for graph in graphs:
        store.add(Quad(person, name, Literal("X"), graph))
    store.add(Quad(person, name, Literal("Y"), graphs[1]))
    suite = Shapes(read(":S sh:targetClass :C ; sh:property [ sh:path :name ; sh:maxCount 1 ] ."))
    assert suite.validate(DataGraph.from_store(store, graphs[0])) == []
    assert suite.validate(DataGraph.from_store(store, graphs[1])) == []
    assert len(suite.validate(DataGraph.from_store(store))) == 1


def test_every_kind_of_path_is_followed() -> None:
    shapes = """:S sh:targetNode :a ; sh:property [ sh:nodeKind sh:Literal ;
      sh:path ( [ sh:alternativePath ( :p [ sh:inversePath :q ] ) ] [ sh:oneOrMorePath :r ] ) ] ."""
    data = ":a :p :b . :c :q :a . :b :r :d . :d :r :e . :c :r :f ."
    results = check(shapes, data)
    assert sorted(local(each.value) for each in results) == ["d", "e", "f"]
    assert results[0].path is not None
    assert to_sparql(results[0].path) == (
        "((<https://example.org/p>|^<https://example.org/q>)/(<https://example.org/r>)+)"
    )


# -- shapes that are none


def test_an_entailment_regime_is_refused_not_passed_over() -> None:
    with pytest.raises(InvalidInputError, match=r"sh:entailment: .*/entailment/RDFS"):
        Shapes(read(":shapes sh:entailment <http://www.w3.org/ns/entailment/RDFS> ."))


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        (":S a sh:PropertyShape ; sh:minCount 1 .", "sh:path: a property shape must have"),
        (":S a sh:PropertyShape ; sh:path :p, :q .", "sh:path: a shape must have at most one"),
        (":S a sh:PropertyShape ; sh:path ( :p ) .", "at least two"),
        (":S a sh:PropertyShape ; sh:path [ sh:inversePath :p, :q ] .", "exactly one sh:inversePath"),
        (":S a sh:PropertyShape ; sh:path _:b . _:b sh:inversePath _:b .", "must not contain itself"),
        (":S a sh:NodeShape ; sh:minCount 1 .", "sh:minCount: only a property shape"),
        (':S a sh:PropertyShape ; sh:path :p ; sh:minCount "1" .', "sh:minCount: the value must be an xsd:integer"),
        (":S a sh:NodeShape ; sh:nodeKind sh:Thing .", "sh:nodeKind: the value must be one of sh:IRI"),
        (":S a sh:NodeShape ; sh:datatype xsd:int, xsd:byte .", "sh:datatype: a shape must have at most one"),
        (':S a sh:NodeShape ; sh:class "C" .', "sh:class: the value must be an IRI"),
        (":S a sh:NodeShape ; sh:in ( 1 .", "Turtle"),
        (":S a sh:NodeShape ; sh:in 1 .", "sh:in: an RDF list"),
        (":S a sh:NodeShape ; sh:minCuont 1 .", "sh:minCount?"),
        (':S a sh:NodeShape ; sh:pattern "(" .', "sh:pattern: '(' is not a valid regular"),
        (':S a sh:NodeShape ; sh:pattern "a" ; sh:flags "k" .', "sh:flags: the value must consist of"),
        (":S a sh:NodeShape ; sh:targetNode [] .", "sh:targetNode: the values must be IRIs or literals"),
        (":S a sh:NodeShape ; sh:property :T . :T a sh:NodeShape .", "sh:property: the value must be a property shape"),
        (":S a sh:NodeShape ; sh:message 1 .", "sh:message: the value must be a string"),
        (':S a sh:NodeShape ; sh:severity "bad" .', "sh:severity: the value must be an IRI"),
        (
            ":S sh:path :p ; sh:qualifiedValueShape [ sh:class :C ] .",
            "sh:qualifiedValueShape: the shape must also have",
        ),
        (
            ':S a sh:NodeShape ; sh:sparql [ sh:select "SELECT $this WHERE {" ] .',
            "sh:select: the query is not valid SPARQL",
        ),
        (
            ':S a sh:NodeShape ; sh:sparql [ sh:select "SELECT $this WHERE { $this x:p 1 }" ] .',
            "undeclared prefix x:",
        ),
        (':S a sh:NodeShape ; sh:sparql [ sh:select "ASK { $this ?p 1 }" ] .', "the value must be a SELECT query"),
        (':S a sh:NodeShape ; sh:sparql [ sh:message "Odd." ] .', "must have one query"),
    ],
)
def test_an_ill_formed_shape_is_refused_with_the_shape_the_term_and_the_rule(shape: str, said: str) -> None:
    if said == "Turtle":
        with pytest.raises(SyntaxError):
            read(shape)
        return
    with pytest.raises(InvalidInputError) as refused:
        Shapes(read(shape))
    assert said in str(refused.value)
    assert "https://example.org/S" in str(refused.value) or "_:" in str(refused.value)


# -- plans


def test_where_most_values_are_the_same_each_is_tested_once_and_every_node_that_has_a_wrong_one_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(engine, "_SAMPLE", 20)
    suite = Shapes(
        read(
            """:S a sh:NodeShape ; sh:targetClass :C ;
            sh:property [ sh:path :p ; sh:nodeKind sh:IRI ; sh:pattern "[ab]$" ] ;
            sh:property [ sh:path :q ; sh:class :D ] ."""
        )
    )
    said = [":b a :D ."]
    for number in range(200):
        kind = "Other" if number % 10 == 1 else "C"
        said.append(f':n{number} a :{kind} ; :p :a ; :q :b ; :r "{number}" .')
    said.append(":n0 :p :c . :n1 :p :c . :n2 :p 1 ; :q :c . :n11 :q :c .")
    store = Store()
    for graph in ("g", "h"):
        home = NamedNode(f"https://example.org/{graph}")
        store.extend(Quad(each.subject, each.predicate, each.object, home) for each in read(" ".join(said)))
    held = DataGraph.from_store(store)
    asked: list[str] = []
    rows = held.select

    def kept(query: str, **ways: bool) -> QuerySolutions:
        asked.append(query)
        return rows(query, **ways)

    monkeypatch.setattr(held, "select", kept)
    results = [(local(each.focus), local(each.value), local(each.component)) for each in suite.results(held)]
    assert sorted((focus, value, component.rpartition("#")[2]) for focus, value, component in results) == [
        ("n0", "c", "PatternConstraintComponent"),
        ("n2", "1", "NodeKindConstraintComponent"),
        ("n2", "1", "PatternConstraintComponent"),
        ("n2", "c", "ClassConstraintComponent"),
    ]
    assert sum("GROUP BY ?value HAVING" in query for query in asked) == 2
