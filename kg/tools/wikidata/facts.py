"""The verdict on a reading of a question: which claims answer, support or contradict it, and the query that proves it.

Claims of rank deprecated never count. Without a date those of the best rank count, with one those whose qualifiers say
that they held then. Claims with a reservation (`reservations`) support as `qualified`, do not contradict. A different
value contradicts only where the property has one true value (`question_forms`), and for places only where it is known
that neither is in the other. All else is not found, with the nearest claims.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Final, Literal

from pyoxigraph import NamedNode

from kg.calendar_dates import Comparison, Date, compare_dates
from kg.fuzzy_names import fold
from kg.retrieval.reader import Reader
from kg.sparql.terms import Bindable, bind
from kg.text import quoted
from kg.tools.concepts.statement_properties import wikibase_of
from kg.tools.wikidata.claims import Claim, ClaimValue, load_claims, load_entities
from kg.tools.wikidata.entity_ids import to_iri
from kg.tools.wikidata.names import ItemNames
from kg.tools.wikidata.question_forms import is_single
from kg.tools.wikidata.questions import Reading
from kg.tools.wikidata.values import (
    compare_amounts,
    parse_amount,
    parse_date,
    read_stated_date,
)
from kg.vocabulary import WIKIBASE

Verdict = Literal["supported", "qualified", "contradicted", "not found"]
"""`qualified`: a claim states it with a reservation, which the reason names."""

POINT_IN_TIME: Final = "P585"
START: Final = "P580"
END: Final = "P582"
COUNTRY: Final = "P17"
_INSTANCE_OF: Final = "P31"
_COUNTRIES: Final = frozenset(("Q6256", "Q3624078"))
"""Classes of countries, none of which is in another."""
LOCATED: Final = ("P131", "P17", "P276", "P706", "P361", "P30")
"""Properties that state the place, district or country that a place is in."""
_PLACE_PROPERTIES: Final = frozenset(("P19", "P20", "P119", "P159", *LOCATED))
_LEVELS: Final = 5
_CLAIMS_READ: Final = 200
"""Maximum number of claims of one property that are compared."""
NEAREST: Final = 3

PROOF: Final = """
SELECT ?statement ?value ?rank WHERE {
  VALUES ?statement { $statement }
  $entity $claim ?statement . ?statement $value ?value ; wikibase:rank ?rank
  FILTER(?rank != $deprecated)
}"""

PROOF_OF_NONE: Final = """
SELECT ?statement ?value ?rank WHERE {
  VALUES ?statement { $statement }
  $entity $claim ?statement . ?statement a $none ; wikibase:rank ?rank
  BIND($none AS ?value)
  FILTER(?rank != $deprecated)
}"""


@dataclass(slots=True)
class Judgement:
    """The verdict on one reading of one item."""

    verdict: Verdict
    reason: str
    chosen: list[Claim] = field(default_factory=list)
    """The claims that answer, support or contradict, the best first."""
    nearest: list[Claim] = field(default_factory=list)
    """Without such claims, the nearest ones."""
    within: list[Claim] = field(default_factory=list)
    """Claims that place the value of a chosen one in the claimed place."""


class Judge:
    """Judges readings by the claims of items in the store."""

    def __init__(self, reader: Reader, names: ItemNames, *, present: bool) -> None:
        self._reader: Final = reader
        self._names: Final = names
        self._present: Final = present
        """Whether the question is about the present."""
        self._located: Final[dict[str, dict[str, list[Claim]]]] = {}
        self._classes: Final[dict[str, set[str]]] = {}

    def judge(self, reading: Reading, claims: Sequence[Claim]) -> Judgement:
        """Judge a reading by the claims of one property of one item, best ranks first."""
        usable = [claim for claim in claims if claim.rank != "deprecated"][:_CLAIMS_READ]
        if not usable:
            wrong = " Its only claims are deprecated: they are known to be wrong." if claims else ""
            return Judgement("not found", f"No claim of it is recorded.{wrong}", nearest=list(claims[:NEAREST]))
        picked, problem = self._pick(reading, usable)
        if problem is not None:
            return Judgement("not found", problem, nearest=picked[:NEAREST])
        if reading.value is None:
            return _answer(picked)
        return self._compare(reading, reading.value, picked, usable, claims)

    def _pick(self, reading: Reading, usable: Sequence[Claim]) -> tuple[list[Claim], str | None]:
        """Pick the claims that count; else the nearest ones and the reason why none does."""
        if reading.date is not None:
            return _pick_dated(usable, reading.date)
        best = [claim for claim in usable if claim.best]
        if self._present:
            going_on = [claim for claim in best if not _has_ended(claim)]
            if not going_on:
                return best, "The claims of it have ended, as their qualifiers say."
            best = going_on
        dated = [(date, claim) for claim in best if (date := _find_date(claim, POINT_IN_TIME)) is not None]
        if len(best) > 1 and len(dated) == len(best) and len({claim.value.value for claim in best}) > 1:
            latest = max(date.bounds() for date, _ in dated)
            others = [claim for date, claim in dated if date.bounds() == latest]
            # All of them can be meant by a value in the past; a question means the last one.
            best = others if reading.value is None or self._present else best
        return best, None

    def _compare(
        self, reading: Reading, value: str, picked: Sequence[Claim], usable: Sequence[Claim], claims: Sequence[Claim]
    ) -> Judgement:
        compared = [(claim, self.compare(value, claim)) for claim in picked]
        equal = [claim for claim, found in compared if found in ("equal", "converted")]
        if equal:
            kept = [claim for claim, found in compared if found == "equal" and not claim.qualified]
            within = [each for claim in kept or equal for each in self._explain_place(value, claim)]
            reason = "A claim of the best rank states it." if equal[0].best else "A claim states it, for that time."
            reason += " The place is in it." if within else ""
            if kept and not any(claim.qualified for claim in within):
                return Judgement("supported", reason + _explain_calendar(kept[0]), kept, within=within)
            notes = {
                "converted": "it is so in another calendar, which the text does not name",
                "different": "another claim states another value",
            }
            states = [found for _, found in compared]
            return _qualify(reason, equal, within, [text for state, text in notes.items() if state in states])
        earlier = [
            claim
            for claim in usable
            if claim not in picked and _is_temporal(claim) and self.compare(value, claim) == "equal"
        ]
        if earlier and not self._present and reading.date is None:
            return _support("A claim states it for a time that its qualifiers give.", earlier)
        note = self._explain_others(value, earlier, claims)
        nearest = list(picked[:NEAREST])
        unknown = [claim for claim, found in compared if found == "unknown" and claim.value.type != "novalue"]
        if unknown:
            return Judgement("not found", _explain_unknown(value, unknown[0]) + note, nearest=nearest)
        if not self._present and reading.date is None and any(_is_temporal(claim) for claim in usable):
            # Another value can have been true at a time of which no claim is recorded.
            return Judgement(
                "not found",
                f"It names no time, and claims of it are for certain times. Add one, as in: in 2011.{note}",
                nearest=nearest,
            )
        firm = [claim for claim in picked if not claim.qualified]
        if not firm:
            return Judgement(
                "not found",
                f"Another value is recorded with a reservation, so it does not contradict: {_reserve(picked)}.{note}",
                nearest=nearest,
            )
        nearest = firm[:NEAREST]
        if all(claim.value.type == "novalue" for claim in picked):
            return Judgement("contradicted", f"A claim states that there is none.{note}", nearest)
        other_country = picked[0].property == COUNTRY and self._is_country(value)
        if reading.how == "meaning":
            return Judgement("not found", f"The nearest property by meaning has another value.{note}", nearest=nearest)
        if not is_single(picked[0].property) and not other_country:
            return Judgement(
                "not found",
                f"Other values are recorded. There can be more that are not, so they do not contradict it.{note}",
                nearest=nearest,
            )
        return Judgement(
            "contradicted", f"The best claims state another value.{_explain_calendar(nearest[0])}{note}", nearest
        )

    def _explain_others(self, value: str, earlier: Sequence[Claim], claims: Sequence[Claim]) -> str:
        if earlier:
            when = "; ".join(filter(None, (describe_time(claim) for claim in earlier[:2])))
            return f" A claim of another time states it: {when}." if when else ""
        wrong = [claim for claim in claims if claim.rank == "deprecated" and self.compare(value, claim) == "equal"]
        if not wrong:
            return ""
        why = f" ({_reserve(wrong)})" if any(claim.qualified for claim in wrong) else ""
        return f" A claim that is deprecated states it, which is known to be wrong{why}."

    def compare(self, claimed: str, claim: Claim) -> Comparison:
        """Compare a value in a text with the value of a claim."""
        value = claim.value
        if value.type in ("somevalue", "novalue") or value.value is None:
            return "unknown"
        if value.type == "time":
            date, known = parse_date(claimed), _to_date(value)
            if date is None or known is None:
                return "unknown"
            compared = compare_dates(date, known)
            if compared == "different" and claimed.strip().startswith("-"):
                # -0044 is 45 BCE as ISO 8601 counts, and 44 BCE as Wikibase writes it.
                return compared if compare_dates(replace(date, year=date.year + 1), known) == compared else "unknown"
            return compared
        if value.type == "quantity":
            amount = parse_amount(claimed)
            if amount is None:
                return "unknown"
            return compare_amounts(amount, value.value, value.unit, value.lower, value.upper)
        if value.type == "entity":
            return self._compare_item(claimed, claim)
        if value.type == "text":
            return "equal" if fold(value.value) == fold(claimed) else "different"
        return "equal" if value.value == claimed.strip().rstrip("?.") else "unknown"

    def _compare_item(self, claimed: str, claim: Claim) -> Comparison:
        value = claim.value
        iri, name = to_iri(value.value or ""), _strip_article(fold(claimed))
        own = self._names.names_of(iri) | ({fold(value.label)} if value.label else set())
        if name in {_strip_article(each) for each in own} or name == fold(value.value or ""):
            return "equal"
        items = [*self._names.find_all(name), *self._names.find_all(fold(claimed))]
        if iri in items:
            return "equal"
        if not items or not own:
            return "unknown"  # names of one of them are not known here
        if claim.property not in _PLACE_PROPERTIES:
            return "different"
        if any(self.find_path(iri, item) for item in items):
            return "equal"
        if any(self.find_path(item, iri) for item in items):
            return "unknown"
        known = all(self._place_of(item) or self._is_country_item(item) for item in items)
        return "different" if known and (self._place_of(iri) or self._is_country_item(iri)) else "unknown"

    def _is_country(self, claimed: str) -> bool:
        name = fold(claimed)
        items = {*self._names.find_all(name), *self._names.find_all(_strip_article(name))}
        return bool(items) and all(self._is_country_item(item) for item in items)

    def _is_country_item(self, iri: str) -> bool:
        return bool(self._place_of(iri) is not None and self._classes[iri] & _COUNTRIES)

    def _explain_place(self, claimed: str, claim: Claim) -> list[Claim]:
        """List the claims that place the value of a claim in the claimed place, if that is another item."""
        if claim.value.type != "entity" or claim.property not in _PLACE_PROPERTIES:
            return []
        iri, name = to_iri(claim.value.value or ""), _strip_article(fold(claimed))
        if name in self._names.names_of(iri) or (claim.value.label and name == fold(claim.value.label)):
            return []
        paths = [self.find_path(iri, item) for item in self._names.find_all(name)]
        return next((path for path in paths if path), [])

    def find_path(self, inner: str, outer: str) -> list[Claim]:
        """Find the claims by which one place is in another; none if it is not known to."""
        paths: dict[str, list[Claim]] = {inner: []}
        level = [inner]
        for _ in range(_LEVELS):
            above: list[str] = []
            for place in level:
                for target, claims in self._place_of(place).items():
                    if target not in paths:
                        paths[target] = [*paths[place], claims[0]]
                        above.append(target)
            if outer in paths:
                return paths[outer]
            level = above
        return []

    def _place_of(self, iri: str) -> dict[str, list[Claim]]:
        """Load the places that contain a place, by the best claims."""
        if iri not in self._located:
            found: dict[str, list[Claim]] = {}
            classes: set[str] = set()
            entity = load_entities(self._reader, [iri], (*LOCATED, _INSTANCE_OF)).get(iri)
            statements = [each for each in entity.statements if each.best] if entity is not None else []
            for claim in load_claims(self._reader, statements):
                if claim.value.type != "entity" or not claim.value.value:
                    continue
                if claim.property == _INSTANCE_OF:
                    classes.add(claim.value.value)
                elif not _has_ended(claim):
                    found.setdefault(to_iri(claim.value.value), []).append(claim)
            self._located[iri], self._classes[iri] = found, classes
        return self._located[iri]


def _strip_article(name: str) -> str:
    first, _, rest = name.partition(" ")
    return rest if rest and first in ("the", "a", "an") else name


def _explain_unknown(claimed: str, claim: Claim) -> str:
    """Explain why a claim neither states nor excludes a value in a text."""
    value = claim.value
    if value.type == "somevalue":
        return "A claim states that there is a value, which is unknown."
    if value.type == "entity":
        shown = f"{quoted(value.label)} ({value.value})" if value.label else quoted(value.value)
        return f"{shown} is recorded. Whether that is {quoted(claimed)}, or is in it, is not known here."
    if value.type == "time":
        shown = _explain_calendar(claim) or f" {quoted(value.label or value.value)} is recorded ({value.precision})."
        return f"{shown.strip()} It neither states nor excludes {quoted(claimed)}."
    return f"{quoted(value.value)} is recorded, which cannot be compared with {quoted(claimed)}."


def _explain_calendar(claim: Claim) -> str:
    """Explain the day of a claim that is recorded in the Julian calendar."""
    date = _to_date(claim.value)
    if date is None or date.calendar != "julian" or date.day is None:
        return ""
    return f" {date} is recorded, which is {date.convert('gregorian').name_with_calendar()}."


def _reserve(claims: Sequence[Claim]) -> str:
    return "; ".join(dict.fromkeys(each for claim in claims for each in claim.qualified))


def _qualify(
    reason: str, claims: Sequence[Claim], within: Sequence[Claim] = (), others: Sequence[str] = ()
) -> Judgement:
    """Judge by claims that state it with a reservation, or in a calendar that the text does not name."""
    named = "; ".join(filter(None, [_reserve([*claims, *within]), *others]))
    shown = reason + (f" It is qualified: {named}." if named else "") + _explain_calendar(claims[0])
    return Judgement("qualified", shown, list(claims), within=list(within))


def _support(reason: str, claims: Sequence[Claim]) -> Judgement:
    """Judge by claims that state it, those without a reservation first. With these it is supported."""
    firm = [claim for claim in claims if not claim.qualified]
    rest = [claim for claim in claims if claim.qualified]
    if not firm:
        return _qualify(reason, rest)
    if rest:
        reason += f" {len(rest)} of them with a reservation: {_reserve(rest)}."
    return Judgement("supported", reason + _explain_calendar(firm[0]), [*firm, *rest])


def _answer(picked: Sequence[Claim]) -> Judgement:
    known = [claim for claim in picked if claim.value.type not in ("somevalue", "novalue")]
    if known:
        return _support(f"{len(known)} claims answer it." if len(known) > 1 else "A claim answers it.", known)
    if any(claim.value.type == "novalue" for claim in picked):
        return Judgement("not found", "A claim states that there is none.", nearest=list(picked[:NEAREST]))
    return Judgement("not found", "A claim states that there is one, which is unknown.", nearest=list(picked[:NEAREST]))


def _pick_dated(usable: Sequence[Claim], date: Date) -> tuple[list[Claim], str | None]:
    held = [claim for claim in usable if _held(claim, date)]
    if held:
        best = [claim for claim in held if claim.rank == "preferred"] or held
        return best, None
    timed = [claim for claim in usable if _is_temporal(claim)]
    if not timed:
        return list(usable), f"No claim of it has qualifiers of time, so none is known for {date}."
    nearest = sorted(timed, key=lambda claim: _distance(claim, date))
    return nearest, f"No claim of it is for {date}."


def _held(claim: Claim, date: Date) -> bool:
    """Whether the qualifiers say that a claim held at some time of a date, or all of it."""
    point = _find_date(claim, POINT_IN_TIME)
    if point is not None:
        return compare_dates(date, point) == "equal"
    start, end = _find_date(claim, START), _find_date(claim, END)
    if start is None:
        # When it began is unknown: it held at its end at least.
        return end is not None and compare_dates(date, end) == "equal"
    # In the year in which it began or ended, it held too.
    begins = start.bounds()[0] <= date.bounds(start.calendar)[1]
    ended = any(qualifier.property == END and qualifier.value.type != "novalue" for qualifier in claim.qualifiers)
    ends = not ended or (end is not None and date.bounds(end.calendar)[0] <= end.bounds()[1])
    return begins and ends


def _is_temporal(claim: Claim) -> bool:
    return any(_find_date(claim, name) is not None for name in (POINT_IN_TIME, START, END))


def _distance(claim: Claim, date: Date) -> float:
    dates = [found for name in (POINT_IN_TIME, START, END) if (found := _find_date(claim, name)) is not None]
    return min((abs(found.bounds()[1] - date.bounds(found.calendar)[1]) for found in dates), default=float("inf"))


def _has_ended(claim: Claim) -> bool:
    """Whether a qualifier states that a claim no longer holds."""
    for qualifier in claim.qualifiers:
        if qualifier.property == END and qualifier.value.type != "novalue":
            end = _to_date(qualifier.value)
            today = datetime.now(UTC)
            return end is None or end.bounds()[1] < Date(today.year, today.month, today.day).bounds()[0]
    return False


def _find_date(claim: Claim, property_id: str) -> Date | None:
    """Find the date of a qualifier."""
    for qualifier in claim.qualifiers:
        if qualifier.property == property_id and (date := _to_date(qualifier.value)) is not None:
            return date
    return None


def _to_date(value: ClaimValue) -> Date | None:
    return (
        read_stated_date(value.value, value.precision, value.calendar) if value.type == "time" and value.value else None
    )


def describe_time(claim: Claim) -> str:
    """Describe when a claim held, as its qualifiers say: ``2011``, ``1999 to 2009``."""
    if (point := _find_date(claim, POINT_IN_TIME)) is not None:
        return str(point)
    start, end = _find_date(claim, START), _find_date(claim, END)
    if start is None and end is None:
        return ""
    return f"{start or '...'} to {end or '...'}"


def build_proof(claim: Claim) -> str:
    """Build the query that shows a claim of the store with its value and rank. Without rows, it is not in the store."""
    if claim.guid is None:
        raise ValueError("A claim without a GUID is not in the store.")
    entity = to_iri(claim.qid)
    base = wikibase_of(entity) or ""
    statement = NamedNode(f"{base}entity/statement/{claim.guid.replace('$', '-', 1)}")
    terms: dict[str, Bindable | Sequence[Bindable]] = {
        "statement": [statement],
        "entity": NamedNode(entity),
        "claim": NamedNode(f"{base}prop/{claim.property}"),
        "deprecated": WIKIBASE.DeprecatedRank,
    }
    if claim.value.type == "novalue":
        return bind(PROOF_OF_NONE, **terms, none=NamedNode(f"{base}prop/novalue/{claim.property}")).strip()
    return bind(PROOF, **terms, value=NamedNode(f"{base}prop/statement/{claim.property}")).strip()


def prove(reader: Reader, claims: Sequence[Claim]) -> list[Claim]:
    """Run the proofs of claims, and return those that are proved."""
    return [claim for claim in claims if reader.rows("proof of a claim", build_proof(claim))]
