"""A citation of a passage in the forms that people paste: text, Markdown, BibTeX, CSL-JSON and RDF. Pure functions.

Each form names the words, the document with its URL, the place of the words in it, and the graph, file and hash behind
them, so that the citation can be checked without this server.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from pyoxigraph import Literal as RdfLiteral
from pyoxigraph import NamedNode, RdfFormat, Triple, serialize

from kg.retrieval.results import Evidence
from kg.vocabulary import DCTERMS, FOAF, PREFIXES, PROV, SCHEMA, iri_prefix

CitationFormat = Literal["text", "markdown", "bibtex", "csl", "ttl"]

NAMES: Final[Mapping[CitationFormat, str]] = {
    "text": "Text",
    "markdown": "Markdown",
    "bibtex": "BibTeX",
    "csl": "CSL-JSON",
    "ttl": "RDF (Turtle)",
}

_COUNTED_FROM_0: Final = iri_prefix("document")
_DAY: Final = re.compile(r"\b([0-9]{4})-([0-9]{2})-([0-9]{2})\b")
_BIBTEX: Final = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "%": r"\%", "#": r"\#", "$": r"\$", "&": r"\&", "_": r"\_",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
}  # fmt: skip
_MARKDOWN: Final = re.compile(r"([\\`*_\[\]<>|~&!]|^\s*[-+#=]|^\s*[0-9]+[.)])")
"""What has a meaning in Markdown: anywhere, or at the beginning of a line."""


@dataclass(frozen=True, slots=True)
class CitedWords:
    """Some words of a passage, with their document, place and origin."""

    iri: str
    words: str
    title: str
    url: str
    """For readers; the IRI of the document if it has none."""
    place: str
    """Page, passage, lines and row of the words."""
    author: str | None
    date: str | None
    graph: str
    source: str | None
    sha256: str | None

    @property
    def checked_by(self) -> str:
        """The graph and file that the words are from."""
        file = f", file {self.source}" if self.source else ""
        digest = f", SHA-256 {self.sha256}" if self.sha256 else ""
        return f"graph {self.graph}{file}{digest}"


def count_page(iri: str, number: int) -> int:
    """Count the page of a text from 1, as its readers do, given its IRI and the number that its source gives.

    Climate Policy Radar counts pages from 0, and gives texts of HTML the page 0
    (https://github.com/climatepolicyradar/cpr-sdk, ``parser_models``). Other sources count from 1.
    """
    return number + 1 if iri.startswith(_COUNTED_FROM_0) else number


def cite(evidence: Evidence, start: int = 0, end: int | None = None) -> CitedWords:
    """Describe the words from `start` to `end` of a passage as they are cited."""
    origin = evidence.provenance
    passage = evidence.passage
    place = [
        # A text without pages can have the page 0.
        f"page {count_page(evidence.id, passage.page_number)}" if passage.page_number else "",
        f"passage {passage.index + 1}",
        f"pages {origin.pages} of the file" if origin.pages else "",
        f"lines {origin.lines} of the file" if origin.lines else "",
        f"row {origin.row} of the file" if origin.row is not None else "",
    ]
    found = _DAY.search(evidence.document.citation or "")
    return CitedWords(
        iri=evidence.id,
        words=passage.text[start:end],
        title=evidence.document.title,
        url=evidence.document.url,
        place=", ".join(part for part in place if part),
        author=evidence.said_by,
        date=found.group() if found else None,
        graph=origin.graph,
        source=origin.source,
        sha256=origin.sha256,
    )


def format_citation(cited: CitedWords, form: CitationFormat) -> str:
    """Write a citation in one of the forms."""
    return _WRITERS[form](cited)


def _to_text(cited: CitedWords) -> str:
    by = f"{cited.author}: " if cited.author else ""
    return f"{by}“{cited.words}” {cited.title}, {cited.place}. {cited.url} <{cited.iri}> ({cited.checked_by})"


def _to_markdown(cited: CitedWords) -> str:
    quoted = "\n".join(f"> {_escape_markdown(line)}" for line in cited.words.splitlines() or [""])
    by = f"{_escape_markdown(cited.author)}, " if cited.author else ""
    title = _escape_markdown(cited.title)
    named = f"[{title}](<{_in_angles(cited.url)}>)" if cited.url.startswith(("http://", "https://")) else title
    return f"{quoted}\n>\n> — {by}{named}, {cited.place}. {_to_code(cited.iri)} ({_to_code(cited.checked_by)})"


def _to_bibtex(cited: CitedWords) -> str:
    key = re.sub(r"[^A-Za-z0-9]+", "-", cited.iri.rpartition("/")[2]).strip("-") or "passage"
    fields = {
        "title": cited.title,
        "author": f"{{{_escape_bibtex(cited.author)}}}" if cited.author else None,
        "year": cited.date[:4] if cited.date else None,
        "url": cited.url if cited.url.startswith(("http://", "https://")) else None,
        "note": f"{cited.place}. “{cited.words}” {cited.iri} ({cited.checked_by})",
    }
    written = [
        f"  {name} = {{{value if name in ('author', 'url') else _escape_bibtex(value)}}}"
        for name, value in fields.items()
        if value
    ]
    return f"@misc{{{key},\n" + ",\n".join(written) + "\n}"


def _to_csl(cited: CitedWords) -> str:
    item: dict[str, Any] = {
        "id": cited.iri,
        "type": "document",
        "title": cited.title,
        "locator": cited.place,
        "note": f"“{cited.words}” ({cited.checked_by})",
    }
    if cited.url.startswith(("http://", "https://")):
        item["URL"] = cited.url
    if cited.author:
        item["author"] = [{"literal": cited.author}]
    if cited.date:
        item["issued"] = {"date-parts": [[int(part) for part in cited.date.split("-")]]}
    return json.dumps([item], ensure_ascii=False, indent=2)


def _to_turtle(cited: CitedWords) -> str:
    passage = NamedNode(cited.iri)
    triples = [
        Triple(passage, SCHEMA.text, RdfLiteral(cited.words)),
        Triple(passage, DCTERMS.bibliographicCitation, RdfLiteral(f"{cited.title}, {cited.place}")),
        Triple(passage, PROV.wasDerivedFrom, NamedNode(cited.graph)),
    ]
    if cited.url.startswith(("http://", "https://")):
        triples.append(Triple(passage, FOAF.page, NamedNode(cited.url)))
    text = "\n".join(map(str, triples))
    prefixes = {name: start for name, start in PREFIXES.items() if "<" + start in text}
    return (serialize(triples, format=RdfFormat.TURTLE, prefixes=prefixes) or b"").decode()


def _escape_markdown(text: str) -> str:
    return _MARKDOWN.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", " ".join(text.split()))


def _to_code(text: str) -> str:
    """Write a text as a code span, whose backticks are more than any in it."""
    line = " ".join(text.split())
    longest = max(map(len, re.findall("`+", line)), default=0)
    fence = "`" * (longest + 1)
    return f"{fence} {line} {fence}" if longest else f"{fence}{line}{fence}"


def _in_angles(url: str) -> str:
    """Escape what ends a link in angle brackets."""
    return url.replace("<", "%3C").replace(">", "%3E").replace("\n", "%0A")


def _escape_bibtex(text: str) -> str:
    return "".join(_BIBTEX.get(character, character) for character in " ".join(text.split()))


_WRITERS: Final[Mapping[CitationFormat, Callable[[CitedWords], str]]] = {
    "text": _to_text,
    "markdown": _to_markdown,
    "bibtex": _to_bibtex,
    "csl": _to_csl,
    "ttl": _to_turtle,
}
