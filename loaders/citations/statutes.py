"""Laws other than the code itself, by their names in texts: federal law, codes of states, numbered acts.

The names of the codes of each state are in ``codes.toml``.

We do not use eyecite, which is made for reporters of cases. Of 16 citations of state law in zoning codes this module
recognizes 12 and eyecite 2.7.8 recognizes 3, and 28 kB of text take 0.09 s here and 0.43 s there. eyecite requires the
section sign, cuts ``Utah Code § 10-9a-103`` at its first hyphen and does not know ``MCL 125.3101``.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final


@dataclass(frozen=True, slots=True)
class Law:
    """A law outside the citing text: one of its sections, or a larger part."""

    jurisdiction: str
    """Its key in `loaders.citations.jurisdictions`: ``us``, ``us-ut``, ``gbr``, ``au-vic``, ``eu``, ``int``."""
    scheme: str
    """Numbering scheme, such as usc, cfr, code, public-law, act, directive, treaty."""
    citation: str
    """Normalized, without labels: ``42 U.S.C. § 1983``, ``Utah Code § 10-9a-103``, ``MCL 125.3101``; for laws by title,
    number or name a key: ``clear-streams-act-1974``, ``2009-28``."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body of law with sections."""

    jurisdiction: str
    scheme: str
    name: str
    """Its name in normalized citations."""
    sign: bool = True
    """Whether its sections are cited with the section sign. ``MCL 125.3101`` is not."""
    titled: bool = False
    """Whether its chapters, parts and sections are numbered within titles: ``33 U.S.C. § 1251``."""
    chaptered: bool = False
    """Whether its sections are numbered within chapters: ``M.G.L. c. 40A, § 3``."""

    def section(self, number: str, title: str | None = None) -> Law:
        """Build the citation of a section. `title` comes first where sections are numbered within a title."""
        name = f"{title} {self.name}" if title else self.name
        return Law(self.jurisdiction, self.scheme, f"{name} § {number}" if self.sign else f"{name} {number}")

    def part(self, words: str, title: str | None = None) -> Law:
        """Build the citation of a part: ``Title 17, Chapter 27a``. Without words it is the whole title."""
        name = f"{title} {self.name}" if title else self.name
        return Law(self.jurisdiction, self.scheme, f"{name} {words}".rstrip())


FEDERAL_SCHEMES: Final = frozenset({"usc", "cfr", "public-law"})
"""Schemes of federal law of the United States, whose citations are the same in every text."""
USC: Final = Body("us", "usc", "U.S.C.", titled=True)
CFR: Final = Body("us", "cfr", "C.F.R.", titled=True)

_TABLE: Final[Mapping[str, Mapping[str, Any]]] = tomllib.loads(
    (Path(__file__).parent / "codes.toml").read_text(encoding="utf-8")
)
STATES: Final[Mapping[str, str]] = {each["name"]: letters for letters, each in _TABLE.items()}
"""States and the District by name, with their two letters."""
_SHORTENED: Final = {short: each["name"] for each in _TABLE.values() for short in each.get("short", ())}
"""Abbreviations of states in citations, without blanks."""
_WORDS: Final = {
    "Gen.": "General", "Rev.": "Revised", "Comp.": "Compiled", "Consol.": "Consolidated", "Stat.": "Statutes",
    "Stats.": "Statutes", "Admin.": "Administrative", "Gov.": "Government", "Gov't": "Government", "Loc.": "Local",
    "Mun.": "Municipal", "Envtl.": "Environmental", "Conserv.": "Conservation", "Pub.": "Public", "Exec.": "Executive",
    "Prop.": "Property", "Serv.": "Service", "Transp.": "Transportation",
}  # fmt: skip
"""Abbreviations of other words in the names of laws."""

_Names = defaultdict[tuple[str, bool], dict[str | None, Body]]


