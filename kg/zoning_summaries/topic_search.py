"""Searches a zoning code for a topic, from its top-level sections down.

At each step the parts of the sections chosen before are candidates, and the best `top_k` are chosen. A chosen section
without parts is a result. A chat endpoint rates them by their summaries. Without one, the score of a section is the
best score at or below it, by the words and the meaning of heading paths and texts
(`kg.zoning_summaries.section_ranking`): these find the section that governs more often than summaries, which cannot
name everything in a large part of a code.
The trace lists every candidate. Plain search runs over the same sections, and the differences are reported: either may
have missed something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kg.errors import IndexUnavailableError, UpstreamError
from kg.knowledge_graph import KnowledgeGraph
from kg.remote.chat import ChatEndpoint
from kg.retrieval.text_vectors import WITHOUT_MODEL
from kg.search.protocol import Candidate as Found
from kg.text import quoted
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.code_tree import State
from kg.zoning_summaries.scoring import Score, score_by_chat
from kg.zoning_summaries.section_ranking import Ranked, build_heading_path, rank_sections, weigh_terms
from kg.zoning_summaries.sentence_selection import shorten

HEADINGS_AND_TEXTS: Final = "headings and texts"
WORDS: Final = "words of headings and texts"
"""The bases of a score: words and vectors; words only, without an embedding model."""
MAX_STEPS: Final = 50
"""Maximum levels of a search, more than any code has."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A section that was scored against the question."""

    section: str
    name: str
    score: float
    chosen: bool
    why: str
    state: State
    """State of its summary."""


