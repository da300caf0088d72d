"""Reports in constant memory: text for people, JSON, Turtle and SARIF 2.1.0.

Results are spooled to a compressed temporary file until the last one is known. So the head of a report is correct, a
validation that fails midway writes nothing, and memory does not grow with the number of results.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import chain, islice
from tempfile import SpooledTemporaryFile
from types import TracebackType
from typing import IO, Any, Final, Literal, Protocol, Self

from pyoxigraph import BlankNode, RdfFormat, serialize

from kg.shacl.line_numbers import LineLocator
from kg.shacl.report import Location, Violation, build_head_triples, build_result_triples
from kg.shacl.report_summary import Summary, format_verdict
from kg.shacl.sarif import SCHEMA, Rules
from kg.store.protocol import Term
from kg.text import escape_controls
from kg.vocabulary import PREFIXES, curie

Form = Literal["text", "json", "ttl", "sarif"]
Locate = Callable[[Violation], Location | None]

SORTED: Final = 10_000
"""Up to this many results are sorted; more are written in the order in which they were found."""

UNTARGETED: Final = ", which no shape targets"
"""Appended to the description of the data if it contains no target of the shapes."""

_IN_MEMORY: Final = 1 << 20
"""Compressed bytes of a report that are spooled in memory."""

_TOGETHER: Final = 500
"""Results that are serialized as Turtle at once."""


def write_report(
    results: Iterable[Violation],
    form: Form,
    output: IO[bytes],
    *,
    checked: str,
    by_pyshacl: Mapping[str, str] | None = None,
    locate: Locate | None = None,
    looked: Callable[[], bool] = lambda: True,
) -> Counter[str]:
    """Write a report of `results` to `output` and return the number of results by severity.

    `checked` describes the data in a few words. `by_pyshacl` are the shapes that pySHACL ran, each with the reason.
    `locate` returns the place of a result; by default the checked file, and the line if known. `looked` is called if
    there are no results, and returns whether the data contains targets of the shapes; the report notes if it does not.

    In text, JSON and SARIF, `conforms` means that there is no result of severity ``Violation``. In Turtle,
    ``sh:conforms`` follows the standard: no result at all (https://www.w3.org/TR/shacl/#conforms).

    If `results` raises, nothing is written. Raises OSError if the disk is full or `output` cannot be written.
    """
    counts: Counter[str] = Counter()
    with _Spool() as spool:
        writer = _WRITERS[form](spool, locate or LineLocator().locate)
        for violation in _sort_first(results):
            counts[violation.severity] += 1
            writer.add(violation)
        if not counts and not looked():
            checked += UNTARGETED
        writer.finish(output, Verdict(checked, counts, by_pyshacl or {}))
    return counts


def to_text(
    results: Iterable[Violation], form: Form, *, checked: str, by_pyshacl: Mapping[str, str] | None = None
) -> str:
    """Return a small report as text; see `write_report`."""
    output = BytesIO()
    write_report(results, form, output, checked=checked, by_pyshacl=by_pyshacl)
    return output.getvalue().decode()


@dataclass(frozen=True, slots=True)
class Verdict:
    """The description of the data and the counts of results, known after the last result."""

    checked: str
    counts: Mapping[str, int]
    by_pyshacl: Mapping[str, str]

    @property
    def conforms(self) -> bool:
        """Whether there is no result of severity ``Violation``."""
        return not self.counts.get("Violation")


def _sort_first(results: Iterable[Violation]) -> Iterator[Violation]:
    found = iter(results)
    first = list(islice(found, SORTED + 1))
    if len(first) <= SORTED:
        first.sort(key=_sort_key)
    return chain(first, found)


def _sort_key(violation: Violation) -> tuple[object, ...]:
    """Return the sort key of a result: file, violations first, graph, focus node, path, shape.

    The labels of blank nodes differ for each run, so they are ignored.
    """

    def text(term: object) -> str:
        return "" if term is None else "_:" if isinstance(term, BlankNode) else str(term)

    about: Sequence[Term | object] = (violation.graph, violation.focus, violation.path, violation.shape)
    return (
        violation.source or "",
        not violation.blocks,
        *map(text, about),
        text(violation.component),
        violation.message,
        text(violation.value),
    )


class _Spool:
    """A compressed temporary file: reports are repetitive, and temporary files may be in memory."""

    def __init__(self) -> None:
        self._file = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  # closed by `__exit__`
        self._packed = gzip.GzipFile(fileobj=self._file, mode="wb", compresslevel=1)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def write(self, data: bytes) -> None:
        self._packed.write(data)

    def copy_to(self, output: IO[bytes]) -> None:
        self._packed.close()
        self._file.seek(0)
        with gzip.GzipFile(fileobj=self._file, mode="rb") as unpacked:
            shutil.copyfileobj(unpacked, output, 1 << 16)


class _Writer(Protocol):
    def __init__(self, spool: _Spool, locate: Locate) -> None: ...

    def add(self, violation: Violation) -> None: ...

    def finish(self, output: IO[bytes], verdict: Verdict) -> None: ...


class _Text:
    def __init__(self, spool: _Spool, locate: Locate) -> None:
        self._summary = Summary(locate)
        self.add = self._summary.add

    def finish(self, output: IO[bytes], known: Verdict) -> None:
        others = [f"run by pySHACL: {curie(shape)} ({reason})" for shape, reason in known.by_pyshacl.items()]
        for line in (*self._summary.to_lines(), *others, format_verdict(known.checked, known.counts)):
            output.write(_to_utf8(escape_controls(line) + "\n"))


class _Json:
    def __init__(self, spool: _Spool, locate: Locate) -> None:
        self._list, self._locate = _List(spool), locate

    def add(self, violation: Violation) -> None:
        at = self._locate(violation)
        place = {"source": violation.source} if at is None else {"source": at.document, "line": at.line, "row": at.row}
        self._list.add({**violation.to_dict(), "line": None, "row": None, **place})

    def finish(self, output: IO[bytes], known: Verdict) -> None:
        head = {"conforms": known.conforms, "checked": known.checked, "by_pyshacl": dict(known.by_pyshacl)}
        self._list.finish(output, _to_json(head)[:-1] + b', "results": [', b"]}\n")


class _Sarif:
    def __init__(self, spool: _Spool, locate: Locate) -> None:
        self._list, self._locate, self._rules = _List(spool), locate, Rules()

    def add(self, violation: Violation) -> None:
        self._list.add(self._rules.result(violation, self._locate(violation)))

    def finish(self, output: IO[bytes], known: Verdict) -> None:
        run = _to_json(self._rules.run(known.checked, known.conforms, known.by_pyshacl))
        head = _to_json({"$schema": SCHEMA, "version": "2.1.0"})[:-1]
        self._list.finish(output, head + b', "runs": [' + run[:-1] + b', "results": [', b"]}]}\n")


class _List:
    """The members of a JSON array, one a line."""

    def __init__(self, spool: _Spool) -> None:
        self._spool, self._before = spool, b"\n"

    def add(self, value: Mapping[str, Any]) -> None:
        self._spool.write(self._before + _to_json(value))
        self._before = b",\n"

    def finish(self, output: IO[bytes], head: bytes, tail: bytes) -> None:
        output.write(head)
        self._spool.copy_to(output)
        output.write((b"\n" if self._before == b",\n" else b"") + tail)


class _Turtle:
    def __init__(self, spool: _Spool, locate: Locate) -> None:
        self._spool, self._report, self._waiting = spool, BlankNode(), list[Violation]()

    def add(self, violation: Violation) -> None:
        self._waiting.append(violation)
        if len(self._waiting) >= _TOGETHER:
            self._flush()

    def _flush(self) -> None:
        triples = [triple for each in self._waiting for triple in build_result_triples(self._report, each)]
        self._waiting.clear()
        text = BytesIO()
        serialize(triples, text, RdfFormat.TURTLE, prefixes=PREFIXES)
        self._spool.write(_strip_prefixes(text.getvalue()))

    def finish(self, output: IO[bytes], known: Verdict) -> None:
        self._flush()
        prefixes = [f"@prefix {prefix}: <{iri}> .\n" for prefix, iri in sorted(PREFIXES.items())]
        others = [
            f"# {_to_one_line(f'run by pySHACL: {curie(shape)}, since {reason}')}\n"
            for shape, reason in known.by_pyshacl.items()
        ]
        output.write(_to_utf8("".join([*prefixes, f"\n# {_to_one_line(known.checked)}\n", *others])))
        text = BytesIO()
        head = build_head_triples(self._report, conforms=not any(known.counts.values()))
        serialize(head, text, RdfFormat.TURTLE, prefixes=PREFIXES)
        output.write(_strip_prefixes(text.getvalue()))
        self._spool.copy_to(output)


def _strip_prefixes(turtle: bytes) -> bytes:
    """Remove the prefix declarations at the beginning of a piece."""
    start = 0
    while turtle.startswith(b"@prefix ", start):
        start = turtle.index(b"\n", start) + 1
    return turtle[start:]


def _to_one_line(text: str) -> str:
    return " ".join(text.split())


def _to_json(value: Mapping[str, Any]) -> bytes:
    return _to_utf8(json.dumps(value, ensure_ascii=False))


def _to_utf8(text: str) -> bytes:
    """Encode `text` as UTF-8; lone surrogates, as in some file names, become escapes that are valid in JSON."""
    return text.encode("utf-8", "backslashreplace")


_WRITERS: Final[Mapping[Form, type[_Writer]]] = {"text": _Text, "json": _Json, "ttl": _Turtle, "sarif": _Sarif}
