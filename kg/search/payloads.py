"""Texts and payloads of units: the texts that are searched and embedded, and the payload of a point."""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import blake2b
from typing import Any, Final

from kg.languages import WORDLESS, find_primary
from kg.search.analyzers import find_field
from kg.search.parts import Part
from kg.search.points import LANGUAGE
from kg.search.protocol import CODES, Codes, IndexedUnit

SPAN: Final = "span"
"""The offsets of a part in the text of its unit."""


def digest(*parts: str) -> str:
    """Hash `parts` to 128 bits, as hex."""
    return blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()


def build_payload(unit: IndexedUnit, fingerprint: str, part: Part | None = None) -> dict[str, Any]:
    """Build the payload of the point of a unit, or of a part of one that has several."""
    text = unit.text if part is None else part.build_text(unit.text)
    language = find_primary(unit.language)
    meant = f"{unit.prelude}\n{text}" if unit.in_context and unit.prelude else text
    plain = "\n".join(piece for piece in (unit.names, unit.prelude, text) if piece)
    own = unit.text if part is None else unit.text[part.start : part.end]
    if not any(map(str.isalnum, own)):  # a rule or a row of dots: the headings above it are not what it is about
        language, meant, plain = WORDLESS, "", ""
    payload: dict[str, Any] = {
        "kind": "unit" if part is None or part.is_first else "part",
        "iri": unit.iri,
        "graph": unit.graph,
        "parent": unit.parent,
        "digest": fingerprint,
        find_field(unit.language): plain,
        LANGUAGE: language,
        "text_hash": digest(meant),
        "text_start": len(plain) - len(meant),  # the text that vectors are computed from is the end of the searched one
    }
    if part is not None:
        payload[SPAN] = [part.start, part.end]
    if unit.language:
        payload["language"] = unit.language
    # The engine takes 6 microseconds for a list of one string, and half of it for the string.
    return payload | {name: values[0] if len(values) == 1 else list(values) for name, values in unit.codes.items()}


def read_span(payload: Mapping[str, Any]) -> tuple[int, int] | None:
    """Read the offsets of a part of a unit from its payload; None for a unit with one part."""
    return None if (span := payload.get(SPAN)) is None else (int(span[0]), int(span[1]))


def read_codes(payload: Mapping[str, Any]) -> Codes:
    """Read the codes of a unit, and its parent, from its payload."""
    found = {name: payload[name] for name in ("parent", *CODES) if name in payload}
    return {name: [values] if isinstance(values, str) else values for name, values in found.items()}
