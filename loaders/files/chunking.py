"""Chunks of a file: by its headings and by tokens, with lists of steps kept whole.

A token is a word of up to eight letters or digits, a piece of eight of a longer one, a sign of punctuation, or an
ideograph. Of English text, the tokenizer of the embedding model makes about as many.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from loaders.files.readers.text_model import Block, FileText
from loaders.readers.chunks import Span, split_chunks
from loaders.readers.sentences import split_sentences

_IDEOGRAPHS: Final = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
_TOKEN: Final = re.compile(rf"[{_IDEOGRAPHS}]|(?:(?![{_IDEOGRAPHS}])\w){{1,8}}|[^\w\s]")
_DEFINITIONS: Final = re.compile(
    r"\b(?:glossary|definitions?|terminology|abbreviations|acronyms|faqs?|frequently asked questions|q\s?&\s?a)\b",
    re.IGNORECASE,
)
_STEP: Final = re.compile(r"\W*step \d+\b", re.IGNORECASE)
_LEAST_STEPS: Final = 3
_LEAST_SHARE: Final = 0.25
"""Minimum share of a procedure that is in its steps. In other sections, a list of steps is cut only at its items."""


@dataclass(frozen=True, slots=True)
class Size:
    """The number of tokens of chunks, and of the text that a chunk repeats from the one before."""

    least: int
    most: int
    overlap: int = 0


GENERAL: Final = Size(500, 1_000, 150)
DEFINITIONS: Final = Size(150, 400)
"""Glossaries and questions with answers."""
PROCEDURES: Final = Size(1_000, 2_000)
"""Sections with numbered steps."""


@dataclass(frozen=True, slots=True)
class Chunk:
    """A chunk by its offsets, with the headings that all of it is below."""

    start: int
    end: int
    headings: Sequence[str]


@dataclass(slots=True)
class _Section:
    """The text from one heading to the next. `headings` are those that it is below, with its own."""

    start: int
    end: int
    headings: tuple[str, ...]
    size: Size
    is_bare: bool
    """Whether it has a heading only, which belongs to the next section."""


def split_file(file: FileText) -> list[Chunk]:
    """Split a file into chunks, in order. Concatenated by their offsets they are its text."""
    if not file.text.strip():
        return []
    return list(_Splitter(file).split())


class _Splitter:
    def __init__(self, file: FileText) -> None:
        self.text: Final = file.text
        self.blocks: Final = file.blocks
        self.starts: Final = [block.start for block in file.blocks]
        self.tokens: Final = array("L", (match.start() for match in _TOKEN.finditer(file.text)))
        self.sections: Final = list(self.find_sections())
        self.section_starts: Final = [section.start for section in self.sections]
        self.whole = PROCEDURES.most
        """Maximum tokens of a list of steps that is kept whole."""

    def measure(self, start: int, end: int) -> int:
        """Count the tokens that begin in a span."""
        return bisect_left(self.tokens, end) - bisect_left(self.tokens, start)

    def find_sections(self) -> Iterator[_Section]:
        """Find the sections. Text before the first heading is one."""
        open_headings: list[tuple[int, str]] = []
        start = 0
        names: tuple[str, ...] = ()
        own: list[Block] = []
        for block in self.blocks:
            if block.level:
                if own:
                    yield _build_section(self.text, start, block.start, names, own)
                    start = block.start
                while open_headings and open_headings[-1][0] >= block.level:
                    open_headings.pop()
                open_headings.append((block.level, block.title))
                names = tuple(title for _, title in open_headings)
                own = []
            own.append(block)
        yield _build_section(self.text, start, len(self.text), names, own)

    def split(self) -> Iterator[Chunk]:
        """Split the runs of sections."""
        for start, end, size in self.find_runs():
            for first, last in self.split_run(start, end, size):
                yield Chunk(first, last, self.find_headings(first, last))

    def find_runs(self) -> Iterator[tuple[int, int, Size]]:
        """Join short sections of the same kind that follow each other, up to the least size of a chunk."""
        runs: list[tuple[int, int, Size]] = []
        bare: set[int] = set()
        for section in self.sections:
            if runs and self.is_joined(runs[-1], section):
                start, _, size = runs[-1]
                runs[-1] = start, section.end, section.size if start in bare else size
                continue
            if section.is_bare:
                bare.add(section.start)
            runs.append((section.start, section.end, section.size))
        yield from runs

    def is_joined(self, run: tuple[int, int, Size], section: _Section) -> bool:
        """Whether a section is in the same run as those before it."""
        start, end, size = run
        if self.section_of(start).end == end and self.section_of(start).is_bare:
            return True
        if size != section.size or self.measure(start, section.end) > size.most:
            return False
        return min(self.measure(start, end), self.measure(section.start, section.end)) < size.least

    def section_of(self, offset: int) -> _Section:
        """Return the section at an offset."""
        return self.sections[max(0, bisect_right(self.section_starts, offset) - 1)]

    def split_run(self, start: int, end: int, size: Size) -> Iterator[Span]:
        """Split a run into chunks of about the same size."""
        whole = self.measure(start, end)
        most = size.most
        self.whole = most
        if whole > most:
            # The last chunk of a run should not be much smaller than the others.
            count = -(-(whole - size.overlap) // (most - size.overlap))
            even = (whole - size.overlap) // count + size.overlap + most // 10
            if even > most and not size.overlap:
                # Whole items do not fill `count` chunks, so that a small one would follow.
                even = whole // (count + 1) + most // 20
            most = min(most, max(size.least, even, self.find_longest_steps(start, end, most)))
        yield from split_chunks(
            self.text, [(start, end)], size=most, overlap=size.overlap, measure=self.measure, divide=self.divide
        )

    def find_longest_steps(self, start: int, end: int, most: int) -> int:
        """Find the tokens of the longest list of steps in a span that has at most `most`."""
        within = self.blocks[bisect_left(self.starts, start) : bisect_left(self.starts, end)]
        sizes = (self.measure(block.start, block.end) for block in within if block.kind == "steps")
        return max((size for size in sizes if size <= most), default=0)

    def divide(self, text: str, start: int, end: int) -> Iterator[Span]:
        """Split a span at the edges of blocks, long blocks at their items, rows, lines and sentences.

        A heading stays with what follows it.
        """
        cuts = [start]
        first = max(0, bisect_right(self.starts, start) - 1)
        headed = False
        for block in self.blocks[first : bisect_left(self.starts, end)]:
            if block.start > start and not headed:
                cuts.append(block.start)
            headed = block.level > 0
            if block.kind == "paragraph":
                if headed_cuts := [edge for edge, _ in split_sentences(text, block.start, block.end)][1:]:
                    cuts += headed_cuts
            elif block.kind != "steps" or self.measure(block.start, block.end) > self.whole:
                cuts += [cut for cut in block.parts if start < cut < end]
        for one, other in zip(cuts, [*cuts[1:], end], strict=True):
            if other > one:
                yield one, other

    def find_headings(self, start: int, end: int) -> tuple[str, ...]:
        """Find the headings that all of a span is below."""
        first = max(0, bisect_right(self.section_starts, start) - 1)
        within = self.sections[first : max(first + 1, bisect_left(self.section_starts, end))]
        common: list[str] = []
        for names in zip(*(section.headings for section in within), strict=False):
            if len(set(names)) > 1:
                break
            common.append(names[0])
        return tuple(common)


def _build_section(text: str, start: int, end: int, names: tuple[str, ...], blocks: Sequence[Block]) -> _Section:
    is_bare = len(blocks) == 1 and blocks[0].level > 0
    return _Section(start, end, names, _find_size(text, blocks, names), is_bare)


def _find_size(text: str, blocks: Sequence[Block], headings: Sequence[str]) -> Size:
    """Find the size of the chunks of a section, by its kind."""
    steps = numbered = 0
    for block in blocks:
        if block.kind == "steps":
            steps += 1 + len(block.parts)
            numbered += block.end - block.start
        elif _STEP.match(text, block.start, block.end) is not None:
            steps += 1
            numbered += block.end - block.start
    whole = sum(block.end - block.start for block in blocks)
    if steps >= _LEAST_STEPS and numbered >= _LEAST_SHARE * whole:
        return PROCEDURES
    defined = sum(block.kind == "definitions" for block in blocks)
    own = headings[-1] if headings else ""
    if defined * 2 > len(blocks) or own.endswith("?") or any(map(_DEFINITIONS.search, headings)):
        return DEFINITIONS
    return GENERAL
