"""Reads sections of a code with the chat endpoint, as an agent does with the tools, and commits its readings.

A section is asked about if its text may state a use, a standard or a definition. The answer has entries of the
ingestion tools with quotations, and each is checked like those of an agent (`readings.check`). An interrupted run keeps
its answers, and the next one continues. The mode "rules" removes the readings of models.
"""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from kg.errors import InvalidInputError, NotFoundError, QuadciteError, RecordError, UpstreamError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import Agent, Run
from kg.remote.chat import ChatEndpoint
from kg.search.index_sync import Progress
from kg.vocabulary import mint, sha256
from kg.zoning_summaries.prompts import READING_FORM
from kg.zoning_summaries.writers import open_chat
from loaders.zoning.extraction.measures import find_measures
from loaders.zoning.extraction.permission_levels import level_of
from loaders.zoning.extraction.section_scope import Scope
from loaders.zoning.graph.derive import merge_districts
from loaders.zoning.graph.reading_commits import commit_readings
from loaders.zoning.graph.readings import (
    Claim,
    Kind,
    Reading,
    check,
    load_readings,
)
from loaders.zoning.graph.rule_quads import STANDARD_TYPES
from loaders.zoning.graph.stated_districts import load_stated
from loaders.zoning.graph.stored_codes import Code, Codes
from loaders.zoning.readers.code_model import Section

Mode = Literal["chat", "rules"]

AGENT: Final = Agent("loaders.zoning.readings", "1")
"""The agent that commits readings. The name is part of stored provenance."""
BATCH: Final = 20
"""Sections that are committed together."""
MAX_WINDOWS: Final = 10
"""Maximum questions about one section."""
WINDOW: Final = 12_000
"""Maximum characters of the text in one question, if no line is longer."""
MAX_ANSWER: Final = 100_000
"""Maximum characters of an answer."""
MAX_TOKENS: Final = 4_000
"""Maximum tokens of an answer."""
_LISTS: Final[Mapping[str, Kind]] = {
    "permissions": "permission", "standards": "standard", "definitions": "definition",
}  # fmt: skip
# Its hash is stored with every reading: a change causes every section to be asked again.
INSTRUCTIONS: Final = f"""\
{READING_FORM}
Answer with one JSON object and nothing else: {{"permissions": [{{"district", "use", "permission", "conditions", \
"quotations"}}], "standards": [{{"district", "standard_type", "value", "unit", "quotations"}}], "definitions": \
[{{"term", "definition_text", "quotations"}}]}}. The text is between two lines that begin with "=====\"."""
PROMPT_SHA256: Final = sha256(INSTRUCTIONS)
TRIES: Final = 2
"""Attempts of a model to answer a question in the form asked for before the section fails."""
ENOUGH_FAILURES: Final = 5
"""Consecutive failures of the endpoint after which a run stops calling it."""
_PATIENCE: Final = 3
"""Time of one question with all its attempts, in timeouts of the endpoint."""


@dataclass(slots=True)
class ExtractionReport:
    """The outcome of a run. `run` is its IRI in ``graph/prov``, None if nothing was committed."""

    mode: str
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

    def to_dict(self) -> dict[str, Any]:
        """Convert the report to JSON types."""
        said = {name: getattr(self, name) for name in self.__slots__}
        return said | {"seconds": round(self.seconds, 3)}


def extract(
    kg: KnowledgeGraph,
    name: str,
    *,
    exclusive: Callable[[], AbstractContextManager[None]],
    mode: Mode = "chat",
    anew: bool = False,
    questions: int = 500,
    minutes: float = 60.0,
    on_progress: Progress | None = None,
    sleep: Callable[[float], object] | None = None,
) -> ExtractionReport:
    """Extract facts from the stored sections of a municipality again, by its key: with a chat model, or by rules alone.

    At most `questions` are sent, for at most `minutes`. With `anew`, sections that the model has read are asked about
    again. `exclusive` opens a context in which no load runs; each commit is in one.

    Raises NotFoundError for a municipality without sections, and InvalidInputError if no endpoint is configured.
    """
    halt = threading.Event()
    patience = min(_PATIENCE * kg.settings.chat_timeout_s, minutes * 60)
    endpoint = open_chat(kg.settings, patience_s=patience, sleep=sleep or halt.wait) if mode == "chat" else None
    code = Codes(kg.memory).load(kg.store, name)
    if not code.sections:
        raise NotFoundError(f"{name} has no sections. Load its code with `kg load zoning PATH`.")
    work = _Extraction(kg, code, exclusive, endpoint, halt, on_progress, time.monotonic() + minutes * 60)
    with work.timed():
        if endpoint is None:
            work.withdraw()
        else:
            work.ask(endpoint, anew, questions)
    return work.report


