"""The items that a query selects at a live Wikibase's SPARQL endpoint, with all their triples, as N-Triples.

A location is ``sparql:URL@FILE``: the endpoint, and a file with a SELECT whose first column contains the items;
without ``:URL`` the endpoint is that of the settings. The results are written to one file per Wikibase, with one
document per item, like a dump, so they are read, checked and stored like one.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, Protocol

from pyoxigraph import Literal

from kg.errors import InvalidInputError, RecordError, SourceError
from kg.remote.sparql import Answer, Endpoint
from kg.settings import Settings
from kg.text import quoted
from kg.vocabulary import CC, OWL, RDF, RDFS, SCHEMA, SKOS, WIKIBASE, XSD, segment, sha256
from loaders.readers.locations import Fetched, replace_file
from loaders.wikibase.entity_rdf import FORMAT_VERSION
from loaders.wikibase.instances import Instance, with_base
from loaders.wikibase.languages import UNDETERMINED, to_literal
from loaders.wikibase.values import to_iri

SCHEME: Final = "sparql"
PAGE: Final = 20
"""Items per request; fewer where the response is too large or truncated."""
MAX_ROWS: Final = 60_000
"""Maximum solutions per response before the request is split: servers truncate longer ones, and not all report it."""
LARGEST_QUERY: Final = 1 << 20

_ENTITY: Final = re.compile(r"(https?://[^\x00-\x20<>\"{}|\\^`?#@]*/)entity/([QP][1-9][0-9]*)")
_TAG: Final = re.compile(r"[A-Za-z]+(-[A-Za-z0-9]+)*")
_GENID: Final = "/.well-known/genid/"
_NOT_PLAIN: Final = re.compile(r"[\"\\\x00-\x1f\x7f-\x9f\ud800-\udfff]")

_TYPE, _ABOUT, _SAME, _LABEL = str(RDF.type), str(SCHEMA.about), str(OWL.sameAs), str(RDFS.label)
_LABELS: Final = frozenset({str(SKOS.prefLabel), str(SCHEMA.name)})
_OF_DOCUMENTS: Final = frozenset(
    map(str, (SCHEMA.version, SCHEMA.dateModified, WIKIBASE.statements, WIKIBASE.sitelinks, WIKIBASE.identifiers))
)

_DATA: Final = """\
SELECT DISTINCT ?item ?s ?p ?o WHERE {{
  {{ VALUES ?item {{ {items} }} ?item ?p ?o BIND(?item AS ?s) }}
  UNION {{ VALUES ?item {{ {items} }} ?item ?claim ?s FILTER(STRSTARTS(STR(?claim), "{base}prop/P")) ?s ?p ?o }}
  UNION {{ VALUES ?item {{ {items} }} ?item ?claim ?of FILTER(STRSTARTS(STR(?claim), "{base}prop/P")) ?of ?says ?s
    FILTER(STRSTARTS(STR(?s), "{base}value/") || STRSTARTS(STR(?s), "{base}reference/")) ?s ?p ?o }}
  UNION {{ VALUES ?item {{ {items} }} ?item ?claim ?of FILTER(STRSTARTS(STR(?claim), "{base}prop/P"))
    ?of <http://www.w3.org/ns/prov#wasDerivedFrom> ?from . ?from ?says ?s
    FILTER(STRSTARTS(STR(?s), "{base}value/")) ?s ?p ?o }}
  UNION {{ VALUES ?item {{ {items} }} ?s <http://schema.org/about> ?item ; ?p ?o }}
  UNION {{ VALUES ?item {{ {items} }} ?link <http://schema.org/about> ?item ; <http://schema.org/isPartOf> ?s .
    ?s <http://wikiba.se/ontology#wikiGroup> ?o BIND(<http://wikiba.se/ontology#wikiGroup> AS ?p) }}
  UNION {{ VALUES ?item {{ {items} }} ?item ?role ?s FILTER(STRSTARTS(STR(?s), "{base}prop/")) ?s ?p ?o }}
  UNION {{ VALUES ?item {{ {items} }} ?item ?role ?none FILTER(STRSTARTS(STR(?none), "{base}prop/novalue/"))
    ?none <http://www.w3.org/2002/07/owl#complementOf> ?s . ?s ?p ?o }}
}} LIMIT {limit}
"""

Triple = tuple[str, str, str]


class _CutError(Exception):
    """The response is incomplete."""


def fetch_items(location: str, settings: Settings, folder: Path) -> Fetched:
    """Fetch the items of a location into `folder`, and report the source and time.

    Everything is fetched, or nothing: UpstreamError if the endpoint fails at any point. A cached response that is too
    old is never used. Raises SourceError for a query that cannot be read, or that selects no entity.
    """
    url, query = _parts(location, settings)
    fetching = Fetching(Endpoint(url, settings.answers_dir))
    digest = sha256(query)
    items = fetching.items(query)
    if not items:
        raise SourceError(f"{location}: the first column of the query selects no entity of a Wikibase")
    scope = f"{SCHEME}:{url}@query-{digest}/"
    files = {}
    for base in dict.fromkeys(base for base, _ in items):
        instance = with_base(settings, base)
        source = f"{scope}{segment(instance.name)}.nt"
        path = folder / f"{sha256(source)[:32]}.nt"
        if _write(path, fetching.lines(base, instance, [entity_id for of, entity_id in items if of == base])):
            files[source] = path
    if not files:
        raise SourceError(f"{location}: the endpoint has no data about any of the {len(items):,} selected items")
    return Fetched(files, scope, fetching.oldest(), fetching.warnings)


def _parts(location: str, settings: Settings) -> tuple[str, str]:
    """Return the endpoint and the query of a location."""
    url, _, file = location.removeprefix(SCHEME).removeprefix(":").partition("@")
    if not file:
        raise SourceError(f"{location}: name the file with the query that selects items, as in {SCHEME}:URL@FILE")
    path = Path(file).expanduser()
    try:
        if path.stat().st_size > LARGEST_QUERY:
            raise SourceError(f"{file}: the query has more than {LARGEST_QUERY:,} bytes")
        query = path.read_text(encoding="utf-8")
    except (OSError, ValueError) as error:
        raise SourceError(f"{file}: the query cannot be read ({error})") from None
    return url or str(settings.concept_store_url), query


def _write(path: Path, lines: Iterator[str]) -> bool:
    """Write a file, replacing the previous one when it is complete, and return whether it has content.

    Raises SourceError if it cannot be written.
    """
    with replace_file(path) as partial:
        with partial.open("w", encoding="utf-8", newline="\n") as stream:
            size = sum(stream.write(line) for line in lines)
        if not size:
            partial.unlink()
    return size > 0


class Selecting(Protocol):
    """An endpoint that runs SELECT: a SPARQL endpoint, or the tool of a remote MCP server."""

    @property
    def url(self) -> str:
        """Its address."""

    def select(self, query: str, *, stale: bool = True) -> Answer:
        """Run a query, as `kg.remote.sparql.Endpoint` does."""


@dataclass(slots=True)
class Fetching:
    """One fetch of entities from an endpoint, with the times of its answers and the triples that were skipped."""

    endpoint: Selecting
    warnings: list[str] = field(default_factory=list)
    times: set[datetime] = field(default_factory=set)

    def oldest(self) -> str:
        """Get the time of the oldest response."""
        return min(self.times).isoformat(timespec="seconds")

    def ask(self, query: str) -> Answer:
        """Run a query, and note the time of its answer."""
        answer = self.endpoint.select(query, stale=False)
        self.times.add(answer.asked_at)
        return answer

    def items(self, query: str) -> list[tuple[str, str]]:
        """Return the entities that a query selects, as base address and id, each once, in order."""
        answer = self.ask(query)
        if not answer.variables:
            raise SourceError("the query selects no variable. The first variable must be the items.")
        if answer.truncated:
            raise SourceError(
                f"{self.endpoint.url} truncated the list of items after "
                f"{len(answer.bindings):,}. Select fewer, for example with LIMIT."
            )
        first = answer.variables[0]
        found: dict[tuple[str, str], None] = {}
        strange: dict[str, None] = {}
        for binding in answer.bindings:
            value = binding.get(first, {}).get("value", "")
            match = _ENTITY.fullmatch(value)
            if match is not None and binding[first]["type"] == "uri":
                found[match[1], match[2]] = None
            else:
                strange[value] = None
        if strange:
            named = ", ".join(f"{quoted(value)}" for value in [*strange][:3])
            self.warnings.append(f"{len(strange):,} values of ?{first} are not entities of a Wikibase, such as {named}")
        return list(found)

    def lines(self, base: str, instance: Instance, ids: Sequence[str]) -> Iterator[str]:
        """Yield, as N-Triples, all statements of the endpoint about some entities and those that
        they were merged into.
        """
        known = set(ids)
        waiting = deque(ids)
        redirects: dict[str, str] = {}
        while waiting:
            page = [waiting.popleft() for _ in range(min(PAGE, len(waiting)))]
            for entity_id, triples in self.page(base, page):
                subject = f"<{base}entity/{entity_id}>"
                merged = next((value for about, says, value in triples if (about, says) == (subject, _SAME)), None)
                if merged is None or any(says.startswith(f"<{base}prop/P") for _, says, _ in triples):
                    yield _document(instance, base, entity_id, triples)
                    continue
                redirects[subject] = merged
                target = _ENTITY.fullmatch(merged[1:-1])
                if target is not None and target[1] == base and target[2] not in known:
                    known.add(target[2])
                    waiting.append(target[2])
        # Last, since triples before the first document of a dump belong to the dump itself.
        for old, new in redirects.items():
            yield f"{old} {_SAME} {new} .\n"

    def page(self, base: str, ids: Sequence[str]) -> Iterator[tuple[str, Sequence[Triple]]]:
        """Yield the triples about each of some entities; report those without any."""
        items = " ".join(f"<{base}entity/{entity_id}>" for entity_id in ids)
        try:
            answer = self.ask(_DATA.format(items=items, base=base, limit=MAX_ROWS + 1))
            if answer.truncated or len(answer.bindings) > MAX_ROWS:
                raise _CutError(f"the response is truncated after {len(answer.bindings):,} solutions")
            by_item = self.triples(answer)
            if missing := _missing(base, by_item):
                if len(ids) > 1:
                    raise _CutError(missing)
                self.warnings.append(f"{self.endpoint.url} {missing}")
        except (_CutError, InvalidInputError) as error:
            if len(ids) == 1:
                raise SourceError(
                    f"{self.endpoint.url}: the triples of {ids[0]} are incomplete ({error}). Load this entity "
                    "from a file."
                ) from None
            half = len(ids) // 2
            yield from self.page(base, ids[:half])
            yield from self.page(base, ids[half:])
            return
        for entity_id in ids:
            triples = by_item.get(f"<{base}entity/{entity_id}>")
            if triples:
                yield entity_id, sorted(triples)
            else:
                self.warnings.append(f"{entity_id}: the endpoint has no data about it")

    def triples(self, answer: Answer) -> dict[str, set[Triple]]:
        """The triples of a response by item."""
        found: dict[str, set[Triple]] = defaultdict(set)
        label = f"{answer.query_sha256} {answer.asked_at}"
        for binding in answer.bindings:
            try:
                item, *triple = (self.term(binding[name], label) for name in ("item", "s", "p", "o"))
                found[item].add((triple[0], triple[1], triple[2]))
            except (RecordError, KeyError) as error:
                wrong = f"?{error.args[0]} is not bound" if isinstance(error, KeyError) else str(error)
                self.warnings.append(f"a triple is skipped: {wrong}: {json.dumps(binding)[:300]}")
        return found

    def term(self, term: Mapping[str, str], label: str) -> str:
        """Format one term as N-Triples. Blank nodes of different responses never share a label."""
        kind, value = term["type"], term["value"]
        if kind == "uri" and _GENID not in value:
            return f"<{to_iri(value)}>"
        if kind in ("bnode", "uri"):
            return f"_:b{sha256(f'{label} {value}')[:24]}"
        if kind not in ("literal", "typed-literal"):
            raise RecordError(f"unknown term type {quoted(kind)}")
        text = '"' + _NOT_PLAIN.sub(_escaped, value) + '"'
        if (code := term.get("xml:lang")) is not None:
            if not _TAG.fullmatch(code):
                literal, warning = to_literal("", code)
                code = literal.language or UNDETERMINED
                if warning is not None and warning not in self.warnings:
                    self.warnings.append(warning)
            return f"{text}@{code}"
        datatype = term.get("datatype")
        return text if datatype in (None, XSD.string.value) else f"{text}^^<{to_iri(str(datatype))}>"


def _escaped(match: re.Match[str]) -> str:
    code = ord(match[0])
    return "\ufffd" if 0xD800 <= code <= 0xDFFF else f"\\u{code:04X}"


def _missing(base: str, by_item: Mapping[str, set[Triple]]) -> str | None:
    """Return the evidence of missing triples: a statement that is referenced but has no triples."""
    claims = f"<{base}prop/P"
    for item, triples in by_item.items():
        said = {subject for subject, *_ in triples}
        for subject, predicate, value in triples:
            if subject == item and predicate.startswith(claims) and value not in said:
                return f"the statement {value} of {item} has no triples"
    return None


def _document(instance: Instance, base: str, entity_id: str, triples: Sequence[Triple]) -> str:
    """Return the triples of an entity below its document, with those that query services leave out or move.

    They have no documents, attach the document's triples to the entity, and keep one of three equal labels.
    """
    entity = f"<{base}entity/{entity_id}>"
    dataset = (_TYPE, str(SCHEMA.Dataset))
    own = {subject for subject, predicate, value in triples if (predicate, value) == (_ABOUT, entity)}
    documents = [subject for subject, *rest in triples if subject in own and tuple(rest) == dataset]
    lines: dict[Triple, None] = {}
    document = documents[0] if documents else f"<{instance.document(entity_id).value}>"
    lines[document, *dataset] = None
    lines[document, _ABOUT, entity] = None
    if not documents:
        lines[document, str(SCHEMA.softwareVersion), str(Literal(FORMAT_VERSION))] = None
        if instance.license:
            lines[document, str(CC.license), f"<{instance.license}>"] = None
    labelled = {predicate for subject, predicate, _ in triples if subject == entity}
    for subject, predicate, value in triples:
        if subject == entity and predicate in _OF_DOCUMENTS:
            subject = document
        lines[subject, predicate, value] = None
        if subject == entity and predicate == _LABEL:
            for other in _LABELS - labelled:
                lines[entity, other, value] = None
    return "".join(f"{' '.join(line)} .\n" for line in lines)
