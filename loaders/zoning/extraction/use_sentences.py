"""Sentences about uses, such as ``A duplex may be allowed by special permit in the R-2 district.``

A sentence is parsed into subject, verb and adjuncts (places, ways, conditions). One that does not parse to its end
states nothing. The subject of a sentence about uses is a list of noun phrases, or announces the list that follows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from kg.words import singular
from loaders.zoning.extraction import districts as naming
from loaders.zoning.extraction.clauses import Clause, has_verb, parse_clauses, split_statements
from loaders.zoning.extraction.dimension_names import find_dimensions
from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.permission_levels import BOARD, Level, find_review, is_conditional, level_of
from loaders.zoning.extraction.use_lists import INHERITED, PLURAL, Span, split_list

_SAYS: Final = re.compile(r"\b(?:is|are|may|shall|will|must|can|requires?|includes?|uses?)\b", re.IGNORECASE)
_END: Final = re.compile(r"(?<!\b[A-Z])(?<!\bNo)(?<!\bSt)(?<!\bSec)\. (?=[A-Z“\"])")
_COLON: Final = re.compile(r":(?= (?!see\b|as\b)|$|\n)")
_OPEN_END: Final = re.compile(r"\b(?:except|other than|but)(?: only)?(?: for)?$")
"""The end of a sentence that announces a list without a colon."""
_GRANTED: Final = frozenset(
    ("permitted", "allowed", "authorized", "approved", "established", "require", "requires", "required")
)
_DENIED: Final = frozenset(("prohibited", "forbidden"))
_BUILT: Final = frozenset(("erected", "kept"))
_PERMITS: Final = re.compile(r"(?:(?:special|conditional)(?: use)? )?(?:permits?|exceptions?)", re.IGNORECASE)
_GRANTS: Final = frozenset(("allow", "permit", "authorize", "approve", "grant"))
_FRONT: Final = re.compile(
    r"(?:On|Upon|With|Subject to|After|By|Under|Pursuant to)\b[^:]*, "
    r"|Notwithstanding [^:,]*, |(?P<case>When|Where|If) [^:,]*, "
    r"|In addition to [^:,]*, |(?:In addition|However|Elsewhere|Also|Otherwise), |That (?=[a-z ]+s\b)"
)
_KIND: Final = r"(?:districts?|zones?|overlay)\b"
_WHERE: Final = re.compile(
    r",? ?(?:and )?(?P<where>(?:only )?(?:(?:on an? (?:lot|tract|parcel)|in (?:any|an?) dwelling) )?"
    r"(?:in|within) (?!addition\b)"
    r"(?:the |this |that |those |these |any |all |each |every |an? )?"
    rf"[^.;:]{{0,160}}?{_KIND}|there\b)(?: only\b)?",
    re.IGNORECASE,
)
_BY_CODE: Final = re.compile(r" (?:in|within) (?:the )?(?P<code>[A-Z][A-Z0-9/-]{1,6})(?=[,.;:]|$)")
"""``in the WRP``, without the word district"""
_WAY: Final = re.compile(
    r",? ?(?:and )?(?:(?:only )?(?:by|as|upon|on|with|through|under|after|subject to|for)(?: only)? "
    r"(?:(?:the )?(?:issuance|approval|granting|grant|receipt|review and approval) of )?"
    r"(?:an? |the )?(?:minor |major |administrative )?"
    r"(?:(?:matter )?of right|right|(?:conditional|special|specific|permitted|principal|primary|accessory)"
    r"(?: land)?(?: uses?)?(?: exceptions?| permits?| approval)?|use permits?|conditions)(?: only)?"
    r"|conditionally|outright|(?:only )?when accessory|by (?:the )?(?:[\w'-]+ ){0,3}?"
    rf"{BOARD}(?: of [A-Z]\w+)?)(?= |[,.;:(]|$)(?: to any? [^,.;:]{{3,60}})?",
    re.IGNORECASE,
)
_BY_PERMIT: Final = re.compile(r",? (?:by|upon|as|on|through) (?:an? )?(?:special|conditional)\b")
_DECIDED: Final = re.compile(
    rf"\b(?:{BOARD}|applications?\b|consent\b|approval\b|hearings?\b|procedure\b|petition\b)", re.IGNORECASE
)
_CONDITIONS: Final = re.compile(
    r",? ?\(?(?:(?:only )?if|provided|when|where|with|so long as|subject to|pursuant to|under|in accordance with"
    r"|on (?:an? |the )?(?:\w+ )?(?:lots?|tracts?|farms?|parcels?)|but (?:it|they|its|their))\b| ?\("
)
_EXCEPT: Final = re.compile(r",? ?(?:except|excluding|other than|but not|notwithstanding|after)\b")
_BUT: Final = re.compile(
    r",? (?:excluding|except(?:ing)?|other than|but not|including|such as|as an? |as defined (?:in|by|under))\b.*",
    re.DOTALL,
)
_AS_USES: Final = re.compile(r" uses?(?= in\b| within\b|[.,;]|$)")
"""``are prohibited [uses] in all districts``"""
_TOWN: Final = re.compile(
    r",? ?(?:in|within) the (?:(?:corporate|municipal) )?(?:boundaries|limits|city|town(?:ship)?|village|county)\b"
    r"(?: (?:boundaries|limits))?(?: of (?:the )?[\w ]{2,40})?",
    re.IGNORECASE,
)
"""The place of the whole code, which limits nothing."""
_EACH_ONE: Final = re.compile(r"\bonly (?:if|when|where)|(?:provided|if)(?: that)? (?:they|each)\b")
_EVERY: Final = r"(?:any and all|each and every|all|any|every|each)(?: of the)?"
_OF_KIND: Final = re.compile(
    r"(?:in|within) (?:any|all|each|every) (?P<kind>residential|residence|commercial|industrial|agricultural|business)"
    r" (?:zoning )?(?:districts?|zones?)",
    re.IGNORECASE,
)
_KINDS: Final = re.compile(
    r"\b(?:residential|residence|commercial|industrial|agricultural|business|office|mixed|institutional|public)\b",
    re.IGNORECASE,
)
_OWN: Final = re.compile(r"(?:in|within) (?:this|the) (?:zoning )?(?:district|zone)", re.IGNORECASE)
_SAME: Final = re.compile(r"(?:in|within) (?:that|those|these) (?:zoning )?(?:districts?|zones?)|there", re.IGNORECASE)
_ANNOUNCED: Final = re.compile(
    r"(?:only )?(?:(?:any )?(?:of )?(?:the|these) )?(?:following|these)(?: [\w-]+){0,5}"
    r"(?: and their accessory uses|,? and no others?)?"
    r"|(?:(?:accessory|principal|permitted|conditional|special|prohibited) )?uses|as follows"
    r"|(?:the )?uses (?:set forth|listed|enumerated|described|named|specified) (?:below|herein)|",
    re.IGNORECASE,
)
_USES: Final = re.compile(r"\b(?:uses?|exceptions?)\b", re.IGNORECASE)
_STATUS: Final = re.compile(
    r"(?:not )?(?:an? )?(?:(?:permitted|allowed|conditional|special|prohibited|accessory|principal|by[- ]right) )+"
    rf"(?:uses?|exceptions?)(?: in [^,;]{{1,60}}{_KIND})?",
    re.IGNORECASE,
)
"""``a permitted use in the R-1 District``"""
_COPULA: Final = re.compile(
    r"(?P<subject>.+?),? (?P<verb>(?:is|are|shall be)(?: (?:deemed|considered))?|includes?)(?P<rest>(?: |$).*)", re.S
)
_THINGS: Final = r"(?:buildings?|lands?|structures?|premises|lots?|tracts?|parcels?|propert(?:y|ies))"
_GENERIC: Final = re.compile(rf"(?:(?:an?|any|the|all|no) )?{_THINGS}\b|it (?:is|shall be) unlawful\b", re.IGNORECASE)
_USED: Final = re.compile(r"\b(?:used?|occupied|erected)\b[^:;]{0,400}?\bfor\b(?P<rest>[^:]*)", re.IGNORECASE)
_NONE_BUT: Final = re.compile(
    r"No (?:other )?(?:[\w-]+ (?:or )?){0,3}?(?:uses?|buildings?|structures?|lands?|premises)\b[^:;]{0,240}?"
    r"\b(?:permitted|allowed|used|occupied|erected|established)\b[^:;]{0,240}?\b(?:except|other than|but)\b[^:;]{0,80}?"
    r"\b(?:the following|these)\b[^:;]*",
    re.IGNORECASE,
)
"""``No use shall be permitted in the R-1 District except the following:``"""
_NO_PERMIT: Final = re.compile(
    r"No (?:\w+ )?(?:permit|certificate)s?\b[^:;]{0,240}?\b(?:the following|these)(?: [\w-]+){0,3} (?:until|unless)\b"
    r"[^:;]{0,240}?"
    rf"\b(?:{BOARD}|special|conditional|hearing)[^:;]*",
    re.IGNORECASE,
)
"""``No permit shall be issued for any of the following uses until the Board has approved it:``"""
_UNLESS: Final = re.compile(r"(?:unless|except (?:by|on|upon|with|when|if|as|under|pursuant|after))\b", re.IGNORECASE)
_LOCATES: Final = frozenset(("locate", "operate", "located", "conducted", "carried"))
_BUT_FOR: Final = re.compile(r"\b(?:except(?: only)?,? for|(?:other|others) than|except (?=the following))\b")
"""``No building shall be used except for``"""
_NO_USE: Final = re.compile(
    r"\b(?:it|they|this|that|these|those|such|same|said|following|others|which|who|whom|whose|one(?!-)|ones|none|there"
    r"|nothing|anything|what|he|she|you|we|no|not|persons?|people|owners?|applicants?"
    r"|is|are|was|were|be|been|has|have|had|shall|must|may|will|can|does|do|means?|includes?|if|when|unless"
    r"|however|therefore|more|less|fewer|than|otherwise|notwithstanding|provided|approved|permitted|allowed|authorized"
    r"|prohibited|listed|required|nonconforming|hereby|herein)\b|\d",
    re.IGNORECASE,
)
"""Words that a noun phrase for a use does not contain: pronouns, verbs, people, numbers."""
_NO_FIRST: Final = re.compile(
    r"(?:in|within|on|for|as|at|by|from|under|and|or|but|nor|each|any|all of|(?:all )?others?|some|certain|limited"
    r"|only|additional|similar"
    r"|with|without|upon|after|also|so|where|to)\b",
    re.IGNORECASE,
)
_NO_HEAD: Final = frozenset(
    re.findall(
        r"\w+",
        "use height permit permits approval variance variances exception exceptions waiver waivers modification "
        "modifications reduction "
        "increase expansion extension enlargement alteration reconstruction change amendment application "
        "applications activity activities district districts zone zones stories story "
        "standards requirements conditions regulations wire signage windows doors facades",
    )
)
"""Last words of noun phrases that are no land uses: actions and documents."""
_NO_WORD: Final = frozenset(
    re.findall(
        r"\w+",
        "uses building buildings structure structures lot lots land premises yard yards access driveway driveways "
        "subdivision subdivisions fencing merchandise goods animals "
        "neighborhoods fence fences wall walls sign signs parking lighting landscaping trees material materials repair "
        "restoration",
    )
)
"""The same of words without another word."""
_JOINED: Final = re.compile(
    r" (?:of|for|in|on|with|from|at|by|within|along|without|serving|containing|under|above|customary|used|where|that) "
)
_ARTICLE: Final = re.compile(r"(?:an?|the other|the|any|one|each|every|new|only)(?= )", re.IGNORECASE)
_WORDS: Final = 16
_LONGEST: Final = 3_000  # code points of a sentence


@dataclass(frozen=True, slots=True)
class Statement:
    """A statement of the sentence [start, end) about uses, or about the list after it."""

    uses: Sequence[Span]
    """Empty if the sentence announces a list."""
    level: Level | None
    """None if the sentence leaves it to the heading above it: ``The following may be allowed:``"""
    raw: str
    """The words for the level."""
    conditions: Sequence[str]
    review: str | None
    districts: Sequence[str] | None
    """The districts that the sentence names. None if it names none."""
    same: bool
    """It is about the districts of the sentence before it."""
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Inheritance:
    """A reference to the uses of another district: ``Any use permitted in the C-1 District, except theaters``.

    It is at the offsets [start, end) of the section's text.
    """

    district: str
    source: str | None
    """Code of the other district. None if it could not be read."""
    level: Level
    raw: str
    """Verbatim, with its exceptions."""
    raw_level: str
    """The words for the level."""
    start: int
    end: int
    confidence: float


def find_sentences(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the sentences in [start, end) of a text."""
    at = start
    for stop in _END.finditer(text, start, end):
        yield at, stop.start() + 1
        at = stop.end()
    if at < end:
        yield at, end


