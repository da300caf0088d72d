"""Reads sections of a code with the chat endpoint, as an agent does with the tools, and commits its readings.

A section is asked about if its text may state a use, a standard or a definition. The answer has entries of the
ingestion tools with quotations, and each is checked like those of an agent (`readings.Checks`). An interrupted run
keeps its answers, and the next one continues. The mode "rules" removes the readings of models.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field
from typing import Final, Literal

from kg.errors import InvalidInputError, NotFoundError, RecordError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import Agent, Run
from kg.remote.chat import ChatClosedError, ChatEndpoint, enclose, open_chat
from kg.search.index_sync import Progress
from kg.vocabulary import mint, sha256
from loaders.zoning.extraction.measures import find_measures
from loaders.zoning.extraction.permission_levels import level_of
from loaders.zoning.graph.ingest import Exclusive, commit_readings
from loaders.zoning.graph.readings import PARSERS, READING_FORM, Checks, Claim, Reading, load_readings
from loaders.zoning.graph.rule_quads import STANDARD_TYPES, RuleKind
from loaders.zoning.readers.code_model import Section

Mode = Literal["chat", "rules"]

AGENT: Final = Agent("loaders.zoning.readings", "1")
"""The agent that commits readings. The name is part of stored provenance."""
BATCH: Final = 20
"""Sections that are committed together."""
WINDOW: Final = 12_000
"""Maximum characters of the text in one question, if no line is longer."""
MAX_TOKENS: Final = 4_000
"""Maximum tokens of an answer."""
# Its hash is stored with every reading: a change causes every section to be asked again.
INSTRUCTIONS: Final = f"""\
{READING_FORM}
Answer with one JSON object and nothing else: {{"permissions": [{{"district", "use", "permission", "conditions", \
"quotations"}}], "standards": [{{"district", "standard_type", "value", "unit", "quotations"}}], "definitions": \
[{{"term", "definition_text", "quotations"}}]}}. The text is between two lines that begin with "=====\"."""
PROMPT_SHA256: Final = sha256(INSTRUCTIONS)
_PATIENCE: Final = 3
"""Time of one question with all its attempts, in timeouts of the endpoint."""


@dataclass(slots=True)
class ExtractionReport:
    """The outcome of a run. `run` is its IRI in ``graph/prov``, None if nothing was committed."""

    mode: Mode = "chat"
    model: str | None = None
    run: str | None = None
    sections: int = 0
    """Sections of the code."""
    asked: int = 0
    """Sections whose text may state a fact."""
    current: int = 0
    """Those that this model has read already."""
    read: int = 0
    waiting: int = 0
    """Sections that were not asked about: the number of questions, the time or the endpoint did not suffice."""
    failed: dict[str, str] = field(default_factory=dict)
    """Reasons by section."""
    claimed: int = 0
    """Claims that passed the checks. They are unconfirmed until a review, or until another reader agrees."""
    refused: int = 0
    """Entries of answers that did not pass."""
    removed: int = 0
    """Readings that were removed."""
    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    seconds: float = 0.0


def extract(
    kg: KnowledgeGraph,
    name: str,
    *,
    begin: Callable[[], object],
    end: Callable[[], object],
    mode: Mode = "chat",
    again: bool = False,
    questions: int = 500,
    minutes: float = 60.0,
    on_progress: Progress | None = None,
    sleep: Callable[[float], object] | None = None,
) -> ExtractionReport:
    """Extract facts from the stored sections of a municipality again, by its key: with a chat model, or by rules alone.

    At most `questions` are sent, for at most `minutes`. With `again`, sections that the model has read are asked about,
    too. Each commit is between `begin`, which waits until no load runs, and `end`, which lets others run.

    Raises NotFoundError for a municipality without sections, and InvalidInputError if no endpoint is configured.
    """

    @contextmanager
    def exclusive() -> Iterator[None]:
        begin()
        try:
            yield
        finally:
            end()

    started = time.monotonic()
    patience = min(_PATIENCE * kg.settings.chat_timeout_s, minutes * 60)
    endpoint = open_chat(kg.settings, patience_s=patience, sleep=sleep) if mode == "chat" else None
    model, checks = None if endpoint is None else endpoint.name, Checks.load(kg, name)
    if not checks.code.sections:
        raise NotFoundError(f"{name} has no sections. Load its code with `kg load zoning PATH`.")
    report = ExtractionReport(mode, model, sections=len(checks.code.sections))
    method = f"chat/{model}" if model else mode
    run = Run(AGENT, {"municipality": name, "method": method})
    work = _Extraction(kg, name, exclusive, method, checks, report, run)
    if endpoint is None:
        work.withdraw()
    else:
        work.ask(endpoint, list(work.plan(again, questions)), started + minutes * 60, on_progress)
    report.seconds = round(time.monotonic() - started, 3)
    return report


