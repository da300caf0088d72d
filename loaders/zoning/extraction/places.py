"""The districts that apply at an offset of a section, by its scopes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.section_protocol import Section
from loaders.zoning.extraction.section_scope import Scope, find_scopes, get_scope


class Places:
    """The districts of a section, by offset. `scopes` are those of the section, if they have been found before."""

    def __init__(
        self,
        section: Section,
        known: Mapping[str, District],
        above: Sequence[Section],
        scopes: Sequence[Scope] | None = None,
    ) -> None:
        self._scopes: Final = find_scopes(section, known, above) if scopes is None else scopes
        self._all: Final = tuple(known)

    @property
    def starts(self) -> frozenset[int]:
        """Offsets where the districts change."""
        return frozenset(each.start for each in self._scopes if each.start)

    def at(self, offset: int) -> Sequence[str]:
        """Get the codes of the districts that apply at an offset. Empty if they are not known."""
        scope = get_scope(self._scopes, offset)
        return self._all if scope.kind == "all" else scope.codes if scope.kind in ("districts", "class") else ()
