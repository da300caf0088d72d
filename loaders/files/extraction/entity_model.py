"""The data model of entities: their types, names, mentions and relations."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from kg.vocabulary import sha256
from loaders.files.extraction.plain_text import to_plain

EntityType = Literal[
    "person", "organization", "place", "product", "regulation", "api", "version", "date", "term"
]  # fmt: skip
"""The codes of ``vocab/entityType``."""

Method = Literal["named entity", "gazetteer", "pattern", "code", "coreference"]
"""How a mention was found: by the named entity recognizer, by a name that titles, headings or bold words have, by a
pattern such as that of a version, in a code span, or by a pronoun or another short reference to an earlier mention."""

SCORES: Final[Mapping[Method, float]] = {
    "pattern": 0.95,
    "code": 0.9,
    "gazetteer": 0.9,
    "named entity": 0.85,
    "coreference": 0.5,
}
"""How sure a mention is by its method. Relations multiply the scores of both ends into their confidence."""

Relation = Literal[
    "defines", "refers_to", "part_of", "uses", "depends_on", "precedes", "owned_by", "located_in", "cites", "related_to"
]  # fmt: skip

Key = tuple[EntityType, str]
"""An entity: its type and its normalized name."""

_LONGEST: Final = 200
"""Maximum characters of a name."""
_APART: Final = re.compile(r"(?<=\d)[\W_]+(?=\d)")
_OTHER: Final = re.compile(r"[\W_]+")


@dataclass(frozen=True, slots=True)
class Mention:
    """The characters `start` to `end` of the text of a file name the entity `key`."""

    start: int
    end: int
    key: Key
    name: str
    """Its words without notation and line breaks."""
    method: Method

    @property
    def score(self) -> float:
        """How sure it is, from 0 to 1."""
        return SCORES[self.method]


@dataclass(frozen=True, slots=True)
class FoundRelation:
    """A relation that the characters `start` to `end`, a sentence, state. Without `subject` it is that of the chunk."""

    subject: Key | None
    relation: Relation
    object: Key
    start: int
    end: int
    confidence: float
    method: str


@dataclass(frozen=True, slots=True)
class Extraction:
    """The mentions of a file in order, and its relations: one for each triple and sentence."""

    mentions: Sequence[Mention]
    relations: Sequence[FoundRelation]


def normalize_name(name: str) -> str:
    """Return the letters and digits of a name in lower case. Numbers that were apart are separated by a hyphen.

    So ``ISO 27001`` and ``iso27001`` are equal, and ``1.23`` and ``12.3`` are not. A name without letters and digits
    has a hash.
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    norm = "-".join(_OTHER.sub("", part) for part in _APART.split(folded))
    return norm or sha256(name)[:16]


def to_name(raw: str) -> str:
    """Return the words of a mention without notation and line breaks."""
    return " ".join(to_plain(raw, 0, len(raw)).text.split())[:_LONGEST]


def choose_label(names: Sequence[str], norm: str) -> str:
    """Choose the preferred name of an entity: the full one, with capitals, but not all in capitals."""
    return min(names, key=lambda name: (normalize_name(name) != norm, name.islower(), name.isupper(), len(name), name))