@dataclass(frozen=True, slots=True)
class Step:
    """One level of the search: its candidates, best first, and the basis of their scores."""

    scored_by: str
    candidates: Sequence[Candidate]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A result, with the sections above it, top level first."""

    section: str
    name: str
    score: float
    summary: str | None
    path: Sequence[str]


@dataclass(frozen=True, slots=True)
class Missed:
    """A top result of plain search that this search did not return."""

    section: str
    name: str
    rank: int
    """Rank in plain search, one-based."""
    lost_at: str
    """The step at which this search rejected it or a section above it."""


@dataclass(slots=True)
class Descent:
    """The results, the steps that led to them, and the differences to plain search."""

    leaves: Sequence[Leaf]
    steps: Sequence[Step]
    top_k: int
    """Sections chosen at each step."""
    missed: Sequence[Missed] = ()
    agreeing: int = 0
    """Results that are also top results of plain search."""
    notes: list[str] = field(default_factory=list)


def descend(
    kg: KnowledgeGraph, municipality: str, question: str, top_k: int = 5, *, endpoint: ChatEndpoint | None = None
) -> Descent:
    """Find the sections of a code that answer `question`, from the top down by their summaries.

    `endpoint` rates the candidates of each step. If it fails, embeddings score the remaining steps, and a note and the
    steps say so. Raises NotFoundError if the municipality has no sections.
    """
    return _Descending(kg, municipality, question, top_k, endpoint).run()


class _Descending:
    def __init__(
        self, kg: KnowledgeGraph, municipality: str, question: str, top_k: int, endpoint: ChatEndpoint | None
    ) -> None:
        self.kg, self.municipality, self.question = kg, municipality, question
        self.top_k, self.endpoint = top_k, endpoint
        self.tree = code_tree.cached_tree(kg, municipality)
        self.notes: list[str] = []
        self.known: dict[str, tuple[Score, str]] = {}
        """The score of each section, and the section at or below it that has this score."""
        self.scored_by = ""
        self.units = [section for section in self.tree.order if self.tree.sections[section].text_sha256 is not None]
        """Sections with text, which plain search ranks."""
        self.ends: set[str] = set()
        """Sections whose own text scores higher than any of their parts: they are results, too."""
        self.plain: Sequence[Found] | None = None

    def run(self) -> Descent:
        tree = self.tree
        steps: list[Step] = []
        arrived: list[Candidate] = []
        level = [root for root in tree.roots if root in tree.heights]
        while level and len(steps) < MAX_STEPS:
            step = self.step(level)
            steps.append(step)
            chosen = [candidate for candidate in step.candidates if candidate.chosen]
            arrived += [each for each in chosen if each.section in self.ends or not tree.parts(each.section)]
            level = [part for candidate in chosen for part in tree.parts(candidate.section)]
        arrived.sort(key=lambda candidate: -candidate.score)  # stable: ties keep the order of the search
        leaves = [self.leaf(candidate) for candidate in arrived[: self.top_k]]
        self.note_states(steps)
        descent = Descent(leaves, steps, self.top_k, notes=self.notes)
        self.compare(descent)
        return descent

    def step(self, level: Sequence[str]) -> Step:
        """Score the sections of one level and choose."""
        scored_by, scores = self.scores(level)
        order = sorted(range(len(level)), key=lambda number: -scores[number].value)
        last = scores[order[min(self.top_k, len(order)) - 1]].value
        candidates = []
        for place, number in enumerate(order, 1):
            section, score = level[number], scores[number]
            chosen = place <= self.top_k
            why = f"{_ordinal(place)} of {len(level)} by {scored_by}"
            why += f": {score.reason}" if score.reason else ""
            if not chosen:
                why += f"; the last of the {self.top_k} chosen has {last:.2f}"
            name, state = self.tree.sections[section].name, self.tree.states[section]
            candidates.append(Candidate(section, name, score.value, chosen, why, state))
        return Step(scored_by, candidates)

    def scores(self, level: Sequence[str]) -> tuple[str, list[Score]]:
        failed = ""
        if self.endpoint is not None:
            try:
                shown = [self.format_section(section) for section in level]
                return f"ratings of {self.endpoint.name}", score_by_chat(self.endpoint, self.question, shown)
            except UpstreamError as error:
                self.notes.append(f"The chat endpoint failed, so embeddings were used: {error}")
                failed, self.endpoint = f" (not by ratings: {self.endpoint.name} failed)", None
        if not self.known:
            self.score_all()
        return self.scored_by + failed, [self.get_score(section) for section in level]

    def score_all(self) -> None:
        """Score every section by the best score at or below it."""
        tree = self.tree
        ranked = rank_sections(self.kg, self.municipality, self.question, weigh_terms(self.question))
        if ranked and not any(each.words for each in ranked):
            self.notes.append("No section contains a word of the query. The results are the closest in meaning.")
        self.scored_by = WORDS if any(each.meaning is None for each in ranked) else HEADINGS_AND_TEXTS
        own = {each.section: Score(each.score, _describe_parts(each)) for each in ranked}
        best = {section: (own[section], section) for section in tree.order if section in own}
        for section in reversed(best):
            # max() keeps the first of ties: the section itself, then its first part.
            best[section] = max(
                [best[section], *(best[part] for part in tree.parts(section))], key=lambda each: each[0].value
            )
        self.known = best
        self.ends = {each for each in self.units if best[each][1] == each and tree.parts(each)}

    def get_score(self, section: str) -> Score:
        """Get the score of a section, with the section below it that has this score as part of the reason."""
        score, through = self.known[section]
        below = "" if through == section else f", for {quoted(self.tree.sections[through].name)}, which is below it"
        return Score(score.value, score.reason + below)

    def run_plain_search(self, limit: int) -> Sequence[Found]:
        """Run plain search once. Returns at least its first `limit` results."""
        if self.plain is None:
            self.plain = ()
            try:
                if self.units:
                    self.plain = self.kg.search.rank(self.question, units=self.units, limit=limit).candidates
                    if not self.plain:
                        self.notes.append("Plain search found nothing: these sections are not in the index.")
            except IndexUnavailableError as error:
                self.notes.append(f"Plain search is unavailable: {error}")
        return self.plain

    def format_section(self, section: str) -> str:
        """Build the text of a section for an endpoint: heading, summary, and the headings of its parts."""
        parts = "; ".join(self.tree.sections[part].name for part in self.tree.parts(section))
        summary = self.tree.summaries.get(section)
        said = "\n".join([build_heading_path(self.tree, section), *([] if summary is None else [summary.text])])
        return f"{said}\nParts: {shorten(parts)}" if parts else said

    def leaf(self, candidate: Candidate) -> Leaf:
        summary = self.tree.summaries.get(candidate.section)
        path = tuple(reversed(self.tree.above(candidate.section)))
        return Leaf(candidate.section, candidate.name, candidate.score, summary.text if summary else None, path)

    def note_states(self, steps: Sequence[Step]) -> None:
        states = [candidate.state for step in steps for candidate in step.candidates]
        several: tuple[State, ...] = ("missing", "stale")
        for state in several:
            if count := states.count(state):
                self.notes.append(f"The summaries of {count} of {len(states)} candidates are {state}.")
        if self.scored_by == WORDS:
            self.notes.append(WITHOUT_MODEL)

    def compare(self, descent: Descent) -> None:
        """Compare the results with those of plain search over the same sections."""
        tree = self.tree
        found = self.run_plain_search(self.top_k)[: self.top_k]
        mine = {leaf.section for leaf in descent.leaves}
        descent.agreeing = sum(candidate.iri in mine for candidate in found)
        descent.missed = [
            Missed(each.iri, tree.sections[each.iri].name, place, self.explain_loss(each.iri, descent.steps))
            for place, each in enumerate(found, 1)
            if each.iri not in mine
        ]

    def explain_loss(self, section: str, steps: Sequence[Step]) -> str:
        """Describe the step at which `section`, or a section above it, was rejected."""
        wanted = {section, *self.tree.above(section)}
        for number, step in enumerate(steps, 1):
            for candidate in step.candidates:
                if candidate.section in wanted and not candidate.chosen:
                    return f"step {number}: {candidate.name} was {candidate.why}"
        return f"reached, but {self.top_k} other sections score higher"


def _describe_parts(ranked: Ranked) -> dict[str, float]:
    said = {"words": ranked.words} if ranked.words else {}
    return said if ranked.meaning is None else said | {"meaning": ranked.meaning}


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"
