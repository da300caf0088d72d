"""What does an agent pay for an answer? Sixty questions over the fixtures of all domains, by mount.

`budget.toml` has the questions, each with the calls that answer it and expressions that the answers must match. An
error counts as an answer: it says that nothing is there, and names what is. Tokens are those of the results, four bytes
each.

Where the folder of real data is next to the project, the questions of `budget_real.toml` are asked of real laws,
speeches and a real code too. They are loaded once, into the folder for temporary files.
"""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from kg import bundle
from kg.errors import QuadciteError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.results import BYTES_PER_TOKEN, MOST_TOKENS, to_json, tokens_of
from kg.server.mcp import input_schema
from kg.settings import Settings
from kg.tools.calls import Tool
from kg.tools.mounts import MOUNTS
from kg.tools.registry import mounted
from loaders.sources import load
from tests.benchmarks.comparison import Comparison, median, p95
from tests.folders import open_graph

ROOT: Final = Path(__file__).parent.parent.parent
REAL: Final = Path(os.environ.get("QUADCITE_SHARED", ROOT.parent / "shared")) / "data"
REAL_STORE: Final = Path(tempfile.gettempdir()) / "quadcite-budget"
QUESTIONS: Final = Path(__file__).with_suffix(".toml")
REAL_QUESTIONS: Final = QUESTIONS.with_stem("budget_real")
SITTINGS: Final = ("1920", "1998", "2014")
MEDIAN_TOKENS: Final = 2_500
P95_TOKENS: Final = 6_000
MEDIAN_CALLS: Final = 2
LISTED_TOKENS: Final = {"/mcp": 4_000}
"""Maximum tokens of the list of tools, by mount."""
LISTED_TOKENS_ELSEWHERE: Final = 5_000
"""Maximum tokens of the list of tools of other mounts."""
WRITTEN: Final = 4
"""Maximum number of questions that need hand-written SPARQL."""
KINDS: Final = ("factual", "comparative", "negative", "cross-domain")


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the mount that it is asked on, the calls that answer it, and what their answers must match."""

    asks: str
    kind: str
    mount: str
    calls: Sequence[tuple[str, dict[str, Any]]]
    expect: Sequence[str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the calls of a question returned."""

    question: Question
    missed: Sequence[str]
    """The expressions that no answer matches."""
    tokens: int


def load_questions(file: Path = QUESTIONS) -> list[Question]:
    """Load the questions of a file."""
    made = tomllib.loads(file.read_text())["question"]
    return [Question(**{**each, "calls": [(name, arguments) for name, arguments in each["calls"]]}) for each in made]


def tools_of(mount: str) -> dict[str, Tool]:
    """Get the tools of a mount by name."""
    return {tool.name: tool for tool in mounted(MOUNTS[mount].tags)}


def ask(kg: KnowledgeGraph, question: Question, **more: Any) -> Outcome:
    """Make the calls of a question on its mount, with `more` arguments where a tool takes them."""
    tools, said, tokens = tools_of(question.mount), [], 0
    for name, arguments in question.calls:
        try:
            extra = {} if tools[name].single else more
            content = tools[name].answer(kg, {**arguments, **extra}).content
            said.append(to_json(content))
            tokens += tokens_of(content)
        except QuadciteError as error:
            said.append(f"{error.code}: {error}")
            tokens += tokens_of(said[-1])
    whole = "\n".join(said)
    return Outcome(question, [each for each in question.expect if not re.search(each, whole)], tokens)


def open_fixtures(folder: Path) -> KnowledgeGraph:
    """Open a graph with the fixtures of all domains."""
    opened = open_graph(folder)
    files = bundle.folder("fixtures")
    load(opened, "wikibase", [str(files / "wikibase")], base="climate")
    load(opened, "climate", [str(files / "climate")])
    load(opened, "hansard", [str(files / "hansard")])
    load(opened, "zoning", [str(files / "zoning")], state="UT", mapping=str(files / "zoning" / "towns.toml"))
    load(opened, "files", [str(files / "files" / "handbook")])
    return opened


