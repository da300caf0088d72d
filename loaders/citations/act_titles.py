"""Titles of acts and bills before the word Act or Bill, found by reading back from it.

``under the Clean Rivers (Interim Measures) Act 2011``: the title begins after the nearest article, verb or number, so
that words of the sentence do not become part of it. An uncertain start gives a low confidence.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from kg.words import to_word_set
from loaders.citations import jurisdictions

UNSURE: Final = 0.6
"""The confidence of a citation whose words are found but whose law is not sure. 42 of 50 were right; it is below that
of promotion on purpose.
"""
SEVERAL_WORDS: Final = 0.98
"""The confidence of a title of several words. 49 of 49, and 199 of 200 in an earlier sample of all titles."""
ONE_WORD: Final = 0.98
"""The confidence of a title of one word, which may be the end of a longer one. 48 of 48."""
WITH_COMMA: Final = 0.75
"""The confidence of a title with a comma, which may begin after it. Too few to measure."""
_REACH: Final = 220
"""Code points before the word Act that are read."""
_MOST_WORDS: Final = 18
_TOKEN: Final = re.compile(r"\([^()]{1,90}\)|[^\s()]+")
_CONNECTORS: Final = to_word_set(
    """
    of and for the to a an or & de
    """
)
"""Words in lower case that may be within a title."""
_PREPOSITIONS: Final = to_word_set(
    """
    of to for in on by with from at against between into under within without
    """
)
_DROPPED: Final = to_word_set(
    """
    the a an this that these those under in on by with see since when if as and but for from both our your their its
    his her while where which of to or at also amend amends amended amending existing proposed
    through between against into because although though after before until unless per cf via said such same any
    each every section sections part schedule clause chapter article regulation subsection is was has had following
    pursuant however therefore unlike like yes no not so then now thus hence further moreover whereas implementing
    enacted repealed introduced passed namely including notwithstanding consequential mr mrs ms dr senator minister
    """
)
"""Words before a title that begin a sentence or state a relation."""
_REFERRED: Final = to_word_set(
    """
    section sections part parts schedule schedules division chapter article articles object objects purpose purposes
    provision provisions amendment amendments title regulations clause clauses preamble passage repeal introduction
    review commencement operation enactment minister objectives requirements aims terms meaning definition
    administration implementation text version reading
    """
)
"""Nouns whose ``of`` leads to a title, without belonging to it."""
_WITH_ARTICLE: Final = to_word_set(
    """
    protection prevention rights status law custody safety conservation preservation care control constitution
    regulation welfare court bank state elimination suppression
    """
)
"""Nouns that begin a title which contains an article: ``Protection of the Sea Act 1983``."""
_NOT_ALONE: Final = to_word_set(
    """
    principal amending amendment original present first second third private public federal commonwealth state
    parent main enabling legislative parliament parliamentary government national international local member members
    foregoing relevant respective above
    """
)
"""Words that are no title on their own."""
_POSSESSIVES: Final = to_word_set(
    """
    children's women's men's people's seamen's fishermen's worker's workmen's queen's king's sovereign's crown's
    governor-general's lord's soldier's child's
    """
)
_OWNERS: Final = to_word_set(
    """
    government's minister's parliament's opposition's senator's president's commission's department's nation's
    country's state's party's committee's court's
    """
)
_ENDS: Final = re.compile(r"[.;:!?]$")
_SHORTENED: Final = re.compile(r"^(?:[A-Z]\.)+$|^(?:St|No|Mt)\.$")
_BROKEN: Final = re.compile(r"-\s*\n\s*")
_QUOTES: Final = "\"'“”‘’"
_NO_LETTER: Final = re.compile(r"[^\w]")


class Title(NamedTuple):
    """The words of a title, at [start, …) of the text."""

    start: int
    words: str
    """The title in one line, with words broken at line ends joined."""
    jurisdiction: str | None
    """The jurisdiction that a word directly before it states: ``UK``, ``Australia's``."""
    confidence: float


class _Word(NamedTuple):
    start: int
    end: int
    text: str

    @property
    def plain(self) -> str:
        return self.text.strip(_QUOTES + ",").casefold()