def _read_table() -> tuple[Mapping[str, Body], _Names, Mapping[str, Mapping[str, Body]], Mapping[bool, list[str]]]:
    """Read the codes by their names: in normalized citations; as cited, titled or not, by the state whose texts cite
    them so, or None; and in words, which texts of a state cite. Returns the patterns of those cited, too.
    """
    called: dict[str, Body] = {}
    cited: _Names = defaultdict(dict)
    home: dict[str, dict[str, Body]] = defaultdict(dict)
    patterns: dict[bool, list[str]] = {True: [], False: []}
    for state, entry in _TABLE.items():
        for each in entry.get("codes", ()):
            titled = each.get("titled", False)
            scheme = "regulations" if each.get("rules") else "code"
            chaptered = each.get("chaptered", False)
            body = Body(f"us-{state}", scheme, each["name"], each.get("sign", True), titled, chaptered)
            called[each["name"]] = body
            for manner in ("cited", "home"):
                for name in each.get(manner, ()):
                    if " " in name and "." not in name and not titled:
                        home[state][name.casefold()] = body
                        continue
                    cited[_to_letters(name), titled][state if manner == "home" else None] = body
                    patterns[titled].append(_to_pattern(name))
        for name in entry.get("subjects", ()):
            full = f"{entry['name']} {name}"
            home[state][name.casefold()] = called.get(full) or Body(f"us-{state}", "code", full)
    return called, cited, home, patterns


def _to_letters(name: str) -> str:
    return re.sub(r"[.\s]", "", name)


def _to_pattern(name: str) -> str:
    """Build the pattern of a name: letters with or without full stops and blanks, or words with both."""
    if name.isalpha():
        return "".join(rf"{letter}\.?\s?" for letter in name[:-1]) + name[-1] + r"\b\.?"
    words = re.escape(name).replace(r"\.\ ", r"\.\s?").replace(r"\ ", r"\s+")
    return re.sub(r"\\\.(?=\w)", r"\\.\\s?", words) + ("" if name.endswith(".") else r"\b")


def _join(patterns: Iterable[str]) -> str:
    """Join patterns that begin with a letter, by that letter: a search reads only those with the letter at hand."""
    by_letter: dict[str, list[str]] = defaultdict(list)
    for each in sorted({*patterns}, key=len, reverse=True):
        by_letter[each[0]].append(each[1:])
    return "|".join(f"{letter}(?:{'|'.join(rest)})" for letter, rest in sorted(by_letter.items()))


_CALLED, _CITED, _HOME, _PATTERNS = _read_table()
_HOME_NAMES: Final = {
    state: "|".join(
        re.escape(name).replace(r"\ and\ ", r"\s+(?:and|&)\s+").replace(r"\ ", r"\s+")
        for name in sorted(names, key=len, reverse=True)
    )
    for state, names in _HOME.items()
}
_HOME_AFTER: Final = {
    state: re.compile(rf"(?P<name>{names})(?!\w)", re.IGNORECASE) for state, names in _HOME_NAMES.items()
}
_HOME_BEFORE: Final = {
    state: re.compile(rf"(?<!\w)(?P<name>{names}),? ?$", re.IGNORECASE) for state, names in _HOME_NAMES.items()
}
_HOME_REACH: Final = 60
"""Code points before a citation that are searched for the name of a code: more than the longest."""

