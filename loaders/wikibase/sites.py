"""The sites that sitelinks name, of the Wikimedia family; of others a dump does not say the address."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

GROUPS: Final = (
    "wikipedia", "wiktionary", "wikibooks", "wikinews", "wikiquote", "wikisource", "wikiversity", "wikivoyage",
)  # fmt: skip
_SINGLE: Final = {
    "commonswiki": ("https://commons.wikimedia.org/", "commons"),
    "specieswiki": ("https://species.wikimedia.org/", "species"),
    "metawiki": ("https://meta.wikimedia.org/", "meta"),
    "mediawikiwiki": ("https://www.mediawiki.org/", "mediawiki"),
    "wikidatawiki": ("https://www.wikidata.org/", "wikidata"),
    "wikimaniawiki": ("https://wikimania.wikimedia.org/", "wikimania"),
    "outreachwiki": ("https://outreach.wikimedia.org/", "outreach"),
    "sourceswiki": ("https://wikisource.org/", "sources"),
    "foundationwiki": ("https://foundation.wikimedia.org/", "foundation"),
    "incubatorwiki": ("https://incubator.wikimedia.org/", "incubator"),
    "wikifunctionswiki": ("https://www.wikifunctions.org/", "wikifunctions"),
}
_HOSTS: Final = {"be-x-old": "be-tarask"}
_SITE: Final = re.compile(rf"([a-z]+(?:_[a-z]+)*?)(wiki|{'|'.join(GROUPS[1:])})")


@dataclass(frozen=True, slots=True)
class Site:
    """A wiki: its address, the group that it is of, and its language as MediaWiki calls it."""

    home: str
    group: str
    language: str


@lru_cache(4096)
def site_of(site_id: str) -> Site | None:
    """Return the site with a global id such as ``enwiki``, None where none of the Wikimedia family has it."""
    if site_id in _SINGLE:
        return Site(*_SINGLE[site_id], "en")
    match = _SITE.fullmatch(site_id)
    if match is None:
        return None
    language = match[1].replace("_", "-")
    group = "wikipedia" if match[2] == "wiki" else match[2]
    return Site(f"https://{_HOSTS.get(language, language)}.{group}.org/", group, language)
