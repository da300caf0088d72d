"""Citations of law in text: of other parts of the same code, and of other laws.

A scanner searches for the words and signs that a citation starts with. From there it parses the numbers of a list or
range, and then the law that they belong to. The length parsed at one place is bounded, so the time is linear in the
text.

We do not use eyecite: see `statutes`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from loaders.citations import statutes
from loaders.citations.law_parts import add_suffixes, find_note
from loaders.citations.number_lists import (
    LETTER,
    LEVEL_NUMBER,
    MEMBERS,
    NUMBER,
    SIGN,
    SUBPART,
    UNIT,
    Member,
    parse_further_labels,
    parse_labels,
    parse_numbers,
    separator_of,
    split_level,
    with_plain_hyphens,
)
from loaders.citations.number_ranges import PLAIN_STATES, Numbering, numbering_of_title
from loaders.citations.statutes import Body, Law

_TITLE_WORD: Final = re.compile(r"(?:[A-Z][\w.&'’-]*|(?:of|and|for|the|to|on|in|a|an)\b|\d{4}\b),? ?")
_DOCUMENT: Final = re.compile(
    r"(?:Acts?|Codes?|Laws?|Ordinances?|Constitution|Regulations?|Rules|Standards?|Permit|Charter"
    r"|Statutes?|Manual|Plan|By-?[Ll]aws?"
    r"|Agreement|Lease|Contract|Compact|Resolution)\b"
)
_ACRONYM: Final = re.compile(r"[A-Z]{3,8}\b")
_LOWER_DOCUMENT: Final = re.compile(
    r"(?:(?:that|said|such|amended) )?(?:act|constitution|charter|compact|agreement|contract|lease|treaty|bylaws)\b"
)
_BEFORE: Final = re.compile(
    r"((?:[A-Z][\w.&'’-]* ){1,6}(?:Code|Act|Standards?|Regulations|Reg\.|Permit|Laws?|Statutes?|Stats?\.|Ann\.|Charter)"
    r"|(?:[A-Z]\.? ?){2,5} ?c(?:h(?:ap)?)?\. ?\d{1,4}[A-Z]{0,2}),? $"
)
_ENACTED: Final = re.compile(
    r"(?<!\w)(Pub(?:lic\s|\.\s?)L(?:aw\b|\.)\s?(?:No\.\s?)?\d{1,3}[-–]\d{1,4}"
    r"|D\.\s?C\. (?:Law|Act) \d{1,3}[A-Z]?-\d{1,4}|\d{1,3}A? Stat\. \d{1,4}"
    r"|Act of [A-Z][a-z]{2,8}\.? \d{1,2}, \d{4}|(?:[A-Z]\. ?){1,3}L\.(?: ?A\.)?|M?GLA?|\d{1,2} P\. ?S\.)"
    r"(?: \([^()]{0,40}\))?[,;]? $"
)
_STATUTES: Final = re.compile(r"[,;] (\d{1,3}A? Stat\. \d{1,4})\b")
_DOCUMENT_REACH: Final = 80
"""Code points before a citation that are searched for the name of its document."""
_MUNICIPAL: Final = r"(?:Municipal|City|Town|Township|Village|Borough|County|Parish)"
_CITY: Final = rf"{_MUNICIPAL} (?:[A-Z]\w+ )?Code|Code of Ordinances|Ordinance Code|Code of the {_MUNICIPAL} of"
"""Names of the code of a municipality, of which the citing code may be a part."""
_OWN: Final = re.compile(
    rf"{_CITY}|{_MUNICIPAL} (?:[A-Z]\w+ )?Ordinance"
    r"|(?:Zoning|Land Use|Development) (?:[A-Z]\w+ )?(?:Code|Ordinance|Resolution|Regulations?|By-?[Ll]aws?)"
    r"|^(?:Code|Ordinance|Title|By-?[Ll]aws?|Regulations|Resolution|Codes? and)$"
)
_CITY_AFTER: Final = re.compile(rf",? (?:of|in|under) the (?:[A-Z][\w'’.-]* ){{0,5}}?(?:{_CITY})")
_CITY_BEFORE: Final = re.compile(rf"(?:{_CITY})(?: \([A-Z]{{2,8}}\))?,? $")
_NUMBERED_DOCUMENT: Final = re.compile(
    r"(?:Ord(?:inance|\.)|Resolution|By-?[Ll]aw)s?\s(?:Nos?\.?\s?)?[A-Z]{0,2}-?\d[\w-]*"
)
_HISTORY: Final = re.compile(
    r"\bOrd(?:inance)?\b\.?\s?(?:Nos?\.?\s?)?[A-Z]{0,2}-?\d[\w-]*,? $"
    r"|[(\[](?i:ord\b|ordinance\b|res\b|resolution\b|l\.l\.|local law\b|(?:prior|former) code\b|code,?(?: of)? \d{4}"
    r"|\d{4} code\b|comp\. ord|amended\b|added\b|adopted\b|enacted\b|passed\b)[^()\[\]\n]{0,200}$"
)
"""Words before a section of an ordinance or earlier code that enacted the citing section: ``(Ord. No. 88-14, § 1,
10-17-88)``, ``(Code 1967, § 30-12)``."""
_HISTORY_REACH: Final = 240


def find_document_at(text: str, at: int, *, acronyms: bool) -> str | None:
    """Find the name of the document at `at`. None if there is none, or if it is the code itself."""
    if named := _LOWER_DOCUMENT.match(text, at) or _NUMBERED_DOCUMENT.match(text, at):
        return named[0]
    end, place = None, at
    for _ in range(16):
        keyword = _DOCUMENT.match(text, place) or (_ACRONYM.match(text, place) if acronyms else None)
        if keyword is not None:
            end = keyword.end()
            if not text.startswith(" of ", end):
                break
        word = _TITLE_WORD.match(text, place)
        if word is None:
            break
        place = word.end()
    if end is None or _OWN.search(text[at:end]):
        return None
    return text[at:end]


def find_document_before(text: str, start: int) -> str | None:
    """Find the document of the section cited at `start` in the words before it: ``Conn. Agencies Reg. § 8``."""
    before = _BEFORE.search(text, max(0, start - _DOCUMENT_REACH), start)
    return before[1] if before and not _OWN.search(before[1]) else None


def find_act_before(text: str, start: int, end: int) -> str | None:
    """Find the numbered or dated law of the chapter or section cited in [start, end).

    ``Public Law 97-377, § 155``, ``Act of May 3, 1890, Chapter 7``, ``26 Stat. 49, ch. 7`` and in reverse order,
    ``M.G.L. ch. 40A``.
    """
    law = _ENACTED.search(text, max(0, start - _DOCUMENT_REACH), start) or _STATUTES.match(text, end)
    return law[1].strip() if law else None


# Confidences, measured: see `loaders.citations`.
WITH_WORD: Final = 0.98
"""Of a citation with a word or sign for what it cites: ``section``, ``§``, ``U.S.C.``. 1,313 of 1,317 in ordinances,
183 of 186 in two real codes."""
BY_NUMBER_ALONE: Final = 0.98
"""Of a number that has the form of a section's, without such a word. 91 of 91."""
BY_LETTER: Final = 0.75
"""Of a section or subsection by a letter without brackets, which may be a word: ``paragraph A``. Too few to measure."""
BY_NAME: Final = 0.92
"""Of the code of a state by its name, without any number: ``Florida Building Code``. 12 of 12."""
OF_DOCUMENT: Final = 0.76
"""Of a section of a document that is neither this code nor a known law. 12 of 15."""
WITHOUT_SEPARATOR: Final = 0.9
"""Of a section of the same code whose number has no separator, and which may be of another document: ``section 5``. 40
of 40 in ordinances, 3 of 4 in two real codes."""
UNRESOLVED: Final = 0.86
"""Of a section that the code does not have: of another part of the law, or with a number that was read wrongly. 57 of
65."""
DOUBTFUL: Final = 0.5
"""Of a number in which a hyphen can be that of a range with a shortened end: ``4321-7``. Too few to measure."""
UNRESOLVED_WITHOUT_SEPARATOR: Final = 0.02
"""Of such a section whose number has no separator. None of 48."""

