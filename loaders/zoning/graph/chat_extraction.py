"""Asks the chat endpoint about sections of a code that the rules are unsure of, and commits its readings of them.

A section is asked about if it has a measure, words that give a level or the form of a definition where the rules found
nothing, or nothing sure. Its answers are stored as a reading (`model_readings`); the findings that follow from the
reading and the rules together are committed with it. An interrupted run keeps its answers, and the next one
continues. The mode "rules" removes the readings.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final, Literal

from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode, Quad

from kg import bundle
from kg.errors import InvalidInputError, NotFoundError, QuadciteError, UpstreamError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.findings import commit_reviewed
from kg.provenance.load_records import Agent, RecordOrigin, Run, timestamp
from kg.provenance.promotion import build_load_patch
from kg.remote.chat import ChatEndpoint
from kg.search.index_sync import Progress
from kg.shacl.shapes import Shapes
from kg.vocabulary import EXTRACTED, KG, PROV, mint, sha256
from kg.zoning_summaries.writers import open_chat
from loaders.zoning.extraction.facts import find_facts
from loaders.zoning.extraction.model_answers import (
    INSTRUCTIONS,
    MAX_TOKENS,
    PROMPT_SHA256,
    Proposals,
    Span,
    build_question,
    parse_answer,
    split_segments,
    split_windows,
)
from loaders.zoning.extraction.model_facts import find_unsure
from loaders.zoning.extraction.section_scope import find_scopes
from loaders.zoning.graph.derive import CodesRead, Findings, merge_districts
from loaders.zoning.graph.model_readings import Reading, build_reading, get_reading_graph, load_readings
from loaders.zoning.graph.rule_quads import STANDARD_TYPES
from loaders.zoning.graph.stated_districts import load_stated
from loaders.zoning.graph.stored_codes import Code, Codes
from loaders.zoning.graph.text_findings import find_legends
from loaders.zoning.readers.code_model import DOMAIN, Section

Mode = Literal["chat", "rules"]

AGENT: Final = Agent("loaders.zoning.readings", "1")
"""The agent that commits readings. The name is part of stored provenance."""
BATCH: Final = 20
"""Sections that are committed together."""
MAX_WINDOWS: Final = 10
"""Maximum questions about one section."""
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
    unsure: int = 0
    """Sections with text that the rules are unsure of or silent on."""
    current: int = 0
    """Those that this model has read already."""
    read: int = 0
    waiting: int = 0
    """Sections that were not asked about: the number of questions, the time or the endpoint did not suffice."""
    failed: dict[str, str] = field(default_factory=dict)
    """Reasons by section."""
    proposed: int = 0
    """Facts in answers with all quotes in the text."""
    refused: int = 0
    """Entries of answers that were dropped: of another form, or with a quote that is not in the text."""
    unconfirmed: int = 0
    """Proposed facts that the text does not confirm. They have no effect."""
    agreed: int = 0
    """Facts of the rules with a higher confidence, because the model agrees."""
    disputed: int = 0
    """Facts of the rules with a lower confidence, because the model disagrees."""
    added: int = 0
    """Facts of low confidence that only the model stated."""
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
    """A section to ask about, with the texts of its questions."""

    section: Section
    districts: Sequence[str]
    windows: Sequence[Sequence[Span]]


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
        self.keep(dict.fromkeys(stored))
        self.report.removed = len(stored)

    def ask(self, endpoint: ChatEndpoint, anew: bool, questions: int) -> None:
        """Ask about the sections that the rules are unsure of, and commit the readings as they come."""
        tasks = list(self._plan(anew, questions))
        made: dict[str, Reading] = {}
        done = 0
        threads = ThreadPoolExecutor(self.kg.settings.chat_concurrency, "readings")
        asked = {threads.submit(self.attempt, endpoint, task): task for task in tasks}

        def take(answered: Future[Proposals | None]) -> None:
            task = asked.pop(answered)
            if answered.cancelled():
                self.report.waiting += 1
            elif (found := answered.result()) is not None:
                made[task.section.key] = Reading(self.method, PROMPT_SHA256, sha256(task.section.text), found)
                self.report.proposed += len(found)
                self.report.refused += found.refused

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
        for section in self.code.sections.values():
            above = self.code.above(section.key)
            facts = find_facts(section, known, above, find_legends(section, self.code.index))
            unsure = find_unsure(section, facts, self.kg.settings.rule_confidence)
            windows = split_windows(split_segments(section.text), unsure)[:MAX_WINDOWS] if unsure else ()
            if not windows:
                continue
            self.report.unsure += 1
            reading = stored.get(section.key)
            if not anew and reading is not None and self._is_current(reading, section):
                self.report.current += 1
                continue
            if len(windows) > questions:
                self.report.waiting += 1
                continue
            questions -= len(windows)
            yield _Task(
                section,
                [
                    *dict.fromkeys(
                        (*(code for scope in find_scopes(section, known, above) for code in scope.codes), *known)
                    )
                ],
                windows,
            )

    def _is_current(self, reading: Reading, section: Section) -> bool:
        """Whether a reading is of the text as it is, by this model with these instructions."""
        return reading.is_of(section) and (reading.method, reading.prompt_sha256) == (self.method, PROMPT_SHA256)

    def attempt(self, endpoint: ChatEndpoint, task: _Task) -> Proposals | None:
        """Ask about one section. None if it failed, or if the endpoint is no longer called."""
        found = Proposals()
        for window in task.windows:
            with self.lock:
                if self.halt.is_set() or self.failures >= ENOUGH_FAILURES:
                    self.report.waiting += 1
                    return None
            try:
                found = found.join(_ask(endpoint, task, window))
            except QuadciteError as error:
                with self.lock:
                    if self.halt.is_set():
                        self.report.waiting += 1
                        return None
                    self.failures += isinstance(error, UpstreamError)
                    self.report.failed[mint("section", self.code.name, task.section.key).value] = str(error)
                return None
            with self.lock:
                self.failures = 0
        return found

    def keep(self, readings: Mapping[str, Reading | None]) -> None:
        """Commit readings by section, None to remove one, with the findings that follow."""
        if not readings:
            return
        store, name = self.kg.store, self.code.name
        with self.exclusive():
            code = Codes(self.kg.memory).load(store, name)
            # A load may have changed the text since it was read.
            valid = {
                key: reading
                for key, reading in readings.items()
                if key in code.sections and (reading is None or reading.is_of(code.sections[key]))
            }
            found = self._derive(valid)
            if refused := _find_invalid(found, {each.method for each in valid.values() if each is not None}):
                for key in [key for key in valid if _extracted(name, key) in refused]:
                    section = mint("section", name, key).value
                    self.report.failed[section] = f"The answer violates a shape: {refused[_extracted(name, key)]}"
                    del valid[key]
                found = self._derive(valid)
            replace = {graph: quads for graph, (quads, _) in found.items()}
            origins = {graph: origin for graph, (_, origin) in found.items()}
            now = timestamp(datetime.now(UTC))
            for key, reading in valid.items():
                graph = get_reading_graph(name, key)
                replace[graph] = () if reading is None else build_reading(name, key, reading)
                if reading is not None:
                    said = [(KG.method, Text(reading.method)), (PROV.generatedAtTime, now)]
                    origins[graph] = RecordOrigin("", (), (mint("graph", "src", DOMAIN, name, key),), said=said)
            commit = commit_reviewed(store, replace, build_load_patch(self.prov_run, store, replace, origins))
        if any(change.content_sha256 for change in commit.changes):
            self.report.run = self.prov_run.iri.value
        for reading in valid.values():
            if reading is not None:
                self._count(reading)

    def _derive(self, readings: Mapping[str, Reading | None]) -> dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]]:
        findings = Findings(CodesRead(), Codes(self.kg.memory))
        return dict(findings.derive_again(self.kg.store, self.code.name, readings))

    def _count(self, reading: Reading) -> None:
        self.report.read += 1
        self.report.unconfirmed += len(reading.proposals)


def _ask(endpoint: ChatEndpoint, task: _Task, window: Sequence[Span]) -> Proposals:
    """Ask one question. Raises UpstreamError, or InvalidInputError for answers of another form."""
    section = task.section
    question = build_question(
        f"{section.number} {section.title}", section.text, window, task.districts, sorted(STANDARD_TYPES)
    )
    for attempt in range(1, TRIES + 1):
        answer = endpoint.complete(INSTRUCTIONS, question, MAX_TOKENS)
        try:
            return parse_answer(answer.text, section.text, window)
        except InvalidInputError:
            if attempt == TRIES:
                raise
    raise AssertionError("the last attempt returns or raises")


def _extracted(name: str, key: str) -> NamedNode:
    return mint("graph", "ext", DOMAIN, name, key)


def _find_invalid(
    found: Mapping[NamedNode, tuple[Sequence[Quad], RecordOrigin]], methods: set[str]
) -> Mapping[NamedNode, str]:
    """Find the graphs of findings in which a fact by one of these methods violates its shape, with the message."""
    invalid: dict[NamedNode, str] = {}
    for graph, (quads, _) in found.items():
        if not graph.value.startswith(EXTRACTED):
            continue
        own: set[object] = {
            quad.subject
            for quad in quads
            if quad.predicate == KG.method and isinstance(quad.object, Text) and quad.object.value in methods
        }
        own |= {quad.object for quad in quads if quad.subject in own and quad.predicate == KG.quantity}
        if not own:
            continue
        for violation in _load_shapes().check([quad for quad in quads if quad.subject in own]):
            if violation.blocks:
                invalid[graph] = violation.message
    return invalid


@cache
def _load_shapes() -> Shapes:
    """Load the record shapes of codes, open to the evidence of a fact."""
    return Shapes.load(bundle.folder("shapes") / "record-zoning.ttl", opened=True)
