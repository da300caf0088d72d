"""Records that were kept out of the store: one file each, with the reason and where to look."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from pyoxigraph import NamedNode

from kg.errors import StoreError
from kg.vocabulary import sha256
from loaders.model import Rejection


class Quarantine:
    """The folder ``quarantine`` of a data directory, as one domain uses it.

    A rejected record has ``{id}.json`` (record, reason, file, rows) and, when its shapes were broken, ``{id}.ttl``
    with the ``sh:ValidationReport``. Both go when the record loads.
    """

    def __init__(self, data_dir: Path, domain: str) -> None:
        self.folder: Final = data_dir / "quarantine"
        self.domain: Final = domain
        self.held = {path.stem for path in self.folder.glob(f"{domain}-*.json")}

    def put(self, graph: NamedNode | None, rejection: Rejection, rows: str, report_turtle: str | None = None) -> None:
        """Describe a rejected record; what was said of it before is replaced. `rows` are in words (``1-57,60``).

        Raises StoreError.
        """
        name = self._name(graph.value if graph is not None else f"{rejection.source} {rejection.record}")
        report = self.folder / f"{name}.ttl"
        entry = {
            "domain": self.domain,
            "record": rejection.record,
            "reason": rejection.reason,
            "file": rejection.source,
            "rows": rows,
            "graph": graph and graph.value,
            "report": report.name if report_turtle is not None else None,
            "rejected_at": datetime.now(UTC).isoformat(timespec="seconds"),
        }
        text = json.dumps(entry, ensure_ascii=False, indent=2)
        with self._writing():
            self.folder.mkdir(parents=True, exist_ok=True)
            if report_turtle is not None:
                report.write_text(report_turtle, encoding="utf-8")
            else:
                report.unlink(missing_ok=True)
            (self.folder / f"{name}.json").write_text(text + "\n", encoding="utf-8", errors="backslashreplace")
        self.held.add(name)

    def clear(self, graph: NamedNode) -> None:
        """Forget the record whose graph this is: it is well now, or gone. Raises StoreError."""
        name = self._name(graph.value)
        if name in self.held:
            with self._writing():
                for ending in ("json", "ttl"):
                    (self.folder / f"{name}.{ending}").unlink(missing_ok=True)
            self.held.discard(name)

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(f"{self.folder} cannot be written: {error.strerror}") from error

    def _name(self, key: str) -> str:
        return f"{self.domain}-{sha256(key)[:24]}"