def extract_in_turns(
    kg: KnowledgeGraph, name: str, *, begin: Callable[[], None], end: Callable[[], None], **options: Any
) -> ExtractionReport:
    """Extract as `extract` does, where `begin` waits until no load runs and `end` lets others run."""

    @contextmanager
    def exclusive() -> Iterator[None]:
        begin()
        try:
            yield
        finally:
            end()

    return extract(kg, name, exclusive=exclusive, **options)


@dataclass(frozen=True, slots=True)
class _Task:
    """A section to ask about, with the texts of its questions, and the checks of its answers."""

    section: Section
    above: Sequence[Section]
    windows: Sequence[str]
    check: Callable[[Kind, Mapping[str, Any]], Claim]
    districts: Sequence[str]


class _Extraction:
    def __init__(
        self,
        kg: KnowledgeGraph,
        code: Code,
        exclusive: Callable[[], AbstractContextManager[None]],
        endpoint: ChatEndpoint | None,
        halt: threading.Event,
        on_progress: Progress | None,
        end: float,
    ) -> None:
        self.kg, self.code, self.exclusive = kg, code, exclusive
        self.halt, self.on_progress, self.end = halt, on_progress, end
        self.method = "rules" if endpoint is None else f"chat/{endpoint.name}"
        self.report = ExtractionReport(
            "rules" if endpoint is None else "chat", None if endpoint is None else endpoint.name
        )
        self.report.sections = len(code.sections)
        self.prov_run: Final = Run(AGENT, {"municipality": code.name, "method": self.method})
        self.lock = threading.Lock()
        self.failures = 0
        """Consecutive failures of the endpoint."""

    @contextmanager
    def timed(self) -> Iterator[None]:
        started = time.perf_counter()
        yield
        self.report.seconds = time.perf_counter() - started

    def withdraw(self) -> None:
        """Remove all readings, so that the rules alone decide."""
        stored = load_readings(self.kg.store, self.code.name)
        several = {
            (key, each.reader): None
            for key, found in stored.items()
            for each in found
            if each.reader.startswith("chat/")
        }
        commit_readings(self.kg, self.code.name, several, self.prov_run, self.exclusive)
        self.report.removed = len(several)

    def ask(self, endpoint: ChatEndpoint, anew: bool, questions: int) -> None:
        """Ask about the sections that may state a fact, and commit the readings as they come."""
        tasks = list(self._plan(anew, questions))
        made: dict[tuple[str, str], Reading | None] = {}
        done = 0
        threads = ThreadPoolExecutor(self.kg.settings.chat_concurrency, "readings")
        asked = {threads.submit(self.attempt, endpoint, task): task for task in tasks}

        def take(answered: Future[Sequence[Claim] | None]) -> None:
            task = asked.pop(answered)
            if answered.cancelled():
                self.report.waiting += 1
            elif (found := answered.result()) is not None:
                key = task.section.key
                empty = Reading(self.method, sha256(task.section.text), (), PROMPT_SHA256)
                made[key, self.method] = empty.add(found)
                self.report.claimed += len(found)
                self.report.read += 1

        try:
            for answered in as_completed(list(asked), timeout=max(0.0, self.end - time.monotonic())):
                take(answered)
                done += 1
                if len(made) >= BATCH:
                    self.keep(made)
                    made.clear()
                if self.on_progress is not None:
                    tokens = endpoint.usage.tokens
                    self.on_progress(done, len(tasks), f"reading, {tokens:,} tokens" if tokens else "reading")
        except TimeoutError:
            pass  # the time is over: the answers so far are kept
        finally:
            self.halt.set()
            for each in asked:
                each.cancel()
            endpoint.close()  # ends the requests that still run
            threads.shutdown()
            for answered in list(asked):
                take(answered)
            self.keep(made)
            usage = endpoint.usage
            self.report.requests = usage.requests
            self.report.prompt_tokens, self.report.completion_tokens = usage.prompt_tokens, usage.completion_tokens

    def _plan(self, anew: bool, questions: int) -> Iterator[_Task]:
        """Yield the sections to ask about, in document order, with as many questions as may be sent."""
        stored = load_readings(self.kg.store, self.code.name)
        known = merge_districts(self.code.districts, load_stated(self.kg.store, self.code.name))
        scopes = self.code.find_scopes(known)
        for section in self.code.sections.values():
            if not _may_state(section.text):
                continue
            self.report.asked += 1
            windows = split_windows(section.text)[:MAX_WINDOWS]
            if not anew and any(self._is_current(each, section) for each in stored.get(section.key, ())):
                self.report.current += 1
                continue
            if len(windows) > questions:
                self.report.waiting += 1
                continue
            questions -= len(windows)
            above, around = self.code.above(section.key), scopes.get(section.key, ())

            def checked(
                kind: Kind,
                entry: Mapping[str, Any],
                section: Section = section,
                above: Sequence[Section] = above,
                around: Sequence[Scope] = around,
            ) -> Claim:
                return check(kind, entry, section, above, known, around)

            codes = [code for scope in around for code in scope.codes]
            yield _Task(section, above, windows, checked, list(dict.fromkeys((*codes, *known))))

    def _is_current(self, reading: Reading, section: Section) -> bool:
        """Whether a reading is of the text as it is, by this model with these instructions."""
        return reading.is_of(section) and (reading.reader, reading.form_sha256) == (self.method, PROMPT_SHA256)

    def attempt(self, endpoint: ChatEndpoint, task: _Task) -> Sequence[Claim] | None:
        """Ask about one section. None if it failed, or if the endpoint is no longer called."""
        found: list[Claim] = []
        for window in task.windows:
            with self.lock:
                if self.halt.is_set() or self.failures >= ENOUGH_FAILURES:
                    self.report.waiting += 1
                    return None
            try:
                claims, refused = _ask(endpoint, task, window)
            except QuadciteError as error:
                with self.lock:
                    if self.halt.is_set():
                        self.report.waiting += 1
                        return None
                    self.failures += isinstance(error, UpstreamError)
                    self.report.failed[mint("section", self.code.name, task.section.key).value] = str(error)
                return None
            found += claims
            with self.lock:
                self.failures = 0
                self.report.refused += refused
        return found

    def keep(self, readings: Mapping[tuple[str, str], Reading | None]) -> None:
        """Commit readings by section and reader."""
        failed = commit_readings(self.kg, self.code.name, readings, self.prov_run, self.exclusive)
        for key, message in failed.items():
            self.report.failed[mint("section", self.code.name, key).value] = message
        if readings and len(failed) < len(readings):
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


