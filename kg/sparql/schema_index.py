"""An index over the measured schema: which names are near which, and what is used with what. Pure."""

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
from kg.vocabulary import BASE, RDF, curie
from kg.words import singular

TermKind = Literal["class", "property", "individual"]

NEAR: Final = 62.0
"""Score from which a name counts as near; 100 is the same words."""

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
"""Words that vocabularies use for about the same thing."""
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


class Lexicon:
    """What can be asked of a schema without reading it again; `lexicon_of` keeps one for each."""

    def __init__(self, schema: Schema) -> None:
        self.schema: Final = schema
        used: dict[TermKind, set[str]] = {
            "class": {iri for iri, use in schema.classes.items() if iri and use.entities},
            "property": {iri for iri, use in schema.properties.items() if use.triples},
            "individual": set(),
        }
        self.used_classes: Final = used["class"]
        self.known: Final[dict[TermKind, set[str]]] = {kind: set(iris) for kind, iris in used.items()}
        for term in schema.terms.values():
            if term.kind in self.known:
                self.known[term.kind].add(term.iri)
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
        own = words(local_name(iri))
        term = self.schema.terms.get(iri)
        labels = () if term is None else (term.label, *term.alt_labels)
        phrases = dict.fromkeys([" ".join(own), *(" ".join(words(label)) for label in labels)])
        defined = frozenset(words(term.definition or "")) if term is not None else frozenset()
        return _Name(iri, "".join(own), tuple(phrase for phrase in phrases if phrase), defined, used)

    def _domain(self, iri: str) -> Mapping[str, PropertyUse]:
        found = {name: of.properties[iri] for name, of in self.schema.classes.items() if iri in of.properties}
        whole = self.schema.properties[iri]
        if sum(use.triples for use in found.values()) < whole.triples:
            found.setdefault("", whole)  # some of its subjects have no class
        return found

    def use(self, iri: str, classes: Collection[str] = ()) -> PropertyUse | None:
        """Return how the property is used with one of `classes`, or at all; None if it is not."""
        for name in classes:
            if (of := self.domains.get(iri, {}).get(name)) is not None:
                return of
        return self.schema.properties.get(iri)

    def is_known(self, iri: str) -> bool:
        """Return whether `iri` is a class, property or individual that is declared or used."""
        return any(iri in iris for iris in self.known.values())

    def label(self, iri: str) -> str:
        """Return the term as it is written in a query, with its label where that says more."""
        term = self.schema.terms.get(iri)
        short = curie(iri)
        if term is None or not term.label or words(term.label) == words(local_name(iri)):
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
        """Return the known terms nearest to `name` (an IRI or local name), best first.

        By the letters of the local name, by the words of labels and aliases, in whatever namespace. Terms in `fit` win
        over others that are about as near; `only` leaves out all others.
        """
        own = words(local_name(name))
        if not own:
            return []
        space = namespace_of(name)
        scored = []
        for candidate in self._names[kind]:
            if only is not None and candidate.iri not in only:
                continue
            score = _nearness(own, candidate)
            if score >= NEAR:
                score += 8 * (candidate.iri in fit) + 3 * candidate.used + 2 * (namespace_of(candidate.iri) == space)
                scored.append((-score, candidate.iri))
        return [iri for _, iri in sorted(scored)[:most]]

    def links(self, origin: str, name: str) -> list[str]:
        """Return the paths of one step from things of class `origin` to those of a class that `name` sounds like.

        A name like hasDocument leads from a family to its documents, whatever the property is called.
        """
        own = [word for word in words(local_name(name)) if word not in _EMPTY]
        if not own:
            return []
        found = [
            step
            for step, to in self._steps(origin)
            if to != origin and set(own) <= {*words(local_name(to)), *words(self.label(to))}
        ]
        return list(dict.fromkeys(found))[:2]

    def nearness(self, name: str, other: str) -> float:
        """Return how alike the local names of two IRIs are spelt, from 0 to 100."""
        return fuzz.ratio("".join(words(local_name(name))), "".join(words(local_name(other))))

    def spelt_alike(self, name: str, other: str) -> bool:
        """Return whether the local names of two IRIs are nearly the same, or have a word in common."""
        common = set(words(local_name(name))) & set(words(local_name(other)))
        return bool(common) or self.nearness(name, other) >= _ALIKE

    def classes_with(self, properties: Set[str]) -> list[str]:
        """Return the classes whose things have all of `properties`, the smallest first."""
        if not properties:
            return []
        found = [of for name, of in self.schema.classes.items() if name and properties <= of.properties.keys()]
        return [of.iri for of in sorted(found, key=lambda of: len(of.properties))]

    def siblings(self, iri: str, most: int = 3) -> list[str]:
        """Return the known individuals nearest to `iri` in its own namespace, one of a code list for instance."""
        own = words(local_name(iri))
        scored = [(-_nearness(own, name), name.iri) for name in self._siblings.get(namespace_of(iri), ())]
        return [found for score, found in sorted(scored)[:most] if -score >= NEAR]

    def individuals(self, text: str, namespace: str | None) -> list[str]:
        """Return the individuals that are called `text`: by label, alias or the last part of their IRI."""
        own = " ".join(words(text))
        names = self._names["individual"] if namespace is None else self._siblings.get(namespace, [])
        return [name.iri for name in names if own and own in name.phrases][:3]

    def narrower(self, iri: str) -> list[str]:
        """Return the classes or properties in use that are declared below `iri`, however deep."""
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
        """Return the shortest way from things of class `origin` to the property `target`, as property paths."""
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
        """Yield each property path of one step from `origin` with the class that it leads to, most used first."""
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
        """Return the family that the graph's IRI puts it in, whether or not such a graph exists; None for another."""
        if not graph.startswith(BASE + "graph/"):
            return None
        rest = graph.removeprefix(BASE + "graph/")
        found = [family for family in self.schema.graphs if rest == family or rest.startswith(family + "/")]
        return max(found, key=len, default=None)


def words(name: str) -> list[str]:
    """Return the words of a local name or label in lower case and in the singular."""
    return [singular(word.casefold()) for word in _WORD.findall(unquote(name))]


def local_name(iri: str) -> str:
    """Return what follows the last ``#``, ``/`` or (in a prefixed name) colon."""
    local = _LOCAL.search(iri.rstrip("/#"))
    return (local[0] if local else "").rpartition(":")[2]


def namespace_of(iri: str) -> str:
    """Return `iri` without its local name."""
    return iri.removesuffix(local_name(iri))


def _nearness(own: list[str], candidate: _Name) -> float:
    """Return how near the words `own` are to a name, from 0 to 100: by letters, by words, and by what words mean."""
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


_cache: dict[int, Lexicon] = {}
_lock = threading.Lock()


def lexicon_of(schema: Schema) -> Lexicon:
    """Return the index over `schema`, built once for each of the last few schemas."""
    with _lock:
        kept = _cache.get(id(schema))
        if kept is not None and kept.schema is schema:
            return kept
    built = Lexicon(schema)
    with _lock:
        _cache[id(schema)] = built
        while len(_cache) > _CACHED:
            del _cache[next(iter(_cache))]
    return built
