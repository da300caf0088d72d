"""Regular expressions that search much text."""

from __future__ import annotations

from collections.abc import Iterable


def build_alternatives(several: Iterable[str]) -> str:
    """Build the pattern of alternatives that begin with a letter, where neither a word character nor a hyphen precedes.

    The first letter comes before that condition, so that a search reads the letters alone until one may match. With
    the condition first, as in ``(?<![\\w-])(?:Act|Bill)``, it takes ten times as long.
    """
    return "|".join(rf"{each[0]}(?<![\w-]{each[0]}){each[1:]}" for each in several)
