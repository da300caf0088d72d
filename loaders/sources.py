"""The sources that can be loaded, and what each takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyoxigraph import NamedNode, Quad

from kg.errors import InvalidInputError
from kg.provenance import Agent, Rule
from kg.settings import Settings, settings
from kg.store.protocol import Store
from loaders.climate_policy import documents as climate_policy
from loaders.deriving import VIEW, Views
from loaders.model import Notice, Rejection, SourceDocument, SourceGraph, Withdrawal
from loaders.readers import excerpts
from loaders.readers.locations import FORMATS, Fetch, File
from loaders.wikibase import reading as wikibase
from loaders.wikibase import remote

Item = SourceDocument | SourceGraph | Rejection | Withdrawal | Notice
Derived = Mapping[NamedNode, tuple[Sequence[Quad], NamedNode]]
"""Quads of graphs below ``graph/der/``, each with the graph that it is made from."""


@dataclass(frozen=True, slots=True)
class Loader:
    """A source that can be loaded. A new `version` makes every record be read anew."""

    domain: str
    version: str
    read: Callable[[Sequence[File]], Iterator[Item]]
    formats: Sequence[str] = FORMATS
    """Endings of the files that it reads."""
    config: Mapping[str, str] = field(default_factory=dict)
    """What a run says of how it was configured."""
    derive: Callable[[Store, Mapping[NamedNode, Sequence[Quad]]], Derived] | None = None
    """Of graphs that are about to be replaced, the derived ones that go with them in the same commit."""
    rule: Rule | None = None
    """By what they are derived."""
    afterwards: Callable[[Store], Sequence[str]] | None = None
    """What is unusual in the store after a load, in words."""
    fetches: Mapping[str, Fetch] = field(default_factory=dict)
    """What fetches its locations that are no files, by how they start: ``sparql`` for ``sparql:URL@FILE``."""
    cut: excerpts.Cut = excerpts.cut
    """What keeps the rows of rejected records."""
    configure: Callable[[Settings, str | None], Loader] | None = None
    """What makes it fit the settings and, of a Wikibase, its name or base address where that is given."""

    @property
    def agent(self) -> Agent:
        """How provenance names it."""
        return Agent(f"loaders.{self.domain}", self.version)


def _wikibase(given: Settings, base: str | None) -> Loader:
    reading = wikibase.Reading.of(given, base)
    views = Views(reading.known)
    return Loader(
        wikibase.DOMAIN,
        wikibase.VERSION,
        reading.read,
        wikibase.FORMATS,
        reading.config,
        views.derive,
        VIEW,
        views.cycles,
        {remote.SCHEME: remote.fetch},
        reading.cut,
    )


def _as_set(files: Sequence[File]) -> Iterator[Item]:
    return wikibase.Reading.of(settings(), None).read(files)


LOADERS: Final = {
    "climate": Loader(climate_policy.DOMAIN, climate_policy.VERSION, climate_policy.read),
    "wikibase": Loader(wikibase.DOMAIN, wikibase.VERSION, _as_set, wikibase.FORMATS, configure=_wikibase),
}


def loader(source: str, given: Settings, base: str | None = None) -> Loader:
    """Return what loads `source`. Raises InvalidInputError for a source that there is not."""
    found = LOADERS.get(source)
    if found is None:
        raise InvalidInputError(f"no source {source!r} can be loaded; there are: {', '.join(LOADERS)}")
    if base is not None and found.configure is None:
        raise InvalidInputError(f"only a Wikibase has a base address, not {source}")
    return found if found.configure is None else found.configure(given, base)
