"""Hints about constants that do not occur in the data: wrong datatype, wrong language, a string instead of an IRI."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Final
from urllib.parse import unquote

from pyoxigraph import Literal, NamedNode

from kg.sparql.algebra import Comparison, Node, Pattern, Query
from kg.sparql.lint_patterns import MAX_PATTERNS, Finding, did_you_mean, is_visible, node_key
from kg.sparql.measured_schema import PropertyUse
from kg.sparql.schema_index import SchemaIndex, local_name, namespace_of
from kg.vocabulary import PREFIXES, RDF, XSD, curie, segment

MAX_FINDINGS: Final = 50

_TYPE: Final = RDF.type.value
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


def check(query: Query, index: SchemaIndex) -> list[Finding]:
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
