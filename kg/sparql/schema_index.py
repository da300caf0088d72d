"""An index over the measured schema: similar names, and which properties connect which classes."""

from __future__ import annotations

import re
import threading
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal
from urllib.parse import unquote

from rapidfuzz import fuzz

from kg.sparql.measured_schema import PropertyUse, Schema
from kg.vocabulary import BASE, PROVENANCE_PROPERTIES, RDF, curie
from kg.words import singular

TermKind = Literal["class", "property", "individual"]

NEAR: Final = 62.0
"""Minimum score of a similar name; 100 means the same words."""

_WORD: Final = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_]+")
_LOCAL: Final = re.compile(r"[^/#]*$")
_TYPE: Final = RDF.type.value
_ALIKE: Final = 80.0
_SAME_MEANING: Final = 72.0
_DEFINED: Final = 64.0
_SYNONYMS: Final = (
    "caption heading headline label name title",
    "body content fulltext text value verbatim",
    "abstract comment description summary",
    "created date datetime generated issued modified published retrieved time year",
    "lang language locale",
    "code id identifier isocode key notation",
    "area coverage country geography jurisdiction location nation place region spatial state territory",
    "act law legislation policy regulation statute",
    "belong child contain member part parent",
    "homepage link page url web website",
    "checksum digest hash sha",
    "category kind type",
    "index number order position rank sequence",
    "derived origin source",
)
"""Groups of words that vocabularies use as synonyms."""
_EMPTY: Final = frozenset({"a", "has", "is", "of", "in", "to", "the"})
_MEANINGS: Final = {word: number for number, group in enumerate(_SYNONYMS) for word in group.split()}
_CACHED: Final = 4


@dataclass(frozen=True, slots=True)
class _Name:
    iri: str
    joined: str
    phrases: tuple[str, ...]
    defined: frozenset[str]
    used: bool


