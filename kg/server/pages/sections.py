"""The page of a section of a code: its place in the code, its text with tables, and the rules found in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import ceil
from typing import Any, Final

from starlette.requests import Request
from starlette.responses import Response

from kg.server.html import href_of
from kg.server.pages.marked_text import Note, Span, parse_span, split_blocks
from kg.server.pages.reading import list_cited, list_citing, reading_page
from kg.server.pages.reviews import get_csrf
from kg.server.pages.site import Site, get_number
from kg.tools.reading.sections import SectionPage, SectionRule, group_rules, read_section
from kg.tools.reading.targets import Target
from kg.tools.zoning.sections import SectionLine

KINDS: Final[Mapping[str, str]] = {
    "use": "Use",
    "standard": "Standard",
    "definition": "Definition",
    "district": "District",
}
SHOWN_RULES: Final = 60
"""Maximum rules that are listed open. More of them are folded, by the line that they are found in."""
RULES_PER_PAGE: Final = 100
"""Maximum rules that are listed at once; ``rules=2`` has the next ones."""


def show(site: Site, request: Request, target: Target) -> Response:
    """Answer with the page of a section; if the address names a part or a span, with that marked."""
    found = read_section(site.kg, target.iri, get_number(request, "cited"))
    text = found.section.raw_content
    span = request.query_params.get("span")
    highlight: Span | None = None
    if span:
        highlight = parse_span(span, len(text))
    elif target.span is not None:
        highlight = parse_span(f"{target.span[0]}-{target.span[1]}", len(text))
    elif target.part is not None:
        highlight = _find_part(found, target.part)
    notes = {
        place: [Note(number, f"#rule-{number}", found.rules[number - 1].statement) for number in numbers]
        for place, numbers in group_rules(found.rules).items()
        if place <= len(text)
    }
    matrix = len(found.rules) > SHOWN_RULES
    number = get_number(request, "rules", most=max(1, ceil(len(found.rules) / RULES_PER_PAGE)))
    first = (number - 1) * RULES_PER_PAGE
    context = {
        "page": found,
        "section": found.section,
        "heading": " ".join(part for part in (found.number, found.section.title) if part)
        if not found.section.title.startswith("[")
        else found.section.title.strip("[]"),
        "blocks": split_blocks(text, found.marks.of(target.iri), highlight, {} if matrix else notes, found.tables),
        "rules": [
            _show_rule(at, rule) for at, rule in enumerate(found.rules[first : first + RULES_PER_PAGE], first + 1)
        ],
        "rules_total": len(found.rules),
        "rules_page": number,
        "folded": matrix,
        "csrf": get_csrf(site, request),
        "return_to": f"{request.url.path}?{request.url.query}" if request.url.query else request.url.path,
        "tree": _show_tree(found),
        "cites": list_cited(found.marks.citations),
        "citing": list_citing(found.cited_by),
        "has_contents": True,
        "number_of": number_of,
    }
    return reading_page(
        request, "section.html", context, iri=target.iri, generation=found.generation, queries=found.queries
    )


def _find_part(found: SectionPage, part: str) -> Span | None:
    """Find the place of a subsection in the text."""
    labels = part.partition("#subsection=")[2]
    wanted = "".join(f"({label})" for label in labels.split("."))
    for each in found.section.subsections or ():
        if labels and each.label == wanted and each.start < each.end:
            return Span(each.start, each.end)
    return None


def _show_rule(number: int, rule: SectionRule) -> dict[str, Any]:
    words: Sequence[str] = [span.text for span in rule.spans]
    if rule.review == "accepted" or (rule.review and rule.review.endswith("accepted")):
        status, good = "accepted", True
    elif rule.confidence is None:
        status, good = "stated by the source", True
    elif rule.reported:
        status, good = f"found in the text, {rule.confidence:g}", None
    else:
        status, good = f"unsure, {rule.confidence:g}: not reported as law", False
    return {
        "number": number,
        "rule": rule,
        "kind": KINDS.get(rule.kind, rule.kind),
        "words": " … ".join(words),
        "status": status,
        "good": good,
    }


def number_of(line: SectionLine) -> str:
    """Get the number of a section, unless its title has it or its key is a heading."""
    number = line.section_id.rpartition("|")[2]
    return number if number[:1].isdigit() and not line.title.startswith(number) else ""


def _show_tree(found: SectionPage) -> list[dict[str, Any]]:
    """List the way to the section, and the sections of its own level, as a table of contents."""
    way, level_of_own = found.tree[:-1], found.tree[-1:]
    shown = [(line, level) for level, step in enumerate(way, 1) for line in step.lines if line.iri == step.open]
    shown += [(line, len(way) + 1) for step in level_of_own for line in step.lines]
    return [
        {
            "line": line,
            "number": number_of(line),
            "href": href_of(line.iri),
            "here": line.iri == found.section.iri,
            "level": min(level, 4),
        }
        for line, level in shown
    ]
