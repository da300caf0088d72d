"""Answers in the number of tokens that the caller wants: what is stated once, what is cut, and how to get the rest."""

from __future__ import annotations

import re
import typing
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from kg.errors import InvalidInputError
from kg.retrieval.results import FEWEST_TOKENS, READING_TOKENS, Layout, Meta, Provenance, Result, to_json, tokens_of
from kg.tools.answers import TITLE_CHARACTERS, Answer, Wanted, build_answer, shorten_title
from kg.tools.calls import Tool
from kg.tools.registry import TOOLS

DAY = datetime(2026, 1, 1, tzinfo=UTC)
PAGED = [tool for tool in TOOLS if "offset" in tool.arguments.model_fields]


class Hit(BaseModel):
    id: str
    title: str
    provenance: Provenance


class Hits(Result):
    results: list[Hit]


class Reading(Result):
    layout: ClassVar[Layout] = Layout(text="body", reads=True)

    title: str
    body: str


class Pairs(Result):
    layout: ClassVar[Layout] = Layout(paged=("bins", "counts"))

    bins: list[str]
    counts: list[int]


def make_hits(count: int) -> Hits:
    return Hits(
        results=[
            Hit(
                id=f"cpr://doc/{number}#p=1",
                title=f"Act {number}",
                provenance=Provenance(
                    graph=f"https://w3id.org/quadcite/graph/src/{number // 2}",
                    source="laws/laws.csv",
                    sha256="ab" * 32,
                    row=number,
                ),
            )
            for number in range(count)
        ],
        meta=Meta(snapshot=1),
    )


def answer(result: Result, **wanted: Any) -> dict[str, Any]:
    return build_answer(result, Wanted(**{"max_tokens": 50_000, **wanted})).content


def list_paged(tool: Tool) -> tuple[str, ...]:
    """List the fields that the offset of a tool pages through."""
    lists = [name for name, field in tool.result.model_fields.items() if typing.get_origin(field.annotation) is list]
    return tool.result.layout.paged or (next(name for name in lists if name not in ("notes", "names", "explain")),)


def find_words(node: Any) -> str:
    """Find the beginning of the first text in an element, by which it is recognized though it is shortened."""
    if isinstance(node, dict):
        return next((found for value in node.values() if (found := find_words(value))), "")
    return str(node)[:40] if isinstance(node, str | int) else ""


def follow(ask: Callable[[int], Answer], names: tuple[str, ...]) -> Iterator[Answer]:
    """Ask for all pages, as the answers say. Each goes on, and only the last one may be complete."""
    offset: int | None = 0
    while offset is not None:
        answer = ask(offset)
        following = answer.content.get("next_offset")
        assert answer.meta["next_offset"] == following
        assert following is None or (following > offset and answer.meta["completeness"] != "complete")
        assert following is None or not names or any(answer.content.get(name) for name in names)
        assert not any("offset=" in note for note in answer.content.get("notes", ())) or following is not None
        yield answer
        offset = following


