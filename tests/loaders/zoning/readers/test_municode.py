"""A code from Municode's service, or from JSON, becomes its sections, whatever is wrong in the data."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kg.errors import SourceError, UpstreamError
from kg.remote import sparql
from kg.settings import Settings
from loaders.zoning.readers import input_files, json_entries, municode, municode_client
from loaders.zoning.readers.code_model import Code, Section

CLIENT = {"ClientID": 4321, "ClientName": "Mossford", "State": {"StateAbbreviation": "ut"}}
JOB = {"Id": 9, "Name": "Supplement 3", "BannerText": "Codified through Ordinance No. 12, enacted May 1, 2020"}
ZONING = "COOR_CH61ZO"
TOC: dict[str, list[dict[str, Any]]] = {
    "": [
        {"Id": "COOR", "Heading": "CODE OF ORDINANCES", "HasChildren": True, "ParentId": "555"},
        {"Id": "SUTA", "Heading": "SUPPLEMENT TABLE", "HasChildren": False, "ParentId": "555"},
    ],
    "COOR": [
        {"Id": "COOR_CH1GE", "Heading": "Chapter 1 - GENERAL", "HasChildren": True, "ParentId": "COOR"},
        {"Id": ZONING, "Heading": "Chapter 61 - ZONING", "HasChildren": True, "ParentId": "COOR"},
    ],
    "COOR_CH1GE": [
        {"Id": "COOR_CH1GE_S1", "Heading": "Sec. 1-1. - Name.", "HasChildren": False, "ParentId": "COOR_CH1GE"}
    ],
    ZONING: [{"Id": f"{ZONING}_ARTII", "Heading": "ARTICLE II. - USES", "HasChildren": True, "ParentId": ZONING}],
    f"{ZONING}_ARTII": [
        {"Id": f"{ZONING}_S1", "Heading": "Sec. 61-1. - Barns.", "HasChildren": False, "ParentId": f"{ZONING}_ARTII"},
        {"Id": f"{ZONING}_S2", "Heading": "Sec. 61-2. - Sheds.", "HasChildren": False, "ParentId": f"{ZONING}_ARTII"},
    ],
}
BARNS = """<div class="chunk-content"><p class="p0">A barn may be</p>
<p class="incr0">(a)</p><p class="content1">tall; or</p>
<p class="incr0">(b)</p><p class="incr1">(1)</p><p class="content2">wide.</p><table><tr><th>Use</th><th>R1</th></tr>
<tr><td>Barn</td><td>P</td></tr></table><p class="historynote0">(Ord. No. 7, § 2, 1-1-1990)</p>
<p class="refeditor0">So it was.</p></div>"""
DOCS: dict[str, list[dict[str, Any]]] = {
    f"{ZONING}_S1": [
        {"Id": f"{ZONING}_S1", "Title": "Sec. 61-1. - Barns.", "Content": BARNS},
        {"Id": f"{ZONING}_S2", "Title": "Sec. 61-2. - Sheds.", "Content": "<p>A shed is low.</p>"},
    ],
    "COOR_CH1GE_S1": [{"Id": "COOR_CH1GE_S1", "Title": "Sec. 1-1. - Name.", "Content": "<p>Mossford.</p>"}],
}


@dataclass
class StandIn:
    """A service on loopback with responses like Municode's."""

    url: str = ""
    asked: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    busy: int = 0
    instead: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    toc: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: dict(TOC))

    def answer(self, path: str, query: dict[str, str]) -> tuple[int, bytes]:
        if self.busy:
            self.busy -= 1
            return 503, b"busy"
        if path in self.instead:
            return self.instead[path]
        value: Any
        if path == "/Clients/name":
            value = CLIENT if query == {"clientName": "Mossford", "stateAbbr": "UT"} else None
        elif path == "/ClientContent/4321":
            value = {"codes": [{"productId": 555, "productName": "Code of Ordinances"}], "munidocs": []}
        elif path == "/Jobs/latest/555":
            value = JOB
        elif (query.pop("jobId", ""), query.pop("productId", "")) != ("9", "555"):
            return 400, b"no such edition"
        elif path == "/codesToc/children":
            value = self.toc.get(query.get("nodeId", ""), [])
        elif path == "/CodesContent":
            value = {"Docs": DOCS.get(query["nodeId"], [{"Id": query["nodeId"], "Title": "", "Content": None}])}
        else:
            return 404, b"no"
        return 200, json.dumps(value).encode()


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> Iterator[StandIn]:
    monkeypatch.setattr(sparql, "INTERVAL_S", 0.0)
    state = StandIn()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            query = dict(parse_qsl(parts.query))
            state.asked.append((parts.path, dict(query)))
            status, body = state.answer(parts.path, query)
            self.send_response(status)
            for name, value in (
                ("Content-Type", "application/json"),
                ("Content-Length", str(len(body))),
                ("Retry-After", "0"),
            ):
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        state.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield state
        server.shutdown()
        thread.join()


