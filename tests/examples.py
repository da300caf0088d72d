"""How many examples of what is dear to try the suites have.

Hypothesis tries them in proportion to the profile that the suite runs with. ``pytest --hypothesis-profile=thorough``,
which is part of make test-exhaustive, tries ten times as many, here and wherever a test sets no number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import settings

BASE = 100
# A time limit for each example would fail on a busy machine. The timeout of a test bounds its examples together.
settings.register_profile("usual", deadline=None, max_examples=BASE * 2 // 5)
settings.register_profile("thorough", deadline=None, max_examples=BASE * 4)
settings.load_profile("usual")


def dear(number: int) -> int:
    """Return how many examples to try where a test without a number of its own tries `BASE`: `number` of them."""
    return max(1, number * settings().max_examples // BASE)


def spread(cases: Sequence[Any], kept: int) -> list[Any]:
    """Return `cases` for a parametrized test, of which `kept`, evenly spread, are not left to make test-exhaustive."""
    chosen = {round(number * (len(cases) - 1) / max(1, kept - 1)) for number in range(kept)}
    return [
        case
        if number in chosen
        else pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.exhaustive)
        for number, case in enumerate(cases)
    ]
