"""The SKOS view of the items of a Wikibase: labels, definitions and hierarchy, from its direct statements.

Direct statements (``wdt:``) are those of the best rank, which `entity_rdf` decides.

Each item has a graph of its own, ``graph/der/skos/{wikibase}/{id}``, which is committed in one step with the item's:
a changed item changes only its view, no triple of the view is in two graphs, and a view is deleted with its item.
SKOS that Wikibase publishes itself (``skos:prefLabel``, ``skos:altLabel`` of an entity) is not repeated for the same
node; the concepts of the climate concept store are nodes of their own, ``cpr://concept/{QID}``, and have all of it.

A link to an item that was merged into another becomes a link to that other item.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import RecordError
from kg.vocabulary import BASE, KG, OWL, RDF, SCHEMA, SKOS
from loaders.wikibase.instances import WIKIDATA, Instance
from loaders.wikibase.values import to_iri

TERMS: Final = {
    "broader": SKOS.broader,
    "narrower": SKOS.narrower,
    "related": SKOS.related,
    "definition": SKOS.definition,
    "altLabel": SKOS.altLabel,
    "exactMatch": SKOS.exactMatch,
    "negativeLabel": KG.negativeLabel,
    "notToBeConfusedWith": KG.notToBeConfusedWith,
}
_LINKS: Final = frozenset({"broader", "narrower", "related", "notToBeConfusedWith"})


def build_view(instance: Instance, entity_id: str, quads: Sequence[Quad], redirects: Mapping[str, str]) -> list[Quad]:
    """Return the view of one item from its quads; empty for an item that is merged or deleted."""
    if not quads or any(quad.predicate == OWL.sameAs for quad in quads[:2]):
        return []
    graph, subject, concept = instance.view(entity_id), instance.entity(entity_id), instance.concept(entity_id)
    roles = _roles(instance)
    found = {Quad(concept, RDF.type, SKOS.Concept, graph)}
    labels: set[object] = set()
    aliases: list[Literal] = []
    descriptions: list[Literal] = []
    own = concept != subject
    pref, alt, description = SKOS.prefLabel, SKOS.altLabel, SCHEMA.description
    for node, predicate, value, _ in quads:
        if node != subject:
            continue
        if (role := roles.get(predicate)) is not None:
            if (term := _said(instance, role, value, redirects)) is not None:
                if role == "altLabel" and isinstance(term, Literal):
                    aliases.append(term)
                else:
                    found.add(Quad(concept, TERMS[role], term, graph))
        elif not own or not isinstance(value, Literal):
            continue
        elif predicate == pref:
            labels.add(value)
            found.add(Quad(concept, predicate, value, graph))
        elif predicate == alt:
            aliases.append(value)
        elif predicate == description:
            descriptions.append(value)
    found |= {Quad(concept, alt, alias, graph) for alias in aliases if alias not in labels}
    if own:
        found.add(Quad(concept, KG.wikibaseEntity, subject, graph))
        if not any(quad.predicate == SKOS.definition for quad in found):
            found |= {Quad(concept, SKOS.definition, text, graph) for text in descriptions}
    return list(found)


def _roles(instance: Instance) -> Mapping[NamedNode, str]:
    return {instance.predicate("wdt", property_id): role for property_id, role in instance.skos.items()}


def _said(instance: Instance, role: str, value: object, redirects: Mapping[str, str]) -> NamedNode | Literal | None:
    if role in _LINKS:
        if not isinstance(value, NamedNode):
            return None
        target = _resolved(value.value, redirects)
        entity_id = instance.id_of(target)
        return instance.concept(entity_id) if entity_id is not None and entity_id[0] == "Q" else None
    if role == "exactMatch":
        if isinstance(value, NamedNode):
            return None if value.value.startswith(BASE) else value
        if isinstance(value, Literal):
            entity_id = WIKIDATA.id_of(WIKIDATA.entity_base + value.value)
            return WIKIDATA.entity(entity_id) if entity_id is not None else _address(value.value)
        return None
    if not isinstance(value, Literal):
        return None
    plain = value.language is None and instance.language is not None
    return Literal(value.value, language=instance.language) if plain else value


def _address(text: str) -> NamedNode | None:
    try:
        return NamedNode(to_iri(text)) if text.startswith(("http://", "https://")) else None
    except RecordError:
        return None


def _resolved(iri: str, redirects: Mapping[str, str]) -> str:
    seen = {iri}
    while (target := redirects.get(iri)) is not None and target not in seen:
        seen.add(target)
        iri = target
    return iri


def find_cycles(above: Mapping[str, Iterable[str]]) -> list[list[str]]:
    """Return the cycles in the hierarchy, each beginning with its first node by name."""
    found: dict[tuple[str, ...], None] = {}
    done: set[str] = set()
    for start in sorted(above):
        if start in done:
            continue
        path: list[str] = [start]
        place = {start: 0}
        stack = [iter(sorted(above.get(start, ())))]
        while stack:
            following = next(stack[-1], None)
            if following is None:
                stack.pop()
                node = path.pop()
                del place[node]
                done.add(node)
            elif following in place:
                circle = path[place[following] :]
                first = circle.index(min(circle))
                found[tuple(circle[first:] + circle[:first])] = None
            elif following not in done:
                place[following] = len(path)
                path.append(following)
                stack.append(iter(sorted(above.get(following, ()))))
    return [list(circle) for circle in found]
