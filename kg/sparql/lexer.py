"""The tokens of SPARQL 1.1 and 1.2, cut as Oxigraph's parser cuts them.

That parser has no tokenizer of its own: a keyword may touch what stands beside it (``trueSERVICE<http://x>{}`` is a
literal and a clause), and ``<`` is an IRI or *less than* by context. `tokens` takes the reading of the grammar's
tokenizer rules (longest match, https://www.w3.org/TR/sparql12-query/#whitespace); `readings` yields the tokens of every
reading that the parser could take, for those who must not miss one.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final, Literal, NamedTuple

from kg.errors import QuerySyntaxError

_LINE_END: Final = re.compile(r"[\r\n]")
_OPERANDS: Final = frozenset({"variable", "name", "iri", "string", "language", "number", "word", "blank"})
_SCHEME: Final = re.compile(r"<[A-Za-z][A-Za-z0-9+.\-]*://")
# An escape that is well-formed and names no character, so that what holds it is no string.
_NO_CHARACTER: Final = re.compile(r"\\u[dD][89A-Fa-f]|\\U(?!000[0-9A-Fa-f]|0010)|\\U0000[dD][89A-Fa-f]")
_CLOSING: Final = frozenset({")", "}", "]", ">>", ")>>"})

MAX_AMBIGUOUS: Final = 1_000
"""Places of one text at most where two tokens may begin, since each has to be followed up."""

Kind = Literal[
    "space", "comment", "iri", "string", "language", "variable",
    "blank", "name", "number", "word", "punctuation", "other",
]  # fmt: skip

_BASE: Final = (
    "A-Za-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c-\u200d\u2070-\u218f\u2c00-\u2fef"
    "\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
)
_CHARS: Final = _BASE + "_0-9\u00b7\u0300-\u036f\u203f-\u2040"
_ESCAPE: Final = r"""\\[tbnrf\\"']|\\u[0-9A-Fa-f]{4}|\\U[0-9A-Fa-f]{8}"""
_LOCAL: Final = r"%[0-9A-Fa-f]{2}|\\[_~.\-!$&'()*+,;=/?#@%]"


def _any_of(characters: str) -> str:
    """Return the class of these characters and ranges (a hyphen itself comes last), written as what it leaves out.

    It says the same, and `re`, which looks at each character that a class names, compiles it in a third of the time.
    """
    places = ((match[1], match[2] or match[1]) for match in re.finditer(r"(.)(?:-(.))?", characters, re.DOTALL))
    others, end = [], 0
    for first, last in sorted((ord(first), ord(last)) for first, last in places):
        if first > end:
            others.append(rf"\U{end:08x}-\U{first - 1:08x}")
        end = max(end, last + 1)
    if end <= sys.maxunicode:
        others.append(rf"\U{end:08x}-\U{sys.maxunicode:08x}")
    return f"[^{''.join(others)}]"


_NAME: Final = (
    rf"(?:{_any_of(_BASE)}{_any_of(_CHARS + '.-')}*+(?<!\.))?:"
    rf"(?:(?:{_any_of(_BASE + '_:0-9')}|{_LOCAL})"
    rf"(?:(?:{_any_of(_CHARS + '.:-')}|{_LOCAL})*(?:{_any_of(_CHARS + ':-')}|{_LOCAL}))?)?"
)
_RUN: Final = re.compile(rf"{_any_of(_CHARS + '.-')}*+")
"""What a prefix is made of: whatever begins within a run that no colon ends is no prefixed name."""
_NO_NAME: Final = r"(?!)"

_TOKEN_PATTERN: Final = rf"""
      (?P<space>[ \t\r\n]+)
    | (?P<comment>\#[^\r\n]*)
    | (?P<iri><(?:[^\x00-\x20<>"{{}}|^`\\]|\\u[0-9A-Fa-f]{{4}}|\\U[0-9A-Fa-f]{{8}})*>)
    | (?P<string>\"\"\"(?:\"{{0,2}}(?:[^"\\]|{_ESCAPE}))*\"\"\" | '''(?:'{{0,2}}(?:[^'\\]|{_ESCAPE}))*'''
               | "(?:[^"\\\r\n]|{_ESCAPE})*" | '(?:[^'\\\r\n]|{_ESCAPE})*')
    | (?P<language>@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--(?:ltr|rtl))?)
    | (?P<variable>[?$]{_any_of(_BASE + "_0-9")}{_any_of(_CHARS)}*)
    | (?P<blank>_:{_any_of(_BASE + "_0-9")}(?:{_any_of(_CHARS + ".-")}*{_any_of(_CHARS + "-")})?)
    | (?P<name>NAME)
    | (?P<number>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<word>[A-Za-z_][A-Za-z_0-9]*)
    | (?P<punctuation><<\(|\)>>|<<|>>|\{{\||\|\}}|\^\^|&&|\|\||!=|<=|>=|[{{}}()\[\].,;|/^*+?!=<>\-~&@])
"""
_TOKEN: Final = re.compile(_TOKEN_PATTERN.replace("NAME", _NAME), re.VERBOSE)
_NAMELESS: Final = re.compile(_TOKEN_PATTERN.replace("NAME", _NO_NAME), re.VERBOSE)


class Token(NamedTuple):
    """One token: its kind, its text and the offset of its first character."""

    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        """The offset after its last character."""
        return self.start + len(self.text)


def token_at(query: str, offset: int) -> Token:
    """Return the token that begins at `offset`: the longest; a character that begins none is of kind ``other``."""
    return _cut(_TOKEN, query, offset)


def tokens(query: str) -> Iterator[Token]:
    """Yield every token of `query`, white space and comments too: their texts joined are the query again."""
    offset = nameless = 0
    while offset < len(query):
        token, nameless = _next(query, offset, nameless)
        yield token
        offset = token.end


def _cut(pattern: re.Pattern[str], query: str, offset: int) -> Token:
    match = pattern.match(query, offset)
    if match is None:
        return Token("other", query[offset], offset)
    return Token(match.lastgroup, match[0], offset)  # type: ignore[arg-type]


def _next(query: str, offset: int, nameless: int) -> tuple[Token, int]:
    """Return the token at `offset`, and the offset before which no prefixed name begins, given what is known of it.

    Without that, a run of words and hyphens would be looked through for a colon from each of its words again.
    """
    if offset < nameless:
        return _cut(_NAMELESS, query, offset), nameless
    token = _cut(_TOKEN, query, offset)
    if token.kind in ("word", "other") and (run := _RUN.match(query, offset)) is not None:
        end = run.end()
        if not query.startswith(":", end) or query[end - 1] == ".":
            nameless = end
    return token, nameless


def readings(query: str) -> Iterator[tuple[Token | None, Token]]:
    """Yield every token that stands in some reading of `query`, white space and comments left out, each with the one
    before it.

    What can differ: an IRI whose text holds ``#`` or ``'`` (and no ``//`` after its scheme) is, where *less than* may
    stand, an operator before a comment or string that hides what comes next (``FILTER(?a <1)#>``); and what begins like
    a long string, but is none, is an empty string beside another. Every other difference ends where the token does, so
    it hides nothing. Raises QuerySyntaxError for more than `MAX_AMBIGUOUS` such places.
    """
    seen: set[tuple[int, bool]] = set()
    starts: list[tuple[int, Token | None]] = [(0, None)]
    ambiguous = 0
    lines: list[int] = []  # where they end: many readings may begin a comment in one line
    while starts:
        offset, previous = starts.pop()
        nameless = 0
        while offset < len(query) and (offset, _is_operand(previous)) not in seen:
            seen.add((offset, _is_operand(previous)))
            if query[offset] == "#":
                lines = lines or [match.start() for match in _LINE_END.finditer(query)] + [len(query)]
                offset = lines[bisect_left(lines, offset)]
                continue
            token, nameless = _next(query, offset, nameless)
            offset = token.end
            if token.kind in ("space", "comment"):
                continue
            yield previous, token
            if (end := other_end(token, previous)) is not None:
                starts.append((end, Token("punctuation", query[token.start : end], token.start)))
                ambiguous += 1
                if ambiguous > MAX_AMBIGUOUS:
                    raise QuerySyntaxError(
                        f"not SPARQL that can be checked: more than {MAX_AMBIGUOUS} places of this text can be read in "
                        "two ways (an IRI with # or ' and without // after its scheme, where < may compare); split it"
                    )
            previous = token


def _is_operand(token: Token | None) -> bool:
    """Return whether *less than* may follow `token`."""
    return token is not None and (token.kind in _OPERANDS or token.text in _CLOSING)


def may_compare(token: Token, previous: Token | None) -> bool:
    """Return whether `token`, an IRI, may be *less than* and what is compared with."""
    return _is_operand(previous) and not _SCHEME.match(token.text)


def other_end(token: Token, previous: Token | None) -> int | None:
    """Return where another token than `token` may end that begins at the same place, if that makes a difference.

    ``<scheme://...>`` is an IRI whatever it holds: no expression has two slashes in a row.
    """
    if token.kind == "iri":
        if ("#" in token.text or "'" in token.text) and may_compare(token, previous):
            return token.start + 1
    elif token.kind == "string" and token.text.startswith(('"""', "'''")) and _NO_CHARACTER.search(token.text):
        return token.start + 2
    return None
