"""Suggestions for unknown prefixes and misspelt namespaces, from `kg.vocabulary.PREFIXES`."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from rapidfuzz import fuzz, process

from kg.vocabulary import PREFIXES

_ALIASES: Final = {
    "dc": "dcterms",
    "dct": "dcterms",
    "dcterm": "dcterms",
    "geosparql": "geo",
    "ogc": "geo",
    "provo": "prov",
    "quadcite": "kg",
    "rdfschema": "rdfs",
    "s": "schema",
    "sdo": "schema",
    "shacl": "sh",
    "so": "schema",
    "xs": "xsd",
}
"""Prefixes of these namespaces in other projects."""

_NEAR_NAME: Final = 60.0
_NEAR_NAMESPACE: Final = 88.0


def nearest_prefix(name: str, among: Collection[str] = PREFIXES.keys()) -> str | None:
    """Return the prefix of `among` nearest to `name` (both without the colon), or None if none is near."""
    folded = name.casefold().replace("-", "").replace("_", "")
    if folded in among:
        return folded
    if _ALIASES.get(folded) in among:
        return _ALIASES[folded]
    found = process.extractOne(folded, among, scorer=fuzz.ratio, score_cutoff=_NEAR_NAME)
    return None if found is None else str(found[0])


def nearest_namespace(iri: str) -> str | None:
    """Return the known namespace that `iri` misspells (other scheme, missing ``#`` or ``/``, typo), or None.

    A known namespace itself gives None.
    """
    if iri in _KNOWN:
        return None
    bare = _bare(iri)
    if bare in _BARE:
        return _BARE[bare]
    found = process.extractOne(bare, _BARE.keys(), scorer=fuzz.ratio, score_cutoff=_NEAR_NAMESPACE)
    return None if found is None else _BARE[found[0]]


def undeclared_message(name: str, near: str | None) -> str:
    """Return the message for the undeclared prefix `name`; `near` is the prefix to suggest."""
    if near is None:
        known = ", ".join(f"{prefix}:" for prefix in PREFIXES)
        return f"undeclared prefix {name}:. Add PREFIX {name}: <...> at the top. Predeclared: {known}"
    namespace = f" (<{PREFIXES[near]}>)" if near in PREFIXES else ""
    return f"undeclared prefix {name}:. Did you mean {near}:{namespace}? Otherwise add PREFIX {name}: <...> at the top."


def _bare(iri: str) -> str:
    """Return `iri` without the parts that are often wrong: case, scheme, ``www.``, last ``#`` or ``/``."""
    return iri.casefold().partition("://")[2].removeprefix("www.").rstrip("#/")


_KNOWN: Final = frozenset(PREFIXES.values())
_BARE: Final = {_bare(namespace): namespace for namespace in PREFIXES.values()}
