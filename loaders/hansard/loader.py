"""The loader ``hansard``: tables with speeches, a record each, and official files of sitting days, a record a day."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kg.errors import InvalidInputError, RecordError, SourceError
from loaders.hansard import sitting_xml, speech_tables
from loaders.hansard.sitting_records import sitting_record
from loaders.hansard.speech_tables import Given
from loaders.hansard.table_columns import chamber_of, iso_day, not_in_future
from loaders.model import Notice, Origin, Rejection, SourceGraph
from loaders.readers import excerpts
from loaders.readers.formats import json_rows
from loaders.readers.locations import File

DOMAIN: Final = "hansard"
VERSION: Final = "2"
"""Version of what this package makes of a speech; with a new one every record is made anew."""

_TABLES: Final = (".parquet", ".csv", ".jsonl", ".ndjson", ".json", ".xlsx")
_MARKUP: Final = (".xml", ".sgml", ".sgm")
FORMATS: Final = (*_TABLES, *_MARKUP)

Item = SourceGraph | Rejection | Notice


@dataclass(frozen=True, slots=True)
class Reading:
    """Reads files, some of which may lack what is `given` for all of them."""

    given: Given = field(default_factory=Given)

    @classmethod
    def of(cls, options: Mapping[str, str]) -> Reading:
        """Return the reading with these options. Raises InvalidInputError for a chamber or date that is none."""
        try:
            if (chamber := options.get("chamber")) is not None:
                chamber_of(chamber)
            day = None if (text := options.get("date")) is None else iso_day(text)
        except RecordError as error:
            raise InvalidInputError(f"--{'date' if 'date' in str(error) else 'chamber'}: {error}") from error
        return cls(Given(chamber, day))

    def read(self, files: Sequence[File]) -> Iterator[Item]:
        """Yield the records of `files`, and what is to be said of them; a file that cannot be read is a Rejection."""
        for file in files:
            try:
                if file.path.suffix.lower() in _TABLES:
                    yield from speech_tables.read(DOMAIN, file, self.given)
                else:
                    yield from self._day(file)
            except SourceError as error:
                yield Rejection(file.path.name, str(error), (Origin(file.snapshot),))

    def _day(self, file: File) -> Iterator[Item]:
        origin = Origin(file.snapshot, (1,))
        try:
            try:
                data = file.path.read_bytes()
            except OSError as error:
                raise SourceError(f"{file.path}: cannot be read ({error.strerror})") from error
            sitting = sitting_xml.read(data, file.snapshot.source, chamber=self.given.chamber, date=self.given.date)
            not_in_future(sitting.date)
            yield Notice(f"{file.snapshot.source}: a sitting day, schema version {sitting.schema_version or 'unknown'}")
            yield sitting_record(DOMAIN, sitting, origin)
        except RecordError as error:
            yield Rejection(file.path.name, str(error), (Origin(file.snapshot),), None, (origin,))


def cut(path: Path, wanted: Mapping[Path, Sequence[int]]) -> None:
    """Write, for each target, the records of `path` with these numbers: an official file is one record.

    Raises SourceError when the file cannot be read, or has no such record.
    """
    ending = path.suffix.lower()
    if ending in _MARKUP:
        for target in wanted:
            shutil.copyfile(path, target)
    elif ending == ".json":
        rows = json_rows(path, speech_tables.WITHIN)
        if absent := [number for numbers in wanted.values() for number in numbers if number > len(rows)]:
            raise SourceError(f"{path}: there is no row {min(absent)} (any more)")
        for target, numbers in wanted.items():
            kept = (json.dumps(rows[number - 1], ensure_ascii=False) + "\n" for number in numbers)
            target.write_text("".join(kept), encoding="utf-8", errors="surrogatepass")
    else:
        excerpts.cut(path, wanted)
