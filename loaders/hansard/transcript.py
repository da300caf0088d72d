"""The transcript of a sitting day, read in the order of the file.

One traversal serves all schemas: 2.0 and 2.1 have ``para`` and siblings, 2.2 has bodies (`schema_2_2`), and the
SGML-like files have the names of 2.0 (`sgml`). Words that no rule places become procedural text, so that no word is
lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache, partial
from typing import Final, cast

from lxml.etree import _Element

from loaders.hansard import schema_2_2
from loaders.hansard.bold_names import (
    BoldName,
    describe_decisions,
    describe_open,
    find_talker,
    is_same_name,
    read_bold_name,
)
from loaders.hansard.debate_headings import info_of, parse_heading
from loaders.hansard.divisions import find_question, parse_division
from loaders.hansard.offices import office_of
from loaders.hansard.paragraphs import clock, get_paragraphs, squeeze, to_line
from loaders.hansard.sitting_model import (
    Debate,
    Division,
    Procedure,
    Question,
    Speech,
    SpeechKind,
    Talker,
    UtteranceKind,
)
from loaders.hansard.turn_builder import Talk, Turn, talk_of

_TURNS: Final[dict[str, tuple[SpeechKind, SpeechKind]]] = {
    "speech": ("speech", "speech"),
    "question": ("question", "writtenQuestion"),
    "answer": ("answer", "writtenAnswer"),
}
"""The kind of a turn: in the chamber, and among the answers printed with the record."""
_DEBATE: Final = re.compile(
    r"debate|(?:sub)?debate\.(?:sub)?\d+|petition(?:\.gro?u?p)?|sso|qwn|question\.block|answer\.to\.qon|answers\.to\.questions"
)
_VENUES: Final = {"maincomm.xscript": "Main Committee", "fedchamb.xscript": "Federation Chamber"}
_HEADING: Final = re.compile(r"HPS-\w*Debate")
_ISO_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_SECTIONS: Final = frozenset(("business.start", "proctext", "adjournment"))
_INSETS: Final[dict[str, UtteranceKind]] = {"interjection": "interjection", "continue": "continuation"}
_MOVER: Final = ("name", "electorate", "role", "time.stamp")
_HOLDING: Final = (
    "speech",
    "question",
    "answer",
    "interjection",
    "continue",
    "talk.start",
    "motionnospeech",
    "division",
)
_PARAGRAPHS: Final = frozenset(("para", "p"))
_TURNS_BEFORE: Final = 3
"""Turns before a division in which its question is sought."""
_KNOWN: Final = frozenset(
    (
        "para",
        "p",
        "quote",
        "list",
        "motion",
        "table",
        "amendments",
        "amendment",
        "interrupt",
        "body",
        "presenter.block",
        "separator",
        "graphic",
    )
)


class Transcript:
    """The parts of a day that have been read."""

    def __init__(self, senate: bool, openings: Sequence[str] = ()) -> None:
        self.debates: list[Debate] = []
        self.speeches: list[Speech] = []
        self.procedures: list[Procedure] = []
        self.divisions: list[Division] = []
        self.warnings: list[str] = []
        self._senate = senate
        self._openings = openings
        self._venue: str | None = None
        self._written = False
        self._children: dict[tuple[int, ...], int] = {}
        self._titles: dict[tuple[int, ...], str] = {}
        self._asked: dict[tuple[int, ...], int] = {}
        self._said: list[str] = []
        self._lines = (0, 0)
        self._root: _Element | None = None
        self._talkers: Sequence[Talker] | None = None
        self._decided: list[tuple[int, str]] = []
        """Lines and names of the paragraphs whose speaker is decided by their form."""
        self._cuts: dict[_Element, int] = {}
        """The length of the turn before each later element in it."""
        self._divided = (0, 0, 0)
        """After the last division: the number of procedural texts and of turns, and the offset in the last turn."""
        self._open: list[int] = []
        """Lines of the paragraphs whose speaker is left open."""

    def read(self, root: _Element) -> None:
        """Read all sections of a day."""
        self._root = root
        for section in root:
            if section.tag == "session.header":
                continue
            self._venue = _VENUES.get(section.tag)
            if self._venue is None and section.tag.endswith(".xscript") and section.tag != "chamber.xscript":
                self._venue = section.tag.removesuffix(".xscript")
            self._written = section.tag == "answers.to.questions"
            if self._written and info_of(section) is not None:
                self._debate(section, ())
            else:
                self._container(section, ())
        if self._decided:
            self.warnings.append(describe_decisions(self._decided))
        if self._open:
            self.warnings.append(describe_open(self._open))

    def _container(self, element: _Element, path: tuple[int, ...]) -> None:
        """Read the children of a section or debate."""
        self._loose(element.text, element)
        for child in element:
            self._child(child, path)
            self._loose(child.tail, child)
        self._flush(path)

    def _child(self, child: _Element, path: tuple[int, ...]) -> None:
        """Read one element of a section or debate."""
        tag = child.tag
        if tag in _TURNS:
            self._turn(child, _TURNS[tag][self._written], path)
        elif _is_debate(tag):
            self._debate(child, path)
        elif tag in ("interjection", "continue", "talk.start"):
            self._interjection(child, path)
        elif tag == "division":
            self._division(child, path)
        elif tag == "motionnospeech":
            self._motion(child, path)
        elif tag in ("debate.text", "subdebate.text"):
            self._headings(child, path)
        elif tag in _SECTIONS:
            self._flush(path)
            self._container(child, path)
            self._flush(path)
        elif tag == "day.start":
            if not _ISO_DAY.fullmatch(day := to_line(child)):
                self._say([day], child)
        elif tag == "title":
            if (title := to_line(child)) not in self._titles.get(path, ""):
                self._say([title], child)
        elif tag == "presenter":
            self._say((text for part in child for text in _spoken(part)), child)
        elif tag not in _PARAGRAPHS and next(child.iter(*_HOLDING), None) is not None:
            self.warnings.append(f"line {child.sourceline}: unknown element <{tag}>: its contents are read")
            if info_of(child) is not None:
                self._debate(child, path)
            else:
                self._container(child, path)
        elif not tag.endswith("info"):
            if tag not in _KNOWN:
                self.warnings.append(f"line {child.sourceline}: unknown element <{tag}>: kept as procedural text")
            self._say(get_paragraphs(child), child)

    def _loose(self, text: str | None, element: _Element) -> None:
        """Keep words between elements, where none are expected."""
        if text and not text.isspace():
            self._say([squeeze(text)], element)

    def _say(self, texts: Iterable[str], element: _Element) -> None:
        before = len(self._said)
        self._said += (text for text in texts if text)
        if len(self._said) > before:
            line = _line(element)
            self._lines = (self._lines[0] if before else line, _last_line(element))

    def _flush(self, path: tuple[int, ...]) -> None:
        """End the current procedural text."""
        if self._said:
            text = "\n".join(self._said)
            self._said.clear()
            self.procedures.append(Procedure(text, len(self.speeches), path, lines=self._lines, venue=self._venue))

    def _debate(self, element: _Element, above: tuple[int, ...]) -> None:
        """Read a debate, sub-debate, question block or petition."""
        self._flush(above)
        number = self._children[above] = self._children.get(above, 0) + 1
        path = (*above, number)
        heading = parse_heading(element, self._senate)
        self._titles[path] = heading.title
        self.debates.append(heading.debate(path, self._venue))
        self._say(heading.notes, element)
        self._container(element, path)

    def _headings(self, element: _Element, path: tuple[int, ...]) -> None:
        """Read the text under a heading of schema 2.2, which begins with the heading itself."""
        title = _plain(self._titles.get(path, ""))
        for block in schema_2_2.blocks(element.iterchildren()):
            texts = get_paragraphs(block)
            if _HEADING.fullmatch(block.get("class") or ""):
                texts = [text for text in texts if _plain(text) not in title]
            self._say(texts, block)

    def _turn(self, element: _Element, kind: SpeechKind, path: tuple[int, ...]) -> None:
        """Read a speech, question or answer."""
        start = next(element.iterchildren("talk.start"), None)
        talk = talk_of(start, self._senate) if start is not None else None
        if start is None or talk is None:
            self.warnings.append(
                f"line {element.sourceline}: a {element.tag} without a talker: kept as procedural text"
            )
            self._container(element, path)
            return
        self._flush(path)
        turn, after = Turn(talk), []
        if next(element.iterchildren("talk.text"), None) is not None:
            after = self._fill_bodies(turn, element)
            inner = [
                child for child in element if child.tag not in ("talk.start", "talk.text", "interjection", "continue")
            ]
        else:
            inner = list(element)
            _speak(turn, start)
            inner.remove(start)
            if element.text and not element.text.isspace():
                turn.add(squeeze(element.text))
        later = self._fill(turn, inner)
        answers = self._asked.get(path) if kind in ("answer", "writtenAnswer") else None
        ordinal = self._speech(turn, kind, path, element, answers)
        if kind in ("question", "writtenQuestion"):
            self._asked[path] = ordinal
        for each in later:
            self._child(each, path)
        self._say(after, element)
        self._flush(path)

    def _fill(self, turn: Turn, children: Iterable[_Element]) -> list[_Element]:
        """Add the elements after the first words to a turn. Return the later elements that are not part of its text."""
        later = []
        for child in children:
            tag = child.tag
            if tag == "talk.start":
                turn.begin("continuation", talk_of(child, self._senate))
                _speak(turn, child)
            elif tag in _INSETS:
                later += self._inset(turn, child)
            elif _is_apart(tag):
                self._cuts[child] = turn.length
                later.append(child)
            elif tag not in _PARAGRAPHS and next(child.iter("talker"), None) is not None:
                later += self._fill(turn, child)
            elif tag == "interrupt":
                for text in get_paragraphs(child):
                    turn.remark(text)
            else:
                self._block(turn, child)
            if (tail := child.tail) and not tail.isspace():
                turn.resume(squeeze(tail))
        return later

    def _fill_bodies(self, turn: Turn, element: _Element) -> list[str]:
        """Add the words in the bodies of a turn of schema 2.2. Return the paragraphs that belong to no turn."""
        return schema_2_2.fill(turn, element, self._senate, self._openings, self.warnings.append, self._by_form)

    def _block(self, turn: Turn, block: _Element, speaking: tuple[UtteranceKind, Talk | None] | None = None) -> None:
        """Add a block without a talker: of the name in bold that it begins with, else of the speaker around it."""
        texts = get_paragraphs(block)
        if block.tag in _PARAGRAPHS and (name := read_bold_name(block)) is not None:
            self._by_form(turn, name, block)
            turn.add(texts.pop(0))
        before = turn.kind
        for text in texts:
            turn.resume(text, speaking, document=block.tag not in _PARAGRAPHS)
        if turn.kind == "unattributed" and before != turn.kind:
            self._open.append(_line(block))

    def _by_form(self, turn: Turn, name: BoldName, block: _Element) -> None:
        """Start the words of a talker whom only the form of a paragraph names."""
        self._decided.append((_line(block), name.name))
        if name.kind == "turn":
            floor = turn.speaker if is_same_name(name.name, turn.speaker.name) else self._find_talker(name.name)
            turn.take_floor(Talk(floor))
            return
        talker = Talker(name.name) if name.kind in ("crowd", "chair") else self._find_talker(name.name)
        turn.begin("interjection", Talk(talker), by_form=True)

    def _find_talker(self, name: str) -> Talker:
        """Find the talker of a name among all of the file."""
        if self._talkers is None:
            found = (talk_of(each, self._senate) for each in ([] if self._root is None else self._root.iter("talker")))
            self._talkers = [talk.talker for talk in found if talk is not None]
        return find_talker(name, self._talkers)

    def _inset(self, turn: Turn, element: _Element) -> list[_Element]:
        """Add an interjection or continuation to a turn. Return the later elements in it."""
        start = next(element.iterchildren("talk.start"), None)
        talk = talk_of(start, self._senate) if start is not None else None
        turn.begin(_INSETS[element.tag], talk)
        if element.tag == "continue" and talk and talk.talker.name_id != turn.speaker.name_id:
            name = f"{talk.talker.name} continues in the turn of {turn.speaker.name}"
            self.warnings.append(f"line {element.sourceline}: {name}")
        return self._within(turn, element, start, (_INSETS[element.tag], talk))

    def _within(
        self, turn: Turn, element: _Element, start: _Element | None, speaking: tuple[UtteranceKind, Talk | None]
    ) -> list[_Element]:
        """Add the words of an interjection or continuation, of which it is known who is `speaking`.

        Returns the later elements in it.
        """
        later = []
        if (text := element.text) and not text.isspace():
            turn.add(squeeze(text))
        for child in element:
            if child is start:
                _speak(turn, child)
            elif child.tag in _INSETS:
                later += self._inset(turn, child)
            elif _is_apart(child.tag):
                self._cuts[child] = turn.length
                later.append(child)
            elif child.tag not in _PARAGRAPHS and next(child.iter("talker"), None) is not None:
                later += self._within(turn, child, None, speaking)
            else:
                self._block(turn, child, speaking)
            if (tail := child.tail) and not tail.isspace():
                turn.add(squeeze(tail))
        return later

    def _interjection(self, element: _Element, path: tuple[int, ...]) -> None:
        """Read words outside any turn: of the chair or of the clerk."""
        start = element if element.tag == "talk.start" else next(element.iterchildren("talk.start"), None)
        talk = talk_of(start, self._senate) if start is not None else None
        if start is None or talk is None:
            self._say(get_paragraphs(element), element)
            return
        self._flush(path)
        turn = Turn(talk, _INSETS.get(element.tag, "turn"))
        later: list[_Element] = []
        after: list[str] = []
        if element is start:
            _speak(turn, start)
        elif next(element.iterchildren("talk.text"), None) is not None:
            after = self._fill_bodies(turn, element)
        else:
            later = self._within(turn, element, start, (turn.kind, talk))
        self._speech(turn, "interjection", path, element)
        for each in later:
            self._child(each, path)
        self._say(after, element)

    def _motion(self, element: _Element, path: tuple[int, ...]) -> None:
        """Read a motion that is moved without a speech: its siblings are the mover's name, seat and office."""
        fields = {child.tag: to_line(child) for child in element.iterchildren(*_MOVER)}
        if not fields.get("name"):
            self._say(get_paragraphs(element), element)
            return
        self._flush(path)
        seat, role = (fields.get(tag, "").strip("()—–- ") or None for tag in ("electorate", "role"))
        talker = Talker(
            fields["name"], electorate=None if self._senate else seat, state=seat if self._senate else None, role=role
        )
        turn = Turn(Talk(talker, clock(fields.get("time.stamp"))))
        later = self._fill(turn, (child for child in element if child.tag not in _MOVER))
        self._speech(turn, "motion", path, element)
        for each in later:
            self._child(each, path)

    def _speech(
        self, turn: Turn, kind: SpeechKind, path: tuple[int, ...], element: _Element, answers: int | None = None
    ) -> int:
        """Add a finished turn. Return its ordinal."""
        text, utterances = turn.finished()
        ordinal, first = len(self.speeches) + 1, utterances[0]
        if not turn.speaker.name:
            self.warnings.append(f"line {element.sourceline}: the talker has no name")
        self.speeches.append(
            Speech(
                ordinal,
                kind,
                turn.speaker,
                text,
                utterances,
                path,
                first.time,
                first.page,
                answers,
                (_line(element), _last_line(element)),
            )
        )
        return ordinal

    def _division(self, element: _Element, path: tuple[int, ...]) -> None:
        """Read a division, and keep its other paragraphs as procedural text."""
        self._flush(path)
        division, beside = parse_division(element, path, len(self.speeches))
        self.divisions.append(replace(division, question=self._find_question(element, division.header)))
        last = len(self.speeches[-1].text) if self.speeches else 0
        self._divided = len(self.procedures), len(self.speeches), self._cuts.get(element, last)
        self._say(beside, element)
        self._flush(path)

    def _find_question(self, element: _Element, header: str) -> Question | None:
        """Find the question of a division: in its header, else in the words between the last division and it."""
        if (found := find_question(header, lambda _: True)) is not None:
            return Question(header[slice(*found)], *found)
        procedures, turns, offset = self._divided
        for number in range(len(self.procedures) - 1, procedures - 1, -1):
            procedure = self.procedures[number]
            if procedure.ordinal != len(self.speeches):
                break
            if (found := find_question(procedure.text, lambda _: True)) is not None:
                return Question(procedure.text[slice(*found)], *found, procedure=number)
        for ordinal in range(len(self.speeches), max(turns - 1, len(self.speeches) - _TURNS_BEFORE, 0), -1):
            speech = self.speeches[ordinal - 1]
            text = speech.text[: self._cuts.get(element)] if ordinal == len(self.speeches) else speech.text
            start = offset if ordinal == turns else 0
            if (found := find_question(text[start:], partial(_is_of_chair, speech, start))) is not None:
                first, last = start + found[0], start + found[1]
                return Question(text[first:last], first, last, speech=ordinal)
        return None


