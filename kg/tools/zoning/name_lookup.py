"""Finds municipalities, sections, districts, uses and standards by the names that people use, and names for them."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Final
from urllib.parse import unquote

from pydantic import Field
from pyoxigraph import NamedNode
from rapidfuzz import process

from kg.errors import InvalidInputError, NotFoundError
from kg.fuzzy_names import Names, fold, nearest
from kg.ontology import load_declared_terms
from kg.retrieval.choices import NEAREST, Choice, shorten
from kg.retrieval.evidence import code_of
from kg.retrieval.notes import SEE_SECTIONS
from kg.retrieval.places import Places
from kg.retrieval.places import load_places as load_hierarchy
from kg.retrieval.reader import Reader, clean_text, iri_of
from kg.retrieval.results import MOST_RESULTS, MOST_SKIPPED
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import name_or_quote, natural_key, quoted
from kg.vocabulary import KG, iri_prefix, segment
from kg.words import singular
from kg.zoning_summaries.code_tree import CodeTree
from kg.zoning_summaries.use_names import parse_use_kinds

MUNICIPALITIES: Final = """
SELECT ?municipality ?name WHERE { ?municipality a kg:Municipality ; skos:prefLabel ?name }"""

STATUSES: Final = """
SELECT ?section ?status WHERE { VALUES ?section { $sections } ?section kg:inForceStatus ?status }"""

MunicipalityName = Annotated[str, Field(max_length=200)]
StateName = Annotated[str, Field(max_length=60)]
SectionId = Annotated[str, Field(max_length=2_000, description="Number or IRI")]
PageSize = Annotated[int, Field(ge=1, le=MOST_RESULTS)]
Skipped = Annotated[int, Field(ge=0, le=MOST_SKIPPED)]
"""Results to skip: next_offset of the previous page. Without a description, since many tools have this argument."""

_SECTIONS: Final = iri_prefix("section")
_WORD: Final = re.compile(r"^(?:§+|(?:sections?|secs?|title|chapter|article|part|division)\b\.?)\s*", re.IGNORECASE)
_LABELS: Final = re.compile(r"((?:\([0-9A-Za-z.~-]{1,8}\)){1,16})$")


@dataclass(frozen=True, slots=True)
class Place:
    """A municipality."""

    iri: str
    name: str
    short_state: str = ""
    """Code of its state without the country, UT or VIC, if known."""
    state: str = ""
    """Name of its state, if known."""
    containing: frozenset[str] = frozenset()
    """IRIs of the places that contain it, and its own."""

    @property
    def key(self) -> str:
        """Key, such as us-ut-quarry-bend."""
        return self.iri.rpartition("/")[2]

    @property
    def shown(self) -> str:
        """Name and state."""
        return self.name if self.state == self.name else f"{self.name}, {self.state}".strip(", ")

    @property
    def quoted(self) -> str:
        """Name and state, for messages."""
        return quoted(self.shown)


def find_place(reader: Reader, name: str, state: str, argument: str = "municipality") -> Place:
    """Find a municipality by name, with or without its state, by key or by IRI.

    Raises NotFoundError with similar names, and InvalidInputError with the candidates if several match. Both name the
    `argument`.
    """
    wanted, said = clean_text(argument, name, 200), clean_text("state", state, 60)
    hierarchy, places = _load_all(reader)
    outside, named = hierarchy.find(said), {area.iri for area in hierarchy.find(wanted)}
    found = [each for each in places if each.iri in named and any(area.iri in each.containing for area in outside)]
    # A key is enough for a place whose state is not known, and for the District of Columbia the state.
    keys = {area.code.casefold() for area in outside}
    found = found or [each for each in places if each.key in keys or (not each.state and each.key in wanted)]
    if len(found) == 1:
        return found[0]
    if found:
        several = ", ".join(f"{quoted(place.name)} ({name_or_quote(place.key)})" for place in found)
        raise InvalidInputError(
            f"{argument}: {quoted(name)} in {quoted(state)} is ambiguous. Candidates: {several}. Give the name or "
            "key of one."
        )
    near = process.extract(f"{name}, {state}", sorted({place.quoted for place in places}), limit=NEAREST)
    names_near = "; ".join(each for each, _, _ in near)
    available = f"Available: {names_near}." if near else "None is loaded. `kg load zoning` loads a code."
    raise NotFoundError(f"{argument}: Unknown municipality {quoted(name)} in {quoted(state)}. {available}")


def load_places(reader: Reader) -> list[Place]:
    """Load all municipalities, sorted by state and name."""
    return sorted(_load_all(reader)[1], key=lambda place: (place.state, fold(place.name)))


def _load_all(reader: Reader) -> tuple[Places, Sequence[Place]]:
    """Load all municipalities, and the hierarchy that they are in. Cached until the next commit."""

    def build(rows: Sequence[Mapping[str, Term]], hierarchy: Places) -> tuple[Places, Sequence[Place]]:
        places = []
        for iri, name in {iri_of(row["municipality"]): term_text(row["name"]) for row in rows}.items():
            place = hierarchy.get(iri)
            above = hierarchy.get_chain(place) if place is not None else ()
            # A state can contain it indirectly: a county may be between them.
            states = ((each.code.partition("-")[2], each.name) for each in above if each.kind == "subdivision")
            places.append(Place(iri, name, *next(states, ("", "")), frozenset((iri, *(each.iri for each in above)))))
        return hierarchy, places

    rows = reader.kept("all municipalities", MUNICIPALITIES, list)
    # With a reader of its own, so that the queries of a result are those about municipalities.
    return reader.derived("all municipalities", build, rows, load_hierarchy(Reader(reader.kg)))


def find_section(tree: CodeTree, section_id: str) -> str:
    """Find the IRI of a section by its number, heading or IRI.

    Raises NotFoundError with similar numbers, and InvalidInputError with the candidates if several match.
    """
    given = clean_text("section_id", section_id, 2_000)
    if given.strip("<>") in tree.sections:
        return given.strip("<>")
    own = next(iter(tree.sections), "").rpartition("/")[0]
    number = _WORD.sub("", given).strip() or given
    found = [iri for each in (given, number) if (iri := f"{own}/{segment(each)}") in tree.sections][:1]
    found = found or [iri for iri, each in tree.sections.items() if each.number.casefold() == number.casefold()]
    if len(found) > 1:
        # "Chapter II" is the last part of the key of the chapter that is meant.
        whole = " ".join(given.split()).casefold()
        named = [iri for iri in found if get_section_key(iri).rpartition("|")[2].casefold() == whole]
        found = named if len(named) == 1 else found
    found = found or [iri for iri, each in tree.sections.items() if fold(each.title) == fold(given)]
    if len(found) > 1:
        keys = ", ".join(name_or_quote(get_section_key(each)) for each in found[:NEAREST])
        raise InvalidInputError(
            f"section_id: {len(found)} sections have the number {name_or_quote(number)}. Give one of {keys}."
        )
    if found:
        return found[0]
    numbers = [each.number for each in tree.sections.values() if each.number]
    near = ", ".join(map(name_or_quote, dict.fromkeys(nearest(number, numbers, NEAREST))))
    raise NotFoundError(f"section_id: Unknown section {quoted(given)}. Similar: {near}.")


def find_subsection(tree: CodeTree, section_id: str) -> tuple[str, str | None]:
    """Find the IRI of a section, and the labels of a subsection if `section_id` ends in some: ``17.20(a)(1)``.

    Raises the errors of `find_section`.
    """
    given = clean_text("section_id", section_id, 2_000)
    whole, _, part = given.partition("#subsection=")
    if part:
        return find_section(tree, whole), "".join(f"({unquote(label)})" for label in part.strip(">").split("."))
    try:
        return find_section(tree, given), None
    except NotFoundError:  # a section number may end in a label
        labels = _LABELS.search(given)
        if labels is None or labels.start() == 0:
            raise
        return find_section(tree, given[: labels.start()].strip()), labels[1]


def load_statuses(reader: Reader, sections: Iterable[str | None]) -> dict[str, str]:
    """Load the status (repealed, reserved, ...) of those of `sections` that have one, by IRI."""
    wanted = sorted({iri for iri in sections if iri is not None and iri.startswith(_SECTIONS)})
    query = bind(STATUSES, sections=[NamedNode(iri) for iri in wanted])
    return {iri_of(row["section"]): term_text(row["status"]) for row in reader.rows("status of sections", query)}


def get_section_key(iri: str) -> str:
    """Get the key of a section within its code, from its IRI."""
    return unquote(iri.removeprefix(_SECTIONS).partition("/")[2].partition("#")[0])


def list_failures(failed: Mapping[str, str]) -> list[dict[str, str]]:
    """List failed sections, each with its reason."""
    return [{"section_id": get_section_key(each), "iri": each, "reason": why} for each, why in failed.items()]


DistrictName = Annotated[str | None, Field(max_length=200, description="Code or name")]
UseName = Annotated[str | None, Field(max_length=300, description="E.g. duplex")]
StandardType = Annotated[str | None, Field(max_length=200, description="E.g. setback, lot-area, max height")]

# Districts and uses are distinguished by IRI: a lookup of their classes makes the query half as slow again.
NAMED: Final = """
SELECT ?thing ?code ?name WHERE {
  ?thing kg:jurisdiction $municipality ; skos:notation ?code ; skos:prefLabel ?name
}"""

UNSURE: Final = """
SELECT ?district WHERE {
  VALUES ?district { $districts } ?naming kg:namesDistrict ?district ; kg:confidence ?found
  OPTIONAL { ?naming kg:reviewStatus ?review }
} GROUP BY ?district HAVING(MAX(IF(BOUND(?review), 1.0, ?found)) < $least)"""

UNRECORDED: Final = " An unrecorded use is not necessarily prohibited." + SEE_SECTIONS
_JOINS: Final = re.compile(r"\b(?:and|or)\b")
MEMBERS: Final = re.compile(r",? (?:and/or|and|or) |, ")
"""What separates the members of an enumeration."""
_DISTRICTS: Final = iri_prefix("district")
_USES: Final = iri_prefix("landuse")
_NOISE: Final = frozenset(re.findall(r"\w+", "zone zones zoning district districts the use uses land a an of"))
_BOUNDS: Final = {"min": "min", "minimum": "min", "least": "min", "max": "max", "maximum": "max", "most": "max"}
_SAME: Final = {
    "size": "area", "acreage": "area", "story": "storey", "yard": "setback", "far": "floor area ratio",
}  # fmt: skip
"""Synonyms of the words in standard types, in the singular."""
_FILLERS: Final = frozenset(re.findall(r"\w+", "a an allowed for limit number of required requirement the"))
"""Words that do not distinguish standard types."""


class Named(Choice):
    """A district or a use. Its names are its code and its name, or only one if they are the same."""

    __slots__ = ()

    @property
    def code(self) -> str:
        """Its code."""
        return self.names[0]

    @property
    def name(self) -> str:
        """Its name."""
        return self.names[-1]


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The districts and uses of one municipality, by IRI."""

    place: Place
    districts: Mapping[str, Named]
    uses: Mapping[str, Named]
    unsure: frozenset[str]
    """Districts that were found in text with a confidence below the setting ``rule_confidence``."""


