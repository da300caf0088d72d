"""Laws that any text cites: acts and bills by title and year, numbered laws, law of the European Union, treaties,
federal law of the United States, and codes of its states in its own texts.

A bare ``the Act`` is only a citation where the same text defines it, as in ``Clean Rivers Act 2011 (the Act)``. One
pass finds the words of which every citation of a kind contains one, so that a text without them costs little.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from ahocorasick_rs import AhoCorasick, Implementation

from kg.words import to_word_set
from loaders.citations import act_titles, jurisdictions, section_citations, treaties
from loaders.citations.act_titles import UNSURE
from loaders.citations.patterns import build_alternatives
from loaders.citations.statutes import FEDERAL_SCHEMES, Law
from loaders.readers.cells import to_slug

BY_TITLE: Final = "title and year"
"""The method of citations of acts, bills, ordinances and regulations."""
BY_NUMBER: Final = "number and year"
"""The method of citations of numbered laws and decrees."""

# Confidences, measured: see `loaders.citations`.
OF_TREATY: Final = 0.96
"""Of a treaty by its name, which a later treaty may have too. 23 of 23."""
OF_EUROPE: Final = 0.95
"""Of law of the European Union: kind, year, number and community identify it. 19 of 19."""
OF_NUMBERED: Final = 0.98
"""Of a law by number and year, whose country is that of the document. 68 of 68."""
OF_CODE: Final = 0.98
"""Of a section of a code of the United States or of a state. 709 of 712 in ordinances."""
BY_DEFINED_NAME: Final = 0.9
"""Most that a citation has by a name which the text defines: the name may mean another law by then. 23 of 25."""


@dataclass(frozen=True, slots=True)
class LawCitation:
    """A citation at [start, end) of a text. `law` is None if its jurisdiction is unknown."""

    start: int
    end: int
    law: Law | None
    title: str
    """The title of the law in one line, as its identifier."""
    confidence: float
    method: str
    named: str = ""
    """The title without its year, by which the same text may cite the law again."""
    whole: int = 0
    """The end of the words that belong to the title: a mark of the jurisdiction, a number in brackets."""


@dataclass(frozen=True, slots=True)
class Context:
    """The text's document: its jurisdiction, None if it has none or several, and its year, None if unknown.

    With `only_federal`, as for codes of municipalities, an act may be of a state of that country unless words say that
    it is federal.
    """

    jurisdiction: str | None = None
    year: int | None = None
    only_federal: bool = False


_KINDS: Final = ("Act", "ACT", "Bill", "BILL", "Ordinance", "ORDINANCE", "Regulations", "REGULATIONS")
_ACT_SIGNS: Final = ("Act", "Bill", "ACT", "BILL", "Regulations", "rdinance")
_ACT_YEAR: Final = r"(?:1[6-9]|20)\d\d"
_ANY_YEAR: Final = re.compile(_ACT_YEAR)
_NUMBER_OF: Final = r"\(?(?:[Aa]ct,?\s+)?(?:[Nn]o\.?\s*)?\d{1,4}\s+of\s+"
_ACT: Final = re.compile(
    rf"(?P<kind>{build_alternatives(_KINDS)})(?![\w-])"
    rf"(?:,?\s*{_NUMBER_OF}(?P<numbered>{_ACT_YEAR})\)?"
    rf"|(?P<part>\s*\([Nn]o\.?\s?\d{{1,2}}\))?,?\s+(?:of\s+)?(?P<open>\(\s?)?(?P<year>{_ACT_YEAR})(?![\d,]\d|\d)"
    rf"(?:\s?[-–/]\s?(?:1[89]|20)?\d\d(?!\d))?(?(open)\s?\))(?:\s+(?=\(){_NUMBER_OF}{_ACT_YEAR}\))?(?P<later>\s*\[No\.?\s?\d\])?)"
)

_UNDER_ACT: Final = re.compile(
    r"\s+\([^()]{1,120}\)\s+(?:\([^()]{1,40}\)\s+)?(?:Orders?|Regulations?|Rules|Notice|Determination|Proclamation)\b"
)
"""The rest of the title of an instrument under an act, which is cited instead: ``Oil Act 2007 (Rates) Order 2012``."""

_NO: Final = r"(?:\s*(?:[Nn]umber|[Nn]o\.?|[Nn][º°o]\.?|[Nn]r\.?|[Nn]úm\.?))?"
_YEAR: Final = r"(?:1[89]|20)\d\d"
_NUMBERED_NAMES: Final = (
    "Royal Decree[- ]Law", "Royal Decree", "Real Decree", "Legislative Decree", "Supreme Decree",
    "Presidential Decree", "Decree[- ]Law", "Decree", "Law", "Act", "Real Decreto-[Ll]ey", "Real Decreto",
    "Decreto Legislativo", "Decreto Supremo", "Decreto[- ][Ll]ey", "Decreto[- ][Ll]ei", "Decreto", "Ley", "Lei", "Loi",
    "Décret",
)  # fmt: skip
_NUMBERED: Final = re.compile(
    rf"(?P<kind>{build_alternatives(_NUMBERED_NAMES)})"
    rf"(?P<no>{_NO})\s*(?:(?P<first>{_YEAR})-(?P<serial>\d{{1,5}})|(?P<number>\d{{1,3}}(?:[.,]\d{{3}})+|\d{{1,5}})"
    rf"(?:\s*[/-]\s*(?P<slash>{_YEAR})|(?<=\d\d\d)/(?P<short>\d\d)|,?\s+(?:of|de|del)\s+(?:the\s+)?"
    r"(?:\d{1,2}\s+(?:of\s+|de\s+)?[A-Za-zç]+\s+(?:of\s+|de\s+|del\s+)?|[A-Z][a-z]+\s+\d{1,2},?\s+)?"
    rf"(?P<year>{_YEAR})))(?![\d/-])"
)
_NUMBERED_SIGNS: Final = ("Act No", "Act no", "Law", "Decree", "Decreto", "Ley", "Lei", "Loi", "Décret")
_NUMBERED_KINDS: Final = {
    "act": "act", "law": "law", "ley": "law", "lei": "law", "loi": "law",
    "decree": "decree", "decreto": "decree", "décret": "decree",
    "royal decree": "royal-decree", "real decree": "royal-decree", "royal decree law": "royal-decree-law",
    "real decreto ley": "royal-decree-law", "real decreto": "royal-decree",
    "legislative decree": "legislative-decree", "decreto legislativo": "legislative-decree",
    "supreme decree": "supreme-decree", "decreto supremo": "supreme-decree",
    "presidential decree": "presidential-decree",
    "decree law": "decree-law", "decreto ley": "decree-law", "decreto lei": "decree-law",
}  # fmt: skip
_LATEST_SHORT: Final = 2030
"""The last year that two digits mean in a text of this century: 30 is 2030, 31 is 1931. It is after most texts, since
the dates of some are too early."""
_LOCAL: Final = re.compile(
    r"\b(?:complement\w+|state|provincial|municipal|regional|local|cantonal|estad\w+|autonómic\w+)\W*$", re.I
)

_TAG: Final = r"EC|EU|EEC|Euratom|CE|UE|CEE|EG|EWG"
_EU_NAMES: Final = (
    "directive", "regulation", "decision", "directiva", "reglamento", "decisión", "règlement", "décision",
    "regulamento", "decisão", "richtlinie", "verordnung",
)  # fmt: skip
_EU: Final = re.compile(
    rf"(?P<kind>{build_alternatives(each for name in _EU_NAMES for each in (name.capitalize(), name))})s?\s+"
    rf"(?:\((?P<tag>{_TAG})(?:,\s?Euratom)?\)\s+)?(?:[Nn][o°º.r]{{0,2}}\s?)?(?P<first>\d{{2,4}})/(?P<second>\d{{1,4}})"
    rf"(?:/(?P<suffix>{_TAG})\b)?(?![\d/])"
)
_YEAR_FIRST: Final = re.compile(r"20\d\d$")
_LISBON: Final = "2010"
"""The first year whose directives are of the European Union, after those of the European Community."""
_EU_NUMBER: Final = re.compile(r"\d/\d")
_EU_SIGNS: Final = ("irective 2", "/E", "(E", "/C", "/U", "(UE", "(C")
_EU_FURTHER: Final = re.compile(
    rf"(?:,\s*(?:and\s+)?|\s+(?:and|or|y|et|und|e)\s+)(?:\((?P<tag>{_TAG})(?:,\s?Euratom)?\)\s+(?:[Nn][o°º.r]{{0,2}}\s?)?"
    rf"(?P<first_tagged>\d{{2,4}})/(?P<second_tagged>\d{{1,4}})(?![\d/])"
    rf"|(?P<first>\d{{2,4}})/(?P<second>\d{{1,4}})/(?P<suffix>{_TAG})\b)"
)
_EU_KINDS: Final = {
    "directi": "directive", "richtli": "directive", "decisi": "decision", "décisi": "decision",
    "regula": "regulation", "reglam": "regulation", "règlem": "regulation", "verord": "regulation",
}  # fmt: skip
_EU_TAGS: Final = {"CE": "EC", "EG": "EC", "UE": "EU", "CEE": "EEC", "EWG": "EEC"}
_OLD: Final = 2015
"""Regulations of the European Union had number and year until 2014, and have year and number since."""

_FEDERAL: Final = re.compile(
    r"U\.\s?S\.\s?C|USCA?\b|C\.\s?F\.\s?R|CFR\b|Pub(?:lic|\.)\s?L|U(?:nited States|\.\s?S\.) Code"
)
_FEDERAL_SIGNS: Final = ("U.", "USC", "C.", "CFR", "Pub", " Code")
_CODE_SIGNS: Final = ("§", "ILCS", "Code", "Laws", "Statutes", "Section")
"""Words and signs of which each citation of a state's code contains one."""
_CODIFIED: Final = ("federal citation", "citation of a state's law")

