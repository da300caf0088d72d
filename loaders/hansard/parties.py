"""Recorded names of parties, chambers and states: from a form and a day to an identifier, or None.

The forms, with their meanings and dates, are in ``ontology/reference/australia.ttl``. Case, spaces and punctuation
are ignored. Nothing is guessed: a form that is not listed, or is ambiguous on the day, is None, and the caller keeps
the form as recorded.
"""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Final, Literal, get_args

import pyoxigraph
from pyoxigraph import NamedNode, RdfFormat, Triple, parse

from kg import bundle
from kg.vocabulary import BASE, DCTERMS, KG, SCHEMA, SKOS, mint

CHAMBERS: Final = {"au-representatives": "House of Representatives", "au-senate": "Senate"}
"""The chambers of Australia's parliament, by code."""
_Kind = Literal["party", "chamber", "place"]

_FILE: Final = bundle.folder("ontology") / "reference" / "australia.ttl"
_LITERAL_FORM: Final = NamedNode("http://www.w3.org/2008/05/skos-xl#literalForm")
_ROOTS: Final[dict[_Kind, str]] = {kind: f"{BASE}id/{kind}/" for kind in get_args(_Kind)}
_COUNTRY: Final = "AU-"
_ALWAYS: Final = (date.min.year, date.max.year)
_CHANGE: Final = re.compile(r"(?P<form>.+?)(?<!\s)\s++from\s++(?P<year>[0-9]{4})", re.IGNORECASE)
_NOTHING: Final = frozenset({"", "na", "none", "nil", "null", "nan", "unknown", "notapplicable"})
"""Keys of forms that mean an absent value."""
_PRESIDING: Final = "po"
"""Replaces the electorate of the presiding officer, who represents none then."""


@dataclass(frozen=True, slots=True)
class _Meaning:
    """The meaning of a form, with the first and last year in which it applies."""

    thing: NamedNode
    since: int
    until: int
    is_name: bool
    """Whether the form applies on any day, unless another entity has the same name."""


@dataclass(frozen=True, slots=True)
class _Vocabulary:
    said: Mapping[NamedNode, Sequence[Triple]]
    """The triples about each entity."""
    meanings: Mapping[tuple[_Kind, str], Sequence[_Meaning]]
    """By kind and normalized form."""


def party(form: str, on: date) -> NamedNode | None:
    """Return the party that `form` means on the day `on`.

    The form may be a career, as in records of the first decades: with ``FT; ANTI-SOC from 1906`` the party on a day
    before 1906 is that of FT. In the year of a change itself the party is ambiguous.
    """
    first, *later = (segment.strip() for segment in form.split(";"))
    current = first
    for segment in later:
        change = _CHANGE.fullmatch(segment)
        if change is None or int(change["year"]) == on.year:
            return None
        if int(change["year"]) < on.year:
            current = change["form"]
    return _meaning("party", current, on)


def chamber(form: str) -> NamedNode | None:
    """Return the chamber that `form` names; for a part of a chamber, the whole: the House for its Main Committee."""
    found = _meaning("chamber", form)
    return None if found is None else _whole(found) or found


def venue(form: str) -> NamedNode | None:
    """Return the part of a chamber that `form` names: the Main Committee of the House, since 2012 its Federation
    Chamber. None where the form names a whole chamber.
    """
    found = _meaning("chamber", form)
    return None if found is None or _whole(found) is None else found


def chamber_of_flag(senate_flag: str) -> NamedNode | None:
    """Return the chamber for a column ``senate_flag``: the Senate for 1, the House for 0."""
    whole = {"1": "au-senate", "0": "au-representatives"}.get(senate_flag.strip().removesuffix(".0"))
    return None if whole is None else mint("chamber", whole)


def state(form: str) -> NamedNode | None:
    """Return the state or territory that `form` names."""
    found = _meaning("place", form)
    return found if found and found.value.startswith(_ROOTS["place"] + _COUNTRY) else None


