"""Hints about triple patterns that cannot match, given the classes that each property occurs with in the data.

The class of a variable is the one that the query states (``?x a kg:Passage``), else any that its other patterns allow.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kg.sparql.algebra import Node, Pattern, Query
from kg.sparql.schema_index import SchemaIndex, local_name
from kg.vocabulary import BASE, RDF, curie

MAX_PATTERNS: Final = 100

_TYPE: Final = RDF.type.value


@dataclass(frozen=True, slots=True)
class Finding:
    """A probable mistake: the text `found` at offset `start` of a query."""

    code: str
    message: str
    start: int
    found: str
    suggestions: tuple[str, ...]


def did_you_mean(names: list[str]) -> str:
    """Return the last sentence of a message that suggests `names`, or ""."""
    return f" Did you mean {' or '.join(names)}?" if names else ""


def check(query: Query, index: SchemaIndex, wrong: set[str]) -> list[Finding]:
    """Find the patterns of `query` that cannot match, except those with a term in `wrong`.

    Compares each pattern with all others of its variables, so a query of more than `MAX_PATTERNS` is not checked.
    """
    if len(query.patterns) > MAX_PATTERNS:
        return []
    return _Patterns(query, index, wrong).findings()


def is_visible(scope: tuple[int, ...], at: tuple[int, ...]) -> bool:
    """Return whether a pattern in the group `scope` also constrains the group `at`."""
    return at[: len(scope)] == scope


def node_key(node: Node) -> tuple[str, str]:
    """Return the key that all occurrences of one variable or term share."""
    return node.kind, node.value


class _Patterns:
    def __init__(self, query: Query, index: SchemaIndex, wrong: set[str]) -> None:
        self._index, self._wrong = index, wrong
        self._patterns: list[Pattern] = []
        self._types: list[Pattern] = []
        for pattern in query.patterns:
            if pattern.iri == _TYPE:
                if pattern.object.kind == "iri":
                    self._types.append(pattern)
            elif pattern.iri in index.domains:
                self._patterns.append(pattern)
        self._by_node: dict[tuple[str, str], list[Pattern]] = {}
        for pattern in self._patterns:
            for node in (pattern.subject, pattern.object):
                self._by_node.setdefault(node_key(node), []).append(pattern)
        self._stated: dict[tuple[str, str], list[Pattern]] = {}
        for pattern in self._types:
            self._stated.setdefault(node_key(pattern.subject), []).append(pattern)

    def findings(self) -> list[Finding]:
        found: list[Finding] = []
        done: set[tuple[str, str]] = set()
        swapped: list[Finding] = []
        certain: list[Finding] = []
        inferred: dict[tuple[str, str], Finding] = {}
        for pattern in self._patterns:
            if pattern.scope:
                continue
            if (finding := self._direction(pattern)) is not None:
                swapped.append(finding)
                done |= {key for key in (node_key(pattern.subject), node_key(pattern.object)) if self._sure(key)}
        for pattern in self._patterns:
            subject = node_key(pattern.subject)
            if pattern.scope or subject in done or node_key(pattern.object) in done:
                continue
            classes, stated = self._classes(pattern.subject, pattern)
            if classes is not None and not _overlap(classes, self._domain(pattern), every=stated):
                finding = self._wrong_subject(pattern, classes, stated)
                if stated:
                    certain.append(finding)
                else:
                    inferred[subject] = finding  # of several contradicting patterns, report only the last
                continue
            if (finding_ := self._wrong_object(pattern)) is not None:
                certain.append(finding_)
        found = swapped + certain
        taken = {finding.start for finding in found}
        found += [finding for finding in inferred.values() if finding.start not in taken]
        return found + [finding for pattern in self._patterns if (finding := self._graph(pattern)) is not None]

    def _graph(self, pattern: Pattern) -> Finding | None:
        """Report a pattern in a graph whose family does not use its property."""
        graph, families = pattern.graph, self._index.schema.families
        if graph is None or graph.kind != "iri" or not families or pattern.iri in self._wrong:
            return None
        family = self._index.family_of(graph.value)
        if family is None or pattern.iri in families.get(family, frozenset()):
            return None
        others = [name for name, held in families.items() if pattern.iri in held]
        if not others:
            return None
        return Finding(
            "wrong_graph",
            f"no graph of the family {family} contains {pattern.path}. Families that do: {', '.join(others[:5])} "
            f"(<{BASE}graph/{others[0]}...>). Use GRAPH ?g, or omit GRAPH to query all graphs.",
            graph.start,
            graph.text,
            tuple(f"<{BASE}graph/{name}{'' if name == 'prov' else '/...'}>" for name in others[:3]),
        )

    def _sure(self, key: tuple[str, str]) -> bool:
        """Return whether the class of a node is certain: the query states it, or more than one pattern implies it."""
        return key in self._stated or len(self._by_node.get(key, ())) != 2

    # -- the classes of a node

    def _classes(self, node: Node, but: Pattern) -> tuple[set[str] | None, bool]:
        """Return the possible classes of `node` by all patterns except `but`, and whether the query states them.

        None means any class, also where the query states one that the data does not contain.
        """
        key = node_key(node)
        stated = [p.object.value for p in self._stated.get(key, ()) if is_visible(p.scope, but.scope)]
        if stated:
            known = set(stated) <= self._index.used_classes
            return (set(stated), True) if known else (None, True)
        if node.kind not in ("variable", "blank"):
            return None, False
        left: set[str] | None = None
        for pattern in self._by_node.get(key, ()):
            if pattern is but or not is_visible(pattern.scope, but.scope):
                continue
            ends = [self._domain(pattern)] if node_key(pattern.subject) == key else []
            if node_key(pattern.object) == key:
                ends.append(self._range(pattern))
            for classes in ends:
                if classes and "" not in classes:
                    left = set(classes) if left is None else left & classes
        return left or None, False

    def _domain(self, pattern: Pattern) -> set[str]:
        return set(self._index.domains[pattern.iri])

    def _range(self, pattern: Pattern) -> set[str]:
        use = self._index.use(pattern.iri)
        found = set() if use is None else {name for name, count in use.classes.items() if count}
        above = {name for name in self._index.superclasses if not found.isdisjoint(self._index.narrower(name))}
        return found | above

    # -- findings

    def _direction(self, pattern: Pattern) -> Finding | None:
        domain, targets = self._domain(pattern), self._range(pattern)
        subjects, _ = self._classes(pattern.subject, pattern)
        objects: set[str] | None = None
        if pattern.object.kind in ("variable", "blank") or node_key(pattern.object) in self._stated:
            objects, _ = self._classes(pattern.object, pattern)
        wrong_subject = subjects is not None and not _overlap(subjects, domain)
        wrong_object = objects is not None and not _overlap(objects, targets)
        if not (wrong_subject or wrong_object):
            return None
        fits = (subjects is None or bool(subjects & targets)) and (objects is None or bool(objects & domain))
        if not fits or (subjects is None and not targets and pattern.subject.kind not in ("variable", "blank")):
            return None
        if pattern.object.kind == "literal":
            return None
        predicate = pattern.path
        turned = f"{_text(pattern.object)} {predicate} {_text(pattern.subject)}"
        return Finding(
            "wrong_direction",
            f"wrong direction of {predicate}: it points from {self._list(domain)} to "
            f"{self._list(targets) or 'literals'}. Did you mean {turned} ?",
            pattern.atoms[0].start,
            f"{_text(pattern.subject)} {predicate} {_text(pattern.object)}",
            (turned, f"{_text(pattern.subject)} ^{predicate} {_text(pattern.object)}"),
        )

    def _wrong_subject(self, pattern: Pattern, classes: set[str], stated: bool) -> Finding:
        index, predicate = self._index, pattern.atoms[0]
        domain = self._domain(pattern)
        own = sorted(classes, key=lambda name: name in domain)
        siblings = [p for p in self._by_node.get(node_key(pattern.subject), ()) if p.subject == pattern.subject]
        if stated and (meant := self._classes_with_all(pattern, classes)):
            typed = self._stated[node_key(pattern.subject)][0]
            return Finding(
                "wrong_class",
                f"{typed.object.text} does not have {', '.join(sorted({p.path for p in siblings}))}."
                f"{did_you_mean([index.label(name) for name in meant])}",
                typed.object.start,
                typed.object.text,
                tuple(map(curie, meant)),
            )
        paths = [path for name in own for path in index.paths(name, predicate.value)][:2]
        of = index.schema.classes.get(own[0])
        theirs = () if of is None else of.properties
        near = index.nearest("property", predicate.value, only=[iri for iri in theirs if iri != predicate.value])
        parts = [f"{self._list(classes)} does not have {predicate.text}. It is a property of {self._list(domain)}."]
        if paths:
            parts.append(f"Path from here: {_text(pattern.subject)} {' or '.join(paths)} ...")
        if near:
            parts.append(f"Similar: {', '.join(index.label(iri) for iri in near)}.")
        elif theirs:
            most = [curie(iri) for iri in theirs if iri != _TYPE][:6]
            parts.append(f"Available: {', '.join(most)}.")
        suggestions = [*paths, *map(curie, near), *(curie(name) for name in sorted(domain) if name)]
        return Finding("property_not_of_class", " ".join(parts), predicate.start, predicate.text, tuple(suggestions))

    def _classes_with_all(self, pattern: Pattern, classes: set[str]) -> list[str]:
        """Return the classes with all properties of the subject, if its stated class has at most half of them."""
        index = self._index
        own = {
            p.iri
            for p in self._by_node.get(node_key(pattern.subject), ())
            if node_key(p.subject) == node_key(pattern.subject) and not p.scope
        }
        theirs = {iri for name in classes for iri in index.schema.classes[name].properties}
        if len(own) < 2 or len(own & theirs) * 2 > len(own):
            return []
        return [
            name
            for name, of in index.schema.classes.items()
            if name and name not in classes and not of.inferred and own <= of.properties.keys()
        ][:2]

    def _wrong_object(self, pattern: Pattern) -> Finding | None:
        """Report an object whose stated class never occurs as the object of the property."""
        if pattern.object.kind not in ("variable", "blank"):
            return None
        objects, stated = self._classes(pattern.object, pattern)
        targets = self._range(pattern)
        if objects is None or not stated or _overlap(objects, targets):
            return None
        subjects, _ = self._classes(pattern.subject, pattern)
        others = [
            curie(iri)
            for name in sorted(subjects or self._domain(pattern))
            for iri, use in getattr(self._index.schema.classes.get(name), "properties", {}).items()
            if objects & use.classes.keys()
        ]
        typed = self._stated[node_key(pattern.object)][0]
        reached = self._list(targets) or "literals"
        message = f"the values of {pattern.path} are {reached}, never {self._list(objects)}."
        if others:
            message += f" Properties with such values: {', '.join(dict.fromkeys(others))}."
        if targets:
            message += f" Or is {_text(pattern.object)} a {self._list(targets)}?"
        return Finding(
            "wrong_range",
            message,
            typed.object.start,
            typed.object.text,
            tuple(dict.fromkeys([*others, *(curie(name) for name in sorted(targets) if name)])),
        )

    def _list(self, classes: Iterable[str]) -> str:
        names = [curie(name) if name else "entities without a class" for name in sorted(classes)]
        return " or ".join(names[:4]) + (" and others" if len(names) > 4 else "")


def _overlap(classes: set[str], allowed: set[str], *, every: bool = False) -> bool:
    """Return whether an entity of `classes` may be one of `allowed`; `every`: it has all of `classes`."""
    if "" in allowed and not every:
        return True
    return classes <= allowed if every else bool(classes & allowed)


def _text(node: Node) -> str:
    return node.text if node.kind != "blank" else f"?{local_name(node.value) or 'x'}"
