"""Which section of a code a citation is of."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from loaders.extraction.citations import Citation
from loaders.extraction.sections import Section


class Index:
    """The sections of a municipality's code, by what citations call them."""

    def __init__(self, sections: Iterable[Section], *, state: str | None = None) -> None: ...


def resolve(citation: Citation, index: Index, here: str | None = None) -> str | None:
    """Return the key of the section that a citation in the section `here` is of; None if `index` has none."""
    raise NotImplementedError


def members(citation: Citation, index: Index, here: str | None = None) -> Sequence[str]:
    """Return the keys of the sections that a citation is of: for the first end of a range, all up to its last."""
    raise NotImplementedError
