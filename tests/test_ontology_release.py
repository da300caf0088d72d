"""No term is lost after a release, and no meaning changes without a version that says so."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import NamedNode, Quad, RdfFormat, Triple, parse

from kg.errors import InvalidInputError
from kg.vocabulary import KG, OWL, PREFIXES, RDFS, SCHEMA, SKOS
from tests.examples import dear
from tests.ontology_release import MODULES, RELEASED, find_release_faults, parse_modules, to_release

HEAD = "@base <https://w3id.org/quadcite/> . " + "".join(
    f"@prefix {name}: <{iri}> . " for name, iri in PREFIXES.items()
)
TERM = 'kg:Tide a owl:Class ; rdfs:subClassOf prov:Entity ; skos:definition "Water."@en ; rdfs:isDefinedBy <ns/tides> .'
USED = "kg:seenAt a owl:ObjectProperty ; schema:domainIncludes kg:Tide ; rdfs:isDefinedBy <ns/tides> ."
DEPRECATED = TERM + "kg:Tide owl:deprecated true ; dcterms:isReplacedBy prov:Entity ."


def module(version: str, *terms: str) -> list[Quad]:
    text = f'{HEAD} <ns/tides> a owl:Ontology ; owl:versionInfo "{version}" . ' + " ".join(terms)
    return list(parse(text, format=RdfFormat.TURTLE))


def faults(before: list[Quad], after: list[Quad]) -> list[tuple[str, NamedNode | None]]:
    found = find_release_faults(before, after)
    return [(fault.severity, fault.path if isinstance(fault.path, NamedNode) else None) for fault in found]


def test_what_did_not_change_has_no_faults() -> None:
    assert faults(module("1.0.0", TERM, USED), module("1.0.0", TERM, USED)) == []


@pytest.mark.parametrize("version", ["1.0.0", "1.1.0", "2.0.0"])
def test_a_term_that_was_not_deprecated_is_never_lost(version: str) -> None:
    assert faults(module("1.0.0", TERM), module(version)) == [("Violation", None)]


def test_a_module_that_is_gone_loses_its_terms() -> None:
    assert faults(module("1.0.0", TERM), []) == [("Violation", None)]


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [("1.4.2", "1.5.0", False), ("1.4.2", "2.0.0", True), ("0.1.3", "0.1.4", False), ("0.1.3", "0.2.0", True),
     ("0.0.1", "0.0.2", True), ("0.1.3", "1.0.0", True)],
)  # fmt: skip
def test_what_breaks_something_raises_the_first_number_that_is_not_0(before: str, after: str, allowed: bool) -> None:
    gone = faults(module(before, DEPRECATED), module(after))
    assert gone == ([] if allowed else [("Violation", None)])
    other = TERM.replace("prov:Entity", "prov:Activity")
    assert faults(module(before, TERM), module(after, other)) == [
        ("Warning" if allowed else "Violation", RDFS.subClassOf)
    ]


@pytest.mark.parametrize(
    ("changed", "path"),
    [
        (TERM.replace("a owl:Class", "a owl:ObjectProperty"), "type"),
        (TERM.replace("rdfs:subClassOf prov:Entity ;", ""), "subClassOf"),
        (TERM.replace("prov:Entity", "prov:Entity , prov:Plan"), "subClassOf"),
        (TERM + "kg:Tide skos:notation 't' .", "notation"),
    ],
)
def test_a_change_of_meaning_names_what_changed(changed: str, path: str) -> None:
    [fault] = find_release_faults(module("1.0.0", TERM), module("1.0.0", changed))
    assert fault.blocks
    assert str(fault.path).endswith(f"{path}>")
    assert "version 1.0.0, released 1.0.0" in fault.message


def test_use_on_more_classes_breaks_nothing_and_use_on_fewer_does() -> None:
    wider = USED.replace("kg:Tide", "kg:Tide , prov:Entity")
    more = faults(module("1.0.0", TERM, USED), module("1.0.0", TERM, wider))
    assert more == [("Warning", SCHEMA.domainIncludes)]
    assert faults(module("1.0.0", TERM, USED), module("1.1.0", TERM, wider)) == []
    assert [severity for severity, _ in faults(module("1.0.0", TERM, wider), module("1.1.0", TERM, USED))] == [
        "Violation"
    ]


def test_a_new_term_wants_a_new_version_and_a_new_definition_is_told() -> None:
    assert faults(module("1.0.0", TERM), module("1.0.0", TERM, USED)) == [("Warning", None)]
    assert faults(module("1.0.0", TERM), module("1.0.1", TERM, USED)) == []
    reworded = module("1.0.0", TERM.replace("Water.", "How high the water is."))
    assert faults(module("1.0.0", TERM), reworded) == [("Info", SKOS.definition)]


def test_to_deprecate_a_term_breaks_nothing() -> None:
    assert faults(module("1.0.0", TERM), module("1.0.0", DEPRECATED)) == []


def test_a_version_never_goes_back() -> None:
    assert faults(module("1.10.0", TERM), module("1.9.0", TERM)) == [("Violation", OWL.versionInfo)]


def test_a_version_that_is_not_numbers_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"1\.2\.0"):
        faults(module("1.0.0", TERM), module("soon", TERM))


OURS = [quad.triple for quad in parse_modules()]
MEANING = [
    each for each in OURS if each.predicate in (RDFS.subClassOf, RDFS.subPropertyOf, SKOS.inScheme, SKOS.notation)
]


@pytest.mark.long
@given(st.sampled_from(MEANING))
def test_to_take_away_any_statement_of_meaning_is_found(lost: Triple) -> None:
    found = find_release_faults(OURS, [each for each in OURS if each != lost])
    assert [fault.focus for fault in found if fault.blocks] == [lost.subject]


@settings(max_examples=dear(20))
@given(st.integers(min_value=0, max_value=2**32))
def test_what_is_written_is_the_same_for_the_same_statements_and_says_all_that_is_compared(order: int) -> None:
    text = to_release(random.Random(order).sample(OURS, len(OURS)))
    assert text == to_release(OURS)
    assert list(find_release_faults(parse(text, format=RdfFormat.N_TRIPLES), OURS)) == []


def released() -> list[Triple]:
    return [quad.triple for quad in parse(path=RELEASED)]


def test_the_ontology_breaks_nothing_of_the_last_release() -> None:
    assert [fault for fault in find_release_faults(released(), OURS) if fault.blocks] == []


def test_without_a_module_its_released_terms_are_removed() -> None:
    others = [quad for path in MODULES if path.name != "climate.ttl" for quad in parse(path=path)]
    faults = [fault for fault in find_release_faults(released(), others) if fault.blocks]
    assert KG.Passage in {fault.focus for fault in faults}
    assert all("removed" in fault.message for fault in faults)


def test_the_release_that_is_kept_is_one_that_was_to_release() -> None:
    text = RELEASED.read_text(encoding="utf-8")
    assert to_release(parse(text, format=RdfFormat.N_TRIPLES)) == text
    assert OWL.versionInfo.value in text
