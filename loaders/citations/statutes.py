"""Laws other than the code itself, by their names in texts: federal law, codes of states, numbered acts.

We do not use eyecite, which is made for reporters of cases. Of 16 citations of state law in zoning codes this module
recognizes 12 and eyecite 2.7.8 recognizes 3, and 28 kB of text take 0.09 s here and 0.43 s there. eyecite requires the
section sign, cuts ``Utah Code § 10-9a-103`` at its first hyphen and does not know ``MCL 125.3101``.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


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

    @property
    def titled(self) -> bool:
        """Whether its chapters, parts and sections are numbered within titles: ``33 U.S.C. § 1251``."""
        return self.scheme in ("usc", "cfr") or self.name in ("DCMR", *_PENNSYLVANIAN)

    @property
    def chaptered(self) -> bool:
        """Whether its sections are numbered within chapters: ``M.G.L. c. 40A, § 3``."""
        return self.name == _MASSACHUSETTS

    def section(self, number: str, title: str | None = None) -> Law:
        """Build the citation of a section. `title` comes first where sections are numbered within a title."""
        name = f"{title} {self.name}" if title else self.name
        return Law(self.jurisdiction, self.scheme, f"{name} § {number}" if self.sign else f"{name} {number}")

    def part(self, words: str, title: str | None = None) -> Law:
        """Build the citation of a part: ``Title 17, Chapter 27a``."""
        name = f"{title} {self.name}" if title else self.name
        return Law(self.jurisdiction, self.scheme, f"{name} {words}")


_MASSACHUSETTS: Final = "Massachusetts General Laws"
_PENNSYLVANIAN: Final = ("P.S.", "Pa.C.S.")
FEDERAL_SCHEMES: Final = frozenset({"usc", "cfr", "public-law"})
"""Schemes of federal law of the United States, whose citations are the same in every text."""
USC: Final = Body("us", "usc", "U.S.C.")
CFR: Final = Body("us", "cfr", "C.F.R.")

STATES: Final = {
    "Alabama": "al", "Alaska": "ak", "Arizona": "az", "Arkansas": "ar", "California": "ca", "Colorado": "co",
    "Connecticut": "ct", "Delaware": "de", "District of Columbia": "dc", "Florida": "fl", "Georgia": "ga",
    "Hawaii": "hi", "Idaho": "id", "Illinois": "il", "Indiana": "in", "Iowa": "ia", "Kansas": "ks", "Kentucky": "ky",
    "Louisiana": "la", "Maine": "me", "Maryland": "md", "Massachusetts": "ma", "Michigan": "mi", "Minnesota": "mn",
    "Mississippi": "ms", "Missouri": "mo", "Montana": "mt", "Nebraska": "ne", "Nevada": "nv", "New Hampshire": "nh",
    "New Jersey": "nj", "New Mexico": "nm", "New York": "ny", "North Carolina": "nc", "North Dakota": "nd",
    "Ohio": "oh", "Oklahoma": "ok", "Oregon": "or", "Pennsylvania": "pa", "Rhode Island": "ri",
    "South Carolina": "sc", "South Dakota": "sd", "Tennessee": "tn", "Texas": "tx", "Utah": "ut", "Vermont": "vt",
    "Virginia": "va", "Washington": "wa", "West Virginia": "wv", "Wisconsin": "wi", "Wyoming": "wy",
}  # fmt: skip
"""States and the District by name, with their two letters."""

_SHORTENED: Final = {
    "Ala.": "Alabama", "Ariz.": "Arizona", "Ark.": "Arkansas", "Cal.": "California", "Colo.": "Colorado",
    "Conn.": "Connecticut", "Del.": "Delaware", "D.C.": "District of Columbia", "Fla.": "Florida", "Ga.": "Georgia",
    "Haw.": "Hawaii", "Ill.": "Illinois", "Ind.": "Indiana", "Kan.": "Kansas", "Ky.": "Kentucky", "La.": "Louisiana",
    "Me.": "Maine", "Md.": "Maryland", "Mass.": "Massachusetts", "Mich.": "Michigan", "Minn.": "Minnesota",
    "Miss.": "Mississippi", "Mo.": "Missouri", "Mont.": "Montana", "Neb.": "Nebraska", "Nev.": "Nevada",
    "N.H.": "New Hampshire", "N.J.": "New Jersey", "N.M.": "New Mexico", "N.Y.": "New York", "N.C.": "North Carolina",
    "N.D.": "North Dakota", "Okla.": "Oklahoma", "Or.": "Oregon", "Pa.": "Pennsylvania", "R.I.": "Rhode Island",
    "S.C.": "South Carolina", "S.D.": "South Dakota", "Tenn.": "Tennessee", "Tex.": "Texas", "Vt.": "Vermont",
    "Va.": "Virginia", "Wash.": "Washington", "W.Va.": "West Virginia", "Wis.": "Wisconsin", "Wyo.": "Wyoming",
}  # fmt: skip
"""Abbreviations of states in citations (The Bluebook, table T10), without blanks."""
_WORDS: Final = {
    "Gen.": "General", "Rev.": "Revised", "Comp.": "Compiled", "Consol.": "Consolidated", "Stat.": "Statutes",
    "Stats.": "Statutes", "Admin.": "Administrative", "Gov.": "Government", "Gov't": "Government", "Loc.": "Local",
    "Mun.": "Municipal", "Envtl.": "Environmental", "Conserv.": "Conservation", "Pub.": "Public", "Exec.": "Executive",
    "Prop.": "Property", "Serv.": "Service", "Transp.": "Transportation",
}  # fmt: skip
"""Abbreviations of other words in the names of laws."""

_NAMED: Final = {
    "MCL": ("mi", "MCL", False), "MCLA": ("mi", "MCL", False), "UCA": ("ut", "Utah Code", True),
    "RCW": ("wa", "RCW", False), "ORS": ("or", "Oregon Revised Statutes", True),
    "NRS": ("nv", "Nevada Revised Statutes", True), "ARS": ("az", "Arizona Revised Statutes", True),
    "CRS": ("co", "Colorado Revised Statutes", True), "KSA": ("ks", "Kansas Statutes", True),
    "NJSA": ("nj", "New Jersey Statutes", True), "OCGA": ("ga", "O.C.G.A.", True),
    "NCGS": ("nc", "North Carolina General Statutes", True), "RSA": ("nh", "New Hampshire Revised Statutes", True),
    "RSMo": ("mo", "Missouri Revised Statutes", True), "KRS": ("ky", "Kentucky Revised Statutes", True),
    "CGS": ("ct", "Connecticut General Statutes", True), "WSA": ("wi", "Wisconsin Statutes", True),
    "DCMR": ("dc", "DCMR", True), "ORC": ("oh", "Ohio Code", True), "TCA": ("tn", "Tennessee Code", True),
    "NMSA": ("nm", "New Mexico Statutes", True), "RIGL": ("ri", "Rhode Island General Laws", True),
    "MGLA": ("ma", _MASSACHUSETTS, True), "MGL": ("ma", _MASSACHUSETTS, True),
    "COMAR": ("md", "COMAR", False), "OAR": ("or", "Oregon Administrative Rules", False), "WAC": ("wa", "WAC", False),
    "IDAPA": ("id", "IDAPA", False), "NAC": ("nv", "Nevada Administrative Code", True),
}  # fmt: skip
"""Codes of states that are cited by letters, with or without full stops."""

_REGULATIONS: Final = frozenset({"DCMR", "COMAR", "OAR", "WAC", "IDAPA", "NAC"})
_FLORIDA: Final = r"F\.\s?S\.(?:\s?A\.)?(?=,?\s?(?:§|[Cc]h))"
_SHORT: Final = "|".join("".join(f"{letter}\\.?\\s?" for letter in name[:-1]) + name[-1] + "\\b\\.?" for name in _NAMED)
_STATE: Final = "|".join(
    sorted((*STATES, *(name.replace(".", r"\.\s?").removesuffix(r"\s?") for name in _SHORTENED)), key=len, reverse=True)
)
_KIND: Final = r"(?:(?:Code|Statutes?|Laws|Regulations)\b|Stats?\.)(?:\s+Ann(?:otated\b|\.|\b))?"
_SUBJECTS: Final = r"(?:(?:[A-Z][a-z'’]+\.?|and|&)\s+){0,4}?"
_OF: Final = rf"{_KIND}\s+of\s+(?:the\s+)?(?:State\s+of\s+)?"
_OF_STATE: Final = rf"(?:(?:[A-Z][a-z]+\.?|and|&)\s+){{0,4}}?{_OF}(?:{_STATE})\b(?:,?\s+Annotated)?"
_OF_NEW_YORK: Final = (
    r"(?:State\s+of\s+)?(?:N\.\s?Y\.|New\s+York)(?:\s+State)?\s+"
    r"(?!(?:City|Local)\b)({0}(?:[A-Z][a-z'’]+\.?|and|&)(?:\s+(?:[A-Z][a-z'’]+\.?|and|&)){{0,3}}?)\s+Law\b"
)
"""Pattern of the consolidated laws of New York, each cited by its own name: ``N.Y. Town Law``."""
_LETTERS_AFTER: Final = r"\s+\([A-Z.]{2,8}\)"
NAME: Final = (
    rf"(?:(?:State\s+of\s+)?(?:{_STATE})\s+{_SUBJECTS}{_KIND}|{_OF_STATE}|{_SHORT}|{_FLORIDA}"
    rf"|{_OF_NEW_YORK.format('?:')})(?:{_LETTERS_AFTER})?"
)
"""Pattern of the names of a state's law."""
_NAME: Final = re.compile(rf"(?:State\s+of\s+)?(?P<state>{_STATE})\s+(?P<subject>{_SUBJECTS})(?P<kind>{_KIND})")
_NAME_OF: Final = re.compile(
    rf"(?P<subject>.*?)(?=(?P<kind>[A-Z]\w+\.?\s)){_OF}(?P<state>{_STATE})(?:,?\s+Annotated)?", re.DOTALL
)
_NAME_OF_NEW_YORK: Final = re.compile(_OF_NEW_YORK.format("?P<subject>"))
_CALLED: Final = {"Washington Code": "RCW", "Georgia Code": "OCGA"}
"""Letters of the codes that are cited both by name and by letters."""
_PLAIN: Final = frozenset({"", "Official", "Revised", "General", "Compiled", "Consolidated"})
FEDERAL: Final = r"(?:United\s+States|U\.\s?S\.)\s+Code|U\.\s?S\.\s?C\.(?:\s?A\.)?|USCA?\b"
PENNSYLVANIAN: Final = r"(?:P\.\s?S\.|Pa\.\s?C\.\s?S\.(?:\s?A\.)?)(?=,?\s?§)"
FEDERAL_REGULATIONS: Final = r"C\.\s?F\.\s?R\b\.?|CFR\b|Code\s+of\s+Federal\s+Regulations(?:\s+\(CFR\))?"

