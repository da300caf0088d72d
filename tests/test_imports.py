"""The import rule: which package may import which. It keeps each package readable, testable and replaceable alone."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Mapping, Set
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted([*(ROOT / "kg").rglob("*.py"), *(ROOT / "loaders").rglob("*.py")])

LAYERS = [
    {"data_directory"}, {"errors"}, {"text"}, {"settings"}, {"vocabulary"}, {"observability"}, {"access"}, {"bundle"},
    {"allowed_files", "files", "fuzzy_names", "languages", "words"},
    {"calendar_dates", "iso3166", "partial_dates", "wikidata_properties"}, {"interruption"}, {"ingestion"},
    {"remote"},
    {"sparql"}, {"connectors"},
    {"ontology"},
    {"processes"},
    {"store"},
    {"queries"},
    {"search", "shacl", "provenance"},
    {"derivations", "load_log", "load_queue"},
    {"load_schedule"},
    {"knowledge_graph"},
    {"integrity", "loading", "user_graphs"},
    {"retrieval"},
    {"zoning_summaries"},
    {"tools"},
    {"clients"},
    {"server"},
    {"cli"},
]  # fmt: skip
LAYER = {name: number for number, layer in enumerate(LAYERS) for name in layer}
ABOVE_LOADERS = {"loading", "retrieval", "tools", "server", "cli"}
"""The layers of kg above loaders, which may import them. Loaders import none of these."""
APPLICATION = "kg/server/app.py"

LOADERS_KNOW = {
    "kg.bundle", "kg.calendar_dates", "kg.data_directory", "kg.errors", "kg.files", "kg.fuzzy_names", "kg.ingestion",
    "kg.interruption", "kg.iso3166", "kg.languages", "kg.partial_dates", "kg.processes", "kg.remote", "kg.settings",
    "kg.text", "kg.vocabulary", "kg.wikidata_properties", "kg.words",
}  # fmt: skip
STORE_READERS_KNOW = LOADERS_KNOW | {
    "kg.access",
    "kg.derivations",
    "kg.knowledge_graph",
    "kg.provenance",
    "kg.search",
    "kg.shacl",
    "kg.sparql",
    "kg.store",
}
PIPELINE = {
    "batches",
    "confined_loads",
    "confined_process",
    "derivations",
    "dispatch",
    "indexed_facts",
    "load_report",
    "model",
    "pipeline",
    "quarantine",
    "quarantine_retry",
    "record_identities",
    "sources",
    "with_record",
}
"""The root modules of loaders. Only those in `COMPOSITION` import the domains."""
COMPOSITION = {"sources", "derivations"}
SOURCES_KNOWN_TO = {"quarantine_retry"}
"""The modules of loaders that look up the loader of a source; all others are given one."""
SHARED_BY_DOMAINS = {"file_formats", "model", "readers", "citations"}
READ_ALL_DOMAINS = {"languages", "mentions"}
MATCHING = ("loaders.mentions.matcher.", "loaders.mentions.label_variants.", "loaders.mentions.tokens.")
"""The pure matcher of names, which domains may use too."""

RDFLIB_FOLDERS = ("kg/shacl/",)
RDFLIB_FILES = ("kg/sparql/algebra.py",)


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def nodes(path: Path) -> tuple[ast.AST, ...]:
    """Return all nodes of a file's syntax tree."""
    return tuple(ast.walk(ast.parse(path.read_text())))


def imports(path: Path) -> Iterator[str]:
    """Yield every module that `path` imports, at any depth, as a dotted name; `from a import b` gives ``a.b``."""
    package = path.relative_to(ROOT).with_suffix("").parts[:-1]
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            origin = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (origin, node.module or "") if part)
            yield from (f"{module}.{alias.name}" for alias in node.names)


def may_read_the_store(here: tuple[str, ...]) -> bool:
    """Whether a module of loaders may import the store: root modules, and ``graph`` packages within a domain."""
    return here[1] in PIPELINE or "graph" in here[2:-1]


def offences(path: Path) -> list[str]:
    here = path.relative_to(ROOT).with_suffix("").parts
    found = []
    for target in imports(path):
        parts = target.split(".")
        if parts[0] not in ("kg", "loaders") or target in ("kg", "kg.__version__", "loaders"):
            continue
        theirs = parts[1]
        if here[0] == "kg" and parts[0] == "loaders":
            if here[1].removesuffix(".py") not in ABOVE_LOADERS:
                found.append(f"{here[1]} may not import {target}")
        elif here[0] == "kg":
            if theirs == here[1] or here[1] == "__init__":
                continue
            if theirs not in LAYER:
                found.append(f"{target} has no layer")
            elif LAYER[theirs] >= LAYER[here[1]]:
                found.append(f"{here[1]} may not import {theirs}")
        elif parts[0] == "kg":
            known = STORE_READERS_KNOW if may_read_the_store(here) else LOADERS_KNOW
            if f"kg.{theirs}" not in known:
                found.append(f"{name_of(path)} may not import {target}")
        elif theirs != here[1] and here[1] not in COMPOSITION:
            allowed = PIPELINE | READ_ALL_DOMAINS | SHARED_BY_DOMAINS if may_read_the_store(here) else SHARED_BY_DOMAINS
            if target.startswith(MATCHING):
                continue
            if theirs not in allowed or (theirs in COMPOSITION and here[1] not in SOURCES_KNOWN_TO):
                found.append(f"{name_of(path)} may not import {target}")
    return found