def open_real(folder: Path) -> KnowledgeGraph:
    """Open a graph with real laws, three sittings and Title 15 of a code, loading what the folder lacks."""
    folder.mkdir(parents=True, exist_ok=True)
    opened = KnowledgeGraph.open(folder, Settings(data_dir=folder, query_workers=1, _env_file=None))
    laws = [
        REAL / "climate" / name for name in ("CPR_huggingface_data_sample.parquet", "flat", "climate_laws_2021.xlsx")
    ]
    load(opened, "wikibase", [str(bundle.folder("fixtures") / "wikibase")], base="climate")
    load(opened, "climate", [str(path) for path in laws])
    load(opened, "hansard", [str(REAL / "hansard" / f"{year}.xml") for year in SITTINGS])
    code = REAL / "zoning" / "spanish-fork" / "title_15_land_use.html"
    load(opened, "zoning", [str(code)], municipality="Spanish Fork", state="UT")
    opened.search.wait()
    return opened


def run(arguments: Sequence[str]) -> Iterable[Comparison]:
    """Ask all questions, and compare the answers with the goals; with an argument, print each question."""
    logging.getLogger("loaders").setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory() as folder, open_fixtures(Path(folder)) as kg:
        outcomes = [ask(kg, question) for question in load_questions()]
        whole = [ask(kg, question, detail="full", max_tokens=MOST_TOKENS) for question in load_questions()]
    for outcome in outcomes:
        if outcome.missed or arguments:
            print(f"{outcome.tokens:6} {outcome.question.mount} {outcome.question.asks} {list(outcome.missed)}")
    yield from compare("all mounts", outcomes)
    total, uncut = (float(sum(each.tokens for each in some)) for some in (outcomes, whole))
    yield Comparison("all questions, compared with whole and uncut results", total, uncut, "tokens")
    written = sum(name == "sparql" for each in outcomes for name, _ in each.question.calls)
    yield Comparison("questions with hand-written SPARQL", written, WRITTEN, "", f"<= {WRITTEN}", written <= WRITTEN)
    for mount in dict.fromkeys(outcome.question.mount for outcome in outcomes):
        yield from compare(mount, [each for each in outcomes if each.question.mount == mount])
        listed = sum(
            len((tool.name + tool.description + json.dumps(input_schema(tool), separators=(",", ":"))).encode())
            for tool in tools_of(mount).values()
        )
        limit = LISTED_TOKENS.get(mount, LISTED_TOKENS_ELSEWHERE)
        size = listed / BYTES_PER_TOKEN
        yield Comparison(f"{mount}: list of tools", size, limit, "tokens", f"<= {limit:,}", size <= limit)
    if REAL.is_dir():
        yield from ask_real(bool(arguments))


def ask_real(each: bool) -> Iterator[Comparison]:
    """Ask the questions over real data, and print each if wanted."""
    with open_real(REAL_STORE) as kg:
        outcomes = [ask(kg, question) for question in load_questions(REAL_QUESTIONS)]
    for outcome in outcomes:
        if outcome.missed or each:
            print(f"{outcome.tokens:6} {outcome.question.mount} {outcome.question.asks} {list(outcome.missed)}")
    yield from compare("real data, all mounts", outcomes)
    for mount in dict.fromkeys(outcome.question.mount for outcome in outcomes):
        yield from compare(f"real data, {mount}", [some for some in outcomes if some.question.mount == mount])


def compare(name: str, outcomes: Sequence[Outcome]) -> Iterator[Comparison]:
    """Compare the share answered, the calls and the tokens of questions with the goals."""
    answered = sum(not each.missed for each in outcomes)
    tokens = sorted(float(each.tokens) for each in outcomes)
    calls = median(sorted(float(len(each.question.calls)) for each in outcomes))
    whole = f"{name}: {len(outcomes)} questions"
    yield Comparison(f"{whole}, answered", answered, len(outcomes), "", "all", answered == len(outcomes))
    yield Comparison(f"{whole}, calls (median)", calls, MEDIAN_CALLS, "calls", "<= 2", calls <= MEDIAN_CALLS)
    for which, value, most in (("median", median(tokens), MEDIAN_TOKENS), ("95th", p95(tokens), P95_TOKENS)):
        yield Comparison(f"{whole}, results ({which})", value, most, "tokens", f"<= {most:,}", value <= most)
