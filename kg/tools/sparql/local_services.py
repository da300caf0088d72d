"""Evaluates SERVICE clauses before a query runs: ``kg:search`` by the search index, ``wikibase:label`` from labels in
the graph (`kg.sparql.label_service`), and allowed remote endpoints.

A clause ``SERVICE kg:search { ?unit kg:matches "..." ; kg:score ?score }`` becomes ``VALUES (?unit ?score) { ... }``,
so it joins with any pattern. Hits that are not in the graph join with nothing.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, NoReturn, get_args

from pyoxigraph import Literal, NamedNode, RdfFormat, parse

from kg.errors import InvalidInputError, QueryForbiddenError
from kg.fuzzy_names import nearest
from kg.knowledge_graph import KnowledgeGraph
from kg.queries.federation import Federation
from kg.queries.text_check import find_clauses
from kg.retrieval.asked import Asked
from kg.retrieval.hybrid_search import FIRST_BLOCK
from kg.search.protocol import Candidate, Mode
from kg.search.relevance import NOTHING, UNJUDGED, Relevance, drop_unscored, estimate_relevance
from kg.sparql import label_service
from kg.sparql.guard import line_and_column
from kg.sparql.lexer import Token
from kg.sparql.service import Clause, Prologue, replace_clauses
from kg.sparql.terms import Bindable, bind
from kg.text import MAX_QUOTED_CHARS, quoted
from kg.vocabulary import KG

FORM: Final = 'SERVICE kg:search { ?unit kg:matches "words" ; kg:score ?score ; kg:limit 50 }'
DEFAULT_HITS: Final = 50
MAX_HITS: Final = 1_000
_PARTS: Final = ("matches", "score", "rank", "limit", "mode", "must", "minScore", "covers")
_VARIABLES: Final = ("score", "rank", "covers")
_MODES: Final[tuple[Mode, ...]] = get_args(Mode)
_DECIMALS: Final = 6


def expand_services(kg: KnowledgeGraph, query: str, timeout_s: float | None = None) -> str:
    """Replace the SERVICE clauses of `query` by their results.

    `timeout_s` is the remaining time of the query (default: its whole deadline). Raises InvalidInputError for an
    invalid kg:search clause, QueryForbiddenError for an endpoint that is not in the setting ``service_endpoints``, and
    the errors of the index and of remote endpoints, each with line and column.
    """
    left_s = kg.settings.query_timeout_s if timeout_s is None else min(timeout_s, kg.settings.query_timeout_s)
    federation = Federation(kg.settings.service_endpoints, time.monotonic() + left_s)
    found, prologue = find_clauses(query)
    if not found:
        return query
    # All clauses are validated before any of them runs.
    searches = _parse_searches(query, found, prologue, federation)
    results = []
    for clause in found:
        if clause.endpoint == label_service.ENDPOINT:
            results += label_service.build_replacements(query, clause, prologue)
            continue
        search = searches.get(clause.start)
        results.append(
            (clause, federation.fetch_values(query, clause, prologue) if search is None else _to_values(kg, search))
        )
    return replace_clauses(query, results)


def blank_services(kg: KnowledgeGraph, query: str) -> str:
    """Replace each SERVICE clause by an empty group of the same length, without running it.

    Raises the errors of `expand_services` for invalid clauses.
    """
    found, prologue = find_clauses(query)
    _parse_searches(query, found, prologue, Federation(kg.settings.service_endpoints, time.monotonic()))
    for clause in found:
        inside = re.sub(r"[^\r\n]", " ", query[clause.start + 1 : clause.end - 1])
        query = f"{query[: clause.start]}{{{inside}}}{query[clause.end :]}"
    return query


def _parse_searches(
    query: str, found: Sequence[Clause], prologue: Prologue, federation: Federation
) -> dict[int, _Search]:
    """Parse the kg:search clauses, by their offsets. Raises QueryForbiddenError for an unknown service."""
    searches = {
        clause.start: _Reader(query, clause, prologue).read() for clause in found if clause.endpoint == KG.search.value
    }
    for clause in found:
        if clause.endpoint == label_service.ENDPOINT:
            label_service.build_replacements(query, clause, prologue)
        elif clause.start not in searches and not federation.is_allowed(clause.endpoint):
            raise _unknown_service(query, clause, federation)
    return searches


def _unknown_service(query: str, clause: Clause, federation: Federation) -> QueryForbiddenError:
    line, column = line_and_column(query, clause.start)
    answered = "kg:search, wikibase:label" + "".join(f", <{endpoint}>" for endpoint in federation.endpoints)
    asked = "a variable" if clause.endpoint is None else f"<{clause.endpoint}>"
    return QueryForbiddenError(
        f"SERVICE at line {line}, column {column}: {asked} is not available. Available: {answered}. Others are allowed "
        "by the setting QUADCITE_SERVICE_ENDPOINTS. Load the data, or query the other server yourself."
    )


@dataclass(slots=True)
class _Search:
    """The parameters of one clause, and the variables for its result."""

    unit: str
    words: str
    limit: int = DEFAULT_HITS
    mode: Mode = "hybrid"
    score: list[str] = field(default_factory=list)
    rank: list[str] = field(default_factory=list)
    covers: list[str] = field(default_factory=list)
    must: list[str] = field(default_factory=list)
    min_score: float | None = None


def _to_values(kg: KnowledgeGraph, search: _Search) -> str:
    """Run `search` and write its hits as a VALUES block."""
    candidates, relevance = _find(kg, search)
    covers = None if relevance.stated is None else Decimal(str(relevance.stated))
    rows: list[tuple[Bindable | None, ...]] = []
    for number, candidate in enumerate(candidates, 1):
        score = Decimal(str(round(_score(candidate, search.mode), _DECIMALS)))
        rows.append(
            (
                NamedNode(candidate.iri),
                *[score] * len(search.score),
                *[number] * len(search.rank),
                *[covers] * len(search.covers),
            )
        )
    names = " ".join(f"?{name}" for name in (search.unit, *search.score, *search.rank, *search.covers))
    return bind(f"VALUES ({names}) {{ $rows }}", rows=rows)


def _find(kg: KnowledgeGraph, search: _Search) -> tuple[Sequence[Candidate], Relevance]:
    """Find the units of a clause, and the relevance of the answer. In mode bm25 every unit has one of the words."""
    if not search.words.strip() or not search.limit:
        return (), NOTHING
    asked = Asked(search.words, search.must, search.min_score)
    # The first ones decide about the relevance, so that it does not depend on the limit.
    limit = max(search.limit, FIRST_BLOCK)
    ranking = asked.rank(kg.search, limit=limit, mode=search.mode)
    kept = drop_unscored(ranking.candidates)
    if search.mode == "bm25":
        least = search.min_score or 0.0
        return [each for each in kept if each.bm25 >= least][: search.limit], UNJUDGED
    relevance = estimate_relevance(ranking.candidates, ranking)
    return asked.select(kept, ranking, relevance)[: search.limit], relevance


def _score(candidate: Candidate, mode: Mode) -> float:
    if mode == "bm25":
        return candidate.bm25
    return candidate.score if mode == "hybrid" or candidate.cosine is None else candidate.cosine


class _Reader:
    """Parser of the few triples that a clause may contain."""

    def __init__(self, query: str, clause: Clause, prologue: Prologue) -> None:
        self._query, self._clause, self._prologue = query, clause, prologue
        self._tokens = clause.tokens
        self._at = 0
        self._said: dict[str, object] = {}
        self._search = _Search("", "")

    def read(self) -> _Search:
        """Parse the clause. Raises InvalidInputError with line, column and the valid form."""
        subject: Token | None = None
        while (token := self._peek()) is not None:
            if token.kind != "variable":
                self._fail(token, f"{_show(token)} is not a variable for the text units")
            if subject is not None and token.text[1:] != subject.text[1:]:
                self._fail(token, f"the clause has a second subject next to {_show(subject)}")
            subject = self._next()
            self._properties()
        if subject is None or "matches" not in self._said:
            self._fail(None, "kg:matches with a string is missing")
        self._search.unit = subject.text[1:]
        named = [self._search.unit, *self._search.score, *self._search.rank, *self._search.covers]
        if len(set(named)) < len(named):
            self._fail(None, "unit, score, rank and covers need different variables")
        return self._search

    def _properties(self) -> None:
        while True:
            predicate = self._next()
            if predicate is None:
                self._fail(None, "a property is missing")
            self._property(predicate, self._part(predicate))
            token = self._peek()
            if token is None:
                return
            if token.text not in (";", "."):
                self._fail(token, f"expected ; or . instead of {_show(token)}")
            while (token := self._peek()) is not None and token.text in (";", "."):
                self._next()
                if token.text == ".":
                    return
            if token is None:
                return

    def _part(self, token: Token) -> str:
        iri = self._prologue.resolve(token) if token.kind in ("iri", "name") else None
        part = (iri or "").removeprefix(KG.iri)
        if part not in _PARTS or iri == part:
            self._no_part(token)
        return part

    def _no_part(self, token: Token) -> NoReturn:
        near = nearest(token.text.rpartition(":")[2], _PARTS, 1, least=60)
        hint = f". Did you mean kg:{near[0]}?" if near else ""
        valid = ", ".join(f"kg:{name}" for name in _PARTS)
        self._fail(token, f"unknown property {_show(token)} of a search. Available: {valid}{hint}")

    def _property(self, predicate: Token, part: str) -> None:
        value = self._next()
        if value is None:
            self._fail(None, f"kg:{part} has no value")
        if part in _VARIABLES:
            if value.kind != "variable":
                self._fail(value, f"kg:{part} takes a variable, not {_show(value)}. Use a FILTER outside the clause")
            variables: list[str] = getattr(self._search, part)
            variables.append(value.text[1:])
            return
        if value.kind == "variable":
            why = "the search runs before the query does, so it cannot depend on a variable"
            self._fail(value, f"kg:{part} takes a constant, not {_show(value)}: {why}")
        if part == "must":
            words = self._string(value, part).strip()
            if not words:
                self._fail(value, "kg:must takes words, not an empty string")
            self._said[part] = value
            self._search.must.append(words)
            return
        if part in self._said:
            self._fail(predicate, f"kg:{part} is given twice")
        self._said[part] = value
        if part == "matches":
            self._search.words = self._string(value, part)
        elif part == "limit":
            self._search.limit = self._limit(value)
        elif part == "minScore":
            self._search.min_score = self._least(value)
        else:
            mode = self._string(value, part).lower()
            chosen = next((known for known in _MODES if known == mode), None)
            if chosen is None:
                names = ", ".join(f'"{known}"' for known in _MODES)
                self._fail(value, f"kg:mode is one of {names}, not {_show(value)}")
            self._search.mode = chosen

    def _string(self, token: Token, part: str) -> str:
        """Parse a string literal. A language tag or the datatype xsd:string is ignored."""
        if token.kind != "string":
            self._fail(token, f"kg:{part} takes a string, not {_show(token)}")
        following = self._peek()
        if following is not None and following.kind == "language":
            self._next()
        elif following is not None and following.text == "^^":
            self._next()
            datatype = self._next()
            if datatype is None or self._prologue.resolve(datatype) != "http://www.w3.org/2001/XMLSchema#string":
                self._fail(datatype, f"kg:{part} takes a plain string")
        try:
            quad = next(parse(f"<a:a> <a:a> {token.text} .", format=RdfFormat.TURTLE))
        except SyntaxError:
            self._fail(token, "the string contains an invalid escape")
        assert isinstance(quad.object, Literal)  # noqa: S101 -- a string token reads as one
        return quad.object.value

    def _limit(self, token: Token) -> int:
        if token.kind != "number" or not token.text.isdecimal() or not 1 <= int(token.text[:9]) <= MAX_HITS:
            self._fail(token, f"kg:limit takes a whole number from 1 to {MAX_HITS}, not {_show(token)}")
        return int(token.text)

    def _least(self, token: Token) -> float:
        try:
            least = float(token.text) if token.kind == "number" else math.nan
        except ValueError:
            least = math.nan
        if not 0 <= least < math.inf:
            self._fail(token, f"kg:minScore takes a number of at least 0, not {_show(token)}")
        return least

    def _peek(self) -> Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self) -> Token | None:
        token = self._peek()
        self._at += token is not None
        return token

    def _fail(self, token: Token | None, reason: str) -> NoReturn:
        offset = self._clause.end - 1 if token is None else token.start
        line, column = line_and_column(self._query, offset)
        end = "" if reason.endswith("?") else "."
        raise InvalidInputError(f"kg:search, line {line}, column {column}: {reason}{end} Valid form: {FORM}")


def _show(token: Token) -> str:
    """Return a token as it was written, or a quotation of its beginning if it is long."""
    return token.text if len(token.text) <= MAX_QUOTED_CHARS else quoted(token.text)
