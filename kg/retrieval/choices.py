"""Named items that an argument of a tool can mean, and the text of a note on which were taken."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyoxigraph import Literal, NamedNode

NEAREST: Final = 5
"""Names that are proposed for one that nothing has."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Something that can be named: its node, or a name that is recorded for nothing that has a node."""

    term: NamedNode | Literal
    label: str
    names: tuple[str, ...]

    @property
    def shown(self) -> str:
        """Its label with its key, for a message."""
        key = self.term.value.rpartition("/")[2] if isinstance(self.term, NamedNode) else "as recorded"
        return f"{self.label} ({key})"


def interpretation_note(argument: str, text: str, found: Sequence[Choice]) -> str | None:
    """Return what to tell of a name that was not given as it is shown; None where there is nothing to tell."""
    if len(found) == 1 and text.strip() in (found[0].label, *found[0].names):
        return None
    return f"{argument}: {text.strip()!r} was taken for {shorten([choice.shown for choice in found])}."


def shorten(names: Sequence[str]) -> str:
    """Return the first `NEAREST` of some names in one line, with how many more there are."""
    more = f" and {len(names) - NEAREST} more" if len(names) > NEAREST else ""
    return f"{', '.join(names[:NEAREST])}{more}"