_PINPOINT: Final = re.compile(
    r"(?<![\w-])(?:(?:[Ss]ub)?[Ss]ections?|[Aa]rticles?|[Pp]arts?|[Cc]hapters?|[Ss]chedules?|[Dd]ivisions?|[Pp]aragraphs?"
    r"|[Rr]egulations?|[Cc]lauses?|[Aa]rts?\.|[Ss]ecs?\.|ss?\.?|paras?\.?|§§?)\s?"
    r"\d+[A-Z]{0,3}(?:\.\d+)*(?:\s?\(\w{1,4}\))*(?:(?:,\s?|\s+(?:and|or|to)\s+|\s?[-–]\s?)\d+[A-Z]{0,3}(?:\.\d+)*(?:\s?\(\w{1,4}\))*){0,8}"
    r",?\s+(?:of|to|in|under)\s+(?:the\s+|that\s+)?$"
)
_FEDERAL_BEFORE: Final = re.compile(r"(?:[Ff]ederal|U\.\s?S\.|US|United States|national|Congress\w*)\s+$")

_FEDERAL_AFTER: Final = re.compile(
    r",?\s*+(?:as amended,?\s*+)?(?:[(\[]\s*+)?(?:Pub(?:lic\s|\.\s?)L|P\.\s?L\.|\d{1,2}\s+U\.?\s?S\.?\s?C\b)"
)
_DEFINED: Final = re.compile(
    r",?\s*[(\[]\s*(?:(?:hereinafter|hereafter|herein|referred to as|called|collectively|or)\s+){0,3}"
    r"(?:[\"“‘']?the\s+)?[\"“‘']?(?:the\s+)?(?P<name>[A-Z][\w&-]*(?:\s[A-Z][\w&-]*){0,3})[\"”’']?\s*[)\]]"
)
_GENERIC: Final = to_word_set(
    """
    Act Bill Law Convention Protocol Agreement Treaty Directive Regulation Regulations Decree Ordinance Decision
    Statute Covenant Code
    """
)


