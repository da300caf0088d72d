"""Rows of a CSV of concepts as entities, in the form of a JSON dump.

Columns are found by name, in any case and order: an id, labels, aliases, a description, a definition, and the
broader, narrower and related concepts. A label may name its language (``label@pt``).
"""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from kg.errors import RecordError, SourceError
from kg.text import quoted
from loaders.readers.formats import csv_rows
from loaders.wikibase.instances import Instance

COLUMNS: Final = {
    "id": ("id", "qid", "wikibase_id", "concept_id", "item"),
    "labels": ("label", "preferred_label", "pref_label", "preflabel", "name"),
    "aliases": ("aliases", "alias", "alternative_labels", "alt_labels", "alt_label", "altlabel", "also_known_as"),
    "descriptions": ("description", "descriptions"),
    "definition": ("definition", "definitions"),
    "negativeLabel": ("negative_labels", "negative_label", "negativelabel"),
    "broader": ("broader", "subconcept_of", "parent", "parents"),
    "narrower": ("narrower", "has_subconcept", "children"),
    "related": ("related", "related_concepts", "related_to"),
    "exactMatch": ("exact_match", "exactmatch", "wikidata_id", "wikidata"),
    "notToBeConfusedWith": ("not_to_be_confused_with", "different_from"),
}
"""The fields of a concept, with the column names of each."""

_ROLES: Final = ("definition", "negativeLabel", "broader", "narrower", "related", "exactMatch", "notToBeConfusedWith")
_LINKS: Final = ("broader", "narrower", "related", "notToBeConfusedWith")
_PART: Final = re.compile(r"(?:(?<!\s)[^\S\n]++)?[|;\n]\s*+")
_ITEM: Final = re.compile(r"Q[1-9][0-9]*")
_LANGUAGE: Final = "en"


def parse_rows(path: Path, instance: Instance) -> Iterator[tuple[int, Mapping[str, Any] | RecordError]]:
    """Yield the number of each row with its entity or error. Raises SourceError for a file without ids."""
    header, table = csv_rows(path)
    columns = list(_columns(header))
    if not any(what == "id" for _, what, _ in columns):
        raise SourceError(f"{path}: missing column of concept ids. Valid names: {', '.join(COLUMNS['id'])}.")
    for number, cells in table:
        if len(cells) != len(header):
            yield number, RecordError(f"row {number} has {len(cells)} cells where the header has {len(header)}")
            continue
        try:
            yield number, _entity(instance, [(what, lang, cells[place].strip()) for place, what, lang in columns])
        except RecordError as error:
            yield number, RecordError(f"row {number}: {error}")


def unknown_columns(path: Path) -> list[str]:
    """Return the unknown columns."""
    header, _ = csv_rows(path)
    known = {place for place, *_ in _columns(header)}
    return [name for place, name in enumerate(header) if place not in known]


def _columns(header: Any) -> Iterator[tuple[int, str, str]]:
    for place, name in enumerate(header):
        bare, _, language = name.strip().partition("@")
        wanted = re.sub(r"[\s-]+", "_", bare.casefold())
        for what, names in COLUMNS.items():
            if wanted in names:
                yield place, what, language or _LANGUAGE


def _entity(instance: Instance, cells: list[tuple[str, str, str]]) -> Mapping[str, Any]:
    found = next(cell for what, _, cell in cells if what == "id")
    if not _ITEM.fullmatch(found):
        raise RecordError(f"{quoted(found)} is not the id of an item, such as Q42")
    entity: dict[str, Any] = {"type": "item", "id": found, "labels": {}, "descriptions": {}, "aliases": {}}
    claims: dict[str, list[dict[str, Any]]] = {}
    for what, language, cell in cells:
        if not cell or what == "id":
            continue
        if what in ("labels", "descriptions"):
            entity[what][language] = {"language": language, "value": cell}
        elif what == "aliases":
            texts = [{"language": language, "value": each} for each in parse_list(cell)]
            entity["aliases"].setdefault(language, []).extend(texts)
        elif what in _ROLES:
            property_id = _property_of(instance, what)
            for value in [cell] if what == "definition" else parse_list(cell):
                claims.setdefault(property_id, []).append(_claim(found, property_id, what, value))
    return {**entity, "claims": claims}


def parse_list(cell: str) -> list[str]:
    """Parse the values in a cell: a JSON array of strings, or values separated by ``|``, ``;`` or line ends."""
    if cell.startswith("["):
        try:
            values = json.loads(cell)
        except (ValueError, RecursionError) as error:
            raise RecordError(f"{quoted(cell)} is not a list in JSON ({error})") from None
        if not all(isinstance(value, str) for value in values):
            raise RecordError(f"{quoted(cell)} is not a list of strings")
        return [value.strip() for value in values if value.strip()]
    return [part for part in _PART.split(cell) if part]


def _property_of(instance: Instance, role: str) -> str:
    found = next((property_id for property_id, means in instance.skos.items() if means == role), None)
    if found is None:
        raise RecordError(
            f"the Wikibase {quoted(instance.name)} has no property for {quoted(role)}. Name one in "
            f"the setting `wikibases`."
        )
    return found


def _claim(entity_id: str, property_id: str, role: str, text: str) -> dict[str, Any]:
    if role in _LINKS:
        named = text.rpartition("/")[2]
        if not _ITEM.fullmatch(named):
            raise RecordError(f"{role}: {quoted(text)} is not the id of an item, such as Q42")
        datatype, value = "wikibase-item", {"entity-type": "item", "id": named}
        datavalue: dict[str, Any] = {"type": "wikibase-entityid", "value": value}
    else:
        datatype = "external-id" if role == "exactMatch" else "string"
        datavalue = {"type": "string", "value": text}
    guid = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{entity_id} {property_id} {text}"))
    snak = {"snaktype": "value", "property": property_id, "datatype": datatype, "datavalue": datavalue}
    return {"mainsnak": snak, "type": "statement", "rank": "normal", "id": f"{entity_id}${guid}"}
