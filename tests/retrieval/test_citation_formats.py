"""Citations: what is cited comes back from each form as it was."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from pyoxigraph import RdfFormat, parse

from kg.retrieval.citation_formats import NAMES, CitedWords, count_page, format_citation
from kg.vocabulary import SCHEMA

CITED = CitedWords(
    iri="cpr://doc/act_x1#p=3",
    words="A levy of 5 % is due.",
    title="Levy Act",
    url="https://example.org/act",
    place="page 2, passage 4, row 9 of the file",
    author="Ada Quill",
    date="2024-05-06",
    graph="https://w3id.org/quadcite/graph/src/climate/act_x1",
    source="acts.csv",
    sha256="ab" * 32,
)
WORDS = st.text(st.characters(exclude_categories=("Cs", "Cc", "Zl", "Zp")), min_size=1, max_size=60)


def test_pages_are_counted_from_1_where_the_source_counts_from_0():
    assert count_page("cpr://doc/act_x1#p=3", 0) == 1
    assert count_page("https://w3id.org/quadcite/id/file/notes/a.pdf#p=3", 2) == 2


@pytest.mark.parametrize("form", NAMES)
def test_each_form_names_the_words_the_document_and_the_origin(form):
    text = format_citation(CITED, form)
    for part in ("A levy of 5", "Levy Act", "https://example.org/act", CITED.iri, "act_x1"):
        assert part in text.replace("\\", "")


@given(WORDS)
def test_words_are_data_in_json_and_turtle(words):
    cited = replace(CITED, words=words, title=words)
    [item] = json.loads(format_citation(cited, "csl"))
    assert item["title"] == words
    quads = list(parse(format_citation(cited, "ttl").encode(), format=RdfFormat.TURTLE))
    assert [quad.object.value for quad in quads if quad.predicate == SCHEMA.text] == [words]


@given(WORDS.filter(str.strip))
def test_words_are_text_in_markdown(words):
    html = MarkdownIt("commonmark").render(format_citation(replace(CITED, words=words, author=None), "markdown"))
    for tag in ("<em>", "<strong>", "<h1>", "<h2>", "<ul>", "<ol>", "<li>", "<img", "<script", "<hr"):
        assert tag not in html
    assert html.count("<a href=") == 1


@given(WORDS)
def test_braces_in_bibtex_are_balanced(words):
    text = format_citation(replace(CITED, title=words, words=words), "bibtex")
    plain = text.replace("\\{", "").replace("\\}", "")
    assert plain.count("{") == plain.count("}")


def test_an_address_that_is_no_link_is_none():
    cited = replace(CITED, url="javascript:alert(1)")
    assert "](<javascript" not in format_citation(cited, "markdown")
    assert "URL" not in json.loads(format_citation(cited, "csl"))[0]
    assert "url =" not in format_citation(cited, "bibtex")
