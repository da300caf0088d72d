"""The sources that can be loaded, and the options of their loads, for commands, tools and documentation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

SOURCES: Final = ("climate", "wikibase", "parliament", "members", "zoning", "files")
EARLIER_NAMES: Final = {"hansard": "parliament"}
"""The earlier name of a source, which also names its graphs."""


@dataclass(frozen=True, slots=True)
class Option:
    """An option of a load: ``--name METAVAR``, and the sources that have it."""

    metavar: str
    description: str
    sources: Sequence[str]


OPTIONS: Final = {
    "base": Option("WIKIBASE", "Wikibase of the items: climate, wikidata or a URL.", ("wikibase",)),
    "chamber": Option("CHAMBER", "Chamber of speeches that do not name it.", ("parliament", "members")),
    "date": Option("DATE", "Date of speeches that have none: YYYY-MM-DD.", ("parliament",)),
    "jurisdiction": Option(
        "CODE",
        "Country or region whose parliament a table is of: AUS, NZL, GB-SCT.",
        ("parliament", "members"),
    ),
    "municipality": Option("NAME", "Municipality of a code or table.", ("zoning",)),
    "state": Option("STATE", "State of the municipality: two letters or the name.", ("zoning",)),
    "mapping": Option(
        "FILE",
        "TOML file that maps the columns of a table, or the members of JSON objects.",
        ("climate", "members", "zoning"),
    ),
    "collection": Option("NAME", "Collection of files. Default: the name of their folder.", ("files",)),
    "tags": Option(
        "TAG,TAG", "Tags of files, added to those that they state. They replace those of earlier loads.", ("files",)
    ),
}


def list_options(source: str) -> list[str]:
    """List the names of the options of a source."""
    return [name for name, option in OPTIONS.items() if EARLIER_NAMES.get(source, source) in option.sources]
