"""Finds districts, uses, standard types and defined terms by the names that people use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Final

from pydantic import Field
from pyoxigraph import NamedNode
from rapidfuzz import fuzz, process

from kg.errors import NotFoundError
from kg.fuzzy_names import Names, fold
from kg.retrieval.choices import NEAREST, Choice, shorten
from kg.retrieval.notes import SEE_SECTIONS
from kg.retrieval.reader import Reader, clean_text, iri_of
from kg.sparql.terms import bind
from kg.store.protocol import Term, term_text
from kg.text import name_or_quote, natural_key, quoted
from kg.tools.zoning.municipalities import Place
from kg.vocabulary import iri_prefix
from kg.words import singular
from kg.zoning_summaries.use_names import parse_use_kinds

DistrictName = Annotated[str | None, Field(max_length=200, description="Code or name")]
UseName = Annotated[str | None, Field(max_length=300, description="E.g. duplex")]
StandardType = Annotated[str | None, Field(max_length=200, description="E.g. setback, lot-area, max height")]

# Districts and uses are distinguished by IRI: a lookup of their classes makes the query half as slow again.
NAMED: Final = """
SELECT ?thing ?code ?name WHERE {
  ?thing kg:jurisdiction $municipality ; skos:notation ?code ; skos:prefLabel ?name
}"""

NAMINGS: Final = """
SELECT ?district (MAX(?confidence) AS ?most) WHERE {
  VALUES ?district { $districts } ?naming kg:namesDistrict ?district ; kg:confidence ?found
  OPTIONAL { ?naming kg:reviewStatus ?review }
  BIND(IF(BOUND(?review), 1.0, ?found) AS ?confidence)
} GROUP BY ?district"""

UNRECORDED: Final = " An unrecorded use is not necessarily prohibited." + SEE_SECTIONS
SIMILAR: Final = 65
"""Least similarity, of 100, of a name that is suggested."""
SIMILAR_CODE: Final = 50
"""The same for a name of at most `CODE_LENGTH` characters, which may be a code."""
CODE_LENGTH: Final = 4
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


@dataclass(frozen=True, slots=True)
class Named:
    """A district or a use."""

    choice: Choice
    code: str
    name: str

    @property
    def iri(self) -> str:
        """IRI of its node."""
        return self.choice.term.value

    @property
    def other_name(self) -> str | None:
        """The name, if it differs from the code."""
        return self.name if self.name != self.code else None


@dataclass(frozen=True, slots=True)
class Vocabulary:
    """The districts and uses of one municipality, by IRI."""

    districts: Mapping[str, Named]
    uses: Mapping[str, Named]
    unsure: frozenset[str] = frozenset()
    """Districts that were found in text with a confidence below the setting ``rule_confidence``."""


def load_vocabulary(reader: Reader, place: Place) -> Vocabulary:
    """Load the districts and uses of a municipality, in the order of answers."""

    def read(rows: Sequence[Mapping[str, Term]]) -> Vocabulary:
        districts: list[Named] = []
        uses: list[Named] = []
        for row in rows:
            iri, code, name = iri_of(row["thing"]), term_text(row["code"]), term_text(row["name"])
            names = tuple(dict.fromkeys((code, name)))
            if iri.startswith(_DISTRICTS):
                districts.append(Named(Choice(NamedNode(iri), code, names), code, name))
            elif iri.startswith(_USES):
                uses.append(Named(Choice(NamedNode(iri), name, names), code, name))
        districts.sort(key=lambda each: natural_key(each.code))
        uses.sort(key=lambda each: natural_key(each.name))

        return Vocabulary({each.iri: each for each in districts}, {each.iri: each for each in uses})

    def read_confidences(rows: Sequence[Mapping[str, Term]]) -> dict[str, float]:
        return {iri_of(row["district"]): float(term_text(row["most"])) for row in rows if "most" in row}

    words = reader.kept("districts and uses", bind(NAMED, municipality=NamedNode(place.iri)), read)
    nodes = [NamedNode(iri) for iri in words.districts]
    query = bind(NAMINGS, districts=nodes)
    found = reader.kept("confidence of the districts", query, read_confidences) if nodes else {}
    least = reader.kg.settings.rule_confidence
    return replace(words, unsure=frozenset(iri for iri, confidence in found.items() if confidence < least))


def find_named(
    argument: str, text: str, things: Mapping[str, Named], place: Place, notes: list[str]
) -> Mapping[str, Named]:
    """Find the entries of `things` that `text` names, and note an inexact match in `notes`.

    Raises NotFoundError with similar names.
    """
    wanted = clean_text(argument, text, 300)
    choices = [each.choice for each in things.values()]
    found = find_alike(wanted, choices) if argument == "use" else find_matching(wanted, choices)
    if not found:
        more = UNRECORDED if argument == "use" else ""
        raise NotFoundError(
            no_match_message(argument, wanted, [choice.label for choice in choices], place.quoted) + more
        )
    if (note := match_note(argument, wanted, found)) is not None:
        notes.append(note)
    wanted_iris = {choice.term.value for choice in found}
    return {iri: thing for iri, thing in things.items() if iri in wanted_iris}


def find_matching(text: str, choices: Sequence[Choice]) -> list[Choice]:
    """Find the choices that `text` names: by spelling, else by meaning, else by words. All matches of a rule count."""
    found = find_spelled(text, choices) or _find_by_key(_meant, text, choices)
    return found or find_by_words(text, choices)


def find_alike(text: str, choices: Sequence[Choice]) -> list[Choice]:
    """Find the uses that `text` names, in any spelling, wording or enumeration: bank is also in ``Banks and inns``.

    Districts write the same use in several ways, so that all that match count, not only those of the best rule.
    """
    if any(choice.term.value == text.strip("<>") for choice in choices):
        return find_spelled(text, choices)
    whole = [*find_spelled(text, choices), *_find_by_key(_meant, text, choices)]
    plain, meant = _plain(text), _meant(text)
    found = [
        choice
        for choice in choices
        if choice in whole
        or any(_plain(part) == plain or _meant(part) == meant for name in choice.names for part in _members(name))
    ]
    return found or find_by_words(text, choices) or find_by_meaning(text, choices)


def _members(name: str) -> Sequence[str]:
    """Split an enumeration into its members."""
    return MEMBERS.split(name) if _JOINS.search(name) else ()


def find_spelled(text: str, choices: Sequence[Choice]) -> list[Choice]:
    """Find the choices with this IRI or name: exact, else ignoring case, blanks, plural and word order."""
    whole = text.strip("<>")
    found = [choice for choice in choices if choice.term.value == whole]
    for rule in (str.strip, str.casefold, _squeezed, _plain):
        found = found or _find_by_key(rule, text, choices)
    return found


def find_by_head(text: str, choices: Sequence[Choice]) -> list[Choice]:
    """Find the choices whose head noun is `text` or a synonym: "dwelling" in ``Dwelling, Row`` and ``Row dwelling``."""
    words = _in_order(text)
    found = [choice for choice in choices if words and any(_head(name, len(words)) == words for name in choice.names)]
    alike = _find_by_key(_meant, text, choices)
    return [*alike, *(choice for choice in found if choice not in alike)]


def find_by_words(text: str, choices: Sequence[Choice]) -> list[Choice]:
    """Find the choices whose name contains all words of `text`."""
    words = set(_plain(text))
    return [choice for choice in choices if words and any(words <= set(_plain(name)) for name in choice.names)]


def find_by_meaning(text: str, choices: Sequence[Choice]) -> list[Choice]:
    """Find the choices whose name contains the meaning of `text`: "church" in ``Building for religious assembly``."""
    meant = _meant(text)
    return [choice for choice in choices if meant and any(meant <= _meant(name) for name in choice.names)]


def _find_by_key(rule: Callable[[str], object], text: str, choices: Sequence[Choice]) -> list[Choice]:
    key = rule(text)
    return [choice for choice in choices if key and any(rule(name) == key for name in choice.names)]


def _head(name: str, length: int) -> tuple[str, ...]:
    """Get the last words before the first comma or bracket."""
    return _in_order(re.split(r"[,;:(\[]", name, maxsplit=1)[0])[-length:]


def _in_order(text: str) -> tuple[str, ...]:
    return tuple(singular(word) for word in fold(text).split())


def match_note(argument: str, text: str, found: Sequence[Choice]) -> str | None:
    """Build the note on an inexact match. Returns None for an exact one."""
    names = []
    for choice in found:
        other = next((name for name in choice.names if fold(name) != fold(choice.label)), None)
        names.append(choice.label if other is None else f"{choice.label} ({other})")
    names = list(dict.fromkeys(names))
    if all(text in choice.names for choice in found):
        return None
    if len(found) == 1 and text.casefold() in map(str.casefold, found[0].names):
        return None
    return f"{argument}: {quoted(text)} was interpreted as {shorten(names)}."


def _squeezed(text: str) -> str:
    """Equate R1, R-1 and R 1. It applies only if no code is spelled exactly so."""
    return fold(text).replace(" ", "")


def _plain(text: str) -> tuple[str, ...]:
    words = fold(text).split()
    return tuple(sorted(singular(word) for word in words if word not in _NOISE)) or tuple(words)


def _meant(text: str) -> frozenset[str]:
    return parse_use_kinds(text) - _NOISE


def no_match_message(argument: str, text: str, names: Sequence[str], where: str) -> str:
    """Build the error message for a name without a match, with similar names."""
    known = list(dict.fromkeys(names))
    if not known:
        return f"{argument}: No match for {quoted(text)}. {where} has no recorded {argument}."
    like = find_nearest(text, known)
    if not like:
        return f"{argument}: No match for {quoted(text)} in {where}. Available: {shorten(known)}."
    more = f" of {len(known)}" if len(known) > len(like) else ""
    return f"{argument}: No match for {quoted(text)} in {where}. Most similar{more}: {join_names(like)}."


def find_nearest(text: str, known: Sequence[str]) -> list[str]:
    """Find the names most similar to `text`, best first."""
    least = SIMILAR_CODE if len(text) <= CODE_LENGTH else SIMILAR
    near = [known[each.number] for each in Names(list(enumerate(known))).nearest(text, NEAREST)]
    if like := [name for name in near if fuzz.partial_ratio(fold(text), fold(name)) >= least]:
        return like
    # No word is similar to a word of a name, but part of a name may be: "daycare" and "day care center".
    scorer = fuzz.token_sort_ratio if len(text) <= CODE_LENGTH else fuzz.partial_ratio
    found = process.extract(text, known, scorer=scorer, processor=fold, limit=NEAREST, score_cutoff=least)
    return [name for name, _, _ in found]


def list_labels(choices: Iterable[Choice]) -> list[str]:
    """List the labels of choices, each once."""
    return list(dict.fromkeys(choice.label for choice in choices))


def join_names(names: Sequence[str]) -> str:
    """Join names by commas for a message."""
    return ", ".join(map(name_or_quote, names))


def find_standard_types(text: str, codes: Sequence[str], place: Place, notes: list[str]) -> tuple[set[str], str | None]:
    """Find the codes of standard types that `text` names, and the bound (min or max) that it names, if any.

    Raises NotFoundError with similar types.
    """
    wanted = clean_text("standard_type", text, 200)
    if wanted in codes and "-" in wanted:
        return {wanted}, None
    words, bound = parse_standard(wanted)
    found = {code for code in codes if words and words <= parse_standard(code)[0]}
    if not found:
        message = no_match_message("standard_type", wanted, sorted(codes), place.quoted)
        raise NotFoundError(f"{message} Other rules are in the text only: kg_search_by_topic finds the sections.")
    if {fold(code) for code in found} != {fold(wanted)}:
        notes.append(f"standard_type: {quoted(wanted)} was interpreted as {', '.join(sorted(found))}.")
    return found, bound


def parse_standard(text: str) -> tuple[set[str], str | None]:
    """Parse the name of a type of standard: its words in the singular, without fillers, and its bound (min or max)."""
    words = [singular(word) for word in fold(text).split()]
    bound = next((_BOUNDS[word] for word in words if word in _BOUNDS), None)
    kept = (word for word in words if word not in _BOUNDS and word not in _FILLERS)
    return {part for word in kept for part in _SAME.get(word, word).split()}, bound
