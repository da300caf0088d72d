"""Names and codes of ISO 3166, without what its table adds to some names in brackets."""

from __future__ import annotations

import pytest

from kg.iso3166 import find_areas, load_areas


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("ES-GA", ("Galicia",)),
        ("ES-C", ("A Coruña", "La Coruña")),
        ("GB-AGY", ("Isle of Anglesey", "Sir Ynys Môn")),
        ("SE-AB", ("Stockholms län",)),
        ("US-DC", ("District of Columbia", "Washington, D.C.")),
    ],
)
def test_names_are_those_of_people(code: str, names: tuple[str, ...]) -> None:
    area = load_areas()[code]
    assert (area.name, tuple(area.names)) == (names[0], names)
    assert code in {found.code for name in names for found in find_areas(name)}


def test_no_name_has_brackets() -> None:
    assert not [area for area in load_areas().values() for name in area.names if "[" in name]
