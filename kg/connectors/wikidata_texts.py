"""The text answers of the published Wikidata MCP server, parsed: found entities, and claims with their GUIDs.

The texts have labels and ids of entities, but no GUIDs and no types of values. A GUID is found by a query for the
statements of the item and property; a claim that does not agree with exactly one statement has none.
"""

from __future__ import annotations

import calendar
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal, InvalidOperation
from typing import Final, Literal

from pyoxigraph import Literal as RdfLiteral
from pyoxigraph import NamedNode

from kg.calendar_dates import from_day_number, to_day_number
from kg.connectors.client import RemoteAnswer, RemoteServer
from kg.connectors.names import GET_CLAIMS
from kg.connectors.sparql import RemoteSparql
from kg.errors import NotFoundError, UpstreamError
from kg.remote.sparql import Binding
from kg.sparql.terms import bind
from kg.text import quoted
from kg.vocabulary import WD, WIKIBASE

Rank = Literal["preferred", "normal", "deprecated"]

MOST_CLAIMS: Final = 1_000
"""Claims of one answer that are read."""

_RANKS: Final[Mapping[str, Rank]] = {"preferred": "preferred", "normal": "normal", "deprecated": "deprecated"}
_UNAVAILABLE: Final = ("Wikidata is currently unavailable", "Unexpected server error")
_ABSENT: Final = re.compile(r"(?:Entity \S{1,40} not found|No statement found for|No matching)")
_FOUND: Final = re.compile(r"(?P<id>[QPL][1-9][0-9]*): (?P<label>.*?)(?: — (?P<description>.*))?", re.DOTALL)
_CLAIM: Final = re.compile(
    r"(?>(?P<label>.*?) ?\((?P<id>[QPL][1-9][0-9]*)\): )(?P<name>.*?) ?\((?P<pid>P[1-9][0-9]*)\): (?P<value>.*)",
    re.DOTALL,
)
_SNAK: Final = re.compile(r"(?P<name>.*?) ?\((?P<pid>P[1-9][0-9]*)\): (?P<value>.*)", re.DOTALL)
_ITEM: Final = re.compile(r"(?P<label>.*?) ?\((?P<id>[QPL][1-9][0-9]*)\)", re.DOTALL)
_REFERENCE: Final = re.compile(r"Reference [0-9]+:")
_INLINE: Final = re.compile(r" \| (?=[^|]* \(P[1-9][0-9]*\): )")
_WRITTEN: Final = re.compile(
    rf"(?:(?:(?P<day>[0-9]{{1,2}}) )?(?P<month>{'|'.join(calendar.month_name[1:])}) )?(?P<year>[0-9]{{1,9}})"
    r"(?: (?P<era>AD|CE|BC|BCE))?"
)
_ISO: Final = re.compile(r"\+?(?P<year>-?[0-9]{4,9})-(?P<month>[0-9]{2})-(?P<day>[0-9]{2})(?:T[0-9:.]*Z)?")
_AMOUNT: Final = re.compile(r"(?P<amount>[+-]?[0-9][0-9,]*(?:\.[0-9]+)?)(?: .*)?", re.DOTALL)

