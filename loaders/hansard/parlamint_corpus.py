"""The files of ParlaMint corpora as records: roots with includes, lists of people and organizations, components.

People and organizations come from the lists that are given or that a given root includes, else from the header of each
component. Without either, the root next to a component, or in the folder above, is read for its lists.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, MutableMapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple
from urllib.parse import unquote

from lxml.etree import _Element
from pyoxigraph import NamedNode

from kg.errors import RecordError, SourceError
from kg.text import quoted
from loaders.hansard.parlamint_component import parse_component
from loaders.hansard.parlamint_entities import Entities
from loaders.hansard.parlamint_findings import Finding
from loaders.hansard.parlamint_lists import (
    Lists,
    Organization,
    Person,
    describe_unread,
    find_houses,
    parse_organizations,
    parse_people,
)
from loaders.hansard.parlamint_people_records import build_person_record
from loaders.hansard.parlamint_sitting_records import build_sitting_record
from loaders.hansard.parlamint_tei import (
    Damage,
    descendants,
    find_code,
    find_root_name,
    id_of,
    parse_entries,
    parse_tree,
    read_head,
)
from loaders.hansard.table_columns import not_in_future
from loaders.model import Notice, Origin, Rejection, Snapshot, SourceGraph, graph_name
from loaders.readers.locations import File, file_sha256

LARGEST_INCLUDE: Final = 256 << 20
"""Bytes of a file that a root includes, beyond which it is not read."""
SHOWN: Final = 5

_INCLUDE: Final = "{http://www.w3.org/2001/XInclude}include"
_DATED: Final = re.compile(r"\d{4}-\d\d-\d\d")
_IDENTIFIER: Final = re.compile(r"""xml:id\s*=\s*["']([^"']+)""")
_SPEAKS: Final = re.compile(rb"<(?:[\w.-]+:)?u[\s>]")
_LISTS: Final = re.compile(rb"<(?:[\w.-]+:)?list(?:Person|Org)[\s>]")

Item = SourceGraph | Rejection | Notice
Part = Literal["corpus", "list", "component", "taxonomy"]
Findings = MutableMapping[NamedNode, Sequence[Finding]]
"""What follows from the lists, by the graph of the sitting."""


class _Listed(NamedTuple):
    person: Person
    origin: Origin


@dataclass(slots=True)
class _Corpus:
    """The lists of one corpus."""

    lists: Lists = field(default_factory=Lists)
    people: list[_Listed] = field(default_factory=list)


def is_parlamint(path: Path) -> bool:
    """Whether a file is of TEI, by its root element. False if it cannot be read."""
    try:
        return find_root_name(read_head(path)) is not None
    except SourceError:
        return False


@dataclass(slots=True)
class CorpusReader:
    """Reads the files of corpora, and keeps what follows from their lists in `findings`."""

    domain: str
    findings: Findings
    corpora: dict[str, _Corpus] = field(default_factory=lambda: defaultdict(_Corpus))
    _read: set[Path] = field(default_factory=set)
    _sought: set[Path] = field(default_factory=set)

    def read(self, files: Sequence[File]) -> Iterator[Item]:
        """Yield the records of the files and notices about them. A file that cannot be read is a Rejection."""
        components: dict[Path, File] = {}
        given = {file.path.resolve(): file for file in files}
        parts = {path: _find_part(path) for path in given}
        # Roots first: lists that name no corpus are of the root that includes them.
        for path, file in sorted(given.items(), key=lambda each: parts[each[0]] != "corpus"):
            part = parts[path]
            if part == "component":
                components[path] = file
            elif part == "corpus":
                yield from self._guard(file, self._corpus(file, given, components))
            elif part == "list":
                yield from self._guard(file, self._list(file))
            else:
                yield Notice(f"{file.snapshot.source}: a taxonomy of ParlaMint")
        for file in components.values():
            yield from self._find_root(file)
        for code, corpus in self.corpora.items():
            for listed in corpus.people:
                record = build_person_record(
                    self.domain, Entities(code, None, corpus.lists), listed.person, listed.origin
                )
                if record is not None:
                    yield record
        for file in components.values():
            yield from self._guard(file, self._component(file))

    def _guard(self, file: File, items: Iterator[Item]) -> Iterator[Item]:
        try:
            yield from items
        except SourceError as error:
            yield Rejection(file.path.name, str(error), (Origin(file.snapshot),))

    def _corpus(self, file: File, given: dict[Path, File], components: dict[Path, File]) -> Iterator[Item]:
        """Read a root: the lists in it, and the files that it includes."""
        root = parse_tree(_read_bytes(file.path), file.snapshot.source)
        yield Notice(f"{file.snapshot.source}: the root of a ParlaMint corpus")
        yield from self._root(root, file, given, components)

    def _root(
        self, root: _Element, file: File, given: dict[Path, File], components: dict[Path, File] | None
    ) -> Iterator[Item]:
        self._read.add(file.path.resolve())
        code = find_code(id_of(root), file.path.name)
        if code is not None:
            header = next(descendants(root, "teiHeader"), root)
            houses = [find_houses(meeting) for meeting in descendants(header, "meeting")]
            self.corpora[code].lists.houses.update(*houses)
        yield from self._add_lists(root, file, code)
        yield from self._include(root, file, given, components, code)

    def _include(
        self,
        root: _Element,
        file: File,
        given: dict[Path, File],
        components: dict[Path, File] | None,
        code: str | None,
    ) -> Iterator[Item]:
        """Read the included files that are there: lists, and components unless `components` is None."""
        absent: list[str] = []
        folder = file.path.resolve().parent
        for element in root.iter(_INCLUDE):
            reference = unquote(element.get("href") or "")
            path = _resolve(folder, reference)
            if path is None:
                yield _warn(
                    f"{file.snapshot.source}, line {element.sourceline}: {quoted(reference)} is not included. "
                    f"Only files in the folder of the root are."
                )
            elif path in given:
                if path not in self._read and _find_part(path) == "list":
                    yield from self._guard(given[path], self._list(given[path], code))
            elif not path.is_file():
                absent.append(reference)
            elif path.stat().st_size > LARGEST_INCLUDE:
                yield _warn(f"{path}: not included, since it has more than {LARGEST_INCLUDE >> 20} MiB")
            elif path not in self._read:
                source = Path(file.snapshot.source).parent / reference
                included = File(path, Snapshot(file_sha256(path), source.as_posix()), named=False)
                part = _find_part(path)
                if part == "list":
                    yield from self._guard(included, self._list(included, code))
                elif part == "component" and components is not None:
                    components.setdefault(path, included)
        if absent and components is not None:
            count = sum(1 for _ in root.iter(_INCLUDE))
            more = f" and {len(absent) - SHOWN} more" if len(absent) > SHOWN else ""
            yield _warn(
                f"{file.snapshot.source}: {len(absent)} of {count} included files are not there: "
                f"{', '.join(absent[:SHOWN])}{more}"
            )

    def _list(self, file: File, code: str | None = None) -> Iterator[Item]:
        """Read a file of people or organizations. `code` is that of the root that includes it."""
        path = file.path.resolve()
        if path in self._read:
            return
        self._read.add(path)
        data, name = _read_bytes(file.path), file.snapshot.source
        try:
            root = parse_tree(data, name)
        except SourceError as error:
            yield from self._mend(data, file, str(error), code)
            return
        yield Notice(f"{name}: a list of a ParlaMint corpus")
        lists = [root, *descendants(root, "listPerson", "listOrg")]
        yield from self._add_lists(root, file, find_code(*map(id_of, lists), file.path.name) or code)

    def _mend(self, data: bytes, file: File, reason: str, code: str | None) -> Iterator[Item]:
        """Read the whole entries of a list that is not well-formed."""
        tag = "org" if b"<listOrg" in data else "person"
        entries, damaged = parse_entries(data, file.snapshot.source, tag)
        yield Notice(f"{file.snapshot.source}: a list of a ParlaMint corpus")
        yield _warn(
            f"{reason}. Its {len(entries)} whole <{tag}> are read, and these are left out: "
            + ", ".join(_describe(each) for each in damaged)
        )
        own = find_code(file.path.name, data[:2_000].decode("utf-8", "replace"))
        yield from self._add(
            own or code,
            parse_organizations(entries) if tag == "org" else [],
            parse_people(entries) if tag == "person" else [],
            file,
        )

    def _add_lists(self, root: _Element, file: File, code: str | None) -> Iterator[Item]:
        organizations, people = parse_organizations(descendants(root, "org")), parse_people(descendants(root, "person"))
        yield from self._add(code, organizations, people, file)

    def _add(
        self, code: str | None, organizations: list[Organization], people: list[Person], file: File
    ) -> Iterator[Item]:
        if code is None:
            if organizations or people:
                yield _warn(f"{file.snapshot.source}: the list names no corpus (ParlaMint-XX), so it is not used")
            return
        corpus = self.corpora[code]
        corpus.lists.add_organizations(organizations)
        for unread in describe_unread(people):
            yield _warn(f"{file.snapshot.source}: {unread}")
        origins = {person.id: Origin(file.snapshot, (row,)) for row, person in enumerate(people, 1)}
        corpus.people += [
            _Listed(person, origins[person.id]) for person in people if person.id not in corpus.lists.people
        ]
        corpus.lists.add_people(people, origins)

    def _find_root(self, file: File) -> Iterator[Item]:
        """Read the lists of the root next to a component, or in the folder above, where no list is given."""
        code = _find_code_of(file.path)
        if code is None or (code in self.corpora and self.corpora[code].people):
            return
        folder = file.path.resolve().parent
        for path in (*_find_roots(folder), *_find_roots(folder.parent)):
            if path in self._sought or path in self._read:
                continue
            self._sought.add(path)
            if path.stat().st_size <= LARGEST_INCLUDE and _is_corpus(path) and _find_code_of(path) == code:
                root_file = File(path, Snapshot(file_sha256(path), path.as_posix()), named=False)
                yield from self._guard(root_file, self._lists_of(root_file))

    def _lists_of(self, file: File) -> Iterator[Item]:
        root = parse_tree(_read_bytes(file.path), file.snapshot.source)
        yield Notice(f"{file.snapshot.source}: the root of a ParlaMint corpus, read for its lists")
        yield from self._root(root, file, {}, None)

    def _component(self, file: File) -> Iterator[Item]:
        """Read the sitting in a component."""
        origin = Origin(file.snapshot, (1,))
        try:
            root = parse_tree(_read_bytes(file.path), file.snapshot.source)
            component = parse_component(root, file.snapshot.source)
            not_in_future(component.date)
            if not component.turns:
                raise SourceError(f"{file.path}: no speech is recognized in the file, so it is not loaded.")
            yield Notice(f"{file.snapshot.source}: a sitting of the corpus ParlaMint-{component.code}")
            record, findings = build_sitting_record(
                self.domain, component, self._lists_for(root, component.code), origin
            )
            self.findings[graph_name(record)] = findings
            yield record
        except RecordError as error:
            yield Rejection(file.path.name, str(error), (Origin(file.snapshot),), None, (origin,))

    def _lists_for(self, root: _Element, code: str) -> Lists:
        """Return the lists of the corpus, with the people and organizations that only this component describes."""
        known = self.corpora[code].lists if code in self.corpora else Lists()
        lists = Lists(dict(known.people), dict(known.organizations), known.places, known.houses)
        lists.add_people(parse_people(descendants(root, "person")))
        lists.add_organizations(parse_organizations(descendants(root, "org")))
        return lists


def _find_part(path: Path) -> Part:
    """Find the kind of a file of TEI. A root that cannot be read counts as a component, which is then rejected."""
    try:
        data = _read_bytes(path)
    except SourceError:
        return "component"
    root = find_root_name(data)
    if root == "teiCorpus":
        return "corpus"
    if root == "TEI":
        return "list" if _LISTS.search(data) and not _SPEAKS.search(data) else "component"
    return "taxonomy" if root == "taxonomy" else "list"


def _resolve(folder: Path, reference: str) -> Path | None:
    """Resolve the reference of an include. None unless it is a file in the folder of the root or below it."""
    if not reference or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:|[/\\]", reference) or "\0" in reference:
        return None
    try:
        path = (folder / reference).resolve()
    except (OSError, RuntimeError):
        return None
    return path if path.is_relative_to(folder) else None


def _find_roots(folder: Path) -> list[Path]:
    """List the files of a folder that may be the root of a corpus: those of its name, else without a date in theirs."""
    try:
        return sorted(path for path in folder.glob("*.xml") if path.is_file() and not _DATED.search(path.name))
    except OSError:
        return []


def _find_code_of(path: Path) -> str | None:
    """Find the code of the corpus of a file, by its name, else by its root element."""
    try:
        return find_code(path.name) or find_code(*_IDENTIFIER.findall(read_head(path).decode("utf-8", "replace"))[:1])
    except SourceError:
        return None


def _is_corpus(path: Path) -> bool:
    try:
        return find_root_name(read_head(path)) == "teiCorpus"
    except SourceError:
        return False


def _describe(damage: Damage) -> str:
    return f"line {damage.line} ({damage.reason})"


def _warn(text: str) -> Notice:
    return Notice(text, warning=True)


def _read_bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise SourceError(f"{path}: cannot be read ({error.strerror})") from error
