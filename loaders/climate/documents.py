"""Climate policy documents, read from rows of passages in any known layout and file format."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from typing import Final

from pyoxigraph import NamedNode

from kg.errors import InvalidInputError, RecordError, SourceError
from kg.languages import parse_language
from kg.text import quoted
from kg.vocabulary import FOAF, SCHEMA, mint, segment, sha256
from loaders.climate import json_objects
from loaders.climate.drafts import Draft, build_origins
from loaders.climate.layouts import BODY, HEAD, Fields, Layout, Layouts, LeftOutError, UnknownLayoutError, load_layouts
from loaders.model import Notice, Origin, Rejection, SourceDocument
from loaders.readers.cells import parse_boolean, parse_integer, parse_items, present, to_slug
from loaders.readers.inline import LeftOut
from loaders.readers.locations import File
from loaders.readers.tables import BodyRow, Group, Tables

VERSION: Final = "8"
"""Version of the mapping of rows. A new version maps every record again."""

_LAW: Final = "law"
_DOCUMENT: Final = "document"
_APP: Final = "https://app.climatepolicyradar.org/documents/"
_LAWS_SITE: Final = "https://climate-laws.org"
_NAMED_ROWS: Final = 5


def read(
    files: Sequence[File],
    layouts: Layouts | None = None,
    find_catalogs: Callable[[Sequence[str]], Sequence[File]] = lambda identifiers: (),
) -> Iterator[SourceDocument | Rejection | Notice]:
    """Yield the documents of `files`, one for each slug and language version, in the order of slugs.

    `find_catalogs` finds other files with the documents of these identifiers, to which passages refer.

    Invalid records are yielded as Rejections, and so are unreadable files, also those of another layout. Raises
    SourceError if no file can be read, before the first document, and for damage that is found later.
    """
    layouts = layouts or load_layouts()
    with Tables(HEAD, BODY) as tables:
        of_layout: dict[str, dict[str, None]] = {}
        for file in files:
            try:
                for layout, warnings in _add_file(tables, file, layouts):
                    of_layout.setdefault(layout.name, {})[file.snapshot.source] = None
                    for warning in warnings:
                        yield Notice(warning, warning=True)
            except SourceError as error:
                if len(files) == 1 and file.named:
                    raise
                if isinstance(error, UnknownLayoutError) and file.path.suffix.lower() == ".json" and not file.named:
                    yield Notice(f"Left out: {error}", warning=True)  # folders have such files for other purposes
                    continue
                yield Rejection(file.snapshot.source, str(error), (Origin(file.snapshot),))
        if not tables.files:
            raise SourceError(f"None of the {len(files)} files can be read. The first: {files[0].path}.")
        for name, sources in of_layout.items():
            others = f" and {len(sources) - 1:,} more" if len(sources) > 1 else ""
            yield Notice(f"{next(iter(sources))}{others}: layout {quoted(name)}")
        count = len({file.snapshot.source for file in tables.files})
        yield Notice(f"{tables.rows:,} rows in {count} files", expected_rows=tables.rows)
        given = {file.snapshot.source for file in tables.files}
        for file in find_catalogs(tables.find_unlinked()) if tables.links else ():
            with suppress(SourceError):  # then the passages are rejected
                if file.snapshot.source not in given:
                    names = [layout.name for layout, _ in _add_file(tables, file, layouts)]
                    yield Notice(f"{file.snapshot.source}, of an earlier load: layout {quoted(', '.join(names))}")
        families = _Families(tables, [name for name in of_layout if layouts.by_name[name].law])
        for group in tables.groups():
            if any(row.file.snapshot.source in given for row in group.rows):
                yield from _records(group, families, layouts.by_name)


def _add_file(tables: Tables, file: File, layouts: Layouts) -> Iterator[tuple[Layout, Sequence[str]]]:
    """Add the rows of a file to `tables`; yield each of its layouts, with the warnings of its reader."""
    if file.path.suffix.lower() in json_objects.ENDINGS:
        for layout, sheet in json_objects.Objects(file.path, layouts).sheets():
            tables.add(file, layout.name, layout.columns, sheet)
            yield layout, ()
        return
    columns, table = tables.columns(file)
    layout = layouts.detect(file.path, columns)
    if not layout.fields:
        raise LeftOutError(file.path, [layout])
    tables.add(file, layout.name, layout.columns, table)
    yield layout, table.warnings if table else ()


class _Families:
    """The root of the family of each law: the last of its chain of parents, or itself."""

    def __init__(self, tables: Tables, layouts: Sequence[str]) -> None:
        names = ("document_id", "slug", "title", "family_id")
        self.laws: dict[str, tuple[str | None, ...]] = {}
        self.places: dict[str, Origin] = {}
        for layout in layouts:
            for file, row, (law, *said) in tables.fields(layout, names):
                if law is not None:
                    self.laws[law] = tuple(said)
                    self.places[law] = Origin(file.snapshot, (row,))

    def root(self, law: str) -> tuple[str, str | None, str | None]:
        """Return id, slug and title of the root of the family of `law`."""
        *_, law = self._ancestry(law)
        slug, title, _ = self.laws.get(law, (None, None, None))
        return law, slug, title

    def parentbuild_origins(self, law: str | None) -> tuple[Origin, ...]:
        """Return the origins of the parents of `law`, which determine its family."""
        return tuple(self.places[parent] for parent in [*self._ancestry(law)][1:]) if law is not None else ()

    def _ancestry(self, law: str) -> dict[str, None]:
        """Return `law` and its parents in order, without repetition if they form a cycle."""
        line = {law: None}
        while (parent := present(self.laws.get(law, (None, None, None))[2])) and parent in self.laws:
            if parent in line:
                break
            line[parent] = None
            law = parent
        return line


def _records(group: Group, families: _Families, layouts: Mapping[str, Layout]) -> Iterator[SourceDocument | Rejection]:
    """Yield the documents of one key: the original, its translations, and laws with the same key."""
    records: dict[tuple[str, str | None], list[BodyRow]] = defaultdict(list)
    heads: dict[tuple[str, str | None], dict[tuple[str, str | None], Fields]] = defaultdict(dict)
    faults: dict[tuple[str, str | None], str] = {}
    by_split = {(head.layout, head.split): layouts[head.layout].replace(head.values) for head in group.heads}
    for row in group.rows:
        layout = layouts[row.layout]
        head = by_split[row.layout, row.split]
        kind = _LAW if layout.law else _DOCUMENT
        record: tuple[str, str | None] = (kind, None)
        try:
            if layout.translations and parse_boolean(row.split):
                record = (kind, _translation_language(head, row))
        except RecordError as error:
            faults[record] = f"row {row.row}: {error}"
        records[record].append(row)
        heads[record].setdefault((row.layout, row.split), head)
    for record, rows in records.items():
        kind, version = record
        name = present(group.key) or rows[0].file.snapshot.source
        head = _merge(list(heads[record].values()))
        try:
            if record in faults:
                raise RecordError(faults[record])
            _check_rows(group.key, head, rows)
            if kind == _LAW:
                yield _law(head, rows, families)
            else:
                yield _document(head, version, rows, layouts)
        except (RecordError, InvalidInputError) as error:
            yield Rejection(
                name if version is None else f"{name} ({version})",
                str(error),
                build_origins(sorted(rows, key=lambda row: (row.file.snapshot.source, row.row))),
                _key(kind, version, head),
                families.parentbuild_origins(head["document_id"]) if kind == _LAW else (),
            )


def _merge(heads: Sequence[Fields]) -> Fields:
    """Return the fields of a document, each from the first of its layouts that has it."""
    if len(heads) == 1:
        return heads[0]
    return {name: next((head[name] for head in heads if present(head[name])), None) for name in HEAD}


def _key(kind: str, version: str | None, head: Fields) -> tuple[str, ...] | None:
    slug, law = present(head["slug"]), head["document_id"]
    if kind == _LAW:
        return (_law_slug(slug, law),) if law else None
    if slug is None:
        return None
    return (slug,) if version is None else (slug, version)


def _translation_language(head: Fields, row: BodyRow) -> str:
    named = parse_items(head["languages"]) or parse_items(row.values[BODY.index("language")])
    if not named or (code := parse_language(named[0])) is None:
        raise RecordError("Missing language of a translated row (languages, language).")
    return code


def _check_rows(key: str | None, head: Fields, rows: Sequence[BodyRow]) -> None:
    """Raise RecordError for rows that the reader reported as invalid, and for rows without a slug."""
    problems = [f"row {row.row} {row.problem}" for row in rows if row.problem is not None]
    if problems:
        raise RecordError(_join_first(problems))
    if not present(key):
        raise RecordError(f"{_rows(rows)}: Missing slug.")
    if head["slug"] is None and (document := present(head["document_id"])):
        raise RecordError(
            f"{_rows(rows)}: No file of this load describes the document {quoted(document)}. Load passages together "
            "with the documents that they refer to."
        )


def _join_first(texts: Sequence[str]) -> str:
    more = len(texts) - _NAMED_ROWS
    return "; ".join(texts[:_NAMED_ROWS]) + (f"; and {more} more" if more > 0 else "")


def _rows(rows: Sequence[BodyRow]) -> str:
    numbers = ", ".join(str(row.row) for row in rows[:_NAMED_ROWS])
    more = f" and {len(rows) - _NAMED_ROWS} more" if len(rows) > _NAMED_ROWS else ""
    return f"row{'s' if len(rows) > 1 else ''} {numbers}{more}"


def _sort_rows(rows: Sequence[BodyRow], layouts: Mapping[str, Layout]) -> list[tuple[int, BodyRow]]:
    """Sort rows by passage index, which is their order in a layout that has none.

    Raises RecordError for a missing, invalid or duplicate index.
    """
    if rows and "index" not in layouts[rows[0].layout].fields:
        return list(enumerate(sorted(rows, key=lambda row: (row.file.snapshot.source, row.row))))
    numbered: list[tuple[int, BodyRow]] = []
    for row in rows:
        index = row.values[0]
        if index is None:
            raise RecordError(f"row {row.row} has no passage index")
        try:
            number = parse_integer(index)
        except RecordError as error:
            raise RecordError(f"row {row.row}: the passage index {error}") from None
        if number < 0:
            raise RecordError(f"row {row.row}: the passage index {number} is negative")
        numbered.append((number, row))
    numbered.sort(key=lambda each: (each[0], each[1].file.snapshot.source, each[1].row))
    twice = [(i, a, b) for (i, a), (j, b) in pairwise(numbered) if i == j]
    if twice:
        places = [
            f"index {i} in row {a.row} of {a.file.snapshot.source} and in row {b.row} of {b.file.snapshot.source}"
            for i, a, b in twice
        ]
        raise RecordError(f"Duplicate passages, which are never merged: {_join_first(places)}")
    return numbered


def _document(
    head: Fields, version: str | None, rows: Sequence[BodyRow], layouts: Mapping[str, Layout]
) -> SourceDocument:
    slug = head["slug"]
    if slug is None:
        raise RecordError(f"{_rows(rows)}: Missing slug.")
    draft = Draft(head, slug, version)
    title = draft.get_title()
    draft.add_common_properties(_LAWS_SITE)
    draft.properties.append((FOAF.page, NamedNode(_APP + segment(slug))))
    if version is not None:
        draft.add_property(SCHEMA.translationOfWork, mint("document", slug))
    codes = draft.add_places()
    family, family_title = present(head["family_slug"]), present(head["family_title"])
    if family is not None:
        draft.add_family(family, family_title)
    elif family_title is not None:
        # Many families have the same title ("Climate Change Act"), so their places are part of the identifier.
        mark = sha256(family_title + "".join(sorted(codes)))[:8]
        draft.add_family(f"{to_slug(family_title)}-{mark}", family_title)
    else:
        raise RecordError("Missing family: family slug and family title are both empty.")

    passages, descriptions, left_out = _choose_passages(draft, rows, layouts)
    values = layouts[passages[0].layout].values if passages else {}
    types, languages = values.get("type"), values.get("language")
    units, kept = [], []
    empty: list[BodyRow] = []
    unknown: Counter[str] = Counter()
    spoken: Counter[str] = Counter()
    for index, row in _sort_rows(passages, layouts):
        _, text, page, kind, language = row.values
        if types:
            kind = types.get(kind or "", kind)
        if languages:
            language = languages.get(language or "", language)
        if not text:
            draft.add_to_hash(index)
            empty.append(row)
            continue
        code = None
        if (named := present(language)) is not None:
            code = parse_language(named)
            if code is None:
                unknown[named] += 1
            else:
                spoken[code] += 1
        try:
            number = parse_integer(page) if (page := present(page)) is not None else None
        except RecordError as error:
            raise RecordError(f"row {row.row}: the page number {error}") from None
        if number is not None and number < -1:
            raise RecordError(f"row {row.row}: the page number {number} is negative")
        kind, number = present(kind), None if number == -1 else number
        draft.add_to_hash(index, text, number, kind, code)
        units.append(draft.build_unit(index, text, kind, number, code))
        kept.append(row)
    if empty:
        draft.warn(f"{_rows(empty)} without text skipped")
    for name, count in unknown.items():
        draft.warn(f"{quoted(name)} ({count} rows) is neither a language code nor the name of a language")
    draft.add_languages([version] if version is not None else _document_languages(draft, head, spoken))
    if not units and any(layouts[row.layout].has_text for row in rows):
        draft.warn("has no text")
    return draft.build(title, units, [*kept, *descriptions] or left_out, build_origins([*empty, *left_out]))


def _choose_passages(
    draft: Draft, rows: Sequence[BodyRow], layouts: Mapping[str, Layout]
) -> tuple[list[BodyRow], list[BodyRow], list[BodyRow]]:
    """Split the rows of a document into passages, descriptions of it, and passages that it has in another layout."""
    passages: dict[str, list[BodyRow]] = defaultdict(list)
    descriptions: list[BodyRow] = []
    left_out: list[BodyRow] = []
    for row in rows:
        layout = layouts[row.layout]
        is_passage = layout.has_text and not (layout.records and row.values[:2] == (None, None))
        (passages[row.layout] if is_passage else descriptions).append(row)
    if len(passages) > 1:
        chosen = max(passages, key=lambda name: len(passages[name]))
        for name in passages.keys() - {chosen}:
            spare = passages.pop(name)
            draft.warn(f"{len(spare):,} passages in layout {quoted(name)} left out: it has more in {quoted(chosen)}")
            left_out += spare
    return next(iter(passages.values()), []), descriptions, left_out


def _document_languages(draft: Draft, head: Fields, spoken: Counter[str]) -> list[str]:
    """Return the stated languages of a document, else the language of most of its passages."""
    stated = parse_items(head["languages"])
    codes = [code for name in stated if (code := parse_language(name)) is not None]
    for name in stated:
        if parse_language(name) is None:
            draft.warn(f"{quoted(name)} is neither a language code nor the name of a language")
    if codes or not spoken:
        return codes
    most = max(spoken.values())
    return [min(code for code, count in spoken.items() if count == most)]


def _law(head: Fields, rows: Sequence[BodyRow], families: _Families) -> SourceDocument:
    """Build a document from a row of the laws layout. Slugs are unique within a country only, so the id is added."""
    if len(rows) > 1:
        places = [f"row {row.row} of {row.file.snapshot.source}" for row in rows]
        raise RecordError(f"Duplicate laws, which are never merged: {_join_first(places)}")
    row = rows[0]
    law = head["document_id"] or ""
    draft = Draft(head, _law_slug(present(head["slug"]), law), None)
    title = draft.get_title()
    draft.add_common_properties(_LAWS_SITE)
    draft.add_places()
    parent = present(head["family_id"])
    root, slug, root_title = families.root(law)
    if parent is not None and root == law:
        draft.warn(f"its parent, law {parent}, is not in the source, so it is a family of its own")
    draft.add_family(_law_slug(present(slug), root), present(root_title))
    draft.add_to_hash(row.values[BODY.index("text")])
    from loaders.readers.html_blocks import parse_blocks  # lxml takes time to load, and few layouts have markup

    left_out = LeftOut()
    found = parse_blocks(row.values[BODY.index("text")] or "", left_out)
    for each in left_out.describe():
        draft.warn(each)
    units = [draft.build_unit(index, block.text, block.kind, None, None) for index, block in enumerate(found)]
    if not units:
        draft.warn("has no text")
    return draft.build(title, units, [row] * len(units) or [row], families.parentbuild_origins(law))


def _law_slug(slug: str | None, law: str) -> str:
    return f"{slug or 'law'}_law{law}"
