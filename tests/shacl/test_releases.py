"""No term is lost after a release, and no meaning changes without a version that says so."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyoxigraph import Quad, RdfFormat, Triple, parse

from kg import bundle
from kg.errors import InvalidInputError
from kg.shacl.releases import release_faults, written
from kg.vocabulary import OWL, PREFIXES, RDFS, SKOS
from tests.examples import dear
from tests.ontology_release import FILE, MODULES

HEAD = "@base <https://w3id.org/quadcite/> . " + "".join(
    f"@prefix {name}: <{iri}> . " for name, iri in PREFIXES.items()
)
TERM = 'kg:Tide a owl:Class ; rdfs:subClassOf prov:Entity ; skos:definition "Water."@en ; rdfs:isDefinedBy <ns/tides> .'
USED = "kg:seenAt a owl:ObjectProperty ; schema:domainIncludes kg:Tide ; rdfs:isDefinedBy <ns/tides> ."
DEPRECATED = TERM + "kg:Tide owl:deprecated true ; dcterms:isReplacedBy prov:Entity ."


def module(version: str, *terms: str) -> list[Quad]:
    text = f'{HEAD} <ns/tides> a owl:Ontology ; owl:versionInfo "{version}" . ' + " ".join(terms)
    return list(parse(text, format=RdfFormat.TURTLE))


def faults(before: list[Quad], after: list[Quad]) -> list[tuple[str, str]]:
    return [
        (fault.severity, fault.message.partition(":")[0].partition(",")[0]) for fault in release_faults(before, after)
    ]


def test_what_did_not_change_has_no_faults() -> None:
    assert faults(module("1.0.0", TERM, USED), module("1.0.0", TERM, USED)) == []


@pytest.mark.parametrize("version", ["1.0.0", "1.1.0", "2.0.0"])
def test_a_term_that_was_not_deprecated_is_never_lost(version: str) -> None:
    [(severity, message)] = faults(module("1.0.0", TERM), module(version))
    assert (severity, message) == ("Violation", "A released term is gone")


def test_a_module_that_is_gone_loses_its_terms() -> None:
    assert faults(module("1.0.0", TERM), []) == [("Violation", "A released term is gone")]


@pytest.mark.parametrize(
    ("before", "after", "allowed"),
    [("1.4.2", "1.5.0", False), ("1.4.2", "2.0.0", True), ("0.1.3", "0.1.4", False), ("0.1.3", "0.2.0", True),
     ("0.0.1", "0.0.2", True), ("0.1.3", "1.0.0", True)],
)  # fmt: skip
def test_what_breaks_something_raises_the_first_number_that_is_not_0(before: str, after: str, allowed: bool) -> None:
    gone = faults(module(before, DEPRECATED), module(after))
    assert gone == ([] if allowed else [("Violation", "A deprecated term is gone")])
    other = TERM.replace("prov:Entity", "prov:Activity")
    [(severity, message)] = faults(module(before, TERM), module(after, other))
    assert (severity, message) == ("Warning" if allowed else "Violation", "A released term means something else")


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
    [fault] = release_faults(module("1.0.0", TERM), module("1.0.0", changed))
    assert fault.blocks
    assert str(fault.path).endswith(f"{path}>")
    assert "the version is 1.0.0, released was 1.0.0" in fault.message


def test_use_on_more_classes_breaks_nothing_and_use_on_fewer_does() -> None:
    wider = USED.replace("kg:Tide", "kg:Tide , prov:Entity")
    more = faults(module("1.0.0", TERM, USED), module("1.0.0", TERM, wider))
    assert more == [("Warning", "A term is used more widely")]
    assert faults(module("1.0.0", TERM, USED), module("1.1.0", TERM, wider)) == []
    assert [severity for severity, _ in faults(module("1.0.0", TERM, wider), module("1.1.0", TERM, USED))] == [
        "Violation"
    ]


def test_a_new_term_wants_a_new_version_and_a_new_definition_is_told() -> None:
    assert faults(module("1.0.0", TERM), module("1.0.0", TERM, USED)) == [("Warning", "A term was added")]
    assert faults(module("1.0.0", TERM), module("1.0.1", TERM, USED)) == []
    reworded = module("1.0.0", TERM.replace("Water.", "How high the water is."))
    assert faults(module("1.0.0", TERM), reworded) == [("Info", "A released term is defined in other words.")]


def test_to_deprecate_a_term_breaks_nothing() -> None:
    assert faults(module("1.0.0", TERM), module("1.0.0", DEPRECATED)) == []


def test_a_version_never_goes_back() -> None:
    assert faults(module("1.10.0", TERM), module("1.9.0", TERM)) == [
        ("Violation", "The version of a module never goes back")
    ]


def test_a_version_that_is_not_numbers_is_refused() -> None:
    with pytest.raises(InvalidInputError, match=r"1\.2\.0"):
        faults(module("1.0.0", TERM), module("soon", TERM))


OURS = [quad.triple for path in MODULES for quad in parse(path=path)]
MEANING = [
    each for each in OURS if each.predicate in (RDFS.subClassOf, RDFS.subPropertyOf, SKOS.inScheme, SKOS.notation)
]


@given(st.sampled_from(MEANING))
def test_to_take_away_any_statement_of_meaning_is_found(lost: Triple) -> None:
    found = release_faults(OURS, [each for each in OURS if each != lost])
    assert [fault.focus for fault in found if fault.blocks] == [lost.subject]


@settings(max_examples=dear(20), deadline=None)
@given(st.integers(min_value=0, max_value=2**32))
def test_what_is_written_is_the_same_for_the_same_statements_and_says_all_that_is_compared(order: int) -> None:
    text = written(random.Random(order).sample(OURS, len(OURS)))
    assert text == written(OURS)
    assert list(release_faults(parse(text, format=RdfFormat.N_TRIPLES), OURS)) == []


def test_the_release_that_is_kept_is_one_that_was_written() -> None:
    text = FILE.read_text(encoding="utf-8")
    assert FILE.parent.parent == bundle.folder("ontology")
    assert written(parse(text, format=RdfFormat.N_TRIPLES)) == text
    assert OWL.versionInfo.value in text
