"""HTML pages from templates, always escaped, and sent with a policy that allows no script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from starlette.responses import HTMLResponse, Response

_FORMAT_NAMES: Final = {
    "text/turtle": ("Turtle", "ttl"),
    "application/n-triples": ("N-Triples", "nt"),
    "application/rdf+xml": ("RDF/XML", "rdf"),
    "application/ld+json": ("JSON-LD", "jsonld"),
    "application/trig": ("TriG", "trig"),
    "application/n-quads": ("N-Quads", "nq"),
}
_FOLDER: Final = Path(__file__).parent / "templates"


def html(
    template: str, context: Mapping[str, Any], *, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Render `template` with `context`."""
    environment, style, policy = _templates()
    body = environment.get_template(template).render({"asked": None, **context, "style": style})
    always = {
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Vary": "Accept",
        "Cache-Control": "no-cache",
    }
    return HTMLResponse(body, status, headers={**always, **(headers or {})})


@cache
def _templates() -> tuple[Environment, Markup, str]:
    """Load the templates, the style sheet that each page contains, and the policy that allows only that."""
    environment = Environment(
        loader=FileSystemLoader(_FOLDER),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style = (_FOLDER / "style.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src data:; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    )
    return environment, Markup(style), policy  # noqa: S704 -- our own file


def href_of(iri: str) -> str:
    """Build the path of the page of `iri` on this server."""
    return "/resolve?iri=" + quote(iri, safe="")


def formats(address: Callable[[str], str]) -> list[dict[str, str]]:
    """List the RDF formats of a resource. `address` builds the URL of a format from its short name."""
    return [
        {"media_type": media_type, "name": name, "href": address(form)}
        for media_type, (name, form) in _FORMAT_NAMES.items()
    ]