_KINDS_BY_SIGN: Final = [
    (sign, kind)
    for kind, signs in (
        (BY_TITLE, _ACT_SIGNS), ("european", _EU_SIGNS), ("treaty", treaties.SIGNS), (BY_NUMBER, _NUMBERED_SIGNS),
        ("federal", _FEDERAL_SIGNS), ("state", _CODE_SIGNS),
    )
    for sign in signs
]  # fmt: skip
_SIGNS: Final = AhoCorasick(
    [sign for sign, _ in _KINDS_BY_SIGN], store_patterns=False, implementation=Implementation.DFA
)


def find_laws(text: str, context: Context = Context()) -> Sequence[LawCitation]:
    """Find the laws that `text` cites, in text order and without overlaps."""
    kinds = {_KINDS_BY_SIGN[number][1] for number, _, _ in _SIGNS.find_matches_as_indexes(text, overlapping=True)}
    if not kinds:
        return []
    found: list[LawCitation] = []
    if BY_TITLE in kinds and _ANY_YEAR.search(text):
        found += _find_acts(text, context)
    if "european" in kinds and _EU_NUMBER.search(text):
        found += _find_european(text, context)
    if "treaty" in kinds:
        found += _find_treaties(text, context)
    if not context.only_federal:
        if BY_NUMBER in kinds:
            found += _find_numbered(text, context)
        american = context.jurisdiction is not None and jurisdictions.country_of(context.jurisdiction) == "us"
        if ("federal" in kinds and _FEDERAL.search(text)) or (american and "state" in kinds):
            found += _find_codified(text, context.jurisdiction or "", states=american)
    if found:
        found = [*_find_again(text, _drop_overlaps(found))]
        found = _drop_overlaps(found)
    return found


