"""Named items that an argument of a tool can refer to, and the note on how it was interpreted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pyoxigraph import Literal, NamedNode

from kg.text import join_first, name_or_quote, quoted

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
        return f"{name_or_quote(self.label)} ({name_or_quote(key)})"


def interpretation_note(argument: str, text: str, found: Sequence[Choice]) -> str | None:
    """Report how an inexact name was interpreted; None for an exact name."""
    exact = {found[0].label, *found[0].names, found[0].term.value} if len(found) == 1 else ()
    if text.strip() in exact:
        return None
    named = join_first([choice.shown for choice in found], NEAREST)
    return f"{argument}: {quoted(text.strip())} was interpreted as {named}."


def shorten(names: Sequence[str]) -> str:
    """Join the first `NEAREST` of some names for a message, with the number of the others."""
    return join_first([name_or_quote(name) for name in names], NEAREST)
