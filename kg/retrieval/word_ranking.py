"""Ranking of text units by the words of a query that their texts contain, in the store, while the index is down.

It reads every text in scope: 100,000 passages take about a second of a query worker. Titles, names and meaning do not
count, so an answer made of it states that.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from pyoxigraph import Literal, NamedNode

from kg.retrieval.reader import Reader, iri_of
from kg.search.protocol import Candidate, Ranking
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.words import FORMS, is_stop_word, singular

WORDS: Final = 12
"""Maximum words of a query that are counted."""

UNITS_WITH_WORDS: Final = """
SELECT ?unit (MAX(?counted) AS ?count) WHERE {
  #SCOPE
  ?unit schema:text ?text .
  #COUNT
  FILTER(?counted > 0)
  #MUST
} GROUP BY ?unit ORDER BY DESC(?count) ?unit LIMIT $most"""


def rank_by_store(
    reader: Reader,
    query: str,
    must: Sequence[str],
    *,
    limit: int,
    units: Sequence[str] | None = None,
    parents: Sequence[str] | None = None,
) -> Ranking:
    """Return the `limit` units whose texts contain most words of `query`; see `SearchIndex.rank` for the scopes."""
    words = find_query_words(query)
    if not words or (units is not None and not units) or (parents is not None and not parents):
        return Ranking((), exhaustive=True, from_store=True)
    scope: str = ""
    listed: Sequence[str] = ()
    if units is not None:
        scope, listed = "VALUES ?unit { $listed }", units
    elif parents is not None:
        scope, listed = "VALUES ?parent { $listed } ?unit dcterms:isPartOf ?parent .", parents
    required = [word for words_ in must for word in re.findall(r"\w+", words_.casefold())]
    tests = {f"w{number}": Literal(to_pattern(word)) for number, word in enumerate(words)}
    musts = {f"m{number}": Literal(to_pattern(word)) for number, word in enumerate(required)}
    text = UNITS_WITH_WORDS.replace("#SCOPE", scope)
    counts = " + ".join(f'IF(REGEX(?text, ${name}, "i"), 1, 0)' for name in tests)
    text = text.replace("#COUNT", f"BIND({counts} AS ?counted)")
    text = text.replace("#MUST", " ".join(f'FILTER REGEX(?text, ${name}, "i")' for name in musts))
    bound = {"listed": [NamedNode(iri) for iri in listed]} if listed else {}
    rows = reader.rows(
        "passages whose texts contain the words", bind(text, most=limit, **bound, **tests, **musts), declared=("unit",)
    )
    found = {iri_of(row["unit"]): int(term_text(row["count"])) for row in rows if "unit" in row}
    best = sorted(found.items(), key=lambda item: (-item[1], item[0]))[:limit]
    candidates = [
        Candidate(iri, round(count / len(words), 6), float(count), None, None, round(count / len(words), 4))
        for iri, count in best
    ]
    return Ranking(candidates, exhaustive=len(best) < limit, from_store=True)


def find_query_words(query: str) -> list[str]:
    """Find the distinct words of a query, without stop words unless it has no others; at most `WORDS`."""
    words = list(dict.fromkeys(re.findall(r"\w+", query.casefold())))
    return ([word for word in words if not is_stop_word(word, "en")] or words)[:WORDS]


def to_pattern(word: str) -> str:
    """Build a regular expression for the singular and plural of a word, and longer words that begin with either."""
    single = singular(word)
    forms = {word, single, *FORMS["en"](single)}
    shortest = sorted(form for form in forms if not any(form != other and form.startswith(other) for other in forms))
    # REGEX knows word boundaries in ASCII only.
    return "|".join(rf"\b{re.escape(form)}" if form.isascii() else re.escape(form) for form in shortest)
