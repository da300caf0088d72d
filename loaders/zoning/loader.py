"""The loader ``zoning``: codes of municipalities, a record each section, and tables of their districts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pyoxigraph import NamedNode

from kg.errors import InvalidInputError, RecordError, SourceError
from kg.vocabulary import mint
from loaders.model import Notice, Origin, Rejection, SourceGraph
from loaders.readers import excerpts
from loaders.readers.locations import File
from loaders.zoning.graph import table_mapping, table_records
from loaders.zoning.graph.authorities import Authorities, municipality_key, state_code
from loaders.zoning.graph.derive import CodesRead
from loaders.zoning.graph.section_records import section_record, statements_record
from loaders.zoning.readers import input_files
from loaders.zoning.readers.code_model import DOMAIN, Code

FORMATS: Final = tuple(dict.fromkeys((*input_files.FORMATS, *table_records.FORMATS)))

Item = SourceGraph | Rejection | Notice


@dataclass(frozen=True, slots=True)
class Read:
    """A code that was read, with the file that it is in and what its sections share."""

    code: Code
    file: File
    shared: Authorities
    files: Mapping[str, File]
    """The files of single sections, by `Section.file`."""


@dataclass(slots=True)
class Reading:
    """Reads files, for which some things may be given that they do not say themselves."""

    municipality: str | None = None
    state: str | None = None
    mapping: table_mapping.TableMapping | None = None
    codes: CodesRead = field(default_factory=CodesRead)
    """The codes read last."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Reading:
        """Return the reading with these options. Raises InvalidInputError for what none of them can be."""
        state = options.get("state")
        if state is not None:
            try:
                state = state_code(state)
            except RecordError as error:
                raise InvalidInputError(f"--state: {error}") from error
        name = options.get("municipality")
        if name is not None:
            try:
                municipality_key(name, state or "UT")
            except RecordError as error:
                raise InvalidInputError(f"--municipality: {error}") from error
        given = options.get("mapping")
        return cls(name, state, table_mapping.read(Path(given)) if given is not None else None)

    def read(self, files: Sequence[File]) -> Iterator[Item]:
        """Yield the records of `files`, and what is to be said of them.

        All codes are read before the first record is yielded, so that whatever cites another section finds it.
        """
        by_path = {file.path: file for file in files}
        found = input_files.find(list(by_path))
        for warning in found.warnings:
            yield Notice(warning, warning=True)
        codes: list[Read] = []
        for each in found.inputs:
            file = by_path[each.path]
            try:
                codes.append(self._code(each, file, by_path))
            except (SourceError, RecordError) as error:
                yield Rejection(file.path.name, str(error), (Origin(file.snapshot),))
        self.codes.sections = defaultdict(dict)
        self.codes.municipalities = {one.shared.key: one.shared for one in codes}
        for one in codes:
            own = self.codes.sections[one.shared.key]
            for section in one.code.sections:
                own.setdefault(section.key, section)
        yielded: dict[NamedNode, SourceGraph] = {}
        for one in codes:
            yield from self._records(one, yielded)
        parts = {path for each in found.inputs for path in each.parts}
        for path in found.others:
            if path not in parts:
                yield from self._table(by_path[path])

    def _code(self, given: input_files.Input, file: File, by_path: Mapping[Path, File]) -> Read:
        code, beside = given.read(), _beside(file)
        name = code.municipality or self.municipality or beside.municipality
        state = code.state or self.state or beside.state
        if name is None or state is None:
            lacking = [what for what, value in (("municipality", name), ("state", state)) if value is None]
            raise RecordError(
                f"the file does not say of which {' and '.join(lacking)} it is: give "
                f"{' and '.join(f'--{what}' for what in lacking)}, or write it into {file.path.stem}.toml beside it: "
                '[jurisdiction] name = "...", state = "..."'
            )
        folder = given.path.parent
        files = {path.relative_to(folder).as_posix(): by_path[path] for path in given.parts if path in by_path}
        return Read(code, file, Authorities(name, state), files)

    def _records(self, one: Read, yielded: dict[NamedNode, SourceGraph]) -> Iterator[Item]:
        code, source = one.code, one.file.snapshot.source
        yield Notice(f"{source}: a code of {one.shared.name}, {len(code.sections):,} sections")
        if (contradicted := self._contradicted(code, one.shared)) is not None:
            yield Notice(f"{source}: {contradicted}", warning=True)
        for warning in code.warnings:
            yield Notice(warning, warning=True)
        if not code.sections and not (code.permissions or code.standards or code.definitions):
            yield Notice(f"{source}: the code has no section", warning=True)
        for section in code.sections:
            file = one.files.get(section.file or "", one.file)
            record = section_record(DOMAIN, section, one.shared.fresh(), Origin(file.snapshot))
            graph = mint("graph", "src", DOMAIN, *record.key)
            # Several files of a code may have the levels above in common.
            if yielded.setdefault(graph, record) is not record and yielded[graph].quads == record.quads:
                continue
            yield record
        stated = statements_record(
            DOMAIN,
            one.file.path.stem,
            code,
            one.shared.fresh(),
            Origin(one.file.snapshot),
            list(self.codes.sections[one.shared.key]),
        )
        if stated is not None:
            yield stated

    def _contradicted(self, code: Code, taken: Authorities) -> str | None:
        """Return what to tell of options whose place the file itself has taken; None where it agrees with them."""
        key, told = taken.key, list[str]()
        if code.municipality and self.municipality and municipality_key(self.municipality, taken.state) != key:
            told.append(f"municipality is {code.municipality!r}, not --municipality {self.municipality!r}")
        if code.state and self.state and state_code(code.state) != self.state:
            told.append(f"state is {taken.state}, not --state {self.state}")
        return f"says itself that its {' and its '.join(told)}; it is loaded as of {key}" if told else None

    def _table(self, file: File) -> Iterator[Item]:
        if file.path.suffix.lower() not in table_records.FORMATS:
            yield Rejection(file.path.name, f"{file.path}: is neither a code nor a table", (Origin(file.snapshot),))
            return
        try:
            beside = _beside(file)
            chosen = self.mapping or beside.mapping
            where = self.municipality or beside.municipality, self.state or beside.state
            yield from table_records.read(DOMAIN, file, chosen, *where)
        except (SourceError, RecordError) as error:
            yield Rejection(file.path.name, str(error), (Origin(file.snapshot),))


def _beside(file: File) -> table_mapping.Beside:
    """Return what lies beside a file, or beside that of which it is an excerpt. Raises RecordError if it is wrong."""
    try:
        places = dict.fromkeys((file.path, Path(file.snapshot.source)))
        return next(
            (found for place in places if (found := table_mapping.beside(place)).places), table_mapping.Beside()
        )
    except InvalidInputError as error:
        raise RecordError(str(error)) from error


def cut(path: Path, wanted: Mapping[Path, Sequence[int]]) -> None:
    """Write, for each target, the rows of the table `path` with these numbers.

    Raises SourceError for a file that has no rows which stand alone, such as a code, or that cannot be read.
    """
    if path.suffix.lower() in input_files.FORMATS:
        raise SourceError(f"{path}: of such a file no single records are kept; load the file again")
    excerpts.cut(path, wanted)