ACTS: Final = (
    r"(?P<public_law>(?:Pub(?:lic\s+|\.\s?)L(?:aw\b|\.)|P\.\s?L\.)\s?(?:No\.\s?)?(?P<pl>\d{1,3}[-\u2013]\d{1,4}))"
    r"|(?P<il>(?P<il_number>\d{1,3}\s+ILCS\s+\d{1,4}/\d(?:[\w.-]*\w)?))"
    r"|(?P<dc>D\.\s?C\.\s+(?P<dc_kind>Law|Act)\s+(?P<dc_number>\d{1,3}[A-Z]?-\d{1,4}))"
    r"|(?P<public_act>(?:Public\s+Act|P\.\s?A\.|PA)\s+(?:No\.\s?)?(?P<pa>\d{1,4})\s+of\s+(?P<pa_year>\d{4})"
    r"|(?P<year_first>\d{4})\s+(?:Public\s+Act|P\.\s?A\.|PA)\s+(?:No\.\s?)?(?P<number_last>\d{1,4})"
    r"|Act\s+(?:No\.\s?)?(?P<act>\d{1,4})\s+of\s+the\s+(?:[A-Z][a-z]+\s+)?Public\s+Acts\s+of\s+(?P<act_year>\d{4}))"
)
"""Pattern of laws with a number of their own."""


