"""Paragraphs that no markup gives to a talker, but that begin with a name in bold as a talker's do.

Old and converted files have them in the turn of another person: "Government members—No!", or a whole speech that
begins "Mr. EXAMPLE (Fictown) [4.15]. - I think". Who speaks is decided by this form alone, and reported.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from typing import Final, Literal, NamedTuple

from lxml.etree import _Element

from kg.text import join_first
from loaders.hansard.offices import is_chair, is_nobody
from loaders.hansard.paragraphs import describe_lines, get_paragraphs, get_run, squeeze
from loaders.hansard.sitting_model import Talker

_LISTED: Final = 12
_BOLD_STYLE: Final = re.compile(r"font-weight\s*:\s*(?:bold|[6-9]00)")
_TITLE: Final = (
    r"(?:The |Mr|Mrs|Ms|Miss|Dr|Sir|Dame|Senator|Hon|Honourable|Lord|Rev|Colonel|Major|Captain|Commander|General)\b"
)
_TITLES: Final = re.compile(rf"(?:{_TITLE}\.?\s*|Senator(?=[A-Z]{{2}}))+")
_ONLY_TITLE: Final = re.compile(rf"(?:{_TITLE}\.?\s*)+")
_NAME: Final = re.compile(r"(?:[A-ZÀ-Þ][\w'’.-]*|de|van|von)(?: (?:[A-ZÀ-Þ][\w'’.-]*|de|van|von)){0,4}")
_CAPITALS_AFTER: Final = re.compile(r"\s*(?:Mc|Mac)?[A-ZÀ-Þ][A-ZÀ-Þ'’-]+(?: [A-ZÀ-Þ][A-ZÀ-Þ'’-]+)*\b")
_QUALIFIED: Final = re.compile(
    r"\s*+(?:\([^()]*+\)\s*+)*+(?:[\[({T]?\s*+\d{1,2}[.:]\d\d\s*+(?:[ap]\.?\s?m\b\.?\s*+)?(?:[\])}]\s*+)?)?(?:[.,]\s*+)?"
    r"(?P<mark>[-—–]+\s*|:\s*)"
)
_CUT: Final = re.compile(r"\s*\([^()]*$")
"""An open bracket at the end: the head of a talker whose paragraph is damaged."""
_CAPITALS: Final = re.compile(r"(?=[^a-zß-öø-ÿ]*?[A-ZÀ-Þ]{2})[^a-zß-öø-ÿ]*+")
_PREFIXES: Final = re.compile(r"\b(?:Mc|Mac|de|van|von|De|Van|Von)(?=[A-Z ])")

Kind = Literal["crowd", "chair", "turn", "call"]


class BoldName(NamedTuple):
    """The name at the beginning of a paragraph, and how its form has somebody speak.

    ``turn``: the surname is in capitals, as that of a person who takes the floor; ``call``: it is not, as in
    an interjection.
    """

    name: str
    kind: Kind


def read_bold_name(paragraph: _Element) -> BoldName | None:
    """Return the name in bold that a paragraph begins with, if a dash follows as after the name of a talker."""
    bold = _find_bold(paragraph)
    if bold is None:
        return None
    texts = get_paragraphs(paragraph)
    if not texts or not texts[0].startswith(bold):
        return None
    text, name = texts[0], bold.partition("(")[0].rstrip(" :—–-")
    if _ONLY_TITLE.fullmatch(name) and (surname := _CAPITALS_AFTER.match(text, len(name))):
        name = text[: surname.end()]  # the conversion of the page may end the bold face after the title
    after, cut = _QUALIFIED.match(text, len(name)), _CUT.fullmatch(text, len(name))
    if not name or (after is None and cut is None):
        return None
    if after is not None and is_nobody(name):
        return BoldName(name, "crowd")
    if after is not None and after["mark"].startswith(":"):
        return None  # after a person, the form of lists of business: "Mr EXAMPLE: To move—"
    if is_chair(name):
        return BoldName(name, "chair")
    surname_of = _TITLES.match(name)
    if surname_of is None or _NAME.fullmatch(name, surname_of.end()) is None:
        return None
    if _CAPITALS.fullmatch(_PREFIXES.sub("", name[surname_of.end() :])):
        return BoldName(name, "turn")
    return BoldName(name, "call") if after is not None else None


def _find_bold(paragraph: _Element) -> str | None:
    """Return the words in bold that a paragraph begins with."""
    element = paragraph
    while not (element.text and not element.text.isspace()):
        child = next((each for each in element if get_run(each).strip()), None)
        if child is None or any(each.tail and not each.tail.isspace() for each in child.itersiblings(preceding=True)):
            return None
        if child.get("font-weight") == "bold" or child.tag in ("b", "strong") or _is_bold(child.get("style")):
            return squeeze(get_run(child))
        element = child
    return None


def _is_bold(style: str | None) -> bool:
    return style is not None and _BOLD_STYLE.search(style) is not None


def find_talker(name: str, talkers: Iterable[Talker]) -> Talker:
    """Return the talker of this name; without an identifier, unless all of that name in the file have the same."""
    wanted = _plain(name)
    alike = {each.name_id: each for each in talkers if each.name_id and _plain(each.name) == wanted}
    if len(alike) != 1:
        return Talker(name)
    [(name_id, found)] = alike.items()
    return Talker(name, found.full_name, name_id)


def is_same_name(one: str, other: str) -> bool:
    """Whether two displayed names are equal but for case, spaces and points."""
    return _plain(one) == _plain(other)


def _plain(name: str) -> str:
    return "".join(each for each in name.casefold() if each.isalnum())


def describe_decisions(decided: Collection[tuple[int, str]]) -> str:
    """Describe the paragraphs, by line and name, that were given to a name by their form."""
    counts: dict[str, int] = {}
    for _, name in decided:
        counts[name] = counts.get(name, 0) + 1
    names = [f"{name} ({count})" for name, count in counts.items()]
    return (
        f"{describe_lines([line for line, _ in decided])}: who speaks is decided by a name in bold at the beginning of "
        f"the paragraph: {join_first(names, _LISTED)}"
    )


def describe_open(lines: Sequence[int]) -> str:
    """Describe the paragraphs, by line, of which it is uncertain who speaks."""
    return f"{describe_lines(lines)}: words that name nobody, after those of another: who speaks is left open"
