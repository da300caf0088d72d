"""Wikibase RDF split into entities: the triples that `entity_rdf` would write of each, and those that only Wikibase
has.

A small file is read as a whole, with its triples in any order. A larger one is read as a stream in a dump's order,
where each entity follows its document (``schema:about``). Entities that are only referenced with their label are
skipped.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain, islice
from pathlib import Path
from typing import IO, Final

from pyoxigraph import BlankNode, Literal, NamedNode, Quad, RdfFormat, Triple, parse

from kg.errors import InvalidInputError, RecordError, SourceError
from kg.text import quoted
from kg.vocabulary import BASE, ONTOLEX, OWL, RDF, SCHEMA, WIKIBASE
from loaders.readers.json_stream import BROKEN, open_stream
from loaders.wikibase.entity_rdf import Entity, kind_of, restriction, some_value, types_of
from loaders.wikibase.instances import Instance
from loaders.wikibase.languages import is_tag, to_literal
from loaders.wikibase.values import to_iri

FORMATS: Final = {".ttl": RdfFormat.TURTLE, ".nt": RdfFormat.N_TRIPLES, ".nq": RdfFormat.N_QUADS}
WHOLE: Final = 300_000
"""Maximum triples of a file that is read as a whole; in a larger one the order matters."""

_LARGEST: Final = 2_000_000
_TRIPLE_MARKS: Final = re.compile(rb"<<\(|\)>>")
_DEEPEST: Final = 1_000
_ENTITY: Final = re.compile(r"(https?://.*/)entity/((?:[QPME]|L)[1-9][0-9]*(?:-[FS][1-9][0-9]*)?)")
_PREDICATE: Final = re.compile(r"prop/(?:(?:statement|qualifier|reference)/(?:value(?:-normalized)?/)?|direct(?:-normalized)?/|novalue/)?(P[1-9][0-9]*)")  # fmt: skip # noqa: E501
_PART_OF: Final = frozenset({ONTOLEX.lexicalForm, ONTOLEX.sense})

_VALUES: Final = {
    WIKIBASE.timeValue: WIKIBASE.TimeValue,
    WIKIBASE.quantityAmount: WIKIBASE.QuantityValue,
    WIKIBASE.geoLatitude: WIKIBASE.GlobecoordinateValue,
}
_NO_IRI: Final = "<{}> is not an IRI. Statements with it are skipped"
_RANKED: Final = frozenset({WIKIBASE.BestRank})
_MINTED: Final = (*(BASE + root for root in ("graph/", "id/", "vocab/", "ns#", "shapes#")), "cpr://")
"""The IRIs that only Quadcite mints begin with these. A Wikibase that used them would describe records of others."""
_FOREIGN: Final = "Statements about <{}>, which is not of this Wikibase, are skipped"

Term = NamedNode | Literal | BlankNode


Statement = tuple[NamedNode | BlankNode, NamedNode, Term]


@dataclass(slots=True)
class Block:
    """The triples of one document or of a whole file; `about` are the entities with documents in it."""

    triples: Sequence[Statement]
    about: Sequence[NamedNode] = ()


def parse_blocks(path: Path) -> Iterator[Block]:
    """Yield the triples of an RDF file, as a whole or document by document.

    Raises SourceError where the file is damaged; for a large file after the documents before.
    """
    stream = _triples(path)
    start = list(islice(stream, WHOLE + 1))
    if len(start) > WHOLE:
        yield from _documents(path, chain(start, stream))
        return
    yield build_block(start)


def build_block(triples: Sequence[Statement]) -> Block:
    """Build the block of triples in any order."""
    documents = {triple[0] for triple in triples if _is_document(triple)}
    about = [value for subject, predicate, value in triples if predicate == SCHEMA.about and subject in documents]
    return Block(triples, [value for value in about if isinstance(value, NamedNode)])


def _triples(path: Path) -> Iterator[Statement]:
    suffixes = [suffix.lower() for suffix in path.suffixes]
    form = next((FORMATS[each] for each in reversed(suffixes) if each in FORMATS), None)
    if form is None:
        raise SourceError(f"{path}: RDF is read from files that end in {', '.join(FORMATS)}, or these with .gz or .bz2")
    try:
        with open_stream(path) as stream:
            for quad in parse(_Shallow(stream, path), form, lenient=True):  # type: ignore[arg-type]  # it only reads
                if isinstance(quad.subject, Triple) or isinstance(quad.object, Triple):
                    raise SourceError(f"{path}: triple terms are not part of Wikibase RDF")
                yield quad.subject, quad.predicate, quad.object
    except SyntaxError as error:
        raise SourceError(f"{path}: not {form.name} ({error})") from error
    except BROKEN as error:
        raise SourceError(f"{path}: the file is damaged or truncated ({error})") from error
    except ValueError as error:
        raise SourceError(f"{path}: not {form.name} ({error})") from error
    except MemoryError as error:  # the parser's own limit on one term
        raise SourceError(f"{path}: a term is too long ({error})") from error


class _Shallow:
    """A stream of RDF that ends with SourceError where triple terms nest too deeply.

    The parser stops at the first triple term, but reads it as a whole, and from a depth of some 20,000 it exhausts the
    stack of the process. Texts may contain these marks too, but not so many more beginnings than ends.
    """

    def __init__(self, stream: IO[bytes], path: Path) -> None:
        self._stream: Final = stream
        self._path: Final = path
        self._depth = 0
        self._line = 1
        self._rest = b""

    def read(self, size: int = -1) -> bytes:
        """Read at most `size` bytes."""
        chunk = self._stream.read(size)
        data = self._rest + chunk
        for mark in _TRIPLE_MARKS.finditer(data):
            self._depth = self._depth + 1 if mark[0] == b"<<(" else max(0, self._depth - 1)
            if self._depth > _DEEPEST:
                line = self._line + data.count(b"\n", 0, mark.start())
                raise SourceError(f"{self._path}, line {line}: triple terms nest deeper than {_DEEPEST:,}")
        # A mark may begin at the end of a chunk.
        self._rest = b"" if data.endswith((b"<<(", b")>>")) else data[-2:]
        self._line += data.count(b"\n", 0, len(data) - len(self._rest))
        return chunk


def _is_document(triple: Statement) -> bool:
    return triple[1] == RDF.type and triple[2] == SCHEMA.Dataset and triple[0] != WIKIBASE.Dump


def _documents(path: Path, triples: Iterable[Statement]) -> Iterator[Block]:
    """Split a stream where a document begins. Triples before the first document belong to the dump itself."""
    current: list[Statement] = []
    about: list[NamedNode] = []
    for triple in triples:
        if _is_document(triple):
            if about:
                yield Block(current, about)
            current, about = [], []
        elif triple[1] == SCHEMA.about and current and triple[0] == current[0][0] and isinstance(triple[2], NamedNode):
            about.append(triple[2])
        current.append(triple)
        if len(current) > _LARGEST:
            raise SourceError(
                f"{path}: more than {_LARGEST:,} triples without the start of a document (schema:Dataset)"
            )
    if about:
        yield Block(current, about)


def split_entities(
    block: Block, instance_at: Callable[[str], Instance]
) -> Iterator[tuple[Instance | None, Entity | RecordError]]:
    """Yield the entities of a block with their Wikibase, or an error.

    `instance_at` returns the Wikibase with a base address, or raises InvalidInputError for an invalid one.
    """
    found = base_of(block)
    if found is None:
        return
    try:
        instance = instance_at(found)
    except InvalidInputError as error:
        yield None, RecordError(str(error))
        return
    for entity in _Cutting(block, instance).cut():
        yield instance, entity


def base_of(block: Block) -> str | None:
    """Return the base address of the block's subject, otherwise that of the first entity in it."""
    for term in (*block.about, *(subject for subject, *_ in block.triples)):
        if isinstance(term, NamedNode) and (match := _ENTITY.fullmatch(term.value)):
            return match[1]
    return None


