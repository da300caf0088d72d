"""The names of properties of Wikidata that ship: their form, their truth in real data, and their graph."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kg import bundle
from kg.wikidata_properties import DATATYPES, FILE, get_links, get_property_type, load_properties

SHARED = Path(os.environ.get("QUADCITE_SHARED", Path(__file__).parents[2] / "shared")) / "data" / "wikibase"


# -- the table


def test_each_line_is_a_property_and_they_are_sorted() -> None:
    text = (bundle.folder("ontology") / FILE).read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert text.endswith("\n")
    assert not [line for line in lines if line.count("\t") != 4]
    numbers = [int(line.partition("\t")[0][1:]) for line in lines]
    assert numbers == sorted(set(numbers))
    assert len(numbers) >= 500


def test_properties_have_an_id_a_datatype_and_names() -> None:
    for key, each in load_properties().items():
        assert key == each.id
        assert re.fullmatch(r"P[1-9][0-9]*", each.id)
        assert each.datatype in DATATYPES, each
        texts = (each.label, each.description, *each.aliases)
        assert [text for text in texts if not text.isprintable() or text != " ".join(text.split()) or not text] == []
        assert len({each.label, *each.aliases}) == 1 + len(each.aliases), each
        assert len(each.aliases) <= 8, each
        assert max(map(len, (each.label, *each.aliases))) <= 80, each
        assert len(each.description) <= 160, each
        assert not each.description.endswith("."), each


def test_no_two_properties_have_the_same_label_or_description() -> None:
    labels = Counter(each.label.casefold() for each in load_properties().values())
    descriptions = Counter(each.description for each in load_properties().values())
    assert [name for name, number in (labels + descriptions).items() if number > 1] == []


def test_links_and_types_are_those_of_the_vocabulary() -> None:
    assert get_property_type("wikibase-item").value.endswith("#WikibaseItem")
    assert get_property_type("commonsMedia").value.endswith("#CommonsMedia")
    assert "directClaimNormalized" in get_links("quantity")
    assert "directClaimNormalized" not in get_links("string")


def find_snaks(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the snaks anywhere in a JSON value."""
    if isinstance(value, dict):
        if isinstance(value.get("property"), str) and "snaktype" in value:
            yield value
        for each in value.values():
            yield from find_snaks(each)
    elif isinstance(value, list):
        for each in value:
            yield from find_snaks(each)


def read_documents() -> Iterator[Any]:
    """Read the entities in the shared files."""
    for path in sorted((SHARED / "json").glob("*.json")):
        yield json.loads(path.read_bytes())
    with gzip.open(SHARED / "sample-dump-20150815.json.gz", "rt", encoding="utf-8") as lines:
        for line in lines:
            if line.startswith("{"):
                yield json.loads(line.rstrip().rstrip(","))


@pytest.mark.skipif(not SHARED.exists(), reason="the shared entities are absent")
def test_datatypes_are_those_of_the_statements_in_real_entities() -> None:
    used: dict[str, set[str]] = defaultdict(set)
    for document in read_documents():
        for snak in find_snaks(document):
            used[snak["property"]] |= {snak["datatype"]} if "datatype" in snak else set()
    known = load_properties()
    wrong = {
        name: (known[name].datatype, datatypes)
        for name, datatypes in used.items()
        if name in known and datatypes and datatypes != {known[name].datatype}
    }
    assert wrong == {}
    assert len(used.keys() & known.keys()) / len(used) > 0.9