_STATE: Final = _join((*STATES, *(_to_pattern(name) for name in _SHORTENED)))
_KIND: Final = r"(?:(?:Code|Statutes?|Laws|Regulations|Rules)\b|Stats?\.)(?:\s+Ann(?:otated\b|\.|\b))?"
_SUBJECTS: Final = r"(?:(?:[A-Z][a-z'’]+\.?|and|&)\s+){0,4}?"
_OF: Final = rf"{_KIND}\s+of\s+(?:the\s+)?(?:State\s+of\s+)?"
_OF_STATE: Final = rf"(?:(?:[A-Z][a-z]+\.?|and|&)\s+){{0,4}}?{_OF}(?:{_STATE})(?!\w)(?:,?\s+Annotated)?"
_OF_NEW_YORK: Final = (
    r"(?:State\s+of\s+)?(?:N\.\s?Y\.|New\s+York)(?:\s+State)?\s+"
    r"(?!(?:City|Local)\b)({0}(?:[A-Z][a-z'’]+\.?|and|&)(?:\s+(?:[A-Z][a-z'’]+\.?|and|&)){{0,3}}?)\s+Law\b"
)
"""Pattern of the consolidated laws of New York, each cited by its own name: ``N.Y. Town Law``."""
_LETTERS_AFTER: Final = r"\s++\([A-Z.]{2,8}\)"
NAME: Final = (
    rf"(?:(?:State\s+of\s+)?(?:{_STATE})\s+{_SUBJECTS}{_KIND}|{_OF_STATE}|{_join(_PATTERNS[False])}"
    rf"|{_OF_NEW_YORK.format('?:')})(?:{_LETTERS_AFTER})?"
)
"""Pattern of the names of a state's law."""
_NAME: Final = re.compile(rf"(?:State\s+of\s+)?(?P<state>{_STATE})\s+(?P<subject>{_SUBJECTS})(?P<kind>{_KIND})")
_NAME_OF: Final = re.compile(
    rf"(?P<subject>.*?)(?=(?P<kind>[A-Z]\w{{1,12}}\.?\s)){_OF}(?P<state>{_STATE})(?:,?\s+Annotated)?", re.DOTALL
)
_NAME_OF_NEW_YORK: Final = re.compile(_OF_NEW_YORK.format("?P<subject>"))
_ALSO_CALLED: Final = {"Washington Code": "RCW", "Georgia Code": "O.C.G.A."}
"""Names of the codes that are cited both by name and by letters."""
_LOCAL: Final = re.compile(r"\b(?:City|Town|Township|Village|Borough|County|Parish)\b")
"""Words in the names of codes that are of a place: ``Kansas City Code``."""
_DC: Final = Body("us-dc", "code", "D.C. Official Code")
_PLAIN: Final = frozenset({"", "Official", "Revised", "General", "Compiled", "Consolidated"})
FEDERAL: Final = r"(?:United\s+States|U\.\s?S\.)\s+Code|U\.\s?S\.\s?C\.(?:\s?A\.)?|USCA?\b"
FEDERAL_REGULATIONS: Final = r"C\.\s?F\.\s?R\b\.?|CFR\b|Code\s+of\s+Federal\s+Regulations(?:\s+\(CFR\))?"
TITLED: Final = _join(_PATTERNS[True])
"""Pattern of the names of states' law that follow a title: ``310 CMR``."""

ACTS: Final = (
    r"(?P<public_law>(?:Pub(?:lic\s+|\.\s?)L(?:aw\b|\.)|P\.\s?L\.)\s?(?:No\.\s?)?(?P<pl>\d{1,3}[-\u2013]\d{1,4}))"
    r"|(?P<il>(?P<il_number>\d{1,3}\s+ILCS\s+\d{1,4}/\d(?:[\w.-]*\w)?))"
    r"|(?P<dc>D\.\s?C\.\s+(?P<dc_kind>Law|Act)\s+(?P<dc_number>\d{1,3}[A-Z]?-\d{1,4}))"
    r"|(?P<public_act>(?:Public\s+Act|P\.\s?A\.|PA)\s+(?:No\.\s?)?(?P<pa>\d{1,4})\s+of\s+(?P<pa_year>\d{4})"
    r"|(?P<year_first>\d{4})\s+(?:Public\s+Act|P\.\s?A\.|PA)\s+(?:No\.\s?)?(?P<number_last>\d{1,4})"
    r"|Act\s+(?:No\.\s?)?(?P<act>\d{1,4})\s+of\s+the\s+(?:[A-Z][a-z]+\s+)?Public\s+Acts\s+of\s+(?P<act_year>\d{4}))"
)
"""Pattern of laws with a number of their own."""


