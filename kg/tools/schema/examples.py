"""Tool that finds example queries by question. The examples ship as RDF in ``ontology/examples``."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Final

from pydantic import BaseModel, Field
from pyoxigraph import Literal, NamedNode, parse

from kg import bundle
from kg.errors import SourceError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader, bounded, clean_text
from kg.retrieval.results import Result
from kg.retrieval.text_vectors import describe_matching, find_cosines, find_overlaps
from kg.store.protocol import Term
from kg.vocabulary import BASE, RDF, RDFS, SCHEMA, SH

QUESTION_CHARACTERS: Final = 1_000
WORDS_WEIGHT: Final = 0.3
"""Weight of shared words. The cosine of two questions has weight 1."""

FORMS: Final = (SH.select, SH.ask, SH.construct, SH.describe)


@dataclass(frozen=True, slots=True)
class Example:
    """A question and the query that answers it."""

    iri: str
    question: str
    query: str
    keywords: tuple[str, ...]

    @property
    def text(self) -> str:
        """The text that questions are compared with."""
        return f"{self.question} ({', '.join(self.keywords)})"


class ExampleQuery(BaseModel):
    """An example query."""

    id: str
    question: str
    query: str
    keywords: list[str]


class ExampleResult(Result):
    """Example queries, the most similar question first."""

    examples: list[ExampleQuery]


def sparql_examples(
    kg: KnowledgeGraph,
    question: Annotated[
        str, Field(min_length=1, max_length=QUESTION_CHARACTERS, description="Your question, in words")
    ],
    limit: Annotated[int, Field(ge=1, le=50)] = 3,
) -> ExampleResult:
    """Find tested SPARQL queries for questions similar to yours, to adapt.

    Use before writing a query: they show the right properties, how to avoid double counting, how to cite the source of
    a statement, and how to join full-text search. Returns examples: id, question, query, keywords.
    Example: sparql_examples(question="how many laws per country").
    Next: adapt the query and run it with `sparql`.
    """
    question = clean_text("question", question, QUESTION_CHARACTERS)
    bounded("limit", limit, 1, 50)
    known = load_examples()
    texts = [example.text for example in known]
    words = find_overlaps(question, texts)
    cosines = find_cosines(kg, question, texts)
    scores = words if cosines is None else [c + WORDS_WEIGHT * w for c, w in zip(cosines, words, strict=True)]
    order = sorted(range(len(known)), key=lambda number: (-round(scores[number], 6), number))
    result = ExampleResult(
        examples=[
            ExampleQuery(
                id=known[number].iri.removeprefix(f"{BASE}examples/"),
                question=known[number].question,
                query=known[number].query,
                keywords=list(known[number].keywords),
            )
            for number in order[:limit]
        ],
        notes=[describe_matching(kg, texts)] if cosines is None else [],
    )
    return Reader(kg).finish(result, total=len(known))


@cache
def load_examples() -> Sequence[Example]:
    """Load the example queries. Raises SourceError for an incomplete one."""
    found: list[Example] = []
    for path in sorted((bundle.folder("ontology") / "examples").glob("*.ttl")):
        said: dict[Term, dict[NamedNode, list[str]]] = defaultdict(lambda: defaultdict(list))
        for quad in parse(path=path):
            if isinstance(quad.object, Literal | NamedNode):
                said[quad.subject][quad.predicate].append(quad.object.value)
        for subject, properties in said.items():
            if SH.SPARQLExecutable.value not in properties[RDF.type] or not isinstance(subject, NamedNode):
                continue
            queries = [query for form in FORMS for query in properties[form]]
            if len(queries) != 1 or len(properties[RDFS.comment]) != 1:
                raise SourceError(f"{path}: {subject} needs exactly one query and one rdfs:comment.")
            keywords = tuple(sorted(properties[SCHEMA.keywords]))
            found.append(Example(subject.value, properties[RDFS.comment][0], queries[0].strip(), keywords))
    return found
