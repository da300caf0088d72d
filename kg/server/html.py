"""HTML from templates: escaped throughout, and sent with a policy under which no script can run."""

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
    """Return the page that `template` makes of `context`."""
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
    """Return the templates, the style sheet that stands in each page, and the policy that allows nothing else."""
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
    return environment, Markup(style), policy  # noqa: S704 -- a file of ours


def href_of(iri: str) -> str:
    """Return the address of the page of `iri` on this server."""
    return "/resolve?iri=" + quote(iri, safe="")


def formats(address: Callable[[str], str]) -> list[dict[str, str]]:
    """Return the formats that a resource has as RDF; `address` gives where, by the short name of each."""
    return [
        {"media_type": media_type, "name": name, "href": address(form)}
        for media_type, (name, form) in _FORMAT_NAMES.items()
    ]