def body_of(name: str) -> Body | None:
    """Get the body of law for a name that matches `NAME` or one of the federal patterns."""
    if re.fullmatch(FEDERAL, name):
        return USC
    if re.fullmatch(FEDERAL_REGULATIONS, name):
        return CFR
    if re.fullmatch(r"P(?:a\.\s?C)?\.\s?S\.(?:\s?A\.)?", name):
        return Body("us-pa", "code", _PENNSYLVANIAN[name.startswith("Pa")])
    name = re.sub(rf"{_LETTERS_AFTER}$", "", name)
    letters = re.sub(r"[.\s]", "", name)
    if letters in ("FS", "FSA"):
        return Body("us-fl", "code", "Florida Statutes")
    if letters in _NAMED:
        return _by_letters(letters)
    if match := _NAME_OF_NEW_YORK.fullmatch(name):
        return Body("us-ny", "code", f"New York {_expand(match['subject'])} Law")
    if match := _NAME.fullmatch(name) or _NAME_OF.fullmatch(name):
        called = " ".join(match["state"].split())
        state = _SHORTENED.get(called.replace(". ", "."), called)
        subject = _expand(match["subject"])
        kind = match["kind"].split()[0]
        return _of_state(state, STATES[state], subject, _WORDS.get(kind, kind))
    return None


def _expand(words: str) -> str:
    """Expand the abbreviations in the name of a law."""
    return " ".join(_WORDS.get(word.replace("’", "'"), word) for word in words.split())


def _by_letters(letters: str) -> Body:
    state, called, sign = _NAMED[letters]
    return Body(f"us-{state}", "regulations" if letters in _REGULATIONS else "code", called, sign)


def _of_state(state: str, letters: str, subject: str, kind: str) -> Body:
    jurisdiction = f"us-{letters}"
    if letters == "dc":
        if kind == "Regulations":
            return Body(jurisdiction, "regulations", "DCMR")
        return Body(jurisdiction, "code", "D.C. Official Code")
    if letters == "mi" and kind == "Laws":
        return Body(jurisdiction, "code", "MCL", sign=False)
    scheme = "regulations" if kind == "Regulations" or "Admin" in subject else "code"
    # An annotated code is the same code, and no state has two codes that differ in "Compiled" and the like.
    words = [state, *([subject] if subject and (subject not in _PLAIN or kind != "Code") else []), kind]
    called = " ".join(words)
    return _by_letters(_CALLED[called]) if called in _CALLED else Body(jurisdiction, scheme, called)


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
