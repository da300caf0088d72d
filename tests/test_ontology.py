"""Every term that Quadcite uses is declared, says what it means, and promises nothing that data can break."""

from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest
from pyoxigraph import BlankNode, Literal, NamedNode, parse

from kg import bundle
from kg.vocabulary import BASE, DCTERMS, KG, OWL, RDF, RDFS, SKOS, mint

ROOT = Path(__file__).parent.parent
SERVICE = NamedNode("http://www.w3.org/ns/sparql-service-description#Service")
MODULES = sorted(bundle.folder("ontology").glob("*.ttl"))
STANDARDS = ("http://www.w3.org/", "http://purl.org/", "http://xmlns.com/", "http://data.europa.eu/", "http://schema.org/",
             "http://www.opengis.net/")  # fmt: skip


def said() -> dict[NamedNode, dict[NamedNode, list[object]]]:
    found: dict[NamedNode, dict[NamedNode, list[object]]] = defaultdict(lambda: defaultdict(list))
    for path in MODULES:
        for quad in parse(path=path):
            assert isinstance(quad.subject, NamedNode), f"{path.name} has a blank node"
            found[quad.subject][quad.predicate].append(quad.object)
    return found


SAID = said()
TERMS = sorted((subject for subject in SAID if subject.value.startswith(KG.iri)), key=lambda term: term.value)
CLASSES = [term for term in TERMS if OWL.Class in SAID[term][RDF.type]]
CODES = [subject for subject in SAID if SKOS.Concept in SAID[subject][RDF.type]]


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
def test_a_term_says_what_it_is_and_where_it_is_defined(term: NamedNode) -> None:
    properties = SAID[term]
    [label], [definition] = properties[RDFS.label], properties[SKOS.definition]
    assert isinstance(label, Literal)
    assert isinstance(definition, Literal)
    assert (label.language, definition.language) == ("en", "en")
    [module] = properties[RDFS.isDefinedBy]
    assert isinstance(module, NamedNode)
    assert OWL.Ontology in SAID[module][RDF.type]
    [kind] = properties[RDF.type]
    assert kind in (OWL.Class, OWL.ObjectProperty, OWL.DatatypeProperty, SERVICE)


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.value.removeprefix(KG.iri))
def test_a_term_has_no_domain_or_range(term: NamedNode) -> None:
    assert not SAID[term][RDFS.domain] + SAID[term][RDFS.range]


@pytest.mark.parametrize("term", CLASSES, ids=lambda term: term.value.removeprefix(KG.iri))
def test_a_class_specializes_one_of_a_standard(term: NamedNode) -> None:
    above, queue = set(), [term]
    while queue:
        for parent in SAID[queue.pop()][RDFS.subClassOf]:
            assert isinstance(parent, NamedNode)
            above.add(parent.value)
            queue.append(parent)
    assert any(iri.startswith(STANDARDS) for iri in above)


def test_every_superterm_of_ours_is_declared() -> None:
    ours = {
        parent
        for term in TERMS
        for parent in SAID[term][RDFS.subClassOf] + SAID[term][RDFS.subPropertyOf]
        if isinstance(parent, NamedNode) and parent.value.startswith(BASE)
    }
    assert ours <= set(TERMS)


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.name)
def test_a_module_has_a_version_a_licence_and_a_title(path: Path) -> None:
    [ontology] = [quad.subject for quad in parse(path=path) if quad.object == OWL.Ontology]
    assert isinstance(ontology, NamedNode)
    for predicate in (OWL.versionIRI, OWL.versionInfo, DCTERMS.license, DCTERMS.title):
        assert len(SAID[ontology][predicate]) == 1


@pytest.mark.parametrize("code", CODES, ids=lambda code: code.value.removeprefix(BASE))
def test_a_code_is_named_by_its_notation_and_belongs_to_a_list(code: NamedNode) -> None:
    [scheme] = SAID[code][SKOS.inScheme]
    [notation], [_label] = SAID[code][SKOS.notation], SAID[code][SKOS.prefLabel]
    assert isinstance(scheme, NamedNode)
    assert isinstance(notation, Literal)
    assert SKOS.ConceptScheme in SAID[scheme][RDF.type]
    assert code == mint("code", scheme.value.rpartition("/")[2], notation.value)


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
