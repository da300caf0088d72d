"""Hints about a syntactically valid query: unknown terms, patterns that cannot match the data, and slow forms.

`check` compares a query with the measured schema and suggests corrections. In OPTIONAL, UNION, MINUS and EXISTS a
pattern may legitimately match nothing, so hints about these are limited to unknown names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from kg.fuzzy_names import nearest
from kg.sparql.algebra import Element, Node, Query
from kg.sparql.guard import line_and_column
from kg.sparql.label_service import asks_for_labels
from kg.sparql.lint_checks import Finding, check_constants, check_patterns, did_you_mean
from kg.sparql.measured_schema import Schema
from kg.sparql.parser import one_long_query_at_a_time, parse
from kg.sparql.prefixes import nearest_namespace, nearest_prefix, undeclared_message
from kg.sparql.schema_index import SchemaIndex, get_index, local_name, namespace_of
from kg.vocabulary import BASE, KG, PREFIXES, RDF, curie

_TYPE = RDF.type.value
_MAX_HINTS = 20
_SEARCH_PARTS = frozenset(
    KG.iri + part for part in ("matches", "score", "rank", "limit", "mode", "must", "minScore", "covers")
)
"""Properties that are valid in SERVICE kg:search only; no triple has them."""


@dataclass(frozen=True, slots=True)
class Hint:
    """A probable mistake in a query, with corrections. `line` and `column` are one-based.

    `found` is the text in the query; `suggestions` are SPARQL, best first. The codes: undeclared_prefix,
    misspelt_namespace, unknown_class, unused_class, unknown_property, unused_property, unknown_individual,
    unbound_variable, property_not_of_class, wrong_class, wrong_direction, wrong_range, wrong_datatype, wrong_language,
    literal_for_iri, iri_for_literal, unknown_graph, wrong_graph, early_optional.
    """

    code: str
    message: str
    line: int
    column: int
    found: str
    suggestions: tuple[str, ...]


WITHOUT_DATA: Final = frozenset({"undeclared_prefix", "unbound_variable", "early_optional"})
"""Codes of hints that follow from the query alone."""


@one_long_query_at_a_time
def check(query: str, schema: Schema) -> list[Hint]:
    """Check `query` and return hints in the order of its text; none if it cannot be parsed. Never raises.

    Hints with other codes than `WITHOUT_DATA` describe the data as measured: see `kg.tools.sparql.empty_results`.
    """
    parsed = parse(query)
    if parsed is None:
        return []
    index = get_index(schema)
    names = _Names(parsed, index)
    findings = [*names.findings, *_find_unbound(parsed), *_find_early_optionals(parsed.where, frozenset())]
    findings += [*check_patterns(parsed, index, names.wrong), *check_constants(parsed, index)]
    findings.sort(key=lambda finding: finding.start)
    seen: set[tuple[str, str]] = set()
    hints: list[Hint] = []
    for finding in findings:
        if (finding.code, finding.found) in seen or len(hints) == _MAX_HINTS:
            continue
        seen.add((finding.code, finding.found))
        line, column = line_and_column(query, finding.start)
        message = f"line {line}, column {column}: {finding.message}"
        hints.append(Hint(finding.code, message, line, column, finding.found, finding.suggestions))
    return hints


def _find_unbound(query: Query) -> list[Finding]:
    """Find the variables of the outermost SELECT that nothing can bind."""
    inside = {name for element in query.where for name in element.names}
    tail = query.tail
    inside |= {tail[at].text[1:] for at in range(1, len(tail)) if tail[at - 1].text.upper() == "AS"}
    if asks_for_labels(query.text):
        inside |= {name + ending for name in inside for ending in ("Label", "Description")}
    found = []
    for node in query.selected:
        if not inside or node.value in inside:  # an empty pattern: the query is still being written
            continue
        near = nearest(node.value, sorted(inside), 1, least=40) or sorted(inside)[:3]
        meant = [f"?{name}" for name in near]
        message = f"{node.text} does not occur in the pattern: it is unbound in every row.{did_you_mean(meant)}"
        found.append(Finding("unbound_variable", message, node.start, node.text, tuple(meant)))
    return found


def _find_early_optionals(group: Sequence[Element], bound: frozenset[str]) -> list[Finding]:
    """Find each OPTIONAL before a triple that does not depend on it: the engine joins in textual order.

    `bound` are the variables from outside the group.
    """
    found = []
    for at, element in enumerate(group):
        if element.kind == "optional":
            own = element.names - bound
            later = [one for one in group[at + 1 :] if one.kind == "triple" and not own & one.names]
            if later and bound & element.names:
                message = (
                    f"OPTIONAL before {later[0].text}, a required pattern that does not depend on it. "
                    "The query can be many times faster with the OPTIONAL after it."
                )
                found.append(Finding("early_optional", message, element.start, element.text, ()))
        for part in element.parts:
            found += _find_early_optionals(part, frozenset())
        bound |= element.names
    return found


class _Names:
    """Checks each name. `wrong` collects the unknown IRIs and names, which need no further checks."""

    def __init__(self, query: Query, index: SchemaIndex) -> None:
        self.query, self.index = query, index
        self.findings: list[Finding] = []
        self.wrong: set[str] = set()
        self._namespaces: set[str] = set()
        self._terms_by_prefix: dict[str, list[str]] = {}
        for pattern in query.patterns:
            for node in (*pattern.atoms, *((pattern.object,) if pattern.iri == _TYPE else ())):
                self._terms_by_prefix.setdefault(node.text.partition(":")[0], []).append(node.value)
        self._check_prefixes()
        self._check_graphs()
        self._check_terms()

    def _add(self, code: str, node: Node, message: str, suggestions: list[str]) -> None:
        self.findings.append(Finding(code, message, node.start, node.text, tuple(suggestions)))

    def _check_prefixes(self) -> None:
        for token in self.query.undeclared:
            name, _, local = token.text.partition(":")
            if name == "bd" and asks_for_labels(self.query.text):  # the clause is removed before the query runs
                continue
            near = self._find_prefix(name, local)
            suggestions = (f"{near}:{local}", f"PREFIX {near}: <{PREFIXES[near]}>") if near else ()
            message = undeclared_message(name, near)
            self.findings.append(Finding("undeclared_prefix", message, token.start, token.text, suggestions))
            self.wrong.add(token.text)
        for name, node in self.query.declared.items():
            if name not in self._terms_by_prefix or node.value in PREFIXES.values():
                continue
            meant = nearest_namespace(node.value) or PREFIXES.get(name)
            if meant is None or any(map(self.index.is_known, self._terms_by_prefix[name])):
                continue
            self._namespaces.add(node.value)
            self._add(
                "misspelt_namespace",
                node,
                f"no term of this graph is in the namespace {node.text}. {name}: is <{meant}>.",
                [f"PREFIX {name}: <{meant}>"],
            )

    def _find_prefix(self, name: str, local: str) -> str | None:
        """Find the prefix to suggest for `name` before `local`: preferably one whose namespace contains that term."""
        near = nearest_prefix(name)
        having = [prefix for prefix, iri in PREFIXES.items() if self.index.is_known(iri + local)]
        if near in having or not having:
            return near
        return nearest_prefix(name, having) or having[0]

    def _check_graphs(self) -> None:
        index = self.index
        if not index.schema.graphs:
            return
        for node in self.query.graphs:
            if node.kind != "iri" or index.family_of(node.value) is not None:
                continue
            rest = node.value.partition("graph/")[2] or local_name(node.value)
            inside = {p.iri for p in self.query.patterns if p.graph is not None and p.graph.value == node.value}
            families = sorted(
                index.schema.graphs,
                key=lambda family: (
                    -len(inside & index.schema.families.get(family, set())),
                    -_similarity(family, rest),
                ),
            )
            self._add(
                "unknown_graph",
                node,
                f"unknown graph {node.text}. Available: <{BASE}graph/FAMILY/...> with the families "
                f"{', '.join(families[:8])}. GRAPH ?g finds the graph of a pattern; without GRAPH all are queried.",
                [f"<{BASE}graph/{family}{'' if family == 'prov' else '/...'}>" for family in families[:3]],
            )

    def _check_terms(self) -> None:
        for pattern in self.query.patterns:
            if len(self.findings) >= _MAX_HINTS:
                return
            for atom in pattern.atoms:
                if atom.kind == "iri" and atom.value != _TYPE:
                    self._check_property(atom, weak=bool(pattern.scope))
            of_type = pattern.iri == _TYPE
            if of_type and pattern.object.kind == "iri":
                self._check_class(pattern.object, weak=bool(pattern.scope))
            elif not of_type:
                self._check_individual(pattern.object)
            self._check_individual(pattern.subject)
        for comparison in self.query.comparisons:
            if len(self.findings) < _MAX_HINTS:
                self._check_individual(comparison.constant)

    def _check_property(self, node: Node, *, weak: bool) -> None:
        index, iri = self.index, node.value
        if iri in index.domains or iri in self.wrong or self._in_wrong_namespace(iri):
            return
        if iri in index.schema.unmeasured:
            return
        if iri in _SEARCH_PARTS and not weak:
            clause = f'SERVICE {curie(KG.search.value)} {{ ?unit kg:matches "words" ; kg:score ?score }}'
            self._add("unused_property", node, f"no triple has {node.text}. It is valid only in {clause}", [clause])
            return
        if iri in index.known["property"]:
            if not weak:
                near = index.narrower(iri) or index.nearest("property", iri, only=index.domains)
                self._add("unused_property", node, f"no triple has {node.text}.{_instead(index, near)}", _curies(near))
            return
        self.wrong.add(iri)
        classes = self._classes_of_subject(node)
        fit = {name for of in classes for name in index.schema.classes[of].properties}
        near = index.nearest("property", iri, fit=fit)
        links = [step for of in classes for step in index.links(of, iri)]
        if weak and not links and not any(index.is_spelt_alike(iri, name) for name in near):
            return  # a term of another vocabulary, in an OPTIONAL: the query also runs without it
        is_class = iri in index.known["class"]
        message = f"{node.text} is a class, not a property." if is_class else f"unknown property {node.text}."
        if near or not links:
            message += _instead(index, near)
        if links:
            message += f" Path to that class: {' or '.join(links)}."
        alike = bool(near) and index.similarity(iri, near[0]) >= 80
        suggestions = [*_curies(near), *links] if alike else [*links, *_curies(near)]
        self._add("unknown_property", node, message, suggestions)

    def _classes_of_subject(self, node: Node) -> list[str]:
        """Return the classes in use that the query itself states for the subject of the property `node`."""
        subjects = {p.subject.value for p in self.query.patterns if node in p.atoms}
        return [
            p.object.value
            for p in self.query.patterns
            if p.iri == _TYPE and p.subject.value in subjects and p.object.value in self.index.used_classes
        ]

    def _check_class(self, node: Node, *, weak: bool) -> None:
        index, iri = self.index, node.value
        if iri in index.used_classes or iri in self.wrong or self._in_wrong_namespace(iri):
            return
        if iri in index.schema.unmeasured:
            return
        if iri in index.known["class"]:
            if not weak:
                near = index.narrower(iri) or index.nearest("class", iri, only=index.used_classes)
                self._add("unused_class", node, f"no entity is a {node.text}.{_instead(index, near)}", _curies(near))
            return
        self.wrong.add(iri)
        near = self._rank_classes(node, index.nearest("class", iri))
        if weak and not near:
            return
        is_property = iri in index.known["property"]
        message = f"{node.text} is a property, not a class." if is_property else f"unknown class {node.text}."
        self._add("unknown_class", node, message + _instead(index, near), _curies(near))

    def _rank_classes(self, node: Node, near: list[str]) -> list[str]:
        """Add the classes with the subject's properties to `near`; they come first if no name is similar."""
        index = self.index
        subjects = {p.subject.value for p in self.query.patterns if p.object is node}
        own = {
            p.iri
            for p in self.query.patterns
            if p.subject.value in subjects and p.iri in index.domains and p.iri != _TYPE and not p.scope
        }
        having = index.classes_with(own)
        if near and index.is_spelt_alike(node.value, near[0]):
            having = []
        return list(dict.fromkeys([*(iri for iri in near if iri in having), *having, *near]))[:3]

    def _check_individual(self, node: Node) -> None:
        """Report an unknown IRI with similar ones in its code list."""
        if node.kind != "iri" or node.value in self.wrong:
            return
        if node.value in self.index.known["individual"] or not namespace_of(node.value).startswith(BASE + "vocab/"):
            return
        if near := self.index.siblings(node.value):
            self.wrong.add(node.value)
            self._add(
                "unknown_individual",
                node,
                f"unknown code {node.text}.{_instead(self.index, near)}",
                [f"<{iri}>" for iri in near],
            )

    def _in_wrong_namespace(self, iri: str) -> bool:
        return any(iri.startswith(namespace) for namespace in self._namespaces)


def _similarity(family: str, text: str) -> float:
    own, other = set(family.casefold().split("/")), set(text.casefold().split("/"))
    return len(own & other) + len(set(family) & set(text)) / 100


def _curies(iris: list[str]) -> list[str]:
    return [curie(iri) for iri in iris]


def _instead(index: SchemaIndex, near: list[str]) -> str:
    if not near:
        return " describe_schema lists the available classes and properties."
    return did_you_mean([index.label(iri) for iri in near])
