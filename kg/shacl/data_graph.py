"""Data graphs: quads in memory before they are committed, one graph of a store, or all of its graphs as one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from itertools import islice
from typing import Final

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, QuerySolutions, Store, Triple

from kg.shacl.literals import Lexicon, decode
from kg.store.protocol import Term
from kg.vocabulary import RDFS, SHAPES_GRAPH, TBOX_GRAPH

_PORTION: Final = 20_000
"""Quads added to a store at once."""
_SMALL: Final = 10_000

Graph = NamedNode | DefaultGraph


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
