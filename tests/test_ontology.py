"""Every term that Quadcite uses is declared; what its declaration has to say is a matter of shapes/tbox.ttl."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, Store, parse

from kg import bundle
from kg.vocabulary import KG, PREFIXES, SKOS

ROOT = Path(__file__).parent.parent
MODULES = sorted(bundle.folder("ontology").glob("*.ttl"))


def said() -> dict[NamedNode, dict[NamedNode, list[object]]]:
    found: dict[NamedNode, dict[NamedNode, list[object]]] = defaultdict(lambda: defaultdict(list))
    for path in MODULES:
        for quad in parse(path=path):
            assert isinstance(quad.subject, NamedNode), f"{path.name} has a blank node"
            found[quad.subject][quad.predicate].append(quad.object)
    return found


SAID = said()
TERMS = sorted((subject for subject in SAID if subject.value.startswith(KG.iri)), key=lambda term: term.value)


def used_terms() -> set[str]:
    """The local names of all kg: terms in Python and in the shapes."""
    names: set[str] = set()
    for path in [*(ROOT / "kg").rglob("*.py"), *(ROOT / "loaders").rglob("*.py")]:
        text = path.read_text(encoding="utf-8")
        names |= set(re.findall(r"\bKG\.([A-Za-z]\w*)", text)) | set(re.findall(r"(?<![\w:/])kg:([A-Za-z]\w*)", text))
    for path in (ROOT / "shapes").glob("*.ttl"):
        for quad in parse(path=path):
            for term in (quad.subject, quad.predicate, quad.object):
                if isinstance(term, NamedNode) and term.value.startswith(KG.iri):
                    names.add(term.value.removeprefix(KG.iri))
                elif isinstance(term, Literal):
                    names |= set(re.findall(r"(?<![\w:/])kg:([A-Za-z]\w*)", term.value))
    return names - {"iri"}


def test_every_term_in_use_is_declared() -> None:
    declared = {term.value.removeprefix(KG.iri) for term in TERMS}
    assert used_terms() - declared == set()


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.value.removeprefix(KG.iri))
def test_the_example_of_a_term_is_a_pattern_that_uses_it(term: NamedNode) -> None:
    for example in SAID[term][SKOS.example]:
        assert isinstance(example, Literal)
        assert re.search(rf"\bkg:{term.value.removeprefix(KG.iri)}\b", example.value)
        Store().query(f"SELECT * WHERE {{ {example.value} }}", prefixes=PREFIXES)


def test_shapes_have_no_anonymous_property_shapes() -> None:
    """A report names the shape that was broken, so each has a name."""
    sh = "http://www.w3.org/ns/shacl#"
    anonymous = [
        quad
        for path in (ROOT / "shapes").glob("*.ttl")
        for quad in parse(path=path)
        if quad.predicate.value == sh + "property" and isinstance(quad.object, BlankNode)
    ]
    assert anonymous == []