def _find_acts(text: str, context: Context) -> Iterator[LawCitation]:
    for match in _ACT.finditer(text):
        kind, year = match["kind"], int(match["year"] or match["numbered"])
        title = act_titles.find_title(text, match.start(), capitals=kind.isupper())
        if title is None:
            continue
        part = " ".join((match["part"] or "").split())
        words = title.words if not kind.isupper() else _to_title_case(title.words)
        called = f"{words} {kind.capitalize()}"
        later = " ".join((match["later"] or "").split())
        name = f"{called}{f' {part}' if part else ''} {year}{f' {later}' if later else ''}"
        key, confidence, end = _find_jurisdiction(text, title, match, context)
        if (context.year is not None and year > context.year + 1) or _UNDER_ACT.match(text, end):
            confidence = min(confidence, UNSURE)
        law = None if key is None else Law(key, kind.lower(), to_slug(re.sub(r"^(?:The|A|An) ", "", name)))
        confidence = min(confidence, UNSURE) if law is None else confidence
        yield LawCitation(title.start, match.end(), law, name, confidence, BY_TITLE, called, end)


def _find_jurisdiction(
    text: str, title: act_titles.Title, match: re.Match[str], context: Context
) -> tuple[str | None, float, int]:
    """Find the jurisdiction of an act: stated by words, else that of the document. Uncertain if others are near."""
    own, end = context.jurisdiction, match.end()
    if after := jurisdictions.find_after(text, end, own):
        return after[0], title.confidence, after[1]
    if title.jurisdiction is not None:
        return title.jurisdiction, title.confidence, end
    # The sentence before the title, and the words of the title: a name of another country makes it uncertain.
    low = max(0, title.start - 120)
    # "Senator FARROW (Tasmania) (16:05): " names the seat of the speaker.
    sentence = max(text.rfind(end_of, low, title.start) for end_of in (". ", "\n\n", "; ", "): "))
    named = jurisdictions.find_named(text, low if sentence < 0 else sentence, match.start())
    foreign = [key for key in named if key != own]
    if context.only_federal:
        federal = own == "us" and (
            _FEDERAL_BEFORE.search(text, max(0, title.start - 20), title.start) or _FEDERAL_AFTER.match(text, end)
        )
        return own, title.confidence if federal and not foreign else UNSURE, end
    if foreign:
        return foreign[-1], UNSURE, end
    return own, title.confidence, end


def _find_treaties(text: str, context: Context) -> Iterator[LawCitation]:
    for match in treaties.PATTERN.finditer(text):
        treaty = treaties.BY_NAME[" ".join(match[0].split())]
        if context.year is None or context.year >= treaty.year:
            law = Law(jurisdictions.TREATIES, "treaty", treaty.key)
            yield LawCitation(
                match.start(), match.end(), law, treaty.name, OF_TREATY, "name of a treaty", whole=match.end()
            )


