"""From the highest sections of a code down to those that a question is about, by their summaries.

At each step the parts of the sections chosen before compete, and the best `top_k` go on; a section without parts that
is chosen is a result. Without an endpoint that rates them, a section counts as much as the best of its own summary and
what is below it, since the few sentences about a large part of a code cannot name all that stands there; and what
stands at the bottom counts by its own text too, as `kg.zoning_summaries.scoring` says. The trace lists
every candidate. Plain search over the same sections runs as well: it reads the text and no summary, so where the two
differ, one of them may have missed something.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from kg.errors import IndexUnavailableError, UpstreamError
from kg.knowledge_graph import KnowledgeGraph
from kg.remote.chat import ChatEndpoint
from kg.search.protocol import Candidate as Found
from kg.zoning_summaries import code_tree
from kg.zoning_summaries.code_tree import CodeTree, State
from kg.zoning_summaries.scoring import WORDS, Evidence, Score, score_by_chat, score_by_evidence
from kg.zoning_summaries.sentence_selection import shorten

MAX_STEPS: Final = 50
"""Levels of a code, more than any has."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A section that was compared with the question."""

    section: str
    name: str
    score: float
    chosen: bool
    why: str
    state: State
    """Of its summary; one that is missing was compared by its heading."""


@dataclass(frozen=True, slots=True)
class Step:
    """One level of the descent: its candidates, best first, and by what they were scored."""

    scored_by: str
    candidates: Sequence[Candidate]


@dataclass(frozen=True, slots=True)
class Leaf:
    """A section that the descent arrived at, with the sections above it, the highest first."""

    section: str
    name: str
    score: float
    summary: str | None
    path: Sequence[str]


@dataclass(frozen=True, slots=True)
class Otherwise:
    """A section that plain search has among its first, and the descent has not."""

    section: str
    name: str
    rank: int
    """Its place in plain search, from 1."""
    lost_at: str
    """Where the descent turned elsewhere."""


@dataclass(slots=True)
class Descent:
    """What a descent found, how, and what plain search would have chosen instead."""

    leaves: Sequence[Leaf]
    steps: Sequence[Step]
    top_k: int
    """Sections that went on at each step."""
    otherwise: Sequence[Otherwise] = ()
    agreeing: int = 0
    """Sections that plain search has among its first too."""
    notes: list[str] = field(default_factory=list)


def descend(
    kg: KnowledgeGraph, municipality: str, question: str, top_k: int = 5, *, endpoint: ChatEndpoint | None = None
) -> Descent:
    """Return the sections that `question` is about, by the summaries of the code of `municipality`.

    With `endpoint`, that rates the candidates of each step; where it fails, a note and the step say so, and vectors
    decide from there on.
    Raises NotFoundError where the municipality has no sections.
    """
    return _Descending(kg, municipality, question, top_k, endpoint).run()


def comparison_text(tree: CodeTree, section: str) -> str:
    """Return the text by which a section is compared: its heading and its summary."""
    summary = tree.summaries.get(section)
    title = tree.sections[section].title or tree.sections[section].name
    return f"{title}\n{summary.text}" if summary is not None else title


