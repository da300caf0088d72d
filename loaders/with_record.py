"""The derivations that loaders compute with their records."""

from __future__ import annotations

from functools import partial
from typing import Final

from kg.derivations.protocol import Definition
from kg.vocabulary import DERIVED, EXTRACTED, SOURCED

_define: Final = partial(Definition, kind="with the record", version="1", computation="loaders.sources.open_steps")
_ANY: Final = "ASK {{ VALUES ?loader {{ {} }} ?dataset kg:loader ?loader }}"
_HANSARD: Final = f"{SOURCED}hansard/"
LANGUAGES: Final = _define(
    "languages", "the languages of texts that state none", reads=(SOURCED,), writes=f"{DERIVED}language/"
)
VIEWS: Final = _define(
    "views",
    "the SKOS views of Wikibase items",
    reads=(f"{SOURCED}wikibase/", f"{SOURCED}wikibase-remote/"),
    writes=f"{DERIVED}skos/",
    any_input=_ANY.format('"wikibase" "wikibase-remote"'),
)
PARLIAMENT: Final = _define(
    "parliament",
    "memberships, seats, parties, references and voters that speeches and registers show",
    reads=(_HANSARD, f"{SOURCED}members/"),
    writes=DERIVED,
    any_input=_ANY.format('"hansard" "members"'),
)
LISTS: Final = _define(
    "lists",
    "parties and callers by the lists of a corpus",
    reads=(f"{_HANSARD}parlamint/",),
    writes=f"{DERIVED}party/",
    any_input=_ANY.format('"hansard"'),
    needs_source=True,
)
ZONING: Final = _define(
    "zoning",
    "the rules and cross-references in municipal codes",
    reads=(f"{SOURCED}zoning/",),
    writes=f"{EXTRACTED}zoning/",
    any_input=_ANY.format('"zoning"'),
)
DEFINITIONS: Final = (LANGUAGES, VIEWS, LISTS, PARLIAMENT, ZONING)
