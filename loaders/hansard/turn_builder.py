"""The text of a turn while it is built, with the speaker of each part."""

from __future__ import annotations

import re
from datetime import time
from typing import Final, Literal, NamedTuple

from lxml.etree import _Element

from loaders.hansard.offices import is_nobody, office_of
from loaders.hansard.paragraphs import EDGES, clock, to_line
from loaders.hansard.sitting_model import Talker, Utterance, UtteranceKind

_REMARK: Final = re.compile(
    r"[^.?!:;]{1,80}\binterjecting[\s—–-]*"
    r"|(?:Sitting|Proceedings) suspended (?:from|at|until)\b.*"
    r"|(?:House|Senate|Main Committee|Federation Chamber|Committee) adjourned at\b.*"
    r"|Debate \((?:on motion )?by .{1,80}\) (?:interrupted|adjourned)\W*"
    r"|Debate (?:interrupted|adjourned)\W*"
    r"|The (?:honou?rable )?(?:member|senator) for .{1,60} then left the chamber\W*"
    r"|Leave (?:not )?granted\b[^.]{0,60}\W*"
    r"|(?:(?:Original )?[Qq]uestion|Motion|Amendments?)(?:, by leave,| so| \([^()]{1,80}\))*"
    r" (?:put|resolved|agreed to|negatived|withdrawn)\b.{0,60}"
    r"|Bills? read an? (?:first|second|third) time\W*|Bills?, as amended,(?: be)? agreed to\W*"
    r"|Consideration (?:interrupted|adjourned)\b.*|An incident having occurred .{1,60}"
    r"|A division having been called .*|The bells having been rung\b.*"
    r"|Honourable (?:members|senators) having stood .{1,60}|\(Quorum formed\)\W*"
    r"|Ordered that the bills? be .*|Message from the Governor-General .*announced\W*"
)
"""Paragraphs that the record itself has within a speech, word for word."""
_REMARK_WORDS: Final = re.compile(
    r"interjecting|suspended|adjourned|interrupted|left the chamber|granted|put|resolved|agreed to|negatived|withdrawn"
    r"|read a|Ordered|announced|having|Quorum"
)
_INCORPORATED: Final = re.compile(r"\bThe [^.?!]{1,80}\bread as follows\W*\Z")
"""The end of the paragraph before a document that a member has had printed by leave."""
_ITEM: Final = re.compile(r"[\"'“”‘’«»„*•·—–-]|\(?[A-Za-z0-9]{1,4}[.)]|\[")
"""The beginning of a paragraph that goes on with a list or a quotation."""
_LONGEST_REMARK: Final = 200
_NAMES: Final = {"metadata": "name.metadata"}
_BRACKETED: Final = frozenset(("electorate", "role"))
_FLAGS: Final = {"1": True, "0": False}


class Talk(NamedTuple):
    """The head of some words: speaker, time and page."""

    talker: Talker
    time: time | None = None
    page: str | None = None


class _Beginning(NamedTuple):
    """The beginning of words of one speaker."""

    kind: UtteranceKind
    talk: Talk | None
    start: int
    """Offset in the text of the turn."""
    by_form: bool = False
    """Whether only the form of the paragraph names the speaker."""