def parse_sentence(text: str, start: int, end: int, known: Mapping[str, District]) -> Sequence[Statement]:
    """Parse the sentence [start, end) into the statements of its clauses. `known` are the districts of the code.

    The last statement of a sentence that ends with a colon has no uses.
    """
    if end - start > _LONGEST:
        return ()
    found_at = _COLON.search(text, start, end)
    colon = found_at.start() if found_at else end if _OPEN_END.search(text, start, end) else -1
    stop = colon if colon >= 0 else end - (text[end - 1] in ".;")
    found: list[Statement] = []
    whole = colon >= 0 and _USED.search(text, start, stop) is not None
    statements = [parse_clauses(text, start, stop)] if whole else split_statements(text, start, stop)
    for clauses in statements if _SAYS.search(text, start, stop) else ():
        announces = colon >= 0 and clauses[-1].end == stop
        said = _Statement(text, clauses, start, end, known, found, announces=announces).parse()
        if not said:
            found = [*found[:-1], *(_extend_condition(each, text, clauses[0].start, stop) for each in found[-1:])]
            break  # The clauses after it may depend on it.
        found += said
    if colon < 0 or not found or found[-1].uses:
        return found if colon < 0 or not text[colon + 1 : end].strip() else ()
    lead = found.pop()
    listed = split_list(text[colon + 1 : end]) or split_described(text[colon + 1 : end])
    if not listed and text[colon + 1 : end].strip():
        return ()
    uses = [(colon + 1 + first, colon + 1 + last) for first, last in listed]
    return [*found, replace(lead, uses=uses)]


