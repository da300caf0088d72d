"""The composition root of the loaders: the available sources, and how each is configured.

The modules of a domain are imported when its source is loaded, so that loading one source does not import the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from kg.derivations.with_record import WithRecord
from kg.errors import InvalidInputError
from kg.ingestion import FolderWatcher
from kg.knowledge_graph import KnowledgeGraph
from kg.search.index_sync import Progress
from kg.settings import Settings
from kg.text import quoted
from loaders import dispatch, pipeline
from loaders.file_formats import TABLES
from loaders.load_options import EARLIER_NAMES, OPTIONS, SOURCES, list_options
from loaders.load_report import LoadReport
from loaders.pipeline import Loader, Loading, Options
from loaders.readers.locations import Located
from loaders.with_record import LISTS, PARLIAMENT, VIEWS, ZONING

if TYPE_CHECKING:
    from pyoxigraph import Quad

    from loaders.files.graph.moves import Moves
    from loaders.files.graph.watched_folder import Part
    from loaders.hansard.identifiers import Identifiers


def _climate(given: Settings, options: Options) -> Loader:
    from loaders.climate import documents as climate_policy
    from loaders.climate.drafts import DOMAIN
    from loaders.climate.graph.catalogs import Catalogs
    from loaders.climate.json_objects import cut
    from loaders.climate.layouts import load_layouts
    from loaders.readers.places import merge_place

    catalogs = Catalogs()
    layouts = load_layouts(options.get("mapping"))
    return Loader(
        DOMAIN,
        climate_policy.VERSION,
        partial(climate_policy.read, layouts=layouts, find_catalogs=catalogs.find),
        (*TABLES, ".json"),
        config=options,
        cut=cut,
        options=options,
        prepare=catalogs.open,
        merge=merge_place,
    )


def _wikibase(given: Settings, options: Options) -> Loader:
    from loaders.wikibase import live_endpoint
    from loaders.wikibase import loader as wikibase
    from loaders.wikibase.graph.skos_views import Views

    reading = wikibase.Reading.of(given, options.get("base"))
    views = Views(reading.known, given)
    return Loader(
        wikibase.DOMAIN,
        wikibase.VERSION,
        reading.read,
        wikibase.FORMATS,
        reading.config,
        [WithRecord(views.derive, VIEWS)],
        find_warnings=views.cycles,
        fetchers={live_endpoint.SCHEME: live_endpoint.fetch_items},
        cut=reading.cut,
        cites=False,
    )


def _hansard(given: Settings, options: Options, known: Identifiers | None = None) -> Loader:
    from loaders.hansard import loader as hansard
    from loaders.hansard.authorities import merge_quads
    from loaders.hansard.graph.corpus_lists import derive_from_lists
    from loaders.hansard.graph.derive import Derivations
    from loaders.hansard.graph.known_names import load_names

    reading = hansard.Reading.of(options)
    if known is not None:
        reading = replace(reading, identifiers=known)
    return Loader(
        hansard.DOMAIN,
        hansard.VERSION,
        reading.read,
        hansard.FORMATS,
        config=options,
        derivations=[
            WithRecord(partial(derive_from_lists, reading.findings), LISTS),
            WithRecord(Derivations(hansard.DOMAIN).derive, PARLIAMENT),
        ],
        cut=hansard.cut_records,
        prepare=None if known is not None else lambda kg: load_names(kg, reading.identifiers),
        load_freed=None if known is not None else _load_contradicted,
        options=options,
        exclusive=True,
        merge=lambda stored, said: merge_quads(stored, said, reading.identifiers.is_of),
        whole=hansard.WHOLE,
    )


def _load_contradicted(kg: KnowledgeGraph, report: LoadReport) -> None:
    from loaders.hansard.graph.known_names import load_contradicted

    load_contradicted(
        kg,
        report,
        list_options("parliament"),
        lambda kg, paths, options, known: pipeline.load(kg, _hansard(kg.settings, options, known), paths),
    )


def _members(given: Settings, options: Options) -> Loader:
    from loaders.hansard import member_register
    from loaders.hansard.authorities import add_registered, merge_quads
    from loaders.hansard.graph.derive import Derivations
    from loaders.hansard.graph.known_names import load_names
    from loaders.hansard.identifiers import Identifiers

    identifiers = Identifiers()

    def merge(stored: Sequence[Quad], said: Sequence[Quad]) -> Sequence[Quad]:
        add_registered(identifiers, said)
        return merge_quads(stored, said, identifiers.is_of)

    return Loader(
        member_register.DOMAIN,
        member_register.VERSION,
        member_register.Reading.of(options).read,
        member_register.FORMATS,
        config=options,
        derivations=[WithRecord(Derivations("hansard").derive, PARLIAMENT)],
        options=options,
        cites=False,
        prepare=lambda kg: load_names(kg, identifiers),
        load_freed=_load_contradicted,
        merge=merge,
    )


def _zoning(given: Settings, options: Options) -> Loader:
    from loaders.zoning import loader as zoning
    from loaders.zoning.graph.authorities import merge
    from loaders.zoning.graph.derive import Findings
    from loaders.zoning.readers import municode_client
    from loaders.zoning.readers.code_model import DOMAIN, VERSION

    reading = zoning.Reading.from_options(options)
    return Loader(
        DOMAIN,
        VERSION,
        reading.read,
        zoning.FORMATS,
        config=options,
        derivations=[WithRecord(Findings(reading.codes).derive, ZONING)],
        fetchers={municode_client.SCHEME: municode_client.fetch},
        cut=zoning.cut_rows,
        options=options,
        merge=merge,
        whole=zoning.WHOLE,
    )


def _files(given: Settings, options: Options, moves: Moves | None = None) -> Loader:
    from loaders.files import loader as files
    from loaders.files.graph import stored_files
    from loaders.files.graph.entities import drop_entities
    from loaders.files.graph.moves import Moves

    kept = given.unredacted_collections
    reading = files.Reading.from_options(options, kept)
    return Loader(
        files.DOMAIN,
        files.VERSION,
        reading.read,
        files.FORMATS,
        config={**options, "unredacted_collections": " ".join(kept)} if kept else options,
        derivations=[
            WithRecord(drop_entities, marks_change=True),
            WithRecord((moves or Moves()).derive, marks_change=True),
        ],
        prepare=lambda kg: stored_files.prepare(kg, reading),
        load_freed=lambda kg, report: stored_files.note_and_load_freed(kg, reading, report, load),
        refuse=reading.refuse,
        cut=files.cut_file,
        options=options,
        exclusive=True,
        whole=files.FORMATS,
        lenient=True,
        counted=True,
    )


LOADERS: Final[Mapping[str, Callable[[Settings, Options], Loader]]] = {
    "climate": _climate,
    "wikibase": _wikibase,
    "parliament": _hansard,
    "members": _members,
    "zoning": _zoning,
    "files": _files,
}
"""The functions that configure the loaders of `loaders.load_options.SOURCES`."""


def build_loader(source: str, given: Settings, options: Options | None = None) -> Loader:
    """Build the loader of `source`.

    Raises InvalidInputError for an unknown source or an option that the source does not have.
    """
    from loaders.derivations import follow_load

    configure = LOADERS.get(EARLIER_NAMES.get(source, source))
    if configure is None:
        raise InvalidInputError(f"Unknown source {quoted(source)}. Available: {', '.join(SOURCES)}.")
    own = list_options(source)
    for name in options or ():
        if name not in own:
            takers = OPTIONS[name].sources if name in OPTIONS else ()
            raise InvalidInputError(
                f"Option --{name} is not valid for source {quoted(source)}. Sources with this option: "
                f"{', '.join(takers) or 'none'}. "
                f"Options of {source}: {', '.join(f'--{each}' for each in own) or 'none'}."
            )
    return replace(configure(given, options or {}), name=source, refresh=follow_load)


def open_steps(kg: KnowledgeGraph) -> list[Loading]:
    """Open a load without files of each source, which computes the due outputs of its records."""
    loaders = [build_loader(source, kg.settings) for source in SOURCES]
    loaders += [replace(each, domain="wikibase-remote") for each in loaders if each.domain == "wikibase"]
    return [Loading(kg, each, Located((), ()), None, graphs=()) for each in loaders]


def load_changed(kg: KnowledgeGraph, part: Part, *, on_progress: Progress | None = None) -> list[str]:
    """Load files of a folder that is watched; return the paths of those that changed while they were read."""
    from loaders.files.graph.watched_folder import load_part

    return load_part(kg, part, _files, on_progress)


def _call(name: str, kg: KnowledgeGraph, *given: Any, **options: Any) -> Any:
    return dispatch.call(kg, name, *given, **options)


def build_watcher(
    kg: KnowledgeGraph,
    exclusive: Callable[[Progress, Callable[[], bool]], AbstractContextManager[None]],
) -> FolderWatcher:
    """Build the watcher of folders of files. `exclusive` gives it turns with the other loads of this process."""
    from loaders.files.graph.watcher import Watcher

    return Watcher(kg, partial(_call, "load_changed"), partial(_call, "load"), exclusive)


def load(
    kg: KnowledgeGraph,
    source: str,
    locations: Sequence[str],
    *,
    prune: bool = False,
    on_progress: Progress | None = None,
    gate: bool = True,
    index: bool = True,
    replace_newer: bool = False,
    root: str | None = None,
    **options: str | None,
) -> LoadReport:
    """Load `source` from `locations` as `pipeline.load` does, with the loader that `options` configure.

    `options` are those of `loaders.pipeline.Options`; None means not given. With `root`, `locations` are files in that
    folder.

    Raises InvalidInputError for an unknown source or option, SourceError if a named file cannot be read.
    """
    loader = build_loader(source, kg.settings, {name: value for name, value in options.items() if value is not None})
    return pipeline.load(
        kg,
        loader,
        locations,
        prune=prune,
        on_progress=on_progress,
        gate=gate,
        index=index,
        replace_newer=replace_newer,
        root=None if root is None else Path(root),
    )
