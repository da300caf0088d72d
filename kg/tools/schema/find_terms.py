"""From words to terms: classes, properties and individuals by their names, misspelt or not, and by what they mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Final

from pydantic import Field
from pyoxigraph import Literal, NamedNode

from kg.fuzzy_names import fold
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader, bounded, clean_text, iri_of, text_of
from kg.retrieval.results import MOST_SKIPPED, Offset, Result
from kg.retrieval.text_vectors import WITHOUT_MODEL, find_cosines, find_overlaps
from kg.retrieval.token_budget import Lean, clipped
from kg.sparql.schema_index import local_name
from kg.sparql.terms import bind
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
"""Uses of an individual up to which they are counted."""
NAMED: Final = 0.55
"""Likeness of a name from which it counts as found."""
FAR: Final = 0.6
"""What is not this near, as a share of the nearest, is left out."""
MEANT: Final = 0.3
"""Cosine of a definition from which it counts as found; unrelated ones reach about 0.2."""
WORDED: Final = 0.9
"""What it is worth that a definition has all the words, beside a name that is the same (1)."""
UNUSED: Final = 0.8
"""What the cosine of a term is worth that no data use."""

# Each counted up to a limit: a common code is the object of millions of triples.
USES: Final = """{ SELECT ($thing AS ?thing) (COUNT(*) AS ?uses) WHERE {
  { SELECT ?s WHERE { ?s ?p $thing } LIMIT $most } } }"""

CONTEXT: Final = """
SELECT ?thing ?property ?text WHERE {
  VALUES ?thing { $things } VALUES ?property { $properties } ?thing ?property ?text
}"""


class FoundTerm(Lean):
    """A term, with what is needed to use it in a query."""

    iri: str
    curie: str | None = Field(None, description="Prefixed name, where a prefix fits")
    kind: Kind
    label: str
    context: str = Field(description="What it is, in one line")
    uses: int = Field(description=f"Things of a class, triples of a property or individual (counted to {USES_COUNTED})")
    matched: str | None = Field(
        None, description="What is like the text, where it is not the label: a name, or `meaning`"
    )


class TermResult(Result):
    """Terms, best first."""

    terms: list[FoundTerm]


def find_terms(
    kg: KnowledgeGraph,
    text: Annotated[str, Field(min_length=1, max_length=TEXT_CHARACTERS, description="A name, code or few words")],
    kind: Annotated[Kind | None, Field(description="Only these")] = None,
    limit: Annotated[int, Field(ge=1, le=50)] = 10,
    offset: Offset = 0,
) -> TermResult:
    """Find the IRI of a class, property or individual (place, code, concept, policy family) by name or meaning.

    Use before writing SPARQL, to get identifiers right; misspellings are forgiven. Returns terms: iri, curie, kind,
    label, context, uses, matched. Documents and passages are not terms: `search` finds those.
    Example: find_terms(text="country of a document", kind="property").
    Next: `describe_schema` with a class or property; `sparql` with the curie.
    """
    text = clean_text("text", text, TEXT_CHARACTERS)
    bounded("limit", limit, 1, 50)
    bounded("offset", offset, 0, MOST_SKIPPED)
    reader = Reader(kg)
    terms = get_term_index(kg)
    kinds: Sequence[Kind] = (kind,) if kind else ("class", "property", "individual")
    wanted = offset + limit + 1
    scored: dict[str, tuple[float, Entry, str]] = {}
    exact = terms.get(text)
    if exact is not None and exact.kind in kinds:
        scored[exact.iri] = (2.0, exact, to_query_name(exact.iri))
    words = text.partition(":")[2] if text.partition(":")[0] in PREFIXES else text
    for likeness, entry, name in terms.like(words, kinds, wanted):
        if likeness >= NAMED and entry.iri not in scored:
            scored[entry.iri] = (likeness, entry, name)
    explained = [entry for entry in terms.explained if entry.kind in kinds]
    notes = _add_by_meaning(kg, text, explained, scored)
    order = {name: rank for rank, name in enumerate(("class", "property", "individual"))}
    ranked = sorted(
        scored.values(), key=lambda found: (-round(found[0], 3), order[found[1].kind], -(found[1].count or 0))
    )
    if ranked:
        least = FAR * min(1.0, ranked[0][0])
        ranked = [found for found in ranked if found[0] >= least]
    page = ranked[offset : offset + limit]
    result = TermResult(terms=_to_found_terms(reader, page), notes=notes)
    if not ranked:
        result.notes.append("Nothing has a name or meaning like this; `search` finds passages by what they say.")
    if terms.truncated:
        result.notes.append("There are too many individuals to find all of them by name; SPARQL does.")
    if not terms.schema.generation:
        result.notes.append("The graph is being measured for the first time: individuals and counts come in a moment.")
    reader.generation = max(reader.generation, terms.generation)
    return reader.finish(
        result,
        next_offset=offset + limit if len(ranked) > offset + limit else None,
        completeness="approximate",
    )


def _add_by_meaning(
    kg: KnowledgeGraph, text: str, entries: Sequence[Entry], scored: dict[str, tuple[float, Entry, str]]
) -> list[str]:
    """Add the entries whose definitions are about `text`; return notes for whoever asked."""
    texts = [f"{entry.label}: {entry.about}" for entry in entries]
    cosines = find_cosines(kg, text, texts) if texts else []
    values = [WORDED * share for share in find_overlaps(text, texts)] if cosines is None else cosines
    least = NAMED if cosines is None else MEANT
    close = sorted(zip(values, entries, strict=True), key=lambda item: -item[0])[:20]
    for value, entry in close:
        known = scored.get(entry.iri)
        if entry.count == 0:
            value *= UNUSED
        if value >= least and (known is None or known[0] < value):
            scored[entry.iri] = (value, entry, "meaning")
    return [WITHOUT_MODEL] if cosines is None else []


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
            uses=uses.get(entry.iri, 0) if entry.kind == "individual" else entry.count or 0,
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
    return {iri_of(row["thing"]): int(text_of(row["uses"])) for row in reader.rows("uses of individuals", query)}


def _load_contexts(reader: Reader, iris: Sequence[str]) -> dict[str, str]:
    if not iris:
        return {}
    things = [NamedNode(iri) for iri in iris]
    rows = reader.rows(
        "what individuals are", bind(CONTEXT, things=things, properties=[SKOS.definition, DCTERMS.description])
    )
    return {iri_of(row["thing"]): text_of(row["text"]) for row in rows if isinstance(row["text"], Literal)}