def _extend_condition(said: Statement, text: str, at: int, stop: int) -> Statement:
    """Extend a condition that ends at an offset by the rest of the sentence, which was not understood.

    ``that not more than one person who lives elsewhere | is employed there``
    """
    last = said.conditions[-1] if said.conditions else ""
    rest = text[at:stop].rstrip()
    if not last or ";" in rest or not text[:at].rstrip(" ,").endswith(last):
        return said
    return replace(said, conditions=[*said.conditions[:-1], f"{last}{text[len(text[:at].rstrip(' ,')) : at]}{rest}"])


class _Statement:
    """Parser of a statement of the sentence [first, last) of a text: a clause with those that depend on it."""

    def __init__(
        self,
        text: str,
        clauses: Sequence[Clause],
        first: int,
        last: int,
        known: Mapping[str, District],
        before: Sequence[Statement],
        *,
        announces: bool,
    ) -> None:
        self._text, self._clauses, self._known, self._announces = text, clauses, known, announces
        self._before = before
        self._start, self._end = clauses[0].start, clauses[-1].end
        self._sentence = first, last
        self._parts: list[tuple[list[str], list[str]]] = [([], [])]
        """Ways and places after the verb that belong together: ``by right in C-1 and by special permit in C-2``."""
        self._places: list[str] = []
        self._ways: list[str] = []
        self._conditions: list[str] = []
        self._excluded: list[str] = []
        self._limits: list[str] = []
        """Measures of a use in an enumeration: ``inns of not more than ten rooms``."""

    def parse(self) -> Sequence[Statement]:
        """Parse the statement, which may give several levels. Empty if it is not about uses, or is not understood to
        its end."""
        said = self._parse_whole()
        levels = {"conditional" if is_conditional(" ".join(ways)) else "byRight" for ways, _ in self._parts if ways}
        if said is None or len(levels) < 2:
            return [] if said is None else [said]
        made: list[Statement] = []
        for ways, places in self._parts:
            codes = [code for where in places for code in _find_places(where, self._known) or ()]
            if not (ways and codes and said.uses and said.level == "conditional") or self._conditions:
                return []  # Which level is for which district?
            level: Level = "conditional" if is_conditional(" ".join(ways)) else "byRight"
            made.append(replace(said, level=level, raw=" ".join([said.raw.partition(" ")[0], *ways]), districts=codes))
        return made

    def _parse_whole(self) -> Statement | None:
        text, end = self._text, self._end
        at = self._parse_front(self._start)
        if self._announces and (none := _NONE_BUT.fullmatch(text, at, end) or _NO_PERMIT.fullmatch(text, at, end)):
            if where := _WHERE.search(text, at, end):
                self._places.append(where["where"])
            free = none.re is _NONE_BUT and not is_conditional(none[0])
            return self._state((), "byRight" if free else "conditional", "permitted")
        if _GENERIC.match(text, at, end) and _USED.search(text, at, end):
            return self._parse_used(at)
        inherited = INHERITED.match(text, at, end)
        begin = inherited.end() if inherited else at
        verb = next((one for one in self._clauses if one.verb >= begin and self._is_main(one)), None)
        if verb is not None and verb.done in _LOCATES and verb.modal == "may" and self._announces:
            listed = _ANNOUNCED.fullmatch(text[at : verb.verb].strip(" ,")) and not verb.negated
            rest = text[self._parse_adjuncts(verb.rest + 3 * text.startswith(" on ", verb.rest)) : end].strip(" ,")
            decided = any(is_conditional(way) or _DECIDED.search(way) for way in self._ways)
            return self._state((), "conditional" if decided else "byRight", verb.done) if listed and not rest else None
        if verb is None or verb.done not in _GRANTED | _DENIED | _BUILT | _GRANTS | {"granted"}:
            return self._parse_copula(at)
        if verb.aside:
            self._ways.append(verb.aside)
        if verb.done in _GRANTS:
            return self._parse_active(at, verb)
        permit = text[at : verb.verb].strip(" ,")
        decided = _DECIDED.search(" ".join(self._ways)) is not None and permit.casefold() == "permits"
        if verb.done == "required" and is_conditional(permit):
            return self._parse_required(verb)
        if verb.done == "granted" and verb.modal == "may" and _PERMITS.fullmatch(permit):
            return self._parse_required(verb) if decided or is_conditional(permit) else None
        return self._parse_passive(at, verb)

    def _parse_passive(self, at: int, verb: Clause) -> Statement | None:
        """``Inns are permitted in the C-2 District by special permit``"""
        text, end = self._text, self._end
        denied = verb.negated + (verb.done in _DENIED)
        rest = self._parse_adjuncts(verb.rest)
        more: Sequence[Span] = ()
        if also := re.compile(r",? (?:and so|as) are ").match(text, rest, end):
            more, rest = self._split_uses(also.end(), end), end
        extra = text[rest:end].strip(" ,")
        if denied == 1 and verb.negated and _UNLESS.match(extra) and is_conditional(extra):
            denied = 0  # "are not permitted unless a special permit is granted"
        level = self._level(verb, denied, extra)
        if not self._take_rest(verb, denied, level, rest, extra):
            return None
        said = f"{' '.join(self._ways)} {extra}"
        if _ANNOUNCED.fullmatch(text[at : verb.verb].strip(" ,")):
            if level == "byRight" and _EACH_ONE.search(said):
                level = "byRightWithConditions"
            return self._state((), level, verb.done) if self._announces else None
        only = re.search(r"\bonly\b", " ".join([text[verb.verb : verb.rest], *self._places]))
        restricted = only is not None and "right" not in said
        if level is None or (level == "byRight" and restricted) or (self._announces and not self._conditions):
            return None  # Where a use is permitted only is not how.
        return self._state_uses(at, verb, level, extra, more)

    def _take_rest(self, verb: Clause, denied: int, level: Level | None, rest: int, extra: str) -> bool:
        """Take the words after the adjuncts, from the offset `rest`, as a way or condition. False if they are not
        understood, or deny the statement."""
        required = verb.done.startswith("require")
        elsewhere = bool(re.search(_KIND, extra)) or bool(naming.find_codes(extra, self._known))
        excepted = not extra or (_EXCEPT.match(self._text, rest, self._end) and not (elsewhere and extra[0] == "e"))
        if denied and (required or denied > 1 or level != "notPermitted" or not excepted):
            return False
        if verb.done in _BUILT and not (denied and self._places):
            return False
        if not extra or re.fullmatch(r"and no others?(?: uses?)?", extra):
            return True
        if required:
            self._ways.append(extra)
            return True
        if denied:
            self._conditions.append(strip_brackets(extra))  # "except as incidental to a permitted use"
            return True
        if level == "conditional" and not self._announces and self._places == [] and _PLACED.search(extra):
            return False  # Where?
        placed = elsewhere and re.match(r"(?:on|where|with)\b", extra)
        may = extra.startswith("and may ")
        understood = level == "conditional" or self._announces or may
        if not understood and (placed or not _CONDITIONS.match(self._text, rest, self._end)):
            return False
        if not may and not (self._announces and level == "conditional"):
            self._conditions.append(strip_brackets(extra))
        return True

    def _state_uses(self, at: int, verb: Clause, level: Level, extra: str, more: Sequence[Span]) -> Statement | None:
        """State the level of the uses before a verb, and of `more`. None if one of them is not a use."""
        text = self._text
        none = re.compile("[Nn]o ").match(text, at, self._end)
        if verb.subject in ("they", "it") and self._before:
            uses = list(self._before[-1].uses)
        else:
            uses = [*self._split_uses(none.end() if none else at, verb.verb), *more]
        one = re.compile(r"(?:not more than )?one ", re.IGNORECASE).match(text, at)
        if one is not None:
            self._conditions.append(one[0].strip())
        if self._limits:
            if level != "conditional" and len(uses) > 1:
                return None  # The limit is of one of them.
            self._conditions += self._limits if len(uses) == 1 else ()
        if level == "byRight" and self._conditions:
            level = "byRightWithConditions"
            about = [use for use in uses if singular(text[slice(*use)].split()[-1].casefold()) in extra]
            uses = about or uses  # A condition of one of several uses is none of the others.
        return self._state(uses, level, verb.done) if uses else None

    def _is_main(self, clause: Clause) -> bool:
        """Whether the verb of a clause is that of the statement.

        The relative clause may be part of a reference: ``Inns as defined in the Act, which includes hotels, are
        prohibited``. Without a subject only a prohibition is understood.
        """
        if clause.role == "relative" and clause.done in _DENIED and not clause.negated:
            before = self._text[self._start : clause.verb]
            return before[-2:] == ", " and before[:3] != "No " and " as defined " in before
        return clause.has_verb and clause.role in ("main", "item")

    def _parse_front(self, at: int) -> int:
        """Parse places and ways before the subject."""
        main = (one.verb for one in self._clauses if one.has_verb and one.role in ("main", "item"))
        until = next(main, self._end)
        while True:
            if where := _WHERE.match(self._text, at, self._end):
                self._places.append(where["where"])
                at = where.end() + len(_find_prefix(",? ?", self._text, where.end()))
            elif front := _FRONT.match(self._text, at, until):
                case = front["case"] and not _DECIDED.search(front[0])
                if front[0] != "That ":
                    (self._conditions if case else self._ways).append(front[0].strip(" ,"))
                at = front.end()
            else:
                return at

    def _parse_adjuncts(self, at: int) -> int:
        """Parse the places and ways after the verb."""
        at += len(_find_prefix(_AS_USES, self._text, at))
        coded = None if _WHERE.match(self._text, at, self._end) else _BY_CODE.match(self._text, at, self._end)
        if coded and coded["code"] in self._known:
            self._places.append(f"in the {coded['code']} District")
            self._parts[-1][1].append(self._places[-1])
            at = coded.end()
        while match := _WHERE.match(self._text, at, self._end) or _WAY.match(self._text, at, self._end):
            words = match[0].strip(" ,")
            kind = int(match.re is _WHERE)
            if self._parts[-1][kind] and words.startswith("and "):
                self._parts.append(([], []))
            words = words.removeprefix("and ")
            self._parts[-1][kind].append(match["where"] if kind else words)
            (self._places if kind else self._ways).append(words)
            at = match.end()
        return at + len(_find_prefix(_TOWN, self._text, at))

    def _level(self, verb: Clause, denied: int, extra: str) -> Level | None:
        said = " ".join([self._text[verb.verb : verb.rest], *self._ways, extra])
        if denied:
            return None if is_conditional(said) or "right" in said else "notPermitted"
        if verb.done.startswith("require"):
            return "conditional" if is_conditional(said) else None
        if is_conditional(said) or (
            _DECIDED.search(said) and (verb.modal == "may" or extra.startswith(("subject to", "upon")))
        ):
            # "by right or by special permit" is neither.
            return (
                None if len(self._parts) == 1 and re.search(r"\b(?:of|by)[- ]right\b|outright", said) else "conditional"
            )
        if verb.modal == "may" or verb.done in ("approved", "established"):
            return None
        return level_of(f"permitted {said} uses") if "condition" in said else "byRight"

    def _parse_copula(self, at: int) -> Statement | None:
        """``The uses permitted are``, ``The following are conditional uses in the VC District``"""
        match = _COPULA.fullmatch(self._text, at, self._end)
        if match is None:
            return None
        subject, rest = match["subject"], match["rest"].strip()
        level = level_of(subject)
        if level is None and _ANNOUNCED.fullmatch(subject):
            level, subject, rest = level_of(rest), rest, ""
        level = level or (level_of(rest) if _STATUS.fullmatch(rest) else None)
        of_use = level_of(subject) is None and not _ANNOUNCED.fullmatch(match["subject"])
        where = _WHERE.search(rest if of_use else subject)
        if where is not None:
            self._places.append(where["where"])
        if of_use and level is not None and not self._announces:
            uses = self._split_uses(at, match.start("verb"))
            return self._state(uses, level, rest) if uses else None
        if level is None or not _USES.search(subject) or len(subject.split()) > _WORDS or any(find_dimensions(subject)):
            return None
        if self._announces:
            return self._state((), level, subject) if _ANNOUNCED.fullmatch(rest) else None
        uses = self._split_uses(match.start("rest") + 1, self._end) if rest else ()
        return self._state(uses, level, subject) if uses else None

    def _parse_active(self, at: int, verb: Clause) -> Statement | None:
        """``The Board may allow the following special uses in this district``"""
        subject = self._text[at : verb.verb]
        if verb.modal != "may" or verb.negated or not re.search(BOARD, subject, re.IGNORECASE) or "," in subject:
            return None
        rest = verb.rest
        grant = re.compile(r"(?: an?)? (?:special|conditional)(?: use)? (?:exceptions?|permits?)").match(
            self._text, rest, self._end
        )
        if verb.done == "grant" and (grant is None or self._text.startswith(" to th", grant.end())):
            return None  # "may grant exceptions to this rule"
        if grant is not None:
            self._ways.append(grant[0])
            rest = grant.end()
        rest = self._parse_adjuncts(rest)
        rest += len(_find_prefix(r"(?:, )?(?:under|pursuant to) [^,:]*, | for |,? ?", self._text, rest))
        said = self._text[rest : self._end]
        if self._announces:
            if where := _WHERE.search(said):
                self._places.append(where["where"])
            return self._state((), "conditional", verb.done) if _ANNOUNCED.match(said) else None
        ends = (each.search(self._text, rest, self._end) for each in (_WHERE, _BY_PERMIT))
        stop = min((match.start() for match in ends if match), default=self._end)
        if more := self._text[self._parse_adjuncts(stop) : self._end].strip(" ,"):
            self._conditions.append(strip_brackets(more))
        if not (self._places or any(is_conditional(way) for way in self._ways)):
            return None
        uses = self._split_uses(rest, stop)
        return self._state(uses, "conditional", verb.done) if uses else None

    def _parse_required(self, verb: Clause) -> Statement | None:
        """``A conditional use permit is required for any kennel in the A-1 District``"""
        rest = self._parse_adjuncts(verb.rest)
        start = rest + len(_find_prefix(" for (?:(?:any|all|each|every|an?|the) )?", self._text, rest))
        if verb.negated or start == rest:
            return None
        if self._announces:
            return (
                self._state((), "conditional", verb.done) if _ANNOUNCED.match(self._text[start : self._end]) else None
            )
        where = _WHERE.search(self._text, start, self._end)
        stop = where.start() if where else self._end
        uses = self._split_uses(start, stop) if self._parse_adjuncts(stop) == self._end else ()
        return self._state(uses, "conditional", verb.done) if uses else None

    def _parse_used(self, at: int) -> Statement | None:
        """``No building shall be used except for the following``, ``Land in the M-1 District may be used for``"""
        said = self._text[at : self._end]
        used = _USED.search(said)
        denied = re.match("no |it ", said, re.IGNORECASE) is not None
        excepted = _BUT_FOR.search(said) is not None
        only = re.search(r"\b(?:only|may be)\b", said) is not None
        if used is None or " not " in said or (not denied and (excepted or not only)):
            return None
        if where := _WHERE.search(said):
            self._places.append(where["where"])
        level: Level = "notPermitted" if not excepted and denied else "byRight"
        level = "conditional" if is_conditional(said) and not denied else level
        if self._announces:
            return (
                self._state((), level, "used for")
                if re.search(r"^$|\b(?:following|these|listed)\b", used["rest"])
                else None
            )
        plain = used["rest"].strip() and not (denied and (excepted or has_verb(used["rest"])))
        uses = self._split_uses(at + used.start("rest") + 1, self._end) if plain else ()
        return self._state(uses, level, "used for") if uses else None

    def _state(self, uses: Sequence[Span], level: Level | None, raw: str) -> Statement | None:
        same = any(_SAME.fullmatch(where) for where in self._places)
        named = [_find_places(where, self._known) for where in self._places if not _SAME.fullmatch(where)]
        codes = [code for each in named if each is not None for code in each]
        if any(each is not None and not each for each in named):
            return None  # a place that is not understood
        said = self._text[self._sentence[0] : self._end]
        return Statement(
            uses,
            level,
            " ".join([raw, *(each for each in self._ways if level != "byRight" or "right" in each)]).strip(),
            [*self._conditions, *self._excluded],
            find_review(said) if level in ("conditional", None) else None,
            list(dict.fromkeys(codes)) if codes else None,
            same,
            *self._sentence,
        )

    def _split_uses(self, start: int, end: int) -> Sequence[Span]:
        """Split noun phrases into uses. Empty if one of them is none."""
        text = self._text
        if inherited := INHERITED.match(text, start, end):
            return [(start, start + len(text[start:end].rstrip(" ,")))] if inherited else []
        if but := _BUT.search(text, start, end):
            self._excluded.append(text[but.start() : end].strip(" ,"))
            end = but.start()
        found: list[Span] = []
        for first, last in split_phrases(text, start, end):
            first += len(text[first:last]) - len(text[first:last].lstrip())
            if article := _ARTICLE.match(text, first, last):
                first = article.end() + 1
            if limit := _LIMIT.search(text, first, last):
                self._limits.append(text[limit.start() : last].strip(" ,"))
                last = limit.start()
            last = first + len(text[first:last].rstrip(" ,"))
            if not _is_use(text[first:last]) or " not " in text[first:last]:
                return []
            found.append((first, last))
        return found