THIS: Final = "this"
"""Placeholder for the number of the level that contains the citing section."""


@dataclass(frozen=True, slots=True)
class Citation:
    """A citation at the offsets [start, end) of a text. Each member of a list is one, and so is each end of a range."""

    start: int
    end: int
    raw: str
    """The text of the whole list for a member of ``§§ 3 and 4``; `start` and `end` are the member's own."""
    form: str
    """Pattern: section, number, subsection, this, title, chapter, ...; usc, cfr, state code, public law, public act, dc
    law."""
    levels: Sequence[tuple[str, str]] = ()
    """Levels of the same code, as kind and number, outermost first: ``(("title", "8"), ("chapter", "2A"))``. The number
    `THIS` is that of the level that contains the citing section."""
    labels: Sequence[str] = ()
    """Bare labels of the subsection, outermost first."""
    through: str | None = None
    """On the first end of a range, the number of the last end."""
    law: Law | None = None
    """The other law that is cited."""
    of: str | None = None
    """The words for a cited document that is neither this code nor a known law, such as the Act."""
    of_city: bool = False
    """Whether it is of the code of the municipality by name, of which this code may be a part."""
    confidence: float = WITH_WORD
    method: str = "citation"

    @property
    def key(self) -> str:
        """Equal for all citations with the same target: ``section 15.3.24.090(G)``, ``title 8|chapter 2A``."""
        labels = "".join(f"({label})" for label in self.labels)
        if self.law is not None:
            return self.law.citation + labels
        return (
            "|".join(f"{kind} {number}" for kind, number in self.levels)
            + labels
            + (f" of {self.of}" if self.of else "")
        )

    @property
    def internal(self) -> bool:
        """Whether it cites this code, or at least no other document."""
        return self.law is None and self.of is None


