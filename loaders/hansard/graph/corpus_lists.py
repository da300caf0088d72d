"""Parties and callers that follow from the lists of a corpus: graphs derived in the commit of the sittings."""

from __future__ import annotations

from collections.abc import Mapping, MutableMapping, Sequence
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.provenance.load_records import Derived, RecordOrigin, Rule
from kg.store.protocol import Store
from kg.vocabulary import DERIVED, KG, SOURCED, XSD
from loaders.hansard import parlamint_findings as findings
from loaders.hansard.parlamint_findings import Finding

RULES: Final[Mapping[findings.Rule, tuple[Rule, str]]] = {
    "party": (
        Rule(
            "party-by-affiliation",
            "1",
            "the one group, else the one party, of the speaker on that day in the list of people",
        ),
        "0.98",
    ),
    "party/undated": (
        Rule(
            "party-by-undated-affiliation",
            "1",
            "the only group, else the only party, of the speaker in the list of people, which states no days",
        ),
        "0.9",
    ),
    "caller": (
        Rule(
            "caller-by-name",
            "1",
            "the one listed member of the chamber on that day with the name that a note of a call has",
        ),
        "0.9",
    ),
}
"""The rules with their confidence."""
_SOURCES: Final = f"{SOURCED}hansard/"


def is_of_corpus(graph: NamedNode) -> bool:
    """Whether a graph is a record of a corpus."""
    return graph.value.startswith(f"{_SOURCES}parlamint/")


def derive_from_lists(
    found: MutableMapping[NamedNode, Sequence[Finding]], store: Store, replace: Mapping[NamedNode, Sequence[Quad]]
) -> Derived:
    """Return the derived graphs of the sittings in a commit, with their sources; empty for removed sittings."""
    made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
    for sitting in replace:
        if not is_of_corpus(sitting):
            continue
        findings_of_sitting = found.pop(sitting, ())
        for name, (rule, confidence) in RULES.items():
            graph = NamedNode(f"{DERIVED}{name}/{sitting.value.removeprefix(_SOURCES)}")
            said = [each for each in findings_of_sitting if each.rule == name] if replace[sitting] else []
            sources = [sitting, *sorted({each.source for each in said}, key=str)] if said else ()
            method = [(KG.method, Literal(rule.name)), (KG.confidence, Literal(confidence, datatype=XSD.decimal))]
            quads = [Quad(each.subject, each.predicate, each.value, graph) for each in said]
            made[graph] = quads, RecordOrigin("", (), sources, rule, method)
    return made