def find_title(text: str, at: int, *, capitals: bool) -> Title | None:
    """Find the title that ends before `at`, where the word Act is. None if there is none.

    With `capitals` the text is in capitals, as a heading is.
    """
    words, before = _read_back(text, at, capitals)
    words, sure = _cut(words, before, capitals)
    words, jurisdiction, sure = _take_owner(words, sure)
    while words and (words[0].plain in _DROPPED or words[0].plain in _CONNECTORS or not words[0].plain):
        sure = sure or words[0].plain == "the"
        words = words[1:]
    named = [word for word in words if word.plain not in _CONNECTORS and not word.text.startswith("(")]
    if not named or words[0].text.startswith("(") or (len(words) == 1 and words[0].plain in _NOT_ALONE):
        return None
    if all(jurisdictions.find_abbreviation(word.text) for word in named):
        return None
    if capitals and not any(len(_NO_LETTER.sub("", word.text)) > 3 for word in named):
        return None
    start = words[0].start + len(words[0].text) - len(words[0].text.lstrip(_QUOTES))
    line = " ".join(_BROKEN.sub("", text[start:at]).split()).strip(_QUOTES + " ,")
    confidence = SEVERAL_WORDS if len(named) > 1 else ONE_WORD
    if any(word.text.endswith(",") for word in words[:-1]):
        confidence = WITH_COMMA
    return Title(start, line, jurisdiction, confidence if sure else UNSURE)


def _read_back(text: str, at: int, capitals: bool) -> tuple[list[_Word], list[_Word]]:
    """Read the words before `at` back to the first that cannot be part of a title. Returns them, and those before."""
    low = max(0, at - _REACH)
    tokens = [_Word(low + found.start(), low + found.end(), found[0]) for found in _TOKEN.finditer(text[low:at])]
    if tokens and low and not text[low - 1].isspace():
        tokens = tokens[1:]  # its beginning is out of reach
    first, right = len(tokens), at
    while first and len(tokens) - first < _MOST_WORDS:
        token = tokens[first - 1]
        gap = text[token.end : right]
        if gap.count("\n") > 1 or "(" in gap or ")" in gap or not _may_belong(tokens, first - 1, capitals):
            break
        first, right = first - 1, token.start
        if token.text[0] in _QUOTES and len(token.text) > 1:
            break
    return tokens[first:], tokens[:first]


def _may_belong(tokens: list[_Word], place: int, capitals: bool) -> bool:
    word = tokens[place].text
    if word.startswith("("):
        inside = word[1:-1].strip()
        return inside[:1].isupper() and jurisdictions.find_after(word, 0, "aus") is None
    if _ENDS.search(word) and not _SHORTENED.match(word):
        return False
    bare = word.strip(_QUOTES)
    if bare.endswith(","):
        # A list within a title ends with a conjunction: Fuel, Light and Power Act.
        following = tokens[place + 1 :]
        return bare[:1].isupper() and any(each.plain in ("and", "or", "&") for each in following)
    if bare.casefold() in _CONNECTORS:
        return not capitals or not bare.islower()
    if bare[:1].isupper():
        return not capitals or bare.isupper()
    # The rest of a word that is broken at the end of a line.
    before = tokens[place - 1].text if place else ""
    return bare.isalpha() and before.endswith("-") and len(before) > 1 and before[0].isupper()


def _cut(words: list[_Word], before: list[_Word], capitals: bool) -> tuple[list[_Word], bool]:
    """Cut the words of the sentence before a title. Returns whether its start is sure."""
    for place in range(len(words) - 1, -1, -1):
        plain, lower = words[place].plain, words[place].text[:1].islower()
        if plain in ("the", "a", "an") and (lower or capitals):
            earlier = [*before, *words[:place]][-2:]
            if _is_named(earlier):
                if plain == "the" and earlier[1].plain == "of" and earlier[0].plain in _WITH_ARTICLE and place > 1:
                    continue
                return words[place + 1 :], False
            return words[place + 1 :], True
        if plain in ("of", "to") and place and words[place - 1].plain in _REFERRED:
            return words[place + 1 :], True
    if capitals:
        return words, not before or _ENDS.search(before[-1].text) is not None
    return words, not _is_named(before[-2:])


def _is_named(earlier: list[_Word]) -> bool:
    """Whether two words are a name and a preposition, as in ``Trading with``: they may belong to a title."""
    return (
        len(earlier) == 2
        and earlier[1].plain in _PREPOSITIONS
        and earlier[0].text[:1].isupper()
        and earlier[0].plain not in _REFERRED | _DROPPED
    )


def _take_owner(words: list[_Word], sure: bool) -> tuple[list[_Word], str | None, bool]:
    """Cut an owner or a country's abbreviation before a title: ``New Zealand's``, ``the Minister's``, ``UK``.

    Returns the words, the jurisdiction, and whether the start is sure. ``Plant Breeder's Rights`` is a title where an
    article precedes it.
    """
    for place in range(len(words) - 1, -1, -1):
        plain = words[place].plain.replace("’", "'")
        if plain.endswith("'s") and plain not in _POSSESSIVES:
            owner = jurisdictions.find_owner(words[place].text, words[place - 1].text if place else "")
            if owner is not None or plain in _OWNERS:
                return words[place + 1 :], owner, sure
            if place and sure:
                return words, None, True
            return words[place + 1 :], None, False
    if len(words) > 1 and (found := jurisdictions.find_abbreviation(words[0].text)) is not None:
        return words[1:], found, sure
    return words, None, sure
