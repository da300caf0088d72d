"""What the descriptions of the tools show as an example works as it stands, on the fixtures that ship with kg."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kg import bundle
from kg.access.actors import HOLDER
from kg.knowledge_graph import SENDER, KnowledgeGraph
from kg.load_queue import LoadQueue
from kg.retrieval.results import FEWEST_TOKENS, MOST_TOKENS, to_json, tokens_of
from kg.settings import Settings
from kg.tools.answers import content_of
from kg.tools.calls import COUNTS, Tool
from kg.tools.registry import CLIMATE, CORE, DOCUMENTS, OPERATIONS, RESEARCH, SPARQL, TOOLS, WIKIDATA, ZONING
from kg.tools.zoning.sections import kg_find_related
from loaders.sources import load
from tests.conftest import load_once, opened
from tests.folders import open_graph
from tests.tools.test_answers import PAGED, find_words, follow, list_paged

LISTS = (
    "results",
    "evidence",
    "families",
    "divisions",
    "resources",
    "properties",
    "terms",
    "examples",
    "rows",
    "concepts",
    "by_predicate",
    "bins",
    "documents",
    "speakers",
    "groups",
    "permissions",
    "tasks",
    "standards",
    "definitions",
    "sections",
    "related",
    "citations",
    "uses",
    "divisions",
    "chunks",
    "entities",
    "files",
    "loads",
)


WIDE: dict[str, dict[str, Any]] = {
    "search": {"query": "geothermal energy", "filters": {}, "min_score": 0, "limit": 3},
    "fetch": {"ids": None, "id": "cpr://doc/fictional-decree-on-geothermal-exploration_d0a1"},
    "search_speeches": {"query": "solar", "party": None, "date_from": None, "min_score": 0},
    "kg_query_permissions": {"district": None, "use": None},
    "kg_query_standards": {"district": None, "standard_type": None},
    "kg_query_section": {"section_id": "17.12", "include_children": True},
    "kg_traverse_hierarchy": {"section_id": None, "depth": 5},
    "compare_zoning": {"use": None, "standard_type": None},
    "wikidata.get_claims": {"properties": None},
    "concept_find": {"q": "energy"},
    "find_terms": {"kind": None},
    "list_speakers": {"party": None, "limit": 2},
}
"""Arguments instead of those of the examples, which find more."""


@pytest.fixture(scope="module")
def speeches(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """The speeches that ship with kg, loaded, and their folder open to the tool that takes them in."""
    data = load_once(tmp_path_factory, "parliament")
    folder = bundle.folder("fixtures") / "hansard"
    settings = Settings(data_dir=data, models_dir=data / "none", ingest_folders=(folder,), _env_file=None)  # type: ignore[call-arg]
    with KnowledgeGraph.open(data, settings) as opened:
        yield opened


@pytest.fixture(scope="module")
def codes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """The codes that ship with kg, loaded, and what takes in more of them."""
    data = load_once(tmp_path_factory, "utah")
    with open_graph(data) as opened:
        yield opened


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """The files that ship with kg, loaded, and their folder open to the tool that takes them in."""
    data: Path = tmp_path_factory.mktemp("files")
    folder = bundle.folder("fixtures") / "files" / "handbook"
    settings = Settings(data_dir=data, models_dir=data / "none", ingest_folders=(folder,), _env_file=None)  # type: ignore[call-arg]
    with KnowledgeGraph.open(data, settings) as opened:
        load(opened, "files", [str(folder)])
        yield opened


@pytest.fixture(autouse=True)
def holder() -> Iterator[None]:
    """Call the tools as the holder of the token, whom the review of claims asks for."""
    before = SENDER.set(HOLDER)
    yield
    SENDER.reset(before)


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    """The fictional entities of Wikidata that ship with kg, loaded."""
    with opened(load_once(tmp_path_factory, "wikidata")) as graph:
        yield graph


@pytest.fixture
def queued(tmp_path: Path) -> Iterator[KnowledgeGraph]:
    """A graph with a queue of loads, the last of which was cancelled."""
    with open_graph(tmp_path) as graph:
        graph.queue = LoadQueue(tmp_path)
        for name in ("acts", "bills", "codes"):
            last = graph.queue.submit("climate", [f"{name}.csv"], client="ann")
        graph.queue.cancel(last.number)
        yield graph


def fixture_of(tool: Tool) -> str:
    """Which fixtures the example of a tool is shown on."""
    if tool.tags == {OPERATIONS}:
        return "queued"
    if WIKIDATA in tool.tags and tool.name != "wikidata.sparql":
        return "facts"
    if tool.name in ("related", "citations"):  # they join the domains
        return "joined"
    if tool.tags & {CORE, CLIMATE, RESEARCH, SPARQL}:
        return "fixtures"
    if DOCUMENTS in tool.tags and ZONING not in tool.tags:
        return "files"
    return "codes" if ZONING in tool.tags else "speeches"


def arguments_of(tool: Tool, kg: KnowledgeGraph) -> dict[str, Any]:
    [example] = re.findall(r"Example: (.+?)\.$", tool.description, re.MULTILINE | re.DOTALL)
    call = ast.parse(example, mode="eval").body
    assert isinstance(call, ast.Call)
    assert ast.unparse(call.func) in (tool.name, tool.function.__name__)
    arguments = {keyword.arg or "": ast.literal_eval(keyword.value) for keyword in call.keywords}
    if "claim" in arguments:  # what a program claims is known by a hash of it, which no description can foretell
        cited = kg_find_related(kg, "Quarry Bend", "UT", "17.12.040", direction="outgoing").related
        arguments["claim"] = cited[0].id
    return arguments


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: f"{tool.name}-{'-'.join(sorted(tool.tags))}")
def test_the_example_of_a_tool_answers_with_something(request: pytest.FixtureRequest, tool: Tool) -> None:
    kg: KnowledgeGraph = request.getfixturevalue(fixture_of(tool))
    content = content_of(tool.call(kg, arguments_of(tool, kg)))
    listed = [content[name] for name in LISTS if name in content]
    assert all(listed)
    assert (
        listed
        or content.get("text")
        or content.get("status")
        or content.get("checked")
        or content.get("full_text")
        or content.get("duplicates_skipped")
        or content.get("raw_content")
        or content.get("summary")
        or content.get("built")
        or content.get("stored")
        or content.get("claim")
        or content.get("counts")
        or content.get("skipped")
        or tool.name == "extract_and_link"  # the load has found them
    )


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: f"{tool.name}-{'-'.join(sorted(tool.tags))}")
def test_every_tool_keeps_to_max_tokens_and_reports_what_it_cut(request: pytest.FixtureRequest, tool: Tool) -> None:
    kg: KnowledgeGraph = request.getfixturevalue(fixture_of(tool))
    arguments = {name: value for name, value in arguments_of(tool, kg).items() if name not in COUNTS}
    answer = tool.answer(kg, arguments)
    assert tokens_of(answer.content) <= tool.max_tokens
    if tool.single:  # the deep-research contract has one argument for each tool
        return
    whole = tool.answer(kg, arguments | {"detail": "full", "max_tokens": MOST_TOKENS}).content
    for most in (FEWEST_TOKENS, 300, 350, 700):
        content = tool.answer(kg, arguments | {"max_tokens": most}).content
        # One element of a list can have more fields than fit in so few tokens. Then a note says so.
        assert tokens_of(content) <= most or (most <= 350 and f"{most} tokens" in content["notes"][-1])
        cut = any(
            len(content[name]) < len(value)
            for name, value in whole.items()
            if name in content and isinstance(value, str | list) and name != "notes"
        )
        assert not cut or len(content["notes"]) > len(whole.get("notes", ()))
        # No size leaves an answer without the beginning of its text and of its lists.
        filled = [name for name, value in whole.items() if isinstance(value, str | list) and value]
        assert [name for name in filled if not content.get(name, True)] == []
        read = tool.result.layout
        assert {name for name in (read.text, *read.paged) if name and whole.get(name)} <= content.keys()


@pytest.mark.long
@pytest.mark.parametrize("size", [300, 1_000, 20_000])
@pytest.mark.parametrize("tool", PAGED, ids=lambda tool: tool.name)
def test_the_pages_of_an_example_have_every_element_once(request: pytest.FixtureRequest, tool: Tool, size: int) -> None:
    kg: KnowledgeGraph = request.getfixturevalue(fixture_of(tool))
    arguments = arguments_of(tool, kg) | WIDE.get(tool.name, {})
    free = {name: value for name, value in arguments.items() if name not in COUNTS}

    def read(given: dict[str, Any]) -> tuple[int | None, dict[str, list[str]]]:
        seen: dict[str, list[str]] = {name: [] for name in list_paged(tool)}
        for answer in follow(lambda offset: tool.answer(kg, given | {"offset": offset}), ()):
            for name, words in seen.items():
                words += map(find_words, answer.content.get(name, ()))
        return answer.meta["total"], seen

    total, whole = read(free | {"max_tokens": MOST_TOKENS})
    assert read(arguments | {"max_tokens": size}) == (total, whole)
    assert read(free | {"max_tokens": size}) == (total, whole)
    # A rule of a text that yields to one of a source is counted, and listed apart.
    apart = tool.answer(kg, free | {"max_tokens": MOST_TOKENS}).content.get("unsure", ())
    yielding = sum("yields_to" in each["evidence"] for each in apart)
    assert total in (None, *(len(words) + yielding for words in whole.values()))


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: f"{tool.name}-{'-'.join(sorted(tool.tags))}")
def test_no_tool_names_a_folder_of_the_server(request: pytest.FixtureRequest, tool: Tool) -> None:
    kg: KnowledgeGraph = request.getfixturevalue(fixture_of(tool))
    arguments = arguments_of(tool, kg) | ({} if tool.single else {"detail": "full", "max_tokens": MOST_TOKENS})
    sent = to_json(tool.answer(kg, arguments).content)
    folders = {str(bundle.folder("fixtures")), str(kg.settings.data_dir), str(Path(__file__).parents[2])}
    assert not [folder for folder in folders if folder in sent]
