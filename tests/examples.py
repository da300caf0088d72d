"""How often Hypothesis tries what is dear to try: in proportion to the profile that the suite runs with.

``pytest --hypothesis-profile=thorough`` tries ten times as many examples, here and wherever a test sets no number.
"""

from __future__ import annotations

from hypothesis import settings

USUAL = 100
# A time limit for each example would fail on a busy machine. The timeout of a test bounds its examples together.
settings.register_profile("usual", settings(), deadline=None)
settings.register_profile("thorough", deadline=None, max_examples=10 * USUAL)
settings.load_profile("usual")


def dear(number: int) -> int:
    """Return how many examples to try where the default profile tries `number`."""
    return max(1, number * settings().max_examples // USUAL)
