"""The README says what the code does: its tables are made from the code, its examples parse, its links resolve."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from pathlib import Path

import pyoxigraph
import pytest
import typer

from kg.cli.main import app
from kg.errors import QuadciteError
from kg.sparql.service import clauses, replace
from kg.vocabulary import PREFIXES
from tests import generated_docs

ROOT = Path(__file__).parent.parent
TEXT = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def lines_of(language: str) -> list[str]:
    return [line for kind, block in BLOCKS if kind == language for line in block.splitlines() if line.strip()]


def test_the_tables_are_what_the_code_says_now() -> None:
    assert generated_docs.renewed(TEXT) == TEXT, "run `make docs`"


def test_every_table_is_there() -> None:
    assert {name for _, name, _, _ in generated_docs.SECTION.findall(TEXT)} == {
        "tools",
        "commands",
        "settings",
        "errors",
        "standards",
    }


def test_every_error_has_a_code_and_a_meaning_of_its_own() -> None:
    raised = list(generated_docs.raised())
    assert len({item.code for item in raised}) == len(raised) > 10
    assert all(item.__doc__ != QuadciteError.__doc__ for item in raised)


def test_every_setting_says_what_it_is() -> None:
    assert [name for name, _, text in generated_docs.settings() if not text.endswith(".")] == []


def test_every_command_says_what_it_does() -> None:
    assert [usage for usage, text in generated_docs.commands() if not text.endswith(".")] == []


@pytest.mark.parametrize("line", [line for line in lines_of("sh") if re.match(r"(\S*/)?kg ", line)])
def test_every_kg_example_is_one_that_the_command_line_takes(line: str) -> None:
    words = shlex.split(line, comments=True)[1:]
    command = typer.main.get_command(app)
    path = "kg"
    while hasattr(command, "commands"):
        path, command = f"{path} {words[0]}", command.commands[words.pop(0)]
    command.make_context(path, words).close()


def test_every_make_example_is_a_target() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = {line.split()[1] for line in lines_of("sh") if line.startswith("make ")}
    assert asked
    assert asked <= targets


@pytest.mark.parametrize("block", [block for kind, block in BLOCKS if kind == "sparql"])
def test_every_query_parses_with_the_prefixes_that_are_declared(block: str) -> None:
    answered = replace(block, [(clause, "") for clause in clauses(block)])  # or the engine would ask kg:search
    assert list(pyoxigraph.Store().query(answered, prefixes=PREFIXES)) == []


@pytest.mark.parametrize("block", [block for kind, block in BLOCKS if kind == "python"])
def test_every_python_example_compiles_and_imports_what_exists(block: str) -> None:
    for node in ast.walk(ast.parse(block)):
        if isinstance(node, ast.Import):
            for alias in node.names:
                importlib.import_module(alias.name)
        elif isinstance(node, ast.ImportFrom):
            module = importlib.import_module(node.module or "")
            assert all(hasattr(module, alias.name) for alias in node.names)


def test_every_block_says_what_it_is_in() -> None:
    assert len(BLOCKS) * 2 == len(re.findall(r"^```", TEXT, re.MULTILINE))


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\]\(([^)#:]+)\)", TEXT))))
def test_every_link_into_the_project_resolves(target: str) -> None:
    assert (ROOT / target).exists()


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:kg|loaders|tests)/[\w./]+)`", TEXT))))
def test_every_file_that_is_named_is_there(name: str) -> None:
    assert (ROOT / name).exists()


def test_the_exit_codes_are_those_of_the_command_line() -> None:
    from kg.cli import output

    for code, word in ((output.FAILURE, "failure"), (output.USAGE, "usage"), (output.SOME_REJECTED, "loaded, but")):
        assert f"{code} {word}" in TEXT