class SchemaIndex:
    """Lookups over one schema. `get_index` caches it."""

    def __init__(self, schema: Schema) -> None:
        self.schema: Final = schema
        used: dict[TermKind, set[str]] = {
            "class": {iri for iri, use in schema.classes.items() if iri and use.entities},
            "property": {iri for iri, use in schema.properties.items() if use.triples},
            "individual": set(),
        }
        self.used_classes: Final = used["class"]
        self.known: Final[dict[TermKind, set[str]]] = {kind: set(iris) for kind, iris in used.items()}
        # Some of these are written by few commits only, such as the time at which a graph was invalidated.
        self.known["property"].update(name.value for name in PROVENANCE_PROPERTIES)
        for term in schema.terms.values():
            if term.kind in self.known:
                self.known[term.kind].add(term.iri)
        self.superclasses: Final = {iri for iri, use in schema.classes.items() if use.inferred}
        self._names: Final = {
            kind: [self._name(iri, iri in used[kind]) for iri in sorted(iris)] for kind, iris in self.known.items()
        }
        self.namespaces: Final = {namespace_of(iri) for iris in self.known.values() for iri in iris}
        self.domains: Final = {iri: self._domain(iri) for iri in used["property"]}
        self._siblings: Final[dict[str, list[_Name]]] = {}
        for name in self._names["individual"]:
            self._siblings.setdefault(namespace_of(name.iri), []).append(name)
        self._children: Final[dict[str, list[str]]] = {}
        for term in schema.terms.values():
            for parent in term.parents:
                self._children.setdefault(parent, []).append(term.iri)

    def _name(self, iri: str, used: bool) -> _Name:
        own = split_words(local_name(iri))
        term = self.schema.terms.get(iri)
        labels = () if term is None else (term.label, *term.alt_labels)
        phrases = dict.fromkeys([" ".join(own), *(" ".join(split_words(label)) for label in labels)])
        defined = frozenset(split_words(term.definition or "")) if term is not None else frozenset()
        return _Name(iri, "".join(own), tuple(phrase for phrase in phrases if phrase), defined, used)

    def _domain(self, iri: str) -> Mapping[str, PropertyUse]:
        found = {name: of.properties[iri] for name, of in self.schema.classes.items() if iri in of.properties}
        whole = self.schema.properties[iri]
        if sum(use.triples for use in found.values()) < whole.triples:
            found.setdefault("", whole)  # some of its subjects have no class
        return found

    def use(self, iri: str, classes: Collection[str] = ()) -> PropertyUse | None:
        """Return the use of the property with the first of `classes` that has it, or with any; None if unused."""
        for name in classes:
            if (of := self.domains.get(iri, {}).get(name)) is not None:
                return of
        return self.schema.properties.get(iri)

    def is_known(self, iri: str) -> bool:
        """Return whether `iri` is a declared or used class, property or individual."""
        return any(iri in iris for iris in self.known.values())

    def label(self, iri: str) -> str:
        """Return the term as a CURIE, with its label if that differs from the local name."""
        term = self.schema.terms.get(iri)
        short = curie(iri)
        if term is None or not term.label or split_words(term.label) == split_words(local_name(iri)):
            return short
        return f"{short} ({term.label})"

    def nearest(
        self,
        kind: TermKind,
        name: str,
        *,
        most: int = 3,
        fit: Collection[str] = (),
        only: Collection[str] | None = None,
    ) -> list[str]:
        """Find the known terms most similar to `name` (an IRI or local name), best first.

        Compares the spelling of local names and the words of labels and aliases, in all namespaces. Terms in `fit` win
        over others of about the same score; with `only`, all others are skipped.
        """
        own = split_words(local_name(name))
        if not own:
            return []
        space = namespace_of(name)
        scored = []
        for candidate in self._names[kind]:
            if only is not None and candidate.iri not in only:
                continue
            score = _similarity(own, candidate)
            if score >= NEAR:
                score += 8 * (candidate.iri in fit) + 3 * candidate.used + 2 * (namespace_of(candidate.iri) == space)
                scored.append((-score, candidate.iri))
        return [iri for _, iri in sorted(scored)[:most]]

    def links(self, origin: str, name: str) -> list[str]:
        """Find paths of one step from class `origin` to a class whose name is in `name`.

        For example, hasDocument leads from a family to its documents, independent of the name of the property.
        """
        own = [word for word in split_words(local_name(name)) if word not in _EMPTY]
        if not own:
            return []
        found = [
            step
            for step, to in self._steps(origin)
            if to != origin and set(own) <= {*split_words(local_name(to)), *split_words(self.label(to))}
        ]
        return list(dict.fromkeys(found))[:2]

    def similarity(self, name: str, other: str) -> float:
        """Return the similarity in spelling of two local names, from 0 to 100."""
        return fuzz.ratio("".join(split_words(local_name(name))), "".join(split_words(local_name(other))))

    def is_spelt_alike(self, name: str, other: str) -> bool:
        """Return whether the local names of two IRIs are nearly equal, or have a word in common."""
        common = set(split_words(local_name(name))) & set(split_words(local_name(other)))
        return bool(common) or self.similarity(name, other) >= _ALIKE

    def classes_with(self, properties: Set[str]) -> list[str]:
        """Return the classes whose instances have all of `properties`, the one with the fewest properties first."""
        if not properties:
            return []
        classes = self.schema.classes.items()
        found = [of for name, of in classes if name and not of.inferred and properties <= of.properties.keys()]
        return [of.iri for of in sorted(found, key=lambda of: len(of.properties))]

    def siblings(self, iri: str, most: int = 3) -> list[str]:
        """Find the known individuals most similar to `iri` in its namespace, for example in a code list."""
        own = split_words(local_name(iri))
        scored = [(-_similarity(own, name), name.iri) for name in self._siblings.get(namespace_of(iri), ())]
        return [found for score, found in sorted(scored)[:most] if -score >= NEAR]

    def individuals(self, text: str, namespace: str | None) -> list[str]:
        """Find the individuals with `text` as label, alias or local name."""
        own = " ".join(split_words(text))
        names = self._names["individual"] if namespace is None else self._siblings.get(namespace, [])
        return [name.iri for name in names if own and own in name.phrases][:3]

    def narrower(self, iri: str) -> list[str]:
        """Return the classes or properties in use below `iri` in the declared hierarchy."""
        found: list[str] = []
        waiting = list(self._children.get(iri, ()))
        seen = {iri}
        while waiting:
            below = waiting.pop(0)
            if below in seen:
                continue
            seen.add(below)
            if below in self.used_classes or below in self.domains:
                found.append(below)
            waiting.extend(self._children.get(below, ()))
        return found

    def paths(self, origin: str, target: str) -> list[str]:
        """Find the shortest property paths (up to two steps) from class `origin` to the property `target`."""
        owners = {name for name in self.domains.get(target, {}) if name}
        one = [(step, to) for step, to in self._steps(origin) if to in owners and to != origin]
        if one:
            return list(dict.fromkeys(f"{step}/{curie(target)}" for step, _ in one))[:2]
        two = (
            f"{first}/{second}/{curie(target)}"
            for first, middle in self._steps(origin)
            for second, to in self._steps(middle)
            if middle != origin and to in owners and to not in (origin, middle)
        )
        return list(dict.fromkeys(two))[:2]

    def _steps(self, origin: str) -> Iterable[tuple[str, str]]:
        """Yield each property path of one step from `origin` and the class at its end, most used first."""
        of = self.schema.classes.get(origin)
        for iri, use in () if of is None else of.properties.items():
            for name in use.classes:
                if name and iri != _TYPE:
                    yield curie(iri), name
        for iri, domain in self.domains.items():
            for name, use in domain.items():
                if name and origin in use.classes and iri != _TYPE:
                    yield f"^{curie(iri)}", name

    def family_of(self, graph: str) -> str | None:
        """Return the family of a graph by its IRI, even if no such graph exists, or None."""
        if not graph.startswith(BASE + "graph/"):
            return None
        rest = graph.removeprefix(BASE + "graph/")
        found = [family for family in self.schema.graphs if rest == family or rest.startswith(family + "/")]
        return max(found, key=len, default=None)


