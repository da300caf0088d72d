"""HTML pages from templates, always escaped, and sent with a policy that allows only the server's own files."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from kg.server.static import find_file
from kg.text import MAX_QUOTED_CHARS, quoted

_FORMAT_NAMES: Final = {
    "text/turtle": ("Turtle", "ttl"),
    "application/n-triples": ("N-Triples", "nt"),
    "application/rdf+xml": ("RDF/XML", "rdf"),
    "application/ld+json": ("JSON-LD", "jsonld"),
    "application/trig": ("TriG", "trig"),
    "application/n-quads": ("N-Quads", "nq"),
}
_FOLDER: Final = Path(__file__).parent / "templates"

STYLE: Final = "style.css"


@dataclass(frozen=True, slots=True)
class Link:
    """A link of the navigation."""

    href: str
    text: str


NAVIGATION: Final = (
    Link("/search", "Search"),
    Link("/places", "Places"),
    Link("/people", "People"),
    Link("/concepts", "Concepts"),
    Link("/documents", "Documents"),
    Link("/codes", "Codes"),
    Link("/sparql", "SPARQL"),
    Link("/charts", "Charts"),
    Link("/status", "Status"),
    Link("/docs", "Docs"),
)
"""The links in the header of each page."""

POLICY: Final[Mapping[str, str]] = {
    "default-src": "'none'",
    "style-src": "'self'",
    "img-src": "'self' data:",
    "form-action": "'self'",
    "base-uri": "'none'",
    "frame-ancestors": "'none'",
}
"""The Content-Security-Policy of a page without scripts."""
POLICY_OF_SCRIPTS: Final[Mapping[str, str]] = {**POLICY, "script-src": "'self'", "connect-src": "'self'"}
"""That of a page with scripts: files of this server, which may send requests to it."""

_ALWAYS: Final = {
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",  # without any, browsers send forms with "Origin: null", which is foreign
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Vary": "Accept",
    "Cache-Control": "no-cache",
}


def page(
    request: Request,
    template: str,
    context: Mapping[str, Any],
    *,
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    scripts: Sequence[str] = (),
    styles: Sequence[str] = (),
    policy: Mapping[str, str] | None = None,
) -> Response:
    """Render `template` with `context`.

    `scripts` names files of `kg.server.static` that the page loads as modules. Those that were not built are left out;
    the template sees ``missing``, whether one was. Without `scripts` no script runs. `styles` are style sheets of the
    libraries in them. `policy` replaces directives of the Content-Security-Policy, such as ``style-src`` with the hash
    of a style that a library sets.
    """
    found = [find_file(name) for name in scripts]
    loaded = [file.href for file in found if file is not None]
    directives = {**(POLICY_OF_SCRIPTS if loaded else POLICY), **(policy or {})}
    style = find_file(STYLE)
    frame = {
        "style": style.href if style is not None else "",
        "styles": [file.href for file in map(find_file, styles) if file is not None and loaded],
        "scripts": loaded,
        "unknown": _find_unknown(request),
        "missing": len(loaded) < len(found),
        "navigation": [{"link": link, "current": _is_at(request, link.href)} for link in NAVIGATION],
        "asked": None,
        "searched": None,
        "kept": (),
    }
    body = _environment().get_template(template).render({**frame, **context})
    written = "; ".join(f"{name} {value}" for name, value in directives.items())
    return HTMLResponse(body, status, headers={"Content-Security-Policy": written, **_ALWAYS, **(headers or {})})


def _find_unknown(request: Request) -> str | None:
    """Describe the parameters of an address that the page does not have, with those that it has; None without any.

    The route of the page has put its parameters into ``request.state``.
    """
    known: Sequence[str] | None = getattr(request.state, "parameters", None)
    if known is None:
        return None
    unknown = [name for name in dict.fromkeys(request.query_params) if name not in known]
    if not unknown:
        return None
    listed = ", ".join(quoted(name) for name in unknown[:5]) + (", ..." if len(unknown) > 5 else "")
    valid = f"Valid: {', '.join(known)}." if known else "This page has no parameters."
    has_no_effect = "Unknown parameter" + (" has" if len(unknown) == 1 else "s have") + " no effect"
    return f"{has_no_effect}: {listed}. {valid}".encode(errors="replace").decode()


def _is_at(request: Request, path: str) -> bool:
    return f"{request.url.path}/".startswith(f"{path}/")


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals["href_of"] = href_of
    environment.filters["short"] = _shorten
    return environment


def _shorten(name: str) -> str:
    """Shorten a name to one line of `MAX_QUOTED_CHARS`, for the title of a page."""
    line = " ".join(name[: 2 * MAX_QUOTED_CHARS].split())
    return line if len(line) <= MAX_QUOTED_CHARS else f"{line[: MAX_QUOTED_CHARS - 1]}…"


def href_of(iri: str) -> str:
    """Build the path of the page of `iri` on this server."""
    return "/resolve?iri=" + quote(iri, safe="")


def formats(address: Callable[[str], str]) -> list[dict[str, str]]:
    """List the RDF formats of a resource. `address` builds the URL of a format from its short name."""
    return [
        {"media_type": media_type, "name": name, "href": address(form)}
        for media_type, (name, form) in _FORMAT_NAMES.items()
    ]
