"""The ``zoning`` loader: municipal codes, one record per section, and tables of zoning districts."""

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
from loaders.zoning.graph.rule_quads import Entry
from loaders.zoning.graph.section_records import build_section_record, build_statements_record
from loaders.zoning.readers import input_files
from loaders.zoning.readers.code_model import DOMAIN, Code

FORMATS: Final = tuple(dict.fromkeys((*input_files.FORMATS, *table_records.FORMATS)))
WHOLE: Final = input_files.FORMATS
"""Extensions of the files that are read as a whole."""

Item = SourceGraph | Rejection | Notice


_Parsed = tuple[Code, File, Authorities]
"""A parsed code with its file and the graphs that its sections share."""


@dataclass(slots=True)
class Reading:
    """Reads files with options for values that the files lack."""

    municipality: str | None = None
    state: str | None = None
    mapping: table_mapping.TableMapping | None = None
    codes: CodesRead = field(default_factory=CodesRead)
    """The codes of the last `read`."""

    @classmethod
    def from_options(cls, options: Mapping[str, str]) -> Reading:
        """Build a reading from loader options. Raises InvalidInputError for an invalid option."""
        name, state, mapping = (options.get(each) for each in ("municipality", "state", "mapping"))
        option = "state"
        try:
            state = None if state is None else state_code(state)
            option = "municipality"
            if name is not None:
                municipality_key(name, state or "UT")
        except RecordError as error:
            raise InvalidInputError(f"--{option}: {error}") from error
        return cls(name, state, None if mapping is None else table_mapping.load(Path(mapping)))

    def read(self, files: Sequence[File]) -> Iterator[Item]:
        """Yield the records of `files`, with rejections and notices.

        All codes are parsed before the first record is yielded, so that a citation of any other section resolves.
        """
        by_path = {file.path: file for file in files}
        found = input_files.find_codes(list(by_path))
        for warning in found.warnings:
            yield Notice(warning, warning=True)
        codes: list[_Parsed] = []
        for each in found.inputs:
            file = by_path[each.path]
            try:
                codes.append(self._code(each, file))
            except (SourceError, RecordError) as error:
                yield Rejection(file.path.name, str(error), (Origin(file.snapshot),))
        self.codes.sections = defaultdict(dict)
        self.codes.municipalities = {shared.key: shared for _, _, shared in codes}
        for code, _, shared in codes:
            for section in code.sections:
                self.codes.sections[shared.key].setdefault(section.key, section)
        yielded: dict[NamedNode, SourceGraph] = {}
        for parsed in codes:
            yield from self._records(*parsed, by_path, yielded)
        for path in found.others:
            yield from self._table(by_path[path])

    def _code(self, given: input_files.Input, file: File) -> _Parsed:
        code, beside = given.read(), _load_settings(file)
        name = code.municipality or self.municipality or beside.municipality
        state = code.state or self.state or beside.state
        if name is None or state is None:
            lacking = "municipality" if name is None else "state"
            raise RecordError(
                f"The file does not name its {lacking}. Pass --{lacking}, or add {file.path.stem}.toml next to it: "
                '[jurisdiction] name = "...", state = "..."'
            )
        return code, file, Authorities(name, state)

    def _records(
        self,
        code: Code,
        main: File,
        shared: Authorities,
        by_path: Mapping[Path, File],
        yielded: dict[NamedNode, SourceGraph],
    ) -> Iterator[Item]:
        source = main.snapshot.source
        yield Notice(f"{source}: a code of {shared.name}, {len(code.sections):,} sections")
        meant = municipality_key(self.municipality or shared.name, self.state or shared.state)
        if meant != shared.key:
            yield Notice(f"{source}: It is loaded as {shared.key}, which the file names, not as {meant}.", warning=True)
        for warning in code.warnings:
            yield Notice(warning, warning=True)
        for section in code.sections:
            file = by_path.get(main.path.parent / (section.file or ""), main)
            record = build_section_record(section, shared.copy(), Origin(file.snapshot))
            earlier = yielded.setdefault(mint("graph", "src", DOMAIN, *record.key), record)
            # Several files of a code may repeat the levels above their sections.
            if earlier is record or earlier.quads != record.quads:
                yield record
        origin, keys = Origin(main.snapshot), list(self.codes.sections[shared.key])
        entries: Sequence[Entry] = (*code.permissions, *code.standards, *code.definitions)
        if entries:
            yield build_statements_record(main.path.stem, entries, shared.copy(), origin, keys)

    def _table(self, file: File) -> Iterator[Item]:
        try:
            if file.path.suffix.lower() not in table_records.FORMATS:
                raise SourceError(f"{file.path}: Not a code or a table.")
            beside = _load_settings(file)
            chosen = self.mapping or beside.mapping
            where = self.municipality or beside.municipality, self.state or beside.state
            yield from table_records.read_records(file, chosen, *where)
        except (SourceError, RecordError) as error:
            yield Rejection(file.path.name, str(error), (Origin(file.snapshot),))


def _load_settings(file: File) -> table_mapping.FileSettings:
    """Load the settings next to a file, or next to the file that it is an excerpt of. Raises RecordError."""
    try:
        places = dict.fromkeys((file.path, Path(file.snapshot.source)))
        return next(
            (found for place in places if (found := table_mapping.load_settings(place)).places),
            table_mapping.FileSettings(),
        )
    except InvalidInputError as error:
        raise RecordError(str(error)) from error


def cut_rows(path: Path, wanted: Mapping[Path, Sequence[int]]) -> None:
    """Write the rows with the given numbers of the table `path` to each target.

    Raises SourceError for an unreadable file, and for a code, whose records cannot be cut out.
    """
    if path.suffix.lower() in input_files.FORMATS:
        raise SourceError(f"{path}: Records of this file type are not kept separately. Load the file again.")
    excerpts.cut(path, wanted)
