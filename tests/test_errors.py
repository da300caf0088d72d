"""The error tree in the docstring of `kg.errors` is the tree of classes."""

from __future__ import annotations

import inspect
import re

import pytest

from kg import errors

CLASSES = [
    value for value in vars(errors).values() if inspect.isclass(value) and issubclass(value, errors.QuadciteError)
]


def drawn() -> list[tuple[str, str]]:
    """Each class of the docstring with its parent there."""
    parents: list[str] = []
    found = []
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"^    ([│├└─ ]*)(\w+Error)\b", line)
        if match is None:
            continue
        depth = len(match[1]) // 4
        del parents[depth:]
        found.append((match[2], parents[-1] if parents else "Exception"))
        parents.append(match[2])
    return found


def test_the_drawn_tree_is_the_tree_of_classes() -> None:
    assert sorted(drawn()) == sorted((kind.__name__, kind.__bases__[0].__name__) for kind in CLASSES)


def test_each_code_names_one_error() -> None:
    codes = [kind.code for kind in CLASSES]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("kind", CLASSES)
def test_each_error_says_what_it_is_for_machines_and_people(kind: type[errors.QuadciteError]) -> None:
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", kind.code)
    assert 400 <= kind.http_status < 600
    assert kind.__doc__
    assert str(kind("what is wrong")) == "what is wrong"
