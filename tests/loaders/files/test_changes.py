"""Paths that wait until they rest: bursts, deadlines, the bound, and files that were moved."""

from __future__ import annotations

import math

from loaders.files.changes import DEADLINE_S, MOST_PENDING, PendingChanges


def test_path_is_due_once_it_rests_and_a_burst_counts_once() -> None:
    pending = PendingChanges(0.3)
    for at in (0.0, 0.1, 0.2):
        pending.add("a.md", at)
    pending.add("b.md", 0.25)
    assert (len(pending), pending.find_due()) == (2, 0.5)
    assert pending.take(0.4) == ([], {})
    assert pending.take(0.5) == (["a.md"], {})
    assert pending.take(0.55) == (["b.md"], {})
    assert (len(pending), pending.find_due()) == (0, math.inf)


def test_path_that_never_rests_is_due_at_its_deadline() -> None:
    pending = PendingChanges(0.3)
    for number in range(1_000):
        pending.add("log.md", number / 10)
        if pending.take(number / 10)[0]:
            break
    assert number / 10 == DEADLINE_S


def test_both_paths_of_a_move_are_due_together() -> None:
    pending = PendingChanges(0.3)
    pending.add_move("a.md", "b.md", 0.0)
    pending.add("b.md", 0.2)
    assert pending.take(0.3) == ([], {})
    pending.add_move("b.md", "c.md", 0.4)
    assert pending.take(0.8) == (["a.md", "b.md", "c.md"], {"c.md": "a.md"})
    assert pending.take(9.0) == ([], {})


def test_too_many_paths_are_replaced_by_a_search() -> None:
    pending = PendingChanges(0.3)
    for number in range(MOST_PENDING + 50):
        pending.add(f"{number}.md", 1.0)
    assert (len(pending), pending.overflown_at) == (0, 1.0)
    assert pending.find_due() == 1.3
    pending.add("a.md", 100.0)
    assert pending.find_due() == 1.0 + DEADLINE_S
    pending.clear()
    pending.add("a.md", 100.0)
    assert pending.take(100.3) == (["a.md"], {})
