"""The sources that can be loaded, and what each takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyoxigraph import NamedNode, Quad

from kg.errors import InvalidInputError
from kg.provenance import Agent, Derived
from kg.settings import Settings, settings
from kg.store.protocol import Store
from kg.summaries.storing import withdrawn
from loaders.climate_policy import documents as climate_policy
from loaders.deriving import Views
from loaders.findings import Findings
from loaders.hansard import reading as hansard
from loaders.hansard.authorities import merged
from loaders.memberships import Memberships
from loaders.model import Notice, Rejection, SourceDocument, SourceGraph, Withdrawal
from loaders.readers import excerpts
from loaders.readers.locations import FORMATS, Fetch, File
from loaders.wikibase import reading as wikibase
from loaders.wikibase import remote
from loaders.zoning import reading as zoning
from loaders.zoning import service
from loaders.zoning.authorities import merged as merged_names

Item = SourceDocument | SourceGraph | Rejection | Withdrawal | Notice
Options = Mapping[str, str]
"""What whoever loads says of the files: ``base``, the Wikibase that they are of, by name or address; ``chamber`` and
``date``, of speeches that do not say them; ``municipality`` and ``state`` of a code, and ``mapping``, the file by which
tables of districts are read.
"""

Derive = Callable[[Store, Mapping[NamedNode, Sequence[Quad]]], Derived]


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
    derive: Derive | None = None
    """Of graphs that are about to be replaced, the derived ones that go with them in the same commit."""
    afterwards: Callable[[Store], Sequence[str]] | None = None
    """What is unusual in the store after a load, in words."""
    fetches: Mapping[str, Fetch] = field(default_factory=dict)
    """What fetches its locations that are no files, by how they start: ``sparql`` for ``sparql:URL@FILE``."""
    cut: excerpts.Cut = excerpts.cut
    """What keeps the rows of rejected records."""
    configure: Callable[[Settings, Options], Loader] | None = None
    """What makes it fit the settings and the options."""
    options: Sequence[str] = ()
    """The options that it takes."""
    said: Options = field(default_factory=dict)
    """The options that whoever loads gave, where a record in quarantine takes them for another try."""
    exclusive: bool = False
    """Whether a record that is read from two sources which differ stays as the first has it, and of the other is
    rejected; what says the same again is passed over.
    """
    merge: Callable[[Sequence[Quad], Sequence[Quad]], Sequence[Quad]] | None = None
    """What a graph that records share says once more is said of it; without it the last that is said holds."""

    @property
    def agent(self) -> Agent:
        """How provenance names it."""
        return Agent(f"loaders.{self.domain}", self.version)


def _wikibase(given: Settings, options: Options) -> Loader:
    reading = wikibase.Reading.of(given, options.get("base"))
    views = Views(reading.known)
    return Loader(
        wikibase.DOMAIN,
        wikibase.VERSION,
        reading.read,
        wikibase.FORMATS,
        reading.config,
        views.derive,
        views.cycles,
        {remote.SCHEME: remote.fetch},
        reading.cut,
        options=("base",),
    )


def _as_set(files: Sequence[File]) -> Iterator[Item]:
    return wikibase.Reading.of(settings(), None).read(files)


def _hansard(given: Settings, options: Options) -> Loader:
    return Loader(
        hansard.DOMAIN,
        hansard.VERSION,
        hansard.Reading.of(options).read,
        hansard.FORMATS,
        config=options,
        derive=Memberships(hansard.DOMAIN).derive,
        cut=hansard.cut,
        options=hansard.OPTIONS,
        said=options,
        exclusive=True,
        merge=merged,
    )


def _zoning(given: Settings, options: Options) -> Loader:
    return zoning_loader(zoning.Reading.of(options), options)


def zoning_loader(reading: zoning.Reading, options: Options) -> Loader:
    """Return what loads codes of municipalities, and finds in them what `reading` has read."""
    return Loader(
        zoning.DOMAIN,
        zoning.VERSION,
        reading.read,
        zoning.FORMATS,
        config=options,
        derive=_with_summaries(Findings(reading).derive),
        fetches={service.SCHEME: service.fetch},
        cut=zoning.cut,
        options=zoning.OPTIONS,
        said=options,
        merge=merged_names,
    )


def _with_summaries(derive: Derive) -> Derive:
    """Let the summaries of sections go in the commit in which these go."""
    return lambda store, replace: {**derive(store, replace), **withdrawn(store, replace)}


def _codes(files: Sequence[File]) -> Iterator[Item]:
    return zoning.Reading().read(files)


LOADERS: Final = {
    "climate": Loader(climate_policy.DOMAIN, climate_policy.VERSION, climate_policy.read),
    "wikibase": Loader(
        wikibase.DOMAIN, wikibase.VERSION, _as_set, wikibase.FORMATS, configure=_wikibase, options=("base",)
    ),
    "hansard": Loader(
        hansard.DOMAIN,
        hansard.VERSION,
        hansard.Reading().read,
        hansard.FORMATS,
        cut=hansard.cut,
        configure=_hansard,
        options=hansard.OPTIONS,
    ),
    "zoning": Loader(zoning.DOMAIN, zoning.VERSION, _codes, zoning.FORMATS, configure=_zoning, options=zoning.OPTIONS),
}


def loader(source: str, given: Settings, options: Options | None = None) -> Loader:
    """Return what loads `source`. Raises InvalidInputError for a source, or an option of it, that there is not."""
    found = LOADERS.get(source)
    if found is None:
        raise InvalidInputError(f"no source {source!r} can be loaded; there are: {', '.join(LOADERS)}")
    for name in options or ():
        if name not in found.options:
            takers = [each for each, other in LOADERS.items() if name in other.options]
            own = ", ".join(f"--{each}" for each in found.options) or "no option"
            raise InvalidInputError(
                f"{source} takes no --{name}, which is for {' and '.join(takers) or 'no source'}; {source} takes {own}"
            )
    return found if found.configure is None else found.configure(given, options or {})
