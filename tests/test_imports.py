"""The import rule: who may know whom. It is what lets a part be read, tested and replaced alone."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted([*(ROOT / "kg").rglob("*.py"), *(ROOT / "loaders").rglob("*.py")])

LAYERS = [
    {"errors"}, {"settings"}, {"vocabulary"}, {"bundle"}, {"boundaries"}, {"interruption"}, {"printing"}, {"upstream"},
    {"sparql"},
    {"store"},
    {"search", "validation", "reasoning", "provenance"},
    {"knowledge_graph"},
    {"summaries"},
    {"tools"},
    {"server"},
    {"access"},
    {"cli", "answers", "console", "demo", "model_commands", "quarantine_commands", "summaries_commands",
     "validation_commands"},
]  # fmt: skip
LAYER = {name: number for number, layer in enumerate(LAYERS) for name in layer}
COMPOSITION_ROOTS = {"kg/cli.py", "kg/server/app.py", "kg/quarantine_commands.py", "kg/validation_commands.py"}

LOADERS_KNOW = {
    "kg.boundaries", "kg.bundle", "kg.errors", "kg.interruption", "kg.settings", "kg.upstream", "kg.vocabulary",
}  # fmt: skip
PIPELINE_KNOWS = LOADERS_KNOW | {
    "kg.knowledge_graph",
    "kg.printing",
    "kg.validation",
    "kg.provenance",
    "kg.store",
    "kg.search",
    "kg.sparql",
    "kg.summaries",
}
PIPELINE = {
    "pipeline",
    "reports",
    "stored",
    "identity",
    "quarantine",
    "retrying",
    "deriving",
    "memberships",
    "sources",
    "mentions",
    "codes",
    "stating",
    "findings",
    "receiving",
}
READ_BY_SOURCES = {"model", "readers", "chunking", "extraction"}
NOT_SOURCES = READ_BY_SOURCES | {"rdf", "__init__"} | PIPELINE

RDFLIB_FOLDERS = ("kg/validation/", "kg/reasoning/")
RDFLIB_FILES = ("kg/sparql/algebra.py",)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """All of a file's syntax tree."""
    return tuple(ast.walk(ast.parse(path.read_text())))


def imports(path: Path) -> Iterator[str]:
    """Every module that `path` imports, at any depth, as a dotted name; `from a import b` gives ``a.b``."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (origin, node.module or "") if part)
            yield from (f"{module}.{alias.name}" for alias in node.names)


def part_of(dotted: str) -> str:
    """The part of `kg` that a dotted name belongs to: ``kg.store.protocol.Store`` is of ``store``."""
    return dotted.split(".")[1]


def offences(path: Path) -> list[str]:
    here = path.relative_to(ROOT).with_suffix("").parts
    found = []
    for target in imports(path):
        top = target.split(".")[0]
        if here[0] == "kg" and top == "loaders" and name_of(path) not in COMPOSITION_ROOTS:
            found.append(f"kg knows no loaders: {target}")
        elif here[0] == "kg" and top == "kg" and len(here) > 1 and here[1] != "__init__":
            theirs = part_of(target) if target != "kg" else "__version__"
            if theirs == here[1] or theirs == "__version__":
                continue
            if theirs not in LAYER:
                found.append(f"{target} has no layer")
            elif LAYER[theirs] >= LAYER[here[1]] and LAYER[here[1]] != len(LAYERS) - 1:
                found.append(f"{here[1]} may not import {theirs}")
        elif here[0] == "loaders" and top == "kg":
            known = PIPELINE_KNOWS if here[1] in PIPELINE else LOADERS_KNOW
            if ".".join(target.split(".")[:2]) not in known and target != "kg.__version__":
                found.append(f"{here[1]} may not import {target}")
        elif here[0] == "loaders" and top == "loaders" and here[1] not in PIPELINE:
            theirs = target.split(".")[1]
            allowed = {"model"} if here[1] in NOT_SOURCES else READ_BY_SOURCES
            if theirs not in allowed | {here[1]}:
                found.append(f"{here[1]} may not import {target}")
    return found


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_a_module_imports_only_what_stands_to_its_left(path: Path) -> None:
    assert offences(path) == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("kg/store/x.py", "from kg.search import protocol"),
        ("kg/search/x.py", "import kg.validation"),
        ("kg/tools/x.py", "from loaders.pipeline import load"),
        ("kg/errors.py", "from kg.vocabulary import mint"),
        ("loaders/zoning.py", "from kg.store.oxigraph import OxigraphStore"),
        ("loaders/zoning.py", "from loaders.hansard import read"),
        ("loaders/model.py", "def f():\n    from loaders import rdf"),
    ],
)
def test_the_rule_catches_what_breaks_it(
    module: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / module
    path.parent.mkdir(parents=True)
    path.write_text(line)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert len(offences(path)) == 1


def test_only_the_server_is_asynchronous() -> None:
    asynchronous = [
        name_of(path)
        for path in MODULES
        if any(
            isinstance(node, ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith | ast.Await) for node in nodes(path)
        )
        and not name_of(path).startswith("kg/server/")
    ]
    assert asynchronous == []


def test_rdflib_and_pyshacl_stay_where_they_are_the_reference() -> None:
    strays = [
        (name_of(path), target)
        for path in MODULES
        for target in imports(path)
        if target.split(".")[0] in {"rdflib", "pyshacl", "owlrl"}
        and not name_of(path).startswith(RDFLIB_FOLDERS)
        and name_of(path) not in RDFLIB_FILES
    ]
    assert strays == []


def test_only_settings_reads_the_environment() -> None:
    """Handing the environment on to a child process (`os.environ` as the start of `env=`) is reading it too."""
    readers = [
        name_of(path)
        for path in MODULES
        if name_of(path) != "kg/settings.py"
        and any(
            (isinstance(node, ast.Attribute) and node.attr in {"environ", "environb", "getenv"})
            or (isinstance(node, ast.alias) and node.name in {"environ", "getenv"})
            for node in nodes(path)
        )
    ]
    assert readers == []


@pytest.mark.parametrize("path", MODULES, ids=name_of)
def test_no_module_outgrows_a_readers_patience(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 500