def body_of(name: str, state: str | None = None, *, titled: bool = False) -> Body | None:
    """Get the body of law for a name that matches `NAME`, `TITLED` or one of the federal patterns, in a text of
    `state`. None if it means no law there. `titled` is whether a title precedes it.
    """
    if re.fullmatch(FEDERAL, name):
        return USC
    if re.fullmatch(FEDERAL_REGULATIONS, name):
        return CFR
    name = re.sub(rf"(?<!\s){_LETTERS_AFTER}$", "", name)
    if (bodies := _CITED.get((_to_letters(name), titled))) is not None:
        return bodies.get((state or "").lower()) or bodies.get(None)
    if match := _NAME_OF_NEW_YORK.fullmatch(name):
        return Body("us-ny", "code", f"New York {_expand(match['subject'])} Law")
    if match := _NAME.fullmatch(name) or _NAME_OF.fullmatch(name):
        called = " ".join(match["state"].split())
        state = _SHORTENED.get(called.replace(". ", "."), called)
        subject = _expand(match["subject"])
        if _LOCAL.search(subject):
            return None
        kind = match["kind"].split()[0]
        return _of_state(state, STATES[state], subject, _WORDS.get(kind, kind))
    return None


def is_of_subject(body: Body) -> bool:
    """Whether a code is a law on its subject, such as the Florida Building Code, and no collection of all laws."""
    return (
        body.name.endswith(" Code")
        and body.name.removesuffix(" Code") not in STATES
        and body.name not in (_DC.name, *_CALLED)
    )


def find_home_after(text: str, at: int, state: str | None) -> tuple[Body, int] | None:
    """Find the code that a text of `state` names at `at` without the state, and the end of its name."""
    pattern = _HOME_AFTER.get((state or "").lower())
    match = pattern.match(text, at) if pattern else None
    return (_get_home(match, state), match.end()) if match else None


def find_home_before(text: str, start: int, state: str | None) -> tuple[Body, int] | None:
    """Find the code that a text of `state` names before `start`, and the start of its name."""
    pattern = _HOME_BEFORE.get((state or "").lower())
    match = pattern.search(text, max(0, start - _HOME_REACH), start) if pattern else None
    return (_get_home(match, state), match.start()) if match else None


def _get_home(match: re.Match[str], state: str | None) -> Body:
    return _HOME[(state or "").lower()][" ".join(match["name"].replace("&", "and").split()).casefold()]


def _expand(words: str) -> str:
    """Expand the abbreviations in the name of a law."""
    return " ".join(_WORDS.get(word.replace("’", "'"), word) for word in words.split())


def _of_state(state: str, letters: str, subject: str, kind: str) -> Body:
    jurisdiction = f"us-{letters}"
    if letters == "dc" and kind == "Regulations":
        return _CALLED["DCMR"]
    if letters == "dc" and subject in _PLAIN:
        return _DC
    if letters == "mi" and kind == "Laws":
        return _CALLED["MCL"]
    scheme = "regulations" if kind == "Regulations" or "Admin" in subject else "code"
    # An annotated code is the same code, and no state has two codes that differ in "Compiled" and the like.
    words = [state, *([subject] if subject and (subject not in _PLAIN or kind != "Code") else []), kind]
    called = " ".join(words)
    return _CALLED.get(_ALSO_CALLED.get(called, called)) or Body(jurisdiction, scheme, called)


def act_of(match: re.Match[str], state: str | None) -> tuple[str, Law]:
    """Build form and law for a match of `ACTS` in a code of a municipality of `state`."""
    if match["public_law"]:
        return "public law", Law("us", "public-law", f"Pub. L. {match['pl'].replace(chr(0x2013), '-')}")
    if match["il"]:
        return "state code", Law("us-il", "code", " ".join(match["il_number"].split()))
    if match["dc"]:
        return "dc law", Law("us-dc", match["dc_kind"].lower(), f"D.C. {match['dc_kind']} {match['dc_number']}")
    jurisdiction = f"us-{state.lower()}" if state else "us"
    number = match["pa"] or match["number_last"] or match["act"]
    year = match["pa_year"] or match["year_first"] or match["act_year"]
    return "public act", Law(jurisdiction, "public-act", f"Public Act {int(number)} of {year}")
