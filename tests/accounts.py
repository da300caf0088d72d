"""Accounts of tests: those of one actor, whoever sends."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.requests import Request

from kg.access.actors import EVERYONE, Actor
from kg.server.authentication import Accounts


@dataclass(frozen=True)
class SentBy(Accounts):
    """Takes every request as one of `actor`."""

    actor: Actor = EVERYONE

    async def identify(self, request: Request) -> Actor:
        """The actor."""
        return self.actor