def load_vocabulary(reader: Reader, place: Place) -> Vocabulary:
    """Load the districts and uses of a municipality, in the order of answers."""

    def read(rows: Sequence[Mapping[str, Term]]) -> Sequence[dict[str, Named]]:
        return [_read_named(rows, _DISTRICTS, "code"), _read_named(rows, _USES, "name")]

    query = bind(NAMED, municipality=NamedNode(place.iri))
    districts, uses = reader.kept("districts and uses", query, read)
    query = bind(UNSURE, districts=[NamedNode(iri) for iri in districts], least=reader.kg.settings.rule_confidence)
    unsure = reader.kept("unsure districts", query, lambda rows: frozenset(iri_of(row["district"]) for row in rows))
    return Vocabulary(place, districts, uses, unsure)


def _read_named(rows: Iterable[Mapping[str, Term]], prefix: str, label: str) -> dict[str, Named]:
    found = {}
    for row in sorted(rows, key=lambda row: natural_key(term_text(row[label]))):
        if (iri := iri_of(row["thing"])).startswith(prefix):
            names = dict.fromkeys(term_text(row[name]) for name in ("code", "name"))
            found[iri] = Named(NamedNode(iri), term_text(row[label]), tuple(names))
    return found


def find_named(
    argument: str, text: str, things: Mapping[str, Named], place: Place, notes: list[str]
) -> Mapping[str, Named]:
    """Find the entries of `things` that `text` names, and note an inexact match in `notes`.

    Raises NotFoundError with similar names.
    """
    wanted = clean_text(argument, text, 300)
    choices = [*things.values()]
    found = find_alike(wanted, choices) if argument == "use" else find_matching(wanted, choices)
    if not found:
        raise build_no_match(argument, wanted, (each.label for each in choices), place.quoted)
    if (note := match_note(argument, wanted, found)) is not None:
        notes.append(note)
    wanted_iris = {choice.term.value for choice in found}
    return {iri: thing for iri, thing in things.items() if iri in wanted_iris}


