"""The resources list all valid filter values and what the graph contains."""

from __future__ import annotations

from kg.tools.catalog.resources import list_resources


def test_the_values_to_filter_by_are_those_in_use(kg, made):
    resources = {resource.title: resource for resource in list_resources(kg).resources}
    assert resources["Filter iso3: values in use"].values == sorted({code for p in made for code in p.places})
    assert resources["Filter language: values in use"].values == sorted({tag for p in made for tag in p.languages})
    assert resources["Policy documents, translations not counted"].count == len({passage.document for passage in made})
    assert resources["made-up.parquet"].values == ["ab" * 32]


def test_resources_come_in_pages(kg):
    whole = list_resources(kg).resources
    first = list_resources(kg, limit=5)
    assert first.next_offset == 5
    assert first.resources + list_resources(kg, offset=5).resources == whole
