"""Wikibase instances: their IRIs, and the meaning of their properties in SKOS."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Final
from urllib.parse import urlsplit

from pyoxigraph import NamedNode

from kg.errors import InvalidInputError
from kg.settings import Settings
from kg.text import quoted
from kg.vocabulary import mint, sha256
from loaders.wikibase.languages import is_tag

ROLES: Final = (
    "broader", "narrower", "related", "definition", "altLabel", "exactMatch", "negativeLabel", "notToBeConfusedWith",
)  # fmt: skip
"""The meanings that a property may have in the SKOS view."""

PREDICATES: Final = {
    "p": "", "ps": "statement/", "psv": "statement/value/", "psn": "statement/value-normalized/",
    "pq": "qualifier/", "pqv": "qualifier/value/", "pqn": "qualifier/value-normalized/",
    "pr": "reference/", "prv": "reference/value/", "prn": "reference/value-normalized/",
    "wdt": "direct/", "wdtn": "direct-normalized/", "wdno": "novalue/",
}  # fmt: skip
"""The path below ``prop/`` for each prefix of Wikibase's properties."""

_CC0: Final = "http://creativecommons.org/publicdomain/zero/1.0/"
_BASE: Final = re.compile(r"https?://[^\s<>\"{}|\\^`?#@]+/")
_ID: Final = re.compile(r"[QPM][1-9][0-9]*|L[1-9][0-9]*(-[FS][1-9][0-9]*)?")


def _is_iri(text: str) -> bool:
    try:
        return bool(NamedNode(text))
    except ValueError:
        return False