def find_matching(text: str, choices: Sequence[Choice]) -> list[Choice]:
    """Find the choices that `text` names: by spelling, else by meaning, else by words. All matches of a rule count."""
    return find_spelled(text, choices) or _find_by_key(_meant, text, choices) or find_by_words(text, choices)


def find_alike(text: str, choices: Sequence[Choice]) -> list[Choice]:
    """Find the uses that `text` names, in any spelling, wording or enumeration: bank is also in ``Banks and inns``.

    Districts write the same use in several ways, so that all that match count, not only those of the best rule.
    """
    keys = [(rule, key) for rule in (_plain, _meant) if (key := rule(text))]
    found = [
        choice
        for choice in choices
        if any(
            rule(part) == key
            for name in choice.names
            for part in (name, *(MEMBERS.split(name) if _JOINS.search(name) else ()))
            for rule, key in keys
        )
    ]
    return found or find_matching(text, choices) or find_by_meaning(text, choices)


def find_spelled(text: str, choices: Sequence[Choice]) -> list[Choice]:
    """Find the choices with this IRI or name: exact, else ignoring case, blanks, plural and word order."""
    whole = text.strip("<>")
    found = [choice for choice in choices if choice.term.value == whole]
    for rule in (str.strip, str.casefold, _squeezed, _plain):
        found = found or _find_by_key(rule, text, choices)
    return found


