"""One component of a corpus, the sitting in a file, as values.

A turn is an element ``u``. Its words are those of its ``seg``; all else in it (notes, applause, calls, gaps) is a
remark of the record, or an interjection where the note names who called out. Elements outside ``u`` are procedural
text, except the name of the next speaker and the time.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date, time
from typing import Final, Literal

from lxml.etree import _Element

from kg.errors import SourceError
from kg.text import quoted
from loaders.hansard.paragraphs import clock, squeeze
from loaders.hansard.parlamint_lists import find_houses
from loaders.hansard.parlamint_tei import (
    children,
    descendants,
    find_code,
    find_first,
    get_description,
    get_refs,
    get_words,
    id_of,
    language_of,
    last_line,
    line_of,
    own_language,
    tag_of,
)
from loaders.hansard.sitting_model import UtteranceKind
from loaders.readers.cells import parse_digits, quote

_EVENTS: Final = frozenset(("kinesic", "vocal", "incident", "gap", "writing", "shift"))
_SKIPPED: Final = frozenset(("pb", "lb", "cb", "milestone", "anchor"))
_ANNOTATED: Final = ("s", "w", "pc")
_CALLS: Final = re.compile(r"interruption|interjection|speaking", re.IGNORECASE)
"""Types of notes and events in which the record quotes who called out."""
_NAMED: Final = re.compile(r"\s*+(?P<open>[(\[]?)\s*+(?P<name>[^:()\[\]]{2,80}?)\s*+:\s*+(?P<words>\S.*)", re.DOTALL)
_LONGEST_NAME: Final = 8
"""Words in a name with titles."""
_ANOTHER: Final = re.compile(r"[\u2013\u2014-]\s+[^\W\d_][^:\u2013\u2014!?]{1,60}:\s")
"""A second name in a note: whose words are whose is unclear then."""
_NUMBER: Final = re.compile(r"\s*\d*")
_CLOCK: Final = re.compile(r"\d{4}-\d\d-\d\dT(\d\d:\d\d(?::\d\d)?)")

Level = Literal["term", "session", "meeting", "sitting"]
_LEVELS: Final[Sequence[Level]] = ("term", "session", "meeting", "sitting")


@dataclass(frozen=True, slots=True)
class Part:
    """A paragraph of a turn: the speaker's own words (kind ``turn``), a remark, or an interjection with its name."""

    kind: UtteranceKind
    text: str
    language: str | None
    name: str | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """An utterance as the corpus has it: one speaker, with the notes of the record in between."""

    ordinal: int
    """Position of the turn in its file, from 1."""
    id: str
    speaker: str | None
    """Identifier of the speaker within the corpus."""
    name: str | None
    """The name under which the record has the speaker."""
    roles: Sequence[str]
    parts: Sequence[Part]
    debate: tuple[int, ...]
    time: time | None
    page: str | None
    source: str | None
    """Web address of the page in the official record."""
    lines: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the sitting with a heading."""

    path: tuple[int, ...]
    title: str | None
    language: str | None
    page: str | None


@dataclass(frozen=True, slots=True)
class Remark:
    """Words of the record between the turns."""

    text: str
    ordinal: int
    """The ordinal of the turn before it (0: before all turns)."""
    debate: tuple[int, ...]
    language: str | None
    page: str | None
    lines: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Component:
    """A sitting, as its file has it."""

    id: str
    code: str
    """Code of the corpus: AT, ES-GA."""
    date: date
    title: str | None
    citation: str
    """The official record that the words are from."""
    country: str | None
    """Name of the country or region, as recorded."""
    language: str | None
    source: str | None
    numbers: dict[Level, int]
    organizations: Sequence[str]
    """Identifiers of organizations and their terms that the meeting refers to."""
    house: tuple[str, str | None] | None
    """The house that meets, lower or upper, with its name; None if the header names none or both."""
    sections: Sequence[Section]
    turns: Sequence[Turn]
    remarks: Sequence[Remark]
    warnings: Sequence[str]

    @property
    def number(self) -> str | None:
        """The rest of its identifier after corpus and day: the number of the sitting. None without one."""
        rest = self.id.removeprefix(f"ParlaMint-{self.code}").lstrip("_-.").removesuffix(".xml")
        return rest.removeprefix(self.date.isoformat()).strip("_-.") or None


def parse_component(root: _Element, name: str) -> Component:
    """Parse the root of a component. `name` is that of its file. Raises SourceError if it is none that can be read."""
    annotated = next(descendants(root, *_ANNOTATED), None)
    if annotated is not None:
        raise SourceError(
            f"{name}, line {line_of(annotated)}: the linguistically annotated version of a corpus "
            f"(<{tag_of(annotated)}>), whose words are not verbatim. Load the version without .ana."
        )
    identifier = (id_of(root) or name.rpartition("/")[2]).removesuffix(".xml")
    code = find_code(identifier, name)
    if code is None:
        raise SourceError(
            f"{name}: no code of a corpus in the identifier {quoted(identifier)}. Expected ParlaMint-XX_..."
        )
    day = _find_day(root, identifier)
    if day is None:
        raise SourceError(f"{name}: no date of the sitting in the header or the identifier")
    header = find_first(root, "teiHeader")
    if header is None:
        raise SourceError(f"{name}: no teiHeader")
    language = own_language(root)
    bibliography = find_first(header, "fileDesc/sourceDesc/bibl")
    title = _find_title(find_first(header, "fileDesc/titleStmt"), language)
    body = _Body(identifier, language)
    text = find_first(root, "text/body")
    if text is not None:
        body.read(text, ())
        body.flush(())
    if not body.turns:
        body.warnings.append("the file contains no speeches")
    place = next((each for each in descendants(header, "name") if each.get("type") == "country"), None)
    return Component(
        identifier,
        code,
        day,
        title,
        ", ".join(filter(None, (_find_title(bibliography, language) or title or identifier, day.isoformat()))),
        get_words(place) if place is not None else None,
        language,
        _find_source(bibliography),
        _find_numbers(header),
        tuple(dict.fromkeys(_find_organizations(header))),
        _find_house(header),
        body.sections,
        body.turns,
        body.remarks,
        body.warnings,
    )


def _find_day(root: _Element, identifier: str) -> date | None:
    found = [
        each
        for path in ("settingDesc", "bibl")
        for part in descendants(root, path)
        for each in descendants(part, "date")
    ]
    stated = [each.get("when") or each.get("from") or "" for each in found]
    match = re.search(r"_(\d{4}-\d\d-\d\d)", identifier)
    for text in (*stated, match[1] if match else ""):
        try:
            return date.fromisoformat(text[:10])
        except ValueError:
            continue
    return None


def _find_title(element: _Element | None, language: str | None) -> str | None:
    """Find the subtitle, which names the sitting, in the language of the file; else the main title."""
    titles = [] if element is None else [each for each in children(element, "title") if get_words(each)]
    titles.sort(key=lambda each: (each.get("type") != "sub", language_of(each) != language))
    return get_words(titles[0]) if titles else None


def _find_source(bibliography: _Element | None) -> str | None:
    found = [] if bibliography is None else list(descendants(bibliography, "idno"))
    found.sort(key=lambda each: each.get("subtype") != "parliament")
    return next((address for each in found if (address := get_words(each)).startswith(("https://", "http://"))), None)


def _find_numbers(header: _Element) -> dict[Level, int]:
    numbers: dict[Level, int] = {}
    for meeting in descendants(header, "meeting"):
        number = parse_digits(_NUMBER.match(meeting.get("n") or "")[0])  # type: ignore[index]  # "9-upper"
        for level in _LEVELS:
            if number is not None and f"parla.{level}" in get_refs(meeting, "ana"):
                numbers.setdefault(level, number)
    return numbers


def _find_house(header: _Element) -> tuple[str, str | None] | None:
    meetings = [(find_houses(meeting), meeting) for meeting in descendants(header, "meeting")]
    houses = {house for found, _ in meetings for house in found}
    if len(houses) != 1:
        return None
    # A meeting that is nothing but that of a house has its name.
    names = (get_words(meeting) for found, meeting in meetings if found and len(get_refs(meeting, "ana")) == 1)
    return houses.pop(), next((name for name in names if name and not any(map(str.isdigit, name))), None)


def _find_organizations(header: _Element) -> list[str]:
    meetings = list(descendants(header, "meeting"))
    stated = [each for meeting in meetings for each in get_refs(meeting, "corresp")]
    return stated + [each for meeting in meetings for each in get_refs(meeting, "ana") if not each.startswith("parla.")]


@dataclass(slots=True)
class _Body:
    """The parts of a body that have been read."""

    identifier: str
    language: str | None
    sections: list[Section] = field(default_factory=list)
    turns: list[Turn] = field(default_factory=list)
    remarks: list[Remark] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    _ids: set[str] = field(default_factory=set)
    _children: dict[tuple[int, ...], int] = field(default_factory=dict)
    _page: str | None = None
    _source: str | None = None
    _name: tuple[str, _Element] | None = None
    """The name of the next speaker, with its element."""
    _time: time | None = None
    _said: list[tuple[str, _Element]] = field(default_factory=list)

    def read(self, element: _Element, path: tuple[int, ...]) -> None:
        """Read the children of a body or ``div``."""
        self._loose(element.text, element)
        for child in element:
            tag = tag_of(child)
            if tag == "div":
                self._section(child, path)
            elif tag == "u":
                self._turn(child, path)
            elif tag in _SKIPPED:
                self._turn_page(child)
            elif tag == "note":
                self._note(child)
            elif tag in _EVENTS:
                self._say(get_description(child, self.language), child)
            elif next(descendants(child, "u"), None) is not None:
                self.warnings.append(f"line {line_of(child)}: unknown element <{tag}>: its contents are read")
                self.read(child, path)
            else:
                if tag not in ("head", "p", "listPerson", "list"):
                    self.warnings.append(f"line {line_of(child)}: unknown element <{tag}>: kept as procedural text")
                self._say(get_words(child), child)
            self._loose(child.tail, child)

    def flush(self, path: tuple[int, ...]) -> None:
        """End the current procedural text, with the name of a speaker who does not speak."""
        self._drop_name()
        if self._said:
            texts = [text for text, _ in self._said]
            first, last = self._said[0][1], self._said[-1][1]
            self.remarks.append(
                Remark(
                    "\n".join(texts),
                    len(self.turns),
                    path,
                    language_of(first),
                    self._page,
                    (line_of(first), last_line(last)),
                )
            )
            self._said.clear()

    def _say(self, text: str, element: _Element) -> None:
        if text:
            self._said.append((text, element))

    def _drop_name(self) -> None:
        if self._name is not None:
            self._said.append(self._name)
            self._name = None

    def _loose(self, text: str | None, element: _Element) -> None:
        if text and not text.isspace():
            self._say(squeeze(text), element)

    def _turn_page(self, element: _Element) -> None:
        if tag_of(element) == "pb":
            self._page = element.get("n") or self._page
            if (element.get("source") or "").startswith(("https://", "http://")):
                self._source = element.get("source")

    def _note(self, element: _Element) -> None:
        text = get_words(element)
        if element.get("type") == "speaker" and text:
            self._drop_name()
            self._name = text, element
            return
        self._say(text, element)
        if (stated := next((each for each in descendants(element, "time") if each.get("when")), None)) is not None:
            match = _CLOCK.match(stated.get("when") or "")
            self._time = clock(match[1]) if match else self._time

    def _section(self, element: _Element, above: tuple[int, ...]) -> None:
        """Read a ``div``. One without a heading adds nothing to the structure around it."""
        head = next(children(element, "head"), None)
        title = get_words(head) if head is not None else ""
        if head is None or not title:
            self.read(element, above)
            return
        self.flush(above)
        number = self._children[above] = self._children.get(above, 0) + 1
        path = (*above, number)
        self.sections.append(Section(path, title, language_of(head), self._page))
        self._loose(element.text, element)
        tail = head.tail
        element.remove(head)
        if tail and not tail.isspace():
            self._say(squeeze(tail), element)
        element.text = None
        self.read(element, path)
        self.flush(path)

    def _turn(self, element: _Element, path: tuple[int, ...]) -> None:
        name, self._name = self._name, None
        at, self._time = self._time, None
        self.flush(path)
        page, source = self._page, self._source
        reader = _Words(self)
        reader.read(element)
        reader.end(element)
        if not reader.parts:
            self.warnings.append(f"line {line_of(element)}: an utterance without words is left out")
            self._name = name
            return
        ordinal = len(self.turns) + 1
        speakers = get_refs(element, "who")
        noted = name[0].rstrip(" :\u2014\u2013-") or None if name is not None else None
        if len(speakers) > 1:
            stated = (element.get("who") or "").split()
            if all(each.startswith("#") for each in stated):
                what, noted = "an utterance of several speakers", noted or ", ".join(speakers)
            else:  # such as who="#Jane Example", with a reference and a word
                what, noted = "the reference to the speaker is malformed", noted or " ".join(speakers)
            self.warnings.append(
                f"line {line_of(element)}: {what} (who={quote(' '.join(stated))}): no person is linked, and the name "
                "is kept as recorded"
            )
        self.turns.append(
            Turn(
                ordinal,
                self._identify(element, ordinal),
                speakers[0] if len(speakers) == 1 else None,
                noted,
                tuple(get_refs(element, "ana")),
                reader.parts,
                path,
                at,
                page,
                source,
                (line_of(element), last_line(element)),
            )
        )

    def _identify(self, element: _Element, ordinal: int) -> str:
        """Return the identifier of an utterance: its own if that names the file, else one by its position."""
        own = id_of(element)
        if own is None or not own.startswith(self.identifier) or own in self._ids:
            own = f"{self.identifier}.u{ordinal}"
            while own in self._ids:
                own += "-2"
        self._ids.add(own)
        return own


@dataclass(slots=True)
class _Words:
    """The words of one utterance."""

    body: _Body
    parts: list[Part] = field(default_factory=list)
    _run: str = ""

    def read(self, element: _Element) -> None:
        """Read the contents of an element."""
        self._run += element.text or ""
        for child in element:
            tag = tag_of(child)
            if tag in _SKIPPED:
                self.body._turn_page(child)
            elif tag == "seg":
                self.end(element)
                self.read(child)
                self.end(child)
            elif tag == "note":
                self.end(element)
                self._insert(get_words(child), child)
            elif tag in _EVENTS:
                self.end(element)
                self._insert(get_description(child, self.body.language), child)
            else:
                self.read(child)
            self._run += child.tail or ""

    def end(self, element: _Element) -> None:
        """End the current run of the speaker's own words, which are directly in `element`."""
        if not self._run.isspace() and (text := squeeze(self._run)):
            self.parts.append(Part("turn", text, language_of(element)))
        self._run = ""

    def _insert(self, text: str, element: _Element) -> None:
        if text:
            name = find_caller(text, element.get("type"))
            self.parts.append(Part("interjection" if name else "remark", text, language_of(element), name))


def find_caller(text: str, kind: str | None) -> str | None:
    """Find the name in a note that quotes an interruption: ``Abg. Dr. Haider: Nein!``; None in any other note.

    In a note without a type the name must be in brackets with its words, and partly in capitals, as names of speakers
    are printed: ``(A señora PONTÓN MONDELO: Non.)``.
    """
    match = _NAMED.match(text)
    if match is None or len(match["name"].split()) > _LONGEST_NAME or _ANOTHER.search(match["words"]):
        return None
    if kind is not None:
        return match["name"] if _CALLS.search(kind) else None
    capitals = any(len(word) > 1 and word.isupper() for word in match["name"].split())
    return match["name"] if match["open"] and capitals and "," not in match["name"] else None