def _find_european(text: str, context: Context) -> Iterator[LawCitation]:
    for match in _EU.finditer(text):
        kind = next(kind for start, kind in _EU_KINDS.items() if match["kind"].casefold().startswith(start))
        at: re.Match[str] | None = match
        place, tag = match.start(), match["tag"]
        if kind == "directive" and context.jurisdiction == jurisdictions.EU and _YEAR_FIRST.match(match["first"]):
            tag = tag or match["suffix"] or ("EC" if match["first"] < _LISBON else "EU")  # "Directive 2018/410"
        while at is not None:
            further = at is not match and at["tag"]
            first, second = (at["first_tagged"], at["second_tagged"]) if further else (at["first"], at["second"])
            law = _build_european(kind, first, second, tag or at["tag"] or at["suffix"])
            if law is None:
                break
            yield LawCitation(
                place, at.end(), law[0], law[1], OF_EUROPE, "number of the European Union", whole=at.end()
            )
            at = _EU_FURTHER.match(text, at.end())
            place, tag = (at.start("tag") - 1 if at["tag"] else at.start("first"), at["tag"]) if at else (0, None)


def _build_european(kind: str, first: str, second: str, tag: str | None) -> tuple[Law, str] | None:
    if tag is None:
        return None
    tag = _EU_TAGS.get(tag, tag)
    if kind == "regulation":
        newer = len(first) == 4 and int(first) >= _OLD and tag == "EU"
        year, number = (first, second) if newer else (second, first)
    else:
        # "Decision No 406/2009/EC" has number and year too.
        newer = (len(first) == 4 and first[:2] in ("19", "20")) or len(second) != 4
        year, number = (first, second) if newer else (second, first)
    if len(year) == 2:
        year = f"19{year}"
    if len(year) != 4 or not "1951" <= year <= "2049":
        return None
    name = (
        f"{kind.capitalize()} ({tag}) {year}/{number}"
        if int(year) >= _OLD
        else f"{kind.capitalize()} {year}/{number}/{tag}"
    )
    if kind == "regulation" and int(year) < _OLD:
        name = f"Regulation ({tag}) No {number}/{year}"
    return Law(jurisdictions.EU, kind, f"{year}-{number}"), name


def _find_numbered(text: str, context: Context) -> Iterator[LawCitation]:
    if context.jurisdiction == "us":
        return
    for match in _NUMBERED.finditer(text):
        kind = _NUMBERED_KINDS[match["kind"].lower().replace("-", " ")]
        number = (match["serial"] or match["number"]).replace(".", "").replace(",", "")
        year = match["first"] or match["slash"] or match["year"] or _complete_year(match["short"], context)
        if year is None or ((match["first"] or kind == "act") and not match["no"]):
            continue
        if _LOCAL.search(text, max(0, match.start() - 24), match.start()):
            continue
        key = context.jurisdiction
        law = None if key is None else Law(key, kind, f"{number}-{year}")
        sure = OF_NUMBERED if kind != "decree" and law is not None else UNSURE
        name = f"{kind.replace('-', ' ').capitalize()} {number}/{year}"
        yield LawCitation(match.start(), match.end(), law, name, sure, BY_NUMBER, whole=match.end())


def _complete_year(short: str, context: Context) -> str | None:
    """Complete a year of two digits, as in ``Law 12.187/09``: the last such year that a text of its year can cite."""
    if context.year is None:
        return None
    latest = max(context.year, _LATEST_SHORT) if context.year >= 2000 else context.year
    year = latest - latest % 100 + int(short)
    return str(year if year <= latest else year - 100)


def _find_codified(text: str, jurisdiction: str, *, states: bool) -> Iterator[LawCitation]:
    """Find citations of federal law of the United States and, with `states`, of the codes of its states."""
    state = jurisdiction[3:].upper() if jurisdiction.startswith("us-") else None
    for each in section_citations.find_citations(text, state):
        law = each.law
        if law is not None and (law.scheme in FEDERAL_SCHEMES or (states and law.jurisdiction != "us")):
            method = _CODIFIED[law.jurisdiction != "us"]
            yield LawCitation(
                each.start, each.end, law, law.citation, min(OF_CODE, each.confidence), method, whole=each.end
            )