class Turn:
    """The text of an unfinished turn. The speaker who has the floor continues after interruptions."""

    def __init__(self, floor: Talk, kind: UtteranceKind = "turn") -> None:
        self.speaker = floor.talker
        self.floor = floor
        """The speaker of the paragraphs that name nobody."""
        self.kind = kind
        self._passing = False
        """Whether the current words end with their paragraph, after which another may speak."""
        self._quoting: Literal["document", "paragraphs"] | None = None
        """The form of the quotation that an interjection opened by a colon, and that ends with it."""
        self._paragraphs: list[str] = []
        self._length = 0
        self._begun = [_Beginning(kind, floor, 0)]

    def begin(
        self, kind: UtteranceKind, talk: Talk | None = None, *, passing: bool | None = None, by_form: bool = False
    ) -> None:
        """Start words of another speaker, or of the same one after an interruption.

        A continuation takes the floor, but not one of the chair within the turn of a member. Words in `passing` end
        with their paragraph: of a crowd, of the record, or by default of an interjection.
        """
        self.kind, self._quoting = kind, None
        self._passing = kind in ("interjection", "remark") if passing is None else passing
        if kind == "continuation" and talk is not None:
            if office_of(talk.talker) is None or office_of(self.speaker) is not None:
                self.floor = talk
            else:
                self._passing = True
        self._begun.append(_Beginning(kind, talk, self._length, by_form))

    def take_floor(self, talk: Talk) -> None:
        """Start words of a person who keeps the floor, named by the form of a paragraph."""
        self.begin("continuation", talk, passing=False, by_form=True)
        self.floor = talk

    def named(self, talk: Talk) -> None:
        """Add details about the first speaker."""
        self.floor, self.speaker = talk, talk.talker
        self._begun[0] = _Beginning(self._begun[0].kind, talk, 0)

    def add(self, paragraph: str) -> None:
        """Append a paragraph to the current speaker's words."""
        self._paragraphs.append(paragraph)
        self._length += len(paragraph) + 1

    def resume(
        self, paragraph: str, speaking: tuple[UtteranceKind, Talk | None] | None = None, *, document: bool = False
    ) -> None:
        """Append a paragraph without a name: a remark of the record, or words of the speaker who has the floor.

        `speaking` is the speaker of the element around it, if that is not the whole turn. A `document` is a quotation,
        a list or a table.
        """
        if self._is_remark(paragraph):
            self.begin("remark")
        elif self._is_document_announced():
            self._begin_document()
        elif speaking is not None and speaking[1] is not None and self._is_tabled(paragraph, speaking[1]):
            self._return_floor()
        elif speaking is not None:
            if self.kind == "remark" or (self._passing and self._begun[-1].by_form):
                self.begin(*speaking)
        elif self._passing:
            self._go_on(paragraph, document)
        elif self._quoting == "document" and not document:
            self._return_floor()  # the list or quotation of an interjection has ended, and with it the interjection
        elif self._quoting == "paragraphs" and not document and _ITEM.match(paragraph) is None:
            self._passing = True
            self._go_on(paragraph, document)
        self.add(paragraph)

    def _go_on(self, paragraph: str, document: bool) -> None:
        """Start a paragraph that names nobody, after an interruption.

        After an interjection the record mostly names the next speaker: a paragraph without a name may be more of the
        interjection. Of ten such paragraphs in ten days of 1920 to 2015, five were. So they stay with nobody, except
        for documents, after a colon, and where the text has the name.
        """
        kind, talk = self._find_before()
        own = kind in ("turn", "continuation") and not self._ends_open()
        if own or _is_named(paragraph, self.floor.talker.name):
            self._return_floor()
        elif self._ends_open() and talk is not None:
            self.begin(kind, Talk(talk.talker), passing=False)
            self._quoting = "document" if document else "paragraphs"
        elif document:
            self._return_floor()
        else:
            self.begin("unattributed", passing=False)

    def _find_before(self) -> tuple[UtteranceKind, Talk | None]:
        """Find who spoke before a remark of the record, or before a crowd called out."""
        for number, (kind, talk, *_) in reversed([*enumerate(self._begun)]):
            crowd = kind == "interjection" and talk is not None and is_nobody(talk.talker.name)
            if number == 0 or (kind != "remark" and not crowd):
                return kind, talk
        return self.kind, self.floor

    def _ends_open(self) -> bool:
        """Whether the last paragraph announces a quotation."""
        return self.kind != "remark" and bool(self._paragraphs) and self._paragraphs[-1].rstrip().endswith(":")

    def _return_floor(self) -> None:
        self.kind, self._passing, self._quoting = "continuation", False, None
        self._begun.append(_Beginning("continuation", Talk(self.floor.talker), self._length))

    def proceed(self, paragraph: str) -> None:
        """Append a paragraph without a name where each new speaker is named: a remark, or words of the last one named.

        The last one named is the one who spoke before a remark of the record or before a crowd called out.
        """
        if self._is_remark(paragraph):
            self.begin("remark")
        elif self._is_document_announced():
            self._begin_document()
        elif self.kind == "remark" or (self._passing and self._begun[-1].by_form):
            kind, talk, *_ = next(each for each in reversed(self._begun) if each.kind != "remark" and not each.by_form)
            self.begin("continuation" if kind == "turn" else kind, Talk(talk.talker) if talk else None)
        self.add(paragraph)

    def remark(self, paragraph: str) -> None:
        """Append words of the record without a speaker."""
        if self.kind != "remark":
            self.begin("remark")
        self.add(paragraph)

    def _is_remark(self, paragraph: str) -> bool:
        if is_remark(paragraph):
            return True
        # The question that the line before it puts: That the bill be now read a second time.
        return self.kind == "remark" and paragraph.startswith("That ") and self._paragraphs[-1].endswith(":")

    def _is_tabled(self, paragraph: str, speaking: Talk) -> bool:
        """Whether a document of the member who has the floor begins, within the element of the chair."""
        return (
            self.floor.talker is not speaking.talker
            and office_of(speaking.talker) is not None
            and (found := _INCORPORATED.search(paragraph)) is not None
            and not any(map(str.isalnum, paragraph[: found.start()]))
        )

    def _is_document_announced(self) -> bool:
        """Whether the chair has just said that a document of a member is printed: it is not in the chair's words."""
        if not self._paragraphs or _INCORPORATED.search(self._paragraphs[-1]) is None:
            return False
        _, talk = self._find_before() if self.kind == "remark" else self._begun[-1][:2]
        return talk is not None and office_of(talk.talker) is not None

    def _begin_document(self) -> None:
        """Begin a document that is printed by leave: of the member who has the floor; nobody's in the chair's turn."""
        if office_of(self.floor.talker) is None:
            self._return_floor()
        else:
            self.begin("unattributed", passing=False)

    @property
    def length(self) -> int:
        """The length of the text so far, with the line break that further words follow."""
        return self._length

    def finished(self) -> tuple[str, list[Utterance]]:
        """Return the text and its utterances, which cover it completely."""
        text = "\n".join(self._paragraphs)
        starts = [min(each.start, len(text)) for each in self._begun]
        utterances = [
            Utterance(kind, start, end, talk.talker, talk.time, talk.page, by_form)
            if talk
            else Utterance(kind, start, end, by_form=by_form)
            for (kind, talk, _, by_form), start, end in zip(self._begun, starts, [*starts[1:], len(text)], strict=True)
        ]
        return text, utterances


