"""Does search find the part of a document that answers, does the snippet show it, and are its questions refused?

The questions of `document_questions.txt` are put to the project's own chapters, to the handbook of the fixtures, and
to the zoning code of a village in the folder of real data. Every second question about the chapters, and all about the
village, are held out from development. A chunk is right if it has the words of the file that answer the question. The
alternative is the order by words alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kg import bundle
from kg.retrieval.excerpts import LONG_SNIPPET_CHARACTERS, SNIPPET_CHARACTERS, cut_excerpt
from kg.search.index_client import EdgeIndex
from kg.search.protocol import Candidate, GraphUnits, IndexedUnit, Ranking
from kg.search.relevance import estimate_relevance
from kg.settings import Settings
from kg.text import HEADING_SEPARATOR
from loaders.files.loader import FORMATS, Reading
from loaders.indexed_facts import find_facts
from loaders.model import SourceDocument
from loaders.readers.locations import find_files
from tests.benchmarks.comparison import Comparison
from tests.benchmarks.corpora import DATA

QUESTIONS: Final = Path(__file__).with_name("document_questions.txt")
FOLDERS: Final[Mapping[str, Path]] = {
    "chapters": Path(__file__).parents[2] / "kg" / "docs",
    "handbook": bundle.folder("fixtures") / "files" / "handbook",
    "village": DATA / "zoning" / "chagrin-falls",
}
DEVELOPED_ON: Final = "chapters"
POOL: Final = 100
_LOST: Final = 0.01


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the file that answers it, and words of the file that do; no file: nothing answers it."""

    text: str
    path: str | None = None
    words: Sequence[str] = ()

    def is_answered(self, path: str, text: str) -> bool:
        """Whether a text of a file has words that answer it."""
        plain = flatten(text)
        return path == self.path and any(words in plain for words in self.words)


@dataclass(slots=True)
class Collection:
    """The chunks of a folder, and questions about them."""

    name: str
    units: list[IndexedUnit]
    questions: list[Question] = field(default_factory=list)
    unanswered: list[Question] = field(default_factory=list)

    @contextmanager
    def open_index(self) -> Iterator[EdgeIndex]:
        """Open a new index of the chunks, with every vector, and close it."""
        with tempfile.TemporaryDirectory(prefix="questions-") as folder:
            index = EdgeIndex(Path(folder), Settings())
            try:
                index.replace({"urn:files": GraphUnits("", self.units)})
                index.wait()
                yield index
            finally:
                index.close()


@dataclass(frozen=True, slots=True)
class Asked:
    """A question and the chunks that the index proposes, best first."""

    question: Question
    ranking: Ranking

    @property
    def candidates(self) -> Sequence[Candidate]:
        """The chunks."""
        return self.ranking.candidates

    @property
    def is_refused(self) -> bool:
        """Whether the answer has no results."""
        return estimate_relevance(self.candidates, self.ranking).refused


def flatten(text: str) -> str:
    """Put a text on one line, in lower case."""
    return " ".join(text.split()).casefold()


def get_path(unit: IndexedUnit) -> str:
    """Get the path of the file of a chunk, the beginning of its prelude."""
    return unit.prelude.partition(HEADING_SEPARATOR)[0]


def load_collection(name: str, folder: Path, questions: Path) -> Collection:
    """Read a folder as the loader does, and the questions about it that a chunk has the words for: chapters change."""
    units: list[IndexedUnit] = []
    for item in Reading().read(find_files([str(folder)], Settings(), FORMATS).files):
        if isinstance(item, SourceDocument):
            units += find_facts(item, {}).build_units("urn:files", {})
    found = Collection(name, units)
    for line in questions.read_text("utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        file, _, rest = line.partition(" |")
        words, _, text = rest.rpartition("| ")
        collection, _, path = file.partition("/")
        if collection != name:
            continue
        if path == "none":
            found.unanswered.append(Question(text))
            continue
        question = Question(text, path, [flatten(each) for each in words.split(" || ")])
        if not any(question.is_answered(get_path(unit), unit.text) for unit in units):
            print(f"{questions.name}: No chunk of {file} has the words that answer {text!r}. It is not asked.")
            continue
        found.questions.append(question)
    return found


def ask(index: EdgeIndex, questions: Iterable[Question]) -> list[Asked]:
    """Ask the index."""
    return [Asked(each, index.rank(each.text, limit=POOL)) for each in questions]


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    """Ask the questions about the folders that are there; with words alone and with their vectors beside each other."""
    for name, folder in FOLDERS.items():
        if not folder.is_dir():
            print(f"{name}: not measured, there is no {folder}")
            continue
        collection = load_collection(name, folder, QUESTIONS)
        units = {unit.iri: unit for unit in collection.units}
        with collection.open_index() as index:
            asked, none = ask(index, collection.questions), ask(index, collection.unanswered)
        groups = {"developed on": asked[::2], "held out": asked[1::2]} if name == DEVELOPED_ON else {"": asked}
        for group, some in groups.items():
            label = f"{name}, {len(some)} questions {group}".rstrip()
            ranks = [find_rank(each.question, each.candidates, units) for each in some]
            by_words = [
                find_rank(each.question, sorted(each.candidates, key=lambda one: -one.bm25), units) for each in some
            ]
            yield Comparison(f"{label}: answer is first", share(ranks, 1), share(by_words, 1), "")
            yield Comparison(f"{label}: answer among the first three", share(ranks, 3), share(by_words, 3), "")
            yield Comparison(f"{label}: mean reciprocal rank", mrr(ranks), mrr(by_words), "")
        for most in (SNIPPET_CHARACTERS, LONG_SNIPPET_CHARACTERS):
            right = sum(is_shown(each, units, most) for each in asked)
            yield Comparison(f"{name}: snippets of {most} that have the answer", right / len(asked), None, "")
        lost, refused = (sum(each.is_refused for each in some) / len(some) for some in (asked, none))
        yield Comparison(f"{name}: refused, answered", lost, None, "", f"<= {_LOST}", lost <= _LOST)
        yield Comparison(f"{name}: refused, unanswerable", refused, None, "")


def find_rank(question: Question, candidates: Sequence[Candidate], units: Mapping[str, IndexedUnit]) -> int:
    """Find the place of the first chunk that answers, from 0; POOL if none does."""
    places = (number for number, each in enumerate(candidates) if _answers(question, units[each.iri]))
    return next(places, POOL)


def share(ranks: Sequence[int], first: int) -> float:
    """Compute the share of ranks among the first ones."""
    return sum(rank < first for rank in ranks) / len(ranks)


def mrr(ranks: Sequence[int]) -> float:
    """Compute the mean reciprocal rank."""
    return sum(1 / (rank + 1) for rank in ranks) / len(ranks)


def is_shown(asked: Asked, units: Mapping[str, IndexedUnit], most: int) -> bool:
    """Whether the snippet of the first chunk that answers has the answer."""
    rank = find_rank(asked.question, asked.candidates, units)
    if rank == POOL:
        return False
    found = asked.candidates[rank]
    snippet = flatten(cut_excerpt(units[found.iri].text, asked.question.text, most, found.span).words)
    return any(words in snippet for words in asked.question.words)


def _answers(question: Question, unit: IndexedUnit) -> bool:
    return question.is_answered(get_path(unit), unit.text)
