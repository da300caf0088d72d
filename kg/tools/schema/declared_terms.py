"""What the ontology and the shapes that ship here declare: terms, what they specialize, code lists, constraints."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, parse

from kg import bundle
from kg.ontology import ontology as statements
from kg.store.protocol import Term
from kg.vocabulary import BASE, OWL, RDF, RDFS, SCHEMA, SH, SKOS, curie, prefixed_name

Said = Mapping[Term, Mapping[NamedNode, Sequence[Term]]]

_CODE_PATTERN: Final = re.compile(re.escape("^" + BASE + "vocab/") + r"(\w+)/")


@dataclass(frozen=True, slots=True)
class Code:
    """One entry of a code list."""

    iri: str
    notation: str
    label: str
    definition: str | None = None


@dataclass(frozen=True, slots=True)
class Constraint:
    """What the shapes of one class demand of one of its properties."""

    least: int = 0
    most: int | None = None
    wanted: bool = False
    """Where it is missing, that is a warning."""
    datatypes: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    pattern: str | None = None
    lowest: str | None = None
    values: tuple[str, ...] = ()
    """All values that are allowed (sh:in), as N-Triples terms."""
    messages: tuple[str, ...] = ()

    @property
    def cardinality(self) -> str:
        """How many values one thing has, in words."""
        if self.most is not None:
            words = f"exactly {self.most}" if self.least == self.most else f"{self.least or 'at most'}"
            words += "" if self.least == self.most else f"{' to' if self.least else ''} {self.most}"
        else:
            words = f"{self.least} or more" if self.least else "any number"
        return words + (", a warning where missing" if self.wanted and not self.least else "")

    @property
    def scheme(self) -> str | None:
        """The code list that the values are of, by its IRI."""
        found = _CODE_PATTERN.match(self.pattern or "")
        return f"{BASE}vocab/{found[1]}" if found else None

    def and_(self, other: Constraint) -> Constraint:
        """Return both constraints as one."""
        most = [limit for limit in (self.most, other.most) if limit is not None]
        return Constraint(
            max(self.least, other.least),
            min(most, default=None),
            self.wanted or other.wanted,
            self.datatypes + other.datatypes,
            self.classes + other.classes,
            self.pattern or other.pattern,
            self.lowest or other.lowest,
            self.values + other.values,
            self.messages + other.messages,
        )


@dataclass(frozen=True, slots=True)
class Shape:
    """What the shapes demand of the things of one class."""

    closed: bool = False
    pattern: str | None = None
    """What their IRIs look like, as a regular expression."""
    messages: tuple[str, ...] = ()
    properties: Mapping[str, Constraint] = field(default_factory=dict)


@cache
def ontology() -> Said:
    """Return what the ontology says, by subject and property."""
    return _by_subject(quad for quads in statements().values() for quad in quads)


def _by_subject(quads: Iterable[Quad]) -> Said:
    found: dict[Term, dict[NamedNode, list[Term]]] = defaultdict(lambda: defaultdict(list))
    for quad in quads:
        found[quad.subject][quad.predicate].append(quad.object)
    return {subject: dict(properties) for subject, properties in found.items()}


@cache
def modules() -> Mapping[str, tuple[str, str]]:
    """Return title and description of each part of the model (``core``, ``climate``), core first."""
    found: dict[str, tuple[str, str]] = {}
    for subject, said in ontology().items():
        if OWL.Ontology in said.get(RDF.type, ()) and isinstance(subject, NamedNode):
            name = subject.value.removeprefix(f"{BASE}ns").strip("/") or "core"
            texts = [
                next((_text(term) for term in said.get(NamedNode(f"http://purl.org/dc/terms/{local}"), ())), "")
                for local in ("title", "description")
            ]
            found[name] = (texts[0], texts[1])
    return dict(sorted(found.items(), key=lambda item: (item[0] != "core", item[0])))


def above(iri: str) -> list[str]:
    """Return what a class or property directly specializes."""
    said = ontology().get(NamedNode(iri), {})
    return [_text(term) for name in (RDFS.subClassOf, RDFS.subPropertyOf) for term in said.get(name, ())]


def all_above(iri: str) -> set[str]:
    """Return what a class or property specializes, at any distance."""
    found: set[str] = set()
    queue = [iri]
    while queue:
        for parent in above(queue.pop()):
            if parent not in found:
                found.add(parent)
                queue.append(parent)
    return found


def ranges(iri: str) -> list[str]:
    """Return the classes that the ontology names as what a property points to."""
    return [_text(term) for term in ontology().get(NamedNode(iri), {}).get(SCHEMA.rangeIncludes, ())]


@cache
def code_lists() -> Mapping[str, Sequence[Code]]:
    """Return the entries of each code list by the IRI of the list."""
    found: dict[str, list[Code]] = defaultdict(list)
    for subject, said in ontology().items():
        for scheme in said.get(SKOS.inScheme, ()):
            texts = [next(map(_text, said.get(name, ())), "") for name in (SKOS.notation, SKOS.prefLabel)]
            definition = next(map(_text, said.get(SKOS.definition, ())), None)
            found[_text(scheme)].append(Code(_text(subject), texts[0], texts[1], definition))
    return {scheme: sorted(codes, key=lambda code: code.notation) for scheme, codes in found.items()}


@cache
def shapes() -> Mapping[str, Shape]:
    """Return the shapes by the IRI of the class that they are for; those of one class are one."""
    files = sorted(bundle.folder("shapes").glob("*.ttl"))
    said = _by_subject(quad for path in files for quad in parse(path=path, rename_blank_nodes=True))
    found: dict[str, Shape] = {}
    for node, properties in said.items():
        for target in properties.get(SH.targetClass, ()):
            before = found.get(_text(target), Shape())
            constraints = dict(before.properties)
            for part in properties.get(SH.property, ()):
                for path, constraint in _constraints(said, part):
                    known = constraints.get(path)
                    constraints[path] = known.and_(constraint) if known else constraint
            closed = any(term == Literal(True) for term in properties.get(SH.closed, ()))
            pattern = next(map(_text, said[node].get(SH.pattern, ())), None)
            messages = () if closed else tuple(map(_text, properties.get(SH.message, ())))
            found[_text(target)] = Shape(
                before.closed or closed, before.pattern or pattern, before.messages + messages, constraints
            )
    return found


def _constraints(said: Said, node: Term) -> Iterator[tuple[str, Constraint]]:
    properties = said.get(node, {})

    def first(name: NamedNode) -> Term | None:
        return next(iter(properties.get(name, ())), None)

    def number(name: NamedNode) -> int | None:
        value = first(name)
        return int(value.value) if isinstance(value, Literal) else None

    for path in properties.get(SH.path, ()):
        if not isinstance(path, NamedNode):
            continue
        least = number(SH.minCount) or 0
        warning = first(SH.severity) in (SH.Warning, SH.Info)
        lowest = first(SH.minInclusive)
        pattern = first(SH.pattern)
        yield (
            path.value,
            Constraint(
                least=0 if warning else least,
                most=None if warning else number(SH.maxCount),
                wanted=bool(warning and least),
                datatypes=tuple(map(_text, properties.get(SH.datatype, ()))),
                classes=tuple(map(_text, properties.get(SH["class"], ()))),
                pattern=_text(pattern) if pattern is not None else None,
                lowest=_text(lowest) if lowest is not None else None,
                values=tuple(str(term) for term in _list(said, first(SH["in"]))),
                messages=() if warning else tuple(map(_text, properties.get(SH.message, ()))),
            ),
        )


def _list(said: Said, node: Term | None) -> Iterator[Term]:
    while node is not None and node != RDF.nil:
        properties = said[node]
        yield from properties.get(RDF.first, ())
        node = next(iter(properties.get(RDF.rest, ())), None)


def _text(term: Term) -> str:
    return term.value if isinstance(term, Literal | NamedNode | BlankNode) else str(term)


def local_name(iri: str) -> str:
    """Return what stands after the last ``#``, ``/`` or ``:`` of an IRI."""
    return re.split(r"[#/:]", iri.rstrip("#/:"))[-1]


def words_of(name: str) -> str:
    """Return a local name as words: ``isPartOf`` and ``is_part_of`` are "is part of"."""
    return " ".join(re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name).replace("_", " ").replace("-", " ").split()).lower()


def short(iri: str) -> str:
    """Return `iri` as one writes it in a query: a prefixed name, or in angle brackets."""
    return "a" if iri == RDF.type.value else curie(iri)


def foreign(iri: str, label: str) -> str:
    """Return what to say of a class or property that the ontology does not define."""
    if "/prop/novalue/" in iri:
        return f"items with a statement that they have no value of {local_name(iri)}"
    name = prefixed_name(iri)
    whose = "another vocabulary" if name is None else f"{name.partition(':')[0]}:"
    return f"{label}, as {whose} defines it"