def _is_named(paragraph: str, name: str) -> bool:
    """Whether a paragraph begins with a name as that of a talker, perhaps after an identifier: "A1 Mr ABEL—Yes"."""
    letters = r"\s*".join(map(re.escape, name.split()))
    return re.match(rf".{{0,30}}?{letters}\s*+(?:[.:]\s*+)?[-—–]", paragraph) is not None


def is_remark(paragraph: str) -> bool:
    """Whether a paragraph within a speech is the record's own text."""
    return (
        len(paragraph) <= _LONGEST_REMARK
        and _REMARK_WORDS.search(paragraph) is not None
        and _REMARK.fullmatch(paragraph) is not None
    )


def talk_of(element: _Element, senate: bool) -> Talk | None:
    """Return the talker in an element with a ``talker``, or None. ``senate``: seats are those of a State."""
    talker = element if element.tag in ("talker", "presenter") else next(element.iterchildren("talker"), None)
    if talker is None:
        return None
    found: dict[str, str] = {}
    for field in talker:
        tag = field.tag
        if tag == "name" and (number := field.get("nameid")):
            found.setdefault("name.id", number)
        if value := to_line(field) if len(field) else (field.text or "").strip(EDGES):
            if tag == "name":
                tag = _NAMES.get(field.get("role", ""), "name.display")
            elif tag in _BRACKETED:
                value = value.strip("()—–- ")
            found.setdefault(tag, value)
    get = found.get
    name_id, full_name, seat, page = get("name.id"), get("name.metadata"), get("electorate"), get("page.no")
    talker_of = Talker(
        get("name.display") or full_name or name_id or "",
        full_name,
        name_id,
        None if senate else seat,
        get("party"),
        seat if senate else None,
        get("role"),
        _FLAGS.get(get("in.gov", "")),
        _FLAGS.get(get("first.speech", "")),
    )
    return Talk(talker_of, clock(get("time.stamp")), page if page != "0" else None)
