"""Laws other than a code's own, as texts call them: federal law, the codes of the states, numbered acts.

`eyecite` knows the reporters of cases. Of statutes it wants the section sign, cuts ``Utah Code § 10-9a-103`` at its
first hyphen and knows no ``MCL 125.3101``, which is most of what municipal codes cite.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Law:
    """A law that is no part of the code that cites it: a section where one is named, or a larger part of it."""

    jurisdiction: str
    """``us``, or ``us-`` and the two letters of a state: ``us-ut``."""
    scheme: str
    """What its numbers count in: usc, cfr, code, regulations, public-law, public-act, law, act."""
    citation: str
    """Normalised, without labels: ``42 U.S.C. § 1983``, ``Utah Code § 10-9a-103``, ``MCL 125.3101``."""


@dataclass(frozen=True, slots=True)
class Body:
    """A body of law that sections are cited of."""

    jurisdiction: str
    scheme: str
    name: str
    """As citations are normalised to."""
    sign: bool = True
    """Whether its sections have the sign: ``MCL 125.3101`` has not."""

    def section(self, number: str, title: str | None = None) -> Law:
        """Return one of its sections; `title` goes before it where sections count within a title."""
        name = f"{title} {self.name}" if title else self.name
        return Law(self.jurisdiction, self.scheme, f"{name} § {number}" if self.sign else f"{name} {number}")

    def part(self, words: str, title: str | None = None) -> Law:
        """Return a part of it: ``Title 17, Chapter 27a``."""
        name = f"{title} {self.name}" if title else self.name
        return Law(self.jurisdiction, self.scheme, f"{name} {words}")


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
"""Names of the states, and the District, with their two letters."""

_NAMED: Final = {
    "MCL": ("mi", "MCL", False), "MCLA": ("mi", "MCL", False), "UCA": ("ut", "Utah Code", True),
    "RCW": ("wa", "RCW", False), "ORS": ("or", "ORS", False), "NRS": ("nv", "NRS", False),
    "ARS": ("az", "A.R.S.", True), "CRS": ("co", "C.R.S.", True), "KSA": ("ks", "K.S.A.", False),
    "NJSA": ("nj", "N.J.S.A.", False), "OCGA": ("ga", "O.C.G.A.", True), "NCGS": ("nc", "N.C.G.S.", True),
    "RSA": ("nh", "RSA", False), "RSMo": ("mo", "RSMo", True), "KRS": ("ky", "KRS", False),
    "CGS": ("ct", "C.G.S.", True), "WSA": ("wi", "Wis. Stat.", True), "DCMR": ("dc", "DCMR", True),
}  # fmt: skip
"""How the codes of states are called for short: the letters, with or without their full stops."""

_SHORT: Final = "|".join("".join(f"{letter}\\.?\\s?" for letter in name[:-1]) + name[-1] + "\\b\\.?" for name in _NAMED)
_STATE: Final = "|".join(sorted((*STATES, r"D\.\s?C\."), key=len, reverse=True))
_KIND: Final = r"(?:Code|Statutes?|Laws|Regulations)\b(?:\s+Ann(?:otated\b|\.|\b))?"
_SUBJECTS: Final = r"(?:(?:[A-Z][a-z]+|and|&)\s+){0,4}?"
NAME: Final = rf"(?:State\s+of\s+)?(?:{_STATE})\s+{_SUBJECTS}{_KIND}|{_SHORT}"
"""Pattern of what a state's law is called by."""
_NAME: Final = re.compile(rf"(?:State\s+of\s+)?(?P<state>{_STATE})\s+(?P<subject>{_SUBJECTS})(?P<kind>{_KIND})")
_PLAIN: Final = frozenset({"", "Official", "Revised", "General", "Compiled", "Consolidated"})
FEDERAL: Final = r"(?:United\s+States|U\.\s?S\.)\s+Code|U\.\s?S\.\s?C\.(?:\s?A\.)?|USCA?\b"
FEDERAL_REGULATIONS: Final = r"C\.\s?F\.\s?R\b\.?|CFR\b|Code\s+of\s+Federal\s+Regulations(?:\s+\(CFR\))?"