def test_modules_import_only_from_lower_layers() -> None:
    assert [offence for path in MODULES for offence in offences(path)] == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("kg/store/x.py", "from kg.search import protocol"),
        ("kg/search/x.py", "import kg.shacl"),
        ("kg/store/x.py", "from loaders.pipeline import load"),
        ("kg/errors.py", "from kg.vocabulary import mint"),
        ("loaders/zoning/readers/x.py", "from kg.store.oxigraph import OxigraphStore"),
        ("loaders/zoning/graph/x.py", "from kg.tools.registry import TOOLS"),
        ("loaders/zoning/x.py", "from loaders.hansard import parties"),
        ("loaders/zoning/graph/x.py", "from loaders import sources"),
        ("loaders/pipeline.py", "from loaders.sources import build_loader"),
        ("loaders/readers/x.py", "def f():\n    from loaders import sources"),
    ],
)
def test_the_rule_rejects_what_breaks_it(
    module: str, line: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / module
    path.parent.mkdir(parents=True)
    path.write_text(line)
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    assert len(offences(path)) == 1


def package_of(module: str, modules: Mapping[str, Path]) -> str:
    """Return the package of a module: its folder, or the module itself at the root of kg or loaders.

    The application is a package of its own too: it imports the packages inside its folder, which import that folder.
    """
    folder = modules[module].parent.relative_to(ROOT).as_posix().replace("/", ".")
    alone = folder in ("kg", "loaders") or name_of(modules[module]) == APPLICATION
    return module if alone else folder


def dependencies_of_packages() -> dict[str, set[str]]:
    modules = {name_of(path).removesuffix(".py").removesuffix("/__init__").replace("/", "."): path for path in MODULES}
    found: dict[str, set[str]] = defaultdict(set)
    for module, path in modules.items():
        for target in imports(path):
            while target and target not in modules:
                target = target.rpartition(".")[0]
            if target and package_of(target, modules) != package_of(module, modules):
                found[package_of(module, modules)].add(package_of(target, modules))
    return found


def circles(graph: Mapping[str, Set[str]]) -> list[list[str]]:
    """Return the strongly connected components of more than one node (Tarjan 1972)."""
    number: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        number[node] = lowest[node] = len(number)
        stack.append(node)
        for target in graph.get(node, ()):
            if target not in number:
                visit(target)
                lowest[node] = min(lowest[node], lowest[target])
            elif target in stack:
                lowest[node] = min(lowest[node], number[target])
        if lowest[node] == number[node]:
            start = stack.index(node)
            component = stack[start:]
            del stack[start:]
            if len(component) > 1:
                found.append(sorted(component))

    for node in list(graph):
        if node not in number:
            visit(node)
    return found


def test_no_packages_import_each_other() -> None:
    assert circles(dependencies_of_packages()) == []


def test_a_circle_of_packages_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"a"}, "d": {"a"}}) == [["a", "b", "c"]]


def test_only_the_server_is_asynchronous() -> None:
    asynchronous = [
        name_of(path)
        for path in MODULES
        if any(
            isinstance(node, ast.AsyncFunctionDef | ast.AsyncFor | ast.AsyncWith | ast.Await) for node in nodes(path)
        )
        and not name_of(path).startswith("kg/server/")
    ]
    assert asynchronous == [
        "kg/cli/demo.py",
        "kg/connectors/mcp_session.py",
    ]  # MCP clients: their library is asynchronous


def test_rdflib_and_pyshacl_are_imported_only_where_they_are_the_reference() -> None:
    strays = [
        (name_of(path), target)
        for path in MODULES
        for target in imports(path)
        if target.split(".")[0] in {"rdflib", "pyshacl", "owlrl"}
        and not name_of(path).startswith(RDFLIB_FOLDERS)
        and name_of(path) not in RDFLIB_FILES
    ]
    assert strays == []


def test_qdrant_edge_is_imported_only_by_the_shard_with_its_conditions_and_the_analyzers() -> None:
    """Its types cannot be sent to another process: all others use those of `kg.search.points`."""
    importers = {name_of(path) for path in MODULES for target in imports(path) if target.startswith("qdrant_edge")}
    assert importers == {"kg/search/analyzers.py", "kg/search/conditions.py", "kg/search/shard.py"}


def test_only_settings_reads_the_environment() -> None:
    """Passing the environment on to a child process (`os.environ` as the start of `env=`) is reading it too."""
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
