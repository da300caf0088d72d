"""Answers of tools: the JSON of a result, without repeated parts, cut to the number of tokens that the caller wants.

Every tool's result passes through `build_answer`, so the rules are the same for all tools. A concise answer states
each source and each document once: an element of a list refers to a source by a key of ``sources``, and to a document
that an earlier element describes by its slug. An answer that is too long is cut at the end of its lists and texts. Each
cut is reported in ``notes``, with the arguments that get the rest.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

from kg.errors import InvalidInputError
from kg.retrieval.excerpts import WINDOW_CHARACTERS, trim_to_words, window
from kg.retrieval.results import Result
from kg.retrieval.token_budget import BYTES_PER_TOKEN, MOST_TOKENS, clipped, size_of, tokens_of

Detail = Literal["concise", "full"]

TITLE_CHARACTERS: Final = 120

_SOURCE_FIELDS: Final = ("source", "sha256", "revision", "fetched_at", "sent_by")
"""Fields of a provenance that describe its file."""
_TITLES: Final = re.compile(r"(?:\w+_)?title")
_NOTES_RESERVE: Final = 360
"""Bytes kept free for the notes about cuts."""
_SHORTEST: Final = 160
"""Texts up to this number of characters are not cut."""
_MOST_CUTS: Final = 500
"""Maximum number of texts and lists inside elements that are shortened. Then whole objects are left out."""
_FRAME: Final = frozenset({"notes", "explain", "sources"})


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


@dataclass(frozen=True, slots=True)
class Answer:
    """The content of an answer and its metadata, in JSON types."""

    content: dict[str, Any]
    meta: dict[str, Any]


def build_answer(result: Result, wanted: Wanted, reword: Callable[[str], str] | None = None) -> Answer:
    """Convert `result` to JSON types as the caller wants it, its remarks reworded.

    Raises InvalidInputError for a text_from after the end of the text.
    """
    content = content_of(result)
    if reword is not None:
        _reword(content, reword)
    if wanted.detail == "concise":
        _condense(result, content)
    text = result.layout.text
    if text is not None and wanted.text_from and "text_from" not in content:
        if wanted.text_from > (length := len(content[text])):
            raise InvalidInputError(f"text_from is {wanted.text_from:,}. {text} has {length:,} characters.")
        content["text_from"] = wanted.text_from
        content[text] = content[text][wanted.text_from :]
    cut = _Cutting(result, content, wanted)
    cut.fit()
    meta = result.meta.model_dump(mode="json")
    meta["next_offset"] = content.get("next_offset")
    if cut.done and (wanted.offset is None or cut.inside):
        meta["completeness"] = "truncated"
    if not (wanted.explain or wanted.detail == "full"):
        del meta["sparql"]
    meta["tokens"] = tokens_of(content)
    return Answer(content, meta)


def content_of(result: Result | dict[str, Any]) -> dict[str, Any]:
    """Convert a result to JSON types, without absent optional fields of the whole and without empty notes.

    Fields in `Result.shown` stay, as null. The document of a command is returned unchanged.
    """
    if isinstance(result, dict):
        return result
    content: dict[str, Any] = result.model_dump(mode="json")
    return {
        name: value
        for name, value in content.items()
        if (value is not None or name in result.shown) and not (name in ("notes", "explain") and not value)
    }


def _reword(content: dict[str, Any], reword: Callable[[str], str]) -> None:
    if "notes" in content:
        content["notes"] = [reword(note) for note in content["notes"]]
    for missing in content.get("not_found", ()):
        missing["hint"] = reword(missing["hint"])


@dataclass(slots=True)
class _Condenser:
    """Replaces what earlier elements of an answer say by references to it."""

    reads: bool
    """Whether the answer is a text to be read: titles and passages stay whole."""
    sources: dict[str, dict[str, Any]] = field(default_factory=dict)
    keys: dict[tuple[Any, ...], str] = field(default_factory=dict)
    files: dict[tuple[Any, ...], str] = field(default_factory=dict)
    documents: set[str] = field(default_factory=set)

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
        slug = node["document"].get("slug")
        if slug in self.documents:
            node["document"] = {"slug": slug}
        elif isinstance(slug, str):
            self.documents.add(slug)
        for match in node.get("concept_matches", ()):
            match.pop("words", None)
        if not self.reads:
            _to_window(node["passage"], node.get("concept_matches", ()))


def _condense(result: Result, content: dict[str, Any]) -> None:
    condenser = _Condenser(result.layout.reads)
    for name, value in content.items():
        if name in ("notes", "explain"):
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


class _Cutting:
    """Cuts the content of an answer to a number of bytes."""

    def __init__(self, result: Result, content: dict[str, Any], wanted: Wanted) -> None:
        self.content: Final = content
        self.wanted: Final = wanted
        self.limit: Final = wanted.max_tokens * BYTES_PER_TOKEN
        lists = [name for name, value in content.items() if isinstance(value, list) and name not in _FRAME]
        self.paged: Final = [name for name in result.layout.paged or tuple(lists[:1]) if name in content]
        self.text: Final = result.layout.text
        self.hint: Final = result.layout.rest
        self.cuts: Final[list[str]] = []
        """The cuts, a sentence for each."""
        self.following: str | None = None
        """The argument that continues where the pages or the text end."""
        self.inside = False
        """Whether more than the end of the pages was cut."""

    @property
    def done(self) -> bool:
        """Whether anything was cut."""
        return bool(self.cuts)

    def fit(self) -> None:
        """Cut texts and lists until the content fits, and report the cuts in one note.

        A text and a list keep their beginning in any size. A note reports an answer that is larger for that reason.
        """
        if size_of(self.content) <= self.limit:
            return
        spare = self.limit - _NOTES_RESERVE
        text = self.content.get(self.text or "")
        if self.text is not None and isinstance(text, str):
            self.content[self.text] = ""
            most = max(spare // 2, spare - size_of(text))
            self._cut_others(most, {self.text})
            self._shorten(most)
            self._leave_out(most)
            self._cut_text(self.text, text, spare)
        else:
            self._cut_others(spare // 2, set(self.paged))
            self._cut_pages(spare)
            self._shorten(spare)
            self._leave_out(spare)
        notes = self.content.setdefault("notes", [])
        if self.cuts:
            notes.append(" ".join([*self.cuts, self._describe_rest()]))
        if size_of(self.content) > self.limit:
            notes.append(f"The answer has more than {self.wanted.max_tokens:,} tokens: its other parts cannot be cut.")

    def _describe_rest(self) -> str:
        """Describe how to get the rest."""
        larger = min(MOST_TOKENS, 4 * self.wanted.max_tokens)
        ways = [self.following] if self.following else []
        if self.hint:
            ways.append(self.hint)
        elif larger > self.wanted.max_tokens:
            ways.append(f"max_tokens={larger}")
        return f"The rest: {' or '.join(ways)}." if ways else "Narrow the request."

    def _cut_pages(self, most: int) -> None:
        """Keep as many elements of the paged lists as fit, at least one."""
        lists = [self.content[name] for name in self.paged]
        total = max(map(len, lists), default=0)
        if total <= 1:
            return
        sources = self.content.get("sources", {})
        empty: dict[str, Any] = {name: [] for name in self.paged}
        used = size_of({**self.content, **empty, "sources": {}})
        kept, seen = 0, set[str]()
        while kept < total:
            elements = [each[kept] for each in lists if kept < len(each)]
            named = set(_source_keys(elements)) - seen
            used += sum(size_of(each) + 1 for each in elements)
            used += sum(size_of({key: sources[key]}) for key in named if key in sources)
            if used > most and kept:
                break
            seen |= named
            kept += 1
        if kept == total:
            return
        for name, each in zip(self.paged, lists, strict=True):
            self.content[name] = each[:kept]
        self._drop_sources()
        longest = max(zip(lists, self.paged, strict=True), key=lambda each: len(each[0]))[1]
        self.cuts.append(f"{kept} of {total} {longest} are shown.")
        if self.wanted.offset is not None:
            self.content["next_offset"] = self.wanted.offset + kept
            self.following = f"offset={self.wanted.offset + kept}"

    def _cut_others(self, most: int, apart: set[str]) -> None:
        """Cut lists other than `apart`, the largest first, until the content without `apart` has `most` bytes.

        Each keeps its first element.
        """
        while True:
            rest = {name: value for name, value in self.content.items() if name not in apart and name != "sources"}
            if (excess := size_of(rest) - most) <= 0:
                return
            lists = [
                name for name, value in rest.items() if isinstance(value, list) and len(value) > 1 and name != "notes"
            ]
            name = max(lists, key=lambda each: size_of(rest[each]), default="")
            if not name:
                return
            values = self.content[name]
            target, used, kept = size_of(values) - excess, 2 + size_of(values[0]) + 1, 1
            for value in values[1:]:
                used += size_of(value) + 1
                if used > target:
                    break
                kept += 1
            self.inside = True
            self.content[name] = values[:kept]
            self._drop_sources()
            self.cuts.append(f"{kept} of {len(values)} {name} are shown.")
            apart = {*apart, name}

    def _cut_text(self, name: str, text: str, most: int) -> None:
        """Set the text to its beginning that fits, and at least `_SHORTEST` bytes of it."""
        kept = _cut_at_word(text, max(_SHORTEST, most - size_of(self.content)))
        self.content[name] = kept
        if len(kept) == len(text):
            return
        self.inside = True
        start = self.content.get("text_from") or self.wanted.text_from or 0
        end = start + len(kept)
        if self.wanted.text_from is not None:
            self.following = f"text_from={end}"
        self.cuts.append(f"{name} has the characters {start} to {end}; {len(text) - len(kept)} more follow.")

    def _shorten(self, most: int) -> None:
        """Cut the longest texts and lists inside elements until the content fits. Each is marked and counted."""
        cut: dict[str, None] = {}
        whole: set[tuple[int, Any]] = set()
        for _ in range(_MOST_CUTS):
            excess = size_of(self.content) - most
            if excess <= 0:
                break
            parts = (part for part in _parts(self.content) if (id(part[1]), part[2]) not in whole)
            found = max(parts, key=lambda part: part[0], default=None)
            if found is None or found[0] <= _SHORTEST:
                break
            size, holder, place = found
            value = holder[place]
            if isinstance(value, str):
                kept = _cut_at_word(value, max(_SHORTEST, size - excess - 40))
                short = f"{kept} … [{len(value) - len(kept)} more characters]"
                if len(short) >= len(value):
                    whole.add((id(holder), place))
                    continue
                holder[place] = short
            else:
                holder[place] = value[: max(1, len(value) // 2)]
            cut[str(place)] = None
        if cut:
            self.inside = True
            names = ", ".join(name for name in cut if not name.isdecimal()) or "texts"
            self.cuts.append(f"Long texts and lists are shortened, in {names}.")

    def _leave_out(self, most: int) -> None:
        """Leave out the largest objects apart from the lists and the text, until the content fits."""
        names = [name for name, value in self.content.items() if isinstance(value, dict) and name not in _FRAME]
        names.sort(key=lambda name: size_of(self.content[name]), reverse=True)
        out: list[str] = []
        while names and size_of(self.content) > most:
            out.append(names.pop(0))
            del self.content[out[-1]]
        if out:
            self.inside = True
            self.cuts.append(f"Left out: {', '.join(out)}.")

    def _drop_sources(self) -> None:
        """Keep the sources that the remaining elements refer to."""
        sources = self.content.get("sources")
        if not sources:
            return
        named = set(_source_keys([value for name, value in self.content.items() if name not in _FRAME]))
        named |= {sources[key]["same_file_as"] for key in named if "same_file_as" in sources.get(key, {})}
        self.content["sources"] = {key: value for key, value in sources.items() if key in named}


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


def _parts(content: Mapping[str, Any]) -> Iterator[tuple[int, Any, Any]]:
    """Yield the texts, and the lists with several elements, inside `content`: the size, the holder, and the place."""
    stack: list[tuple[Any, Any]] = [
        (content, name) for name in content if name not in ("notes", "sources") and name != "columns"
    ]
    while stack:
        holder, place = stack.pop()
        value = holder[place]
        if isinstance(value, str):
            if not value.endswith(" more characters]"):
                yield size_of(value), holder, place
        elif isinstance(value, list):
            if len(value) > 1 and not any(isinstance(each, str) and len(each) > _SHORTEST for each in value):
                yield size_of(value), holder, place
            stack += [(value, number) for number in range(len(value))]
        elif isinstance(value, dict):
            stack += [(value, name) for name in value]


def _cut_at_word(text: str, most: int) -> str:
    """Cut `text` to `most` bytes of JSON, at the end of a word if there is one in its last part."""
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if size_of(text[:middle]) <= most:
            low = middle
        else:
            high = middle - 1
    if low == len(text):
        return text
    space = max(text.rfind(" ", 0, low), text.rfind("\n", 0, low))
    return text[: space + 1] if space > low // 2 else text[:low]
