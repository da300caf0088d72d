"""Answers of tools: the JSON of a result, without repeated parts, cut to the number of tokens that the caller wants.

Every tool's result passes through `build_answer`, so the rules are the same for all tools. A concise answer states
each source once: an element of a list refers to it by a key of ``sources``. A page of a list has fewer elements than
the default if they are large, and ``next_offset`` is where the next page begins; a number that the caller gave is kept.
Texts and lists inside elements are shortened, marked and counted (``omitted``), never dropped in silence.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import accumulate, takewhile
from math import ceil, log
from typing import Any, Final, Literal

from kg.errors import InvalidInputError
from kg.retrieval.excerpts import WINDOW_CHARACTERS, trim_to_words, window
from kg.retrieval.results import BYTES_PER_TOKEN, MOST_TOKENS, Result, clipped, size_of, tokens_of
from kg.text import lift_quotations

Detail = Literal["concise", "full"]

TITLE_CHARACTERS: Final = 120

_SOURCE_FIELDS: Final = ("source", "sha256", "revision", "fetched_at", "sent_by")
"""Fields of a provenance that describe its file."""
_TITLES: Final = re.compile(r"(?:\w+_)?title")
_NOTES_RESERVE: Final = 360
"""Bytes kept free for the note on cuts."""
_SHORTEST: Final = 160
"""Texts and lists inside elements are not shortened to fewer bytes."""
_FRAME: Final = frozenset({"notes", "names", "explain", "columns"})
"""Lists that are not shortened."""
_IDENTIFIER: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:[^\s]{1,2000}")
"""An IRI, which is of no use in part."""
OMITTED: Final = "omitted"
"""The field of an object with the numbers of elements that its lists lack."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """How much of a result the caller wants, and how to get the rest."""

    max_tokens: int
    detail: Detail = "concise"
    offset: int | None = None
    """Elements skipped; None if the tool has no pages."""
    text_from: int | None = None
    """First character of the text; None if the tool cannot continue a text."""
    explain: bool = False
    keeps_count: bool = False
    """Whether the caller gave the number of elements, which the size of the answer then does not reduce."""
    is_sizable: bool = True
    """Whether the tool takes max_tokens."""


@dataclass(frozen=True, slots=True)
class Answer:
    """The content of an answer and its metadata, in JSON types."""

    content: dict[str, Any]
    meta: dict[str, Any]


def build_answer(result: Result, wanted: Wanted, reword: Callable[[str], str] = str) -> Answer:
    """Convert `result` to JSON types as the caller wants it, its remarks reworded.

    Raises InvalidInputError for a text_from after the end of the text.
    """
    content = content_of(result, reword)
    if wanted.detail == "concise":
        _condense(result, content)
    text = result.layout.text
    if text is not None and wanted.text_from and "text_from" not in content:
        if wanted.text_from > (length := len(content[text])):
            raise InvalidInputError(f"text_from is {wanted.text_from:,}. {text} has {length:,} characters.")
        content["text_from"] = wanted.text_from
        content[text] = content[text][wanted.text_from :]
    fitting = _Fitting(result, content, wanted)
    fitting.fit()
    meta = result.meta.model_dump(mode="json")
    meta["next_offset"] = content.get("next_offset")
    if fitting.is_cut or (meta["next_offset"] is not None and meta["completeness"] == "complete"):
        meta["completeness"] = "truncated"
    if not (wanted.explain or wanted.detail == "full"):
        del meta["sparql"]
    meta["tokens"] = tokens_of(content)
    return Answer(content, meta)


def content_of(result: Result, reword: Callable[[str], str] = str) -> dict[str, Any]:
    r"""Convert a result to JSON types, without absent optional fields of the whole and without empty notes.

    The server's own words refer to the names that they quote by their places in ``names``, and are reworded. Fields in
    `Result.shown` stay, as null.
    """
    names = list(result.names)
    content: dict[str, Any] = result.model_dump(mode="json", context=lambda text: reword(lift_quotations(text, names)))
    content["names"] = names
    return {
        name: value
        for name, value in content.items()
        if (value is not None or name in result.shown) and not (name in ("notes", "names", "explain") and not value)
    }


@dataclass(slots=True)
class _Condenser:
    """Replaces what earlier elements of an answer say by references to it."""

    reads: bool
    """Whether the answer is a text to be read: titles and passages stay whole."""
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: dict[tuple[Any, ...], str] = field(default_factory=dict)
    files: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def visit(self, node: Any) -> None:
        """Condense an element of a list, and all that it contains."""
        if isinstance(node, list):
            for each in node:
                self.visit(each)
        if not isinstance(node, dict):
            return
        if isinstance(node.get("passage"), dict) and isinstance(node.get("document"), dict):
            self._evidence(node)
        for name, value in node.items():
            if isinstance(value, dict | list):
                self.visit(value)
            elif isinstance(value, str) and not self.reads and _TITLES.fullmatch(name):
                node[name] = shorten_title(value)
        if isinstance(node.get("graph"), str) and ("source" in node or "sha256" in node):
            self._origin(node)

    def _origin(self, node: dict[str, Any]) -> None:
        """Move the graph and the file of a provenance to ``sources``, and refer to them by a key."""
        file = {name: node.pop(name, None) for name in _SOURCE_FIELDS}
        graph = node.pop("graph")
        identity = tuple(file.values())
        key = self.keys.get((graph, *identity))
        if key is None:
            key = self.keys[graph, *identity] = f"s{len(self.sources) + 1}"
            same = self.files.get(identity)
            said = {name: value for name, value in file.items() if value is not None}
            self.sources[key] = {"graph": graph, **(said if same is None else {"same_file_as": same} if said else {})}
            self.files.setdefault(identity, key)
        for name in [name for name, value in node.items() if value is None]:
            del node[name]
        node["source"] = key

    def _evidence(self, node: dict[str, Any]) -> None:
        for match in node.get("concept_matches", ()):
            match.pop("words", None)
        if not self.reads:
            _to_window(node["passage"], node.get("concept_matches", ()))


def _condense(result: Result, content: dict[str, Any]) -> None:
    condenser = _Condenser(result.layout.reads)
    for name, value in content.items():
        if name in _FRAME:
            continue
        if isinstance(value, list):
            condenser.visit(value)
        elif isinstance(value, dict):
            for inner in value.values():
                if isinstance(inner, list):
                    condenser.visit(inner)
    if condenser.sources:
        content["sources"] = condenser.sources
    for name in result.layout.repeated:
        content.pop(name, None)


def _to_window(passage: dict[str, Any], matches: Any) -> None:
    """Cut the text of a long passage to a window around its first mentions, with its place in the whole text."""
    text = passage.get("text") or ""
    if len(text) <= WINDOW_CHARACTERS:
        return
    spans = sorted((low, high) for match in matches for low, high in match.get("offsets", ()))
    first = spans[0] if spans else (0, 0)
    last = max((high for low, high in spans if high - first[0] <= WINDOW_CHARACTERS), default=first[1])
    start, end = trim_to_words(text, *window(0, len(text), first[0], last, WINDOW_CHARACTERS))
    passage.update(text=text[start:end], start=start, end=end, length=len(text))


def shorten_title(title: str) -> str:
    """Shorten a long title with an ellipsis. A citation in brackets at its end stays."""
    if len(title) <= TITLE_CHARACTERS:
        return title
    at = _find_last_bracket(title)
    citation = title[at:] if at > 0 and len(title) - at < TITLE_CHARACTERS else ""
    return clipped(title[: len(title) - len(citation)], max(40, TITLE_CHARACTERS - len(citation))) + citation


def _find_last_bracket(title: str) -> int:
    """Find the blank before the bracket that closes at the end of `title`; -1 if there is none."""
    depth = 0
    for at in range(len(title) - 1, 0, -1):
        depth += (title[at] == ")") - (title[at] == "(")
        if depth <= 0:
            return at - 1 if title[at - 1 : at + 1] == " (" else -1
    return -1


class _Fitting:
    """Fits the content of an answer into a number of bytes.

    The content has three parts: the page, which is the elements of the paged lists; the text to be read; and the rest.
    First the elements of the page are chosen by their sizes, then what does not fit is shortened inside. An element on
    the page is never dropped: the next page begins after the last one.
    """

    def __init__(self, result: Result, content: dict[str, Any], wanted: Wanted) -> None:
        lists = [name for name, value in content.items() if isinstance(value, list) and name not in _FRAME]
        self.wanted: Final = wanted
        self.layout: Final = result.layout
        self.model: Final = type(result)
        self.total: Final = result.meta.total
        self.limit: Final = wanted.max_tokens * BYTES_PER_TOKEN
        self.content: Final = content
        self.sources: dict[str, Any] = content.pop("sources", {})
        self.text: Final = result.layout.text
        paged = result.layout.paged or (() if self.text is not None else tuple(lists[:1]))
        self.paged: Final = [name for name in paged if isinstance(content.get(name), list)]
        self.places: Final = result.places
        self.notes: Final[list[str]] = []
        self.shortened: Final[dict[str, None]] = {}
        """The names of the texts, lists and objects that lack something."""
        self.needed = 0
        """The tokens with which nothing has to be shortened."""
        self.following: int | None = None
        """The offset of the next page, if the page was chosen here."""
        self.is_cut = False
        """Whether the answer lacks something that no next page has."""

    def fit(self) -> None:
        """Choose the page and shorten texts and lists until the content fits, and report it in one note.

        An answer that still does not fit is larger, and a note reports it.
        """
        # The sources are those of the whole content, until it is cut.
        whole = {**self.content, "sources": self.sources} if self.sources else self.content
        if size_of(whole) > self.limit:
            self._fit_parts(self.limit - _NOTES_RESERVE)
            notes = self.content.setdefault("notes", [])
            if self.notes:
                notes.append(" ".join(self.notes))
            if self._measure(self.content) > self.limit:
                notes.append(f"The answer has more than {self.wanted.max_tokens:,} tokens: its parts are the shortest.")
            self.sources = self._name_sources(self.content)
        if self.sources:
            self.content["sources"] = self.sources

    def _fit_parts(self, most: int) -> None:
        """Choose and shorten the parts of the content. The rest and the page each get the space that is left."""
        content = self.content
        text = content.get(self.text) if self.text is not None else None
        if text and self.wanted.offset and not self.wanted.text_from:
            del content[self.text or ""]
            self.notes.append(f"{self.text} is on the first page.")
            text = None
        page = {name: content[name] for name in self.paged}
        frame = {name: value for name, value in content.items() if name in _FRAME}
        rest = {name: value for name, value in content.items() if name not in {*page, *frame, self.text}}
        size_of_text = size_of(text) if text else 0
        rest = self._fit_rest(frame, rest, max(most // 2, most - self._measure(page) - size_of_text))
        others = {**frame, **rest}
        left = most - self._measure(others)
        page = self._fit_page(others, page, most - min(size_of_text, left // 2))
        fitted = {**others, **page} if self.text is None or text is None else {**others, **page, self.text: ""}
        if self.following is not None:
            fitted["next_offset"] = self.following
        names = [*dict.fromkeys((*content, *fitted))]
        content.clear()
        content.update({name: fitted[name] for name in names if name in fitted})  # in the order of the fields
        if text:
            self._fit_text(text, most)
        if self.shortened:
            self.is_cut = True
            known = _field_names(self.model)  # other keys are names from the data
            fields = [name for name in self.shortened if name in known]
            self.notes.append(f"Shortened: {', '.join(fields) or 'texts'}. {self._describe_whole()}")

    def _need(self, size: int) -> None:
        self.needed = max(self.needed, -(-(size + _NOTES_RESERVE) // BYTES_PER_TOKEN))

    def _describe_whole(self) -> str:
        """Describe how to get the shortened parts whole."""
        if self.wanted.is_sizable and self.needed <= MOST_TOKENS:
            return f"max_tokens={self.needed} returns them whole."
        return "Narrow the request."

    def _fit_rest(self, frame: dict[str, Any], rest: dict[str, Any], most: int) -> dict[str, Any]:
        """Shorten the texts and lists of the rest, then leave out its largest objects."""
        whole = self._measure({**frame, **rest})
        self._need(2 * whole)
        if whole <= most:
            return rest
        rest = self._shorten_to(most, lambda short: short(rest), lambda each: {**frame, **each})
        objects = [name for name, value in rest.items() if isinstance(value, dict) and name != OMITTED]
        for name in sorted(objects, key=lambda name: size_of(rest[name]), reverse=True):
            if self._measure({**frame, **rest}) <= most:
                break
            rest.setdefault(OMITTED, {})[name] = len(rest.pop(name))
            self.shortened[name] = None
        return rest

    def _fit_page(self, others: dict[str, Any], page: dict[str, Any], most: int) -> dict[str, Any]:
        """Choose the elements of the page by their sizes, at least one, and shorten their long texts and lists."""
        if not page:
            return page
        if not self.wanted.keeps_count:
            page = self._choose(others, page, most)
        whole = self._measure({**others, **page})
        self._need(whole)
        if whole <= most:
            return page
        return self._shorten_to(
            most,
            lambda short: {name: [short(each) for each in elements] for name, elements in page.items()},
            lambda each: {**others, **each},
        )

    def _choose(self, others: dict[str, Any], page: dict[str, Any], most: int) -> dict[str, Any]:
        """Keep the first elements that fit, and set the offset of the next ones."""
        places: dict[str, Sequence[int]] = {name: range(len(elements)) for name, elements in page.items()}
        if self.places is not None:
            places[self.paged[0]] = self.places
        at: dict[int, list[Any]] = defaultdict(list)
        for name, elements in page.items():
            for place, element in zip(places[name], elements, strict=True):
                at[place].append(element)
        used = self._measure({**others, **{name: [] for name in page}})
        named = set(self._name_sources(others))
        end = None
        for number, place in enumerate(sorted(at)):
            more = set(self._name_sources(at[place])) - named
            used += sum(size_of(element) + 1 for element in at[place])
            used += sum(size_of({key: self.sources[key]}) for key in more)
            if used > most and number:
                end = place
                break
            named |= more
        if end is None:
            return page
        kept = {
            name: [element for place, element in zip(places[name], elements, strict=True) if place < end]
            for name, elements in page.items()
        }
        longest = max(page, key=lambda name: len(page[name]))
        if self.wanted.offset is None:
            self.is_cut = True
            self._need(self._measure({**others, **page}))
            self.notes.append(f"{len(kept[longest])} of {len(page[longest])} {longest} are shown.")
            self.notes.append(self.layout.rest or self._describe_whole().replace("them whole", "all"))
        else:
            first, following = self.wanted.offset, self.wanted.offset + end
            of = f" of {self.total:,}" if self.total is not None else ""
            self.following = following
            self.notes.append(f"{longest}: {first + 1:,} to {following:,}{of}. offset={following} continues.")
        return kept

    def _fit_text(self, text: str, most: int) -> None:
        """Set the text to its beginning that fits, and at least `_SHORTEST` bytes of it, and say how it continues."""
        name = self.text or ""
        kept = _cut_at_word(text, max(_SHORTEST, most - self._measure(self.content)))
        self.content[name] = kept
        if len(kept) == len(text):
            return
        self.is_cut = True
        start = self.content.get("text_from") or self.wanted.text_from or 0
        end = start + len(kept)
        self.notes.append(f"{name} has the characters {start:,} to {end:,}; {len(text) - len(kept):,} more follow.")
        if self.layout.continue_id is not None:
            following = self.layout.continue_id(self.content["id"], end)
            self.content.setdefault("metadata", {})["next_id"] = following
            self.notes.append("metadata.next_id continues.")
        elif self.wanted.text_from is not None:
            self.notes.append(f"text_from={end} continues.")

    def _shorten_to(
        self,
        most: int,
        build: Callable[[Callable[[Any], Any]], dict[str, Any]],
        place: Callable[[dict[str, Any]], dict[str, Any]],
    ) -> dict[str, Any]:
        """Shorten all texts and lists to one size, the largest with which the content has `most` bytes."""

        def shorten(size: int, cut: dict[str, None]) -> dict[str, Any]:
            return build(lambda node: _shorten(node, size, cut))

        # By tenths, since each attempt costs as much as an answer.
        sizes = [round(_SHORTEST * 1.1**power) for power in range(ceil(log(max(most, _SHORTEST) / _SHORTEST, 1.1)) + 1)]
        too_large = bisect_left(sizes, True, key=lambda size: self._measure(place(shorten(size, {}))) > most)
        return shorten(sizes[max(0, too_large - 1)], self.shortened)

    def _measure(self, content: Any) -> int:
        """Count the bytes of a part of the content with the sources that it refers to."""
        return size_of(content) + (size_of(self._name_sources(content)) + len('"sources":,') if self.sources else 0)

    def _name_sources(self, content: Any) -> dict[str, Any]:
        """Get the sources that a part of the content refers to."""
        named = {key for key in _source_keys(content) if key in self.sources}
        named |= {same for key in named if (same := self.sources[key].get("same_file_as")) is not None}
        return {key: value for key, value in self.sources.items() if key in named}


def _source_keys(node: Any) -> Iterator[str]:
    """Yield the keys of ``sources`` that `node` refers to, and strings like them."""
    if isinstance(node, list):
        for each in node:
            yield from _source_keys(each)
    elif isinstance(node, dict):
        for name, value in node.items():
            if name == "source" and isinstance(value, str):
                yield value
            elif isinstance(value, dict | list):
                yield from _source_keys(value)


@cache
def _field_names(model: type[Result]) -> frozenset[str]:
    schema = model.model_json_schema()
    return frozenset(
        name for each in (schema, *schema.get("$defs", {}).values()) for name in each.get("properties", ())
    )


def _shorten(node: Any, most: int, cut: dict[str, None], name: str = "texts") -> Any:
    """Shorten the texts and the lists in `node` to `most` bytes each, and add their names to `cut`.

    A text is marked with the number of characters that it lacks. An object has the numbers of elements that its lists
    lack in ``omitted``. Lists in lists, such as the cells of a row, keep all elements, and a passage its document.
    """
    if isinstance(node, list):
        return [_shorten(each, most, cut, name) for each in node]
    if isinstance(node, str):
        short = _shorten_text(node, most)
        if short is not node:
            cut[name] = None
        return short
    if not isinstance(node, dict):
        return node
    shortened: dict[str, Any] = {}
    omitted: dict[str, int] = {}
    for key, value in node.items():
        if key == "document" and "passage" in node:  # an Evidence object has its whole document
            shortened[key] = value
            continue
        shortened[key] = short = _shorten(value, most, cut, key)
        if isinstance(short, list) and (kept := _count_fitting(short, most)) < len(short):
            shortened[key] = short[:kept]
            omitted[key] = len(short) - kept
            cut[key] = None
    return {**shortened, OMITTED: omitted} if omitted else shortened


def _count_fitting(elements: Sequence[Any], most: int) -> int:
    """Count the first elements that have `most` bytes together, at least one."""
    sizes = accumulate(size_of(each) + 1 for each in elements)
    return max(1, sum(1 for _ in takewhile(lambda size: size <= most, sizes)))


def _shorten_text(text: str, most: int) -> str:
    """Cut `text` to about `most` bytes and mark it. An identifier stays whole."""
    if len(text) <= _SHORTEST // 4 or size_of(text) <= most or _IDENTIFIER.fullmatch(text):
        return text
    kept = _cut_at_word(text, most)
    short = f"{kept} … [{len(text) - len(kept)} more characters]"
    return short if len(short) < len(text) else text


def _cut_at_word(text: str, most: int) -> str:
    """Cut `text` to `most` bytes of JSON, at the end of a word if there is one in its last part."""
    ends = range(1, min(len(text), most) + 1)  # a character has at least a byte
    low = bisect_left(ends, True, key=lambda end: size_of(text[:end]) > most)
    if low == len(text):
        return text
    space = max(text.rfind(" ", 0, low), text.rfind("\n", 0, low))
    return text[: space + 1] if space > low // 2 else text[:low]