def _find_again(text: str, found: Sequence[LawCitation]) -> Iterator[LawCitation]:
    """Yield the citations with the sections that they name, and those by a name which the text defines before."""
    names: dict[str, LawCitation | None] = {}
    defined_at: dict[str, int] = {}
    for each in found:
        start = each.start
        if each.method not in _CODIFIED and (pinpoint := _PINPOINT.search(text, max(0, start - 90), start)):
            start = pinpoint.start()
        end = max(each.end, each.whole)
        yield LawCitation(start, end, each.law, each.title, each.confidence, each.method)
        if each.law is None or each.confidence <= UNSURE:
            continue
        if each.named and len(each.named.split()) > 1:
            names[each.named] = each if each.named not in names or _same(names[each.named], each) else None
        if defined := _DEFINED.match(text, end):
            name, defined_at[defined["name"]] = defined["name"], defined.end()
            if name in _GENERIC or not re.fullmatch(r"\d+|[IVX]+", name):
                names[name] = each if name not in names or _same(names[name], each) else None
    for name, law in names.items():
        if law is None:
            continue
        after = defined_at.get(name, law.end)
        if not all(text.find(word, after) >= 0 for word in name.split()):
            continue  # building the pattern takes longer than all other searches of a text
        # A name such as "Act" needs an article. For other names, the group ``this`` exists and never matches.
        the = r"(?:[Tt]he|(?P<this>[Tt]his|[Tt]hat))\s+" if name in _GENERIC else "(?P<this>(?!))?"
        spaced = re.escape(name).replace(r"\ ", r"\s+")
        pattern = re.compile(
            rf"(?<![\w-])(?:{the})(?P<name>{spaced})(?![\w-])(?!\s+(?:of\s+)?(?:\(|No\b|[12]\d{{3}}))(?!,\s[12]\d{{3}})"
        )
        for again in pattern.finditer(text, after):
            if name not in _GENERIC and _is_part(text, again.start("name")):
                continue
            begin = again.start("name")
            if again["this"] and (last := [each for each in found if each.end <= begin]) and not _same(last[-1], law):
                continue  # "This Act" is the one just named
            pinpoint = _PINPOINT.search(text, max(0, begin - 90), begin)
            yield LawCitation(
                pinpoint.start() if pinpoint else begin,
                again.end(),
                law.law,
                law.title,
                min(law.confidence, BY_DEFINED_NAME),
                "name defined in the text",
            )


def _same(one: LawCitation | None, other: LawCitation) -> bool:
    return one is not None and one.law == other.law


def _is_part(text: str, at: int) -> bool:
    """Whether a name at `at` is the end of a longer one, as ``Rivers Act`` in ``Clean Rivers Act``."""
    before = text[max(0, at - 30) : at].split()
    return (
        bool(before) and before[-1][:1].isupper() and before[-1] not in ("The", "Under", "In", "See", "A", "An", "This")
    )


def _drop_overlaps(found: Iterable[LawCitation]) -> list[LawCitation]:
    """Keep the longest of overlapping citations, in text order."""
    kept: list[LawCitation] = []
    for each in sorted(found, key=lambda each: (each.start, -each.end)):
        if kept and each.start < kept[-1].end:
            if each.end - each.start > kept[-1].end - kept[-1].start:
                kept[-1] = each
        else:
            kept.append(each)
    return kept


def _to_title_case(words: str) -> str:
    """Convert a title in capitals to one with initial capitals, and small words in lower case."""
    small = {"OF", "AND", "FOR", "THE", "TO", "IN", "ON", "OR", "BY", "WITH", "A", "AN"}
    parts = words.split(" ")
    return " ".join(
        word.lower() if number and word in small else re.sub(r"\w[\w'’]*", lambda found: found[0].capitalize(), word)
        for number, word in enumerate(parts)
    )
