"""What a load did, for people and for programs."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from loaders.model import Rejection


@dataclass(slots=True)
class LoadReport:
    """What a load did. `run` is the IRI of its run in ``graph/prov``, None when nothing had to be committed."""

    source: str
    run: str | None = None
    loaded: int = 0
    skipped: int = 0
    removed: int = 0
    text_units: int = 0
    """Text units of the records loaded."""
    mentions: int = 0
    """Mentions of concepts in the texts that were searched: those that are new, or hold a new name."""
    quads_added: int = 0
    quads_removed: int = 0
    pending_vectors: int = 0
    seconds: float = 0.0
    rejections: list[Rejection] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """What was unusual, in words; of very many the first."""
    layouts: list[str] = field(default_factory=list)
    """Of each file read, its layout, in words."""

    @property
    def rejected(self) -> int:
        """Records (and files) that could not be loaded."""
        return len(self.rejections)

    def to_dict(self) -> dict[str, Any]:
        """Return what ``kg load --json`` prints."""
        return {
            "source": self.source,
            "run": self.run,
            "loaded": self.loaded,
            "skipped": self.skipped,
            "rejected": self.rejected,
            "removed": self.removed,
            "text_units": self.text_units,
            "mentions": self.mentions,
            "quads_added": self.quads_added,
            "quads_removed": self.quads_removed,
            "pending_vectors": self.pending_vectors,
            "seconds": round(self.seconds, 3),
            "rejections": [{"record": each.record, "reason": each.reason} for each in self.rejections],
        }
