"""Sections of a code that agents and models read: a tool hands them out, and ``kg extract`` asks a chat model."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BeforeValidator, Field
from pyoxigraph import NamedNode

from kg.knowledge_graph import PROGRESS, KnowledgeGraph
from kg.loading import exclusive_load
from kg.retrieval.reader import Reader, bounded_page, iri_of, page_of
from kg.retrieval.results import Layout, Lean, Result
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.tools.zoning.governing_passages import Question, load_scopes, rank_governing
from kg.tools.zoning.name_lookup import (
    DistrictName,
    MunicipalityName,
    PageSize,
    SectionId,
    Skipped,
    StateName,
    find_named,
    find_place,
    find_section,
    get_section_key,
    list_failures,
    load_vocabulary,
)
from kg.tools.zoning.rules import RuleKind
from kg.vocabulary import KG, iri_prefix
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.section_ranking import build_heading_path
from loaders.dispatch import call

LONGEST_TEXT: Final = 40_000
"""Maximum characters of the text of a task. `kg_query_section` returns the rest."""

COUNTS: Final = """
SELECT ?section (COUNT(DISTINCT ?rule) AS ?count) WHERE {
  VALUES ?section { $sections } ?rule kg:definedIn ?section ; a $kind
  OPTIONAL { ?rule kg:confidence ?confidence } OPTIONAL { ?rule kg:reviewStatus ?review }
  FILTER(!BOUND(?confidence) || ?confidence >= $least || BOUND(?review))
} GROUP BY ?section"""

Wanted = Literal["uses", "standards", "definitions"]
_FACTS: Final[Mapping[Wanted, tuple[RuleKind, str, NamedNode]]] = {
    "uses": ("permission", "kg_ingest_use_permissions", KG.UsePermission),
    "standards": ("standard", "kg_ingest_dimensional_standards", KG.DimensionalStandard),
    "definitions": ("definition", "kg_ingest_definitions", KG.Definition),
}
"""The rules of a kind, the tool that takes them, and their class."""

_ALSO: Final = {
    "use": "uses", "permission": "uses", "permissions": "uses", "standard": "standards", "definition": "definitions",
}  # fmt: skip
"""Other names of the kinds, as in the tools and in other answers."""


class ReadingTask(Lean):
    """A section to read."""

    section_ref: str
    path: str
    iri: str
    districts: list[str] | None = Field(None, description="Those that it applies in; absent: not stated by headings")
    known: int = Field(description="Facts of this kind that are read from it already, without unconfirmed ones")
    text: str
    text_length: int


class ReadingTasks(Result):
    """Sections to read, and the form to answer in."""

    layout: ClassVar[Layout] = Layout(paged=("tasks",), reads=True)

    municipality: str
    kind: str
    tool: str = Field(description="The tool that takes the answers")
    form: str
    tasks: list[ReadingTask]


def zoning_reading_tasks(
    kg: KnowledgeGraph,
    municipality: MunicipalityName,
    state: StateName,
    district: DistrictName = None,
    section_id: SectionId | None = None,
    kind: Annotated[Wanted, BeforeValidator(lambda given: _ALSO.get(str(given), given))] = "uses",
    limit: PageSize = 5,
    offset: Skipped = 0,
) -> ReadingTasks:
    """List sections of a code for you to read: their uses, standards or definitions are wanted.

    Use to fill gaps. Returns tasks (section_ref, path, districts, text) and the form of the answers, which go to the
    named tool with quotations. They are checked, and are your claims, unconfirmed until a review or a second reader.
    Example: zoning_reading_tasks(municipality="Quarry Bend", state="UT", district="R-1", kind="uses").
    Next: `kg_ingest_use_permissions`, `kg_ingest_dimensional_standards`, `kg_ingest_definitions`.
    """
    from loaders.zoning.graph.readings import READING_FORM  # its module imports all that extracts

    bounded_page(limit, offset)
    reader, notes = Reader(kg), list[str]()
    place = find_place(reader, municipality, state)
    tree = code_tree.cached_tree(kg, place.iri)
    words = load_vocabulary(reader, place)
    districts = None if district is None else find_named("district", district, words.districts, place, notes)
    rules, tool, of = _FACTS[kind]
    if section_id is not None:
        root = find_section(tree, section_id)
        sections = [each for each in tree.below(root) if tree.sections[each].text_sha256 is not None]
    else:
        about, words_of = ("definitions", None) if kind == "definitions" else (None, district)
        question = Question(reader, rules, place, about, words_of, districts if words_of else None)
        sections = [each.section for each in rank_governing(question)]
    reader.start_selection()
    nodes = [NamedNode(each) for each in sections]
    rows = reader.rows("facts by section", bind(COUNTS, sections=nodes, kind=of, least=kg.settings.rule_confidence))
    counts = {iri_of(row["section"]): int(term_text(row["count"])) for row in rows}
    sections.sort(key=counts.__contains__)  # stable: best first
    shown, scopes = sections[offset : offset + limit], load_scopes(reader, place)
    texts = code_tree.load_texts(kg.ask_sources, shown)
    tasks = []
    for each in shown:
        named = sorted({iri for scope in scopes.get(each, ()) for iri in scope.districts} & words.districts.keys())
        tasks.append(
            ReadingTask(
                section_ref=get_section_key(each),
                path=build_heading_path(tree, each),
                iri=each,
                districts=[words.districts[iri].code for iri in named] or None,
                known=counts.get(each, 0),
                text=texts.get(each, "")[:LONGEST_TEXT],
                text_length=len(texts.get(each, "")),
            )
        )
    return reader.finish(
        ReadingTasks(municipality=place.name, kind=kind, tool=tool, form=READING_FORM, tasks=tasks, notes=notes),
        total=len(sections),
        next_offset=page_of(sections, offset, limit),
    )


def extract(
    kg: KnowledgeGraph,
    municipality: str,
    state: str,
    mode: Literal["chat", "rules"] = "chat",
    again: bool = False,
    questions: int = 500,
    minutes: float = 60.0,
) -> dict[str, Any]:
    """Extract facts from the sections of a code again: with the configured chat model, or by the rules alone.

    At most `questions` are sent to the endpoint, for at most `minutes`. With `again`, also about sections that the
    model has read. The mode "rules" removes the readings of models.
    """
    place, advance = find_place(Reader(kg), municipality, state), PROGRESS.get()
    with ExitStack() as turn:
        report = call(
            kg,
            "extract",
            place.iri.removeprefix(iri_prefix("municipality")),
            begin=lambda: turn.enter_context(exclusive_load(advance)),
            end=turn.close,
            mode=mode,
            again=again,
            questions=questions,
            minutes=minutes,
            on_progress=advance,
        )
    return {"municipality": place.shown, **asdict(report), "failed": list_failures(report.failed)}
