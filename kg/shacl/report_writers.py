"""A report, written as results come: text for people, JSON, Turtle or SARIF 2.1.0.

A report is put by until the last result is known, packed, in a temporary file: what stands at its top is right, a
validation that fails midway writes nothing at all, and a million results take no more memory than some thousands.
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
from kg.text import printable
from kg.vocabulary import PREFIXES, curie

Form = Literal["text", "json", "ttl", "sarif"]
Locate = Callable[[Violation], Location | None]

SORTED: Final = 10_000
"""Up to how many results are sorted; more are written in the order in which they were found."""

UNTARGETED: Final = ", which no shape looks at"
"""What is said beside what was validated where no target of the shapes finds anything in it."""

_IN_MEMORY: Final = 1 << 20
"""Bytes, packed, of a report that is put by in memory."""

_TOGETHER: Final = 500
"""How many results are serialized as Turtle in one go."""


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
    """Write the report on `results` to `output`, and return how many there were of each severity.

    `checked`: what was validated, in a few words. `by_pyshacl`: the shapes that pySHACL ran, each with the reason.
    `locate` says which document a result is about, and where in it; by default, the file that was checked, and the
    line where its text tells it for certain. `looked` is asked where there is no result, and says whether the shapes
    look at anything in the data: if not, the report does not pass for good news.

    `conforms`, in text, JSON and SARIF, is whether there is no result of severity ``Violation``; ``sh:conforms``, in
    Turtle, is the standard's: no result at all (https://www.w3.org/TR/shacl/#conforms).

    What `results` raises is raised, and nothing is written then. Raises OSError when there is no room to put the report
    by, or `output` takes no more.
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
    """Return a report, which is known to be small, as text; `write_report` has the rest."""
    output = BytesIO()
    write_report(results, form, output, checked=checked, by_pyshacl=by_pyshacl)
    return output.getvalue().decode()


@dataclass(frozen=True, slots=True)
class Verdict:
    """What is known once all results are."""

    checked: str
    counts: Mapping[str, int]
    by_pyshacl: Mapping[str, str]

    @property
    def conforms(self) -> bool:
        """Whether nothing found makes the data unfit; warnings do not."""
        return not self.counts.get("Violation")


def _sort_first(results: Iterable[Violation]) -> Iterator[Violation]:
    found = iter(results)
    first = list(islice(found, SORTED + 1))
    if len(first) <= SORTED:
        first.sort(key=_sort_key)
    return chain(first, found)


def _sort_key(violation: Violation) -> tuple[object, ...]:
    """Return where a result stands among others: by file, then violations first, then by what it is about.

    The labels of blank nodes, which are made up anew for each run, have no say.
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
    """Bytes put by, packed: reports say the same again and again, and temporary files may lie in memory."""

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
        others = [f"run by pySHACL: {curie(shape)}, since {reason}" for shape, reason in known.by_pyshacl.items()]
        for line in (*self._summary.to_lines(), *others, format_verdict(known.checked, known.counts)):
            output.write(_to_utf8(printable(line) + "\n"))


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
            self._put_by()

    def _put_by(self) -> None:
        triples = [triple for each in self._waiting for triple in build_result_triples(self._report, each)]
        self._waiting.clear()
        text = BytesIO()
        serialize(triples, text, RdfFormat.TURTLE, prefixes=PREFIXES)
        self._spool.write(_strip_prefixes(text.getvalue()))

    def finish(self, output: IO[bytes], known: Verdict) -> None:
        self._put_by()
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
    """Leave out the declarations that every piece begins with."""
    start = 0
    while turtle.startswith(b"@prefix ", start):
        start = turtle.index(b"\n", start) + 1
    return turtle[start:]


def _to_one_line(text: str) -> str:
    return " ".join(text.split())


def _to_json(value: Mapping[str, Any]) -> bytes:
    return _to_utf8(json.dumps(value, ensure_ascii=False))


def _to_utf8(text: str) -> bytes:
    """Return `text` as UTF-8; what is no character, as in the name of a file, as an escape that JSON knows."""
    return text.encode("utf-8", "backslashreplace")


_WRITERS: Final[Mapping[Form, type[_Writer]]] = {"text": _Text, "json": _Json, "ttl": _Turtle, "sarif": _Sarif}
