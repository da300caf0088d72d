"""Resolves the ids that `fetch` takes to text units, and describes ids that have no text.

An id is the IRI of a text unit, or of what contains some: a document, a family, a speech, a code, a level of a code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode

from kg.errors import InvalidInputError
from kg.fuzzy_names import fold, nearest
from kg.ontology import load_declared_terms
from kg.retrieval.concept_index import load_concepts
from kg.retrieval.evidence import Unit, load_units
from kg.retrieval.hybrid_search import OWN
from kg.retrieval.reader import Reader, iri_of
from kg.retrieval.speech_records import is_speech, suggest_speeches
from kg.sparql.terms import bind, is_iri
from kg.store.protocol import Term, term_text
from kg.text import name_or_quote, quoted
from kg.tools.entities.dereference import names_of, short_name, suggest_documents, suggestions
from kg.vocabulary import BASE, FOAF, KG, SKOS, WIKIBASE, iri_prefix, mint, segment, slug_of
from kg.zoning_summaries import code_tree

PARTS: Final = """
SELECT DISTINCT ?unit ?document ?position WHERE {
  VALUES ?document { $documents } ?unit dcterms:isPartOf ?document ; schema:position ?position
  FILTER EXISTS { ?unit schema:text ?text }
}"""

# An entity without a class is known too. `municipality` is that of a level of a code.
KINDS: Final = """
SELECT DISTINCT ?thing ?kind ?municipality WHERE {
  VALUES ?thing { $things } FILTER EXISTS { ?thing ?property ?value }
  OPTIONAL { ?thing a ?kind } OPTIONAL { ?thing a kg:CodeSection ; kg:jurisdiction ?municipality }
}"""

# The documents of families, and those that are laws.
MEMBERS: Final = """
SELECT DISTINCT ?family ?document WHERE {
  { VALUES ?family { $families } ?document eli:is_member_of ?family }
  UNION { VALUES ?family { $families } ?document kg:isLaw ?family ; eli:is_member_of ?other }
}"""

# A family that is a law, and this law, are found as one.
LAWS: Final = """
SELECT DISTINCT ?law ?name ?same WHERE {
  VALUES ?kind { kg:ExternalLaw kg:PolicyFamily } ?law a ?kind ; ?property ?name
  FILTER(?property IN (dcterms:title, dcterms:identifier))
  OPTIONAL { ?same kg:isLaw ?law . ?same a kg:PolicyFamily }
}"""

PRESENT: Final = """
SELECT DISTINCT ?thing WHERE { VALUES ?thing { $things } FILTER EXISTS { ?thing ?property ?value } }"""

VERSIONS: Final = """
SELECT DISTINCT ?asked WHERE {
  VALUES (?asked ?unit ?language) { $versions }
  ?unit dcterms:isPartOf ?document .
  { ?unit schema:inLanguage ?language } UNION { ?document schema:inLanguage ?language }
}"""

# The text that an entity without text belongs to, or the texts below it.
AROUND: Final = """
SELECT DISTINCT ?other ?above WHERE {
  { $thing ?property ?other BIND(true AS ?above)
    FILTER(?property IN (oa:hasSource, dcterms:isPartOf, kg:evidence, kg:definedIn, kg:summaryOf, rdf:subject)) }
  UNION { ?other dcterms:isPartOf $thing BIND(false AS ?above) }
  FILTER(EXISTS { ?other schema:text ?text } || EXISTS { ?part dcterms:isPartOf ?other ; schema:text ?words })
} ORDER BY ?other LIMIT 3"""

READ_BY: Final[Mapping[str, str]] = {
    SKOS.Concept.value: "concept_find describes it, concept_mentions lists passages that mention it.",
    WIKIBASE.Item.value: "concept_find describes it, concept_mentions lists passages that mention it.",
    KG.PolicyFamily.value: "family_overview describes it.",
    FOAF.Person.value: "list_speakers describes the person, search_speeches with speaker finds the speeches.",
    KG.Party.value: "search_speeches with party finds the speeches of its members.",
    KG.Electorate.value: "list_speakers names the members for it.",
    KG.Chamber.value: "search_speeches with chamber finds the speeches in it.",
    KG.Municipality.value: "kg_query_permissions and kg_query_standards return the rules of its districts.",
    KG.CodeSection.value: "kg_query_section returns it with the sections below it.",
    KG.ZoningDistrict.value: "kg_query_permissions and kg_query_standards return its rules.",
    KG.LandUse.value: "kg_query_permissions returns where it is permitted.",
    KG.UsePermission.value: "kg_query_permissions returns it with its words.",
    KG.DimensionalStandard.value: "kg_query_standards returns it with its words.",
    KG.Definition.value: "kg_query_definition returns it.",
    KG.CrossReference.value: "kg_find_related returns it with its words.",
    KG.ExternalLaw.value: "citations with direction=cited_by lists the passages that cite it.",
    KG.Summary.value: "kg_query_section returns it with its section.",
    KG.Place.value: "jurisdiction_overview describes a country.",
}
"""The tools that read entities without text, by class."""

_DOCUMENT: Final = re.compile(r"cpr://doc/(?P<slug>[^#]+)(?:#(?:p=(?P<index>\d{1,18}))?(?:&?lang=(?P<lang>[^&]+))?)?")
_DOCUMENTS_START: Final = "cpr://doc/"
_FAMILIES: Final = "cpr://family/"
_LAWS: Final = iri_prefix("law")
_SPEECHES_START: Final = iri_prefix("speech")
_BARE: Final = re.compile(r"[^\s:/<>\"{}|\\^`]{1,300}")
"""An id without a scheme."""
_OWN: Final = BASE + "id/"
_SITTINGS: Final = frozenset((KG.Sitting.value, KG.Debate.value))
_DOCUMENTS: Final = frozenset((KG.PolicyDocument.value, KG.Speech.value, KG.File.value))


@dataclass(slots=True)
class Resolved:
    """The text units of ids, in order."""

    found: dict[str, list[str]] = field(default_factory=dict)
    """The text units of each id that has some."""
    units: dict[str, Unit] = field(default_factory=dict)
    """Those units that were loaded on the way."""
    whole: dict[str, list[str]] = field(default_factory=dict)
    """The documents of each id that names no single unit."""
    kinds: dict[str, list[str]] = field(default_factory=dict)
    """The classes of each id that is known but has no text."""
    notes: list[str] = field(default_factory=list)


def parse_id(name: str) -> NamedNode | None:
    """Parse an id in any percent-encoding; None if it is not an IRI."""
    text = name.strip().removeprefix("<").removesuffix(">")
    try:
        if text.startswith(_FAMILIES):
            return mint("family", slug_of(text))
        if match := _DOCUMENT.fullmatch(text):
            slug, lang = slug_of(text), match["lang"]
            if match["index"] is not None:
                return mint("passage", slug, match["index"], lang=lang)
            return mint("document", slug, lang=lang)
        if text.startswith(_OWN) and not is_iri(text):
            path, mark, fragment = text.removeprefix(_OWN).partition("#")
            text = _OWN + "/".join(segment(unquote(part)) for part in path.split("/")) + mark + fragment
        return NamedNode(text) if ":" in text else None
    except (InvalidInputError, ValueError):
        return None


def complete_ids(reader: Reader, names: Sequence[str]) -> list[str]:
    """Complete ids without a scheme: the slug of a document, passage or family, a speech_id, a QID, the name of a law.

    Those that the graph does not have stay. Raises InvalidInputError for a name that several laws have.
    """
    candidates = {name: _candidates(reader, name.strip()) for name in names if _BARE.fullmatch(name.strip())}
    full = {name: name for name in names}
    if candidates:
        nodes = {node.value: node for each in candidates.values() for node in each}
        rows = reader.rows("ids without a scheme", bind(PRESENT, things=[*nodes.values()]), declared=("thing",))
        present = {iri_of(row["thing"]) for row in rows}
        full |= {
            name: iri for name, each in candidates.items() for node in each[::-1] if (iri := node.value) in present
        }
    full |= {name: law for name in names if parse_id(full[name]) is None and (law := _find_law(reader, name))}
    return [full[name] for name in names]


def _find_law(reader: Reader, name: str) -> str | None:
    """Find the law or policy family with a title or number."""
    found = load_law_names(reader).get(fold(name), ())
    if len(found) > 1:
        raise InvalidInputError(f"{quoted(name)} is the name of {len(found)} laws. Give one of {', '.join(found[:5])}.")
    return found[0] if found else None


def load_law_names(reader: Reader) -> Mapping[str, Sequence[str]]:
    """Load the IRIs of laws and policy families by their titles and numbers, folded. Cached until the next commit.

    A law that is a family is found as the family.
    """

    def read(rows: list[dict[str, Term]]) -> Mapping[str, Sequence[str]]:
        found: dict[str, list[str]] = {}
        for row in rows:
            found.setdefault(fold(term_text(row["name"])), []).append(iri_of(row.get("same") or row["law"]))
        return {name: sorted(set(iris)) for name, iris in found.items()}

    return reader.kept("names of laws", LAWS, read)


def _candidates(reader: Reader, text: str) -> list[NamedNode]:
    """List the IRIs that a text without a scheme can be short for."""
    found = [parse_id(start + text) for start in (_DOCUMENTS_START, _FAMILIES, _SPEECHES_START)]
    concepts = [NamedNode(concept.iri) for concept in load_concepts(reader.kg).named(text)]
    return [*(node for node in found if node is not None), *(concepts if len(concepts) == 1 else ())]


def resolve_ids(reader: Reader, names: Sequence[str]) -> Resolved:
    """Find the text units of `names`: of each itself, or of what it contains, in order."""
    nodes = {name: node for name in names if (node := parse_id(name)) is not None}
    resolved = Resolved(units=load_units(reader, sorted({node.value for node in nodes.values()})))
    found = {name: [node.value] for name, node in nodes.items() if node.value in resolved.units}
    for name, iri in _other_version(reader, {n: node.value for n, node in nodes.items() if n not in found}).items():
        found[name] = [iri]
        resolved.notes.append(f"{name_or_quote(name)} has the id {name_or_quote(iri)} in this graph.")
    left = {name: node for name, node in nodes.items() if name not in found}
    families = {name: node for name, node in left.items() if node.value.startswith((_FAMILIES, _LAWS))}
    members = _members(reader, families)
    kinds, places = _load_kinds(reader, {node.value for node in left.values()})
    containers = {iri for iris in members.values() for iri in iris} | {node.value for node in left.values()}
    parts = load_parts(reader, containers)
    for name, node in left.items():
        iri = node.value
        place = places.get(iri)
        if name in members:
            resolved.whole[name] = members[name]
            found[name] = [unit for each in members[name] for unit in parts.get(each, [])]
        elif place is not None and (sections := _sections_below(reader, place, iri)):
            resolved.whole[name], found[name] = [iri], sections
        elif iri in parts or not _DOCUMENTS.isdisjoint(kinds.get(iri, ())):
            resolved.whole[name], found[name] = [iri], parts.get(iri, [])
            if not _SITTINGS.isdisjoint(kinds.get(iri, ())):
                resolved.notes.append(
                    f"{name}: Only its procedural texts. Its speeches have ids of their own: see search_speeches."
                )
        elif iri in kinds:
            resolved.kinds[name] = kinds[iri]
    resolved.found = {name: found[name] for name in names if name in found}
    return resolved


def load_parts(reader: Reader, documents: Iterable[str]) -> dict[str, list[str]]:
    """Load the text units of documents, in order. Documents without any are absent."""
    nodes = [NamedNode(iri) for iri in sorted(documents)]
    places: dict[str, list[tuple[int, str]]] = {}
    rows = reader.rows("passages of documents", bind(PARTS, documents=nodes), declared=OWN) if nodes else []
    for row in rows:
        places.setdefault(iri_of(row["document"]), []).append((int(term_text(row["position"])), iri_of(row["unit"])))
    return {iri: [unit for _, unit in sorted(units)] for iri, units in places.items()}


def explain_missing(reader: Reader, name: str, resolved: Resolved) -> str:
    """Describe an id without text by its class and the tool that reads it, or name valid ids for an unknown one."""
    node = parse_id(name)
    if node is not None and name in resolved.kinds:
        return _explain_known(reader, node, resolved.kinds[name])
    if node is None or not node.value.startswith(("cpr://", BASE)):
        close = nearest(fold(name), load_law_names(reader), 3, least=75) if node is None else []
        laws = [load_law_names(reader)[each][0] for each in close]
        return (f"Similar: {', '.join(map(name_or_quote, laws))}. " if laws else "") + (
            "Valid ids are cpr://doc/{slug}#p={index}, cpr://doc/{slug}, cpr://family/{slug}, and all ids that search "
            "returns."
        )
    if node.value.startswith("cpr://concept/"):
        return "A concept has no text. concept_find describes it, concept_mentions lists passages that mention it."
    if is_speech(node.value):
        return suggest_speeches(reader, unquote(node.value.partition("#")[0].rpartition("/")[2]))
    if not node.value.startswith((_DOCUMENTS_START, _FAMILIES)):
        close = suggestions(reader.kg, node.value)
        return (
            f"Similar: {', '.join(map(name_or_quote, close))}."
            if close
            else "Nothing has it. search returns valid ids."
        )
    return _explain_unknown_document(reader, node)


def _explain_known(reader: Reader, node: NamedNode, kinds: Sequence[str]) -> str:
    """Describe an entity without text by its class and label, with a way to read it."""
    own = next((kind for kind in READ_BY if kind in kinds), None) or next(iter(kinds), None)
    term = None if own is None else load_declared_terms().get(own)
    kind = "resource" if own is None else term.label if term is not None else short_name(own)
    label = names_of(reader.kg, [node.value]).get(node.value)
    article = "an" if kind[:1] in "aeiou" else "a"
    said = f"It is {article} {kind}{f' ({quoted(label)})' if label else ''} and has no text of its own."
    near = reader.rows("texts around it", bind(AROUND, thing=node))
    above = [iri_of(row["other"]) for row in near if term_text(row["above"]) == "true"]
    below = [iri_of(row["other"]) for row in near if term_text(row["above"]) != "true"]
    advice = None if own is None else READ_BY.get(own)
    if advice is not None:
        said += f" {advice}"
    if above:
        said += f" The text is in {', '.join(above)}: fetch that."
    elif below:
        said += f" Its parts have text, such as {', '.join(below)}: fetch those."
    elif advice is None:
        said += f" sparql with DESCRIBE <{node.value}> returns its statements."
    return said


def _explain_unknown_document(reader: Reader, node: NamedNode) -> str:
    slug = slug_of(node.value)
    if node.value.startswith(_FAMILIES) or not slug:
        return "family_overview lists the families and their documents."
    document = mint("document", slug)
    units = load_parts(reader, [document.value]).get(document.value, [])
    if units:
        return f"The document has {len(units)} passages, from {units[0]} to {units[-1]}."
    if close := suggest_documents(reader, slug):
        return f"Similar: {', '.join(map(name_or_quote, close))}."
    return "No document has a similar slug. search returns valid ids."


def _other_version(reader: Reader, absent: Mapping[str, str]) -> dict[str, str]:
    """Resolve ids with a language to the ids without, where those passages have that language."""
    versions = {}
    for iri in absent.values():
        plain, _, language = iri.partition("&lang=")
        if language:
            versions[iri] = (NamedNode(iri), NamedNode(plain), Literal(language))
    if not versions:
        return {}
    rows = reader.rows("passages by language", bind(VERSIONS, versions=list(versions.values())))
    found = {iri_of(row["asked"]) for row in rows}
    return {name: versions[iri][1].value for name, iri in absent.items() if iri in found}


def _members(reader: Reader, families: Mapping[str, NamedNode]) -> dict[str, list[str]]:
    if not families:
        return {}
    members: dict[str, list[str]] = {}
    query = bind(MEMBERS, families=list(set(families.values())))
    for row in reader.rows("documents of families", query, declared=("family", "document")):
        members.setdefault(iri_of(row["family"]), []).append(iri_of(row["document"]))
    return {name: sorted(members[node.value]) for name, node in families.items() if node.value in members}


def _load_kinds(reader: Reader, things: set[str]) -> tuple[dict[str, list[str]], dict[str, str]]:
    """Load the classes of those of `things` that are known, and the municipality of each code or level of one."""
    kinds: dict[str, list[str]] = {}
    places: dict[str, str] = {}
    nodes = [NamedNode(iri) for iri in sorted(things)]
    for row in reader.rows("what they are", bind(KINDS, things=nodes), declared=("thing",)) if nodes else ():
        thing = iri_of(row["thing"])
        known = kinds.setdefault(thing, [])
        if isinstance(kind := row.get("kind"), NamedNode):
            known.append(kind.value)
            if kind == KG.Municipality:
                places[thing] = thing
        if isinstance(place := row.get("municipality"), NamedNode):
            places[thing] = place.value
    return kinds, places


def _sections_below(reader: Reader, municipality: str, root: str) -> list[str]:
    """List the sections with text of a code, or of a level of it, in the order of the code."""
    tree = code_tree.cached_tree(reader.kg, municipality)
    if root != municipality and root not in tree.sections:
        return []
    listed = tree.below(None if root == municipality else root)
    return [iri for iri in listed if tree.sections[iri].text_sha256 is not None]
