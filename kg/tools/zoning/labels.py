"""Builds display names for the parts of codes: sections by number and title, rules, claims and spans by content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyoxigraph import NamedNode

from kg.ontology import load_declared_terms
from kg.retrieval.evidence import code_of
from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import natural_key
from kg.vocabulary import KG

NAMED: Final = """
SELECT DISTINCT ?thing ?number ?words ?label ?citation ?citing ?district ?use ?level ?asRecorded ?type ?bound ?value
                ?unit ?for ?code WHERE {
  VALUES ?thing { $things }
  OPTIONAL { ?thing kg:sectionNumber ?number }
  OPTIONAL { ?thing oa:exact ?words }
  OPTIONAL { ?thing kg:label ?label }
  OPTIONAL { ?thing kg:rawCitation ?citation ; rdf:subject/kg:sectionNumber ?citing }
  OPTIONAL { ?thing kg:district/skos:notation ?district }
  OPTIONAL { ?thing kg:landUse/skos:prefLabel ?use }
  OPTIONAL { ?thing kg:permissionLevel ?level }
  OPTIONAL { ?thing kg:rawLevel ?asRecorded }
  OPTIONAL { ?thing kg:standardType ?type }
  OPTIONAL { ?thing kg:bound ?bound }
  OPTIONAL { ?thing kg:rawValue ?value }
  OPTIONAL { ?thing kg:quantity/qudt:hasUnit ?unit }
  OPTIONAL { ?thing kg:appliesTo ?for }
  OPTIONAL { ?thing a kg:ZoningDistrict ; skos:notation ?code }
}"""

TOPS: Final = """
SELECT DISTINCT ?section ?number WHERE {
  ?section a kg:CodeSection ; kg:jurisdiction $municipality ; kg:sectionNumber ?number
  FILTER NOT EXISTS { ?section dcterms:isPartOf ?whole . ?whole a kg:CodeSection }
} LIMIT $limit"""

_KINDS: Final = frozenset(
    kind.value
    for kind in (
        KG.CodeSection,
        KG.ZoningDistrict,
        KG.UsePermission,
        KG.DimensionalStandard,
        KG.Statement,
        KG.TextSpan,
        KG.Subsection,
    )
)


def load_code_names(
    reader: Reader, kinds: Mapping[str, str], labels: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]]:
    """Load names for parts of codes, and the numbers of the sections among them.

    `kinds` gives the class of each IRI and `labels` its label, if any. Sections and districts with a label get their
    number or code in front of it; other parts with a label get no name.
    """
    things = sorted(iri for iri, kind in kinds.items() if kind in _KINDS)
    names: dict[str, str] = {}
    numbers: dict[str, str] = {}
    if not things:
        return names, numbers
    for row in reader.rows("names of parts of codes", bind(NAMED, things=[NamedNode(iri) for iri in things])):
        iri = iri_of(row["thing"])
        label = labels.get(iri, "")
        if kinds[iri] == KG.CodeSection.value:
            if "number" in row:
                number = numbers[iri] = term_text(row["number"])
                names[iri] = _with_code(number, label)
        elif "code" in row:
            names[iri] = _with_code(term_text(row["code"]), label)
        elif not label and (name := _name(row)):
            names[iri] = name
    return names, numbers


def load_top_sections(reader: Reader, municipality: NamedNode, limit: int) -> list[str]:
    """Load the top-level sections of the code of `municipality`, sorted by number."""
    rows = reader.rows("top-level sections of its code", bind(TOPS, municipality=municipality, limit=limit))
    return [iri_of(row["section"]) for row in sorted(rows, key=lambda row: natural_key(term_text(row["number"])))]


def _with_code(code: str, label: str) -> str:
    return f"{code} {label}" if label and not label.startswith(code) else label or code


def _name(row: Mapping[str, Term]) -> str:
    """Summarize a rule, claim, span or paragraph in one line, or an empty string."""
    texts = {name: term_text(row[name]) for name in row.keys() - {"thing", "level", "type", "bound", "unit"}}
    place = f" in {texts['district']}" if "district" in texts else ""
    if "use" in texts:
        level = _label_of(row["level"]) if "level" in row else texts.get("asRecorded", "")
        return f"{texts['use']}{place}: {level}" if level else texts["use"] + place
    if "type" in row:
        bound = f"{_label_of(row['bound'])} " if "bound" in row else ""
        value = texts.get("value", "")
        if "unit" in row and not any(letter.isalpha() or letter in "'\"%" for letter in value):
            value += f" {_label_of(row['unit'])}"
        kind = f" ({texts['for']})" if "for" in texts else ""
        return f"{bound}{_label_of(row['type'])}{kind}{place}: {value}"
    if "citation" in texts:
        return f"{texts['citing']} cites {texts['citation']}"
    return f"“{texts['words']}”" if "words" in texts else texts.get("label", "")


def _label_of(code: Term) -> str:
    """Get the label of a code of the ontology, else the end of its IRI."""
    iri = iri_of(code)
    term = load_declared_terms().get(iri)
    return term.label if term is not None else code_of(iri)