def _find_prefix(pattern: str | re.Pattern[str], text: str, at: int) -> str:
    """Find what matches a pattern at an offset of a text; empty if nothing does."""
    return match[0] if (match := re.compile(pattern).match(text, at)) else ""


_LIMIT: Final = re.compile(r",? (?:of|with|for|on|having) (?:not|no) (?:more|less|fewer) than .*", re.DOTALL)
_PLACED: Final = re.compile(rf"\b(?:in|within) (?:the|any|all|each|every) [^.;:,]{{0,80}}{_KIND}", re.IGNORECASE)
_AND: Final = re.compile(r",? and/or |, and |, (?:together with )?| and ")
_PLURAL_BEFORE: Final = re.compile(r"(?:[a-z]{2}(?<![su])s|[a-z]{3}ing|ries)$")


def split_phrases(text: str, start: int, end: int) -> Iterator[Span]:
    """Split an enumeration in a sentence: at commas, and at the last ``and`` between two plurals."""
    commas = [m for m in _AND.finditer(text, start, end) if m[0] != " and "]
    words = [m for m in _AND.finditer(text, start, end) if m[0] == " and "]
    closed = any(m[0] == ", and " for m in commas)
    last = words[-1] if words and not closed else None
    if last is not None:
        before = text[max([start, *(m.end() for m in commas if m.end() <= last.start())]) : last.start()]
        plain = _PLURAL_BEFORE.search(before) and " of " not in before
        if any(m.start() > last.start() for m in commas) or not (plain or text.startswith("the ", last.end())):
            last = None
    at = start
    for m in sorted([*commas, *([last] if last else [])], key=lambda each: each.start()):
        yield at, m.start()
        at = m.end()
    yield at, end


