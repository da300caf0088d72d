"""Wikidata's label service, ``SERVICE wikibase:label { ... }``, as patterns over the labels that the graph has.

It binds ``?xLabel`` and ``?xDescription`` for each ``?x`` of a query, or what its own triples name, in the first of its
languages that there is; a thing without a label is called by its id
(https://www.mediawiki.org/wiki/Wikidata_Query_Service/User_Manual#Label_service). Pure.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from kg.errors import InvalidInputError
from kg.sparql.algebra import variable_name
from kg.sparql.guard import position
from kg.sparql.lexer import Token, tokens
from kg.sparql.parser import parse
from kg.sparql.service import Clause, Prologue
from kg.vocabulary import RDFS, SCHEMA, WIKIBASE

ENDPOINT: Final = WIKIBASE.label.value
FORM: Final = 'SERVICE wikibase:label { bd:serviceParam wikibase:language "en,fr" }'
MOST: Final = 20
"""Names, and languages of each, that one clause can ask for."""
_PARAMETER: Final = ("bd:serviceParam", "http://www.bigdata.com/rdf#serviceParam")
_ENDINGS: Final = {"Label": RDFS.label.value, "Description": SCHEMA.description.value}
_TAG: Final = re.compile(r"[A-Za-z]+(-[A-Za-z0-9]+)*")
_NAME: Final = re.compile(r"[?$](\w+)")


class _Wanted(NamedTuple):
    """A variable, and of what it is to be the label or description."""

    item: str
    property: str
    name: str


def asks_for_labels(query: str) -> bool:
    """Return whether the label service may be asked in `query`."""
    return "wikibase:label" in query or ENDPOINT in query


def answered(query: str, clause: Clause, prologue: Prologue) -> list[tuple[Clause, str]]:
    """Return what is to stand in the place of `clause`, and what at the end of the group that it stands in.

    Raises InvalidInputError, with line and column, for what the service does not take.
    """
    languages, wanted = _said(query, clause, prologue)
    wanted = wanted or _meant(query)
    if max(len(languages), len(wanted)) > MOST:
        raise _refused(query, clause.start, f"it asks for more than {MOST} names or languages")
    end = _end_of_group(query, clause)
    text = " ".join(_pattern(each, languages or ["en"]) for each in wanted)
    return [(clause, ""), (dataclasses.replace(clause, start=end, end=end), text)]


def _said(query: str, clause: Clause, prologue: Prologue) -> tuple[list[str], list[_Wanted]]:
    """Return the languages and the variables that a clause names itself."""
    languages: list[str] = []
    wanted: list[_Wanted] = []
    for triple in _triples(query, clause):
        subject, predicate, object_ = triple
        says = "" if predicate.kind == "variable" else prologue.resolve(predicate)
        if (subject.text in _PARAMETER or subject.text.strip("<>") in _PARAMETER) and object_.kind == "string":
            if says == WIKIBASE.language.value:
                tags = (tag.strip() for tag in object_.text.strip("\"'").split(","))
                languages += [tag.lower() for tag in tags if _TAG.fullmatch(tag)]
                continue
        elif subject.kind == object_.kind == "variable" and says in _ENDINGS.values():
            wanted.append(_Wanted(subject.text[1:], str(says), object_.text[1:]))
            continue
        raise _refused(query, subject.start, f"{' '.join(token.text for token in triple)} is nothing that it takes")
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
            raise _refused(query, parts[0].start, f"{' '.join(part.text for part in parts)} is no triple")
        parts = parts[:1] if token.text == ";" else []


def _meant(query: str) -> list[_Wanted]:
    """Return the variables of a query that are named as labels of others and that nothing in it binds."""
    read = parse(query)
    patterns = read.patterns if read else ()
    bound = {variable_name(node) for pattern in patterns for node in (pattern.subject, pattern.object)}
    names = dict.fromkeys(_NAME.findall(query))
    return [
        _Wanted(name.removesuffix(ending), says, name)
        for name in names
        if name not in bound
        for ending, says in _ENDINGS.items()
        if name.endswith(ending) and name.removesuffix(ending) in names
    ]


def _pattern(wanted: _Wanted, languages: Sequence[str]) -> str:
    item, says, name = wanted
    # A variable without a value would be given one by the pattern of its label.
    parts = [f"BIND(COALESCE(?{item}, <urn:none>) AS ?_{name})"]
    choice = []
    for number, tag in enumerate(dict.fromkeys(languages)):
        one = f"?_{name}_{number}"
        parts.append(f'OPTIONAL {{ ?_{name} <{says}> {one} FILTER(LANG({one}) = "{tag}") }}')
        choice.append(one)
    if says == RDFS.label.value:
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
    line, column = position(query, offset)
    return InvalidInputError(
        f"line {line}, column {column}: SERVICE wikibase:label is not answered: {reason}; write {FORM}"
    )
