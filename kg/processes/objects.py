"""Objects of records and commits as bytes, between a process and its child: pickles, with RDF terms as N-Quads.

Pickled one by one, terms and quads would take several times as long. The pickles of a child are read into classes of
data only, such as dataclasses; they name no function.
"""

from __future__ import annotations

import dataclasses
import enum
import io
import pickle
import struct
from collections import Counter, OrderedDict, defaultdict, deque
from collections.abc import Callable, Iterator, KeysView, Mapping, Sequence, ValuesView
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from fractions import Fraction
from pathlib import PurePath
from typing import Any, Final

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad, RdfFormat, Triple, parse, serialize

_LENGTHS: Final = struct.Struct(">II")
_SAID: Final = NamedNode("urn:x:of")
_PLAIN: Final = (
    *(Counter, OrderedDict, defaultdict, deque, date, datetime, time, timedelta, timezone, Decimal, Fraction),
    *(list, dict, set, frozenset, tuple, bytearray, complex, slice, range, DefaultGraph),
)
_OWN: Final = ("kg.", "loaders.")
_LISTED: Final = (KeysView, ValuesView, Iterator)

Functions = list[Callable[..., Any]]
"""Functions that the other process calls by their numbers."""


class _Writer(pickle.Pickler):
    """Takes terms, quads and functions out of a pickle."""

    def __init__(self, stream: io.BytesIO, functions: Functions | None) -> None:
        super().__init__(stream, pickle.HIGHEST_PROTOCOL)
        self.terms: Final[dict[Any, int]] = {}
        self.quads: Final[dict[Quad, int]] = {}
        self._functions = functions

    def persistent_id(self, obj: Any) -> tuple[str, int] | None:
        """Return the place of a term, quad or function, None for any other object."""
        kind = type(obj)
        if kind is Quad:
            return "q", self.quads.setdefault(obj, len(self.quads))
        if kind in (NamedNode, Literal, BlankNode, Triple):
            return "t", self.terms.setdefault(obj, len(self.terms))
        if self._functions is not None and callable(obj) and not isinstance(obj, type):
            self._functions.append(obj)
            return "f", len(self._functions) - 1
        return None

    def reducer_override(self, obj: Any) -> Any:
        """Write sequences that are read once, and lists with an index of their own, as lists."""
        if isinstance(obj, _LISTED) or (isinstance(obj, list) and type(obj).__module__.startswith(_OWN)):
            return list, (list(obj),)
        return NotImplemented


class _Reader(pickle.Unpickler):
    def __init__(
        self,
        stream: io.BytesIO,
        terms: Sequence[Any],
        quads: Sequence[Quad],
        get_function: Callable[[int], Callable[..., Any]],
    ) -> None:
        super().__init__(stream)
        self._held: Final[Mapping[str, Any]] = {"t": terms.__getitem__, "q": quads.__getitem__, "f": get_function}

    def persistent_load(self, pid: Any) -> Any:
        """Return the term, quad or function at a place."""
        kind, place = pid
        return self._held[kind](place)

    def find_class(self, module_name: str, global_name: str) -> Any:
        """Return a class of data. Raises pickle.UnpicklingError for anything else."""
        found = super().find_class(module_name, global_name)
        own = module_name.startswith(_OWN) and isinstance(found, type)
        if found in _PLAIN or (isinstance(found, type) and issubclass(found, PurePath)):
            return found
        if own and (dataclasses.is_dataclass(found) or issubclass(found, tuple | enum.Enum)):
            return found
        raise pickle.UnpicklingError(f"{module_name}.{global_name} is not a class of data")


def dump(value: Any, functions: Functions | None = None) -> bytes:
    """Encode a value. The functions in it are added to `functions`."""
    stream = io.BytesIO()
    writer = _Writer(stream, functions)
    writer.dump(value)
    terms = _serialize(Quad(_SAID, _SAID, term) for term in writer.terms)
    quads = _serialize(writer.quads)
    return b"".join((_LENGTHS.pack(len(terms), len(quads)), terms, quads, stream.getbuffer()))


def load(data: bytes, get_function: Callable[[int], Callable[..., Any]]) -> Any:
    """Decode a value. `get_function` makes the function with a number. Raises pickle.UnpicklingError for others."""
    first, second = _LENGTHS.unpack_from(data)
    start = _LENGTHS.size
    terms = [quad.object for quad in _parse(data[start : start + first])]
    quads = list(_parse(data[start + first : start + first + second]))
    return _Reader(io.BytesIO(data[start + first + second :]), terms, quads, get_function).load()


def _serialize(quads: Any) -> bytes:
    return serialize(quads, format=RdfFormat.N_QUADS) or b""


def _parse(data: bytes) -> Iterator[Quad]:
    return parse(data, format=RdfFormat.N_QUADS, lenient=True)