_ACTION: Final = re.compile(r"the \w+ of (?!the |this |any |an? )")
"""``the sale of eggs``, in a list of uses"""


_MEMBER: Final = re.compile(rf"(?:^| )(?:{PLURAL.pattern})$| [a-z]{{3,}}ing$", re.IGNORECASE)
"""The end of a noun phrase for several: ``saw mills``, ``meat packing``."""


def split_described(words: str) -> Sequence[Span]:
    """Split a list of plural nouns, some with a description: ``kennels on five acres, and inns``"""
    end = len(words.rstrip(" .;"))
    start = end - len(words[:end].lstrip())
    spans = list(split_phrases(words, start, end))
    parts = [words[first:last].strip() for first, last in spans]
    named = [part for part in parts if not INHERITED.fullmatch(part)]
    nouns = [_JOINED.split(part, maxsplit=1)[0].split(" permitted")[0] for part in named]
    sound = all(
        noun and _is_use(noun) and (_MEMBER.search(noun) or _ACTION.match(part))
        for noun, part in zip(nouns, named, strict=True)
    )
    return spans if len(spans) > 1 and named and sound else []


def _find_places(where: str, known: Mapping[str, District]) -> Sequence[str] | None:
    """The districts that some words name: by code, or all of a kind by name. None if they mean the current district."""
    where = re.sub(r"^(?:only )?(?:(?:on an?|in (?:any|an?)) \w+ (?=in ))?|,? only$", "", where.strip())
    if kind := _OF_KIND.fullmatch(where):
        word = kind["kind"].casefold()
        alike = ("residential", "residence") if word.startswith("residen") else (word,)
        named = {code: {each.casefold() for each in _KINDS.findall(each.name)} for code, each in known.items()}
        return [code for code, words in named.items() if words and words <= set(alike)]
    if re.fullmatch(rf"(?:in|within) {_EVERY} (?:zoning )?(?:districts?|zones?)", where, re.IGNORECASE):
        return [code for code, each in known.items() if "overlay" not in each.name.casefold()]
    return None if _OWN.fullmatch(where) else naming.parse_place(where, known)


def _is_use(words: str) -> bool:
    noun = re.sub("^[Aa]ll ", "", _JOINED.split(words, maxsplit=1)[0].split(" (")[0])
    names = noun.split()
    return (
        bool(names)
        and len(words.split()) <= _WORDS
        and not _NO_USE.search(noun)
        and not _NO_FIRST.match(words)
        and _NO_HEAD.isdisjoint(word.casefold() for word in (names[-1], noun.partition(" to ")[0].split()[-1]))
        and (len(names) > 1 or names[0].casefold() not in _NO_WORD)
    )


def strip_brackets(words: str) -> str:
    """Strip trailing punctuation, and brackets around all of the words."""
    words = words.strip().rstrip(".;, ")
    depth = 0
    for place, character in enumerate(words):
        depth += (character == "(") - (character == ")")
        if depth == 0:
            return words[1:-1] if place and place == len(words) - 1 else words
    return words