@dataclass(frozen=True)
class Instance:
    """One Wikibase. Its IRIs start with `base`, as in ``http://www.wikidata.org/entity/Q42``."""

    name: str
    """Short name: part of the names of its graphs."""
    base: str
    data: str
    """Prefix of the IRIs of its entity documents."""
    media: str = ""
    """Prefix of the IRIs of its media (M...), where they are stored elsewhere."""
    license: str = ""
    """IRI of the license of its data, if known."""
    concepts: bool = False
    """Whether its items are the concepts of the climate concept store, ``cpr://concept/{QID}``."""
    language: str | None = None
    """Language of its plain strings, where they are labels and definitions."""
    skos: Mapping[str, str] = field(default_factory=dict)
    """Meaning of its properties in SKOS (one of `ROLES`), by property id."""

    def __post_init__(self) -> None:
        for property_id, role in self.skos.items():
            if role not in ROLES or not re.fullmatch("P[1-9][0-9]*", property_id):
                raise InvalidInputError(
                    f"Wikibase {quoted(self.name)}: invalid mapping {quoted(property_id)} -> "
                    f"{quoted(role)}. Map a property id, such as "
                    "P279, to one of " + ", ".join(ROLES)
                )
        for iri in (self.base, self.data, self.media or self.base):
            if not _BASE.fullmatch(iri) or not _is_iri(iri):
                raise InvalidInputError(
                    f"Wikibase {quoted(self.name)}: invalid base {quoted(iri)} of its IRIs. "
                    f"Expected an http or https address that "
                    "ends in /, without user, query and fragment."
                )
        if self.license and not _is_iri(self.license):
            raise InvalidInputError(f"Wikibase {quoted(self.name)}: the license {quoted(self.license)} is not an IRI")
        if self.language is not None and not is_tag(self.language):
            raise InvalidInputError(
                f"Wikibase {quoted(self.name)}: {quoted(self.language)} is not a language tag, such as en or pt-BR"
            )

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the configuration. When it changes, its entities are loaded again."""
        return sha256(json.dumps(asdict(self), sort_keys=True))[:16]

    @cached_property
    def entity_base(self) -> str:
        """Prefix of the IRIs of its entities."""
        return self.base + "entity/"

    @cached_property
    def media_base(self) -> str:
        """Prefix of the IRIs of its media."""
        return self.media or self.entity_base

    @cached_property
    def _entities(self) -> dict[str, NamedNode]:
        return {}

    @cached_property
    def _predicates(self) -> dict[tuple[str, str], NamedNode]:
        return {}

    def entity(self, entity_id: str) -> NamedNode:
        """Return the IRI of an entity, form or sense."""
        found = self._entities.get(entity_id)
        if found is None:
            if len(self._entities) > 200_000:
                self._entities.clear()
            start = self.media_base if entity_id.startswith("M") else self.entity_base
            found = self._entities[entity_id] = NamedNode(start + entity_id)
        return found

    def statement(self, guid: str) -> NamedNode:
        """Return the IRI of the statement with this GUID."""
        start = self.media_base if guid[:1] in "Mm" else self.entity_base
        return NamedNode(f"{start}statement/{guid.replace('$', '-')}")

    def reference(self, digest: str) -> NamedNode:
        """Return the IRI of the reference with this hash."""
        return NamedNode(f"{self.base}reference/{digest}")

    def value(self, digest: str) -> NamedNode:
        """Return the IRI of the value node with this hash."""
        return NamedNode(f"{self.base}value/{digest}")

    def document(self, entity_id: str) -> NamedNode:
        """Return the IRI of the document about an entity."""
        return NamedNode(self.data + entity_id)

    def predicate(self, prefix: str, property_id: str) -> NamedNode:
        """Return the IRI for `prefix` (such as ``wdt``) and a property id."""
        found = self._predicates.get((prefix, property_id))
        if found is None:
            path = self.base + "prop/" + PREDICATES[prefix]
            found = self._predicates[prefix, property_id] = NamedNode(path + property_id)
        return found

    def concept(self, entity_id: str) -> NamedNode:
        """Return the concept for an item."""
        return mint("concept", entity_id) if self.concepts else self.entity(entity_id)

    @cached_property
    def _graphs(self) -> dict[str, str]:
        """Prefix of the names of its graphs; an id or a hash follows, which needs no encoding."""
        starts: dict[str, tuple[str, ...]] = {"src": ("src", "wikibase", self.name), "der": ("der", "skos", self.name)}
        for kind in ("value", "reference"):
            starts[kind] = ("ref", "wikibase", self.name, kind)
        return {kind: mint("graph", *parts).value + "/" for kind, parts in starts.items()}

    def graph(self, entity_id: str) -> NamedNode:
        """Return the graph of an entity."""
        return NamedNode(self._graphs["src"] + entity_id)

    def view(self, entity_id: str) -> NamedNode:
        """Return the graph of the SKOS view of an item."""
        return NamedNode(self._graphs["der"] + entity_id)

    def shared(self, kind: str, key: str) -> NamedNode:
        """Return the graph that entities share: of a ``value``, a ``reference`` or a ``site``."""
        if kind in self._graphs and key.isalnum():
            return NamedNode(self._graphs[kind] + key)
        return mint("graph", "ref", "wikibase", self.name, kind, key)

    def id_of(self, iri: str) -> str | None:
        """Return the id of an entity of this Wikibase, or None for any other IRI."""
        for start in (self.entity_base, self.media_base):
            if iri.startswith(start) and _ID.fullmatch(iri, len(start)):
                return iri[len(start) :]
        return None


WIKIDATA: Final = Instance(
    "wikidata",
    "http://www.wikidata.org/",
    "https://www.wikidata.org/wiki/Special:EntityData/",
    media="https://commons.wikimedia.org/entity/",
    license=_CC0,
    skos={
        "P279": "broader", "P31": "broader", "P361": "broader", "P527": "narrower",
        "P1889": "notToBeConfusedWith", "P2888": "exactMatch",
    },
)  # fmt: skip

CLIMATE: Final = Instance(
    "climate",
    "https://climatepolicyradar.wikibase.cloud/",
    "https://climatepolicyradar.wikibase.cloud/wiki/Special:EntityData/",
    license=_CC0,
    concepts=True,
    language="en",
    skos={
        "P1": "narrower", "P2": "broader", "P3": "related", "P7": "definition", "P9": "negativeLabel",
        "P11": "notToBeConfusedWith", "P13": "exactMatch",
    },
)  # fmt: skip


def get_instances(settings: Settings) -> dict[str, Instance]:
    """Return the Wikibases by name: the built-in ones, as changed by the settings, and those of the settings.

    Raises InvalidInputError for an invalid one, and for two with the same entities or concepts.
    """
    found = {each.name: each for each in (WIKIDATA, CLIMATE)}
    for name, changes in settings.wikibases.items():
        known = asdict(found[name]) if name in found else {}
        given = changes.model_dump(exclude_none=True)
        base = given.get("base") or known.get("base")
        if not base:
            raise InvalidInputError(f"Wikibase {quoted(name)} has no `base`, such as https://wikibase.example.org/")
        found[name] = Instance(**(asdict(instance_at_address(base)) | known | given | {"name": name}))
    owners: dict[str, str] = {}
    for name, each in found.items():
        owner = owners.setdefault(each.base, name)
        if each.concepts and owner == name:
            owner = owners.setdefault("cpr://concept/", name)
        if owner != name:
            raise InvalidInputError(
                f"Wikibases {quoted(owner)} and {quoted(name)} have the same `base` or are both the "
                f"concept store (`concepts`). "
                f"To change {quoted(owner)}, use that name in the setting `wikibases`."
            )
    return found


def instance_at_address(base: str) -> Instance:
    """Return a Wikibase about which only the address is known.

    The address may also be that of its entities. Raises InvalidInputError if it is not an address.
    """
    base = base.strip()
    base = base.rstrip("/").removesuffix("/entity") + "/"
    try:
        place = urlsplit(base)
    except ValueError:
        place = urlsplit("")
    name = ("http:" if place.scheme == "http" else "") + (place.netloc + place.path).strip("/")
    if place.scheme not in ("http", "https") or not place.netloc:
        raise InvalidInputError(
            f"unknown Wikibase {quoted(base.rstrip('/'))}. Give the name of one in the settings, or an address such as "
            "https://wikibase.example.org/."
        )
    return Instance(name, base, base + "wiki/Special:EntityData/")


def choose_instance(settings: Settings, name: str | None = None) -> Instance:
    """Return the Wikibase with this name (or that of the settings), or the one at that address.

    Raises InvalidInputError for an unknown name.
    """
    wanted = (name or settings.wikibase).strip()
    known = get_instances(settings)
    if wanted in known:
        return known[wanted]
    if "://" not in wanted and "." in wanted:  # the name of one that is known only by its address
        wanted = f"http://{wanted[5:]}" if wanted.startswith("http:") else f"https://{wanted}"
    if "://" not in wanted:
        raise InvalidInputError(
            f"unknown Wikibase {quoted(wanted)}. Available: {', '.join(known)}, or the address of any Wikibase."
        )
    return with_base(settings, instance_at_address(wanted).base)


def with_base(settings: Settings, base: str) -> Instance:
    """Return the Wikibase with this base: a known one, or one built from its IRIs alone."""
    bare = base.partition("://")[2]
    for each in get_instances(settings).values():
        if bare in (each.base.partition("://")[2], each.media.removesuffix("entity/").partition("://")[2]):
            return each
    return instance_at_address(base)
