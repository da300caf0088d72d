"""Facts told of whole codes as they come, for judging by reading, and the places of the source that are not told.

``python -m tests.benchmarks.zoning_facts PATH [PATH ...] [--untold]``. For each kind, at most 60 facts are drawn with
a fixed seed, at most one for each place of the source, and printed beside its words. With ``--untold``, as many places
are drawn that could be told: cells of matrices, items of lists below a lead, cells with one number, and label lines.
Both are drawn from everything that the readers find, so that what they print does not depend on what is expected.
"""

from __future__ import annotations

import argparse
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from loaders.zoning.extraction.citation_resolution import Index
from loaders.zoning.extraction.districts import find_in_section, pick_best
from loaders.zoning.extraction.facts import Facts, find_facts
from loaders.zoning.extraction.section_scope import find_code_scopes
from loaders.zoning.graph.derive import find_legends
from loaders.zoning.readers import input_files
from loaders.zoning.readers.code_model import Section
from loaders.zoning.readers.outline import find_label_end

SEED: Final = 20261128
DRAWN: Final = 60
_USES: Final = re.compile(r"\buses?\b", re.IGNORECASE)
_VALUE: Final = re.compile(
    r"\d[\d,.]* ?(?:%|feet|ft|square|sq|acres?|percent|stories)|\)\s*(?:feet|percent|stories)", re.I
)
_DIMENSION: Final = re.compile(
    r"\b(?:lot (?:area|size|width|depth|coverage|frontage)|frontage|yard|setback|height|coverage|density)\b",
    re.IGNORECASE,
)
_VERB: Final = re.compile(r"\b(?:shall|must|may|is|are|will|be)\b", re.IGNORECASE)


def read_sections(paths: Sequence[Path]) -> Sequence[Section]:
    """Read the sections of the code in these files and folders, each key once."""
    files = [each for path in paths for each in (sorted(path.rglob("*")) if path.is_dir() else [path])]
    found = input_files.find_codes([each for each in files if each.is_file()])
    sections = {each.key: each for code in found.inputs for each in reversed(code.read().sections)}
    return list({each.key: sections[each.key] for code in found.inputs for each in code.read().sections}.values())


def find_all(sections: Sequence[Section]) -> Iterator[tuple[Section, Facts]]:
    """Yield the sections of a code with the facts told of them."""
    index, by_key = Index(sections), {each.key: each for each in sections}
    known = pick_best(district for section in sections for district in find_in_section(section))
    scopes = find_code_scopes(sections, known)
    for section in sections:
        above = [by_key[key] for key in index.above(section.key)[1:]]
        legends = find_legends(section, index)
        yield section, find_facts(section, known, above, legends, scopes[section.key])


def describe(section: Section, facts: Facts) -> Iterator[tuple[str, int, str]]:
    """Yield the kind, the place and the description of each fact."""
    for use in facts.permissions:
        told = f"{use.district}: {use.use} = {use.level} ({use.raw_level}) {list(use.conditions)} {use.group}".rstrip()
        yield f"use, {use.method}", use.start, f"{told}\n      {quote(section, use.start, use.end)}"
    for one in facts.standards:
        told = f"{one.type} {one.bound} {one.value} {one.unit} for {one.applies_to} {list(one.conditions)}"
        source = quote(section, one.start, one.end)
        yield f"standard, {one.method}", one.start, f"{list(one.districts)}: {told} [{one.raw_type}]\n      {source}"
    for term in facts.definitions:
        yield "definition", term.term_start, f"{term.term}: {term.text[:300]}"


def quote(section: Section, start: int, end: int) -> str:
    """Quote a place with its line."""
    text = section.text
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    return f"{section.number} {section.title} | {text[first : last if last >= 0 else len(text)]}"[:600]


def find_places(section: Section) -> Iterator[tuple[str, int, int]]:
    """Yield the places of a section that could be told: the kind, and the offsets."""
    text = section.text
    spans = [(table.start, table.end) for table in section.tables]
    for table in section.tables:
        for row in table.rows[1:]:
            for cell in row[1:]:
                words = cell.text.strip()
                if re.fullmatch(r"[A-Z]{1,3}\d?\*?|-+|[✓●○•]", words):
                    yield "matrix cell", cell.start, cell.end
                elif re.fullmatch(r"[\d,.]+ ?(?:%|feet|ft\.?|['’]|sq\. ?ft\.?|acres?|stories)?\W{0,2}", words):
                    yield "number cell", cell.start, cell.end
    listed = bool(_USES.search(section.title))
    for line in re.finditer(r"[^\n]+", text):
        if any(first <= line.start() < last for first, last in spans):
            continue
        body = find_label_end(text, *line.span())
        words = text[body : line.end()].strip()
        head = words.rstrip().endswith(":") or (len(words.split()) <= 8 and bool(_USES.search(words)))
        if head:
            listed = bool(_USES.search(words)) and not _DIMENSION.search(words)
        elif listed and not _VERB.search(words[:80]) and len(words.split()) <= 40:
            yield "list item", line.start(), line.end()
        if _DIMENSION.search(words) and _VALUE.search(words) and not _VERB.search(words) and len(words.split()) <= 25:
            yield "label line", line.start(), line.end()


def draw(found: Sequence[tuple[str, int, str, str]]) -> Iterator[tuple[str, str]]:
    """Draw at most one of each place, and at most `DRAWN` of each kind."""
    for kind in sorted({each[0] for each in found}):
        several = [each for each in found if each[0] == kind]
        random.Random(SEED).shuffle(several)
        places = {(key, at): told for _, at, told, key in several}
        yield from ((kind, told) for told in list(places.values())[:DRAWN])


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the draws."""
    parser = argparse.ArgumentParser(prog="zoning_facts")
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--untold", action="store_true", help="draw the places of the source, and mark those not told")
    given = parser.parse_args(arguments)
    found: list[tuple[str, int, str, str]] = []
    for section, facts in find_all(read_sections(given.paths)):
        if not given.untold:
            found += [(kind, at, told, section.key) for kind, at, told in describe(section, facts)]
            continue
        spans = [(use.start, use.end) for use in facts.permissions]
        spans += [(one.start, one.end) for one in facts.standards]
        for kind, start, end in find_places(section):
            mark = "told  " if any(first < end and start < last for first, last in spans) else "UNTOLD"
            found.append((kind, start, f"{mark} {quote(section, start, end)}", section.key))
    for number, (kind, told) in enumerate(draw(found), 1):
        print(f"{number}. {kind}: {told}")


if __name__ == "__main__":
    main()
