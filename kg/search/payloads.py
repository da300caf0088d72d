"""Texts and payloads of units: the texts that are searched and embedded, and the payload of a point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b
from typing import Any

from kg.search.analyzers import find_field
from kg.search.parts import build_part_texts, split_parts
from kg.search.points import LANGUAGE
from kg.search.protocol import CODES, Codes, IndexedUnit
from kg.search.spaces import get_primary


def digest(*parts: str) -> str:
    """Hash `parts` to 128 bits, as hex."""
    return blake2b("\x1f".join(parts).encode(), digest_size=16).hexdigest()


def _searched_text(unit: IndexedUnit) -> str:
    return "\n".join(part for part in (unit.names, unit.prelude, unit.text) if part)


def _embedded_text(unit: IndexedUnit) -> str:
    """Return the text that the vectors of a unit are computed from, which is the end of the searched text."""
    return f"{unit.prelude}\n{unit.text}" if (unit.in_context or unit.in_parts) and unit.prelude else unit.text


def build_texts(unit: IndexedUnit) -> Sequence[str]:
    """Build the texts that vectors of a unit are computed from."""
    return build_part_texts(unit.prelude, unit.text) if unit.in_parts else (_embedded_text(unit),)


def build_payload(unit: IndexedUnit, fingerprint: str) -> dict[str, Any]:
    """Build the payload of the point of a unit."""
    plain, meant = _searched_text(unit), _embedded_text(unit)
    payload: dict[str, Any] = {
        "kind": "unit",
        "iri": unit.iri,
        "graph": unit.graph,
        "parent": unit.parent,
        "digest": fingerprint,
        find_field(unit.language): plain,
        LANGUAGE: get_primary(unit.language),
        "text_start": len(plain) - len(meant),
    }
    if unit.in_parts:
        payload |= {"prelude_length": len(unit.prelude), "parts": len(split_parts(unit.text))}
    if unit.language:
        payload["language"] = unit.language
    # The engine takes 6 microseconds for a list of one string, and half of it for the string.
    return payload | {name: values[0] if len(values) == 1 else list(values) for name, values in unit.codes.items()}


def read_codes(payload: Mapping[str, Any]) -> Codes:
    """Read the codes of a unit, and its parent, from its payload."""
    found = {name: payload[name] for name in ("parent", *CODES) if name in payload}
    return {name: [values] if isinstance(values, str) else values for name, values in found.items()}
