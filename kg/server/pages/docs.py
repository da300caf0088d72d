"""The documentation: ``/docs`` lists the chapters, ``/docs/{topic}`` is one, as HTML or as Markdown."""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
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
from kg.text import quoted

MARKDOWN: Final = "text/markdown"
_COMMENT: Final = re.compile(r"^<!--.*-->\n", re.MULTILINE)
"""A line that only marks a generated table in the source of a chapter."""


def routes(site: Site) -> list[Route]:
    """Build the routes of the documentation."""
    return [site.route("/docs", _index), site.route("/docs/{topic}", _chapter, ("format",))]


def _index(request: Request) -> Response:
    context = {"title": "Documentation", "chapters": _list_chapters(), "topic": None, "text": None, "contents": ()}
    return page(request, "docs.html", context)


def _chapter(request: Request) -> Response:
    topic: str = request.path_params["topic"]
    if topic.endswith(".md"):  # links between the chapters name files
        return RedirectResponse(f"/docs/{topic.removesuffix('.md')}", 308)
    if topic in bundle.FIGURES:
        headers = {"Content-Security-Policy": "default-src 'none'", "X-Content-Type-Options": "nosniff"}
        return Response(bundle.figure(topic), media_type="image/svg+xml", headers=headers)
    if topic not in bundle.CHAPTERS:
        raise HttpError(404, "not_found", f"Unknown topic {quoted(topic)}. Available: {', '.join(bundle.CHAPTERS)}.")
    if choose_media_type(request, (HTML, MARKDOWN)) == MARKDOWN:
        return Response(bundle.chapter(topic), media_type=MARKDOWN, headers={"Vary": "Accept"})
    text, contents = _render(topic)
    title = bundle.chapter_title(topic)
    context = {"title": title, "chapters": _list_chapters(), "topic": topic, "text": text, "contents": contents}
    return page(request, "docs.html", context)


@cache
def _list_chapters() -> list[dict[str, str]]:
    return [
        {
            "topic": topic,
            "title": bundle.chapter_title(topic),
            "sections": ", ".join(_find_sections(bundle.chapter(topic))),
        }
        for topic in bundle.CHAPTERS
    ]


def _find_sections(text: str) -> list[str]:
    """Find the titles of the sections of a chapter."""
    return re.findall(r"^## (.+)$", text.replace("`", ""), re.MULTILINE)


@cache
def _render(topic: str) -> tuple[Markup, list[dict[str, str]]]:
    """Render a chapter that ships with Quadcite, and list its sections. HTML in its source is escaped."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = parser.parse(_COMMENT.sub("", bundle.chapter(topic)))
    contents = []
    for token, inline in pairwise(tokens):
        if token.type == "heading_open":
            anchor = to_anchor(inline.content)
            token.attrSet("id", anchor)
            if token.tag == "h2":
                contents.append({"anchor": anchor, "title": inline.content.replace("`", "")})
        elif token.type == "table_open":
            token.attrSet("tabindex", "0")  # what scrolls must be reachable by the keyboard
    html = parser.renderer.render(tokens, parser.options, {}).replace("<pre>", '<pre tabindex="0">')
    return Markup(html), contents  # noqa: S704


def to_anchor(heading: str) -> str:
    """Return the anchor of a heading, by the rule of the sites that render Markdown: ``#security-defaults``."""
    kept = re.sub(r"[^\w\- ]", "", heading.lower())
    return kept.strip().replace(" ", "-")
