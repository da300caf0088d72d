"""Generate the parts of the documentation that come from the code (``make docs``)."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import typer
from platformdirs import user_cache_path
from pydantic_core import PydanticUndefined

from kg import bundle, errors
from kg.cli.main import app
from kg.clients.configurations import CLIENTS
from kg.clients.prompts import PROMPTS
from kg.data_directory import ENTRIES
from kg.provenance.permissions import FAMILIES
from kg.settings import Settings
from kg.tools.calls import SHARED
from kg.tools.derivations import DEFINITIONS
from kg.tools.mounts import MOUNTS
from kg.tools.registry import TOOLS, mounted
from kg.vocabulary import BASE
from loaders.climate.layouts import BODY, HEAD, load_layouts
from tests.benchmarks import scale_report
from tests.conformance import figures

ROOT = Path(__file__).parent.parent
SECTION = re.compile(r"(<!-- made: (\w+) -->\n)(.*?)(<!-- end -->)", re.DOTALL)


def commands() -> Iterator[tuple[str, str]]:
    """Each command as one writes it, with all that it takes, and its help."""

    def walk(command, path: str):  # type: ignore[no-untyped-def]  # the click inside typer has no public types
        if hasattr(command, "commands"):
            for name, child in command.commands.items():
                yield from walk(child, f"{path} {name}")
            return
        words = [path]
        for param in command.params:
            if param.name == "help":
                continue
            if param.param_type_name == "argument":
                word = (param.metavar or param.name).upper() + ("..." if param.nargs == -1 else "")
                words.append(word if param.required else f"[{word}]")
            else:
                flag = max(param.opts, key=len)
                value = param.metavar or param.name.upper()
                words.append(f"[{flag}]" if param.is_flag else f"[{flag} {value}]")
        yield " ".join(words), " ".join((command.help or "").split())

    yield from walk(typer.main.get_command(app), "kg")


def settings() -> Iterator[tuple[str, str, str]]:
    """Each setting with its default and its help."""
    for name, field in Settings.model_fields.items():
        default = field.get_default(call_default_factory=True)
        text = "" if default in (None, (), PydanticUndefined) else str(default)
        text = text.replace(str(user_cache_path("quadcite")), "~/.cache/quadcite")
        yield f"QUADCITE_{name.upper()}", text, field.description or ""


def raised() -> Iterator[type[errors.QuadciteError]]:
    """Each error class that carries a code of its own."""
    found = [item for _, item in inspect.getmembers(errors, inspect.isclass) if issubclass(item, errors.QuadciteError)]
    yield from sorted((item for item in found if item is not errors.QuadciteError), key=lambda item: item.code)


def tools() -> Iterator[tuple[str, str, str, str]]:
    """Each tool with its arguments, the tags that mount it, what it does and when to use it."""
    for tool in TOOLS:
        does, _, more = tool.description.partition("\n\n")
        use = re.match(r"Use .*?\.(?=\s|$)", " ".join(more.split()))
        yield (
            f"`{tool.alias}({', '.join(name for name in tool.arguments.model_fields if name not in SHARED)})`",
            ", ".join(sorted(tool.tags)),
            " ".join(does.split()),
            use[0] if use else "",
        )


def prompts() -> Iterator[tuple[str, str, str, str]]:
    """Each prompt with its arguments, those that are not required in brackets, and the mounts that offer it."""
    for prompt in PROMPTS:
        names = (each.name if each.required else f"[{each.name}]" for each in prompt.arguments)
        paths = (f"`{path}`" for path, mount in MOUNTS.items() if prompt.is_on(mount.tags))
        yield f"`{prompt.name}`", ", ".join(names), prompt.description, ", ".join(paths)


def permissions() -> Iterator[tuple[str, ...]]:
    """Each family of graphs with its rights by kind of request."""
    for family in FAMILIES:
        rights = (family.get_right(method) for method in ("PUT", "POST", "DELETE", "UPDATE"))
        yield f"`{family.prefix.removeprefix(BASE)}`", family.contents, *rights, family.tools


def writing_tools() -> Iterator[tuple[str, str, str]]:
    """Each tool that writes, with the scope that it needs and the graphs that it writes."""
    for tool in TOOLS:
        if tool.writes:
            families = (family for family in FAMILIES if family.prefix in tool.writes)
            shown = (f"`{family.prefix.removeprefix(BASE)}` ({family.tools})" for family in families)
            yield f"`{tool.name}`", tool.scope, ", ".join(shown)


def modules() -> Iterator[tuple[str, str]]:
    """Each module of both packages with the first paragraph of its docstring."""
    for package in ("kg", "loaders"):
        for path in sorted((ROOT / package).rglob("*.py")):
            does, _, _ = (ast.get_docstring(ast.parse(path.read_text())) or "").partition("\n\n")
            if path.stem.strip("_") not in {"init", "main"} or path.name == "main.py":
                yield f"`{path.relative_to(ROOT)}`", " ".join(does.split())


def climate_columns() -> Iterator[tuple[str, str]]:
    """Yield each field of a climate document or passage with its names in all layouts."""
    layouts = [layout.fields for layout in load_layouts().by_name.values()]
    for field in (*HEAD, *BODY):
        columns = (each.column for fields in layouts for each in fields.get(field, ()))
        yield f"`{field}`", ", ".join(f"`{name}`" for name in dict.fromkeys(columns))


def climate_layouts() -> Iterator[tuple[str, str, str]]:
    """Yield each layout of climate documents with its content, and the names by which it is recognized."""
    for layout in load_layouts().by_name.values():
        yield f"`{layout.name}`", layout.description, ", ".join(f"`{name}`" for name in layout.requires)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _table(head: tuple[str, ...], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join("| " + " | ".join(_cell(cell) for cell in line) + " |\n" for line in lines)


def made(section: str) -> str:
    """The text of one generated section."""
    match section:
        case "commands":
            return _table(("command", "what it does"), ((f"`{usage}`", text) for usage, text in commands()))
        case "settings":
            rows = ((f"`{name}`", f"`{default}`" if default else "", text) for name, default, text in settings())
            return _table(("setting", "default", "what it is"), rows)
        case "errors":
            rows = (
                (f"`{item.code}`", str(item.http_status), "yes" if item.retryable else "", inspect.getdoc(item) or "")
                for item in raised()
            )
            return _table(("code", "HTTP", "try again", "meaning"), rows)
        case "tools":
            return _table(("tool", "tags", "what it does", "use when"), tools())
        case "permissions":
            head = ("graphs", "contents", "PUT", "POST", "DELETE", "SPARQL update", "tools")
            return _table(head, permissions())
        case "writing_tools":
            return _table(("tool", "scope", "graphs that it writes"), writing_tools())
        case "standards":
            return _table(("W3C test suite", "tests", "passed", "the others, each an expected failure"), figures.rows())
        case "modules":
            return _table(("module", "contents"), modules())
        case "scale_figures":
            head, *rows = scale_report.list_figures(scale_report.load_figures())
            return _table(head, iter(rows))
        case "scale_plan":
            head, *rows = scale_report.list_plan(scale_report.load_figures())
            return _table(head, iter(rows))
        case "climate_columns":
            return _table(("field", "columns or members"), climate_columns())
        case "climate_layouts":
            return _table(("layout", "content", "recognized by"), climate_layouts())
        case "data_directory":
            return _table(
                ("path", "contents", "kind", "format", "written again by"),
                (
                    (f"`{each.name}`", each.contents, each.kind, str(each.version or ""), each.source)
                    for each in ENTRIES
                ),
            )
        case "derivations":
            rows = ((f"`{each.name}`", each.purpose, each.kind) for each in DEFINITIONS.values())
            return _table(("derivation", "what it finds", "computed"), rows)
        case "clients":
            rows = ((f"`{each.name}`", each.title, each.place) for each in CLIENTS.values())
            return _table(("name", "client", "use"), rows)
        case "deployments":
            rows = ((f"`{name}`", f"`{file}`", purpose) for name, (file, purpose) in bundle.DEPLOYMENTS.items())
            return _table(("name", "file", "purpose"), rows)
        case "prompts":
            return _table(("prompt", "arguments", "job", "mounts"), prompts())
        case "groups":
            return _table(("MCP path", "tools", "names"), tool_groups())
    raise ValueError(f"the documentation has a section {section!r} that nothing makes")


def renewed(text: str) -> str:
    """`text` with its generated sections as the code says them now."""
    return SECTION.sub(lambda match: match[1] + made(match[2]) + match[4], text)


def pages() -> list[Path]:
    """Return the files of the documentation: the README and the chapters."""
    return [ROOT / "README.md", *sorted((ROOT / "kg" / "docs").glob("*.md"))]


def tool_groups() -> Iterator[tuple[str, str, str]]:
    """Yield each path that serves tools over MCP, with their number and names."""
    for path, mount in MOUNTS.items():
        names = [f"`{tool.alias}`" for tool in mounted(mount.tags)]
        yield f"`{path}`", str(len(names)), ", ".join(names) if mount.tags else "all of the above"


if __name__ == "__main__":
    figures.renew()
    (ROOT / "kg" / "docs" / "scaling.svg").write_text(scale_report.draw(scale_report.load_figures()))
    for page in pages():
        page.write_text(renewed(page.read_text()))
