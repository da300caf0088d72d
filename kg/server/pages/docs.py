"""The documentation: ``/docs`` lists the chapters, ``/docs/{topic}`` is one, as HTML or as Markdown."""

from __future__ import annotations

from functools import cache
from typing import Final

from markdown_it import MarkdownIt
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from kg import bundle
from kg.server.html import page
from kg.server.pages.site import Site
from kg.server.problem_details import HttpError
from kg.server.resources import HTML, choose_media_type

MARKDOWN: Final = "text/markdown"


def routes(site: Site) -> list[Route]:
    """Build the routes of the documentation."""
    return [site.route("/docs", _index), site.route("/docs/{topic}", _chapter)]


def _index(request: Request) -> Response:
    titles = [{"topic": topic, "title": bundle.chapter_title(topic)} for topic in bundle.CHAPTERS]
    return page(request, "docs.html", {"title": "Documentation", "chapters": titles, "text": None})


def _chapter(request: Request) -> Response:
    topic: str = request.path_params["topic"]
    if topic.endswith(".md"):  # links between the chapters name files
        return RedirectResponse(f"/docs/{topic.removesuffix('.md')}", 308)
    if topic not in bundle.CHAPTERS:
        raise HttpError(404, "not_found", f"Unknown topic {topic[:80]!r}. Available: {', '.join(bundle.CHAPTERS)}.")
    if choose_media_type(request, (HTML, MARKDOWN)) == MARKDOWN:
        return Response(bundle.chapter(topic), media_type=MARKDOWN, headers={"Vary": "Accept"})
    return page(request, "docs.html", {"title": bundle.chapter_title(topic), "chapters": (), "text": _rendered(topic)})


@cache
def _rendered(topic: str) -> Markup:
    """Render a chapter that ships with Quadcite; HTML in its source is escaped."""
    return Markup(MarkdownIt("commonmark", {"html": False}).enable("table").render(bundle.chapter(topic)))  # noqa: S704