_RANKS: Final = {
    "title": 0, "subtitle": 1, "chapter": 2, "subchapter": 3, "article": 4, "division": 5, "unit": 5, "part": 6,
    "subpart": 7, "section": 8,
}  # fmt: skip
_LEVEL: Final = r"(?:(?:sub)?(?:title|chapter|part)|article|division)"
_SHORTENED: Final = {
    "ch": "chapter", "chap": "chapter", "subch": "subchapter", "art": "article", "div": "division", "tit": "title",
    "pt": "part", "§": "section",
}  # fmt: skip
_SHORT_LEVEL: Final = r"(?:(?:[Ss]ub)?[Cc]h(?:ap)?|[Aa]rt|[Dd]iv|[Tt]it|[Pp]t)s?\. ?(?=[\dIVXL])"
_RELATIVE: Final = r"(?:(?:sub)?(?:section|paragraph|clause)|subdivision)"
_WORDS: Final = "|".join(
    (
        rf"(?=\d)(?:(?P<reporter>(?P<in_title>\d{{1,3}}(?:-?[A-Z])?)\s?"
        rf"(?P<reporter_name>{statutes.FEDERAL}|{statutes.FEDERAL_REGULATIONS}|{statutes.TITLED}))"
        r"|(?P<number>(?<![.\-–$/:])(?=\d{1,4}[A-Za-z]?[.-]\d{1,6}[A-Za-z]{0,2}[.-]\d)))",
        rf"(?=[ADP\d])(?P<numbered>{statutes.ACTS})",
        rf"(?=[A-Z])(?P<code>(?P<code_name>{statutes.NAME}))",
        rf"(?=[tT])(?P<this>[Tt]his (?P<this_kind>(?i:{_LEVEL}|(?:sub)?section))\b)",
        rf"(?=[spcSPC])(?P<relative>(?i:{_RELATIVE})s? (?=\(|[A-Z](?![\w'’.]|-\w)))",
        r"(?=[spSP])(?P<section>(?:(?i:(?:sub)?sections?|secs?\.)|ss?\.)\s?(?=\d|[IVXL]+\b)"
        r"|(?i:(?:sub)?paragraphs?)\s(?=\d{1,3}\.\d))",
        rf"(?=[stcpadSTCPAD])(?P<level>(?:(?i:{_LEVEL}s?):? |{_SHORT_LEVEL})(?=[\dA-Z]))",
        r"(?=[uU])(?P<unit>(?i:unit) (?=[\dA-Z]{1,4} of (?i:(?:sub)?(?:chapter|title)) ))",
    )
)
_ANCHOR: Final = re.compile(rf"(?<!\w)(?=[0-9A-Zacdpstu])(?:{_WORDS})|(?P<sign>§(?: ?§)?\s?(?=\d|[IVXL]+[.-]))")
# 12.31.2009 has the form of a section number.
_DATE: Final = re.compile(r"\d{1,2}[.-]\d{1,2}[.-](?:\d\d|(?:19|20)\d\d)$")
_WORD_BEFORE: Final = re.compile(r"\b(?:[Ss]ee|[Uu]nder|[Ii]n|[Bb]y|with|of|per|[A-Z]{2,6}C)\s$")
"""Words before a number that show it is a section's."""
_SKIPPED: Final = re.compile(r"[,.]? ?et\.?,? ?seq\b\.?| \[[a-z ]{1,20}\]")
"""Words between a number and its law: et seq., [repealed]."""
_LAW: Final = re.compile(
    rf",? (?:of (?:the )?)?\(?(?:(?P<title>\d{{1,2}}(?:-?[A-Z])?) )?(?P<name>{statutes.NAME}"
    rf"|{statutes.FEDERAL}|{statutes.FEDERAL_REGULATIONS}|{statutes.TITLED})"
)
_OF: Final = re.compile(r",? (?:of|in|under|from) (?:the |said )?")
_CAPITAL: Final = re.compile(r" [A-Z]")
_JOINED: Final = re.compile(r",? (?:and )?[('’]?")
_THIS: Final = re.compile(rf"(?:this|that|such) (?P<kind>(?i:{_LEVEL}|{_RELATIVE}))\b", re.IGNORECASE)
_OF_LEVEL: Final = re.compile(rf"(?P<kind>(?i:{_LEVEL}|unit) |{_SHORT_LEVEL})(?=[\dA-Z])")
_OF_RELATIVE: Final = re.compile(rf" of (?:(?:this|that|such) )?(?i:{_RELATIVE}) ?(?=\()")
_CHAIN: Final = re.compile(rf",? (?P<kind>(?i:{_LEVEL}|section)s?:? |§ ?|{_SHORT_LEVEL})(?=[\dA-Z])")
_UP: Final = re.compile(rf", (?P<kind>(?i:{_LEVEL}) |{_SHORT_LEVEL})(?=[\dA-Z])")
_AGAIN: Final = re.compile(rf"(?:, (?:and |or )?| and | or )(?P<kind>(?i:{_LEVEL}) |{_SHORT_LEVEL})(?=[\dA-Z])")
_PROGRAM: Final = re.compile(
    r" (?:[a-z]+ )?(?:permits?|programs?|schools?|fund(?:s|ing)?|sources?|facilit(?:y|ies)|services|benefits)\b"
)
"""Programs known by the title of an act of Congress: a ``Title V permit`` is under the Clean Air Act."""
_ROMAN: Final = re.compile(r"[IVXL]+")
_ROMAN_SECTION: Final = re.compile(r"[IVXL]{1,7}(?:-?[A-Z])?(?:[.-](?:[A-Z]|\d{1,3}))*(?![\w'’])")
_LETTERED: Final = re.compile(r"[A-Z]|[IVXL]+(?:[.-]\w+)*")
"""Numbers of sections in codes that cite them by letters and Roman numerals: ``Section A``, ``Section IV.B``."""
_ACT_NAME: Final = re.compile(r", ((?:[A-Z][\w&'’-]* (?:(?:and|of|for) )?){1,7}Act)\b")
_IN_BRACKETS: Final = re.compile(
    r",? as amended(?=,? )|,? \((?:(?:19|20)\d\d(?:,? as amended)?|as amended)[^()]{0,40}\)"
    r"|, (?:19|20)\d\d,? as amended| (?:19|20)\d\d(?=, )"
)
_WITHIN_PART: Final = re.compile(r",? (?P<sign>(?:§§? ?|[Ss]ections? )(?P<part>\d{1,4})(?=\.\d))")
"""A section after its part: ``40 CFR Part 60, § 60.2``."""
_WITHIN_LEVEL: Final = re.compile(r",? (?P<sign>(?:§§? ?|[Ss]ections? )(?=\d{1,4}\.\d))")
"""A section after the chapter of its title, which its number does not repeat: ``40 CFR Chapter I, § 60.2``."""
_BROKEN: Final = re.compile(r" \d")
"""The rest of a number whose hyphens were lost: ``Utah Code § 63 9 45``."""
_BROKEN_NUMBER: Final = re.compile(r"\. (?P<rest>\d{1,2}(?:[A-Z](?!\w)|(?= of (?:this|the)\b)))")
"""The rest of a number with a space in it: ``Section 5. 5B``."""
_CHAPTER: Final = re.compile(r",? [Cc](?:h(?:ap(?:ter)?)?)?\.? ?(?P<number>\d{1,3}[A-Z]{0,2})(?!\w)")
_AND_CHAPTER: Final = re.compile(r"(?:,|;)?(?: and| or|,|;)(?= [Cc])")
_OF_OTHER: Final = re.compile(r",? (?:of|in|under) (?:this|that|the|said|such)\b")
_WITHIN_CHAPTER: Final = re.compile(r",? (?P<sign>(?:§§? ?|[Ss]ections? |[Ss]ecs?\. ?|ss?\.? ?)(?=\d))")
_APPENDIX: Final = re.compile(r",? (?:[Aa]ppendix\b|[Aa]pp\.) ?")
_SAME_LAW: Final = re.compile(r"\b(?:[Ii]d\.|[Ii]bid\.?),?(?: at)? $")
"""Words before a section of the law that was cited before, which is not known here: ``Id. § 45Q(b)``."""
_PLACED: Final = re.compile(r"\w+(?:[.:-]\w+){2}")
"""A number that is long enough for the next one to be recognized as another: ``RCW 36.70A.070 and 36.70A.080``."""
_CLASS: Final = re.compile(r"Class \w{1,3}, $")