_STATEMENTS: Final = """\
SELECT ?property ?statement ?value ?rank WHERE {
  $entity ?claim ?statement . ?statement $ranked ?rank
  FILTER(STRSTARTS(STR(?claim), $claims)) BIND(STRAFTER(STR(?claim), $prop) AS ?property)
  FILTER($properties = "" || CONTAINS(CONCAT(" ", $properties, " "), CONCAT(" ", ?property, " ")))
  OPTIONAL { ?statement ?main ?value FILTER(STR(?main) = CONCAT($main, ?property)) }
}"""
_STATEMENT: Final = re.compile(r".*/entity/statement/([QqPpLl][0-9]+)-(.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class TextEntity:
    """An entity that a search found."""

    id: str
    label: str
    description: str


@dataclass(frozen=True, slots=True)
class TextSnak:
    """A property and its value, as a text states them."""

    property: str
    property_label: str
    value: str
    value_id: str | None = None
    """The id of the value, if it is an entity."""


@dataclass(frozen=True, slots=True)
class TextClaim:
    """A claim, as a text states it."""

    entity: str
    entity_label: str
    snak: TextSnak
    rank: Rank | None = None
    """None in an answer that does not state ranks; it then lists no deprecated claims."""
    qualifiers: Sequence[TextSnak] = ()
    references: Sequence[Sequence[TextSnak]] = ()
    guid: str | None = None


@dataclass(frozen=True, slots=True)
class RemoteClaims:
    """The claims of an entity that a server answered with."""

    claims: Sequence[TextClaim]
    answers: Sequence[RemoteAnswer] = field(repr=False)
    problem: str | None = None
    """Why claims have no GUID; None if all have one."""

    @property
    def retrieved(self) -> str:
        """The time of the oldest answer."""
        return min(answer.asked_at for answer in self.answers).strftime("%Y-%m-%dT%H:%M:%SZ")


def get_remote_claims(server: RemoteServer, entity: str, properties: Sequence[str] = ()) -> RemoteClaims:
    """Get the claims of an entity, of some properties or all, with the GUIDs that can be found.

    No claims is an answer too: the server does not know the entity, or has no such claims. Raises UpstreamError, and
    NotFoundError if the server has no such tool.
    """
    arguments = {"qids": [entity], **({"properties": list(properties)} if properties else {})}
    answers = server.call(GET_CLAIMS, arguments)
    claims = [claim for answer in answers for claim in parse_claims(answer.text) if claim.entity == entity]
    if properties:
        claims = [claim for claim in claims if claim.snak.property in properties]
    problem = None
    if claims:
        try:
            claims = find_guids(claims, _list_statements(server, entity, properties))
        except (UpstreamError, NotFoundError) as error:
            problem = f"The answer of the server has no GUIDs, and they cannot be looked up: {error}"
    if problem is None and any(claim.guid is None for claim in claims):
        problem = "The answer of the server has no GUIDs. Of some claims, no single statement agrees with them."
    return RemoteClaims(claims, answers, problem)


def _list_statements(server: RemoteServer, entity: str, properties: Sequence[str]) -> Sequence[Binding]:
    prop = WD.iri.removesuffix("entity/") + "prop/"
    query = bind(
        _STATEMENTS,
        entity=NamedNode(WD.iri + entity),
        ranked=WIKIBASE.rank,
        claims=RdfLiteral(f"{prop}P"),
        prop=RdfLiteral(prop),
        properties=RdfLiteral(" ".join(properties)),
        main=RdfLiteral(f"{prop}statement/"),
    )
    return RemoteSparql.of(server).select(query).bindings


def parse_found(text: str) -> list[TextEntity]:
    """Parse the answer of a search: a line for each entity. Raises UpstreamError for an error in its place."""
    _check(text)
    found = []
    for line in text.splitlines():
        if (match := _FOUND.fullmatch(line.lstrip())) is not None:
            found.append(TextEntity(match["id"], match["label"].strip(), (match["description"] or "").strip()))
    if not found and text.strip() and not _ABSENT.match(text.strip()):
        raise UpstreamError(f"The server answered with a text that is not a list of entities: {quoted(text)}")
    return found


def parse_claims(text: str) -> list[TextClaim]:
    """Parse claims, with or without ranks, qualifiers and references. Raises UpstreamError for an error in its place.

    A value of several lines ends at the next line that begins a claim or a part of one.
    """
    _check(text)
    claims: list[TextClaim] = []
    part: list[TextSnak] | None = None
    lines = [line for line in text.splitlines() if line.strip()]
    for line in lines:
        bare = line.strip()
        indented = line.startswith("  ")  # an item without a label begins with one blank
        if not indented and (match := _CLAIM.fullmatch(bare)) is not None:
            if len(claims) == MOST_CLAIMS:
                break
            claims.append(_start(match))
            part = None
        elif not claims:
            continue
        elif indented and bare.startswith("Rank: "):
            claims[-1] = replace(claims[-1], rank=_RANKS.get(bare.removeprefix("Rank: ").strip().lower()))
        elif indented and bare == "Qualifier:":
            part = []
            claims[-1] = replace(claims[-1], qualifiers=part)
        elif indented and _REFERENCE.fullmatch(bare):
            part = []
            claims[-1] = replace(claims[-1], references=[*claims[-1].references, part])
        elif indented and part is not None and (found := _SNAK.fullmatch(bare.removeprefix("- "))) is not None:
            part.append(_to_snak(found))
        elif part:
            part[-1] = replace(part[-1], value=f"{part[-1].value}\n{bare}")
        else:
            snak = claims[-1].snak
            claims[-1] = replace(claims[-1], snak=replace(snak, value=f"{snak.value}\n{bare}", value_id=None))
    if not claims and lines and not _ABSENT.match(text.strip()):
        raise UpstreamError(f"The server answered with a text that is not a list of claims: {quoted(text)}")
    return claims


def _check(text: str) -> None:
    if text.lstrip().startswith(_UNAVAILABLE):
        raise UpstreamError(f"The server answered: {quoted(text.strip())}")


def _start(match: re.Match[str]) -> TextClaim:
    value, *inline = _INLINE.split(match["value"])
    qualifiers = [_to_snak(found) for each in inline if (found := _SNAK.fullmatch(each)) is not None]
    return TextClaim(match["id"], match["label"], _make_snak(match["pid"], match["name"], value), qualifiers=qualifiers)


def _to_snak(match: re.Match[str]) -> TextSnak:
    return _make_snak(match["pid"], match["name"], match["value"])


def _make_snak(pid: str, name: str, value: str) -> TextSnak:
    item = _ITEM.fullmatch(value)
    return TextSnak(pid, name.strip(), value.strip(), item["id"] if item else None)


def find_guids(claims: Sequence[TextClaim], statements: Sequence[Binding]) -> list[TextClaim]:
    """Give claims of an entity the GUIDs of its statements, where exactly one agrees in property, value and rank.

    Two claims that agree with the same statement get none: which of them it is is not known.
    """
    agreeing = [[each for each in statements if _agree(claim, each)] for claim in claims]
    taken: dict[str, int] = defaultdict(int)
    for found in agreeing:
        for each in found:
            taken[each["statement"]["value"]] += 1
    guided = []
    for claim, found in zip(claims, agreeing, strict=True):
        guid = None
        if len(found) == 1 and taken[found[0]["statement"]["value"]] == 1:
            match = _STATEMENT.fullmatch(found[0]["statement"]["value"])
            guid = f"{match[1]}${match[2]}" if match else None
        guided.append(replace(claim, guid=guid))
    return guided


def _agree(claim: TextClaim, statement: Binding) -> bool:
    if statement["property"]["value"] != claim.snak.property:
        return False
    rank = statement["rank"]["value"].rpartition("#")[2].removesuffix("Rank").lower()
    if rank != claim.rank and not (claim.rank is None and rank != "deprecated"):
        return False
    term = statement.get("value")
    if term is None:
        return claim.snak.value.lower() in ("no value", "novalue")
    value = term["value"]
    if term["type"] == "bnode" or "/.well-known/genid/" in value:
        return claim.snak.value.lower() in ("unknown value", "somevalue", "some value")
    if claim.snak.value_id is not None:
        return value.rpartition("/entity/")[2] == claim.snak.value_id
    if term["type"] == "uri" and value.startswith(WD.iri):
        return False
    return any(_written_alike(claim.snak.value, value))


def _written_alike(text: str, value: str) -> Iterator[bool]:
    """Whether a value as a text writes it can be a value of RDF: equal words, a date, or an amount."""
    yield " ".join(text.split()) == " ".join(value.split())
    exact, written = _ISO.fullmatch(value), _WRITTEN.fullmatch(text) or _ISO.fullmatch(text)
    if exact is not None:
        yield written is not None and _same_date(written, exact)
        return
    amount = _AMOUNT.fullmatch(text)
    if amount is not None:
        try:
            yield Decimal(amount["amount"].replace(",", "")) == Decimal(value)
        except InvalidOperation:
            return


def _same_date(written: re.Match[str], exact: re.Match[str]) -> bool:
    parts = written.groupdict()
    year = int(parts["year"])
    if parts.get("era") in ("BC", "BCE"):
        year = 1 - year  # RDF has a year 0
    month, day = parts["month"], parts["day"]
    number = (int(month) if month.isdigit() else [*calendar.month_name].index(month)) if month else None
    known = int(exact["year"]), int(exact["month"]), int(exact["day"])
    if day is None:
        return year == known[0] and number in (None, known[1])
    # RDF has days of the Julian calendar as days of the Gregorian one; a text has them as they were stated.
    julian = from_day_number(to_day_number(*known, "gregorian"), "julian")
    return (year, number, int(day)) in (known, julian)
