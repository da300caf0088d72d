"""Builder for the sections of a code while it is parsed: their place in the tree, tables of contents, and keys."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from math import inf
from typing import Final

from kg.text import quoted
from kg.vocabulary import sha256
from loaders.readers.headings import (
    PART,
    RANKS,
    SECTION,
    Heading,
    find_status,
    is_placed,
    parse_heading,
    split_number,
)
from loaders.zoning.readers.code_model import Note, Section
from loaders.zoning.readers.text_builder import Body, Content

LONGEST_KEY: Final = 400
"""Maximum characters of a key. The second half of a longer one is replaced by a hash."""
_CHAINS: Final = {2: ("chapter",), 3: ("title", "chapter"), 4: ("title", PART, "chapter")}
"""The levels that the leading components of a section's number mean, by the number of components."""
_CONTENTS: Final = re.compile(
    r"(?:(?:table of )?contents|sections?|articles?|chapters?|divisions?|parts?)\W*", re.IGNORECASE
)
"""The line above a table of contents."""
BACK_MATTER: Final = re.compile(
    r"(?:(?:subject |general |alphabetical )?index(?: to (?:the )?[\w ]{3,40})?"
    r"|(?:table|list) of (?:amendments|contents|ordinances)|amendment history"
    r"|(?:code |ordinance |statutory |parallel )?(?:comparative|disposition|derivation|(?:cross[- ])?reference"
    r"|amendment|history) (?:table|list)s?)\W*",
    re.IGNORECASE,
)
"""Titles of parts of a code that are not law."""
_STATES: Final = re.compile(r"\b(?:shall|must|may|is|are)\b|^[^:]*:.*\d", re.IGNORECASE)
"""In the heading of a section without text: it is the law, ``No fence shall exceed six feet``."""
_REFERENCES: Final = re.compile(r"cross[- ]references?\W*", re.IGNORECASE)
"""The line above the references that a publisher adds to a level, next to its table of contents."""