@dataclass(frozen=True, slots=True)
class _Tail:
    """The text after a citation that states which law or level it belongs to."""

    end: int
    """End of the text that is part of the citation: the levels, the name of the law."""
    after: int
    """End of all parsed text."""
    levels: tuple[tuple[str, str], ...] = ()
    body: Body | None = None
    of: str | None = None
    title: str | None = None
    of_city: bool = False


class _Citing(NamedTuple):
    """The text that cites: the state of its municipality, and the number of its section."""

    state: str | None
    number: str


def find_citations(text: str, state: str | None = None, number: str = "") -> Sequence[Citation]:
    """Find the citations in `text`, in text order and without overlaps.

    `state` is the state of the municipality. Public acts in the text belong to it if it is one of the United States
    (two letters). In a code of another country (``AU-VIC``) only citations of federal law of the United States are
    found: letters such as UCA have other meanings there. `number` is that of the section with the text. Numbers with
    hyphens are citations without any word where they have its form and its first part: ``61-1-5`` in 61-3-101.
    """
    found: list[Citation] = []
    at, citing = 0, _Citing(state, number)
    while anchor := _ANCHOR.search(text, at):
        read, after = _READERS[anchor.lastgroup or ""](text, anchor, citing)
        if read and read[0].start < at:
            # The name of the code before it belongs to the citation before.
            read = [replace(read[0], start=anchor.start()), *read[1:]]
        found += read
        at = max(after, anchor.start() + 1)
    if state is not None and "-" in state:
        return [each for each in found if each.law is None or each.law.scheme in statutes.FEDERAL_SCHEMES]
    return found


def _read_reporter(text: str, anchor: re.Match[str], citing: _Citing) -> tuple[Sequence[Citation], int]:
    body = statutes.body_of(anchor["reporter_name"], citing.state, titled=True)
    if body is None:
        return (), anchor.end()
    return _read_sections_of_body(text, anchor.start(), anchor.end(), body, anchor["in_title"])


def _read_code(text: str, anchor: re.Match[str], citing: _Citing) -> tuple[Sequence[Citation], int]:
    body = statutes.body_of(anchor["code_name"], citing.state)
    if body is None:
        return (), anchor.end()
    found, end = _read_sections_of_body(text, anchor.start(), anchor.end(), body, None)
    if found or not statutes.is_of_subject(body) or body.jurisdiction != f"us-{(citing.state or '').lower()}":
        return found, end
    joint = _JOINED.match(text, end)
    if _CAPITAL.match(text, end) or (
        joint and (_ANCHOR.match(text, joint.end()) or text[joint.end() : joint.end() + 1].isdigit())
    ):
        return found, end  # "the Utah Building Code Commission", "the Maryland Accessibility Code, COMAR 09.12.53"
    return [Citation(anchor.start(), end, anchor[0], _form(body) or "", law=body.part(""), confidence=BY_NAME)], end


