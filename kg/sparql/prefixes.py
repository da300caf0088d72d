"""Which known prefix or namespace somebody meant who wrote another one. Pure."""

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
"""What other projects call these namespaces."""

_NEAR_NAME: Final = 60.0
_NEAR_NAMESPACE: Final = 88.0


def nearest_prefix(name: str, among: Collection[str] = PREFIXES.keys()) -> str | None:
    """Return the prefix of `among` that is nearest to `name` (both without the colon), or None where none is near."""
    folded = name.casefold().replace("-", "").replace("_", "")
    if folded in among:
        return folded
    if _ALIASES.get(folded) in among:
        return _ALIASES[folded]
    found = process.extractOne(folded, among, scorer=fuzz.ratio, score_cutoff=_NEAR_NAME)
    return None if found is None else str(found[0])


def nearest_namespace(iri: str) -> str | None:
    """Return the known namespace that `iri` is a slip for, or None: another scheme, a missing ``#`` or ``/``, a typo.

    A known namespace itself gives None.
    """
    if iri in _KNOWN:
        return None
    bare = _bare(iri)
    if bare in _BARE:
        return _BARE[bare]
    found = process.extractOne(bare, _BARE.keys(), scorer=fuzz.ratio, score_cutoff=_NEAR_NAMESPACE)
    return None if found is None else _BARE[found[0]]


def undeclared(name: str, near: str | None = None) -> str:
    """Return the sentence about the prefix `name`, which neither the query nor the endpoint declares.

    `near` is the prefix that was meant, where more is known than its name.
    """
    near = near or nearest_prefix(name)
    if near is None:
        return (
            f"the prefix {name}: is not declared; add PREFIX {name}: <...> at the top "
            f"(declared beforehand are {', '.join(f'{known}:' for known in PREFIXES)})"
        )
    return (
        f"the prefix {name}: is not declared; did you mean {near}: (<{PREFIXES[near]}>)? "
        f"If not, add PREFIX {name}: <...> at the top"
    )


def _bare(iri: str) -> str:
    """Return `iri` without what is mistaken most: scheme, ``www.``, and the last ``#`` or ``/``; in lower case."""
    return iri.casefold().partition("://")[2].removeprefix("www.").rstrip("#/")


_KNOWN: Final = frozenset(PREFIXES.values())
_BARE: Final = {_bare(namespace): namespace for namespace in PREFIXES.values()}