@dataclass(slots=True)
class _Extraction:
    kg: KnowledgeGraph
    name: str
    exclusive: Exclusive
    method: str
    checks: Checks
    report: ExtractionReport
    prov_run: Run
    answered: list[tuple[Section, Sequence[Claim | None]]] = field(default_factory=list)
    """Sections whose answers are not committed, each with the claims, None for a refused entry."""

    def withdraw(self) -> None:
        """Remove the readings of models, so that they have no effect."""
        stored = load_readings(self.kg.store, self.name)
        readers = ((key, each.reader) for key, several in stored.items() for each in several)
        models = {place: None for place in readers if place[1].startswith("chat/")}
        self.report.removed = len(models)
        self.commit(models)

    def plan(self, again: bool, questions: int) -> Iterator[tuple[Section, Sequence[str]]]:
        """Yield the sections to ask about, in document order, with as many questions as may be sent."""
        stored, current = load_readings(self.kg.store, self.name), (self.method, PROMPT_SHA256)
        for section in self.checks.code.sections.values():
            if not _may_state(section.text):
                continue
            self.report.asked += 1
            readings = (each for each in stored.get(section.key, ()) if each.is_of(section))
            if not again and any((each.reader, each.form_sha256) == current for each in readings):
                self.report.current += 1
                continue
            self.report.waiting += 1
            windows = split_windows(section.text)
            if len(windows) <= questions:
                questions -= len(windows)
                yield section, windows

    def ask(
        self,
        endpoint: ChatEndpoint,
        tasks: Sequence[tuple[Section, Sequence[str]]],
        end: float,
        on_progress: Progress | None,
    ) -> None:
        """Ask about sections until the time `end`, and commit the readings as they come."""

        def answer(task: tuple[Section, Sequence[str]]) -> None:
            section, windows = task
            entries = [
                self._check(kind, entry, section)
                for window in windows
                for kind, entry in endpoint.ask(
                    INSTRUCTIONS, build_question(self.checks, section, window), MAX_TOKENS, _parse_answer
                )
            ]
            self.answered.append((section, entries))

        left = max(0.0, end - time.monotonic())
        try:
            with closing(endpoint.run(tasks, answer, self.kg.settings.chat_concurrency, left)) as answers:
                for done, ((section, _), error) in enumerate(answers, 1):
                    is_over = isinstance(error, ChatClosedError) or time.monotonic() >= end
                    if error is not None and not is_over:
                        self.report.failed[mint("section", self.name, section.key).value] = str(error)
                        self.report.waiting -= 1
                    if len(self.answered) >= BATCH:
                        self.keep()
                    if on_progress is not None:
                        on_progress(done, len(tasks), f"reading, {endpoint.usage.tokens:,} tokens")
        except TimeoutError:
            pass  # the time is over: the answers so far are kept
        finally:
            self.keep()
            for name, count in asdict(endpoint.usage).items():
                setattr(self.report, name, count)

    def _check(self, kind: RuleKind, entry: object, section: Section) -> Claim | None:
        try:
            return self.checks.check(kind, entry, section) if isinstance(entry, dict) else None
        except RecordError:
            return None

    def keep(self) -> None:
        """Commit the answers that are not committed."""
        answered = list(self.answered)
        del self.answered[: len(answered)]
        made: dict[tuple[str, str], Reading | None] = {}
        for section, entries in answered:
            claims = [each for each in entries if each is not None]
            made[section.key, self.method] = Reading(self.method, sha256(section.text), (), PROMPT_SHA256).add(claims)
            self.report.claimed += len(claims)
            self.report.refused += len(entries) - len(claims)
        self.report.read += len(answered)
        self.report.waiting -= len(answered)
        self.commit(made)

    def commit(self, made: Mapping[tuple[str, str], Reading | None]) -> None:
        """Commit readings."""
        commit_readings(self.kg, self.name, made, self.prov_run, self.exclusive)
        if made:
            self.report.run = self.prov_run.iri.value


def _may_state(text: str) -> bool:
    """Whether a text may state a use, a standard or a definition."""
    return (
        _DEFINING.search(text) is not None
        or any(level_of(line) is not None for line in text.splitlines())
        or next(find_measures(text), None) is not None
    )


_DEFINING: Final = re.compile(r"\bmeans?\b|[”\"]")


def split_windows(text: str) -> list[str]:
    """Split a text into the texts of questions, at ends of lines."""
    windows: list[str] = []
    for line in text.splitlines(keepends=True):
        if not windows or len(windows[-1]) + len(line) > WINDOW:
            windows.append("")
        windows[-1] += line
    return windows


def build_question(checks: Checks, section: Section, window: str) -> str:
    """Build the user message for part of a section: headings, districts and types of standards, and the text."""
    above = reversed(checks.code.above(section.key))
    path = " > ".join(f"{each.number} {each.title}".strip() for each in (*above, section))
    scoped = (code for scope in checks.scopes.get(section.key, ()) for code in scope.codes)
    districts = list(dict.fromkeys((*scoped, *checks.known)))[:100]
    return (
        f"Headings: {' '.join(path.split())[:600]}\n"
        f"Districts: {', '.join(districts) or 'none known'}\n"
        f"Types of standards: {', '.join(sorted(STANDARD_TYPES))}\n"
        f"{enclose(window)}"
    )


def _parse_answer(answer: str) -> Sequence[tuple[RuleKind, object]]:
    """Parse an answer into entries. Raises InvalidInputError for one that is not a JSON object."""
    start, end = answer.find("{"), answer.rfind("}")
    try:
        found = json.loads(answer[start : end + 1])
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInputError("The answer is not one JSON object.")
    lists = {kind: found.get(f"{kind}s") for kind in PARSERS}
    return [(kind, entry) for kind, several in lists.items() if isinstance(several, list) for entry in several]