def _read_sections_of_body(
    text: str, start: int, at: int, body: Body, title: str | None
) -> tuple[Sequence[Citation], int]:
    """Parse the sections or parts at `at`, after the name of another law: ``40 CFR Part 312``, ``MCL 125.3101``."""
    form, after_name = _form(body) or "", at
    if body is statutes.USC and title and (appendix := _APPENDIX.match(text, at)):
        return _read_appendix(text, start, appendix.end(), body, title)
    # After a title the number of a section may look like a year: 42 U.S.C. 1983.
    if (amended := _IN_BRACKETS.match(text, at)) and not (title and amended[0].strip().isdigit()):
        at = amended.end()
    if body.chaptered:
        return _read_sections_of_chapter(text, start, body, at)
    chain, after = _chain(text, at, "")
    if chain and chain[0][0] != "section":
        if chain[-1][0] == "part" and body is statutes.CFR:
            chain_start = at + with_plain_hyphens(text[at:after]).rindex(chain[-1][1])
            found, end = parse_numbers(
                text, chain_start, chain_start, plural=True, numbering=_numbering_of(body, title)
            )
            laws = [body.part(f"Part {member.number}", title) for member in found]
            if found and (within := _WITHIN_PART.match(text, end)) and within["part"] == found[-1].number:
                further, end = parse_numbers(
                    text, within.start("part"), within.start("sign"), plural=True, numbering=_numbering_of(body, title)
                )
                found += further
                laws += [body.section(member.number, title) for member in further]
        elif body is statutes.CFR and title and (within := _WITHIN_LEVEL.match(text, after)):
            found, end = parse_numbers(
                text, within.end(), within.start("sign"), plural=True, numbering=_numbering_of(body, title)
            )
            laws = [body.section(member.number, title) for member in found]
        else:
            (*above, (kind, number)), end = chain, after
            found = split_level(Member(start, end, number), _numbering_of(body, title))
            laws = [
                body.part(
                    ", ".join(f"{each.capitalize()} {name}" for each, name in (*above, (kind, member.number))), title
                )
                for member in found
            ]
            found = [replace(member, number="") for member in found]
    else:
        lead = re.compile(r",? ?").match(text, at)
        at = lead.end() if lead else at
        sign = SIGN.match(text, at)
        at = sign.end() if sign else at
        plural = _is_plural(sign[0]) if sign else bool(_PLACED.match(text, at))
        members, end = parse_numbers(
            text, at, at, plural=plural or body is statutes.CFR, numbering=_numbering_of(body, title)
        )
        bare = bool(members) and title is None and not separator_of(members[0].number)
        if not members and title and body.scheme == "regulations":
            law = body.part("", title)
            return [Citation(start, after_name, text[start:after_name], form, law=law)], after_name
        if not members or (bare and (not sign or _BROKEN.match(text, members[0].end))):
            return (), after_name
        found, end = _cut_others(text, members, end)
        laws = [
            body.part(f"Part {member.number}", title)
            if body is statutes.CFR and not separator_of(member.number) and not sign
            else body.section(member.number, title)
            for member in found
        ]
    if not found:  # "40 CFR parts 60 days": the number is of something else
        return (), after_name
    found[0] = replace(found[0], start=start)
    end = add_suffixes(text, found, laws, end)
    raw = text[found[0].start : end]
    return [
        Citation(
            member.start,
            member.end,
            raw,
            form,
            labels=member.labels,
            through=member.through,
            law=law,
            confidence=DOUBTFUL if member.doubtful else WITH_WORD,
        )
        for member, law in zip(found, laws, strict=True)
    ], end


def _read_appendix(text: str, start: int, at: int, body: Body, title: str) -> tuple[Sequence[Citation], int]:
    """Parse the acts and sections of the appendix of a title: ``50 U.S.C. App. 2401``, ``5 U.S.C. App. 3 § 6``."""
    sign = SIGN.match(text, at)
    at = sign.end() if sign else at
    members, end = parse_numbers(text, at, at, plural=sign is not None and _is_plural(sign[0]), numbering="plain")
    members = members or [Member(start, at, "")]
    end = max(end, members[-1].end) if members[0].number else len(text[:at].rstrip())
    words = [f"App. {member.number}".rstrip() for member in members]
    if not sign and len(members) == 1 and members[0].number and (within := _WITHIN_CHAPTER.match(text, end)):
        further, after = parse_numbers(text, within.end(), within.end(), plural=False, numbering="plain")
        if further:
            words[0] += f" § {further[0].number}"
            members, end = [replace(members[0], end=after, labels=further[0].labels)], after
    members[0] = replace(members[0], start=start)
    members[-1] = replace(members[-1], end=end)
    raw = text[start:end]
    return [
        Citation(each.start, each.end, raw, "usc", (), each.labels, each.through, body.part(part, title))
        for each, part in zip(members, words, strict=True)
    ], end


def _is_plural(sign: str) -> bool:
    return "s" in sign or sign.count("§") > 1


def _read_sections_of_chapter(text: str, start: int, body: Body, at: int) -> tuple[Sequence[Citation], int]:
    """Parse a chapter with its sections: ``M.G.L. c. 40A, §§ 3 and 5``. Without a chapter, a section is of any."""
    found: list[Citation] = []
    end = at
    while (chapter := _CHAPTER.match(text, at)) and not (found and _OF_OTHER.match(text, chapter.end())):
        members, end = [Member(start, chapter.end(), "")], chapter.end()
        if within := _WITHIN_CHAPTER.match(text, end):
            sections, after = parse_numbers(
                text, within.end(), within.start("sign"), plural=True, numbering=_numbering_of(body, None)
            )
            members, end = _cut_others(text, sections, after) if sections else (members, end)
        members[0] = replace(members[0], start=start)
        form, raw, levels = _form(body) or "", text[start:end], {"chapter": chapter["number"]}
        found += (
            Citation(
                each.start,
                each.end,
                raw,
                form,
                labels=each.labels,
                through=each.through,
                law=_law_of(body, each.number, None, levels),
            )
            for each in members
        )
        further = _AND_CHAPTER.match(text, end)
        if further is None or len(found) >= MEMBERS:
            break
        at, start = further.end(), further.end() + 1
    return found, end