@pytest.fixture
def settings(stand_in: StandIn, tmp_path: Path) -> Settings:
    return Settings(municode_url=stand_in.url, answers_dir=tmp_path / "answers", _env_file=None)  # type: ignore[arg-type, call-arg]


def fetched(location: str, settings: Settings, tmp_path: Path) -> tuple[Code, municode_client.Fetched]:
    found = municode_client.fetch(location, settings, tmp_path / "fetched")
    (path,) = found.files.values()
    (read,) = input_files.find_codes([path]).inputs
    assert read.kind == "municode"
    return read.read(), found


def by_key(code: Code) -> dict[str, Section]:
    return {section.key: section for section in code.sections}


def test_a_code_is_fetched_by_the_name_of_its_client_and_read(
    stand_in: StandIn, settings: Settings, tmp_path: Path
) -> None:
    code, found = fetched("municode:Mossford, UT", settings, tmp_path)
    assert (code.municipality, code.state) == ("Mossford", "UT")
    assert [(s.key, s.kind, s.level, s.title) for s in code.sections] == [
        ("level CODE OF ORDINANCES", "level", 1, "CODE OF ORDINANCES"),
        ("level CODE OF ORDINANCES|chapter 1", "chapter", 2, "GENERAL"),
        ("1-1", "section", 3, "Name."),
        ("level CODE OF ORDINANCES|chapter 61", "chapter", 2, "ZONING"),
        ("level CODE OF ORDINANCES|chapter 61|article II", "article", 3, "USES"),
        ("61-1", "section", 4, "Barns."),
        ("61-2", "section", 4, "Sheds."),
        ("level SUPPLEMENT TABLE", "level", 1, "SUPPLEMENT TABLE"),
    ]
    barns = by_key(code)["61-1"]
    assert barns.text == "A barn may be\n(a) tall; or\n(b) (1) wide.\nUse | R1\nBarn | P"
    assert [part.path for part in barns.subsections] == [("a",), ("b",), ("b", "1")]
    assert [(note.kind, note.text) for note in barns.notes] == [
        ("History", "(Ord. No. 7, § 2, 1-1-1990)"),
        ("Editor's Note", "So it was."),
    ]
    assert list(found.files) == ["municode:4321/555.json"]
    assert (found.scope, found.revision) == ("municode:4321/", "Supplement 3")
    content = [query["nodeId"] for path, query in stand_in.asked if path == "/CodesContent"]
    assert f"{ZONING}_S2" not in content, "the answer for the section before it held it already"


def test_by_node_only_that_part_is_asked_for_under_the_same_keys(
    stand_in: StandIn, settings: Settings, tmp_path: Path
) -> None:
    code, found = fetched(f"municode:Mossford, ut@{ZONING}", settings, tmp_path)
    assert [s.key for s in code.sections][1:] == [
        "level CODE OF ORDINANCES|chapter 61",
        "level CODE OF ORDINANCES|chapter 61|article II",
        "61-1",
        "61-2",
    ]
    assert list(found.files) == [f"municode:4321/555@{ZONING}.json"]
    assert not any(query.get("nodeId", "").startswith("COOR_CH1") for _, query in stand_in.asked)