class _Cutting:
    def __init__(self, block: Block, instance: Instance) -> None:
        self.block = block
        self.instance = instance
        self.home: dict[object, str] = {}
        """The entity that owns each subject."""
        self.stubs: Counter[str] = Counter()
        self.blank: dict[BlankNode, NamedNode] = {}
        self.entities: dict[str, Entity] = {}

    def cut(self) -> Iterator[Entity | RecordError]:
        own = self._own()
        if not own:
            yield RecordError("the RDF contains no entity with a document, a type or statements")
            return
        self._homes(own)
        self._name_blank_nodes()
        shared: dict[NamedNode, list[Quad]] = defaultdict(list)
        references: dict[str, set[NamedNode]] = defaultdict(set)
        warnings: Counter[str] = Counter()
        for subject, predicate, value in self.block.triples:
            term, warning = self._term(value)
            if warning:
                warnings[warning] += 1
            if (says := _sound(predicate)) is None:
                warnings[_NO_IRI.format(predicate.value[:80])] += 1
            if term is None or says is None:
                continue
            node = self.blank.get(subject) if isinstance(subject, BlankNode) else _sound(subject)
            if (foreign := self._find_foreign(node, says, term)) is not None:
                warnings[_FOREIGN.format(foreign.value[:80])] += 1
                continue
            if node is None:
                self.stubs[str(subject)] += 1
                continue
            if (graph := self._shared(node, predicate)) is not None:
                shared[graph].append(Quad(node, says, term, graph))
                continue
            owner = self.home.get(subject)
            if owner is None:
                self.stubs[node.value] += 1
                continue
            entity = self.entities[owner]
            entity.say(node, says, term)
            if isinstance(term, NamedNode) and (named := self._shared(term, predicate)) is not None:
                references[owner].add(named)
        self._type(shared)
        self._share(shared, references)
        for entity in self.entities.values():
            entity.warnings.update(warnings)
            yield entity

    def _own(self) -> set[str]:
        """Return the ids of the entities that the block describes, not only references."""
        own = {named for about in self.block.about if (named := self._id(about)) is not None}
        if not self.block.about:
            claims = self.instance.base + "prop/P"
            for subject, predicate, value in self.block.triples:
                if (
                    predicate.value.startswith(claims)
                    or (predicate == RDF.type and isinstance(value, NamedNode) and value.value.startswith(WIKIBASE.iri))
                ) and (named := self._id(subject)) is not None:
                    own.add(named)
        for subject, predicate, value in self.block.triples:
            if predicate == OWL.sameAs and self._id(value) is not None and (merged := self._id(subject)) is not None:
                own.add(merged)
            if predicate in _PART_OF and self._id(subject) in own and (part := self._id(value)) is not None:
                own.add(part)
        return own

    def _homes(self, own: set[str]) -> None:
        instance = self.instance
        for entity_id in sorted(own, key=lambda each: (len(each), each)):
            self.entities[entity_id] = Entity(entity_id, instance.graph(entity_id))
            self.home[instance.entity(entity_id)] = entity_id
            if kind_of(entity_id) == "P":
                for prefix in ("wdt", "wdtn", "p", "ps", "psv", "psn", "pq", "pqv", "pqn", "pr", "prv", "prn", "wdno"):
                    self.home[instance.predicate(prefix, entity_id)] = entity_id
        claims = instance.base + "prop/P"
        for subject, predicate, value in self.block.triples:
            if predicate == SCHEMA.about and (named := self._id(value)) in self.entities:
                self.home[subject] = str(named)
            elif predicate.value.startswith(claims) and (named := self._id(subject)) in self.entities:
                self.home.setdefault(value, str(named))  # an entity stays its own, even where it is used as a statement
        for subject, predicate, value in self.block.triples:
            if predicate == OWL.complementOf and subject in self.home:
                self.home[value] = self.home[subject]

    def _name_blank_nodes(self) -> None:
        """Name blank nodes by their position, as `entity_rdf` does; those of a statement's value
        before the direct one.
        """
        direct: list[tuple[BlankNode, NamedNode, str]] = []
        for subject, predicate, value in self.block.triples:
            if not isinstance(value, BlankNode) or not isinstance(subject, NamedNode):
                continue
            match = _PREDICATE.search(predicate.value)
            if predicate == OWL.complementOf:
                if match := _PREDICATE.search(subject.value):
                    self.blank[value] = restriction(self.instance, match[1])
            elif match is None:
                self.blank.setdefault(value, some_value(subject, predicate.value))
            elif "/direct" in predicate.value:
                direct.append((value, subject, match[1]))
            else:
                self.blank[value] = some_value(subject, match[1])
        for value, subject, property_id in direct:
            self.blank.setdefault(value, some_value(subject, property_id))

    def _id(self, term: object) -> str | None:
        return self.instance.id_of(term.value) if isinstance(term, NamedNode) else None

    def _find_foreign(
        self, node: NamedNode | None, predicate: NamedNode, value: NamedNode | Literal
    ) -> NamedNode | None:
        """Find the term of a triple that a Wikibase cannot describe or use: an entity of another one as the subject, or
        an IRI that Quadcite mints, except as the value of a property.
        """
        if node is not None:
            other = _ENTITY.fullmatch(node.value)
            if node.value.startswith(_MINTED) or (other is not None and self.instance.id_of(node.value) is None):
                return node
        if predicate.value.startswith(_MINTED):
            return predicate
        if not isinstance(value, NamedNode) or not value.value.startswith(_MINTED):
            return None
        properties = self.instance.base + "prop/"
        is_value = predicate.value.startswith(properties) and not predicate.value.startswith(properties + "P")
        return None if is_value else value

    def _shared(self, node: NamedNode, predicate: NamedNode) -> NamedNode | None:
        """Return the graph of a value, reference or site, or None for a node of an entity."""
        instance = self.instance
        for kind in ("value", "reference"):
            start = f"{instance.base}{kind}/"
            if node.value.startswith(start) and len(node.value) > len(start):
                return instance.shared(kind, node.value[len(start) :])
        if predicate in (WIKIBASE.wikiGroup, SCHEMA.isPartOf):
            return instance.shared("site", node.value) if node not in self.home else None
        return None

    def _type(self, shared: dict[NamedNode, list[Quad]]) -> None:
        """Add the type of each node, which query services leave out."""
        for graph, quads in shared.items():
            said = {quad.predicate for quad in quads}
            if WIKIBASE.wikiGroup in said or any(quad.predicate == RDF.type and not self._none(quad) for quad in quads):
                continue
            kind = next((kind for predicate, kind in _VALUES.items() if predicate in said), WIKIBASE.Reference)
            quads.append(Quad(quads[0].subject, RDF.type, kind, graph))
        for entity in self.entities.values():
            kinds = (quad for quad in entity.quads if quad.predicate == RDF.type and not self._none(quad))
            typed = {quad.subject for quad in kinds if quad.object not in _RANKED}
            claims = self.instance.base + "prop/P"
            merged = any(quad.predicate == OWL.sameAs for quad in entity.quads)
            if (own := self.instance.entity(entity.id)) not in typed and not merged:
                for kind in types_of(entity.id):
                    entity.say(own, RDF.type, kind)
            claimed = [q.object for q in entity.quads if q.predicate.value.startswith(claims)]
            for node in claimed:
                if isinstance(node, NamedNode) and node not in typed:
                    entity.say(node, RDF.type, WIKIBASE.Statement)

    def _none(self, quad: Quad) -> bool:
        """Whether this states that a property has no value, which Wikibase does with a type."""
        none = self.instance.base + "prop/novalue/"
        return isinstance(quad.object, NamedNode) and quad.object.value.startswith(none)

    def _share(self, shared: dict[NamedNode, list[Quad]], references: dict[str, set[NamedNode]]) -> None:
        """Add to each entity the shared graphs that it refers to, directly or through its references."""
        for owner, wanted in references.items():
            queue = sorted(wanted, key=lambda graph: graph.value)
            taken = self.entities[owner].shared
            while queue:
                graph = queue.pop()
                if graph in taken or graph not in shared:
                    continue
                taken[graph] = shared[graph]
                for quad in shared[graph]:
                    if (
                        isinstance(quad.object, NamedNode)
                        and (deeper := self._shared(quad.object, quad.predicate)) is not None
                    ):
                        queue.append(deeper)

    def _term(self, value: Term) -> tuple[NamedNode | Literal | None, str | None]:
        """Return the term to write, or None where RDF cannot contain it, and a warning about the original."""
        if isinstance(value, BlankNode):
            return self.blank.get(value) or some_value(self.instance.entity("Q1"), value.value), None
        if isinstance(value, NamedNode):
            sound = _sound(value)
            if sound is None:
                return None, _NO_IRI.format(value.value[:80])
            return (
                sound,
                None if sound == value else f"<{value.value[:80]}> is not a valid IRI. It is written <{sound.value}>",
            )
        if _sound(value.datatype) != value.datatype:
            return Literal(value.value), f"<{value.datatype.value[:80]}> is not a datatype IRI. Its value is a string"
        if (code := value.language) is not None and not is_tag(code):
            literal, warning = to_literal(value.value, code)
            return (
                literal,
                warning or f"{quoted(code)} is not a language tag. Its texts are marked {quoted(literal.language)}",
            )
        return value, None


@lru_cache(65_536)
def _sound(node: NamedNode) -> NamedNode | None:
    """Return the IRI with forbidden characters percent-encoded, or None if it is not an IRI: the parser accepts any."""
    try:
        return NamedNode(to_iri(node.value))
    except RecordError:
        return None


def entity_text(entity: Entity) -> Sequence[str]:
    """Return the triples of an entity and its shared graphs, sorted: the input of its hash."""
    quads = [*entity.quads, *(quad for graph in entity.shared.values() for quad in graph)]
    return sorted({f"{quad.subject} {quad.predicate} {quad.object} ." for quad in quads})