def find_by_words(text: str, choices: Sequence[Choice]) -> list[Choice]:
    """Find the choices whose name contains all words of `text`."""
    return _find_by_key(lambda name: frozenset(_plain(name)), text, choices, operator.le)


def find_by_meaning(text: str, choices: Sequence[Choice]) -> list[Choice]:
    """Find the choices whose name contains the meaning of `text`: "church" in ``Building for religious assembly``."""
    return _find_by_key(_meant, text, choices, operator.le)


def _find_by_key(
    rule: Callable[[str], Any], text: str, choices: Sequence[Choice], is_met: Callable[[Any, Any], bool] = operator.eq
) -> list[Choice]:
    key = rule(text)
    return [choice for choice in choices if key and any(is_met(key, rule(name)) for name in choice.names)]


def match_note(argument: str, text: str, found: Sequence[Choice]) -> str | None:
    """Build the note on an inexact match. Returns None for names that differ in case at most."""
    if all(text.casefold() in map(str.casefold, choice.names) for choice in found):
        return None
    names = [
        choice.label + next((f" ({name})" for name in choice.names if fold(name) != fold(choice.label)), "")
        for choice in found
    ]
    return f"{argument}: {quoted(text)} was interpreted as {shorten([*dict.fromkeys(names)])}."


def _squeezed(text: str) -> str:
    """Equate R1, R-1 and R 1. It applies only if no code is spelled exactly so."""
    return fold(text).replace(" ", "")


def _plain(text: str) -> tuple[str, ...]:
    words = fold(text).split()
    return tuple(sorted(singular(word) for word in words if word not in _NOISE)) or tuple(words)


