"""Which patterns no data can match, by what each class and property is used with. Pure.

The class of a variable is what the query itself says of it (``?x a kg:Passage``), else what its other patterns leave.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from kg.sparql.algebra import Node, Pattern, Query
from kg.sparql.schema_index import Lexicon, local_name
from kg.vocabulary import BASE, RDF, curie

MOST_PATTERNS: Final = 100

_TYPE: Final = RDF.type.value


@dataclass(frozen=True, slots=True)
class Finding:
    """What is wrong at the offset `start` of a query, where its text is `found`."""

    code: str
    message: str
    start: int
    found: str
    suggestions: tuple[str, ...]


def check(query: Query, lexicon: Lexicon, wrong: set[str]) -> list[Finding]:
    """Return the patterns of `query` that cannot match; those with a term in `wrong` are left out.

    Each pattern is held against all others of its variables, so of more than `MOST_PATTERNS` none is.
    """
    if len(query.patterns) > MOST_PATTERNS:
        return []
    return _Usage(query, lexicon, wrong).findings()


def visible(scope: tuple[int, ...], at: tuple[int, ...]) -> bool:
    """Return whether what holds in the group `scope` holds at the group `at` too."""
    return at[: len(scope)] == scope


def key_of(node: Node) -> tuple[str, str]:
    """Return what two occurrences of the same variable or term have in common."""
    return node.kind, node.value


class _Usage:
    def __init__(self, query: Query, lexicon: Lexicon, wrong: set[str]) -> None:
        self._lexicon, self._wrong = lexicon, wrong
        self._patterns: list[Pattern] = []
        self._types: list[Pattern] = []
        for pattern in query.patterns:
            if pattern.iri == _TYPE:
                if pattern.object.kind == "iri":
                    self._types.append(pattern)
            elif pattern.iri in lexicon.domains:
                self._patterns.append(pattern)
        self._by_node: dict[tuple[str, str], list[Pattern]] = {}
        for pattern in self._patterns:
            for node in (pattern.subject, pattern.object):
                self._by_node.setdefault(key_of(node), []).append(pattern)
        self._said: dict[tuple[str, str], list[Pattern]] = {}
        for pattern in self._types:
            self._said.setdefault(key_of(pattern.subject), []).append(pattern)

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
                done |= {key for key in (key_of(pattern.subject), key_of(pattern.object)) if self._sure(key)}
        for pattern in self._patterns:
            subject = key_of(pattern.subject)
            if pattern.scope or subject in done or key_of(pattern.object) in done:
                continue
            classes, said = self._classes(pattern.subject, pattern)
            if classes is not None and not _overlap(classes, self._domain(pattern), every=said):
                finding = self._wrong_subject(pattern, classes, said)
                if said:
                    certain.append(finding)
                else:
                    inferred[subject] = finding  # the last pattern of several that contradict each other
                continue
            if (finding_ := self._wrong_object(pattern)) is not None:
                certain.append(finding_)
        found = swapped + certain
        taken = {finding.start for finding in found}
        found += [finding for finding in inferred.values() if finding.start not in taken]
        return found + [finding for pattern in self._patterns if (finding := self._graph(pattern)) is not None]

    def _graph(self, pattern: Pattern) -> Finding | None:
        """Question a pattern in a graph whose family has no such property."""
        graph, families = pattern.graph, self._lexicon.schema.families
        if graph is None or graph.kind != "iri" or not families or pattern.iri in self._wrong:
            return None
        family = self._lexicon.family_of(graph.value)
        if family is None or pattern.iri in families.get(family, frozenset()):
            return None
        others = [name for name, held in families.items() if pattern.iri in held]
        if not others:
            return None
        return Finding(
            "wrong_graph",
            f"no graph of the family {family} has {pattern.path}: it is in {', '.join(others[:5])} "
            f"(<{BASE}graph/{others[0]}...>); with GRAPH ?g, or without GRAPH, it is found wherever it is",
            graph.start,
            graph.text,
            tuple(f"<{BASE}graph/{name}{'' if name == 'prov' else '/...'}>" for name in others[:3]),
        )

    def _sure(self, key: tuple[str, str]) -> bool:
        """Return whether the class of a node is beyond doubt: the query gives it, or more than one pattern does."""
        return key in self._said or len(self._by_node.get(key, ())) != 2

    # -- what is known of a node

    def _classes(self, node: Node, but: Pattern) -> tuple[set[str] | None, bool]:
        """Return the classes that `node` has by all patterns except `but` (None: any), and whether the query says so.

        Where a class is not known to the data there is nothing to go by.
        """
        key = key_of(node)
        said = [p.object.value for p in self._said.get(key, ()) if visible(p.scope, but.scope)]
        if said:
            known = set(said) <= self._lexicon.used_classes
            return (set(said), True) if known else (None, True)
        if node.kind not in ("variable", "blank"):
            return None, False
        left: set[str] | None = None
        for pattern in self._by_node.get(key, ()):
            if pattern is but or not visible(pattern.scope, but.scope):
                continue
            ends = [self._domain(pattern)] if key_of(pattern.subject) == key else []
            if key_of(pattern.object) == key:
                ends.append(self._range(pattern))
            for classes in ends:
                if classes and "" not in classes:
                    left = set(classes) if left is None else left & classes
        return left or None, False

    def _domain(self, pattern: Pattern) -> set[str]:
        return set(self._lexicon.domains[pattern.iri])

    def _range(self, pattern: Pattern) -> set[str]:
        use = self._lexicon.use(pattern.iri)
        return set() if use is None else {name for name, count in use.classes.items() if count}

    # -- findings

    def _direction(self, pattern: Pattern) -> Finding | None:
        domain, targets = self._domain(pattern), self._range(pattern)
        subjects, _ = self._classes(pattern.subject, pattern)
        objects: set[str] | None = None
        if pattern.object.kind in ("variable", "blank") or key_of(pattern.object) in self._said:
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
            f"{predicate} points from {self._list(domain)} to {self._list(targets) or 'literals'}, and here it is the "
            f"other way round; did you mean {turned} ?",
            pattern.atoms[0].start,
            f"{_text(pattern.subject)} {predicate} {_text(pattern.object)}",
            (turned, f"{_text(pattern.subject)} ^{predicate} {_text(pattern.object)}"),
        )

    def _wrong_subject(self, pattern: Pattern, classes: set[str], said: bool) -> Finding:
        lexicon, predicate = self._lexicon, pattern.atoms[0]
        domain = self._domain(pattern)
        own = sorted(classes, key=lambda name: name in domain)
        siblings = [p for p in self._by_node.get(key_of(pattern.subject), ()) if p.subject == pattern.subject]
        if said and (meant := self._class_of_all(pattern, classes)):
            typed = self._said[key_of(pattern.subject)][0]
            return Finding(
                "wrong_class",
                f"a {typed.object.text} has neither {', nor '.join(sorted({p.path for p in siblings}))}; "
                f"did you mean {' or '.join(map(lexicon.label, meant))}, which has them?",
                typed.object.start,
                typed.object.text,
                tuple(map(curie, meant)),
            )
        paths = [path for name in own for path in lexicon.paths(name, predicate.value)][:2]
        of = lexicon.schema.classes.get(own[0])
        theirs = () if of is None else of.properties
        near = lexicon.nearest("property", predicate.value, only=[iri for iri in theirs if iri != predicate.value])
        parts = [f"no {self._list(classes)} has {predicate.text}: it is used with {self._list(domain)}"]
        if paths:
            parts.append(f"from here it is reached by {_text(pattern.subject)} {' or '.join(paths)} ...")
        if near:
            parts.append(f"near it {self._list(classes)} has {', '.join(lexicon.label(iri) for iri in near)}")
        elif theirs:
            most = [curie(iri) for iri in theirs if iri != _TYPE][:6]
            parts.append(f"{self._list(classes)} has {', '.join(most)}")
        suggestions = [*paths, *map(curie, near), *(curie(name) for name in sorted(domain) if name)]
        return Finding("property_not_of_class", "; ".join(parts), predicate.start, predicate.text, tuple(suggestions))

    def _class_of_all(self, pattern: Pattern, classes: set[str]) -> list[str]:
        """Return the classes that have all properties of the subject, where the one it is given has few of them."""
        lexicon = self._lexicon
        own = {
            p.iri
            for p in self._by_node.get(key_of(pattern.subject), ())
            if key_of(p.subject) == key_of(pattern.subject) and not p.scope
        }
        theirs = {iri for name in classes for iri in lexicon.schema.classes[name].properties}
        if len(own) < 2 or len(own & theirs) * 2 > len(own):
            return []
        return [
            name
            for name, of in lexicon.schema.classes.items()
            if name and name not in classes and own <= of.properties.keys()
        ][:2]

    def _wrong_object(self, pattern: Pattern) -> Finding | None:
        """Question an object whose class the query gives, and which the property never leads to."""
        if pattern.object.kind not in ("variable", "blank"):
            return None
        objects, said = self._classes(pattern.object, pattern)
        targets = self._range(pattern)
        if objects is None or not said or _overlap(objects, targets):
            return None
        subjects, _ = self._classes(pattern.subject, pattern)
        others = [
            curie(iri)
            for name in sorted(subjects or self._domain(pattern))
            for iri, use in getattr(self._lexicon.schema.classes.get(name), "properties", {}).items()
            if objects & use.classes.keys()
        ]
        typed = self._said[key_of(pattern.object)][0]
        reached = self._list(targets) or "literals"
        message = f"{pattern.path} leads to {reached}, never to {self._list(objects)}"
        if others:
            message += f"; what does is {', '.join(dict.fromkeys(others))}"
        if targets:
            message += f"; or is {_text(pattern.object)} a {self._list(targets)}?"
        return Finding(
            "wrong_range",
            message,
            typed.object.start,
            typed.object.text,
            tuple(dict.fromkeys([*others, *(curie(name) for name in sorted(targets) if name)])),
        )

    def _list(self, classes: Iterable[str]) -> str:
        names = [curie(name) if name else "things of no class" for name in sorted(classes)]
        return " or ".join(names[:4]) + (" and others" if len(names) > 4 else "")


def _overlap(classes: set[str], allowed: set[str], *, every: bool = False) -> bool:
    """Return whether things of `classes` may be among those of `allowed`; `every`: they have all these classes."""
    if "" in allowed and not every:
        return True
    return classes <= allowed if every else bool(classes & allowed)


def _text(node: Node) -> str:
    return node.text if node.kind != "blank" else f"?{local_name(node.value) or 'x'}"