def test_what_an_edition_holds_is_asked_once_and_what_may_change_when_it_is_old(
    stand_in: StandIn, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = fetched("municode:Mossford, UT", settings, tmp_path)[0]
    stand_in.asked.clear()
    assert fetched("municode:Mossford, UT", settings, tmp_path)[0] == first
    assert not stand_in.asked
    monkeypatch.setattr(municode_client, "FRESH_S", 0.0)
    assert fetched("municode:Mossford, UT", settings, tmp_path)[0] == first
    assert [path for path, _ in stand_in.asked] == ["/Clients/name", "/ClientContent/4321", "/Jobs/latest/555"]


def test_a_busy_service_is_asked_again_and_one_that_fails_is_told(
    stand_in: StandIn, settings: Settings, tmp_path: Path
) -> None:
    stand_in.busy = 2
    fetched("municode:Mossford, UT", settings, tmp_path)
    for path, answer in {
        "/Jobs/latest/555": (200, b"{}"),
        "/codesToc/children": (200, b'{"Message": "no"}'),
        "/CodesContent": (404, b"gone"),
        "/ClientContent/4321": (200, b"<html>"),
    }.items():
        stand_in.instead = {path: answer}
        fresh = settings.model_copy(update={"answers_dir": tmp_path / path.strip("/").replace("/", "-")})
        with pytest.raises(UpstreamError):
            municode_client.fetch("municode:Mossford, UT", fresh, tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_requests_to_the_service_are_spaced(stand_in: StandIn, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparql, "INTERVAL_S", 0.5)
    waits: list[float] = []
    asked = municode_client.Service(stand_in.url, tmp_path, sleep=waits.append)
    asked.client("Mossford", "UT")
    asked.products(4321)
    with pytest.raises(SourceError):
        asked.client("Elsewhere", "UT")
    assert waits == [pytest.approx(0.5, abs=0.3), pytest.approx(1.0, abs=0.3)]


@pytest.mark.parametrize(
    ("location", "told"),
    [
        ("municode:", "client"),
        ("municode:Mossford", "client"),
        ("municode:Nowhere, UT", "'Nowhere' in UT"),
        ("municode:Mossford, UT@NONE", "'NONE'"),
    ],
)
def test_a_location_that_names_nothing_is_told(location: str, told: str, settings: Settings, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=told):
        municode_client.fetch(location, settings, tmp_path)


def test_a_table_of_contents_that_goes_in_circles_is_gone_through_once(
    stand_in: StandIn, settings: Settings, tmp_path: Path
) -> None:
    stand_in.toc = TOC | {f"{ZONING}_ARTII": [*TOC[f"{ZONING}_ARTII"], {**TOC["COOR"][1]}]}
    code, found = fetched("municode:Mossford, UT", settings, tmp_path)
    assert "61-1" in by_key(code)
    assert any("below itself" in each for each in found.warnings)


def answers(nodes: list[Any], docs: list[Any]) -> Code:
    return municode.parse(json.dumps({"client": CLIENT, "nodes": nodes, "docs": docs}).encode(), "x.json")


def test_orphans_circles_and_disagreements_are_told_and_their_words_kept() -> None:
    code = answers(
        [
            {"Id": "A", "Heading": "Sec. 1. Ponds", "ParentId": "GONE"},
            {"Id": "B", "Heading": "ARTICLE I", "ParentId": "C"},
            {"Id": "C", "Heading": "ARTICLE II", "ParentId": "B"},
            {"Heading": "no id"},
        ],
        [
            {"Id": "A", "Title": "Sec. 1. Lakes", "Content": "<p>wet</p>"},
            {"Id": "D", "Title": "Sec. 4. Found", "Content": "here"},
            {"Id": "D", "Title": "Sec. 4. Found", "Content": "there"},
            7,
        ],
    )
    assert [(s.key, s.parent, s.text) for s in code.sections] == [
        ("section 1", None, "wet"),
        ("article II", None, ""),
        ("article II|article I", "article II", ""),
        ("section 4", None, "here"),
    ]
    for told in ("'GONE'", "'B' is below it", "without Id", "Id D", "no node"):
        assert any(told in each for each in code.warnings), told


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"nodes": 1, "docs": []}', b"[" * 100_000])
def test_what_holds_no_answers_is_refused(data: bytes) -> None:
    with pytest.raises(SourceError):
        municode.parse(data, "x.json")


# JSON with the fields of the tools


def parse(value: object) -> Code:
    return json_entries.parse(json.dumps(value).encode(), "x.json")


SECTIONS = [
    {
        "section_id": "61-2",
        "title": "Sheds",
        "level": 3,
        "raw_content": "low\r\n(a) one\n\n(b) two\n",
        "parent_id": "II",
        "order": 2,
    },
    {"section_id": "II", "title": "Uses", "level": "article"},
    {
        "section_id": "61-1",
        "title": "Barns",
        "raw_content": "<p>tall</p><p>(Ord. 5, 1990)</p>",
        "parent_id": "II",
        "order": 1,
    },
]


def test_entries_become_sections_below_their_parents_in_their_order() -> None:
    code = parse({"municipality": "Mossford", "state": "UT", "sections": SECTIONS})
    assert [(s.key, s.kind, s.level, s.parent, s.order, s.text) for s in code.sections] == [
        ("II", "article", 1, None, 0, ""),
        ("61-1", "section", 2, "II", 1, "tall"),
        ("61-2", "section", 3, "II", 2, "low\n(a) one\n\n(b) two"),
    ]
    assert [part.path for part in code.sections[2].subsections] == [("a",), ("b",)]
    assert code.sections[1].history == ["(Ord. 5, 1990)"]
    assert (code.municipality, code.state, code.warnings) == ("Mossford", "UT", ())
    assert parse(SECTIONS).sections == code.sections


def test_statements_are_kept_as_recorded_and_bad_entries_told() -> None:
    code = parse(
        {
            "permissions": [
                {
                    "district": "R-1",
                    "use": "Barn",
                    "permission": "P",
                    "conditions": ["one", "two"],
                    "section_ref": "61-1",
                },
                {"district": "R-1", "use": "Pig", "permission": "C", "conditions": "fenced", "review_section": "61-9"},
                {"district": "R-1", "use": "Goat"},
                "nonsense",
            ],
            "standards": [
                {"district": "R-1", "standard_type": "height", "value": 35, "unit": "ft"},
                {"district": "R-1", "standard_type": "height", "value": "10% of lot depth"},
                {"district": "R-1", "standard_type": "height", "value": {"min": 1}, "unit": "ft"},
            ],
            "definitions": [{"term": "Barn", "definition_text": "a roof"}, {"term": "\ud800", "definition_text": "x"}],
            "sections": {"not": "a list"},
        }
    )
    assert [(p.use, p.permission, p.conditions, p.review_section) for p in code.permissions] == [
        ("Barn", "P", ("one", "two"), None),
        ("Pig", "C", ("fenced",), "61-9"),
    ]
    assert [(s.value, s.unit) for s in code.standards] == [("35", "ft"), ("10% of lot depth", "")]
    assert [d.term for d in code.definitions] == ["Barn"]
    for told in (
        "Entry 3 of 'permissions'",
        "Entry 4",
        "Entry 3 of 'standards'",
        "lone surrogate",
        "'sections' is skipped",
    ):
        assert any(told in each for each in code.warnings), told


def test_circles_orphans_and_wrong_levels_of_entries_are_told_and_mended() -> None:
    code = parse(
        [
            {"section_id": "a", "title": "A", "parent_id": "b", "raw_content": "one"},
            {"section_id": "b", "title": "B", "parent_id": "c"},
            {"section_id": "c", "title": "C", "parent_id": "a"},
            {"section_id": "d", "title": "D", "parent_id": "d"},
            {"section_id": "e", "title": "E", "parent_id": "nowhere"},
            {"section_id": "f", "title": "F", "level": 5},
            {"section_id": "g", "title": "G", "level": 2, "parent_id": "f"},
            {"section_id": "g", "title": "G2", "raw_content": "again"},
            {"section_id": "g", "title": "G3", "raw_content": "and again"},
            {"title": "no id"},
            {"section_id": "h", "level": "storey"},
            {"section_id": "i", "order": -1},
        ]
    )
    sections = by_key(code)
    assert {key: section.parent for key, section in sections.items() if section.parent} == {"a": "b", "b": "c"} | {
        key: "f" for key in sections if key == "g" and sections["g"].parent
    }
    assert (sections["f"].level, sections["c"].parent, sections["d"].parent) == (5, None, None)
    assert {section.text for section in code.sections} >= {"one", "again", "and again"}
    for told in ("'d' is below it", "'nowhere'", "section_id", "level", "order", "g~2"):
        assert any(told in each for each in code.warnings), told
    position = {section.key: number for number, section in enumerate(code.sections)}
    for section in code.sections:
        assert section.parent is None or position[section.parent] < position[section.key]
        assert section.parent is None or section.level > sections[section.parent].level


def test_an_empty_municipality_and_what_is_no_code() -> None:
    assert parse({"municipality": "Mossford", "sections": []}).sections == []
    for value in ({}, {"sections": 7}, 7, "text", None):
        with pytest.raises(SourceError, match="sections, permissions, standards, definitions"):
            parse(value)
    with pytest.raises(SourceError, match="JSON"):
        json_entries.parse(b"{", "x.json")


@pytest.mark.long
def test_a_section_of_5_mb_is_read_whole() -> None:
    raw = "(a) shall not be built here\n" * 190_000
    (section,) = parse([{"section_id": "1-1", "title": "Long", "raw_content": raw}]).sections
    assert section.text == raw.rstrip("\n")


ID = st.sampled_from(["1", "1-1", "A", "§ 5", "é"])


@given(
    st.lists(
        st.fixed_dictionaries(
            {"section_id": ID, "title": ID, "raw_content": st.text(max_size=20), "parent_id": ID | st.none()}
        )
    )
)
def test_any_entries_make_a_forest_with_keys_of_their_own(given_entries: list[dict[str, Any]]) -> None:
    code = parse(given_entries)
    keys = [section.key for section in code.sections]
    assert len(set(keys)) == len(keys)
    for number, section in enumerate(code.sections):
        assert section.parent is None or section.parent in keys[:number]
        assert all(0 <= part.start < part.end <= len(section.text) for part in section.subsections)


# Which files are codes


def test_files_are_told_by_what_they_hold_and_go_together(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text("<h1>Title 1 A</h1>")
    (tmp_path / "a.toc.json").write_text('{"sections": [{"id": "1_1", "label": "1.1.010 X"}]}')
    (tmp_path / "a.txt").write_text("Title 1 A\n")
    (tmp_path / "b.txt").write_text("Sec. 1-1. A.\nx\n")
    (tmp_path / "toc_b.json").write_text('{"sections": [{"id": "1_1", "label": "Sec. 1-2. B"}]}')
    (tmp_path / "c.json").write_text(json.dumps(SECTIONS))
    (tmp_path / "d.json").write_text('[{"zone": "R1", "min": 5}]')
    (tmp_path / "e.json").write_text('[{"title": "A", "file": "a.html", "toc": "a.toc.json"}]')
    (tmp_path / "f.json").write_text("not json")
    (tmp_path / "g.xml").write_text("<section/>")
    (tmp_path / "h.csv").write_text("a,b\n")
    found = input_files.find_codes(sorted(tmp_path.iterdir()))
    assert [(each.kind, each.path.name) for each in found.inputs] == [
        ("html", "a.html"),
        ("text", "b.txt"),
        ("json", "c.json"),
    ]
    assert sorted(path.name for path in found.others) == ["d.json", "f.json", "g.xml", "h.csv"]
    assert any("a.txt" in each and "a.html" in each for each in found.warnings)
    assert input_files.find_codes([tmp_path / "toc_b.json"]).warnings
    assert found.inputs[1].read().sections
