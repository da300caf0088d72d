"""The loader ``parliament``: tables of speeches, official files of Hansard, and corpora of ParlaMint.

The format of each file is recognized by its content. In a table each speech is one record, else each sitting.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Final

from kg.errors import InvalidInputError, RecordError, SourceError
from loaders.file_formats import MARKUP, SPEECHES, TABLES
from loaders.hansard import sitting_xml, speech_tables
from loaders.hansard.identifiers import Identifiers
from loaders.hansard.parlamint_corpus import CorpusReader, Findings, is_parlamint
from loaders.hansard.parliaments import AUSTRALIAN, find_code
from loaders.hansard.sitting_records import build_sitting_record
from loaders.hansard.speech_tables import Given
from loaders.hansard.table_columns import chamber_of, iso_day, not_in_future
from loaders.model import Notice, Origin, Rejection, SourceGraph
from loaders.readers import excerpts
from loaders.readers.formats import json_rows
from loaders.readers.locations import File

DOMAIN: Final = "hansard"
VERSION: Final = "9"
"""Version of the records that this package builds. A new version loads every record again."""

FORMATS: Final = (*chain(*SPEECHES.values()),)
WHOLE: Final = (".json", *MARKUP)
"""Extensions of the files that are read as a whole."""

Item = SourceGraph | Rejection | Notice


@dataclass(frozen=True, slots=True)
class Reading:
    """Reads files, with values `given` for all files that lack them."""

    given: Given = field(default_factory=Given)
    findings: Findings = field(default_factory=dict)
    """What follows from the lists of corpora, by the graph of the sitting, for the derived graphs."""
    identifiers: Identifiers = field(default_factory=Identifiers)
    """The names under which the identifiers of people are known."""

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Reading:
        """Build a reading from options.

        Raises InvalidInputError for an invalid date, an unknown country, and an unknown chamber of Australia's
        parliament; the chambers of others are not known.
        """
        option = "jurisdiction"
        try:
            code = None if (place := options.get(option)) is None else find_code(place)
            option = "date"
            day = None if (text := options.get(option)) is None else iso_day(text)
            option = "chamber"
            if (chamber := options.get(option)) is not None and code in (None, AUSTRALIAN):
                chamber_of(chamber)
        except RecordError as error:
            raise InvalidInputError(f"--{option}: {error}") from error
        return cls(Given(chamber, day, code))

    def read(self, files: Sequence[File]) -> Iterator[Item]:
        """Yield the records of `files` and notices about them. A file that cannot be read is a Rejection."""
        corpora: list[File] = []
        for file in files:
            try:
                if file.path.suffix.lower() in (*TABLES, ".json"):
                    yield from speech_tables.read(DOMAIN, file, self.given, self.identifiers)
                elif is_parlamint(file.path):
                    corpora.append(file)
                else:
                    yield from self._day(file)
            except SourceError as error:
                yield Rejection(file.path.name, str(error), (Origin(file.snapshot),))
        if corpora:
            yield from CorpusReader(DOMAIN, self.findings).read(corpora)

    def _day(self, file: File) -> Iterator[Item]:
        origin = Origin(file.snapshot, (1,))
        try:
            try:
                data = file.path.read_bytes()
            except OSError as error:
                raise SourceError(f"{file.path}: cannot be read ({error.strerror})") from error
            if self.given.jurisdiction not in (None, AUSTRALIAN):
                raise SourceError(f"{file.path}: not a format of this parliament. Load its speeches as a table.")
            sitting = sitting_xml.parse_sitting(
                data, file.snapshot.source, chamber=self.given.chamber, date=self.given.date
            )
            not_in_future(sitting.date)
            if not sitting.speeches and not any(each.votes for each in sitting.divisions):
                raise SourceError(f"{file.path}: no speech is recognized in the file, so it is not loaded.")
            yield Notice(f"{file.snapshot.source}: a sitting day, schema version {sitting.schema_version or 'unknown'}")
            yield build_sitting_record(DOMAIN, sitting, origin, self.identifiers)
        except RecordError as error:
            yield Rejection(file.path.name, str(error), (Origin(file.snapshot),), None, (origin,))


def cut_records(path: Path, wanted: Mapping[Path, Sequence[int]]) -> None:
    """Write the records of `path` with these numbers to each target. An official file is one record.

    Raises SourceError if the file cannot be read or has no such record.
    """
    ending = path.suffix.lower()
    if ending in MARKUP:
        for target in wanted:
            shutil.copyfile(path, target)
    elif ending == ".json":
        rows = json_rows(path, speech_tables.WITHIN)
        if absent := [number for numbers in wanted.values() for number in numbers if number > len(rows)]:
            raise SourceError(f"{path}: row {min(absent)} does not exist. The file may have changed.")
        for target, numbers in wanted.items():
            kept = (json.dumps(rows[number - 1], ensure_ascii=False) + "\n" for number in numbers)
            target.write_text("".join(kept), encoding="utf-8", errors="surrogatepass")
    else:
        excerpts.cut(path, wanted)