ACTS: Final = (
    r"(?P<public_law>(?:Pub(?:lic\s+|\.\s?)L(?:aw\b|\.)|P\.\s?L\.)\s?(?:No\.\s?)?(?P<pl>\d{1,3}[-\u2013]\d{1,4}))"
    r"|(?P<dc>D\.\s?C\.\s+(?P<dc_kind>Law|Act)\s+(?P<dc_number>\d{1,3}[A-Z]?-\d{1,4}))"
    r"|(?P<public_act>(?:Public\s+Act|P\.\s?A\.|PA)\s+(?:No\.\s?)?(?P<pa>\d{1,4})\s+of\s+(?P<pa_year>\d{4})"
    r"|(?P<year_first>\d{4})\s+(?:Public\s+Act|P\.\s?A\.|PA)\s+(?:No\.\s?)?(?P<number_last>\d{1,4})"
    r"|(?:Public\s+Act|P\.\s?A\.)\s+(?:No\.\s?)?(?P<pa_hyphen>\d{2,4}-\d{1,4})"
    r"|Act\s+(?:No\.\s?)?(?P<act>\d{1,4})\s+of\s+the\s+(?:[A-Z][a-z]+\s+)?Public\s+Acts\s+of\s+(?P<act_year>\d{4}))"
)
"""Pattern of laws with a number of their own."""


def body_of(name: str) -> Body | None:
    """Return the body of law that a text calls by `name`, which `NAME` or the federal patterns match."""
    if re.fullmatch(FEDERAL, name):
        return USC
    if re.fullmatch(FEDERAL_REGULATIONS, name):
        return CFR
    letters = re.sub(r"[.\s]", "", name)
    if letters in _NAMED:
        state, called, sign = _NAMED[letters]
        return Body(f"us-{state}", "regulations" if letters == "DCMR" else "code", called, sign)
    if match := _NAME.fullmatch(name):
        state = " ".join(match["state"].split())
        letters = STATES.get(state, "dc")
        return _of_state(state, letters, " ".join(match["subject"].split()), match["kind"].split()[0])
    return None


def _of_state(state: str, letters: str, subject: str, kind: str) -> Body:
    jurisdiction = f"us-{letters}"
    if letters == "dc":
        if kind == "Regulations":
            return Body(jurisdiction, "regulations", "DCMR")
        return Body(jurisdiction, "code", "D.C. Official Code")
    if letters == "mi" and kind == "Laws":
        return Body(jurisdiction, "code", "MCL", sign=False)
    scheme = "regulations" if kind == "Regulations" or "Admin" in subject else "code"
    # Annotated or not, it is the same code; "Compiled" and the like tell no two codes of a state apart either.
    words = [state, *([subject] if subject and (subject not in _PLAIN or kind != "Code") else []), kind]
    return Body(jurisdiction, scheme, " ".join(words))


def act_of(match: re.Match[str], state: str | None) -> tuple[str, Law]:
    """Return the form and the law of a match of `ACTS`, cited in a code of a municipality of `state`."""
    if match["public_law"]:
        return "public law", Law("us", "public-law", f"Pub. L. {match['pl'].replace(chr(0x2013), '-')}")
    if match["dc"]:
        return "dc law", Law("us-dc", match["dc_kind"].lower(), f"D.C. {match['dc_kind']} {match['dc_number']}")
    jurisdiction = f"us-{state.lower()}" if state else "us"
    if match["pa_hyphen"]:
        return "public act", Law(jurisdiction, "public-act", f"Public Act {match['pa_hyphen']}")
    number = match["pa"] or match["number_last"] or match["act"]
    year = match["pa_year"] or match["year_first"] or match["act_year"]
    return "public act", Law(jurisdiction, "public-act", f"Public Act {int(number)} of {year}")
