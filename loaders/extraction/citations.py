"""Citations of law in text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Law:
    """A law that is no part of the code that cites it."""

    jurisdiction: str
    """``us``, or ``us-`` and the two letters of a state: ``us-ut``."""
    scheme: str
    """What its numbers count in: ``usc``, ``cfr``, ``code``, ``public-law``, ``public-act``, ``dc-law``."""
    citation: str
    """Normalised: ``42 U.S.C. § 1983``, ``Utah Code § 10-9a-103``, ``MCL 125.3101``, ``D.C. Law 13-312``."""


@dataclass(frozen=True, slots=True)
class Citation:
    """What the code points [start, end) of a text cite. Of a list, each member is one; of a range, both ends are."""

    start: int
    end: int
    raw: str
    """The text there."""
    form: str
    """Which pattern it is of: section, range, number, subsection, article, division, chapter, title, this, usc, ..."""
    levels: Sequence[tuple[str, str]] = ()
    """Of the code itself, kind and number from the outermost that is named: ``(("title", "8"), ("chapter", "2A"))``.
    The number ``this`` is the one that the citing section is in."""
    labels: Sequence[str] = ()
    """Of the subsection, bare, from the outermost."""
    through: str | None = None
    """Of the first end of a range: the number of its last."""
    law: Law | None = None
    """What it cites where that is not the code itself."""
    confidence: float = 0.95
    method: str = "citation"

    @property
    def key(self) -> str:
        """The same for all citations of the same: ``section 15.3.24.090(G)``, ``title 8|chapter 2A``."""
        if self.law is not None:
            return self.law.citation
        labels = "".join(f"({label})" for label in self.labels)
        return "|".join(f"{kind} {number}" for kind, number in self.levels) + labels


def citations(text: str) -> Sequence[Citation]:
    """Return what `text` cites, in its order; none overlaps another."""
    raise NotImplementedError
