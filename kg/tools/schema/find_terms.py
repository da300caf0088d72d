"""Tool that finds classes, properties and individuals by name, with misspellings, or by meaning."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from pydantic import Field
from pyoxigraph import Literal, NamedNode

from kg.fuzzy_names import MOST_SIMILAR, fold
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.property_names import is_detailed
from kg.retrieval.reader import Reader, bounded, clean_text, iri_of
from kg.retrieval.results import MOST_SKIPPED, Lean, Offset, Result, clipped
from kg.retrieval.text_vectors import describe_matching, find_cosines, find_overlaps
from kg.sparql.schema_index import local_name
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.tools.schema.term_index import (
    Entry,
    Kind,
    describe_foreign,
    get_scheme,
    get_term_index,
    split_words,
    to_query_name,
)
from kg.vocabulary import DCTERMS, PREFIXES, SKOS

TEXT_CHARACTERS: Final = 300
CONTEXT_CHARACTERS: Final = 160
USES_COUNTED: Final = 10_000
COMPLETED: Final = 20
"""Terms for a name that is being typed."""
"""Maximum uses of an individual that are counted."""
LEAST_NAME_SCORE: Final = 0.55
"""Least similarity of a name."""
LEAST_SHARE: Final = 0.6
"""Least score of a result, as a share of the best one."""
LEAST_COSINE: Final = 0.3
"""Least cosine of a definition. Unrelated ones reach about 0.2."""
WORDS_FACTOR: Final = 0.9
"""Score of a definition that contains all the words. An identical name has 1."""
UNUSED_FACTOR: Final = 0.8
"""Factor of the score of a term that the data does not use."""

# Counts are limited: a common code is the object of millions of triples.
USES: Final = """{ SELECT ($thing AS ?thing) (COUNT(*) AS ?uses) WHERE {
  { SELECT ?s WHERE { ?s ?p $thing } LIMIT $most } } }"""

CONTEXT: Final = """
SELECT ?thing ?property ?text WHERE {
  VALUES ?thing { $things } VALUES ?property { $properties } ?thing ?property ?text
}"""


class FoundTerm(Lean):
    """A term with the data to use it in a query."""

    iri: str
    curie: str | None = Field(None, description="Prefixed name, if a prefix fits")
    kind: Kind
    label: str
    context: str = Field(description="Definition or description in one line")
    uses: int | None = Field(
        None, description=f"Instances of a class, triples of a property or individual (counted to {USES_COUNTED})"
    )
    matched: str | None = Field(None, description="The matching name if not the label, or `meaning`")


class TermResult(Result):
    """Terms, best first."""

    terms: list[FoundTerm]


def find_terms(
    kg: KnowledgeGraph,
    text: Annotated[str, Field(min_length=1, max_length=TEXT_CHARACTERS, description="A name, code or few words")],
    kind: Annotated[Kind | None, Field(description="Only terms of this kind")] = None,
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
    offset: Offset = 0,
) -> TermResult:
    """Find the IRI of a class, property or individual (place, code, concept, policy family) by name or meaning.

    Use before writing SPARQL, to get identifiers right. Tolerates misspellings. Returns terms: iri, curie, kind, label,
    context, uses, matched. Documents and passages are not terms: use `search`.
    Example: find_terms(text="country of a document", kind="property").
    Next: `describe_schema` with a class or property; `sparql` with the curie.
    """
    text = clean_text("text", text, TEXT_CHARACTERS)
    bounded("limit", limit, 1, 50)
    bounded("offset", offset, 0, MOST_SKIPPED)
    reader = Reader(kg)
    terms = get_term_index(kg, wait_s=0)
    kinds: Sequence[Kind] = (kind,) if kind else ("class", "property", "individual")
    scored: dict[str, tuple[float, Entry, str]] = {}
    exact = terms.get(text)
    if exact is not None and exact.kind in kinds:
        scored[exact.iri] = (2.0, exact, to_query_name(exact.iri))
    words = text.partition(":")[2] if text.partition(":")[0] in PREFIXES else text
    for likeness, entry, name in terms.like(words, kinds, MOST_SIMILAR):
        if likeness >= LEAST_NAME_SCORE and entry.iri not in scored:
            scored[entry.iri] = (likeness, entry, name)
    explained = [entry for entry in terms.explained if entry.kind in kinds]
    notes = _add_by_meaning(kg, text, explained, scored)
    order = {name: rank for rank, name in enumerate(("class", "property", "individual"))}
    ranked = sorted(
        scored.values(),
        key=lambda item: (-round(item[0], 3), order[item[1].kind], is_detailed(item[1].iri), -(item[1].count or 0)),
    )
    if ranked:
        least = LEAST_SHARE * min(1.0, ranked[0][0])
        ranked = [found for found in ranked if found[0] >= least]
    page = ranked[offset : offset + limit]
    result = TermResult(terms=_to_found_terms(reader, page), notes=notes)
    if not ranked:
        result.notes.append("No term has a similar name or meaning. `search` finds passages by content.")
    if terms.truncated:
        result.notes.append("Not all individuals are indexed by name, since there are too many. Use SPARQL.")
    if not terms.schema.generation:
        result.notes.append(
            "The schema is being measured for the first time. The numbers of uses are not available yet."
        )
    return reader.finish(
        result,
        next_offset=offset + limit if len(ranked) > offset + limit else None,
        completeness="approximate",
    )


def complete_terms(kg: KnowledgeGraph, text: str, kind: Kind) -> list[FoundTerm]:
    """Find terms for a name that is being typed: those with names that begin with it, then similar ones.

    A name with a prefix of Quadcite is completed within the namespace of the prefix.
    """
    text = clean_text("text", text, TEXT_CHARACTERS)
    terms, reader = get_term_index(kg, wait_s=0), Reader(kg)
    prefix, colon, local = text.partition(":")
    within = PREFIXES.get(prefix) if colon else None
    found = [
        entry
        for entry in terms.starting(text, kind, 10 * COMPLETED)
        if within is None or kind == "individual" or entry.iri.startswith(within)
    ][:COMPLETED]
    completed = _to_found_terms(reader, [(1.0, entry, entry.label) for entry in found])
    if len(completed) < COMPLETED and (local or not colon):
        known = {term.iri for term in completed}
        completed += [term for term in find_terms(kg, text, kind, COMPLETED).terms if term.iri not in known]
    return completed[:COMPLETED]


def _add_by_meaning(
    kg: KnowledgeGraph, text: str, entries: Sequence[Entry], scored: dict[str, tuple[float, Entry, str]]
) -> list[str]:
    """Add the entries whose definitions match `text` to `scored`. Returns notes."""
    texts = [f"{entry.label}: {entry.about}" for entry in entries]
    cosines = find_cosines(kg, text, texts) if texts else []
    values = [WORDS_FACTOR * share for share in find_overlaps(text, texts)] if cosines is None else cosines
    least = LEAST_NAME_SCORE if cosines is None else LEAST_COSINE
    close = sorted(zip(values, entries, strict=True), key=lambda item: -item[0])[:20]
    for value, entry in close:
        known = scored.get(entry.iri)
        if entry.count == 0:
            value *= UNUSED_FACTOR
        if value >= least and (known is None or known[0] < value):
            scored[entry.iri] = (value, entry, "meaning")
    return [describe_matching(kg, texts)] if cosines is None else []


def _to_found_terms(reader: Reader, page: Sequence[tuple[float, Entry, str]]) -> list[FoundTerm]:
    individuals = [entry for _, entry, _ in page if entry.kind == "individual"]
    uses = _count_uses(reader, [entry.iri for entry in individuals])
    texts = _load_contexts(reader, [entry.iri for entry in individuals if not entry.about])
    return [
        FoundTerm(
            iri=entry.iri,
            curie=None if (name_ := to_query_name(entry.iri)).startswith("<") else name_,
            kind=entry.kind,
            label=entry.label,
            context=clipped(_context(entry, texts), CONTEXT_CHARACTERS),
            uses=uses.get(entry.iri, 0) if entry.kind == "individual" else entry.count,
            matched=None if name == entry.label else name,
        )
        for _, entry, name in page
    ]


def _context(entry: Entry, texts: Mapping[str, str]) -> str:
    if entry.kind != "individual":
        return entry.about or describe_foreign(entry.iri, entry.label)
    scheme = get_scheme(entry.iri)
    if entry.about:
        return entry.about
    kinds = [split_words(local_name(scheme))] if scheme else [split_words(local_name(name)) for name in entry.classes]
    codes = [name for name in entry.names[1:] if fold(name) != fold(entry.label)]
    parts = [f"{', '.join(kinds)}" + (f" ({', '.join(codes[:3])})" if codes else "")]
    if entry.iri in texts:
        parts.append(texts[entry.iri])
    return ": ".join(parts)


def _count_uses(reader: Reader, iris: Sequence[str]) -> dict[str, int]:
    if not iris:
        return {}
    parts = [bind(USES, thing=NamedNode(iri), most=USES_COUNTED) for iri in iris]
    query = "SELECT ?thing ?uses WHERE {\n" + " UNION ".join(parts) + "\n}"
    return {iri_of(row["thing"]): int(term_text(row["uses"])) for row in reader.rows("uses of individuals", query)}


def _load_contexts(reader: Reader, iris: Sequence[str]) -> dict[str, str]:
    if not iris:
        return {}
    things = [NamedNode(iri) for iri in iris]
    rows = reader.rows(
        "descriptions of individuals", bind(CONTEXT, things=things, properties=[SKOS.definition, DCTERMS.description])
    )
    return {iri_of(row["thing"]): term_text(row["text"]) for row in rows if isinstance(row["text"], Literal)}
