"""Tokens of SPARQL 1.1 and 1.2, split as Oxigraph's parser splits them.

That parser has no tokenizer of its own: a keyword may touch its neighbors (``trueSERVICE<http://x>{}`` is a literal and
a clause), and ``<`` begins an IRI or is *less than*, depending on context. `tokens` follows the tokenizer rules of the
grammar (longest match, https://www.w3.org/TR/sparql12-query/#whitespace). `tokens_of_all_readings` yields the tokens of
every reading that the parser could choose, for security checks that must not miss one.
"""

from __future__ import annotations

import re
import sys
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from kg.errors import QuerySyntaxError

_LINE_END: Final = re.compile(r"[\r\n]")
_OPERANDS: Final = frozenset({"variable", "name", "iri", "string", "language", "number", "word", "blank"})
_SCHEME: Final = re.compile(r"<[A-Za-z][A-Za-z0-9+.\-]*://")
# A well-formed escape that encodes no character. Oxigraph does not accept a string that contains one.
_NO_CHARACTER: Final = re.compile(r"\\u[dD][89A-Fa-f]|\\U(?!000[0-9A-Fa-f]|0010)|\\U0000[dD][89A-Fa-f]")
_CLOSING: Final = frozenset({")", "}", "]", ">>", ")>>"})

_NAME_CHARACTERS: Final = re.compile(r"""(?:[^\s<>"'{}()\[\];,/\\]++|\\.)++""")
"""Characters between those that no name has without an escape. IRIs are divided at their slashes."""
_PLAIN_DOT: Final = re.compile(r"(?<!\\)\.")

MAX_AMBIGUOUS: Final = 1_000
"""Maximum number of ambiguous tokens in one text, since each of them starts another reading."""

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
    """Return a regular expression class of these characters and ranges (a literal hyphen comes last).

    The class is written as the complement of its complement: `re` compiles that in a third of the time.
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
"""Characters of a prefix. In a run of them without a colon at its end, no prefixed name begins."""
_NO_NAME: Final = r"(?!)"

_TOKEN_PATTERN: Final = rf"""
      (?P<space>[ \t\r\n]+)
    | (?P<comment>\#[^\r\n]*)
    | (?P<iri><(?:[^\x00-\x20<>"{{}}|^`\\]|\\u[0-9A-Fa-f]{{4}}|\\U[0-9A-Fa-f]{{8}})*>)
    | (?P<string>\"\"\"(?:\"{{0,2}}+(?:[^"\\]|{_ESCAPE}))*+\"\"\" | '''(?:'{{0,2}}+(?:[^'\\]|{_ESCAPE}))*+'''
               | "(?:[^"\\\r\n]|{_ESCAPE})*+" | '(?:[^'\\\r\n]|{_ESCAPE})*+')
    | (?P<language>@[A-Za-z]+(?:-[A-Za-z0-9]+)*(?:--(?:ltr|rtl))?)
    | (?P<variable>[?$]{_any_of(_BASE + "_0-9")}{_any_of(_CHARS)}*)
    | (?P<blank>_:{_any_of(_BASE + "_0-9")}(?:{_any_of(_CHARS + ".-")}*{_any_of(_CHARS + "-")})?)
    | (?P<name>NAME)
    | (?P<number>(?:[0-9]+(?:\.[0-9]+)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    | (?P<word>[A-Za-z_][A-Za-z_0-9]*)
    | (?P<punctuation><<\(|\)>>|<<|>>|\{{\||\|\}}|\^\^|&&|\|\||!=|<=|>=|[{{}}()\[\].,;|/^*+?!=<>\-~&@])
"""
_CONTENT: Final = {
    mark: re.compile(pattern.format(escape=_ESCAPE))
    for mark, pattern in {
        '"': r'(?:[^"\\\r\n]|{escape})*+',
        "'": r"(?:[^'\\\r\n]|{escape})*+",
        '"""': r'(?:"{{0,2}}+(?:[^"\\]|{escape}))*+',
        "'''": r"(?:'{{0,2}}+(?:[^'\\]|{escape}))*+",
    }.items()
}
"""The content of a string, by the mark before and after it."""
_TOKEN: Final = re.compile(_TOKEN_PATTERN.replace("NAME", _NAME), re.VERBOSE)
_NAMELESS: Final = re.compile(_TOKEN_PATTERN.replace("NAME", _NO_NAME), re.VERBOSE)


class Token(NamedTuple):
    """One token: kind, text and start offset."""

    kind: Kind
    text: str
    start: int

    @property
    def end(self) -> int:
        """End offset (exclusive)."""
        return self.start + len(self.text)


def token_at(query: str, offset: int) -> Token:
    """Return the longest token that begins at `offset`; a character that begins none has the kind ``other``."""
    return _cut(_TOKEN, query, offset)


def tokens(query: str) -> Iterator[Token]:
    """Yield every token of `query`, including white space and comments: the texts, joined, equal the query."""
    offset, passed = 0, _Passed()
    while offset < len(query):
        token = _next(query, offset, passed)
        yield token
        offset = token.end


def may_have_inner_dots(query: str) -> bool:
    """Return whether `query` may have a local name with several dots, without a scan over its tokens."""
    return any(run.count(".", run.index(":")) > 1 for run in _NAME_CHARACTERS.findall(query) if ":" in run)


