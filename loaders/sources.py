"""The sources that can be loaded, and what each takes.

What reads a source is imported when it is asked for: a load of one source needs none of the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from pyoxigraph import NamedNode, Quad

from kg.errors import InvalidInputError
from kg.provenance.load_records import Agent, Derived
from kg.settings import Settings
from kg.store.protocol import Store
from loaders.model import Notice, Rejection, SourceDocument, SourceGraph, Withdrawal
from loaders.readers import excerpts
from loaders.readers.locations import FORMATS, Fetch, File

Item = SourceDocument | SourceGraph | Rejection | Withdrawal | Notice
Options = Mapping[str, str]
"""What whoever loads says of the files: ``base``, the Wikibase that they are of, by name or address; ``chamber`` and
``date``, of speeches that do not say them; ``municipality`` and ``state`` of a code, and ``mapping``, the file by which
tables of districts are read.
"""

Derive = Callable[[Store, Mapping[NamedNode, Sequence[Quad]]], Derived]


@dataclass(frozen=True, slots=True)
class Loader:
    """What loads a source. A new `version` makes every record be read anew."""

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


@dataclass(frozen=True, slots=True)
class Source:
    """A source that can be loaded: what makes its loader fit the settings and the options, and the options it takes."""

    configure: Callable[[Settings, Options], Loader]
    options: Sequence[str] = ()


def _climate(given: Settings, options: Options) -> Loader:
    from loaders.climate import documents as climate_policy

    return Loader(climate_policy.DOMAIN, climate_policy.VERSION, climate_policy.read)


def _wikibase(given: Settings, options: Options) -> Loader:
    from loaders.wikibase import live_endpoint
    from loaders.wikibase import loader as wikibase
    from loaders.wikibase.graph.skos_views import Views

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
        {live_endpoint.SCHEME: live_endpoint.fetch},
        reading.cut,
    )


def _hansard(given: Settings, options: Options) -> Loader:
    from loaders.hansard import loader as hansard
    from loaders.hansard.authorities import merged
    from loaders.hansard.graph.memberships import Memberships

    return Loader(
        hansard.DOMAIN,
        hansard.VERSION,
        hansard.Reading.of(options).read,
        hansard.FORMATS,
        config=options,
        derive=Memberships(hansard.DOMAIN).derive,
        cut=hansard.cut,
        said=options,
        exclusive=True,
        merge=merged,
    )


def _zoning(given: Settings, options: Options) -> Loader:
    from loaders.zoning import loader as zoning
    from loaders.zoning.graph.authorities import merged
    from loaders.zoning.graph.derive import Findings
    from loaders.zoning.readers import municode_service
    from loaders.zoning.readers.code_model import DOMAIN, VERSION

    reading = zoning.Reading.of(options)
    return Loader(
        DOMAIN,
        VERSION,
        reading.read,
        zoning.FORMATS,
        config=options,
        derive=Findings(reading.codes).derive,
        fetches={municode_service.SCHEME: municode_service.fetch},
        cut=zoning.cut,
        said=options,
        merge=merged,
    )


LOADERS: Final = {
    "climate": Source(_climate),
    "wikibase": Source(_wikibase, ("base",)),
    "hansard": Source(_hansard, ("chamber", "date")),
    "zoning": Source(_zoning, ("municipality", "state", "mapping")),
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
    return found.configure(given, options or {})
