"""Wikidata's label service, ``SERVICE wikibase:label { ... }``, rewritten to patterns over the labels in the graph.

It binds ``?xLabel`` and ``?xDescription`` for each ``?x`` of a query, or the variables of its own triples, in the first
available of its languages. An entity without a label gets its ID as label
(https://www.mediawiki.org/wiki/Wikidata_Query_Service/User_Manual#Label_service).
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kg.errors import InvalidInputError
from kg.sparql.algebra import variable_name
from kg.sparql.guard import line_and_column
from kg.sparql.lexer import Token, tokens
from kg.sparql.parser import parse
from kg.sparql.service import Clause, Prologue
from kg.vocabulary import RDFS, SCHEMA, WIKIBASE

ENDPOINT: Final = WIKIBASE.label.value
FORM: Final = 'SERVICE wikibase:label { bd:serviceParam wikibase:language "en,fr" }'
MAX_NAMES: Final = 20
"""Maximum number of variables, and of languages, in one clause."""
_PARAMETER: Final = ("bd:serviceParam", "http://www.bigdata.com/rdf#serviceParam")
_ENDINGS: Final = {"Label": RDFS.label.value, "Description": SCHEMA.description.value}
LABELLING: Final = frozenset(_ENDINGS.values())
"""The properties whose values it returns."""
_TAG: Final = re.compile(r"[A-Za-z]+(-[A-Za-z0-9]+)*")
_NAME: Final = re.compile(r"[?$](\w+)")


class _Wanted(NamedTuple):
    """A variable to bind (`name`) to the label or description (`property`) of another (`item`)."""

    item: str
    property: str
    name: str


def asks_for_labels(query: str) -> bool:
    """Return whether `query` may contain a clause of the label service."""
    return "wikibase:label" in query or ENDPOINT in query


def build_replacements(query: str, clause: Clause, prologue: Prologue) -> list[tuple[Clause, str]]:
    """Build the replacements of `clause`: nothing in its place, and patterns at the end of the group around it.

    Raises InvalidInputError, with line and column, for an unsupported clause.
    """
    languages, wanted = _parse_clause(query, clause, prologue)
    wanted = wanted or _find_unbound_labels(query)
    if max(len(languages), len(wanted)) > MAX_NAMES:
        raise _refused(query, clause.start, f"More than {MAX_NAMES} variables or languages.")
    end = _end_of_group(query, clause)
    text = " ".join(_pattern(each, languages or ["en"]) for each in wanted)
    return [(clause, ""), (dataclasses.replace(clause, start=end, end=end), text)]


def _parse_clause(query: str, clause: Clause, prologue: Prologue) -> tuple[list[str], list[_Wanted]]:
    """Return the languages and variables in the triples of a clause."""
    languages: list[str] = []
    wanted: list[_Wanted] = []
    for triple in _triples(query, clause):
        subject, predicate, object_ = triple
        iri = "" if predicate.kind == "variable" else prologue.resolve(predicate)
        if (subject.text in _PARAMETER or subject.text.strip("<>") in _PARAMETER) and object_.kind == "string":
            if iri == WIKIBASE.language.value:
                tags = (tag.strip() for tag in object_.text.strip("\"'").split(","))
                languages += [tag.lower() for tag in tags if _TAG.fullmatch(tag)]
                continue
        elif subject.kind == object_.kind == "variable" and iri in _ENDINGS.values():
            wanted.append(_Wanted(subject.text[1:], str(iri), object_.text[1:]))
            continue
        raise _refused(query, subject.start, f"Unsupported: {' '.join(token.text for token in triple)}.")
    return languages, wanted


def _triples(query: str, clause: Clause) -> Iterator[Sequence[Token]]:
    parts: list[Token] = []
    for token in (*clause.tokens, Token("punctuation", ".", clause.end)):
        if token.text not in (".", ";"):
            parts.append(token)
            continue
        if len(parts) == 3:
            yield tuple(parts)
        elif len(parts) > 1:
            raise _refused(query, parts[0].start, f"Not a triple: {' '.join(part.text for part in parts)}.")
        parts = parts[:1] if token.text == ";" else []


def _find_unbound_labels(query: str) -> list[_Wanted]:
    """Return the unbound variables of a query whose names are those of others with ``Label`` or ``Description``."""
    parsed = parse(query)
    patterns = parsed.patterns if parsed else ()
    bound = {variable_name(node) for pattern in patterns for node in (pattern.subject, pattern.object)}
    names = dict.fromkeys(_NAME.findall(query))
    return [
        _Wanted(name.removesuffix(ending), iri, name)
        for name in names
        if name not in bound
        for ending, iri in _ENDINGS.items()
        if name.endswith(ending) and name.removesuffix(ending) in names
    ]


def _pattern(wanted: _Wanted, languages: Sequence[str]) -> str:
    item, iri, name = wanted
    # Without COALESCE the pattern would bind an unbound variable to every entity with a label.
    parts = [f"BIND(COALESCE(?{item}, <urn:none>) AS ?_{name})"]
    choice = []
    for number, tag in enumerate(dict.fromkeys(languages)):
        one = f"?_{name}_{number}"
        parts.append(f'OPTIONAL {{ ?_{name} <{iri}> {one} FILTER(LANG({one}) = "{tag}") }}')
        choice.append(one)
    if iri == RDFS.label.value:
        choice.append(f'IF(ISIRI(?{item}), REPLACE(STR(?{item}), "^.*/entity/", ""), STR(?{item}))')
    return " ".join([*parts, f"BIND(COALESCE({', '.join(choice)}) AS ?{name})"])


def _end_of_group(query: str, clause: Clause) -> int:
    depth = 0
    for token in tokens(query):
        if token.start < clause.end:
            continue
        if token.text in ("{", "{|"):
            depth += 1
        elif token.text in ("}", "|}"):
            if depth == 0:
                return token.start
            depth -= 1
    return clause.end


def _refused(query: str, offset: int, reason: str) -> InvalidInputError:
    line, column = line_and_column(query, offset)
    return InvalidInputError(
        f"Line {line}, column {column}: unsupported SERVICE wikibase:label. {reason} Write {FORM}."
    )
