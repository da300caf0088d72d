"""A load of one source takes the time to start that this source needs, not that of all."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from kg.errors import InvalidInputError
from kg.settings import Settings
from loaders.sources import LOADERS, build_loader
from tests.examples import spread

READS = {
    "climate": "loaders.climate.documents",
    "wikibase": "loaders.wikibase.loader",
    "parliament": "loaders.hansard.loader",
    "hansard": "loaders.hansard.loader",
    "members": "loaders.hansard.member_register",
    "zoning": "loaders.zoning.loader",
    "files": "loaders.files.loader",
}
ONLY_SOME_NEED = {"lxml", "duckdb", "numpy", "sentencex", "fastmcp", "rdflib", "pyshacl"}
DOMAINS = ("loaders.climate.", "loaders.hansard.", "loaders.wikibase.", "loaders.zoning.", "loaders.files.")


def imported(then: str) -> set[str]:
    """Run `then` in a new interpreter that imports `loaders.sources`, and return the names of its modules."""
    code = f"import json, sys; from loaders import sources; {then}; json.dump(sorted(sys.modules), sys.stdout)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return set(json.loads(done.stdout))


def test_nothing_is_imported_for_a_source_that_nobody_loads() -> None:
    names = imported("pass")
    assert not names & ONLY_SOME_NEED
    assert not names & set(READS.values())
    assert [name for name in names if name.startswith(DOMAINS)] == []


@pytest.mark.parametrize("source", spread(list(LOADERS), 2))
def test_what_loads_a_source_imports_no_other(source: str) -> None:
    names = imported(f"from kg.settings import Settings; sources.build_loader({source!r}, Settings())")
    assert {name for name in READS.values() if name in names} == {READS[source]}
    # Reports have the name that was asked for, which is not always that of the graphs.
    assert build_loader(source, Settings()).name == source


def test_climate_is_loaded_without_what_reads_markup_and_codes() -> None:
    names = imported("from kg.settings import Settings; sources.build_loader('climate', Settings())")
    assert "duckdb" in names  # so the others below would be seen
    assert not names & {"lxml", "sentencex"}
    assert [name for name in names if name.startswith("loaders.zoning.")] == []


@pytest.mark.parametrize(
    ("source", "option", "takers", "own"),
    [
        ("climate", "chamber", "parliament, members", "--mapping"),
        ("hansard", "base", "wikibase", "--chamber, --date, --jurisdiction"),
        ("wikibase", "date", "parliament", "--base"),
        ("wikibase", "state", "zoning", "--base"),
    ],
)
def test_an_option_of_another_source_is_refused_with_the_source_that_has_it(
    source: str, option: str, takers: str, own: str
) -> None:
    with pytest.raises(InvalidInputError) as refused:
        build_loader(source, Settings(), {option: "x"})
    assert str(refused.value) == (
        f"Option --{option} is not valid for source '{source}'. "
        f"Sources with this option: {takers}. Options of {source}: {own}."
    )


def test_an_unknown_source_is_refused_with_the_available_ones() -> None:
    with pytest.raises(InvalidInputError) as refused:
        build_loader("unknown", Settings())
    assert all(source in str(refused.value) for source in ["'unknown'", *LOADERS])
