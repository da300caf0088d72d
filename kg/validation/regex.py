"""Which regular expressions the engine can match.

It has no look-around and no back-reference. A pattern that it refuses is an error in a FILTER, which then lets
everything through in silence, so a pattern is tried before it is used.
"""

from __future__ import annotations

from functools import lru_cache

from pyoxigraph import Literal, QuerySolutions, Store

from kg.sparql.terms import bind

PROBE = "SELECT (REGEX('', $pattern, $flags) AS ?known) WHERE {}"


@lru_cache(maxsize=1024)
def supported(pattern: str, flags: str = "") -> bool:
    """Return whether the engine matches `pattern`, an XPath regular expression, with `flags`."""
    found = Store().query(bind(PROBE, pattern=Literal(pattern), flags=Literal(flags)))
    assert isinstance(found, QuerySolutions)  # noqa: S101  # a SELECT
    return next(found)["known"] is not None