def _meant(text: str) -> frozenset[str]:
    return parse_use_kinds(text) - _NOISE


def build_no_match(argument: str, text: str, names: Iterable[str], where: str) -> NotFoundError:
    """Build the error for a name without a match, with similar `names`."""
    known = list(dict.fromkeys(names))
    like = find_nearest(text, known)
    more = f" of {len(known)}" if len(known) > len(like) else ""
    shown = f"Most similar{more}: {shorten(like)}" if like else f"Available: {shorten(known)}"
    said = f" in {where}. {shown}." if known else f". {where} has no recorded {argument}."
    unrecorded = UNRECORDED if argument == "use" else ""
    return NotFoundError(f"{argument}: No match for {quoted(text)}{said}{unrecorded}")


def find_nearest(text: str, known: Sequence[str]) -> list[str]:
    """Find the names most similar to `text`, best first."""
    return [each.name for each in Names(list(enumerate(known))).nearest(text, NEAREST)]


def find_standard_types(text: str, codes: Sequence[str], where: str, notes: list[str]) -> tuple[set[str], str | None]:
    """Find the codes of standard types that `text` names, and the bound (min or max) that it names, if any.

    Raises NotFoundError with similar types.
    """
    wanted = clean_text("standard_type", text, 200)
    if wanted in codes and "-" in wanted:
        return {wanted}, None
    words, bound = parse_standard(wanted)
    found = {code for code in codes if words and words <= parse_standard(code)[0]}
    if not found:
        error = build_no_match("standard_type", wanted, sorted(codes), where)
        raise NotFoundError(f"{error} Other rules are in the text only: kg_search_by_topic finds the sections.")
    if {fold(code) for code in found} != {fold(wanted)}:
        notes.append(f"standard_type: {quoted(wanted)} was interpreted as {', '.join(sorted(found))}.")
    return found, bound


def parse_standard(text: str) -> tuple[set[str], str | None]:
    """Parse the name of a type of standard: its words in the singular, without fillers, and its bound (min or max)."""
    words = [singular(word) for word in fold(text).split()]
    bound = next((_BOUNDS[word] for word in words if word in _BOUNDS), None)
    kept = (word for word in words if word not in _BOUNDS and word not in _FILLERS)
    return {part for word in kept for part in _SAME.get(word, word).split()}, bound


PARTS: Final = """
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
    for row in reader.rows("names of parts of codes", bind(PARTS, things=[NamedNode(iri) for iri in things])):
        iri, said = iri_of(row["thing"]), {name: _to_text(term) for name, term in row.items()}
        label, code = labels.get(iri, ""), said.get("code")
        if kinds[iri] == KG.CodeSection.value and (code := said.get("number")) is not None:
            numbers[iri] = code
        if code is not None:
            names[iri] = f"{code} {label}" if label and not label.startswith(code) else label or code
        elif not label and kinds[iri] != KG.CodeSection.value and (name := _name(said)):
            names[iri] = name
    return names, numbers


def _name(said: Mapping[str, str]) -> str:
    """Summarize a rule, claim, span or paragraph in one line, or an empty string."""
    place = f" in {said['district']}" if "district" in said else ""
    if "use" in said:
        level = said.get("level") or said.get("asRecorded")
        return said["use"] + place + (f": {level}" if level else "")
    if "type" in said:
        bound = f"{said['bound']} " if "bound" in said else ""
        value = said.get("value", "")
        if "unit" in said and not any(letter.isalpha() or letter in "'\"%" for letter in value):
            value += f" {said['unit']}"
        kind = f" ({said['for']})" if "for" in said else ""
        return f"{bound}{said['type']}{kind}{place}: {value}"
    if "citation" in said:
        return f"{said['citing']} cites {said['citation']}"
    return f"“{said['words']}”" if "words" in said else said.get("label", "")


def _to_text(term: Term) -> str:
    """Get a literal, the label of a code of the ontology, or the end of another IRI."""
    if not isinstance(term, NamedNode):
        return term_text(term)
    known = load_declared_terms().get(term.value)
    return known.label if known is not None else code_of(term.value)