class _Descending:
    def __init__(
        self, kg: KnowledgeGraph, municipality: str, question: str, top_k: int, endpoint: ChatEndpoint | None
    ) -> None:
        self.kg, self.municipality, self.question = kg, municipality, question
        self.top_k, self.endpoint = top_k, endpoint
        self.tree = code_tree.cached_tree(kg, municipality)
        self.notes: list[str] = []
        self.known: dict[str, tuple[Score, str]] = {}
        """The score of each section, and which one at or below it has that."""
        self.scored_by = ""
        self.units = [section for section in self.tree.order if self.tree.sections[section].text_sha256 is not None]
        """What plain search ranks too."""
        self.ends: set[str] = set()
        """Sections with parts whose own text is nearer than what any part has: they are results too."""
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
        arrived.sort(key=lambda candidate: -candidate.score)  # stable: of equals the one that was met first
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
                shown = [self.shown(section) for section in level]
                return f"ratings of {self.endpoint.name}", score_by_chat(self.endpoint, self.question, shown)
            except UpstreamError as error:
                self.notes.append(f"The chat endpoint did not rate the summaries, so vectors decided: {error}")
                failed, self.endpoint = f" (not by ratings: {self.endpoint.name} gave none)", None
        if not self.known:
            self.score_all()
        return self.scored_by + failed, [self.told(section) for section in level]

    def score_all(self) -> None:
        """Score every section by the best of what speaks for itself and for those below it."""
        tree = self.tree
        layout = self.layout()
        found = {each.iri: each for each in self.searched(len(self.units))}
        texts = [found.get(section) for section in layout]
        if found and not any(each.bm25 for each in found.values()):
            self.notes.append("No section has a word of the query: these are the nearest in meaning, however far.")
        self.scored_by, scores = score_by_evidence(
            self.kg, self.municipality, self.question, list(layout.values()), texts
        )
        best = {section: (score, section) for section, score in zip(layout, scores, strict=True)}
        for section in reversed(layout):
            # Of equals the section itself, then its first part.
            best[section] = max(
                [best[section], *(best[part] for part in tree.parts(section))], key=lambda each: each[0].value
            )
        self.known = best
        self.ends = {each for each in self.units if best[each][1] == each and each in found and tree.parts(each)}

    def layout(self) -> dict[str, Evidence]:
        """Return what each section is scored by, in the order of the code; it is kept for as long as the tree."""
        tree, key = self.tree, ("summary evidence", self.municipality)
        known: tuple[CodeTree, dict[str, Evidence]] | None = self.kg.memory.get(key)
        if known is not None and known[0] is tree:
            return known[1]
        places = {section: place for place, section in enumerate(each for each in tree.order if each in tree.heights)}
        made = {
            section: Evidence(
                comparison_text(tree, section),
                section in tree.summaries,
                [places[above] for above in tree.above(section) if above in places],
            )
            for section in places
        }
        return self.kg.memory.keep(key, (tree, made))[1]

    def told(self, section: str) -> Score:
        """Return the score of a section, which says what of it, or below it, was so near."""
        score, through = self.known[section]
        below = "" if through == section else f", for {self.tree.sections[through].name}, which is below it"
        return Score(score.value, score.reason + below)

    def searched(self, limit: int) -> Sequence[Found]:
        """Return what plain search has, at least its first `limit`; it is asked once."""
        if self.plain is None:
            self.plain = ()
            try:
                if self.units:
                    self.plain = self.kg.search.rank(self.question, units=self.units, limit=limit).candidates
                    if not self.plain:
                        self.notes.append("Plain search has none of these sections: they are not in the index.")
            except IndexUnavailableError as error:
                self.notes.append(f"Plain search could not be asked: {error}")
        return self.plain

    def shown(self, section: str) -> str:
        """Return what an endpoint is shown of a section: what stands for it, and the headings of its parts."""
        parts = "; ".join(self.tree.sections[part].name for part in self.tree.parts(section))
        said = comparison_text(self.tree, section)
        return f"{said}\nParts: {shorten(parts)}" if parts else said

    def leaf(self, candidate: Candidate) -> Leaf:
        summary = self.tree.summaries.get(candidate.section)
        path = tuple(reversed(self.tree.above(candidate.section)))
        return Leaf(candidate.section, candidate.name, candidate.score, summary.text if summary else None, path)

    def note_states(self, steps: Sequence[Step]) -> None:
        states = [candidate.state for step in steps for candidate in step.candidates]
        meanings: dict[State, str] = {"missing": "were compared without one", "stale": "may say what was"}
        for state, meaning in meanings.items():
            if count := states.count(state):
                self.notes.append(f"The summaries of {count} of {len(states)} candidates are {state}: these {meaning}.")
        if self.scored_by == WORDS:
            self.notes.append("No embedding model is there, so this was matched by words alone (kg models pull).")

    def compare(self, descent: Descent) -> None:
        """Ask plain search for the same sections, and tell where it differs."""
        tree = self.tree
        found = self.searched(self.top_k)[: self.top_k]
        mine = {leaf.section for leaf in descent.leaves}
        descent.agreeing = sum(candidate.iri in mine for candidate in found)
        descent.otherwise = [
            Otherwise(each.iri, tree.sections[each.iri].name, place, self.lost_at(each.iri, descent.steps))
            for place, each in enumerate(found, 1)
            if each.iri not in mine
        ]

    def lost_at(self, section: str, steps: Sequence[Step]) -> str:
        """Return at which section above `section`, or at itself, the descent turned elsewhere."""
        wanted = {section, *self.tree.above(section)}
        for number, step in enumerate(steps, 1):
            for candidate in step.candidates:
                if candidate.section in wanted and not candidate.chosen:
                    return f"step {number}: {candidate.name} was {candidate.why}"
        return f"it was reached, but {self.top_k} others score higher"


def _ordinal(number: int) -> str:
    ending = {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{'th' if number % 100 in (11, 12, 13) else ending}"
