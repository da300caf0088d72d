"""Pre-bound variables: from a SPARQL constraint for one focus node to a query for all focus nodes.

The standard substitutes ``$this`` in the whole query (https://www.w3.org/TR/shacl/#pre-binding) and forbids constructs
whose meaning a substitution would change. A query without these gives the same solutions if each group that uses a
pre-bound variable begins with a pattern that binds it to every focus node.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Final

from kg.shacl.property_paths import IllFormedError
from kg.sparql.lexer import Token, significant_tokens, tokens

_FORBIDDEN: Final = frozenset({"MINUS", "VALUES", "SERVICE"})
_SLICES: Final = frozenset({"LIMIT", "OFFSET"})
_ADDING: Final = frozenset({"COUNT", "SUM", "AVG", "GROUP_CONCAT"})
_LONGEST_KEPT: Final = 20_000
"""Longest query, in characters, whose tokens are cached."""


@dataclass(slots=True)
class _Group:
    """A group in braces. `mentions`: uses a pre-bound variable outside inner groups; `computes`: in an expression."""

    start: int
    kind: str
    above: _Group | None
    mentions: bool = False
    computes: bool = False
    is_subselect: bool = False
    parentheses: int = 0

    def within(self, kind: str) -> bool:
        """Return whether it is inside a group of `kind`, with no subquery between."""
        group = self.above
        while group is not None and group.kind != "body":
            if group.kind == kind:
                return True
            group = group.above
        return False

    def within_graph(self) -> bool:
        group: _Group | None = self
        while group is not None:
            if group.kind == "graph":
                return True
            group = group.above
        return False


def check_query(query: str, prebound: Collection[str], returned: Collection[str]) -> None:
    """Raise IllFormedError if `query` uses a construct that pre-binding forbids.

    `returned`: the pre-bound variables that each subquery must return.
    """
    significant = _get_tokens(query)
    depth = 0
    for at, token in enumerate(significant):
        word = token.text.upper()
        if token.kind == "word" and word in _FORBIDDEN:
            raise IllFormedError(f"{word} is not allowed in a query with pre-bound variables")
        if token.kind == "word" and word == "AS" and _variable_at(significant, at + 1) in prebound:
            raise IllFormedError(f"a pre-bound variable must not be assigned: AS {significant[at + 1].text}")
        if token.kind == "word" and word == "SELECT" and depth:
            missing = set(returned) - _get_projection(significant, at)
            if missing:
                raise IllFormedError(
                    f"each subquery must return every pre-bound variable. Missing: ${', $'.join(sorted(missing))}"
                )
        depth += (token.text == "{") - (token.text == "}")


def has_slice(query: str) -> bool:
    """Return whether `query` has LIMIT or OFFSET, which would apply to all focus nodes together."""
    return any(token.kind == "word" and token.text.upper() in _SLICES for token in _get_tokens(query))


def counts_duplicates(query: str) -> bool:
    """Return whether `query` has an aggregate whose value depends on duplicate solutions."""
    texts = [token.text.upper() for token in _get_tokens(query)]
    return any(
        text in _ADDING and texts[at + 1 : at + 2] == ["("] and texts[at + 2 : at + 3] != ["DISTINCT"]
        for at, text in enumerate(texts)
    )


def has_zero_length_path(query: str) -> bool:
    """Return whether `query` has a property path that may have length zero."""
    return any(
        token.kind == "punctuation"
        and token.text in ("*", "?")
        and (before.kind in ("iri", "name") or before.text in (")", "a"))
        for before, token in pairwise(_get_tokens(query))
    )


def substitute(query: str, terms: Mapping[str, str]) -> str:
    """Substitute the variables in `terms` by their text, by the rules of pre-binding."""
    parts: list[str] = []
    all_tokens = list(tokens(query))
    significant = [at for at, token in enumerate(all_tokens) if token.kind not in ("space", "comment")]
    place = {at: number for number, at in enumerate(significant)}
    projecting, depth = False, 0
    skip: set[int] = set()
    for at, token in enumerate(all_tokens):
        if at in skip:
            continue
        if token.kind == "word" and token.text.upper() == "SELECT":
            projecting, depth = True, 0
        if token.text == "{":
            projecting = False
        depth += (token.text == "(") - (token.text == ")")
        if token.kind == "word" and token.text.upper() == "BOUND":
            following = significant[place[at] + 1 : place[at] + 4]
            texts = [all_tokens[each].text for each in following]
            if len(texts) == 3 and texts[0] == "(" and texts[2] == ")" and texts[1][1:] in terms:
                parts.append("(true)")  # BOUND takes a variable only
                skip.update(range(at + 1, following[2] + 1))
                continue
        name = token.text[1:]
        if token.kind != "variable" or name not in terms:
            parts.append(token.text)
        elif projecting and depth == 0:
            parts.append(f"({terms[name]} AS ?{name})")
        else:
            parts.append(f" {terms[name]} ")  # spaces, since a keyword may touch the variable
    return "".join(parts)


def inject_binding(query: str, prebound: Collection[str], binding: str) -> str | None:
    """Insert the pattern `binding` for the pre-bound variables into each group that needs it.

    Returns None if a group inside GRAPH needs it: there the pattern would match in the named graph only.
    """
    places = []
    for group in _find_groups(query, prebound):
        if group.is_subselect:
            continue
        wanted = group.kind == "body" or (group.mentions and group.kind == "group") or group.computes
        if not wanted or group.kind == "exists" or group.within("exists"):
            continue
        if group.within_graph():
            return None
        places.append(group.start)
    for place in sorted(places, reverse=True):  # from the end, so that the other offsets stay valid
        query = f"{query[:place]} {binding} {query[place:]}"
    return query


def to_select(query: str, variables: Collection[str]) -> str:
    """Rewrite an ASK query as a SELECT of `variables`."""
    ask = next(token for token in _get_tokens(query) if token.kind == "word" and token.text.upper() == "ASK")
    return f"{query[: ask.start]}SELECT {' '.join(f'?{name}' for name in variables)}{query[ask.end :]}"


def to_distinct(query: str) -> str:
    """Rewrite a SELECT as a SELECT DISTINCT."""
    words = [token for token in _get_tokens(query) if token.kind == "word"]
    at = next(place for place, token in enumerate(words) if token.text.upper() == "SELECT")
    if words[at + 1 : at + 2] and words[at + 1].text.upper() in ("DISTINCT", "REDUCED"):
        return f"{query[: words[at].end]} DISTINCT{query[words[at + 1].end :]}"
    return f"{query[: words[at].end]} DISTINCT{query[words[at].end :]}"


def get_form(query: str) -> str:
    """Return the query form: ``SELECT``, ``ASK`` or another keyword."""
    words = (token.text.upper() for token in _get_tokens(query) if token.kind == "word")
    return next((word for word in words if word not in ("PREFIX", "BASE")), "")


def get_variables(query: str) -> set[str]:
    """Return the names of the variables in `query`."""
    return {token.text[1:] for token in _get_tokens(query) if token.kind == "variable"}


def _get_tokens(query: str) -> tuple[Token, ...]:
    return _tokenize(query) if len(query) <= _LONGEST_KEPT else _tokenize.__wrapped__(query)


@lru_cache(maxsize=512)
def _tokenize(query: str) -> tuple[Token, ...]:
    return tuple(significant_tokens(query))


def _variable_at(significant: Sequence[Token], at: int) -> str | None:
    if at < len(significant) and significant[at].kind == "variable":
        return significant[at].text[1:]
    return None


def _get_projection(significant: Sequence[Token], select: int) -> set[str]:
    found, depth = set(), 0
    for at in range(select + 1, len(significant)):
        token = significant[at]
        if token.text == "{":
            break
        depth += (token.text == "(") - (token.text == ")")
        if token.kind == "variable" and depth == 0:
            found.add(token.text[1:])
    return found


def _find_groups(query: str, prebound: Collection[str]) -> Iterator[_Group]:
    significant = _get_tokens(query)
    group: _Group | None = None
    selecting = False
    for at, token in enumerate(significant):
        word = token.text.upper() if token.kind == "word" else ""
        before = significant[at - 1].text.upper() if at else ""
        if word in ("SELECT", "ASK"):
            selecting = True
            if group is not None and before == "{":
                group.is_subselect = True
        elif token.text == "{":
            kind = _group_kind(selecting, before, significant[at - 2].text.upper() if at > 1 else "")
            selecting = False
            group = _Group(token.end, kind, group)
        elif token.text == "}" and group is not None:
            yield group
            group = group.above
        elif token.text in ("(", ")") and group is not None:
            group.parentheses += 1 if token.text == "(" else -1
        elif token.kind == "variable" and token.text[1:] in prebound and group is not None:
            group.mentions = True
            group.computes |= group.parentheses > 0


def _group_kind(selecting: bool, before: str, before_that: str) -> str:
    if selecting:
        return "body"
    if before in ("EXISTS", "OPTIONAL"):
        return before.lower()
    return "graph" if before_that == "GRAPH" else "group"
