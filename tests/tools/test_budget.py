"""The sixty questions of the budget benchmark are answered, within their tokens."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from kg.knowledge_graph import KnowledgeGraph
from tests.benchmarks.budget import KINDS, P95_TOKENS, Question, ask, load_questions, open_fixtures

pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    with open_fixtures(tmp_path_factory.mktemp("budget")) as opened:
        yield opened


def test_there_are_sixty_questions_of_all_kinds_on_all_mounts():
    questions = load_questions()
    assert len(questions) == len({question.asks for question in questions}) == 60
    assert min(Counter(question.kind for question in questions)[kind] for kind in KINDS) >= 5
    assert len({question.mount for question in questions}) == 6


@pytest.mark.parametrize("question", load_questions(), ids=lambda question: question.asks)
def test_a_question_is_answered_within_its_tokens(loaded: KnowledgeGraph, question: Question) -> None:
    outcome = ask(loaded, question)
    assert outcome.missed == []
    assert outcome.tokens <= P95_TOKENS