def _cut_others(text: str, members: list[Member], end: int) -> tuple[list[Member], int]:
    """Cut the sections of another document from a list: ``42 U.S.C. § 1983, and section 4 of this code``."""
    if _OF_OTHER.match(text, end):
        for place in range(len(members) - 1, 0, -1):
            if SIGN.match(text, members[place].start):
                return members[:place], members[place - 1].end
    return members, end


def _law_of(body: Body, number: str, title: str | None, levels: Mapping[str, str]) -> Law | None:
    """Build the law of a section of `body`, or of its chapter without a `number`. None if the chapter is unknown."""
    if not body.chaptered:
        return body.section(number, title)
    chapter = levels.get("chapter")
    return body.part(f"Chapter {chapter}" + (f", Section {number}" if number else "")) if chapter else None


def _numbering_of(body: Body, title: str | None) -> Numbering:
    if body is statutes.USC or body.chaptered or (body.jurisdiction in PLAIN_STATES and body.scheme == "code"):
        return "plain"
    if body is statutes.CFR:
        return numbering_of_title(title)
    return "regulation" if body.name == "DCMR" else "any"


def _read_act(text: str, anchor: re.Match[str], citing: _Citing) -> tuple[Sequence[Citation], int]:
    form, law = statutes.act_of(anchor, citing.state)
    return [Citation(anchor.start(), anchor.end(), anchor[0], form, law=law)], anchor.end()


def _read_this(text: str, anchor: re.Match[str], citing: _Citing) -> tuple[Sequence[Citation], int]:
    kind = anchor["this_kind"].lower()
    levels = (("section" if kind == "subsection" else kind, THIS),)
    return [Citation(anchor.start(), anchor.end(), anchor[0], "this", levels)], anchor.end()


def _read_relative(text: str, anchor: re.Match[str], citing: _Citing) -> tuple[Sequence[Citation], int]:
    """Parse subsections with their section: ``subsection (a)(1) or (3) of this section``, ``paragraph (2) of § 8``."""
    members: list[Member] = []
    plural = anchor[0].rstrip().lower().endswith("s")
    start, at = (anchor.end() if plural else anchor.start()), anchor.end()
    bare = LETTER.match(text, at)
    if bare and anchor[0].lower().startswith("section") and _LETTERED.fullmatch(citing.number):
        section, tail_of = [Member(start, bare.end(), bare[0])], _tail(text, bare.end(), citing.state)
        lettered = _build_section_citations(text, anchor.start(), section, tail_of, "section")
        return [replace(each, confidence=BY_LETTER) for each in lettered], max(bare.end(), tail_of.after)
    if bare:
        members.append(Member(start, bare.end(), "", (bare[0],)))
        end = bare.end()
    else:
        labels, end = parse_labels(text, at)
        if not labels:
            return (), anchor.end()
        members.append(Member(start, end, "", labels))
        end = parse_further_labels(text, members, end)
    prefix: tuple[str, ...] = ()
    after = end
    while within := _OF_RELATIVE.match(text, after):
        labels, after = parse_labels(text, within.end())
        if not labels:
            break
        prefix = labels + prefix
    number, of, form = THIS, None, "subsection"
    tail = _OF.match(text, after) or re.compile(", of ").match(text, after)
    if tail and (this := _THIS.match(text, tail.end())):
        after = this.end()
    elif tail and (sign := SIGN.match(text, tail.end())) and (match := NUMBER.match(text, sign.end())):
        labels, after = parse_labels(text, match.end())
        number, prefix = with_plain_hyphens(match[0]), labels + prefix
        of = _tail(text, after, citing.state).of
    elif bare and not tail and not plural and anchor[0][0].islower() and anchor[0].lower().startswith("section"):
        return (), anchor.end()
    members[-1] = replace(members[-1], end=after)
    raw = text[anchor.start() : after]
    confidence = BY_LETTER if bare else WITH_WORD
    return [
        Citation(
            m.start,
            m.end,
            raw,
            form,
            (("section", number),),
            prefix + m.labels,
            m.through,
            of=of,
            confidence=confidence,
        )
        for m in members
    ], after


