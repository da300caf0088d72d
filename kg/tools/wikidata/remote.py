"""Entities that no local graph describes, from the servers of connectors: stored, else as their texts state them.

Without connectors nothing here sends anything. A server that fails is a note in the result, never an error: the answer
is then that of the local graph alone.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Sequence
from typing import Final

from kg.connectors.client import RemoteServer
from kg.connectors.names import GET_CLAIMS, SEARCH_ITEMS, SPARQL
from kg.connectors.sparql import RemoteSparql
from kg.connectors.wikidata_texts import RemoteClaims, TextClaim, TextEntity, TextSnak, get_remote_claims, parse_found
from kg.errors import NotFoundError, QuadciteError, UpstreamError
from kg.fuzzy_names import fold
from kg.knowledge_graph import KnowledgeGraph
from kg.loading import store_remote
from kg.retrieval.concept_index import load_concepts
from kg.tools.wikidata.claims import Claim, ClaimValue, Reference, Snak, list_reservations
from kg.tools.wikidata.entity_ids import show
from kg.vocabulary import WD

MOST: Final = 5
"""Entities that one call of a tool fetches."""
_NAMED: Final = 3
"""Entities with the same name that are fetched."""
_LOAD_S: Final = 2.0
"""Seconds to wait while another load runs."""
_ID: Final = re.compile(r"[QP][1-9][0-9]{0,18}")


class Remote:
    """The servers of one call of a tool, with the reasons of what they did not answer."""

    def __init__(self, kg: KnowledgeGraph) -> None:
        self._kg: Final = kg
        self._until = time.monotonic() + 2 * kg.settings.connector_timeout_s
        self._unstored: dict[str, str] = {}
        """Why entities are not stored, by id."""
        self.notes: Final[list[str]] = []
        self.has_failed = False
        """Whether a server failed that could have answered."""

    @property
    def is_enabled(self) -> bool:
        """Whether there is a server to ask."""
        return bool(self._kg.connectors.enabled)

    def store(self, iris: Collection[str]) -> list[str]:
        """Store the entities of Wikidata among `iris` that a server describes; return the IRIs of those stored."""
        wanted = [show(iri) for iri in iris if iri.startswith(WD.iri) and _ID.fullmatch(show(iri))][:MOST]
        stored: list[str] = []
        for server in self._servers(SPARQL):
            if not wanted:
                break
            try:
                outcome = store_remote(
                    self._kg,
                    RemoteSparql.of(server),
                    server.connector.id,
                    wanted,
                    most=self._kg.settings.connector_entities,
                    seconds=_LOAD_S,
                )
            except NotFoundError:
                continue  # the server has no SPARQL: its texts are read
            except UpstreamError as error:
                self._fail(error)
                continue
            except QuadciteError as error:  # this process cannot write now
                self.notes.append(f"Entities of connectors are not stored: {error}")
                break
            stored += outcome.stored
            self._unstored |= outcome.problems
            wanted = [each for each in wanted if each not in outcome.stored]
        if stored:
            load_concepts(self._kg, fresh=True)  # so that their names are known
        return [WD.iri + each for each in stored]

    def find(self, name: str) -> list[TextEntity]:
        """Find the items that a server calls `name`; if none is called so, the one that it finds first."""
        for server in self._servers(SEARCH_ITEMS):
            try:
                [answer] = server.call(SEARCH_ITEMS, {"query": name})
                found = [each for each in parse_found(answer.text) if each.id.startswith("Q")]
            except NotFoundError:
                continue
            except UpstreamError as error:
                self._fail(error)
                continue
            self._note_age(answer.problem)
            if found:
                return [each for each in found if fold(each.label) == fold(name)][:_NAMED] or found[:1]
        return []

    def read(self, iri: str, properties: Collection[str] | None) -> RemoteClaims | None:
        """Read the claims of an entity as a server states them; None if none does."""
        if not iri.startswith(WD.iri):
            return None
        for server in self._servers(GET_CLAIMS):
            try:
                found = get_remote_claims(server, show(iri), sorted(properties or ()))
            except NotFoundError:
                continue
            except UpstreamError as error:
                self._fail(error)
                continue
            for answer in found.answers:
                self._note_age(answer.problem)
            if found.claims:
                if (reason := self._unstored.get(show(iri))) is not None:
                    self.notes.append(f"{show(iri)} is not stored: {reason}.")
                if found.problem is not None:
                    self.notes.append(found.problem)
                return found
        return None

    def _servers(self, tool: str) -> Iterator[RemoteServer]:
        for server in self._kg.connectors.having(tool):
            if time.monotonic() >= self._until:
                self.has_failed = True
                self.notes.append("The time for remote servers is over: the answer is that of the local graph.")
                return
            yield server

    def _fail(self, error: UpstreamError) -> None:
        self.has_failed = True
        note = f"The answer is that of the local graph, because a remote server failed. {error}"
        if note not in self.notes:
            self.notes.append(note)

    def _note_age(self, problem: str | None) -> None:
        if problem is not None:
            self.has_failed = True
            self.notes.append(f"An earlier answer of a remote server was used, because it failed. {problem}")


def to_claims(found: RemoteClaims) -> list[Claim]:
    """Convert claims as texts state them. Their values have no types except entities, and can lack GUID and rank."""
    return [_to_claim(each, found.claims) for each in found.claims]


def _to_claim(claim: TextClaim, claims: Sequence[TextClaim]) -> Claim:
    ranks = {each.rank for each in claims if each.snak.property == claim.snak.property}
    # A text without ranks lists no deprecated claims. Which of the others are the best, it does not state.
    best = claim.rank is None or claim.rank == ("preferred" if "preferred" in ranks else "normal")
    found = Claim(
        qid=claim.entity,
        guid=claim.guid,
        property=claim.snak.property,
        property_label=claim.snak.property_label or None,
        value=_to_value(claim.snak),
        rank=claim.rank,
        best=best,
        qualifiers=[_to_snak(each) for each in claim.qualifiers],
        references=[Reference(snaks=[_to_snak(each) for each in parts]) for parts in claim.references],
    )
    found.qualified = list_reservations(found)
    return found


def _to_snak(snak: TextSnak) -> Snak:
    return Snak(property=snak.property, property_label=snak.property_label or None, value=_to_value(snak))


def _to_value(snak: TextSnak) -> ClaimValue:
    if snak.value_id is not None:
        label = snak.value.removesuffix(f"({snak.value_id})").strip()
        return ClaimValue(type="entity", value=snak.value_id, label=label or None)
    return ClaimValue(type="text", value=snak.value)
