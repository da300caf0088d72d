"""Does search find the part of a document that answers, does the snippet show it, and is the relevance right?

``python -m tests.benchmarks questions [-- FOLDER=COLLECTION QUESTIONS]``. The questions of `document_questions.txt` are put to
the project's own chapters and to the handbook of the fixtures. Half of the questions about the chapters (every second one)
are for development, the others are held out. A chunk is right if it has the words of the file that answer the question.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from kg import bundle
from kg.search.index_client import EdgeIndex
from kg.search.protocol import Candidate, GraphUnits, IndexedUnit
from kg.search.relevance import assess_relevance
from kg.settings import Settings
from kg.text import HEADING_SEPARATOR
from kg.tools.search.passages import build_snippet
from loaders.files.loader import MEDIA_TYPES, Reading
from loaders.indexed_facts import find_facts
from loaders.model import SourceDocument
from loaders.readers.locations import find_files
from tests.benchmarks.comparison import Comparison

QUESTIONS: Final = Path(__file__).with_name("document_questions.txt")
FOLDERS: Final[Mapping[str, Path]] = {
    "chapters": Path(__file__).parents[2] / "kg" / "docs",
    "handbook": bundle.folder("fixtures") / "files" / "handbook",
}
POOL: Final = 100
PAGE: Final = 10


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
        with tempfile.TemporaryDirectory(prefix="quadcite-questions-") as folder:
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
    candidates: Sequence[Candidate]


def flatten(text: str) -> str:
    """Put a text on one line, in lower case."""
    return " ".join(text.split()).casefold()


def get_path(unit: IndexedUnit) -> str:
    """Get the path of the file of a chunk, the beginning of its prelude."""
    return unit.prelude.partition(HEADING_SEPARATOR)[0]


def load_collection(name: str, folder: Path, questions: Path) -> Collection:
    """Read a folder as the loader does, and the questions about it. Raises ValueError for words that no chunk has."""
    units: list[IndexedUnit] = []
    for item in Reading().read(find_files([str(folder)], Settings(), list(MEDIA_TYPES)).files):
        if isinstance(item, SourceDocument):
            units += find_facts(item, {}).build_units("urn:files", {})
    found = Collection(name, units)
    for line in questions.read_text("utf-8").splitlines():
        if line.startswith("#") or not line.strip():
            continue
        file, words, text = (part.strip() for part in line.split(" |", 1)[0:1] + line.split(" |", 1)[1].rsplit("| ", 1))
        collection, _, path = file.partition("/")
        if collection != name:
            continue
        if path == "none":
            found.unanswered.append(Question(text))
            continue
        question = Question(text, path, [flatten(each) for each in words.split(" || ")])
        if not any(question.is_answered(get_path(unit), unit.text) for unit in units):
            raise ValueError(f"{questions.name}: No chunk of {file} has the words that answer {text!r}.")
        found.questions.append(question)
    return found


def ask(index: EdgeIndex, questions: Iterable[Question]) -> list[Asked]:
    """Ask the index."""
    return [Asked(each, index.rank(each.text, limit=POOL).candidates) for each in questions]
