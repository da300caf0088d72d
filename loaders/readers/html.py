"""The elements of HTML that begin a line, and those of which no text is read."""

from __future__ import annotations

from typing import Final

HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
BLOCKS: Final = HEADINGS | frozenset(
    {"address", "article", "aside", "blockquote", "caption", "center", "dd", "details", "div", "dl", "dt", "fieldset"}
    | {"figcaption", "figure", "footer", "form", "header", "hr", "li", "main", "ol", "p", "pre", "section", "summary"}
    | {"table", "tbody", "td", "tfoot", "th", "thead", "tr", "ul", "body", "html"}
)
"""Elements that begin a new line."""
HIDDEN: Final = frozenset({"script", "style", "template", "head", "nav", "noscript", "title", "meta", "link"})
"""Elements of which no text is shown, or none that belongs to the document."""
STRUCK: Final = frozenset({"s", "strike", "del"})
"""Elements whose words are struck out."""
VOID: Final = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
"""Elements that have no end tag."""
