"""Compile constraints to set-at-a-time queries: one query checks every focus node of a shape. Pure functions.

Queries select violations, so a query over conforming data has no rows. Focus nodes enter a query as the pattern that
finds them, not as a list, so blank nodes work too. The queries are written for Oxigraph: MINUS where a correlated NOT
EXISTS would be slow, VALUES and sameTerm where `=` would compare values, COALESCE where an error in a FILTER would hide
a violation. If the targets are listed nodes, NOT EXISTS is used instead of MINUS, so that no scan is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode

from kg.shacl import shape_model
from kg.shacl.data_graph import ENCODED_PREFIX, is_kept_by_value, is_numeric
from kg.shacl.property_paths import InversePath, Path, is_nullable, to_sparql
from kg.shacl.shape_model import Constraint, Targets
from kg.sparql.terms import quote
from kg.vocabulary import RDF, RDFS

_FEW: Final = 8
"""Up to this many terms are compared one by one; more are put into VALUES."""
_KINDS: Final = {"IRI": "isIRI", "BlankNode": "isBlank", "Literal": "isLiteral"}


@dataclass(frozen=True, slots=True)
class Values:
    """Focus nodes of a nested shape: the values of `path` at the focus nodes `parent`."""

    parent: Focus
    path: Path


Focus = Targets | Values


@dataclass(frozen=True, slots=True)
class Query:
    """A SELECT for the violations of `constraints`, without duplicate rows.

    Columns: ``this``; ``value`` if `has_value`; ``path`` if `has_path`; with several constraints, a boolean column for
    each of them that is true if the constraint is violated.
    """

    text: str
    constraints: tuple[Constraint, ...]
    has_value: bool = True
    has_path: bool = False
    probe: str = ""
    """A faster query that has rows whenever this one has."""


@dataclass(frozen=True, slots=True)
class Compiler:
    """Compiles queries for one data graph.

    `subclasses` maps each class to itself and its subclasses. `term` encodes a term as the data graph does. `encoded`
    is true if some literals are stored under another datatype. `scans` is true if scanning all triples of a predicate
    is faster than following it from each target. `repeats` is true if a triple may be stored several times.
    `few_values` is true if a predicate has many triples with few distinct values, so that each value is tested once.
    """

    subclasses: Mapping[NamedNode, Sequence[NamedNode | BlankNode]] = field(hash=False)
    term: Callable[[NamedNode | Literal], NamedNode | Literal]
    encoded: Callable[[], bool] = lambda: False
    scans: Callable[[Targets, NamedNode], bool] = lambda targets, predicate: False
    repeats: bool = False
    few_values: Callable[[NamedNode], bool] = lambda predicate: False

    def compile_focus(self, focus: Focus, variable: str = "this") -> str:
        """Compile a pattern that binds `variable` to every focus node, possibly several times."""
        if isinstance(focus, Values):
            step = f"f{_get_depth(focus)}"
            inner = self.compile_values(focus.parent, focus.path, step, variable)
            return f"{{ SELECT DISTINCT ?{variable} WHERE {{ {inner} }} }}"
        branches = []
        if focus.nodes:
            branches.append(f"VALUES ?{variable} {{ {' '.join(map(self._quote, focus.nodes))} }}")
        branches += [self._instance_pattern(name, variable) for name in focus.classes]
        branches += [f"?{variable} {quote(predicate)} ?{variable}_object ." for predicate in focus.subjects_of]
        branches += [f"?{variable}_subject {quote(predicate)} ?{variable} ." for predicate in focus.objects_of]
        if len(branches) == 1 and not focus.subjects_of and not focus.objects_of:
            return branches[0]
        return f"{{ SELECT DISTINCT ?{variable} WHERE {{ {_join_union(branches)} }} }}"

    def compile_values(self, focus: Focus, path: Path | None, this: str = "this", value: str = "value") -> str:
        """Compile a pattern that binds `this` to every focus node and `value` to its values."""
        found = self.compile_focus(focus, this)
        if path is None:
            return f"{found} BIND(?{this} AS ?{value})"
        steps = f"{found} ?{this} {to_sparql(path)} ?{value} ."
        if not is_nullable(path):
            return steps
        # Oxigraph follows a path of length zero only from nodes in the data; a listed focus node may not be one.
        return f"{{ {found} BIND(?{this} AS ?{value}) }} UNION {{ {steps} }}"

    def is_plain(self, focus: Focus) -> bool:
        """Return whether the pattern of `focus` finds each node once and has no other variables."""
        if not isinstance(focus, Targets) or focus.subjects_of or focus.objects_of:
            return False
        if focus.nodes:
            return not focus.classes and len(set(focus.nodes)) == len(focus.nodes)
        return len(focus.classes) == 1 and self._is_once(focus)

    def compile_pairs(self, focus: Focus, path: Path | None) -> str:
        """Compile a query for every pair of focus node and value, without duplicates."""
        return f"{self._begin_select(focus, path)} ?this ?value WHERE {{ {self.compile_values(focus, path)} }}"

    def compile_nodes(self, focus: Focus) -> str:
        """Compile a query for every focus node, without duplicates."""
        return f"{self._begin_select(focus)} ?this WHERE {{ {self.compile_focus(focus)} }}"

    def compile_membership(self, targets: Targets, nodes: Iterable[NamedNode | Literal]) -> str:
        """Compile a query for those of `nodes` that are targets by class or property."""
        listed = " ".join(map(self._quote, nodes))
        return f"SELECT ?this WHERE {{ VALUES ?this {{ {listed} }} FILTER({self._target_test(targets)}) }}"

    def compile_types(self, nodes: Iterable[NamedNode | Literal]) -> str:
        """Compile a query for the classes of `nodes`."""
        listed = " ".join(map(self._quote, nodes))
        return f"SELECT ?this ?class WHERE {{ VALUES ?this {{ {listed} }} ?this {quote(RDF.type)} ?class }}"

    def _begin_select(self, focus: Focus, path: Path | None = None) -> str:
        """Return ``SELECT``, or ``SELECT DISTINCT`` if the pattern may find a focus node or value several times."""
        inner = path.path if isinstance(path, InversePath) else path
        steps = path is None or (isinstance(inner, NamedNode) and not self.repeats)
        return "SELECT" if steps and self._is_once(focus) else "SELECT DISTINCT"

    def _is_once(self, focus: Focus) -> bool:
        """Return whether the pattern of `focus` finds each node once."""
        if isinstance(focus, Values) or focus.subjects_of or focus.objects_of:
            return True  # the pattern itself is a SELECT DISTINCT
        if focus.nodes or len(focus.classes) > 1:
            return bool(focus.classes) or len(set(focus.nodes)) == len(focus.nodes)
        return not self.repeats and len(self.subclasses[focus.classes[0]]) == 1

    def compile_constraints(self, constraints: Sequence[Constraint], focus: Focus, path: Path | None) -> list[Query]:
        """Compile those of `constraints` that refer to no other shape and are not written in SPARQL."""
        few = _is_listed(focus)
        tests = [(constraint, test) for constraint in constraints if (test := self._compile_test(constraint, few))]
        found = [self._compile_tests(tests, focus, path)] if tests else []
        for constraint in constraints:
            found += self._compile_comparison(constraint, focus, path)
        return found

    def _quote(self, term: NamedNode | Literal) -> str:
        return quote(self.term(term))

    def _instance_pattern(self, name: NamedNode, variable: str) -> str:
        below = self.subclasses[name]
        named = [each for each in below if isinstance(each, NamedNode)]
        if len(named) != len(below):  # a query cannot name a class that is a blank node
            return f"?{variable} {quote(RDF.type)}/{quote(RDFS.subClassOf)}* {quote(name)} ."
        if len(named) == 1:
            return f"?{variable} {quote(RDF.type)} {quote(name)} ."
        kind = f"?{variable}_class"
        return f"VALUES {kind} {{ {' '.join(map(quote, named))} }} ?{variable} {quote(RDF.type)} {kind} ."

    def _compile_tests(self, tests: Sequence[tuple[Constraint, str]], focus: Focus, path: Path | None) -> Query:
        """Compile one query for all tests of single values."""
        values, guard = self._source_pattern(focus, path)
        flags = "" if len(tests) == 1 else "".join(f" ({test} AS ?broken{at})" for at, (_, test) in enumerate(tests))
        either = " || ".join(test for _, test in tests)
        select = f"{self._begin_select(focus, path)} ?this ?value{flags} WHERE {{"
        if guard and isinstance(path, NamedNode) and self.few_values(path):
            wrong = f"{{ SELECT ?value WHERE {{ ?any {quote(path)} ?value }} GROUP BY ?value HAVING({either}) }}"
            text = f"{select} {wrong} {values} FILTER({guard}) }}"
        else:
            # Oxigraph may evaluate the operands of && in any order; IF fixes it: cheap test first.
            test = f"IF({either}, {guard}, false)" if guard else either
            text = f"{select} {_to_group(values)} FILTER({test}) }}"
        return Query(text, tuple(constraint for constraint, _ in tests))

    def _source_pattern(self, focus: Focus, path: Path | None) -> tuple[str, str]:
        """Return a pattern for nodes and their values, and the test for focus nodes that it leaves to the caller.

        Violations are rare. So if a scan of the predicate is faster, the pattern scans it, and only the nodes of
        violations have to be looked up among the targets.
        """
        if isinstance(focus, Targets) and isinstance(path, NamedNode) and not focus.nodes and self.scans(focus, path):
            return f"?this {quote(path)} ?value .", self._target_test(focus)
        return self.compile_values(focus, path), ""

    def _target_test(self, focus: Targets) -> str:
        patterns = [pattern for name in focus.classes for pattern in self._instance_patterns(name, "this")]
        patterns += [f"?this {quote(predicate)} ?this_object" for predicate in focus.subjects_of]
        patterns += [f"?this_subject {quote(predicate)} ?this" for predicate in focus.objects_of]
        return f"({' || '.join(f'EXISTS {{ {pattern} }}' for pattern in patterns)})"

    def _instance_patterns(self, name: NamedNode, variable: str) -> list[str]:
        below = self.subclasses[name]
        if all(isinstance(each, NamedNode) for each in below):
            return [f"?{variable} {quote(RDF.type)} {quote(each)}" for each in below if isinstance(each, NamedNode)]
        return [self._instance_pattern(name, variable)]

    def _value_expression(self, variable: str) -> str:
        """Return an expression for the value of a literal, decoded if the data graph encodes some."""
        if not self.encoded():
            return variable
        kept = quote(Literal(ENCODED_PREFIX))
        name = f"STR(DATATYPE({variable}))"
        decoded = f"STRDT(STR({variable}), IRI(STRAFTER({name}, {kept})))"
        return f"COALESCE(IF(STRSTARTS({name}, {kept}), {decoded}, {variable}), {variable})"

    def _compile_test(self, constraint: Constraint, few: bool) -> str:
        """Compile an expression that is true for values that violate `constraint`; empty if one value cannot decide.

        `few`: the expression is evaluated for few values only.
        """
        match constraint:
            case shape_model.ClassOf(_, name) if few or len(self.subclasses[name]) <= _FEW:
                kinds = self._instance_patterns(name, "value")
                return f"!({' || '.join(f'EXISTS {{ {kind} }}' for kind in kinds)})"
            case shape_model.Datatype(_, name):
                # Over-reports: the engine checks each value found again, by its lexical form.
                known = f" && {_known_form_test(name)}" if is_kept_by_value(name) else ""
                return f"!COALESCE(DATATYPE(?value) = {quote(name)}{known}, false)"
            case shape_model.NodeKind(_, kind):
                kinds = kind.split("Or")
                return f"!({' || '.join(f'{_KINDS[each]}(?value)' for each in kinds)})"
            case shape_model.Range(_, relation, bound):
                return f"!COALESCE({self._value_expression('?value')} {relation} {quote(bound)}, false)"
            case shape_model.Length(_, relation, length):
                return f"(isBlank(?value) || !(STRLEN(STR(?value)) {relation} {length}))"
            case shape_model.Pattern(_, pattern, flags):
                arguments = f"STR(?value), {quote(Literal(pattern))}, {quote(Literal(flags))}"
                return f"(isBlank(?value) || !COALESCE(REGEX({arguments}), false))"
            case shape_model.LanguageIn(_, ranges):
                matches = [f"LANGMATCHES(LANG(?value), {quote(Literal(each))})" for each in ranges]
                return f"!COALESCE({' || '.join(matches) or 'false'}, false)"
            case shape_model.In(_, values) if len(values) <= _FEW:
                same = [f"sameTerm(?value, {self._quote(each)})" for each in values]
                return f"!({' || '.join(same) or 'false'})"
        return ""

    def _compile_comparison(self, constraint: Constraint, focus: Focus, path: Path | None) -> list[Query]:
        """Compile a constraint that compares a value with other data, or counts values."""
        nodes = self.compile_focus(focus)
        values = _to_group(self.compile_values(focus, path))
        select = f"{self._begin_select(focus, path)} ?this ?value WHERE {{ {values}"
        only = f"{self._begin_select(focus)} ?this WHERE {{ {nodes}"
        once = "SELECT DISTINCT" if self.repeats else self._begin_select(focus)
        few = _is_listed(focus)
        one = (constraint,)
        match constraint:
            case shape_model.ClassOf(_, name) if not few and len(self.subclasses[name]) > _FEW:
                return [Query(f"{select} MINUS {{ {self._instance_pattern(name, 'value')} }} }}", one)]
            case shape_model.In(_, terms) if len(terms) > _FEW:
                listed = " ".join(map(self._quote, terms))
                return [Query(f"{select} MINUS {{ VALUES ?value {{ {listed} }} }} }}", one)]
            case shape_model.Count(_, least, most):
                return [self._compile_count(constraint, focus, path, least, most)]
            case shape_model.UniqueLang():
                repeated = (
                    f"SELECT ?this (?tag AS ?value) WHERE {{ {values} FILTER(isLiteral(?value) && LANG(?value) != '') "
                    "BIND(LCASE(LANG(?value)) AS ?tag) } GROUP BY ?this ?tag HAVING(COUNT(DISTINCT ?value) > 1)"
                )
                return [Query(repeated, one)]
            case shape_model.Equals(_, predicate):
                other = f"?this {quote(predicate)} ?value ."
                lacking = f"{once} ?this ?value WHERE {{ {nodes} {other}"
                reached = self._unreached_filter(path) if few else f"MINUS {{ {values} }}"
                others = f"FILTER NOT EXISTS {{ {other} }}" if few else f"MINUS {{ {other} }}"
                return [Query(f"{select} {others} }}", one), Query(f"{lacking} {reached} }}", one)]
            case shape_model.Disjoint(_, predicate):
                found = f"{values} ?this {quote(predicate)} ?value ."
                start = "SELECT DISTINCT" if self.repeats else self._begin_select(focus, path)
                return [Query(f"{start} ?this ?value WHERE {{ {found} }}", one)]
            case shape_model.Less(_, relation, predicate):
                test = f"{self._value_expression('?value')} {relation} {self._value_expression('?other')}"
                compared = f"?this {quote(predicate)} ?other . FILTER(!COALESCE({test}, false))"
                start = "SELECT DISTINCT" if self.repeats else self._begin_select(focus, path)
                # Each unordered pair is a result (https://www.w3.org/TR/shacl/#LessThanConstraintComponent).
                return [Query(f"{start} ?this ?value ?other WHERE {{ {values} {compared} }}", one)]
            case shape_model.HasValue(_, value):
                term = self._quote(value)
                if path is None:
                    return [Query(f"{only} FILTER(!sameTerm(?this, {term})) }}", one, has_value=False)]
                if few:
                    return [Query(f"{only} {self._unreached_filter(path, term)} }}", one, has_value=False)]
                if is_nullable(path):
                    having = f"{values} FILTER(sameTerm(?value, {term}))"
                else:
                    having = f"?this {to_sparql(path)} {term} ."
                return [Query(f"{only} MINUS {{ {having} }} }}", one, has_value=False)]
            case shape_model.Closed(_, allowed):
                node = "?this"
                listed = "?this ?value ?path"
                if path is not None:
                    nodes, node = f"{{ SELECT ?this (?value AS ?node) WHERE {{ {values} }} }}", "?node"
                    once, listed = "SELECT DISTINCT", f"{listed} ?node"  # a result for each triple of each value
                start = f"{once} {listed} WHERE {{ {nodes} {node} ?path ?value ."
                if not allowed:
                    return [Query(f"{start} }}", one, has_path=True)]
                known = f"MINUS {{ VALUES ?path {{ {' '.join(map(quote, allowed))} }} }}"
                # Much faster than MINUS, but it does not bind the property.
                probed = f"!({'|'.join(map(quote, allowed))})"
                probe = f"SELECT ?this WHERE {{ {nodes} {node} {probed} ?value . }} LIMIT 1"
                return [Query(f"{start} {known} }}", one, has_path=True, probe=probe)]
        return []

    def _unreached_filter(self, path: Path | None, value: str = "?value") -> str:
        """Return a filter for nodes from which `path` does not lead to `value`."""
        if path is None:
            return f"FILTER(!sameTerm(?this, {value}))"
        itself = f"FILTER(!sameTerm(?this, {value}))" if is_nullable(path) else ""
        return f"FILTER NOT EXISTS {{ ?this {to_sparql(path)} {value} }} {itself}"

    def _compile_count(
        self, constraint: Constraint, focus: Focus, path: Path | None, least: int | None, most: int | None
    ) -> Query:
        nodes, values = self.compile_focus(focus), self.compile_values(focus, path)
        only = f"{self._begin_select(focus)} ?this WHERE {{ {nodes}"
        probe = ""
        if most is not None:
            several = self._compile_too_many(focus, path, most, "DISTINCT ")
            text = f"SELECT DISTINCT ?this WHERE {{ {values} }}" if most == 0 else several
            if most > 0:
                probe = self._compile_several(focus, path) if most == 1 else self._compile_too_many(focus, path, most)
        elif least is None or least <= 0:
            text = f"{only} FILTER(false) }}"
        elif least == 1:
            reached = values if path is None or is_nullable(path) else f"?this {to_sparql(path)} ?value ."
            lacking = "FILTER(false)" if path is None or is_nullable(path) else f"FILTER NOT EXISTS {{ {reached} }}"
            text = f"{only} {lacking if _is_listed(focus) else f'MINUS {{ {reached} }}'} }}"
        else:
            enough = f"SELECT ?this WHERE {{ {values} }} GROUP BY ?this HAVING(COUNT(DISTINCT ?value) >= {least})"
            text = f"{only} MINUS {{ {enough} }} }}"
        return Query(text, (constraint,), has_value=False, probe=probe)

    def _compile_too_many(self, focus: Focus, path: Path | None, most: int, distinct: str = "") -> str:
        values, guard = self._source_pattern(focus, path)
        many = f"SELECT ?this WHERE {{ {values} }} GROUP BY ?this HAVING(COUNT({distinct}?value) > {most})"
        return f"SELECT ?this WHERE {{ {{ {many} }} FILTER({guard}) }}" if guard else many

    def _compile_several(self, focus: Focus, path: Path | None) -> str:
        """Return a fast query that has a row if there are more values than nodes with a value."""
        values, _ = self._source_pattern(focus, path)
        return f"SELECT (COUNT(*) AS ?values) WHERE {{ {values} }} HAVING(COUNT(*) > COUNT(DISTINCT ?this))"


def _is_listed(focus: Focus) -> bool:
    """Return whether the focus nodes are listed nodes, or values of listed nodes: then they are few."""
    if isinstance(focus, Values):
        return _is_listed(focus.parent)
    return not (focus.classes or focus.subjects_of or focus.objects_of)


def _known_form_test(datatype: NamedNode) -> str:
    """Return an expression that is true for values of `datatype` that Oxigraph can parse."""
    if is_numeric(datatype):
        return "isNumeric(?value)"
    return f"DATATYPE({quote(datatype)}(STR(?value))) = {quote(datatype)}"


def _join_union(branches: Sequence[str]) -> str:
    return " UNION ".join(f"{{ {branch} }}" for branch in branches)


def _to_group(pattern: str) -> str:
    """Put a UNION into a group, so that the patterns after it are joined with both of its branches."""
    return f"{{ {pattern} }}" if pattern.startswith("{") and " UNION " in pattern else pattern


def _get_depth(focus: Focus) -> int:
    return 0 if isinstance(focus, Targets) else 1 + _get_depth(focus.parent)
