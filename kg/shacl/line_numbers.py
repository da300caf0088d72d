"""Line numbers of nodes and triples in RDF files.

The RDF parser does not report positions, so the text is parsed a second time. In N-Triples and N-Quads, few results are
searched by their subjects, and for many all lines are indexed; Turtle and TriG are parsed token by token. A wrong line
is worse than none, so there are no lines for files with anything beyond Turtle 1.1, for very long files, and for blank
nodes, whose labels the RDF parser invents.
"""

from __future__ import annotations

import mmap
import re
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pyoxigraph import BlankNode, Literal, NamedNode, RdfFormat, parse

from kg.shacl.report import Location, Violation
from kg.sparql.lexer import Token, tokens
from kg.store.protocol import Term
from kg.vocabulary import RDF, XSD

MAX_TURTLE_BYTES: Final = 8 << 20
"""Longer Turtle and TriG files have no line numbers: at 3 MB/s, parsing would take longer than validation."""

_FILES: Final = 4
"""Files whose line index is cached."""

SEARCHED: Final = 8
"""Results of a file of N-Triples or N-Quads that are searched one by one. For more, all its lines are indexed, which
takes as long as 50 searches (97,000 triples: 640 and 12 ms)."""
MAX_PLACES: Final = 10_000
"""Places of one IRI that a search examines."""

MAX_DEPTH: Final = 100
"""Maximum nesting depth of brackets."""

Placed = tuple[str, int]
"""A subject or a triple in N-Triples, and its line."""

_STATEMENT: Final = re.compile(
    r"[ \t]*(<[^<>\s]*>)[ \t]*(?:(<[^<>\s]*>)[ \t]*"
    r"(<[^<>\s]*>|\"[^\"\\]*(?:\\.[^\"\\]*)*\"(@[A-Za-z0-9\-]+|\^\^<[^<>\s]*>)?))?"
)
_ESCAPE: Final = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|U([0-9A-Fa-f]{8})|(.))", re.DOTALL)
_CHARACTERS: Final = {"t": "\t", "b": "\b", "n": "\n", "r": "\r", "f": "\f"}
_CHUNK: Final = 1 << 20
_ABSOLUTE: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:")


_LOCAL_ESCAPE: Final = re.compile(r"\\(?=.)")
_END: Final = (Token("other", "", 0), 0)


