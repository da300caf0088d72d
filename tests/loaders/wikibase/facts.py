"""What stands in Wikibase JSON and RDF, counted straight from the files: nothing of the loader is used."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass
class Counts:
    entities: set[str] = field(default_factory=set)
    statements: int = 0
    qualifiers: int = 0
    references: int = 0

    @property
    def figures(self) -> tuple[int, int, int, int]:
        return len(self.entities), self.statements, self.qualifiers, self.references


def objects(path: Path) -> Iterator[Any]:
    """The entities of a file, however it holds them: all at once, for the files here are small."""
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text(encoding="utf-8")
    content = json.loads(text)
    if isinstance(content, list):
        yield from content
    elif "entities" in content:
        yield from content["entities"].values()
    else:
        yield content


def counted(entities: Iterator[Any]) -> Counts:
    found = Counts()
    for entity in entities:
        for each in (entity, *entity.get("forms", ()), *entity.get("senses", ())):
            found.entities.add(each["id"])
            claims = each.get("claims", each.get("statements", {})) or {}
            for statement in (statement for group in claims.values() for statement in group):
                found.statements += 1
                found.qualifiers += sum(map(len, (statement.get("qualifiers") or {}).values()))
                found.references += len(statement.get("references") or [])
    return found


def turtle_statements(path: Path) -> int:
    """How many statements a Turtle file that Wikibase wrote has, by the lines that give them a rank."""
    return len(re.findall(r"wikibase:rank wikibase:\w+", path.read_text(encoding="utf-8")))