def split_words(name: str) -> list[str]:
    """Split a local name or label into words, in lower case and singular."""
    return [singular(word.casefold()) for word in _WORD.findall(unquote(name))]


def local_name(iri: str) -> str:
    """Return the part after the last ``#``, ``/`` or (in a prefixed name) colon."""
    local = _LOCAL.search(iri.rstrip("/#"))
    return (local[0] if local else "").rpartition(":")[2]


def namespace_of(iri: str) -> str:
    """Return `iri` without its local name."""
    return iri.removesuffix(local_name(iri))


def _similarity(own: list[str], candidate: _Name) -> float:
    """Return the similarity of the words `own` to a name, from 0 to 100: by spelling, words and synonyms."""
    joined, spaced = "".join(own), " ".join(own)
    best = fuzz.ratio(joined, candidate.joined)
    for phrase in candidate.phrases:
        best = max(best, 0.98 * fuzz.token_sort_ratio(spaced, phrase), 0.85 * fuzz.token_set_ratio(spaced, phrase))
    if best < _ALIKE and (meaning := {_MEANINGS[word] for word in own if word in _MEANINGS}):
        best = max([best, *(_SAME_MEANING for phrase in candidate.phrases if meaning & _meanings(phrase))])
    if best < _DEFINED and candidate.defined.issuperset(own):
        best = _DEFINED
    return best


@cache
def _meanings(phrase: str) -> frozenset[int]:
    return frozenset(_MEANINGS[word] for word in phrase.split() if word in _MEANINGS)


_cache: dict[int, SchemaIndex] = {}
_lock = threading.Lock()


def get_index(schema: Schema) -> SchemaIndex:
    """Get the index over `schema`, cached for the last few schemas."""
    with _lock:
        kept = _cache.get(id(schema))
        if kept is not None and kept.schema is schema:
            return kept
    built = SchemaIndex(schema)
    with _lock:
        _cache[id(schema)] = built
        while len(_cache) > _CACHED:
            del _cache[next(iter(_cache))]
    return built
