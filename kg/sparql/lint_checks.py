"""Hints about triple patterns that cannot match, and about constants that do not occur in the data.

A pattern may not match for the classes that its property occurs with in the data. The class of a variable is the one
that the query states (``?x a kg:Passage``), else any that its other patterns allow. A constant may have a wrong type
or language, or be a string instead of an IRI.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode

from kg.sparql.algebra import Comparison, Node, Pattern, Query
from kg.sparql.measured_schema import PropertyUse
from kg.sparql.schema_index import SchemaIndex, local_name, namespace_of
from kg.vocabulary import BASE, PREFIXES, RDF, XSD, curie, segment

MAX_PATTERNS: Final = 100

_TYPE: Final = RDF.type.value
MAX_FINDINGS: Final = 50

_LANG_STRING: Final = RDF.langString.value
_STRING: Final = XSD.string.value
_NUMBERS: Final = frozenset(
    XSD[name].value
    for name in (
        "integer", "decimal", "double", "float", "int", "long", "short", "byte", "nonNegativeInteger",
        "positiveInteger", "nonPositiveInteger", "negativeInteger", "unsignedInt", "unsignedLong",
    )
)  # fmt: skip
_LEXICAL: Final = {
    XSD.integer.value: re.compile(r"[+-]?\d+"),
    XSD.decimal.value: re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)"),
    XSD.date.value: re.compile(r"-?\d{4,}-\d\d-\d\d"),
    XSD.dateTime.value: re.compile(r"-?\d{4,}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)?"),
    XSD.gYear.value: re.compile(r"-?\d{4,}"),
    XSD.boolean.value: re.compile("true|false|0|1"),
}
_YEAR: Final = re.compile(r"\d{4}")
_DATES: Final = frozenset({XSD.date.value, XSD.dateTime.value})
_MATCHED: Final = frozenset({"", "=", "IN", "VALUES"})
_ORDERED: Final = frozenset({"<", ">", "<=", ">="})


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


def check_patterns(query: Query, index: SchemaIndex, wrong: set[str]) -> list[Finding]:
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


@dataclass(frozen=True, slots=True)
class _Place:
    """The property that a constant is a value of, with its use in the data."""

    predicate: Node
    use: PropertyUse

    @property
    def literals(self) -> dict[str, int]:
        """The datatypes of its values without a language tag."""
        return {name: count for name, count in self.use.datatypes.items() if count and name != _LANG_STRING}

    @property
    def languages(self) -> dict[str, int]:
        """The language tags of its values, most used first."""
        found = {tag: count for tag, count in self.use.languages.items() if count}
        return dict(sorted(found.items(), key=lambda item: -item[1]))

    @property
    def iris(self) -> bool:
        """Whether some of its values are IRIs."""
        return any(self.use.classes.values())


def check_constants(query: Query, index: SchemaIndex) -> list[Finding]:
    """Find the first `MAX_FINDINGS` constants of `query` that cannot be values of their properties."""
    if len(query.patterns) > MAX_PATTERNS:
        return []
    return list(islice(_Values(query, index).findings(), MAX_FINDINGS))


class _Values:
    def __init__(self, query: Query, index: SchemaIndex) -> None:
        self._query, self._index = query, index
        self._types: dict[tuple[str, str], list[str]] = {}
        self._by_object: dict[tuple[str, str], list[Pattern]] = {}
        for pattern in query.patterns:
            if not pattern.iri:
                continue
            if pattern.iri != _TYPE:
                self._by_object.setdefault(node_key(pattern.object), []).append(pattern)
            elif pattern.object.kind == "iri":
                self._types.setdefault(node_key(pattern.subject), []).append(pattern.object.value)

    def findings(self) -> Iterator[Finding]:
        for patterns in self._by_object.values():
            for pattern in patterns:
                if pattern.object.kind in ("literal", "iri") and (place := self._place(pattern)):
                    yield from self._matched(place, pattern.object, "")
        for comparison in self._query.comparisons:
            for pattern in self._by_object.get(node_key(comparison.variable), ()):
                if not is_visible(pattern.scope, comparison.scope) and pattern.scope[:-1] != comparison.scope:
                    continue
                if (place := self._place(pattern)) is not None:
                    yield from self._compared(place, comparison)

    def _place(self, pattern: Pattern) -> _Place | None:
        classes = self._types.get(node_key(pattern.subject), ())
        use = self._index.use(pattern.iri, classes)
        return None if use is None or not use.triples else _Place(pattern.atoms[0], use)

    def _compared(self, place: _Place, comparison: Comparison) -> Iterator[Finding]:
        constant, function = comparison.constant, comparison.function
        if function == "LANG" or comparison.operator == "LANGMATCHES":
            if function == "LANG" and constant.kind == "literal" and comparison.operator in ("=", "LANGMATCHES", "IN"):
                yield from self._language(place, comparison)
        elif function == "DATATYPE":
            if comparison.operator == "=" and constant.kind == "iri" and constant.value not in place.use.datatypes:
                if constant.value == _LANG_STRING and place.languages:
                    return
                yield self._datatypes(place, constant)
        elif function == "YEAR" and place.literals and not (_DATES & place.literals.keys()):
            yield self._datatypes(place, constant)
        elif not function and comparison.operator not in ("!=", "NOT IN"):
            if comparison.operator in _MATCHED:
                yield from self._matched(place, constant, comparison.operator, comparison.variable.text)
            elif constant.kind == "literal":
                yield from self._ordered(place, comparison)

    # -- equal terms

    def _matched(self, place: _Place, constant: Node, operator: str, variable: str = "?date") -> Iterator[Finding]:
        """Check a constant that has to equal a value. `operator` compares it with `variable`; "" in a pattern."""
        if constant.kind == "iri":
            if not place.iris and (place.literals or place.languages):
                yield self._iri_for_literal(place, constant)
            return
        if constant.kind != "literal":
            return
        literals, languages = place.literals, place.languages
        if not literals and not languages:
            if place.iris:
                yield self._literal_for_iri(place, constant, operator)
            return
        if constant.language is not None:
            tags = {tag.casefold() for tag in languages}
            if constant.language.casefold() not in tags:
                yield self._other_language(place, constant)
        elif not any(_equal(str(constant.datatype), name, by_value=operator in ("=", "IN")) for name in literals):
            yield self._other_datatype(place, constant, operator, variable)

    def _iri_for_literal(self, place: _Place, constant: Node) -> Finding:
        text = unquote(local_name(constant.value))
        term = self._index.schema.terms.get(constant.value)
        texts = dict.fromkeys([text, *([term.label] if term else [])])
        suggestions = [form for text in texts for form in self._forms(place, text)]
        return Finding(
            "iri_for_literal",
            f"the values of {place.predicate.text} are literals ({self._describe_values(place)}), not IRIs."
            f"{did_you_mean(suggestions[:2])}",
            constant.start,
            constant.text,
            tuple(suggestions),
        )

    def _literal_for_iri(self, place: _Place, constant: Node, operator: str) -> Finding:
        example = place.use.example
        namespace = None
        if example is not None and example.startswith("<"):
            namespace = namespace_of(example[1:-1])
        known = self._index.individuals(constant.value, namespace) or self._index.individuals(constant.value, None)
        suggestions = [_iri(iri) for iri in known]
        if not known and namespace is not None and constant.value and not namespace.startswith("cpr://doc/"):
            suggestions = [_iri(namespace + segment(constant.value))]
        labels = [name for name in _LABELS if any(name in uses for uses in self._range_properties(place))]
        suggestions += [f"{place.predicate.text}/{curie(name)} {constant.text}" for name in labels[:2]]
        message = f"the values of {place.predicate.text} are IRIs, such as {_example(place)}, not strings."
        message += did_you_mean(suggestions[:3]) or f" List them with {place.predicate.text} ?value."
        return Finding("literal_for_iri", message, constant.start, constant.text, tuple(suggestions))

    def _range_properties(self, place: _Place) -> list[Iterable[str]]:
        classes = (self._index.schema.classes.get(name) for name in place.use.classes)
        return [of.properties for of in classes if of is not None]

    def _other_language(self, place: _Place, constant: Node) -> Finding:
        suggestions = self._forms(place, constant.value)
        return Finding(
            "wrong_language",
            f"no value of {place.predicate.text} has the language tag {constant.language}. In the data: "
            f"{self._describe_values(place)}.{did_you_mean(suggestions[:3])}",
            constant.start,
            constant.text,
            tuple(suggestions),
        )

    def _other_datatype(self, place: _Place, constant: Node, operator: str, variable: str) -> Finding:
        suggestions = self._forms(place, constant.value)
        code = "wrong_language" if place.languages and not place.literals else "wrong_datatype"
        if code == "wrong_language" and operator in ("=", "IN"):
            suggestions.append(f"STR(?value) = {constant.text}")
        if _YEAR.fullmatch(constant.value) and _DATES & place.literals.keys():
            compared = operator if operator in _ORDERED else "="
            suggestions = [f"FILTER(YEAR({variable}) {compared} {constant.value})", *suggestions]
        message = f"{constant.text} is {_kind(constant)}. In the data: {self._describe_values(place)}."
        return Finding(code, message + did_you_mean(suggestions[:3]), constant.start, constant.text, tuple(suggestions))

    # -- order, language, datatype

    def _ordered(self, place: _Place, comparison: Comparison) -> Iterator[Finding]:
        literals, constant = place.literals, comparison.constant
        if not literals and not place.languages:
            if place.iris:
                yield self._literal_for_iri(place, constant, "<")
            return
        if constant.language is None and not any(
            _equal(str(constant.datatype), name, by_value=True) for name in literals
        ):
            yield self._other_datatype(place, constant, comparison.operator, comparison.variable.text)

    def _language(self, place: _Place, comparison: Comparison) -> Iterator[Finding]:
        constant, languages = comparison.constant, place.languages
        wanted = constant.value.casefold()
        if not languages:
            if not wanted or not place.literals:
                return
            yield Finding(
                "wrong_language",
                f"no value of {place.predicate.text} has a language tag. In the data: {self._describe_values(place)}. "
                f"Remove the condition on LANG({comparison.variable.text}).",
                constant.start,
                constant.text,
                (f'FILTER(LANG({comparison.variable.text}) = "")',),
            )
            return
        covers = comparison.operator == "LANGMATCHES"
        tags = [tag.casefold() for tag in languages]
        if wanted in tags or (not wanted and place.literals):
            return
        if covers and (wanted == "*" or any(tag.startswith(wanted + "-") for tag in tags)):
            return
        variable = comparison.variable.text
        yield Finding(
            "wrong_language",
            f"no value of {place.predicate.text} is in {constant.text}. In the data: {self._describe_values(place)}.",
            constant.start,
            constant.text,
            tuple(f'LANG({variable}) = "{tag}"' for tag in list(languages)[:3]),
        )

    def _datatypes(self, place: _Place, constant: Node) -> Finding:
        return Finding(
            "wrong_datatype",
            f"the values of {place.predicate.text} are {self._describe_values(place)}.",
            constant.start,
            constant.text,
            tuple(curie(name) for name in place.use.datatypes),
        )

    # -- the values in the data

    def _describe_values(self, place: _Place) -> str:
        kinds = [curie(name) for name in place.literals]
        kinds += [f"@{tag}" for tag in list(place.languages)[:6]]
        text = ", ".join(kinds) or "IRIs"
        return text if place.use.example is None else f"{text}, such as {_example(place)}"

    def _forms(self, place: _Place, text: str) -> list[str]:
        """Return `text` as literals of the datatypes and languages in the data, if it is valid for them."""
        forms = [str(Literal(text, language=tag)) for tag in list(place.languages)[:3]]
        for name in place.literals:
            lexical = _LEXICAL.get(name)
            if lexical is not None and not lexical.fullmatch(text):
                continue
            if name == XSD.integer.value:
                forms.append(text)
            elif name == _STRING:
                forms.append(str(Literal(text)))
            else:
                forms.append(f"{Literal(text)!s}^^{curie(name)}")
        return forms


_LABELS: Final = (
    f"{PREFIXES['skos']}notation",
    f"{PREFIXES['skos']}prefLabel",
    f"{PREFIXES['dcterms']}title",
    f"{PREFIXES['rdfs']}label",
)


def _equal(datatype: str, other: str, *, by_value: bool) -> bool:
    """Return whether values of two datatypes can be equal: the same term or, `by_value`, numbers."""
    return datatype == other or (by_value and datatype in _NUMBERS and other in _NUMBERS)


def _kind(constant: Node) -> str:
    if constant.language is not None:
        return f"a string in the language {constant.language}"
    if constant.datatype == _STRING:
        return "a plain string"
    return f"of the datatype {curie(str(constant.datatype))}"


def _iri(iri: str) -> str:
    return str(NamedNode(iri))


def _example(place: _Place) -> str:
    example = place.use.example or "..."
    return example if len(example) <= 80 else example[:77] + "..."
