"""The same documents in each layout of their publisher."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kg.errors import InvalidInputError, SourceError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.load_records import load_sources
from kg.settings import Settings
from kg.store.protocol import Rows
from kg.vocabulary import DCTERMS, SCHEMA, SKOS, mint
from loaders.climate import documents, json_objects
from loaders.climate.layouts import LeftOutError, load_layouts
from loaders.model import Notice, Rejection, SourceDocument, to_quads
from loaders.quarantine_retry import retry
from loaders.readers.locations import File, find_files
from loaders.sources import load

SETTINGS = Settings(_env_file=None)  # type: ignore[call-arg]
FIXTURES = Path(__file__).parent.parent.parent.parent / "fixtures" / "climate-layouts"


class Block(NamedTuple):
    text: str
    page: int
    type: str


class Document(NamedTuple):
    slug: str
    title: str
    description: str
    family: str
    languages: Sequence[str]
    sectors: Sequence[str]
    blocks: Sequence[Block]

    @property
    def id(self) -> str:
        return f"FICT.executive.{self.slug}.0"


DATE: Final = "2031-03-14T00:00:00Z"
TYPES: Final = {"Text": "TEXT", "TableCell": "TABLE_CELL", "pageHeader": "PAGE_HEADER"}


def metadata(document: Document) -> dict[str, Any]:
    return {
        "name": f"Programme {document.family}", "document_title": document.title, "description": document.description,
        "import_id": document.id, "slug": document.slug, "family_import_id": f"FICT.family.{document.family}.0",
        "family_slug": document.family, "publication_ts": DATE, "source_url": "https://example.org/text.pdf",
        "type": "Plan", "source": "FICT", "category": "Executive", "corpus_type_name": "Laws and Policies",
        "geography": "DJI", "geographies": ["DJI", "KEN"], "languages": list(document.languages),
        "metadata": {"sector": list(document.sectors), "topic": []},
    }  # fmt: skip


def block(number: int, block: Block) -> dict[str, Any]:
    return {
        "text": [block.text], "text_block_id": str(number), "language": None, "type": block.type,
        "type_confidence": 1.0, "page_number": block.page, "coords": [[0.0, 1.0]],
    }  # fmt: skip


def parser_output(document: Document) -> dict[str, Any]:
    about = metadata(document)
    return {
        "document_id": document.id, "document_metadata": about, "document_name": about["name"],
        "document_description": about["description"], "document_slug": document.slug, "languages": about["languages"],
        "document_content_type": "application/pdf", "translated": False, "html_data": None,
        "pdf_data": {
            "page_metadata": [], "md5sum": "0", "text_blocks": [*map(block, range(1000), document.blocks)],
        },
    }  # fmt: skip


def nested_rows(document: Document) -> list[dict[str, Any]]:
    outer = {key: value for key, value in parser_output(document).items() if key not in ("html_data", "pdf_data")}
    return [
        outer | block(number, each) | {"text": each.text, "block_index": number}
        for number, each in enumerate(document.blocks)
    ]


def dotted(value: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, inner in value.items():
        if isinstance(inner, dict) and inner:
            found |= dotted(inner, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = inner
    return found


def vespa(document: Document) -> list[dict[str, Any]]:
    about = metadata(document)
    family_document = {
        "family_name": about["name"], "document_title": about["document_title"],
        "family_description": about["description"], "family_import_id": about["family_import_id"],
        "family_slug": about["family_slug"], "family_publication_ts": DATE, "family_category": about["category"],
        "family_geography": "DJI", "family_geographies": about["geographies"], "family_source": "FICT",
        "document_import_id": document.id, "document_slug": document.slug, "document_languages": about["languages"],
        "document_source_url": about["source_url"], "corpus_type_name": about["corpus_type_name"],
        "metadata": [{"name": "sector", "value": each} for each in document.sectors],
    }  # fmt: skip
    ref = f"id:doc_search:family_document::{document.id}"
    passages = [
        {
            "put": f"id:doc_search:document_passage::{document.id}.{number}",
            "fields": {
                "family_document_ref": ref, "text_block": each.text, "text_block_id": f"p_{each.page}_b_{number}",
                "text_block_page": each.page, "text_block_type": f"BlockType.{TYPES[each.type]}",
                "text_embedding": {"type": "tensor<float>(x[2])", "values": [0.5, 0.25]},
            },
        }
        for number, each in enumerate(document.blocks)
    ]  # fmt: skip
    weights = {"put": "id:doc_search:search_weights::default", "fields": {"name_weight": 1.0}}
    return [weights, *reversed(passages), {"put": ref, "fields": family_document}]


def family(given: Sequence[Document]) -> list[dict[str, Any]]:
    found = []
    for slug in dict.fromkeys(document.family for document in given):
        mine = [document for document in given if document.family == slug]
        about = metadata(mine[0])
        found.append(
            {
                "import_id": about["family_import_id"], "title": about["name"], "slug": slug, "summary": "",
                "geographies": about["geographies"], "category": about["category"], "published_date": DATE,
                "corpus_type_name": about["corpus_type_name"], "metadata": about["metadata"], "events": [],
                "documents": [
                    {
                        "import_id": document.id, "slug": document.slug, "title": document.title,
                        "source_url": about["source_url"], "languages": list(document.languages), "events": [],
                    }
                    for document in mine
                ],
            }
        )  # fmt: skip
    return found


def table(document: Document) -> dict[str, str]:
    about = metadata(document)
    return {
        "CPR Document ID": document.id, "CPR Document Slug": document.slug, "CPR Family Slug": document.family,
        "CPR Family ID": about["family_import_id"], "Document title": document.title, "Family name": about["name"],
        "Family summary": document.description, "Geography ISO": "DJI;KEN", "Category": about["corpus_type_name"],
        "Documents": f"{about['source_url']}|en", "Sectors": ";".join(document.sectors), "Date": DATE,
        "Language": ";".join(document.languages),
    }  # fmt: skip


def as_json(path: Path, value: object) -> Path:
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


def as_lines(path: Path, values: Sequence[object]) -> Path:
    path.write_text("".join(json.dumps(value) + "\n" for value in values), encoding="utf-8")
    return path


def as_csv(path: Path, rows: Sequence[Mapping[str, str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return path


Write = Callable[[Path, Sequence[Document]], Sequence[Path]]

WITH_TEXT: Final[Mapping[str, Write]] = {
    "parser, one file for each": lambda to, given: [
        as_json(to / f"{number}.json", parser_output(each)) for number, each in enumerate(given)
    ],
    "parser, lines": lambda to, given: [as_lines(to / "a.jsonl", [*map(parser_output, given)])],
    "parser, dotted": lambda to, given: [as_json(to / "a.json", [dotted(parser_output(each)) for each in given])],
    "flat, array": lambda to, given: [as_json(to / "a.json", [row for each in given for row in nested_rows(each)])],
    "flat, dotted lines": lambda to, given: [
        as_lines(to / "a.jsonl", [dotted(row) for each in given for row in nested_rows(each)])
    ],
    "flat, lines in .json": lambda to, given: [
        as_lines(to / "a.json", [row for each in given for row in nested_rows(each)])
    ],
    "flat, response": lambda to, given: [
        as_json(to / "a.json", {"rows": [{"row": row} for each in given for row in nested_rows(each)]})
    ],
    "vespa, feed": lambda to, given: [as_json(to / "a.json", [row for each in given for row in vespa(each)])],
    "vespa, two files": lambda to, given: [
        as_lines(to / "p.jsonl", [row for each in given for row in vespa(each)[:-1]]),
        as_json(to / "d.json", [vespa(each)[-1] for each in given]),
    ],
}  # fmt: skip
WITHOUT_TEXT: Final[Mapping[str, Write]] = {
    "families": lambda to, given: [as_json(to / "a.json", {"data": family(given)})],
    "pipeline": lambda to, given: [as_json(to / "a.json", {"documents": {each.id: metadata(each) for each in given}})],
    "metadata": lambda to, given: [as_csv(to / "a.csv", [*map(table, given)])],
}

slugs = st.text("abcdefg", min_size=1, max_size=6)
words = st.text(st.characters(codec="utf-8", exclude_categories=["Cs", "Cc", "Z"]), min_size=1, max_size=20).map(
    lambda text: f"x{text}x"
)
blocks = st.lists(st.builds(Block, words, st.integers(0, 900), st.sampled_from([*TYPES])), min_size=1, max_size=6)
languages = st.lists(st.sampled_from(["en", "fr", "ar"]), min_size=1, max_size=2, unique=True)
sectors = st.lists(st.sampled_from(["Energy", "Water; Waste", "Transport"]), max_size=2, unique=True)
some_documents = st.lists(
    st.builds(Document, slugs, words, words, slugs, languages, sectors, blocks),
    min_size=1, max_size=3, unique_by=lambda document: document.slug,
)  # fmt: skip


def find(*paths: Path) -> Sequence[File]:
    return find_files([str(path) for path in paths], SETTINGS, (*json_objects.ENDINGS, ".csv")).files


def read(*paths: Path) -> dict[str, SourceDocument]:
    found = {}
    for item in documents.read(find(*paths)):
        assert not isinstance(item, Rejection), item
        if isinstance(item, SourceDocument):
            found["/".join(item.key)] = item
    return found


def said(found: Mapping[str, SourceDocument]) -> dict[str, set[Any]]:
    families = [graph for each in found.values() for graph in each.shared.values()]
    kept = {quad for graph in families for quad in graph if quad.predicate in (DCTERMS.title, SKOS.notation)}
    return {key: {*to_quads(each), *kept} for key, each in found.items()}


def write_and_read(write: Write, given: Sequence[Document]) -> dict[str, SourceDocument]:
    with TemporaryDirectory() as folder:
        return read(*write(Path(folder), given))


@pytest.mark.parametrize("write", WITH_TEXT.values(), ids=WITH_TEXT)
def test_two_documents_have_the_same_quads_in_each_layout(write: Write) -> None:
    given = [PLAIN, PLAIN._replace(slug="other", languages=["ar", "fr"], sectors=(), blocks=PLAIN.blocks[:1])]
    assert said(write_and_read(write, given)) == said(write_and_read(next(iter(WITH_TEXT.values())), given))


@pytest.mark.long
@settings(max_examples=12)
@given(some_documents)
def test_a_document_has_the_same_quads_and_hash_in_each_layout(given: list[Document]) -> None:
    first, *others = (write_and_read(write, given) for write in WITH_TEXT.values())
    assert {key: len(each.units) for key, each in first.items()} == {each.slug: len(each.blocks) for each in given}
    for name, found in zip([*WITH_TEXT][1:], others, strict=True):
        assert said(found) == said(first), name
        assert {each.source_sha256 for each in found.values()} == {each.source_sha256 for each in first.values()}, name


@pytest.mark.long
@settings(max_examples=8)
@given(some_documents)
def test_tables_without_texts_have_the_same_documents_and_families(given: list[Document]) -> None:
    # A family has one set of topics and a summary of its own, so it has neither here.
    given = [each._replace(sectors=(), description="") for each in given]
    first, *others = (write_and_read(write, given) for write in WITHOUT_TEXT.values())
    whole = write_and_read(WITH_TEXT["flat, array"], given)
    for name, found in zip(WITHOUT_TEXT, [first, *others], strict=True):
        assert said(found) == said(first), name
    for key, quads in said(whole).items():
        units = {unit.iri for unit in whole[key].units}
        assert {quad for quad in quads if quad.subject not in units} == said(first)[key]


PLAIN: Final = Document(
    "plan", "Plan", "About it.", "fam", ["en"], ["Energy"], [Block("One.", 0, "Text"), Block("Two.", 1, "Text")]
)


def test_passages_and_documents_of_different_layouts_complete_each_other(tmp_path: Path) -> None:
    passages = as_lines(tmp_path / "p.jsonl", vespa(PLAIN)[:-1])
    for described in (
        as_csv(tmp_path / "t.csv", [table(PLAIN)]),
        as_json(tmp_path / "f.json", family([PLAIN])),
        as_json(tmp_path / "i.json", metadata(PLAIN)),
    ):
        [document] = read(passages, described).values()
        assert [unit.text for unit in document.units] == ["One.", "Two."]
        rows = [(Path(origin.snapshot.source).name, list(origin.rows)) for origin in document.origins]
        assert rows == [("p.jsonl", [3, 2]), (described.name, [1])]  # the feed has the passages in reverse
    rejected = [item for item in documents.read(find(passages)) if isinstance(item, Rejection)]
    assert [(each.record, each.key) for each in rejected] == [(PLAIN.id, None)]
    assert PLAIN.id in rejected[0].reason


def test_passages_in_two_layouts_are_not_doubled(tmp_path: Path) -> None:
    both = [*parser_output(PLAIN)["pdf_data"]["text_blocks"]]
    longer = as_json(tmp_path / "a.json", parser_output(PLAIN))
    [document] = read(longer, as_lines(tmp_path / "b.jsonl", nested_rows(PLAIN)[:1])).values()
    assert len(document.units) == len(both)
    assert [warning for warning in document.warnings if "left out" in warning]


def test_a_table_without_texts_is_replaced_by_a_file_with_them_and_does_not_replace_it(
    kg: KnowledgeGraph, tmp_path: Path
) -> None:
    described, whole = as_csv(tmp_path / "t.csv", [table(PLAIN)]), as_json(tmp_path / "a.json", parser_output(PLAIN))
    feed = as_json(tmp_path / "v.json", vespa(PLAIN))
    assert load(kg, "climate", [str(described)]).loaded == 1
    report = load(kg, "climate", [str(whole)])
    assert (report.loaded, report.rejected) == (1, 0)
    passage = mint("passage", "plan", "1")
    assert kg.store.query(f"ASK {{ GRAPH ?g {{ {passage} <{SCHEMA.text.value}> 'Two.' }} }}")
    assert load(kg, "climate", [str(feed)]).skipped == 1  # the same document
    report = load(kg, "climate", [str(described)])
    assert (report.loaded, report.skipped, report.rejected) == (0, 1, 0)
    assert "/a.json" in report.older[0].reason
    assert load(kg, "climate", [str(described)], replace_newer=True).loaded == 1


def test_a_layout_without_fields_is_named_for_a_table_too(tmp_path: Path) -> None:
    mapping = tmp_path / "m.toml"
    mapping.write_text('[layout.mine]\nrequires = ["a", "b"]\n')
    layouts = load_layouts(str(mapping))
    for path in (as_csv(tmp_path / "t.csv", [{"a": 1, "b": 2}]), as_json(tmp_path / "t.json", {"a": 1, "b": 2})):
        with pytest.raises(LeftOutError, match="'mine'"):
            list(documents.read(find(path), layouts))


UGLY: Final = {
    "truncated": json.dumps([parser_output(PLAIN)])[:-40],
    "no JSON": "slug: plan",
    "empty array": "[]",
    "unknown": json.dumps([{"colour": "green"}, {"colour": "red", "size": 2}]),
    "only others": json.dumps([{"remove": "id:x::1"}, 3]),
}


@pytest.mark.parametrize("text", UGLY.values(), ids=UGLY)
def test_a_file_that_cannot_be_read_is_an_error_alone_and_a_rejection_beside_others(text: str, tmp_path: Path) -> None:
    ugly, good = tmp_path / "ugly.json", as_json(tmp_path / "good.json", parser_output(PLAIN))
    ugly.write_text(text)
    with pytest.raises(SourceError, match=r"ugly\.json"):
        list(documents.read(find(ugly)))
    items = [item for item in documents.read(find(ugly, good)) if not isinstance(item, Notice)]
    assert [type(item) for item in items] == [Rejection, SourceDocument]


def test_an_unknown_layout_is_told_with_the_fields_seen_and_the_known_layouts(tmp_path: Path) -> None:
    with pytest.raises(SourceError) as raised:
        list(documents.read(find(as_json(tmp_path / "a.json", {"colour": "green", "place": {"name": "x"}}))))
    for word in ("colour", "place.name", "passages", "families", "--mapping"):
        assert word in str(raised.value)


WRONG: Final[Mapping[str, Callable[[dict[str, Any]], Any]]] = {
    "no object": lambda value: 5,
    "text blocks of text": lambda value: value | {"pdf_data": {"text_blocks": "none"}},
    "text of a wrong type": lambda value: value | {"pdf_data": {"text_blocks": [{"text": 7}]}},
    "lines of a wrong type": lambda value: value | {"pdf_data": {"text_blocks": [{"text": ["a", 7]}]}},
    "a page that is none": lambda value: value | {"pdf_data": {"text_blocks": [block(0, Block("a", -7, "Text"))]}},
    "a slug that is a list": lambda value: value | {"document_metadata": {**value["document_metadata"], "slug": []}},
    "a lone surrogate": lambda value: value | {"document_name": "\ud800", "document_metadata.document_title": "\ud800"},
}


@pytest.mark.parametrize("change", WRONG.values(), ids=WRONG)
def test_a_bad_record_does_not_stop_the_load(
    change: Callable[[dict[str, Any]], Any], kg: KnowledgeGraph, tmp_path: Path
) -> None:
    good, bad = PLAIN, PLAIN._replace(slug="bad")
    path = as_json(tmp_path / "a.json", [parser_output(good), change(parser_output(bad))])
    path.write_text(json.dumps(json.loads(path.read_text()), indent=1))
    report = load(kg, "climate", [str(path)])
    assert (report.loaded, report.rejected) == (1, 1), report.rejections
    assert retry(kg, None)["loaded"] == 0


MAPPING = """
[layout.town]
requires = ["ref", "body.text"]
[layout.town.fields]
slug = { column = "ref", match = "^T-(.+)$" }
title = ["name", "ref"]
family_title = "series"
geographies = "country"
text = "body.text"
language = "body.lang"
[layout.town.values.language]
"anglais" = "en"
"""


def test_a_mapping_adds_a_layout(kg: KnowledgeGraph, tmp_path: Path) -> None:
    mapping = tmp_path / "town.toml"
    mapping.write_text(MAPPING)
    record = {"ref": "T-quay", "series": "Quay rules", "country": "DJI", "body": {"text": "One.", "lang": "anglais"}}
    path = as_json(tmp_path / "a.json", [record, record | {"body": {"text": "Two."}}])
    assert load(kg, "climate", [str(path)], mapping=str(mapping)).loaded == 1
    [document] = [
        item for item in documents.read(find(path), load_layouts(str(mapping))) if isinstance(item, SourceDocument)
    ]
    assert (document.key, document.title) == (("quay",), "T-quay")
    assert [(unit.position, unit.text, unit.language) for unit in document.units] == [
        (0, "One.", "en"),
        (1, "Two.", None),
    ]
    as_csv(tmp_path / "b.csv", [{"ref": "T-pier", "series": "Pier rules", "country": "KEN", "body.text": "Three."}])
    assert load(kg, "climate", [str(tmp_path / "b.csv")], mapping=str(mapping)).loaded == 1


@pytest.mark.parametrize(
    ("mapping", "named"),
    [
        ("", "layout"),
        ("[layout.a]\nrequires = []", "requires"),
        ("[layout.a]\nrequires = ['x']\nfields = {colour = 'x'}", "colour"),
        ("[layout.a]\nrequires = ['x']\nfields = {slug = 'x'}", "family_slug"),
        ("[layout.a]\nrequires = ['x']\nfields = {family_slug = 'x'}", "slug"),
        ("[layout.a]\nrequires = ['x']\nlike = 'none'", "parser"),
        ("[layout.a]\nrequires = ['x']\nfields = {slug = {column = 'x', match = '('}}", "match"),
        ("[layout.a]\nrequires = ['x']\nfields = {slug = {column = 'x', match = 'x'}}", "match"),
        ("[layout.a]\nrequires = ['x']\nfields = {slug = {column = 'x', match = '(?=(x))'}}", "RE2"),
        ("[layout.a]\nrequires = ['x']\nfields = {slug = 3}", "slug"),
        ("layout = 3", "layout"),
        (
            f"[layout.a]\nrequires = ['x']\nfields = {{slug = {{column = 'x', match = '{5000 * '('}x{5000 * ')'}'}}}}",
            "match",
        ),
        ("[layout", "TOML"),
        ("#" * 1_000_001, "1,000,000 bytes"),
    ],
)
def test_a_wrong_mapping_is_an_error_that_names_its_place(mapping: str, named: str, tmp_path: Path) -> None:
    path = tmp_path / "a.toml"
    path.write_text(mapping)
    with pytest.raises(InvalidInputError, match=r"a\.toml") as raised:
        load_layouts(str(path))
    assert named in str(raised.value)


def test_the_fixtures_are_the_same_documents() -> None:
    feed = said(read(FIXTURES / "vespa-feed.json"))
    assert said(read(FIXTURES / "parser-output.json")) | said(read(FIXTURES / "rows.json")) == feed
    assert len(feed) == 2
    tables = [said(read(FIXTURES / name)) for name in ("families.json", "pipeline.json", "metadata.csv")]
    assert all({key: found[key] - feed[key] for key in feed} == {key: set() for key in feed} for found in tables)


scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
names = st.sampled_from(
    [
        "put",
        "id",
        "fields",
        "text_block",
        "text_block_id",
        "rows",
        "row",
        "documents",
        "slug",
        "title",
        "import_id",
        "x",
    ]
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=5), max_leaves=12
)


@pytest.mark.long
@settings(max_examples=40)
@given(values, st.sampled_from([".json", ".jsonl"]), st.integers(0, 200))
def test_any_json_is_read_or_is_an_error_of_the_source(value: Any, ending: str, kept: int) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder, f"a{ending}")
        for text in (json.dumps(value), json.dumps([value, parser_output(PLAIN), value]), json.dumps(value)[:kept]):
            path.write_text(text)
            with suppress(SourceError):
                assert any(isinstance(item, SourceDocument | Rejection) for item in documents.read(find(path)))


def test_passages_are_of_a_document_that_an_earlier_load_described(kg: KnowledgeGraph, tmp_path: Path) -> None:
    described = as_csv(tmp_path / "t.csv", [table(PLAIN), table(PLAIN._replace(slug="other"))])
    passages = as_lines(tmp_path / "p.jsonl", vespa(PLAIN)[:-1])
    assert load(kg, "climate", [str(described)]).loaded == 2
    report = load(kg, "climate", [str(passages)])
    assert (report.loaded, report.skipped, report.rejected) == (1, 0, 0), report.rejections
    graph = mint("graph", "src", "climate", "plan")
    rows = kg.store.query(f"SELECT ?p ?o {{ GRAPH {graph} {{ ?d a kg:PolicyDocument ; dcterms:title 'Plan' }} }}")
    assert isinstance(rows, Rows)
    assert rows.rows
    assert {name.rpartition("/")[2] for name in load_sources(kg.store, [graph])[graph].values()} == {"t.csv", "p.jsonl"}
    assert load(kg, "climate", [str(passages)]).skipped == 1
    assert len(load(kg, "climate", [str(described)]).older) == 1, "the texts are kept"
    described.unlink()
    assert load(kg, "climate", [str(as_lines(passages, vespa(PLAIN)[:-2]))]).rejected == 1