def find_inner_dots(query: str) -> list[int]:
    """Find the dots to escape in local names with several of them, such as ``sec:17.52.010``.

    The standard allows them (https://www.w3.org/TR/sparql12-query/#rPN_LOCAL), but Oxigraph reads one at most.
    """
    if not may_have_inner_dots(query):
        return []
    found = []
    for token in tokens(query):
        if token.kind == "name":
            local = token.text.index(":")
            dots = [match.start() for match in _PLAIN_DOT.finditer(token.text, local)]
            found += [token.start + dot for dot in dots] if len(dots) > 1 else []
    return found


def escape_inner_dots(query: str) -> str:
    """Escape the dots of `find_inner_dots`, which changes nothing else."""
    parts, at = [], 0
    for dot in find_inner_dots(query):
        parts += [query[at:dot], "\\"]
        at = dot
    return "".join([*parts, query[at:]])


def significant_tokens(query: str) -> Iterator[Token]:
    """Yield every token of `query` except white space and comments."""
    return (token for token in tokens(query) if token.kind not in ("space", "comment"))


def _cut(pattern: re.Pattern[str], query: str, offset: int) -> Token:
    match = pattern.match(query, offset)
    if match is None:
        return Token("other", query[offset], offset)
    return Token(match.lastgroup, match[0], offset)  # type: ignore[arg-type]


@dataclass(slots=True)
class _Passed:
    """Facts about the text behind a token, so that no search starts again at each further one (quadratic time)."""

    nameless: int = 0
    """The offset up to which no prefixed name begins, as in a long run of words and hyphens without a colon."""
    unclosed: dict[str, int] = field(default_factory=dict)
    """The offset up to which no string with a mark begins, since one did that does not end."""


def _next(query: str, offset: int, passed: _Passed) -> Token:
    """Return the token at `offset`, and note what it shows about later ones."""
    mark = query[offset] if query[offset] in "\"'" else ""
    if mark and query.startswith(mark * 3, offset) and offset < passed.unclosed.get(mark * 3, 0):
        return Token("string", mark * 2, offset)
    if mark and offset < passed.unclosed.get(mark, 0):
        return Token("other", mark, offset)
    token = _cut(_NAMELESS if offset < passed.nameless else _TOKEN, query, offset)
    if mark and len(token.text) <= len(mark * 2):
        for each in (mark, mark * 3) if token.kind == "other" else (mark * 3,):
            if query.startswith(each, offset) and (content := _CONTENT[each].match(query, offset + len(each))):
                passed.unclosed[each] = content.end()
    elif offset >= passed.nameless and token.kind in ("word", "other") and (run := _RUN.match(query, offset)):
        end = run.end()
        if not query.startswith(":", end) or query[end - 1] == ".":
            passed.nameless = end
    return token


def tokens_of_all_readings(query: str) -> Iterator[tuple[Token | None, Token]]:
    """Yield the significant tokens of every reading of `query`, each with its predecessor in that reading.

    Two kinds of tokens are ambiguous. An IRI that contains ``#`` or ``'`` (and no ``//`` after its scheme) can be *less
    than* before a comment or string that hides what follows (``FILTER(?a <1)#>``). A token that looks like a long
    string can be an empty string followed by another string. Any other difference ends where the token ends and hides
    nothing.
    Raises QuerySyntaxError for more than `MAX_AMBIGUOUS` ambiguous tokens.
    """
    seen: set[tuple[int, bool]] = set()
    starts: list[tuple[int, Token | None]] = [(0, None)]
    ambiguous = 0
    lines: list[int] = []  # the ends of all lines, since many readings may begin a comment in the same line
    while starts:
        offset, previous = starts.pop()
        passed = _Passed()
        while offset < len(query) and (offset, _is_operand(previous)) not in seen:
            seen.add((offset, _is_operand(previous)))
            if query[offset] == "#":
                lines = lines or [match.start() for match in _LINE_END.finditer(query)] + [len(query)]
                offset = lines[bisect_left(lines, offset)]
                continue
            token = _next(query, offset, passed)
            offset = token.end
            if token.kind in ("space", "comment"):
                continue
            yield previous, token
            if (end := find_other_end(token, previous)) is not None:
                starts.append((end, Token("punctuation", query[token.start : end], token.start)))
                ambiguous += 1
                if ambiguous > MAX_AMBIGUOUS:
                    raise QuerySyntaxError(
                        f"Too many ambiguous tokens: more than {MAX_AMBIGUOUS}. An IRI with # or ' and without // "
                        "after its scheme is ambiguous where < may be an operator. Split the query."
                    )
            previous = token


def _is_operand(token: Token | None) -> bool:
    """Return whether *less than* may follow `token`."""
    return token is not None and (token.kind in _OPERANDS or token.text in _CLOSING)


def may_compare(token: Token, previous: Token | None) -> bool:
    """Return whether `token`, an IRI, may be *less than* and the start of its right operand."""
    return _is_operand(previous) and not _SCHEME.match(token.text)


def find_other_end(token: Token, previous: Token | None) -> int | None:
    """Return the end of the other token that may begin where `token` begins, or None if `token` is unambiguous.

    ``<scheme://...>`` is always an IRI: no expression has two slashes in a row.
    """
    if token.kind == "iri":
        if ("#" in token.text or "'" in token.text) and may_compare(token, previous):
            return token.start + 1
    elif token.kind == "string" and token.text.startswith(('"""', "'''")) and _NO_CHARACTER.search(token.text):
        return token.start + 2
    return None