def _is_of_chair(speech: Speech, start: int, at: int) -> bool:
    """Whether the words at `start` + `at` of a speech are of the chair, or of the record itself."""
    at += start
    for each in speech.utterances:
        if each.start <= at < each.end:
            return each.kind == "remark" or (each.talker is not None and office_of(each.talker) is not None)
    return False


@cache
def _is_apart(tag: str) -> bool:
    """Whether an element does not belong to the turn around it."""
    return tag in _TURNS or tag in ("division", "motionnospeech") or _is_debate(tag)


def _is_debate(tag: str) -> bool:
    return _DEBATE.fullmatch(tag) is not None


def _speak(turn: Turn, start: _Element) -> None:
    """Add the words in a ``talk.start`` to the talker whom it names."""
    if start.text and not start.text.isspace():
        turn.add(squeeze(start.text))
    for child in start:
        if child.tag != "talker":
            for text in get_paragraphs(child):
                turn.add(text)
        if (tail := child.tail) and not tail.isspace():
            turn.add(squeeze(tail))


def _spoken(element: _Element) -> Iterator[str]:
    """Yield the words of an element, without those that name a talker."""
    for child in element.iterchildren() if element.tag == "talk.start" else (element,):
        if child.tag != "talker":
            yield from get_paragraphs(child)


def _plain(text: str) -> str:
    """Normalize a text for comparison: its words alone."""
    return " ".join(text.split()).casefold()


def _line(element: _Element) -> int:
    return cast("int | None", element.sourceline) or 0  # the stubs lack its type


def _last_line(element: _Element) -> int:
    while len(element):
        element = element[-1]
    return _line(element)
