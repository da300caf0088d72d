"""Tests that the time of every regular expression grows no faster than the text that it reads."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from typing import Final

import pytest

from tests.superlinear_patterns import Use, find_superlinear, list_uses

CUT: Final = {
    "loaders.citations.family_names._CAPITAL_BEFORE": 40,
    "loaders.citations.laws._FEDERAL_BEFORE": 20,
    "loaders.citations.section_citations._BEFORE": "_DOCUMENT_REACH",
    "loaders.readers.headings._WORDED": "LONGEST",
    "loaders.readers.headings._SEVERAL": "LONGEST",
    "loaders.readers.headings._STATUS_AFTER": "LONGEST",
}
"""Patterns whose time grows faster than their text, which is cut to this length, or to that of a constant."""
_MOST: Final = 500
"""Maximum of these lengths."""


@pytest.mark.parametrize(
    ("pattern", "method"),
    [(r"x *([^\n]*\S)", "finditer"), (r"\s+$", "search"), (r"(?:a+)+b", "fullmatch"), (r"\(.*?\)", "sub")],
)
def test_superlinear_patterns_are_found(pattern: str, method: str) -> None:
    assert find_superlinear(Use("", "", re.compile(pattern), frozenset({method})))


@pytest.mark.parametrize(
    ("pattern", "method"), [(r"(?<!\s)\s++$", "search"), (r"(?:a++b)+", "fullmatch"), (r"\([^()]{0,80}\)", "sub")]
)
def test_linear_patterns_pass(pattern: str, method: str) -> None:
    assert find_superlinear(Use("", "", re.compile(pattern), frozenset({method}))) is None


@pytest.mark.long
@pytest.mark.measures_processor_time
def test_patterns_are_linear() -> None:
    uses = list_uses("kg", "loaders")
    assert {use.key: text for use in uses if use.key not in CUT and (text := find_superlinear(use))} == {}
    assert {use.key for use in uses} >= CUT.keys()


@pytest.mark.parametrize("key", CUT)
def test_texts_of_other_patterns_are_cut(key: str) -> None:
    module, _, name = key.rpartition(".")
    code, cut = importlib.import_module(module), CUT[key]
    length = cut if isinstance(cut, int) else vars(code)[cut]
    assert length <= _MOST
    functions = [node for node in ast.walk(ast.parse(inspect.getsource(code))) if isinstance(node, ast.FunctionDef)]
    using = [node for node in functions if name in _list_words(node)]
    assert using
    assert all(str(cut) in _list_words(node) for node in using)


def _list_words(function: ast.FunctionDef) -> set[str]:
    """List the names and the numbers in a function."""
    nodes = list(ast.walk(function))
    numbers = {str(node.value) for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, int)}
    return numbers | {node.id for node in nodes if isinstance(node, ast.Name)}
