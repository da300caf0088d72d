"""Records without a title: nothing is stored as one, and every reader shows the same title for display, in brackets."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode
from starlette.applications import Starlette
from starlette.testclient import TestClient

from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_triple
from kg.retrieval.display_titles import build_display_title
from kg.retrieval.reader import Reader, iri_of
from kg.server import pages
from kg.server.mcp import ToolThreads
from kg.store.protocol import Rows, term_text
from kg.tools.climate.families import family_overview, policy_lineage
from kg.tools.entities.dereference import dereference, names_of
from kg.tools.parliament.search import search_speeches
from kg.tools.parliament.speeches import get_speech
from kg.tools.search.passages import fetch, search
from kg.tools.zoning.sections import kg_query_section
from kg.vocabulary import DCTERMS, mint
from loaders.hansard import loader as hansard
from loaders.hansard.speech_records import Recorded, Writer
from loaders.sources import load
from tests.conftest import load_once
from tests.folders import open_graph

WORDS = "Quokkas graze upon the fictional dunes, and nobody counts them."


@pytest.fixture
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = load_once(tmp_path_factory, "empty")
    with open_graph(folder) as found:
        yield found


def write_csv(folder: Path) -> Path:
    path = folder / "speeches.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(("speech_id", "date", "chamber", "speaker", "party", "state", "text", "title", "jurisdiction"))
        lines.writerow(("dunes", "2024-10-16", "Senate", "Fern Ashby", "ALP", "NSW", WORDS, "", "AUS"))
    return path


def write_xml(folder: Path) -> Path:
    path = folder / "day.xml"
    names = "<name role='metadata'>Ashby, Fern</name><name role='display'>Ms ASHBY</name>"
    talker = f"<talker><name.id>A1</name.id>{names}</talker>"
    speech = f"<speech><talk.start>{talker}<para>{WORDS}</para></talk.start></speech>"
    day = "<date>2024-10-16</date><parliament.no>47</parliament.no><chamber>SENATE</chamber><proof>1</proof>"
    # One debate has neither title nor kind, one a kind only.
    debates = (
        f"<debate><debateinfo><page.no>3</page.no></debateinfo>{speech}</debate>"
        "<debate><debateinfo><type>Petitions</type></debateinfo><para>Petitions received.</para></debate>"
    )
    path.write_text(
        f'<?xml version="1.0"?><hansard version="2.0"><session.header>{day}</session.header>'
        f"<chamber.xscript>{debates}</chamber.xscript></hansard>"
    )
    return path


def write_sgml(folder: Path) -> Path:
    path = folder / "day.sgml"
    talker = '<TALKER><NAME NAMEID="A1">Senator ASHBY</NAME></TALKER>'
    path.write_text(
        '<!DOCTYPE hansard PUBLIC "-//PARLINFO//DTD HANSARD STORAGE//EN" []>\n'
        '<HANSARD DATE="05/12/1990" PROOF="No" CHAMBER="Senate" SESSION.NO=1 >\n<CHAMBER.XSCRIPT><DEBATE>'
        f'<SPEECH SPEAKER="Ashby Sen F." NAMEID="A1"><TALK.START>{talker}<PARA IN-LINE="1">{WORDS}</PARA></TALK.START>'
        "</SPEECH></DEBATE></CHAMBER.XSCRIPT></HANSARD>\n"
    )
    return path


def titles_of(kg: KnowledgeGraph) -> dict[str, str]:
    """Every title in the graphs of sources and derived graphs, by its subject."""
    rows = kg.store.query(
        "SELECT ?thing ?title { GRAPH ?graph { ?thing dcterms:title ?title } FILTER(!STRENDS(STR(?graph), '/catalog')"
        " && !STRSTARTS(STR(?graph), 'https://w3id.org/quadcite/ns')"
        " && !STRENDS(STR(?graph), '/tbox') && !STRENDS(STR(?graph), '/shapes')) }"
    )
    assert isinstance(rows, Rows)
    return {term_text(row["thing"]): term_text(row["title"]) for row in rows}


@pytest.mark.long
@pytest.mark.parametrize(
    ("write", "speaker", "day"),
    [
        (write_csv, "Fern Ashby", "2024-10-16"),
        (write_xml, "Ms ASHBY", "2024-10-16"),
        (write_sgml, "Senator ASHBY", "1990-12-05"),
    ],
)
def test_speech_without_a_title_is_stored_without_and_shown_with_one(
    kg: KnowledgeGraph, tmp_path: Path, write: Callable[[Path], Path], speaker: str, day: str
) -> None:
    report = load(kg, "hansard", [str(write(tmp_path))])
    assert report.loaded
    assert not report.rejected
    assert titles_of(kg) == {}
    shown = f"[Speech by {speaker}, {day}]"
    [hit] = search_speeches(kg, "quokkas").results
    assert hit.title == shown
    assert get_speech(kg, hit.speech_id).title == shown
    [found] = (each for each in search(kg, "quokkas dunes").results if "speech" in each.id)
    assert found.title.startswith(f"{shown} (")
    assert (fetch(kg, id=found.id).title or "").startswith(f"{shown} (")
    speech = hit.evidence.speech
    assert dereference(kg, speech).label == shown
    assert names_of(kg, [speech]) == {speech: shown}
    with TestClient(
        Starlette(routes=pages.routes(pages.Site(kg, ToolThreads(kg)))), base_url="http://127.0.0.1:8000"
    ) as client:
        page = client.get("/resolve", params={"iri": speech}, headers={"Accept": "text/html"}).text
    assert f">{shown}</h1>" in page
    with pytest.raises(NotFoundError):
        explain_triple(kg.store.query, NamedNode(speech), DCTERMS.title, Literal(shown))


def test_sitting_and_debates_without_titles_are_shown_by_day_and_kind(kg: KnowledgeGraph, tmp_path: Path) -> None:
    load(kg, "hansard", [str(write_xml(tmp_path))])
    sitting = mint("sitting", "senate", "2024-10-16").value
    untitled, petitions = (mint("debate", "senate", "2024-10-16", number).value for number in ("1", "2"))
    assert names_of(kg, [sitting, untitled, petitions]) == {
        sitting: "[Sitting, Senate, 2024-10-16]",
        untitled: "[Debate 1, Senate, 2024-10-16]",
        petitions: "[Petitions, Senate, 2024-10-16]",
    }
    [hit] = search(kg, "petitions received").results
    assert hit.title.startswith("[Petitions, Senate, 2024-10-16]")


def test_reload_removes_the_title_that_an_earlier_version_made_up(
    kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, speech = str(write_csv(tmp_path)), mint("speech", "dunes")
    made_up = "Fern Ashby, Senate, 16 Oct 2024"
    with monkeypatch.context() as earlier:
        described = Writer._described
        earlier.setattr(hansard, "VERSION", "5")
        earlier.setattr(
            Writer,
            "_described",
            lambda writer, recorded: described(
                writer, Recorded(recorded.id, recorded.speech, recorded.chamber, recorded.on, made_up)
            ),
        )
        load(kg, "hansard", [path])
    assert titles_of(kg) == {speech.value: made_up}
    load(kg, "hansard", [path])
    assert titles_of(kg) == {}
    assert [hit.title for hit in search_speeches(kg, "quokkas").results] == ["[Speech by Fern Ashby, 2024-10-16]"]


def test_headings_of_a_speech_are_its_title(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = write_xml(tmp_path)
    path.write_text(path.read_text().replace("<page.no>3</page.no>", "<title>DUNES</title><page.no>3</page.no>"))
    load(kg, "hansard", [str(path)])
    speech, debate = mint("speech", "2024-10-16-senate-1"), mint("debate", "senate", "2024-10-16", "1")
    assert titles_of(kg) == {speech.value: "DUNES", debate.value: "DUNES"}
    assert search_speeches(kg, "quokkas").results[0].title == "DUNES"


def test_section_without_a_heading_is_stored_without_a_title(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "fictional_bay.json"
    sections = [
        {"section_id": "7.1", "title": "", "level": "chapter", "raw_content": ""},
        {"section_id": "7.1.010", "title": "Dunes", "level": "section", "raw_content": WORDS, "parent_id": "7.1"},
    ]
    path.write_text(json.dumps({"municipality": "Fictional Bay", "state": "UT", "sections": sections}))
    report = load(kg, "zoning", [str(path)])
    assert not report.rejected
    chapter, section = (mint("section", "us-ut-fictional-bay", key).value for key in ("7.1", "7.1.010"))
    assert titles_of(kg) == {section: "Dunes"}
    assert names_of(kg, [chapter, section]) == {chapter: "[Chapter 7.1]", section: "7.1.010 Dunes"}
    assert kg_query_section(kg, "Fictional Bay", "UT", "7.1").title == "[Chapter 7.1]"
    found = kg_query_section(kg, "Fictional Bay", "UT", "7.1.010")
    assert found.title == "Dunes"


def test_document_and_family_without_titles_are_shown_by_their_slugs(kg: KnowledgeGraph, tmp_path: Path) -> None:
    path = tmp_path / "documents.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file)
        lines.writerow(
            ("document_id", "document_slug", "document_name", "geography_iso", "family_slug", "family_name", "language",
             "category", "block_index", "text")
        )  # fmt: skip
        lines.writerow(("F.1.1", "fictional-dunes_d1", "", "DJI", "fictional-family_f1", "", "en", "Law", "0", WORDS))
        lines.writerow(
            ("F.1.2", "fictional-dunes_d2", "Dune Decree", "DJI", "fictional-family_f2", "", "en", "Law", "0", WORDS)
        )
    report = load(kg, "climate", [str(path)])
    assert not report.rejected
    assert titles_of(kg) == {"cpr://doc/fictional-dunes_d2": "Dune Decree"}
    assert {hit.title for hit in search(kg, "quokkas dunes").results} == {"[fictional-dunes_d1]", "Dune Decree"}
    families = {each.family_title: each.sample_doc.title for each in family_overview(kg).families}
    assert families == {"[fictional-family_f1]": "[fictional-dunes_d1]", "[fictional-family_f2]": "Dune Decree"}
    lineage = policy_lineage(kg, "fictional-family_f1")
    assert (lineage.family_title, [each.title for each in lineage.documents]) == (
        "[fictional-family_f1]",
        ["[fictional-dunes_d1]"],
    )
    assert dereference(kg, "cpr://doc/fictional-dunes_d1").label == "[fictional-dunes_d1]"


@pytest.mark.parametrize(
    ("iri", "shown"),
    [
        (mint("speech", "x").value, "[Speech]"),
        (mint("debate", "senate", "2001-01-01", "3.1").value, "[Debate 3.1, Senate, 2001-01-01]"),
        (mint("section", "us-ut-quarry-bend", "chapter 6|article II").value, "[chapter 6, article II]"),
        ("cpr://doc/act_x1#p=2", "[act_x1]"),
        ("urn:example", "[urn:example]"),
    ],
)
def test_display_title_needs_no_fact(iri: str, shown: str) -> None:
    assert build_display_title(iri) == shown


def test_memberships_and_quantities_are_named_by_what_they_hold(joined: KnowledgeGraph) -> None:
    reader = Reader(joined)
    members = reader.rows(
        "members", "SELECT ?it ?member ?whole WHERE { ?it org:member ?member ; org:organization ?whole } LIMIT 20"
    )
    shown = names_of(joined, [iri_of(row["it"]) for row in members])
    ends = names_of(joined, [iri_of(row[key]) for row in members for key in ("member", "whole")])
    assert members
    for row in members:
        member, whole = (ends[iri_of(row[key])] for key in ("member", "whole"))
        assert shown[iri_of(row["it"])].startswith(f"{member} in {whole}")
    quantities = reader.rows("quantities", "SELECT ?it ?number WHERE { ?it qudt:numericValue ?number } LIMIT 20")
    named = names_of(joined, [iri_of(row["it"]) for row in quantities])
    assert quantities
    for row in quantities:
        assert named[iri_of(row["it"])].partition(" ")[0] == term_text(row["number"])
