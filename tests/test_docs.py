"""The documentation agrees with the code: generated tables, examples that parse, links that resolve."""

from __future__ import annotations

import ast
import importlib
import re
import shlex
from pathlib import Path

import pyoxigraph
import pytest
import typer

from kg import bundle
from kg.cli.main import app
from kg.errors import QuadciteError
from kg.sparql.service import find_clauses, replace_clauses
from kg.vocabulary import PREFIXES
from tests import generated_docs

ROOT = Path(__file__).parent.parent
PAGES = {path.relative_to(ROOT).as_posix(): path.read_text() for path in generated_docs.pages()}
TEXT = "\n".join(PAGES.values())
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def lines_of(language: str) -> list[str]:
    return [line for kind, block in BLOCKS if kind == language for line in block.splitlines() if line.strip()]


@pytest.mark.parametrize("page", PAGES)
def test_the_generated_parts_are_current(page: str) -> None:
    assert generated_docs.renewed(PAGES[page]) == PAGES[page], "run `make docs`"


def test_every_generated_part_is_in_one_page() -> None:
    assert sorted(name for _, name, _, _ in generated_docs.SECTION.findall(TEXT)) == [
        "clients",
        "climate_columns",
        "climate_layouts",
        "commands",
        "data_directory",
        "deployments",
        "derivations",
        "errors",
        "groups",
        "modules",
        "permissions",
        "prompts",
        "scale_figures",
        "scale_plan",
        "settings",
        "standards",
        "tools",
        "writing_tools",
    ]


def test_every_chapter_has_a_topic() -> None:
    assert {Path(page).stem for page in PAGES if page != "README.md"} == set(bundle.CHAPTERS)


def test_the_architecture_names_every_package() -> None:
    packages = {f"kg/{path.name}" for path in (ROOT / "kg").iterdir() if path.name not in ("docs", "_data")}
    packages |= {f"loaders/{path.name}" for path in (ROOT / "loaders").iterdir()}
    chapter = PAGES["kg/docs/architecture.md"]
    assert [name for name in sorted(packages) if "__" not in name and f"`{name}`" not in chapter] == []


def test_the_architecture_names_modules_that_exist() -> None:
    roots = ("kg", "loaders", "ontology")
    modules = [path.with_suffix("").as_posix() for root in roots for path in (ROOT / root).rglob("*")]
    named = set(re.findall(r"`([a-z_]+(?:/[a-z_0-9]+)+)`", PAGES["kg/docs/architecture.md"]))
    missing = [name for name in named if not any(module.endswith(f"/{name}") for module in modules)]
    assert [name for name in sorted(missing) if not name.startswith("graph/")] == []


def test_the_readme_is_short() -> None:
    assert len(PAGES["README.md"].splitlines()) <= 160


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
    words = shlex.split(line.replace("GENERATION", "1"), comments=True)[1:]
    command = typer.main.get_command(app)
    path = "kg"
    while hasattr(command, "commands"):
        path, command = f"{path} {words[0]}", command.commands[words.pop(0)]
    command.make_context(path, words).close()


def test_every_make_example_is_a_target() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    asked = {line.split()[1] for line in lines_of("sh") if line.startswith("make ")}
    assert asked
    assert asked <= targets


@pytest.mark.parametrize("block", [block for kind, block in BLOCKS if kind == "sparql"])
def test_every_query_parses_with_the_prefixes_that_are_declared(block: str) -> None:
    answered = replace_clauses(
        block, [(clause, "") for clause in find_clauses(block)]
    )  # or the engine would ask kg:search
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


@pytest.mark.parametrize(
    ("page", "link"),
    sorted({(page, link) for page, text in PAGES.items() for link in re.findall(r"\]\((?!https?:)([^)]+)\)", text)}),
)
def test_every_link_within_the_project_resolves(page: str, link: str) -> None:
    name, _, anchor = link.partition("#")
    path = (ROOT / page).parent / name if name else ROOT / page
    assert path.exists()
    if anchor:
        headings = re.findall(r"^#+ (.*)$", path.read_text(), re.MULTILINE)
        assert anchor in {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:kg|loaders|tests)/[\w./]+)`", TEXT))))
def test_every_file_that_is_named_is_there(name: str) -> None:
    assert (ROOT / name).exists()


def test_the_exit_codes_are_those_of_the_command_line() -> None:
    from kg.cli import output

    for code, word in ((output.FAILURE, "failure"), (output.USAGE, "usage"), (output.SOME_REJECTED, "loaded, but")):
        assert f"{code} {word}" in TEXT