@dataclass(slots=True, eq=False)
class Draft:
    """A level being built."""

    kind: str
    number: str
    title: str
    parent: Draft | None = None
    body: Body = field(default_factory=Body)
    content: Content | None = None
    line: int | None = None
    last_line: int | None = None
    counted: str = "line"
    """What `line` counts: lines of the file, or pages."""
    order: int | None = None
    status: str | None = None
    file: str | None = None
    implied: bool = False
    """Only implied by numbers."""
    base: str | None = None
    """Its key, where the source gives one."""
    key: str = ""
    level: int = 0
    given_level: int | None = None
    """The level given by the source."""
    children: list[Draft] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Its text, once its content is built."""
        return self.content.text if self.content is not None else ""

    @property
    def name(self) -> str:
        """Its name in warnings."""
        place = f", {self.counted} {self.line}" if self.line else ""
        return f"{self.kind} {self.number or repr(self.title)}{place}"


@dataclass(slots=True)
class Drafts:
    """The levels of a code in document order. Each is placed by its number, its kind and the open levels."""

    drafts: list[Draft] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    counted: str = "line"
    _open: list[Draft] = field(default_factory=list)
    _numbered: dict[str, Draft] = field(default_factory=dict)
    _titles: dict[str, tuple[str, str | None]] = field(default_factory=dict)

    @property
    def latest(self) -> Draft | None:
        """The level opened last, other than implied ones."""
        return next((each for each in reversed(self.drafts) if not each.implied), None)

    def warn_of_lines_before(self, body: Body) -> None:
        """Report the text before the first level."""
        if lines := [*body.lines, *(note.text for note in body.notes)]:
            self.warnings.append(
                f"{len(lines):,} lines before the first heading are not loaded, starting with {quoted(lines[0])}."
            )

    def add(self, heading: Heading, line: int | None = None) -> Draft:
        """Add the level that a heading opens."""
        draft = Draft(heading.kind, heading.number, heading.title, line=line, counted=self.counted)
        if heading.kind == SECTION:
            draft.parent = self._parent_of_section(draft)
        else:
            self._descend(draft)
        self.drafts.append(draft)
        return draft

    def _parent_of_section(self, draft: Draft) -> Draft | None:
        innermost = parent = self._open[-1] if self._open else None
        parts = split_number(draft.number)
        above = draft.number.rpartition(".")[0] if len(parts) > 1 else ""
        known, earlier = self._numbered.get(above), self._numbered.get(draft.number)
        if innermost is not None and innermost.number == above:
            pass
        elif known is not None and known.kind == SECTION:
            # Document order beats numbers: article XIV.I, between 14.1 and 14.1.1, contains 14.1.1.
            over = next((each for each in reversed(_line_of(known)) if each.kind != SECTION), None)
            parent = known if innermost is None or over is innermost else innermost
        elif len(parts) > 1 and (innermost is None or innermost.implied or innermost.number in self._numbered):
            # Only a level whose number is written like those of its sections can be recognized as the wrong one.
            parent = self._level_of(draft, parts)
        else:
            # A heading has named these below the open level: 3.1 in article 3, above 3.1.1.
            named = [".".join(parts[:count]) for count in range(2, len(parts))]
            parent = self._imply(draft, [each for each in named if each in self._titles], innermost)
        # After a table of contents the section itself, not its entry, is above the sections below. Sections 1.1 and 1.2
        # may be below section 1.
        if draft.number and (earlier is None or earlier.kind == SECTION):
            self._numbered[draft.number] = draft
        return parent

    def _level_of(self, draft: Draft, parts: Sequence[str]) -> Draft | None:
        """Get the level that contains a section according to its number. A level without a heading is added."""
        kinds = _CHAINS.get(len(parts), (*_CHAINS[4], *[SECTION] * max(0, len(parts) - 4)))[: len(parts) - 1]
        prefixes = [".".join(parts[:count]) for count in range(1, len(parts))]
        known = max((count for count, prefix in enumerate(prefixes, 1) if prefix in self._numbered), default=0)
        parent = self._numbered[prefixes[known - 1]] if known else None
        if parent is None and any(not each.implied for each in self._open):
            self.warnings.append(f"{draft.name} is not below any level with a heading, but its number implies levels.")
        parent = self._imply(draft, prefixes[known:], parent, kinds[known:])
        self._open = [each for each in _line_of(parent) if each.kind != SECTION]
        return parent

    def _imply(
        self, draft: Draft, numbers: Sequence[str], parent: Draft | None, kinds: Sequence[str] = ()
    ) -> Draft | None:
        """Add the levels with these numbers above a section, each below the one before, and return the last."""
        for number, kind in zip_longest(numbers, kinds, fillvalue=SECTION):
            if number not in self._numbered:
                title, own = self._titles.get(number, ("", None))
                parent = Draft(own or kind, number, title, parent, line=draft.line, counted=self.counted, implied=True)
                self._numbered[number] = parent
                self.drafts.append(parent)
        return parent

    def entitle(self, number: str, title: str, kind: str | None = None) -> bool:
        """Set the heading of an implied level before its first section. Returns False if it has another heading."""
        given = self._titles.setdefault(number, (title, kind))[0]
        return number not in self._numbered and is_same_heading(given, title)

    def _descend(self, draft: Draft) -> None:
        kinds, numbers = [each.kind for each in self._open], [each.number for each in self._open]
        prefix, rank = draft.number.rpartition(".")[0], RANKS.get(draft.kind, inf)
        if draft.kind in kinds:
            depth = kinds.index(draft.kind)
        elif prefix and prefix in numbers:
            # Chapter 2.1 is below article 2, though chapters are above articles in most codes.
            depth = numbers.index(prefix) + 1
        else:
            depth = next((depth for depth, each in enumerate(kinds) if RANKS.get(each, 0) >= rank), len(kinds))
        del self._open[depth:]
        draft.parent = self._open[-1] if self._open else None
        self._open.append(draft)
        if is_placed(draft.number) or draft.kind == "title":
            self._numbered[draft.number] = draft

    def sections(self) -> Sequence[Section]:
        """Build all sections, parents before children, with keys, levels and orders."""
        return build_sections(self.drafts, self.warnings)


def link_parents(entries: Sequence[tuple[str, str | None, Draft]], warnings: list[str]) -> Sequence[Draft]:
    """Place drafts below the parents that they name by id. Entries are id, id of the parent, draft.

    A draft whose parent is absent or below the draft itself is placed at the top, with a warning. Of two drafts with
    one id, the first is the parent.
    """
    known = {own: draft for own, _, draft in reversed(entries)}
    named = {draft: above for _, above, draft in entries if above is not None}
    for draft, above in named.items():
        draft.parent = known.get(above)
        if draft.parent is None:
            warnings.append(f"{draft.name} is placed at the top. Its parent {quoted(above)} does not exist.")
    placed: set[Draft] = set()
    for _, _, draft in entries:
        line: dict[Draft, None] = {}
        above_it: Draft | None = draft
        while above_it is not None and above_it not in placed and above_it not in line:
            line[above_it] = None
            above_it = above_it.parent
        if above_it in line:
            highest = next(reversed(line))
            warnings.append(f"{highest.name} is placed at the top. Its parent {quoted(named[highest])} is below it.")
            highest.parent = None
        placed |= line.keys()
    return [draft for _, _, draft in entries]


def _line_of(draft: Draft | None) -> list[Draft]:
    line: list[Draft] = []
    while draft is not None:
        line.append(draft)
        draft = draft.parent
    return line[::-1]


def is_same_heading(one: str, other: str) -> bool:
    """Compare two headings, ignoring white space, case and final punctuation."""
    return _normalize(one) == _normalize(other)


def prefix_warnings(warnings: Sequence[str], name: str) -> Sequence[str]:
    """Prefix all warnings with the name of their file."""
    return tuple(each if each.startswith(name) else f"{name}: {each}" for each in warnings)


def _normalize(text: str) -> str:
    return " ".join(text.split()).rstrip(".:").casefold()


def key_of(draft: Draft) -> str:
    """Build the key of a level from the keys above it, before duplicates are numbered (see `code_model`)."""
    key = draft.base
    if key is None and draft.number and (is_placed(draft.number) or (draft.kind == "title" and draft.parent is None)):
        key = draft.number
    if key is None:
        own = f"{draft.kind} {draft.number or draft.title or 'without number'}"
        key = own if draft.parent is None else f"{draft.parent.key}|{own}"
    return key if len(key) <= LONGEST_KEY else f"{key[: LONGEST_KEY // 2]}…{sha256(key)[:32]}"


def build_sections(drafts: Iterable[Draft], warnings: list[str]) -> Sequence[Section]:
    """Build sections from drafts. An earlier level without text that recurs with text is a table of contents and is
    dropped."""
    given = _without_back_matter(list(drafts), warnings)
    for draft in given:
        if draft.content is None:
            draft.content = draft.body.content()
    given = _in_tree_order(_without_contents(_in_tree_order(given), warnings))
    for draft in given:
        _drop_entries(draft)
    taken: dict[str, Draft] = {}
    counts: Counter[str] = Counter()
    siblings: Counter[Draft | None] = Counter()
    sections = []
    for draft in given:
        base = draft.key = key_of(draft)
        while draft.key in taken:
            counts[base] += 1
            draft.key = f"{base}~{counts[base] + 1}"
        if draft.key != base and draft.number:
            warnings.append(f"{draft.name} has the same number as {taken[base].name}. Its key is {draft.key}.")
        elif not draft.number:
            warnings.append(
                f"{draft.name} has no number{' and recurs' if draft.key != base else ''}. Its key is {draft.key}."
            )
        taken[draft.key] = draft
        draft.order = siblings[draft.parent] if draft.order is None else draft.order
        siblings[draft.parent] += 1
        lowest = draft.parent.level + 1 if draft.parent else 1
        draft.level = max(lowest, draft.given_level or 0)
        sections.append(_section(draft))
    return sections


def _section(draft: Draft) -> Section:
    content = draft.content or Content()
    status = (
        draft.status or find_status(draft.title) or (find_status(content.text) if len(content.text) < 200 else None)
    )
    if status is None and not content.text and not draft.children:
        if any("repealed" in note.text[:200].lower() for note in content.notes):
            status = "repealed"
        elif _STATES.search(draft.title):
            content = replace(content, text=draft.title)
    return Section(
        draft.key, draft.number, draft.title, draft.kind, draft.level, draft.parent.key if draft.parent else None,
        draft.order or 0, content.text, content.subsections, content.tables, content.citations, content.notes, status,
        (draft.line, draft.last_line or draft.line) if draft.line else None, file=draft.file,
    )  # fmt: skip


def _in_tree_order(drafts: Sequence[Draft]) -> list[Draft]:
    """Parents before children, and siblings in their given order."""
    kept = set(drafts)
    below: dict[Draft | None, list[Draft]] = defaultdict(list)
    for draft in drafts:
        draft.parent = draft.parent if draft.parent in kept else None
        below[draft.parent].append(draft)
    for draft in drafts:
        draft.children = below[draft]
    ordered: list[Draft] = []
    waiting: list[Draft] = []
    siblings = below[None]
    while siblings or waiting:
        waiting += sorted(siblings, key=lambda draft: inf if draft.order is None else draft.order)[::-1]
        ordered.append(waiting.pop())
        siblings = ordered[-1].children
    return ordered


def _without_contents(drafts: Sequence[Draft], warnings: list[str]) -> Sequence[Draft]:
    """Drop duplicates: entries of a table of contents within the text, and sections repeated word for word."""
    groups: dict[str, list[Draft]] = defaultdict(list)
    left: dict[Draft, Draft] = {}
    first: dict[tuple[str, str, str], Draft] = {}
    holding: set[Draft] = set()
    for draft in drafts:
        draft.key = key_of(draft)
        groups[draft.key].append(draft)
        if not draft.text:
            continue
        twin = first.setdefault((draft.key, _normalize(draft.title), draft.text), draft)
        if twin is not draft and draft.number:
            left[draft] = twin
            warnings.append(f"{draft.name} is dropped. It repeats {twin.name} word for word.")
            continue
        above: Draft | None = draft
        while above is not None and above not in holding:
            holding.add(above)
            above = above.parent
    meant = {key: next((each for each in group if each in holding), group[-1]) for key, group in groups.items()}
    # Contents may list sections without the articles that they are in.
    numbered: dict[tuple[str, str], list[Draft]] = defaultdict(list)
    for draft in holding:
        numbered[draft.kind, draft.number].append(draft)
    for draft in drafts:
        if not draft.number or draft in holding or draft in left:
            continue
        if meant[draft.key] is not draft:
            left[draft] = meant[draft.key]
            continue
        same = [each for each in numbered[draft.kind, draft.number] if is_same_heading(draft.title, each.title)]
        if len(same) == 1:
            left[draft] = same[0]
    if listed := [draft for draft in left if not draft.text]:
        warnings.append(
            f"{len(listed):,} headings without text, from {listed[0].name}, are a table of contents. "
            "They recur with text."
        )
    for draft in drafts:
        if draft.parent in left:
            draft.parent = left[draft.parent]
    return [draft for draft in drafts if draft not in left]


def _without_back_matter(drafts: Sequence[Draft], warnings: list[str]) -> list[Draft]:
    """Drop the levels that are no law, such as ``Appendix A: Code comparative table``, with those below them."""
    left: set[Draft] = set()
    for draft in drafts:
        if BACK_MATTER.fullmatch(draft.title):
            warnings.append(f"{draft.name} is left out. {quoted(draft.title)} is not law.")
            left.add(draft)
        elif draft.parent in left:
            left.add(draft)
    return [draft for draft in drafts if draft not in left]


def _drop_entries(draft: Draft) -> None:
    """Drop the table of contents from the text of a level: lines in a row that are the headings of levels below it."""
    if not draft.children or draft.body.tables:
        return
    below = {(each.number, _normalize(each.title)) for child in draft.children for each in (child, *child.children)}
    lines = draft.body.lines
    found = [parse_heading(line) for line in lines]
    entries = [place for place, each in enumerate(found) if each and (each.number, _normalize(each.title)) in below]
    if len(entries) < 2:
        return
    first, last = entries[0], entries[-1]
    if first and _CONTENTS.fullmatch(lines[first - 1]):
        first -= 1
    kept, after = Body(notes=draft.body.notes), [*lines[:first], *lines[last + 1 :]]
    references = next((place for place, line in enumerate(after) if _REFERENCES.fullmatch(line)), len(after))
    for line in after[:references]:
        kept.add(line)
    kept.notes += [Note(line, "Cross References") for line in after[references + 1 :]]
    draft.content = kept.content()
