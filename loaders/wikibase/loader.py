"""The loader ``wikibase``: files of every format that Wikibase publishes, as records of one entity each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from pyoxigraph import Quad, RdfFormat, serialize

from kg.errors import RecordError, SourceError
from kg.settings import Settings
from kg.vocabulary import OWL, segment, sha256
from loaders.model import Notice, Origin, Rejection, SourceGraph, Withdrawal
from loaders.readers.json_stream import parse_elements
from loaders.readers.locations import File
from loaders.wikibase import concept_csv, rdf_input
from loaders.wikibase.entity_rdf import Entity, build_quads, check_id, parts
from loaders.wikibase.instances import Instance, choose_instance, get_instances, with_base

DOMAIN: Final = "wikibase"
VERSION: Final = "1"
"""Version of the records that this package builds. A new version loads every entity again."""

_JSON: Final = (".json", ".jsonl", ".ndjson")
_RDF: Final = tuple(rdf_input.FORMATS)
_PACKED: Final = ("", ".gz", ".bz2")
FORMATS: Final = tuple(
    ending + packed for ending in (*_JSON, *_RDF, ".csv") for packed in (_PACKED if ending != ".csv" else ("",))
)

Item = SourceGraph | Rejection | Withdrawal | Notice


@dataclass(frozen=True, slots=True)
class Found:
    """The value at one position of a file: an entity as JSON or as quads, or an error."""

    number: int
    """Its number among the entities (or rows) of the file, from 1."""
    entity: Mapping[str, Any] | Entity | RecordError
    asked: str | None = None
    """The requested id; that of another entity if it was merged into this one."""
    instance: Instance | None = None
    """The Wikibase that it names as its own."""
    text: str = ""
    """The text in the file, where the file contains only this."""


@dataclass(frozen=True, slots=True)
class Reading:
    """Reads files of one Wikibase. RDF names its own Wikibase."""

    instance: Instance
    settings: Settings
    known: dict[str, Instance]
    """The Wikibases that were read, by the name in their IRIs."""
    config: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Settings, name: str | None) -> Reading:
        """Build the reading of a Wikibase by its name or address; default: that of the settings."""
        instance = choose_instance(settings, name)
        known = {segment(each.name): each for each in (*get_instances(settings).values(), instance)}
        config = {"base": instance.base, "skos": json.dumps(dict(instance.skos), sort_keys=True)}
        return cls(instance, settings, known, config)

    def read(self, files: Sequence[File]) -> Iterator[Item]:
        """Yield the entities of `files`, each with its shared graphs. Invalid ones are Rejections."""
        for file in files:
            form = _form(file.path)
            whose = "" if form == "RDF" else f" of the Wikibase {self.instance.name}"
            yield Notice(f"{file.snapshot.source}: {form}{whose}")
            try:
                yield from self.unread(file.path)
                for found in self.found(file.path):
                    number = file.rows[found.number - 1] if file.rows is not None else found.number
                    origin = Origin(file.snapshot, (number,))
                    yield from self.records(found, origin)
            except SourceError as error:
                yield Rejection(file.path.name, str(error), (Origin(file.snapshot),))
            except IndexError:
                yield Rejection(
                    file.path.name,
                    "the file has more entities than its quarantine entry lists",
                    (Origin(file.snapshot),),
                )

    def unread(self, path: Path) -> Iterator[Notice]:
        """Report the unknown columns of a CSV."""
        if _form(path) == "CSV" and (names := concept_csv.unknown_columns(path)):
            yield Notice(f"{path}: unknown columns, skipped: {', '.join(map(repr, names))}", warning=True)

    def found(self, path: Path) -> Iterator[Found]:
        """Yield the values of one file. Raises SourceError where it cannot be read any further."""
        form = _form(path)
        if form == "CSV":
            for number, entity in concept_csv.parse_rows(path, self.instance):
                yield Found(number, entity)
        elif form == "RDF":
            yield from self._rdf(path)
        else:
            yield from _json(path)

    def _rdf(self, path: Path) -> Iterator[Found]:
        number, fault = 0, None
        try:
            for block in rdf_input.parse_blocks(path):
                for instance, entity in rdf_input.split_entities(block, self.at):
                    number += 1
                    yield Found(number, entity, instance=instance)
        except SourceError as error:
            fault = error
        if fault is not None:
            raise fault
        if not number:
            raise SourceError(f"{path}: the RDF contains no entity of a Wikibase")

    def at(self, base: str) -> Instance:
        """Return the Wikibase with this base address."""
        known = self.instance
        if known.base != base and known.media != base + "entity/":
            known = with_base(self.settings, base)
        self.known.setdefault(segment(known.name), known)
        return known

    def records(self, found: Found, origin: Origin) -> Iterator[Item]:
        """Yield the records of one value: an entity with its parts, a redirect, or a Rejection."""
        instance, entity = found.instance or self.instance, found.entity
        if isinstance(entity, RecordError):
            yield Rejection(_named(origin), str(entity), (origin,), _key(instance, found.asked))
            return
        if isinstance(entity, Entity):
            yield self._record(instance, entity, sha256("\n".join(rdf_input.entity_text(entity))), origin)
            return
        entity_id: str | None = None
        try:
            if (merged := _redirect(entity, found.asked)) is not None:
                yield self._redirected(instance, *merged, origin)
                if "id" not in entity or "claims" not in entity:
                    return
            if "missing" in entity:
                entity_id = check_id({"id": entity.get("id", found.asked)})
                yield Withdrawal(entity_id, (instance.name, entity_id))
                return
            entity_id = check_id(entity)
            text = found.text or json.dumps(entity, sort_keys=True)
            yield self._made(instance, entity, text, origin)
            for part in parts(entity):
                entity_id = check_id(part)
                yield self._made(instance, part, json.dumps(part, sort_keys=True), origin)
        except RecordError as error:
            name = entity_id or found.asked or _named(origin)
            yield Rejection(name, str(error), (origin,), _key(instance, entity_id))

    def _made(self, instance: Instance, entity: Mapping[str, Any], text: str, origin: Origin) -> SourceGraph:
        try:
            return self._record(instance, build_quads(instance, entity), sha256(text), origin)
        except UnicodeEncodeError as error:
            raise RecordError(
                f"{entity['id']}: contains a lone surrogate, which is not a character ({error})"
            ) from None

    def _record(self, instance: Instance, entity: Entity, digest: str, origin: Origin) -> SourceGraph:
        return SourceGraph(
            DOMAIN,
            (instance.name, entity.id),
            instance.entity(entity.id),
            entity.quads,
            (origin,),
            sha256(f"{instance.fingerprint} {digest}"),
            entity.shared,
            entity.list_warnings(),
        )

    def _redirected(self, instance: Instance, old: Any, new: Any, origin: Origin) -> SourceGraph:
        old, new = check_id({"id": old}), check_id({"id": new})
        entity = Entity(old, instance.graph(old))
        entity.say(instance.entity(old), OWL.sameAs, instance.entity(new))
        return self._record(instance, entity, f"{old} {new}", origin)

    def cut(self, path: Path, wanted: Mapping[Path, Sequence[int]]) -> None:
        """Write the entities of `path` with these numbers to each target: as JSON lines, N-Triples or CSV rows.

        Raises SourceError if the file cannot be read or has no such entity.
        """
        from loaders.readers import excerpts

        if _form(path) == "CSV":
            excerpts.cut(path, wanted)
            return
        numbers = {number for each in wanted.values() for number in each}
        kept: dict[int, bytes] = {}
        try:
            for found in self.found(path):
                if found.number in numbers:
                    kept[found.number] = _written(found)
        except SourceError:
            if not numbers <= kept.keys():
                raise
        if absent := numbers - kept.keys():
            raise SourceError(f"{path}: entity {min(absent)} does not exist. The file may have changed.")
        for target, chosen_numbers in wanted.items():
            target.write_bytes(b"".join(kept[number] for number in chosen_numbers))


def _json(path: Path) -> Iterator[Found]:
    number = 0
    for element in parse_elements(path, lambda value: "id" in value or "entities" in value):
        if element.value is None:
            number += 1
            yield Found(number, RecordError(f"element {element.number} {element.problem}"), text=element.text)
            continue
        for asked, entity in _get_entities(element.value):
            number += 1
            if isinstance(entity, dict):
                text = element.text if entity is element.value else ""
                yield Found(number, entity, asked, text=text)
            else:
                yield Found(number, RecordError(f"element {element.number} is not a JSON object"), asked, text="null")


def _redirect(entity: Mapping[str, Any], asked: str | None) -> tuple[Any, Any] | None:
    """Return the id that was merged and its target, or None for an entity that is not a redirect."""
    within, own = entity.get("redirects"), entity.get("id")
    if isinstance(within, dict):
        return within.get("from", asked), within.get("to", own)
    if "redirect" in entity and "claims" not in entity:
        return entity.get("entity", own or asked), entity["redirect"]
    if asked is not None and isinstance(own, str) and own != asked and not asked.startswith("-"):
        return asked, own
    return None


def _get_entities(value: Mapping[str, Any]) -> Iterator[tuple[str | None, Any]]:
    """Yield the entities of one element, each with the requested id where it is known."""
    within = value.get("entities")
    if isinstance(within, dict):
        yield from within.items()
    elif isinstance(within, list):
        for entity in within:
            yield None, entity
    else:
        yield None, value


def _written(found: Found) -> bytes:
    entity = found.entity
    if isinstance(entity, Entity):
        quads = [*entity.quads, *(quad for graph in entity.shared.values() for quad in graph)]
        triples = (Quad(quad.subject, quad.predicate, quad.object) for quad in quads)
        return serialize(triples, format=RdfFormat.N_TRIPLES) or b""
    if isinstance(entity, RecordError):
        return " ".join(found.text.split()).encode(errors="backslashreplace") + b"\n"
    if found.asked is not None and entity.get("id") != found.asked:
        entity = {"entities": {found.asked: entity}}
    return json.dumps(entity, ensure_ascii=False).encode(errors="surrogatepass") + b"\n"


def _form(path: Path) -> str:
    endings = {suffix.lower() for suffix in path.suffixes[-2:]}
    if ".csv" in endings:
        return "CSV"
    return "RDF" if endings & rdf_input.FORMATS.keys() else "JSON"


def _key(instance: Instance, entity_id: str | None) -> tuple[str, ...] | None:
    return (instance.name, entity_id) if entity_id else None


def _named(origin: Origin) -> str:
    return f"{Path(origin.snapshot.source).name} {origin.rows[0]}"
