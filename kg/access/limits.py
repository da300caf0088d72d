"""Limits of senders: those of all, or of an account, its groups or its scopes."""

from __future__ import annotations

from contextvars import ContextVar
from functools import cache
from typing import Final

from kg.access.actors import Actor
from kg.settings import SenderLimits, Settings

_NONE: Final = SenderLimits()
LIMITS: Final[ContextVar[SenderLimits]] = ContextVar("limits", default=_NONE)
"""The limits of the sender of the request in progress."""


def find_limits(settings: Settings, actor: Actor) -> SenderLimits:
    """Find the limits of a sender: for each, that of its name, else the largest of its groups, else of its scopes.

    Without any of these it is that of all senders.
    """
    if not settings.sender_limits:
        return _build_common(settings.requests_per_minute)
    found: dict[str, int] = {}
    names = [f"user:{actor.name}"]
    groups, scopes = (
        [f"{kind}:{each}" for each in of] for kind, of in (("group", actor.groups), ("scope", actor.scopes))
    )
    for selectors in (names, groups, scopes):
        chosen = [settings.sender_limits[each] for each in selectors if each in settings.sender_limits]
        for name in SenderLimits.model_fields:
            values = [value for each in chosen if (value := getattr(each, name)) is not None]
            if values and name not in found:
                found[name] = 0 if 0 in values else max(values)
    found.setdefault("requests_per_minute", settings.requests_per_minute)
    return SenderLimits(**found)


@cache
def _build_common(requests_per_minute: int) -> SenderLimits:
    return SenderLimits(requests_per_minute=requests_per_minute)


def bound_rows(most: int | None, default: int) -> int | None:
    """Bound a number of rows (None: `default`) by the limit of the sender."""
    own = LIMITS.get().max_rows
    return most if own is None else min(own, default if most is None else most)
