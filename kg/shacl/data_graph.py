"""Data graphs: quads in memory before they are committed, one graph of a store, or all of its graphs as one.

Oxigraph stores numbers, booleans and times by value: ``"01"`` and ``"1"`` become one literal, an ``xsd:byte`` becomes
an ``xsd:integer``. SHACL compares terms, so a candidate's literal whose lexical form or datatype would be altered is
stored under a datatype of our own, made from the name of its datatype. Queries that compare values decode it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import islice
from typing import Final

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, QuerySolutions, Store, Triple

from kg.sparql.terms import bind
from kg.store.protocol import Term
from kg.vocabulary import BASE, RDF, RDFS, SHAPES_GRAPH, TBOX_GRAPH, XSD

_PORTION: Final = 20_000
"""Quads added to a store at once."""
_SMALL: Final = 10_000

Graph = NamedNode | DefaultGraph
ENCODED_PREFIX: Final = BASE + "lexical?"
"""Prefix of the datatype of an encoded literal; the original datatype follows."""

_RANGES: Final[Mapping[str, tuple[int | None, int | None]]] = {
    "integer": (None, None),
    "long": (-(2**63), 2**63 - 1),
    "int": (-(2**31), 2**31 - 1),
    "short": (-(2**15), 2**15 - 1),
    "byte": (-128, 127),
    "nonNegativeInteger": (0, None),
    "positiveInteger": (1, None),
    "nonPositiveInteger": (None, 0),
    "negativeInteger": (None, -1),
    "unsignedLong": (0, 2**64 - 1),
    "unsignedInt": (0, 2**32 - 1),
    "unsignedShort": (0, 2**16 - 1),
    "unsignedByte": (0, 255),
}
"""The integer types of XML Schema (https://www.w3.org/TR/xmlschema11-2/#built-in-derived), with minimum and maximum."""

_DOUBLE: Final = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?INF|NaN")
_FORMS: Final = {
    "boolean": re.compile("true|false|0|1"),
    "decimal": re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"),
    "double": _DOUBLE,
    "float": _DOUBLE,
}
_WHOLE: Final = re.compile("[+-]?[0-9]+")
_TIMES: Final = frozenset(
    {
        "date", "dateTime", "time", "duration", "yearMonthDuration", "dayTimeDuration",
        "gYear", "gYearMonth", "gMonth", "gMonthDay", "gDay",
    }
)  # fmt: skip
_KEPT_BY_VALUE: Final = frozenset(XSD.iri + name for name in (*_RANGES, *_FORMS, *_TIMES))
_STRING: Final = XSD.string

CAST: Final = "SELECT ($datatype($form) AS ?value) WHERE {}"


class DataGraph:
    """A graph to validate, in a pyoxigraph store. `as_written`: the lexical forms of its literals are known."""

    def __init__(self, store: Store, graph: Graph | None) -> None:
        self._store, self._graph = store, graph
        self.may_repeat = graph is None
        """Whether it may contain a triple several times, in several named graphs."""
        self._plain: Callable[[], Store] = lambda: store
        self._lexicon = Lexicon()
        self.as_written = False
        self.is_small = False
        """Whether it is known to be so small that prefetching queries in threads does not pay."""

    @classmethod
    def from_store(cls, store: Store, graph: Graph | None = None) -> DataGraph:
        """Use `graph` of `store`, or all of its graphs as one, without copying."""
        return cls(store, graph)

    @classmethod
    def from_quads(cls, quads: Iterable[Quad | Triple]) -> DataGraph:
        """Copy `quads` into one graph, ignoring their graph names."""
        data = cls._of_candidate(DefaultGraph())
        encode, home = data._lexicon.encode, DefaultGraph()

        def encoded() -> Iterator[Quad]:
            for quad in quads:
                value = quad.object
                changed = encode(value) if type(value) is Literal else value
                if changed is value and type(quad) is Quad and quad.graph_name == home:
                    yield quad
                else:
                    yield Quad(quad.subject, quad.predicate, changed)

        data.is_small = _add_in_portions(data._store, encoded()) < _SMALL
        return data

    @classmethod
    def from_disjoint(cls, graphs: Iterable[tuple[Sequence[Quad], Iterable[int]]]) -> DataGraph:
        """Use several graphs that share no triple as one, keeping the graph names.

        With each graph come the positions of the quads whose object is a literal of another datatype than xsd:string.
        """
        data = cls._of_candidate(None)
        encode = data._lexicon.encode
        size = 0
        for quads, positions in graphs:
            encoded = list(quads)
            for position in positions:
                quad = encoded[position]
                if isinstance(literal := quad.object, Literal) and (changed := encode(literal)) is not literal:
                    encoded[position] = Quad(quad.subject, quad.predicate, changed)
            data._store.extend(encoded)
            size += len(encoded)
        data.is_small = size < _SMALL
        return data

    @classmethod
    def _of_candidate(cls, graph: DefaultGraph | None) -> DataGraph:
        store = Store()
        data = cls(store, graph)
        data.as_written, data.may_repeat = True, False
        data._plain = lambda: _decode_store(store)
        return data

    @property
    def has_encoded(self) -> bool:
        """Whether some literals are stored under another datatype, because Oxigraph would alter them."""
        return bool(self._lexicon)

    @cached_property
    def plain(self) -> Store:
        """The same data with literals as Oxigraph stores them, for SPARQL written by users."""
        return self._plain() if self.has_encoded else self._store

    @cached_property
    def _merged(self) -> Store:
        """The same data with each triple once in the default graph, next to the named graphs."""
        merged = Store()
        quads = self.plain.quads_for_pattern(None, None, None, None)
        held = (each for quad in quads for each in (quad, Quad(quad.subject, quad.predicate, quad.object)))
        _add_in_portions(merged, held)
        return merged

    def count_rows(self, query: str, most: int) -> int:
        """Count the rows of a SELECT, up to `most`."""
        [row] = self.select(f"SELECT (COUNT(*) AS ?rows) WHERE {{ {{ {query} LIMIT {most} }} }}")
        return int(row["rows"].value)

    def encode(self, term: NamedNode | Literal) -> NamedNode | Literal:
        """Encode `term` as this data graph stores it."""
        return self._lexicon.encode(term) if self.as_written and isinstance(term, Literal) else term

    def select(self, query: str, *, plain: bool = False, once: bool = False) -> QuerySolutions:
        """Run a SELECT; `plain`: with literals as Oxigraph stores them.

        `once`: the query counts triples, so it runs on a copy in which a triple of several graphs exists once.
        """
        merged = once and self.may_repeat
        store = self._merged if merged else self.plain if plain else self._store
        found = store.query(
            query,
            default_graph=[self._graph] if self._graph is not None else None,
            use_default_graph_as_union=self._graph is None and not merged,
        )
        if not isinstance(found, QuerySolutions):
            raise TypeError("not a SELECT query")
        return found

    def to_original(self, term: Term, *, plain: bool = False) -> Term:
        """Decode a term of a result to its original lexical form, as far as known."""
        if plain and (written := self._lexicon.altered.get(term)) is not None:
            return written
        return decode(term)

    def find_subclasses(self, name: NamedNode) -> tuple[NamedNode | BlankNode, ...]:
        """Return `name` and its subclasses in the data."""
        found: dict[NamedNode | BlankNode, None] = {name: None}
        todo: list[NamedNode | BlankNode] = [name]
        while todo:
            for quad in self.find_quads(None, RDFS.subClassOf, todo.pop()):
                each = quad.subject
                # The ontology that ships describes the data but is not data: `kg.provenance.superclasses` applies it.
                if quad.graph_name != TBOX_GRAPH and isinstance(each, NamedNode | BlankNode) and each not in found:
                    found[each] = None
                    todo.append(each)
        return tuple(found)

    def find_quads(self, subject: Term | None, predicate: NamedNode | None, value: Term | None) -> Iterator[Quad]:
        """Yield the matching quads, decoded."""
        if isinstance(subject, Literal | Triple):  # never a subject, and the engine would raise TypeError
            return
        held = self.encode(value) if isinstance(value, Literal) else value
        found = self._store.quads_for_pattern(subject, predicate, held, self._graph)
        if not self.has_encoded:
            yield from found
            return
        for quad in found:
            yield Quad(quad.subject, quad.predicate, decode(quad.object), quad.graph_name)

    def find_subjects(
        self, predicate: NamedNode | None, value: Term | None, graph: Graph | BlankNode | None = None
    ) -> Iterator[Term]:
        """Yield the subjects of `predicate` and `value`, in this data graph or in a `graph` of the store."""
        held = self.encode(value) if isinstance(value, Literal) else value
        found = self._store.quads_for_pattern(None, predicate, held, self._graph if graph is None else graph)
        return (quad.subject for quad in found)

    def quads(self) -> Iterator[Quad]:
        """Yield all quads, decoded and without graph names."""
        for quad in self._store.quads_for_pattern(None, None, None, self._graph):
            yield Quad(quad.subject, quad.predicate, decode(quad.object))

    def add_shapes(self, triples: Iterable[Quad | Triple]) -> bool:
        """Add the shapes graph as a named graph. Return False for a graph of a store, which is not changed."""
        if not self.as_written:
            return False
        self.plain.extend([Quad(each.subject, each.predicate, each.object, SHAPES_GRAPH) for each in triples])
        return True


def _add_in_portions(store: Store, quads: Iterator[Quad]) -> int:
    """Add quads to a store without readers and return their number.

    A second thread adds each portion while the next one is made.
    """
    portion = list(islice(quads, _PORTION))
    if (count := len(portion)) < _PORTION:
        store.extend(portion)
        return count
    with ThreadPoolExecutor(1) as thread:
        while portion:
            adding = thread.submit(store.extend, portion)
            portion = list(islice(quads, _PORTION))
            count += len(portion)
            adding.result()
    return count


def _decode_store(store: Store) -> Store:
    plain = Store()
    _add_in_portions(plain, (Quad(quad.subject, quad.predicate, decode(quad.object)) for quad in store))
    return plain


def is_kept_by_value(datatype: NamedNode) -> bool:
    """Return whether Oxigraph stores literals of `datatype` by value."""
    return datatype.value in _KEPT_BY_VALUE


def is_numeric(datatype: NamedNode) -> bool:
    """Return whether the values of `datatype` are numbers."""
    name = datatype.value.removeprefix(XSD.iri)
    return name in _RANGES or name in ("decimal", "double", "float")


def is_well_formed(literal: Literal) -> bool:
    """Return whether the lexical form of `literal` is valid for its datatype. Unknown datatypes are not checked."""
    datatype = literal.datatype.value
    name = datatype.removeprefix(XSD.iri)
    if datatype not in _KEPT_BY_VALUE:
        return True
    if name in _RANGES:
        least, most = _RANGES[name]
        if not _WHOLE.fullmatch(literal.value):
            return False
        number = int(literal.value)
        return (least is None or least <= number) and (most is None or number <= most)
    if name in _FORMS:
        return _FORMS[name].fullmatch(literal.value) is not None
    found = Store().query(bind(CAST, datatype=literal.datatype, form=Literal(literal.value)))
    assert isinstance(found, QuerySolutions)  # noqa: S101 -- a SELECT
    return next(found)["value"] is not None


def has_datatype(term: Term, datatype: NamedNode, *, as_written: bool) -> bool:
    """Return whether `term` is a well-formed literal of `datatype`.

    `as_written`: its original datatype is known. If not, an ``xsd:integer`` may have been of any integer type that
    includes its value.
    """
    if not isinstance(term, Literal):
        return False
    if term.datatype != datatype and not as_written and term.datatype == XSD.integer:
        name = datatype.value.removeprefix(XSD.iri)
        return name in _RANGES and is_well_formed(Literal(term.value, datatype=datatype))
    return term.datatype == datatype and is_well_formed(term)


_TRIED_TOGETHER: Final = 1_000
"""Literals that are tried in one scratch store."""
_SURELY_KEPT: Final = 18
"""Digits of integers that are within 64 bits."""


class Lexicon:
    """The literals of a data graph that Oxigraph would alter, and their encoded forms."""

    def __init__(self) -> None:
        self._kept: dict[Literal, Literal] = {}
        self.altered: dict[Term, Term | None] = {}
        """The original literal by the form that Oxigraph stores; None if several literals have this form."""
        self._scratch = Store()

    def encode(self, literal: Literal) -> Literal:
        """Encode `literal`, unless Oxigraph preserves it."""
        datatype = literal.datatype
        if datatype == _STRING or datatype.value not in _KEPT_BY_VALUE:
            return literal
        known = self._kept.get(literal)
        if known is None:
            known = self._kept[literal] = self._encoded(literal)
        return literal if known == literal else known

    def _encoded(self, literal: Literal) -> Literal:
        stored = literal if _is_plain_integer(literal) else self._store(literal)
        if stored == literal:
            if stored in self.altered:
                self.altered[stored] = None
            return literal
        self.altered[stored] = literal if stored not in self.altered and stored not in self._kept else None
        return Literal(literal.value, datatype=NamedNode(ENCODED_PREFIX + literal.datatype.value))

    def _store(self, literal: Literal) -> Term:
        """Return `literal` as Oxigraph stores it."""
        # Removed quads slow a store in memory down, so each literal gets a subject of its own instead.
        if len(self._kept) % _TRIED_TOGETHER == 0:
            self._scratch = Store()
        subject = NamedNode(f"{BASE}{len(self._kept)}")
        self._scratch.add(Quad(subject, RDF.value, literal))
        [quad] = self._scratch.quads_for_pattern(subject, None, None)
        return quad.object

    def __bool__(self) -> bool:
        return bool(self.altered)


def _is_plain_integer(literal: Literal) -> bool:
    """Whether a literal is an integer that Oxigraph preserves, as positions and offsets are, judged by its text."""
    text = literal.value
    return (
        text.isascii()
        and text.isdecimal()
        and text[0] != "0"
        and len(text) <= _SURELY_KEPT
        and literal.datatype == XSD.integer
    )


def decode(term: Term) -> Term:
    """Decode an encoded literal; return another term unchanged."""
    if isinstance(term, Literal) and term.datatype.value.startswith(ENCODED_PREFIX):
        return Literal(term.value, datatype=NamedNode(term.datatype.value.removeprefix(ENCODED_PREFIX)))
    return term
