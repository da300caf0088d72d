"""Named items that an argument of a tool can refer to, and the note on how it was interpreted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyoxigraph import Literal, NamedNode

NEAREST: Final = 5
"""Number of similar names that are suggested for an unknown one."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A named item: its node or, for a recorded name without a node, the name as a literal."""

    term: NamedNode | Literal
    label: str
    names: tuple[str, ...]

    @property
    def shown(self) -> str:
        """The label with the key, for messages."""
        key = self.term.value.rpartition("/")[2] if isinstance(self.term, NamedNode) else "as recorded"
        return f"{self.label} ({key})"


def interpretation_note(argument: str, text: str, found: Sequence[Choice]) -> str | None:
    """Report how an inexact name was interpreted; None for an exact name."""
    exact = {found[0].label, *found[0].names, found[0].term.value} if len(found) == 1 else ()
    if text.strip() in exact:
        return None
    return f"{argument}: {text.strip()!r} was interpreted as {shorten([choice.shown for choice in found])}."


def shorten(names: Sequence[str]) -> str:
    """Join the first `NEAREST` of some names, with the number of the others."""
    more = f" and {len(names) - NEAREST} more" if len(names) > NEAREST else ""
    return f"{', '.join(names[:NEAREST])}{more}"
