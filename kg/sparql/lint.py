"""What is wrong with a query that any parser takes: terms that do not exist, patterns that nothing can match. Pure.

`check` compares a query with the measured schema and says what would be right. Inside OPTIONAL, UNION, MINUS and EXISTS
a pattern may well match nothing, so there only names are questioned that nobody knows.
"""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from kg.sparql import lint_patterns, lint_values
from kg.sparql.algebra import Element, Node, Query
from kg.sparql.guard import position
from kg.sparql.label_service import asks_for_labels
from kg.sparql.lint_patterns import Finding
from kg.sparql.measured_schema import Schema
from kg.sparql.parser import one_long_query_at_a_time, parse
from kg.sparql.prefixes import nearest_namespace, nearest_prefix, undeclared
from kg.sparql.schema_index import Lexicon, lexicon_of, local_name, namespace_of
from kg.vocabulary import BASE, KG, PREFIXES, RDF, curie

_TYPE = RDF.type.value
_MOST = 20
_SEARCH_PARTS = frozenset(KG.iri + part for part in ("matches", "score", "rank", "limit", "mode"))
"""What SERVICE kg:search takes, and no triple has."""


@dataclass(frozen=True, slots=True)
class Hint:
    """One thing that looks wrong in a query, and what would be right. `line` and `column` count from 1.

    `found` is the query's own text; `suggestions` are SPARQL, best first. The codes: undeclared_prefix,
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


@one_long_query_at_a_time
def check(query: str, schema: Schema) -> list[Hint]:
    """Return what looks wrong in `query`, in its order; nothing where it cannot be read. Never raises."""
    parsed = parse(query)
    if parsed is None:
        return []
    lexicon = lexicon_of(schema)
    names = _Names(parsed, lexicon)
    findings = [*names.findings, *_unbound(parsed), *_early(parsed.where, frozenset())]
    findings += [*lint_patterns.check(parsed, lexicon, names.wrong), *lint_values.check(parsed, lexicon)]
    findings.sort(key=lambda finding: finding.start)
    seen: set[tuple[str, str]] = set()
    hints: list[Hint] = []
    for finding in findings:
        if (finding.code, finding.found) in seen or len(hints) == _MOST:
            continue
        seen.add((finding.code, finding.found))
        line, column = position(query, finding.start)
        message = f"line {line}, column {column}: {finding.message}"
        hints.append(Hint(finding.code, message, line, column, finding.found, finding.suggestions))
    return hints


def _unbound(query: Query) -> list[Finding]:
    """Question the variables of the outermost SELECT that nothing can bind."""
    inside = {name for element in query.where for name in element.names}
    tail = query.tail
    inside |= {tail[at].text[1:] for at in range(1, len(tail)) if tail[at - 1].text.upper() == "AS"}
    if asks_for_labels(query.text):
        inside |= {name + ending for name in inside for ending in ("Label", "Description")}
    found = []
    for node in query.selected:
        if not inside or node.value in inside:  # a query with an empty pattern is not written yet
            continue
        near = difflib.get_close_matches(node.value, sorted(inside), n=1, cutoff=0.4) or sorted(inside)[:3]
        meant = [f"?{name}" for name in near]
        told = f"; did you mean {' or '.join(meant)}?" if meant else ""
        message = f"{node.text} stands nowhere in the pattern, so that it has no value in any row{told}"
        found.append(Finding("unbound_variable", message, node.start, node.text, tuple(meant)))
    return found


def _early(group: Sequence[Element], bound: frozenset[str]) -> list[Finding]:
    """Question each OPTIONAL that stands before a triple that does not need it: the engine joins in that order.

    `bound` are the variables from outside the group.
    """
    found = []
    for at, element in enumerate(group):
        if element.kind == "optional":
            own = element.names - bound
            later = [one for one in group[at + 1 :] if one.kind == "triple" and not own & one.names]
            if later and bound & element.names:
                message = (
                    f"this OPTIONAL stands before {later[0].text}, which has to match and does not need it; the same "
                    "query with the OPTIONAL behind it can be many times faster"
                )
                found.append(Finding("early_optional", message, element.start, element.text, ()))
        for part in element.parts:
            found += _early(part, frozenset())
        bound |= element.names
    return found


class _Names:
    """Checks every name by itself. `wrong` are the IRIs and names that nothing more can be said of."""

    def __init__(self, query: Query, lexicon: Lexicon) -> None:
        self.query, self.lexicon = query, lexicon
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
            if name == "bd" and asks_for_labels(self.query.text):  # which is left out before the query runs
                continue
            near = self._prefix_of(name, local)
            suggestions = [f"{near}:{local}", f"PREFIX {near}: <{PREFIXES[near]}>"] if near else []
            self.findings.append(
                Finding("undeclared_prefix", undeclared(name, near), token.start, token.text, tuple(suggestions))
            )
            self.wrong.add(token.text)
        for name, node in self.query.declared.items():
            if name not in self._terms_by_prefix or node.value in PREFIXES.values():
                continue
            meant = nearest_namespace(node.value) or PREFIXES.get(name)
            if meant is None or any(map(self.lexicon.is_known, self._terms_by_prefix[name])):
                continue
            self._namespaces.add(node.value)
            self._add(
                "misspelt_namespace",
                node,
                f"no term of this graph is in the namespace {node.text}; {name}: is <{meant}>",
                [f"PREFIX {name}: <{meant}>"],
            )

    def _prefix_of(self, name: str, local: str) -> str | None:
        """Return the prefix meant by `name` before `local`: one whose namespace has that term, if there is any."""
        near = nearest_prefix(name)
        having = [prefix for prefix, iri in PREFIXES.items() if self.lexicon.is_known(iri + local)]
        if near in having or not having:
            return near
        return nearest_prefix(name, having) or having[0]

    def _check_graphs(self) -> None:
        lexicon = self.lexicon
        if not lexicon.schema.graphs:
            return
        for node in self.query.graphs:
            if node.kind != "iri" or lexicon.family_of(node.value) is not None:
                continue
            rest = node.value.partition("graph/")[2] or local_name(node.value)
            inside = {p.iri for p in self.query.patterns if p.graph is not None and p.graph.value == node.value}
            families = sorted(
                lexicon.schema.graphs,
                key=lambda family: (-len(inside & lexicon.schema.families.get(family, set())), -_alike(family, rest)),
            )
            self._add(
                "unknown_graph",
                node,
                f"there is no graph {node.text}; the graphs are named <{BASE}graph/...>, by family: "
                f"{', '.join(families[:8])}. GRAPH ?g finds which of them holds a pattern, and without GRAPH all do",
                [f"<{BASE}graph/{family}{'' if family == 'prov' else '/...'}>" for family in families[:3]],
            )

    def _check_terms(self) -> None:
        for pattern in self.query.patterns:
            if len(self.findings) >= _MOST:
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
            if len(self.findings) < _MOST:
                self._check_individual(comparison.constant)

    def _check_property(self, node: Node, *, weak: bool) -> None:
        lexicon, iri = self.lexicon, node.value
        if iri in lexicon.domains or iri in self.wrong or self._in_wrong_namespace(iri):
            return
        if iri in _SEARCH_PARTS and not weak:
            clause = f'SERVICE {curie(KG.search.value)} {{ ?unit kg:matches "words" ; kg:score ?score }}'
            self._add("unused_property", node, f"no triple has {node.text}: it is for {clause} alone", [clause])
            return
        if iri in lexicon.known["property"]:
            narrower = lexicon.narrower(iri)
            if not weak:
                near = narrower or lexicon.nearest("property", iri, only=lexicon.domains)
                self._add("unused_property", node, f"no triple has {node.text}{_instead(lexicon, near)}", _curies(near))
            return
        self.wrong.add(iri)
        classes = self._classes_before(node)
        fit = {name for of in classes for name in lexicon.schema.classes[of].properties}
        near = lexicon.nearest("property", iri, fit=fit)
        links = [step for of in classes for step in lexicon.links(of, iri)]
        if weak and not links and not any(lexicon.spelt_alike(iri, name) for name in near):
            return  # a term of another vocabulary, that these data do without
        is_class = iri in lexicon.known["class"]
        what = f"{node.text} is a class, not a property" if is_class else f"there is no property {node.text}"
        told = _instead(lexicon, near) if near or not links else ""
        if links:
            told += f"; what leads there is {' or '.join(links)}"
        alike = bool(near) and lexicon.nearness(iri, near[0]) >= 80
        suggestions = [*_curies(near), *links] if alike else [*links, *_curies(near)]
        self._add("unknown_property", node, what + told, suggestions)

    def _classes_before(self, node: Node) -> list[str]:
        """Return the classes in use that the query itself gives the subject of the property `node`."""
        subjects = {p.subject.value for p in self.query.patterns if node in p.atoms}
        return [
            p.object.value
            for p in self.query.patterns
            if p.iri == _TYPE and p.subject.value in subjects and p.object.value in self.lexicon.used_classes
        ]

    def _check_class(self, node: Node, *, weak: bool) -> None:
        lexicon, iri = self.lexicon, node.value
        if iri in lexicon.used_classes or iri in self.wrong or self._in_wrong_namespace(iri):
            return
        if iri in lexicon.known["class"]:
            if not weak:
                near = lexicon.narrower(iri) or lexicon.nearest("class", iri, only=lexicon.used_classes)
                self._add("unused_class", node, f"nothing is a {node.text}{_instead(lexicon, near)}", _curies(near))
            return
        self.wrong.add(iri)
        near = self._class_of(node, lexicon.nearest("class", iri))
        if weak and not near:
            return
        is_property = iri in lexicon.known["property"]
        what = f"{node.text} is a property, not a class" if is_property else f"there is no class {node.text}"
        self._add("unknown_class", node, f"{what}{_instead(lexicon, near)}", _curies(near))

    def _class_of(self, node: Node, near: list[str]) -> list[str]:
        """Return `near` with the classes that have the subject's properties: first where nothing is spelt alike."""
        lexicon = self.lexicon
        subjects = {p.subject.value for p in self.query.patterns if p.object is node}
        own = {
            p.iri
            for p in self.query.patterns
            if p.subject.value in subjects and p.iri in lexicon.domains and p.iri != _TYPE and not p.scope
        }
        having = lexicon.classes_with(own)
        if near and lexicon.spelt_alike(node.value, near[0]):
            having = []
        return list(dict.fromkeys([*(iri for iri in near if iri in having), *having, *near]))[:3]

    def _check_individual(self, node: Node) -> None:
        """Question an IRI that is not known, but has near relatives in its own code list."""
        if node.kind != "iri" or node.value in self.wrong:
            return
        if node.value in self.lexicon.known["individual"] or not namespace_of(node.value).startswith(BASE + "vocab/"):
            return
        if near := self.lexicon.siblings(node.value):
            self.wrong.add(node.value)
            self._add(
                "unknown_individual",
                node,
                f"nothing declares {node.text}{_instead(self.lexicon, near)}",
                [f"<{iri}>" for iri in near],
            )

    def _in_wrong_namespace(self, iri: str) -> bool:
        return any(iri.startswith(namespace) for namespace in self._namespaces)


def _alike(family: str, text: str) -> float:
    own, other = set(family.casefold().split("/")), set(text.casefold().split("/"))
    return len(own & other) + len(set(family) & set(text)) / 100


def _curies(iris: list[str]) -> list[str]:
    return [curie(iri) for iri in iris]


def _instead(lexicon: Lexicon, near: list[str]) -> str:
    if not near:
        return "; describe_schema lists the classes and properties that there are"
    return f"; did you mean {' or '.join(lexicon.label(iri) for iri in near)}?"