def _read_section(text: str, anchor: re.Match[str], citing: _Citing) -> tuple[Sequence[Citation], int]:
    word = anchor[0].rstrip(" .\n").lower()
    plural = word.endswith("s") or word.count("§") > 1
    if roman := _ROMAN_SECTION.match(text, anchor.end()):
        if not _LETTERED.fullmatch(citing.number):
            return (), anchor.end()
        members, end = [Member(anchor.start(), roman.end(), roman[0])], roman.end()
    else:
        at, first = anchor.end(), anchor.end() if plural else anchor.start()
        numbering: Numbering = "hyphened" if "-" in citing.number else "any"
        members, end = parse_numbers(text, at, first, plural=plural, numbering=numbering)
        if members and (other := _tail(text, find_note(text, end) or end, citing.state)).body is not None:
            numbering = _numbering_of(other.body, other.title or dict(other.levels).get("title"))
            members, end = parse_numbers(text, at, first, plural=plural, numbering=numbering)
    if (
        len(members) == 1
        and members[0].number.isdigit()
        and not members[0].labels
        and (rest := _BROKEN_NUMBER.match(text, end))
    ):
        labels, end = parse_labels(text, rest.end())
        members = [Member(members[0].start, end, f"{members[0].number}.{rest['rest']}", labels)]
        end = parse_further_labels(text, members, end) if labels else end
    before = max(0, anchor.start() - _HISTORY_REACH), anchor.start()
    if not members or _HISTORY.search(text, *before) or _SAME_LAW.search(text, *before):
        return (), max(end, anchor.end())
    if word.startswith("sub") and not separator_of(members[0].number):
        members = [replace(m, number=THIS, labels=(m.number, *m.labels)) for m in members]
    bare = not separator_of(members[0].number)
    noted = find_note(text, end)
    tail = _tail(text, noted or end, citing.state, acronyms=bare)
    if word in ("s", "ss") and tail.body is None:
        return (), max(end, anchor.end())
    start = anchor.start()
    if tail.of is None and not any(number == THIS for _, number in tail.levels):
        state = tail.body.jurisdiction[3:] if tail.body else citing.state
        if home := statutes.find_home_before(text, start, state):
            body, start = home
            tail = replace(tail, body=body, end=max(tail.end, end))
            members[0] = replace(members[0], start=start)
        elif tail.body is None:
            of = find_document_before(text, start) or (find_act_before(text, start, end) if bare else None)
            tail = replace(tail, of=of)
    found = _build_section_citations(text, start, members, tail, "section")
    if noted and (law := found[-1].law) is not None:
        found = [*found[:-1], replace(found[-1], law=replace(law, citation=f"{law.citation} note"), labels=())]
    return found, max(end, tail.after)


def _read_number(text: str, anchor: re.Match[str], citing: _Citing) -> tuple[Sequence[Citation], int]:
    start = anchor.start()
    members, end = parse_numbers(text, start, start, plural=text[start : start + 9].count("-") > 1)
    if not members or _DATE.match(members[0].number) or UNIT.match(text, members[0].end):
        return (), max(end, anchor.end())
    hyphened, first = "-" in members[0].number, start == 0 or text[start - 1] == "\n"
    tail = _tail(text, end, citing.state)
    if tail.body is None and (
        (hyphened and not _is_alike(members[0].number, citing.number))
        or ((hyphened or first) and not _WORD_BEFORE.search(text, max(0, start - 9), start))
    ):
        return (), max(members[0].end, anchor.end())
    return [
        replace(each, confidence=BY_NUMBER_ALONE)
        for each in _build_section_citations(text, start, members, tail, "number")
    ], max(end, tail.after)


def _is_alike(number: str, other: str) -> bool:
    """Whether two numbers have the same form and the same first part."""
    return re.split(r"\w+", number) == re.split(r"\w+", other) and number.split("-")[0] == other.split("-")[0]


def _build_section_citations(
    text: str, start: int, members: Sequence[Member], tail: _Tail, form: str
) -> Sequence[Citation]:
    """Build citations of sections, of another law if the tail names one."""
    members = [*members]
    if tail.body is not None:
        members[-1] = replace(members[-1], end=tail.end)
    raw = text[start : members[-1].end]
    title = tail.title or dict(tail.levels).get("title")
    of = tail.of or (tail.body.name if tail.body else None)
    of_city = tail.of_city or _CITY_BEFORE.search(text, max(0, start - _DOCUMENT_REACH), start) is not None
    found = []
    for member in members:
        law = _law_of(tail.body, member.number, title, dict(tail.levels)) if tail.body else None
        levels = () if law else (*tail.levels, ("section", member.number))
        found.append(
            Citation(
                member.start, member.end, raw, _form(tail.body) or form, levels, member.labels, member.through, law,
                None if law else of, of_city,
                DOUBTFUL if member.doubtful else _get_confidence(member.number, law, of),
            )
        )  # fmt: skip
    return found


def _get_confidence(number: str, law: Law | None, of: str | None) -> float:
    if law is not None:
        return WITH_WORD
    return min(WITH_WORD if separator_of(number) else WITHOUT_SEPARATOR, OF_DOCUMENT if of else WITH_WORD)