def electorate(form: str) -> str | None:
    """Return the name of the electorate in `form`, or None for an absent value: N/A, or PO for the presiding officer.

    A senator's electorate is a state: see `state`. Parentheses and dashes, which editions of some years leave next to
    an electorate, are removed.
    """
    name = " ".join(form.replace("(", " ").replace(")", " ").split()).strip(" —–-.,;:")
    return None if is_nothing(name) or _key(name) == _PRESIDING else name


def is_nothing(form: str) -> bool:
    """Whether `form` is empty or means an absent value, such as N/A."""
    return _key(form) in _NOTHING


def parties() -> Sequence[NamedNode]:
    """Return all parties of the vocabulary."""
    return sorted((thing for thing in _vocabulary().said if thing.value.startswith(_ROOTS["party"])), key=str)


def describe(thing: NamedNode) -> Sequence[Triple]:
    """Return the vocabulary's triples about a party, chamber or place, for its graph in
    ``graph/ref``; () for others.
    """
    return _vocabulary().said.get(thing, ())


def _key(form: str) -> str:
    """Normalize `form`: letters and digits in one case."""
    return "".join(c for c in unicodedata.normalize("NFKC", form).casefold() if c.isalnum())


def _meaning(kind: _Kind, form: str, on: date | None = None) -> NamedNode | None:
    found = _vocabulary().meanings.get((kind, _key(form)), ())
    things = {each.thing for each in found if on is None or each.since <= on.year <= each.until}
    return next(iter(things)) if len(things) == 1 else None


def _whole(part: NamedNode) -> NamedNode | None:
    """Return the chamber that contains `part`."""
    wholes = (triple.object for triple in describe(part) if triple.predicate == DCTERMS.isPartOf)
    return next((whole for whole in wholes if isinstance(whole, NamedNode)), None)


@cache
def _vocabulary() -> _Vocabulary:
    nodes: dict[NamedNode, list[Triple]] = defaultdict(list)
    for quad in parse(path=_FILE, format=RdfFormat.TURTLE):
        if isinstance(quad.subject, NamedNode):
            nodes[quad.subject].append(quad.triple)
    meanings: dict[tuple[_Kind, str], list[_Meaning]] = defaultdict(list)
    for node, triples in nodes.items():
        thing = next((each.object for each in triples if each.predicate == KG.formOf), node)
        kind = next((kind for kind, root in _ROOTS.items() if node.value.startswith(root)), None)
        if kind is not None and isinstance(thing, NamedNode):
            for form, meaning in _forms(thing, triples):
                meanings[kind, _key(form)].append(meaning)
    for key, found in meanings.items():
        if all(each.is_name for each in found) and len({each.thing for each in found}) == 1:
            meanings[key] = [_Meaning(found[0].thing, *_ALWAYS, is_name=True)]
    return _Vocabulary({node: said for node, said in nodes.items() if "#" not in node.value}, dict(meanings))


def _forms(thing: NamedNode, triples: Sequence[Triple]) -> Iterator[tuple[str, _Meaning]]:
    """Yield the forms that `triples` declare for an entity: its names and recorded forms."""
    since, until = _ALWAYS
    forms: list[tuple[str, bool]] = []
    for _, predicate, value in triples:
        if not isinstance(value, pyoxigraph.Literal):
            continue
        if predicate in (SKOS.prefLabel, SKOS.altLabel):
            forms.append((value.value, True))
        elif predicate in (SKOS.notation, _LITERAL_FORM):
            forms.append((value.value.removeprefix(_COUNTRY), False))
        elif predicate in (SCHEMA.foundingDate, SCHEMA.validFrom):
            since = int(value.value)
        elif predicate in (SCHEMA.dissolutionDate, SCHEMA.validThrough):
            until = int(value.value)
    for form, is_name in forms:
        yield form, _Meaning(thing, since, until, is_name)
