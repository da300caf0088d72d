"""The tool `plan_facts`: the steps that check a fact, selected from the tools by their tags and scopes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import Field

from kg.connectors.names import TOOLS, CanonicalTool, list_name
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.results import Lean, Result
from kg.tools.wikidata.verify import TOP_N, Check, Question

Scope = Literal["facts", "entities", "properties"]

_LIMIT: Final = TOP_N


class Step(Lean):
    """A call of a tool. Arguments in angle brackets come from an earlier step."""

    tool: str
    arguments: dict[str, Any]
    purpose: str
    tags: list[str]
    scopes: list[str] | None = None


class PlanResult(Result):
    """The steps, in their order."""

    steps: list[Step]
    properties: list[str] = Field(default_factory=list, description="Properties that the question asks for, if read")


def plan_facts(
    kg: KnowledgeGraph,
    question: Question,
    scope: Annotated[
        Scope, Field(description="facts: a claim with its proof; entities: items; properties: of the model")
    ] = "facts",
) -> PlanResult:
    """Plan the calls that answer a question from Wikidata: search, claims, SPARQL. It calls none of them.

    Use to run the steps yourself; `verify_fact` runs them in one call. Returns steps: tool, arguments, purpose, tags,
    scopes; properties that the question asks for.
    Example: plan_facts(question="Where was Ilsabet Varrow born?").
    Next: the first step.
    """
    check = Check.of(kg, question)
    understood = check.read(by_meaning=False)
    properties = list(dict.fromkeys(pid for each in understood.readings[:1] for pid in each.properties))
    subject = understood.readings[0].subject if understood.readings else check.question
    steps = build_steps(TOOLS.values(), scope, subject, properties)
    for step in steps:
        step.tool = list_name(step.tool, kg.settings.tool_names)
    notes = (
        [] if understood.readings else ["The question has no form that is known: the first step searches all of it."]
    )
    return check.reader.finish(PlanResult(steps=steps, properties=properties, notes=notes))


def build_steps(tools: Iterable[CanonicalTool], scope: Scope, subject: str, properties: Sequence[str]) -> list[Step]:
    """Build the steps for a scope from the tools, in one loop.

    The first step is the first tool with the tag ``vector`` and the scope; the next ones are the first with ``claims``
    and, for facts, with ``sparql``. A kind without a tool has no step.
    """
    chosen: dict[str, CanonicalTool] = {}
    for tool in tools:
        for tag in ("vector", "claims", "sparql"):
            if tag in tool.tags and (tag != "vector" or scope in tool.scopes):
                chosen.setdefault(tag, tool)
    steps: list[Step] = []
    if (search := chosen.get("vector")) is not None:
        found = "properties" if scope == "properties" else "items"
        steps.append(_step(search, {"query": subject, "limit": _LIMIT}, f"Find the {found} that can be meant."))
    if scope != "properties" and (claims := chosen.get("claims")) is not None:
        arguments: dict[str, Any] = {"qids": f"<the qid of the first {_LIMIT} of step 1>"}
        if properties:
            arguments["properties"] = list(properties)
        steps.append(_step(claims, arguments, "Read their claims, with rank, qualifiers, references and GUID."))
    if scope == "facts" and (sparql := chosen.get("sparql")) is not None:
        query = (
            "SELECT ?value ?rank WHERE { wd:<qid> p:<property> ?statement . ?statement ps:<property> ?value ; "
            "wikibase:rank ?rank FILTER(?rank != wikibase:DeprecatedRank) }"
        )
        steps.append(_step(sparql, {"query": query}, "Prove the claim that answers it."))
    return steps


def _step(tool: CanonicalTool, arguments: dict[str, Any], purpose: str) -> Step:
    return Step(
        tool=tool.name,
        arguments=arguments,
        purpose=purpose,
        tags=sorted(tool.tags),
        scopes=sorted(tool.scopes) or None,
    )