def make_value(kind: Any, words: str, sizes: Iterator[int]) -> Any:
    """Make a value of a type with long texts and lists, whose texts begin with `words`."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated or inner[1:] == (type(None),):
        return make_value(inner[0], words, sizes)
    if origin is typing.Literal:
        return inner[0]
    if origin is tuple:
        return tuple(make_value(each, words, sizes) for each in inner if each is not ...)
    if origin is list:
        return [make_value(inner[0], f"{words}.{number}", sizes) for number in range(1 + next(sizes) % 3)]
    if isinstance(kind, type) and issubclass(kind, BaseModel):
        fields = {name: make_value(field.annotation, words, sizes) for name, field in kind.model_fields.items()}
        return kind.model_construct(**fields)
    return {int: int(words.partition(" ")[0].partition(".")[0]), float: 0.5, bool: True, dict: {}, datetime: DAY}.get(
        origin or kind, f"{words} {'wörd ' * next(sizes)}"
    )


@pytest.mark.parametrize("tool", PAGED, ids=lambda tool: tool.name)
@settings(max_examples=10)
@given(data=st.data())
def test_the_pages_of_a_tool_have_every_element_once_in_any_size(tool: Tool, data: st.DataObject) -> None:
    drawn = data.draw(st.lists(st.sampled_from([0, 1, 2, 40, 400]), min_size=3, max_size=9))
    sizes = (drawn[number % len(drawn)] for number in range(1_000_000))
    count, limit = data.draw(st.integers(0, 12)), data.draw(st.integers(1, 8))
    most, keeps = data.draw(st.integers(300, 20_000)), data.draw(st.booleans())
    detail = data.draw(st.sampled_from(["concise", "full"]))
    [name, *_] = names = list_paged(tool)
    fields = tool.result.model_fields
    whole = {
        each: [make_value(typing.get_args(kind)[0], str(number), sizes) for number in range(count)]
        for each in names
        for kind in [fields[each].annotation]
        for kind in [kind if typing.get_origin(kind) is list else typing.get_args(kind)[0]]
    }
    gaps = data.draw(st.sets(st.integers(0, count)))

    def ask(offset: int) -> Answer:
        page = range(offset, min(offset + limit, count))
        result = make_value(tool.result, "0", iter(drawn * 1_000))
        for each in names:
            setattr(result, each, [whole[each][number] for number in page if each != name or number not in gaps])
        result.places = [place for place, number in enumerate(page) if number not in gaps]
        result.next_offset = offset + limit if offset + limit < count else None
        result.meta = Meta(snapshot=1, total=count)
        wanted = Wanted(max_tokens=most, offset=offset, detail=detail, keeps_count=keeps)
        answer = build_answer(result, wanted)
        if keeps:
            assert len(answer.content.get(name, [])) == len(result.places)
        elif len(answer.content.get(name, [])) > 1:
            assert answer.meta["tokens"] <= most
        return answer

    pages = list(follow(ask, () if gaps else names))
    for each in names:
        shown = [to_json(element) for page in pages for element in page.content.get(each, [])]
        numbers = [re.findall(r"\d+", element)[0] for element in shown]
        assert numbers == [str(number) for number in range(count) if each != name or number not in gaps]


def test_a_concise_answer_states_each_source_once():
    content = answer(make_hits(4))
    sources = content["sources"]
    assert [hit["provenance"] for hit in content["results"]] == [
        {"row": 0, "source": "s1"},
        {"row": 1, "source": "s1"},
        {"row": 2, "source": "s2"},
        {"row": 3, "source": "s2"},
    ]
    assert sources["s1"]["sha256"] == "ab" * 32
    assert sources["s2"] == {"graph": "https://w3id.org/quadcite/graph/src/1", "same_file_as": "s1"}


def test_a_full_answer_states_the_source_of_each_element():
    content = answer(make_hits(2), detail="full")
    assert "sources" not in content
    assert all(hit["provenance"]["sha256"] == "ab" * 32 for hit in content["results"])


@pytest.mark.parametrize("most", [200, 300, 500, 1_000])
def test_the_pages_of_a_cut_list_have_every_element_once(most):
    seen: list[str] = []
    offset: int | None = 0
    while offset is not None:
        whole = make_hits(40)
        whole.results = whole.results[offset:]
        content = answer(whole, max_tokens=most, offset=offset)
        assert tokens_of(content) <= most
        keys = {hit["provenance"]["source"] for hit in content["results"]}
        assert keys <= set(content["sources"])
        seen += [hit["id"] for hit in content["results"]]
        offset = content.get("next_offset")
    assert seen == [hit.id for hit in make_hits(40).results]


def test_a_list_without_pages_is_marked_as_truncated():
    made = build_answer(make_hits(40), Wanted(max_tokens=300))
    assert made.meta["completeness"] == "truncated"
    assert "next_offset" not in made.content
    assert made.content["notes"]


def test_parallel_lists_are_cut_at_the_same_element():
    content = answer(Pairs(bins=[f"bin {n}" for n in range(500)], counts=list(range(500))), max_tokens=400, offset=0)
    assert len(content["bins"]) == len(content["counts"]) == content["next_offset"]
    assert content["counts"][-1] == content["next_offset"] - 1


def test_the_parts_of_a_long_text_are_the_text():
    words = " ".join(f"wörd{number}" for number in range(5_000))
    read, start, calls = "", 0, 0
    while start < len(words):
        content = answer(Reading(title="T", body=words), max_tokens=1_000, text_from=start)
        assert tokens_of(content) <= 1_000
        assert content["body"]
        read += content["body"]
        start += len(content["body"])
        calls += 1
    assert read == words
    assert calls > 5


def test_a_place_after_the_end_of_a_text_is_refused():
    assert answer(Reading(title="T", body="four"), text_from=2)["body"] == "ur"
    with pytest.raises(InvalidInputError, match="text_from"):
        answer(Reading(title="T", body="four"), text_from=5)


def test_an_answer_of_the_fewest_tokens_has_the_beginning_of_its_text():
    class Described(Reading):
        record: dict[str, str]
        parts: list[str]

    whole = Described(
        title="T" * 100, body="word " * 2_000, record={str(n): "x" * 90 for n in range(30)}, parts=["p" * 300] * 9
    )
    content = answer(whole, max_tokens=FEWEST_TOKENS, text_from=0)
    assert tokens_of(content) <= FEWEST_TOKENS
    assert content["body"]
    assert whole.body.startswith(content["body"])
    assert len(content["parts"]) == 1
    assert "record" not in content
    [note] = content["notes"]
    assert f"text_from={len(content['body'])}" in note


def test_a_long_value_inside_an_element_is_marked_where_it_is_cut():
    hits = make_hits(1)
    hits.results[0].id = "x " * 4_000
    content = answer(hits, max_tokens=500, offset=0)
    assert tokens_of(content) <= 500
    assert "more characters]" in content["results"][0]["id"]
    assert content["notes"]


def test_a_long_title_keeps_its_citation():
    citation = " (Ms Example, 2024-03-21, House Hansard, p. 7)"
    short = shorten_title("A very long heading of a debate " * 9 + citation)
    assert short.endswith(citation)
    assert len(short) <= TITLE_CHARACTERS
    assert shorten_title("Short") == "Short"
    nested = " (Ms Example, 2024-03-21, House Hansard, p. 7 (derived from chamber, date and page))"
    assert shorten_title("A very long heading of a debate " * 9 + nested).endswith(nested)
    assert shorten_title("A heading with a bracket (that never closes " * 9).endswith("…")


def test_every_tool_takes_the_size_and_the_detail():
    for tool in TOOLS:
        if not tool.single:
            assert {"max_tokens", "detail"} <= set(tool.arguments.model_fields)
            assert tool.arguments.model_fields["max_tokens"].default in (2_000, READING_TOKENS)
            assert tool.arguments.model_fields["detail"].default == "concise"