def build_question(task: _Task, window: str) -> str:
    """Build the user message for part of a section: headings, districts and types of standards, and the text."""
    path = " > ".join(f"{each.number} {each.title}".strip() for each in (*reversed(task.above), task.section))
    mark = f"===== {sha256(window)[:16]}"
    return (
        f"Headings: {' '.join(path.split())[:600]}\n"
        f"Districts: {', '.join(task.districts[:100]) or 'none known'}\n"
        f"Types of standards: {', '.join(sorted(STANDARD_TYPES))}\n"
        f"{mark} begin\n{window}\n{mark} end"
    )


def _ask(endpoint: ChatEndpoint, task: _Task, window: str) -> tuple[list[Claim], int]:
    """Ask one question; return the claims that pass the checks, and the number of entries that do not.

    Raises UpstreamError, or InvalidInputError for answers of another form.
    """
    question = build_question(task, window)
    for attempt in range(1, TRIES + 1):
        answer = endpoint.complete(INSTRUCTIONS, question, MAX_TOKENS)
        try:
            return _parse_answer(answer.text, task)
        except InvalidInputError:
            if attempt == TRIES:
                raise
    raise AssertionError("the last attempt returns or raises")


def _parse_answer(answer: str, task: _Task) -> tuple[list[Claim], int]:
    start, end = answer.find("{"), answer.rfind("}")
    try:
        found = json.loads(answer[start : end + 1]) if len(answer) <= MAX_ANSWER else None
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise InvalidInputError("The answer is not one JSON object of at most 100,000 characters.")
    claims: list[Claim] = []
    refused = 0
    for name, kind in _LISTS.items():
        entries = found.get(name)
        for entry in entries if isinstance(entries, list) else ():
            try:
                if not isinstance(entry, dict):
                    raise RecordError("Not an object.")
                claims.append(task.check(kind, entry))
            except RecordError:
                refused += 1
    return claims, refused