def _read_level(text: str, anchor: re.Match[str], citing: _Citing) -> tuple[Sequence[Citation], int]:
    """Parse a title, chapter, article or part: ``subchapter I of Chapter 5 of Title 2``, ``Title 59, Chapter 2, Part
    5``."""
    kind, plural = _kind(anchor[0]), anchor[0].rstrip(" :.").lower().endswith("s")
    if anchor[0].rstrip(" :").isupper() and (anchor.start() == 0 or text[anchor.start() - 1] == "\n"):
        # A heading within the text.
        return (), anchor.end()
    if kind == "division" and _CLASS.search(text, max(0, anchor.start() - 12), anchor.start()):
        # Dangerous goods: Class 1, Division 1.1.
        return (), anchor.end()
    members, end = parse_numbers(
        text, anchor.end(), anchor.end() if plural else anchor.start(), plural=plural, level=True
    )
    if not members or (kind == "title" and _ROMAN.fullmatch(members[0].number) and _PROGRAM.match(text, end)):
        return (), anchor.end()
    while len(members) < MEMBERS and (again := _AGAIN.match(text, end)) and _kind(again["kind"]) == kind:
        further, after = parse_numbers(text, again.end(), again.start("kind"), plural=False, level=True)
        if not further:
            break
        members, end = [*members, *further], after
    chain: tuple[tuple[str, str], ...] = ()
    labels: tuple[str, ...] = ()
    if len(members) == 1:
        chain, end = _chain(text, end, kind)
        if chain and chain[-1][0] == "section":
            labels, end = parse_labels(text, end)
    tail = _tail(text, end, citing.state, kind)
    if kind == "title" and len(members) == 1 and not chain and tail.body and tail.body.titled:
        found, after = _read_sections_of_body(text, anchor.start(), tail.end, tail.body, members[0].number)
        if found:
            return found, after  # "Title 14 CFR Part 77"
    end = max(end, tail.end)
    named = _ACT_NAME.match(text, end)
    numbered = members[-1].end
    members[-1] = replace(members[-1], end=end)
    raw = text[anchor.start() : end]
    enacted = find_act_before(text, anchor.start(), end) if kind in ("chapter", "title") else None
    of_city = tail.of_city or bool(_CITY_BEFORE.search(text, max(0, anchor.start() - _DOCUMENT_REACH), anchor.start()))
    found = []
    if tail.body and len(members) == 1 and not chain:
        whole = replace(members[0], end=numbered)
        members = split_level(whole, _numbering_of(tail.body, tail.title))
        members[-1] = replace(members[-1], end=end)
    for member in members:
        levels = (*tail.levels, (kind, member.number), *chain)
        law, of = None, tail.of or (named[1] if named else None) or enacted
        if tail.body:
            first = levels[0] if len(levels) > 1 and tail.body.titled and levels[0][0] == "title" else None
            words = ", ".join(f"{each.capitalize()} {number}" for each, number in levels[first is not None :])
            law = tail.body.part(words, tail.title or (first[1] if first else None))
        form = _form(tail.body) or levels[-1][0]
        own, of = ((), None) if law else (levels, of)
        found.append(Citation(member.start, member.end, raw, form, own, labels, member.through, law, of, of_city))
    return found, max(end, tail.after)


_READERS: Final = {
    "reporter": _read_reporter, "numbered": _read_act, "code": _read_code, "this": _read_this,
    "relative": _read_relative, "section": _read_section, "sign": _read_section, "level": _read_level,
    "unit": _read_level, "number": _read_number,
}  # fmt: skip


def _kind(word: str) -> str:
    """Get the kind of level for a word, which may be short or plural: chapter for ``Chs.``."""
    bare = word.strip(" :.").lower().removesuffix("s")
    return _SHORTENED.get(bare, bare)


def _chain(text: str, at: int, kind: str) -> tuple[tuple[tuple[str, str], ...], int]:
    """Parse the levels below a level, in order: ``, Chapter 2, Part 5`` after ``Title 59``."""
    found: list[tuple[str, str]] = []
    rank = _RANKS.get(kind, -1)
    while (link := _CHAIN.match(text, at)) and _RANKS[_kind(link["kind"])] > rank:
        below = _kind(link["kind"])
        match = {"section": NUMBER, "subpart": SUBPART}.get(below, LEVEL_NUMBER).match(text, link.end())
        match = match or LETTER.match(text, link.end())
        if match is None or (below == "section" and (kind or found) and separator_of(match[0])):
            break
        found.append((below, with_plain_hyphens(match[0])))
        rank, at = _RANKS[below], match.end()
    return tuple(found), at


def _tail(text: str, at: int, state: str | None, kind: str = "section", *, acronyms: bool = True) -> _Tail:
    """Parse the text after a citation of a `kind`: the levels above, a body of law, or another document."""
    end = at
    levels: tuple[tuple[str, str], ...] = ()
    for _ in _RANKS:
        skipped = _SKIPPED.match(text, at)
        at = skipped.end() if skipped else at
        if (law := _LAW.match(text, at)) and (body := _get_body(law["name"], state)):
            return _Tail(law.end(), law.end(), levels, body, title=law["title"])
        of = _OF.match(text, at)
        above = _OF_LEVEL.match(text, of.end()) if of else _UP.match(text, at)
        if above is None or (of is None and _RANKS[_kind(above["kind"])] >= _RANKS[kind]):
            break
        match = LEVEL_NUMBER.match(text, above.end())
        if match is None:
            break
        kind = _kind(above["kind"])
        levels = ((kind, with_plain_hyphens(match[0])), *levels)
        at = end = match.end()
    of = _OF.match(text, at)
    if of is None:
        return _Tail(end, end, levels)
    if this := _THIS.match(text, of.end()):
        kind = this["kind"].lower()
        if kind in _RANKS:
            return _Tail(this.end(), this.end(), ((kind, THIS), *levels))
        return _Tail(end, this.end(), levels)
    if home := statutes.find_home_after(text, of.end(), state):
        body, after = home
        return _Tail(after, after, levels, body)
    of_city = _CITY_AFTER.match(text, at) is not None
    return _Tail(end, end, levels, None, find_document_at(text, of.end(), acronyms=acronyms), of_city=of_city)


def _get_body(name: str, state: str | None) -> Body | None:
    return statutes.body_of(name, state) or statutes.body_of(name, state, titled=True)


def _form(body: Body | None) -> str | None:
    if body is None:
        return None
    return body.scheme if body.jurisdiction == "us" else "state code" if body.scheme == "code" else "state regulations"