class LineLocator:
    """Locates results in files. A file is read when its first result is located."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, _LineIndex | _LineSearch | None] = OrderedDict()

    def locate(self, violation: Violation) -> Location | None:
        """Return the file of a result, and the line of its triple or focus node if known."""
        if violation.source is None:
            return None
        if isinstance(violation.focus, NamedNode) and (index := self._get_index(violation.source)) is not None:
            return Location(violation.source, index.find_line(violation.focus, violation.path, violation.value))
        return Location(violation.source)

    def _get_index(self, source: str) -> _LineIndex | _LineSearch | None:
        if source not in self._known:
            path = Path(source)
            self._known[source] = _LineSearch.from_file(path) or _LineIndex.from_file(path)
            if len(self._known) > _FILES:
                self._known.popitem(last=False)
        self._known.move_to_end(source)
        return self._known[source]


def _to_key(focus: NamedNode, path: object, value: Term | None) -> str | None:
    """Return the text by which a triple is found; None for a result without a triple that can be found."""
    if isinstance(path, NamedNode) and value is not None and not isinstance(value, BlankNode):
        return f"{focus} {path} {value}"
    return None


class _LineIndex:
    """The first line of each subject and triple of a file, by hash, in arrays: a file may have millions of subjects."""

    def __init__(self, placed: Iterator[Placed]) -> None:
        import numpy as np  # slow to import, and few reports need line numbers

        first: dict[int, int] = {}
        for what, line in placed:
            first.setdefault(hash(what), line)
        self._hashes = np.fromiter(first.keys(), dtype=np.int64, count=len(first))
        lines = np.fromiter(first.values(), dtype=np.int32, count=len(first))
        order = np.argsort(self._hashes)
        self._hashes, self._lines = self._hashes[order], lines[order]

    @classmethod
    def from_file(cls, path: Path) -> _LineIndex | None:
        """Index a file. Return None for an unsupported or unreadable one."""
        ending = path.suffix.lower()
        try:
            if ending in (".nt", ".nq"):
                with path.open("rb") as file:
                    return cls(_parse_lines(file))
            if ending in (".ttl", ".trig") and path.stat().st_size <= MAX_TURTLE_BYTES:
                text = path.read_bytes().decode("utf-8-sig")
                return cls(_TurtleParser(text, path.absolute().as_uri(), graphs=ending == ".trig").parse())
        except (OSError, ValueError):
            return None
        return None

    def find_line(self, focus: NamedNode, path: object, value: Term | None) -> int | None:
        """Return the line of the triple, or else of the first statement about `focus`."""
        triple = _to_key(focus, path, value)
        found = None if triple is None else self._find(triple)
        return self._find(str(focus)) if found is None else found

    def _find(self, key: str) -> int | None:
        wanted = hash(key)
        at = int(self._hashes.searchsorted(wanted))
        return int(self._lines[at]) if at < len(self._hashes) and int(self._hashes[at]) == wanted else None


class _LineSearch:
    """Finds lines of N-Triples or N-Quads by the bytes of the subject, and by an index after `SEARCHED` results."""

    def __init__(self, path: Path, content: mmap.mmap) -> None:
        self._path, self._content = path, content
        self._left = SEARCHED
        self._index: _LineIndex | None = None
        self._may_escape = content.find(b"\\u") >= 0 or content.find(b"\\U") >= 0

    @classmethod
    def from_file(cls, path: Path) -> _LineSearch | None:
        """Open a file. Return None for another format and for an empty or unreadable file."""
        if path.suffix.lower() not in (".nt", ".nq"):
            return None
        try:
            with path.open("rb") as file:
                return cls(path, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError):
            return None

    def find_line(self, focus: NamedNode, path: object, value: Term | None) -> int | None:
        """Return the line of the triple, or else of the first statement about `focus`."""
        self._left -= 1
        if self._index is None and self._left >= 0:
            wanted = _to_key(focus, path, value)
            subject, triple = self._search(str(focus), wanted)
            # The subject may be written with escapes on other lines.
            if (found := subject if wanted is None else triple) is not None or not self._may_escape:
                return self._count(subject if found is None else found)
        if self._index is None:
            self._index = _LineIndex.from_file(self._path)
        return None if self._index is None else self._index.find_line(focus, path, value)

    def _search(self, subject: str, triple: str | None) -> tuple[int | None, int | None]:
        """Find the offsets of the first line with the subject and of the first with the triple."""
        content, needle = self._content, subject.encode()
        first, at = None, -1
        for _ in range(MAX_PLACES):
            at = content.find(needle, at + 1)
            if at < 0:
                return first, None
            start = content.rfind(b"\n", 0, at) + 1
            if content[start:at].strip(b" \t"):
                continue  # not a subject
            first = at if first is None else first
            if triple is None:
                return first, None
            end = content.find(b"\n", at)
            placed = _parse_lines([content[start : len(content) if end < 0 else end]])
            if any(what == triple for what, _ in placed):
                return first, at
        # An IRI in so many places that the index is faster; as after escapes, the search has not decided.
        self._left = -1
        self._may_escape = True
        return None, None

    def _count(self, offset: int | None) -> int | None:
        if offset is None:
            return None
        with memoryview(self._content) as view:
            return (
                sum(bytes(view[start : min(start + _CHUNK, offset)]).count(b"\n") for start in range(0, offset, _CHUNK))
                + 1
            )


def _parse_lines(file: Iterable[bytes]) -> Iterator[Placed]:
    """Parse N-Triples or N-Quads, one statement a line (https://www.w3.org/TR/n-triples/#sec-grammar)."""
    for number, line in enumerate(file, 1):
        found = _STATEMENT.match(line.decode("utf-8"))
        if found is None:
            continue
        subject, predicate, value, suffix = found.groups()
        subject = _unescape(subject)
        yield subject, number
        if value is not None:
            yield f"{subject} {_unescape(predicate)} {_to_n_triples(value, suffix or '')}", number


def _to_n_triples(value: str, suffix: str) -> str:
    """Normalize an object of N-Triples to the form that pyoxigraph writes."""
    if value[0] == "<":
        return _unescape(value)
    text = value.removesuffix(suffix)
    if "\\" in text:
        text = str(Literal(_unescape(text[1:-1])))
    return text + (suffix.lower() if suffix.startswith("@") else _unescape(suffix))


def _unescape(text: str) -> str:
    return _ESCAPE.sub(_decode_escape, text) if "\\" in text else text


def _decode_escape(match: re.Match[str]) -> str:
    code = match[1] or match[2]
    return chr(int(code, 16)) if code else _CHARACTERS.get(match[3], match[3])


class _TurtleParser:
    """Parses Turtle 1.1, or TriG with `graphs`. Raises ValueError for anything else.

    https://www.w3.org/TR/turtle/#sec-grammar and https://www.w3.org/TR/trig/#sec-grammar
    """

    def __init__(self, text: str, base: str, *, graphs: bool) -> None:
        self._rest = _tokenize(text)
        self._graphs, self._base = graphs, base
        self._prefixes: dict[str, str] = {}
        self._resolved: dict[tuple[str, str], str] = {}
        self._token, self._line = next(self._rest, _END)
        self._found: list[Placed] = []

    def parse(self) -> Iterator[Placed]:
        """Yield subjects and triples with their lines, in the order of the text."""
        while self._token.text:
            self._statement()
            yield from self._found
            self._found.clear()

    def _next(self) -> Token:
        """Return the current token and advance to the next."""
        token = self._token
        self._token, self._line = next(self._rest, _END)
        return token

    def _at(self, text: str) -> bool:
        return self._token.text == text and self._token.kind == "punctuation"

    def _expect(self, text: str) -> None:
        if not self._at(text):
            raise ValueError(f"unexpected {self._token.text!r}, expected {text!r}")
        self._next()

    def _statement(self) -> None:
        kind, text = self._token.kind, self._token.text
        directive = text.lower() if kind == "word" or text in ("@prefix", "@base") else ""
        if directive in ("@prefix", "prefix", "@base", "base"):
            self._next()
            prefix = self._next().text if directive.endswith("prefix") else None
            iri = self._iri(self._next())[1:-1]
            if prefix is None:
                self._base = iri
            elif prefix.endswith(":"):
                self._prefixes[prefix[:-1]] = iri
            else:
                raise ValueError(f"the prefix {prefix!r} has no colon")
            if directive.startswith("@"):
                self._expect(".")
        elif self._graphs and directive == "graph":
            self._next()
            self._subject()
            self._block()
        elif self._graphs and self._at("{"):
            self._block()
        else:
            self._triples(".", block=self._graphs)

    def _block(self) -> None:
        self._expect("{")
        while not self._at("}"):
            self._triples("}")
        self._next()

    def _triples(self, end: str, *, block: bool = False) -> None:
        """Parse the triples of one subject, up to a full stop; the last subject of a block may end with the block."""
        line, alone = self._line, self._at("[")
        subject, described = self._subject()
        if block and self._at("{"):
            self._block()
            return
        if subject:
            self._found.append((subject, line))
        if not (alone and described and (self._at(".") or self._at(end))):
            self._predicates(subject, 0)
        if not self._at(end) or end == ".":
            self._expect(".")

    def _subject(self) -> tuple[str, bool]:
        """Parse a subject. Return it, "" for a blank node, and whether it has brackets with content."""
        if self._at("[") or self._at("("):
            nil = self._at("(")
            described = self._nested(0)
            return str(RDF.nil) if nil and not described else "", described
        token = self._next()
        return ("", False) if token.kind == "blank" else (self._iri(token), False)

    def _predicates(self, subject: str, depth: int) -> None:
        while True:
            token = self._next()
            predicate = str(RDF.type) if token.kind == "word" and token.text == "a" else self._iri(token)
            self._object(subject, predicate, depth)
            while self._at(","):
                self._next()
                self._object(subject, predicate, depth)
            if not self._at(";"):
                return
            while self._at(";"):
                self._next()
            if self._token.kind == "punctuation":
                return

    def _object(self, subject: str, predicate: str, depth: int) -> None:
        line = self._line
        value = self._value(depth)
        if subject and value:
            self._found.append((f"{subject} {predicate} {value}", line))

    def _value(self, depth: int) -> str:
        """Parse an object. Return it, "" for a blank node."""
        if self._at("[") or self._at("("):
            nil = self._at("(")
            return str(RDF.nil) if not self._nested(depth) and nil else ""
        token = self._next()
        match token.kind:
            case "blank":
                return ""
            case "iri" | "name":
                return self._iri(token)
            case "string":
                return str(self._string(token.text))
            case "word" if token.text in ("true", "false"):
                return str(Literal(token.text, datatype=XSD.boolean))
        sign = token.text if token.text in ("+", "-") else ""
        number = self._next() if sign else token
        if number.kind != "number":
            raise ValueError(f"unexpected {number.text!r}, expected an object")
        kind = XSD.double if "e" in number.text.lower() else XSD.decimal if "." in number.text else XSD.integer
        return str(Literal(sign + number.text, datatype=kind))

    def _string(self, quoted: str) -> Literal:
        marks = 3 if quoted.startswith(('"""', "'''")) else 1
        text = _unescape(quoted[marks:-marks])
        if self._token.kind == "language":
            return Literal(text, language=self._next().text[1:].lower())
        if self._at("^^"):
            self._next()
            return Literal(text, datatype=NamedNode(self._iri(self._next())[1:-1]))
        return Literal(text)

    def _nested(self, depth: int) -> bool:
        """Parse brackets and their content. Return whether there is any."""
        if depth >= MAX_DEPTH:
            raise ValueError(f"brackets nested more than {MAX_DEPTH} levels deep")
        end = "]" if self._next().text == "[" else ")"
        empty = self._at(end)
        if not empty and end == "]":
            self._predicates("", depth + 1)
        while end == ")" and not self._at(end):
            self._value(depth + 1)
        self._expect(end)
        return not empty

    def _iri(self, token: Token) -> str:
        """Return an IRI or a prefixed name in N-Triples."""
        if token.kind == "iri":
            iri = _unescape(token.text[1:-1])
            return f"<{iri}>" if _ABSOLUTE.match(iri) else self._absolute(iri)
        prefix, _, local = token.text.partition(":")
        if token.kind != "name" or prefix not in self._prefixes:
            raise ValueError(f"unexpected {token.text!r}, expected an IRI")
        return f"<{self._prefixes[prefix]}{_LOCAL_ESCAPE.sub('', local)}>"

    def _absolute(self, iri: str) -> str:
        known = self._resolved.get((self._base, iri))
        if known is None:
            statement = f"<{iri}> <x:x> <x:x> .".encode()
            try:
                [quad] = parse(statement, format=RdfFormat.TURTLE, base_iri=self._base)
            except SyntaxError as error:
                raise ValueError(f"invalid IRI <{iri}>: {error.msg}") from error
            known = self._resolved[self._base, iri] = str(quad.subject)
        return known


def _tokenize(text: str) -> Iterator[tuple[Token, int]]:
    """Yield the tokens of `text` except spaces and comments, each with its line."""
    line, at = 1, 0
    for token in tokens(text):
        if token.kind not in ("space", "comment"):
            line += text.count("\n", at, token.start)
            at = token.start
            yield token, line
