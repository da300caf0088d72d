"""The outcome of a load: the counts, the rejected records, and the warnings."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from loaders.model import Rejection

_WRITTEN: Final = (
    *("source", "run", "loaded", "skipped", "rejected", "unread", "removed", "text_units", "mentions", "quads_added"),
    *("quads_removed", "older", "redacted", "ceded", "returned", "pending_vectors", "seconds", "rejections"),
)
"""The fields that `kg load --json` prints, in this order."""


@dataclass(frozen=True, slots=True)
class Older:
    """A record that was skipped since the stored one is newer, and the reason."""

    record: str
    reason: str


@dataclass(slots=True)
class LoadReport:
    """The outcome of a load. `run` is the IRI of the run in ``graph/prov``, None if nothing was committed."""

    source: str
    run: str | None = None
    loaded: int = 0
    skipped: int = 0
    removed: int = 0
    text_units: int = 0
    """Text units of the loaded records."""
    mentions: int = 0
    """Mentions of concepts in the texts that were searched: new texts, and texts with a new name."""
    quads_added: int = 0
    quads_removed: int = 0
    pending_vectors: int = 0
    seconds: float = 0.0
    rejections: list[Rejection] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    """Warnings, at most 1,000 of them from records."""
    layouts: list[str] = field(default_factory=list)
    """Descriptions of the layouts of the files."""
    unread: Mapping[str, int] = field(default_factory=dict)
    """Number of the files of folders and patterns whose format is not read, by the ends of their names."""
    older: list[Older] = field(default_factory=list)
    """Records that are older than the stored ones, and were skipped."""
    redacted: dict[str, dict[str, int]] = field(default_factory=dict)
    """Number of secrets that were replaced in each loaded record, by kind."""
    ceded: Counter[str] = field(default_factory=Counter)
    """Statements that moved from user graphs to those of the load, which state the same, by user graph."""
    returned: Counter[str] = field(default_factory=Counter)
    """Statements that returned to user graphs, because the source no longer states them, by user graph."""

    @property
    def rejected(self) -> int:
        """Number of rejected records and unreadable files."""
        return len(self.rejections)

    def to_dict(self) -> dict[str, Any]:
        """Build the object that ``kg load --json`` prints."""
        return {name: getattr(self, name) for name in _WRITTEN} | {
            "unread": dict(sorted(self.unread.items())),
            "older": [asdict(each) for each in self.older],
            "ceded": dict(self.ceded),
            "returned": dict(self.returned),
            "seconds": round(self.seconds, 3),
            "rejections": [{"record": each.record, "reason": each.reason} for each in self.rejections],
        }
