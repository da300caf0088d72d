"""A corpus of ParlaMint in the store: sittings, people and what follows from the lists, with what could not be read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import pytest
from pyoxigraph import NamedNode

from kg import bundle
from kg.errors import NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.reader import Reader
from kg.settings import Settings
from kg.store.protocol import named_node, select, term_text
from kg.tools.catalog.resources import list_resources
from kg.tools.parliament.speech_filters import find_chamber
from kg.tools.parliament.speeches import get_speech
from kg.vocabulary import mint
from loaders.hansard.loader import FORMATS
from loaders.hansard.parlamint_corpus import CorpusReader
from loaders.hansard.parlamint_entities import find_place_code
from loaders.hansard.parlamint_findings import find_person
from loaders.hansard.parlamint_lists import Affiliation, Person
from loaders.load_report import LoadReport
from loaders.model import Notice
from loaders.readers.locations import find_files
from loaders.sources import load
from tests.folders import open_graph

FIXTURES = bundle.folder("fixtures") / "parlamint"
DAMAGED = bundle.folder("fixtures") / "malformed" / "parlamint" / "ParlaMint-QX_2019-05-21-A014.xml"
A012 = "ParlaMint-QX_2019-05-14-A012"
Loaded = tuple[KnowledgeGraph, LoadReport]


def copy_corpus(folder: Path) -> Path:
    """Copy the corpus with its damaged sitting."""
    corpus = Path(shutil.copytree(FIXTURES, folder / "in"))
    shutil.copy(DAMAGED, corpus)
    return corpus


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loaded]:
    folder = tmp_path_factory.mktemp("corpus")
    with open_graph(folder / "data") as opened:
        yield opened, load(opened, "parliament", [str(copy_corpus(folder))], index=False)


def ask(kg: KnowledgeGraph, pattern: str, *names: str) -> list[tuple[str, ...]]:
    rows = select(
        kg.store.query_sources, f"SELECT DISTINCT {' '.join('?' + name for name in names)} WHERE {{ {pattern} }}"
    )
    return sorted(tuple(term_text(row[name]) if name in row else "" for name in names) for row in rows)


def to_dict(rows: list[tuple[str, ...]]) -> dict[str, str]:
    return {row[0]: row[1] for row in rows}


def test_what_can_be_read_is_loaded_and_the_rest_is_reported(loaded: Loaded) -> None:
    _, report = loaded
    assert (report.loaded, report.rejected) == (9, 1)
    [rejection] = report.rejections
    assert rejection.record == "ParlaMint-QX_2019-05-21-A014.xml"
    assert "line 33" in rejection.reason
    warnings = "\n".join(report.warnings)
    assert "2 of 7 included files are not there: ParlaMint-taxonomy-parla.legislature.xml" in warnings
    assert "ParlaMint-QX-listOrg.xml" in warnings
    assert "line 25" in warnings
    assert "no list describes the speakers ErleJon" in warnings


def test_two_sittings_of_a_day_have_their_own_identifiers_and_numbers(loaded: Loaded) -> None:
    kg, _ = loaded
    found = ask(
        kg, "?s a kg:Sitting ; kg:sittingNumber ?n ; kg:parliamentNumber ?t ; schema:inLanguage ?l", "s", "n", "t", "l"
    )
    assert found == [
        (mint("sitting", "QX", "2019-05-14", "A012").value, "12", "4", "de"),
        (mint("sitting", "QX", "2019-05-14", "A013").value, "13", "4", "de"),
    ]
    assert ask(kg, "?s a kg:Sitting ; kg:chamber ?c ; kg:jurisdiction ?p", "c", "p") == [
        (mint("chamber", "QX.KQ").value, mint("place", "QX").value)
    ]
    speeches = ask(kg, "?s a kg:Speech ; dcterms:identifier ?id", "id")
    assert (f"{A012}.u2",) in speeches
    assert len(speeches) == 7


def test_people_and_their_names_come_from_the_list(loaded: Loaded) -> None:
    kg, _ = loaded
    found = ask(kg, "?s kg:speaker ?p . ?s a kg:Speech . ?p foaf:name ?name", "p", "name")
    assert [name for _, name in found] == ["Tilda Ahorn", "Bruno Birk Holm", "Nils Esche", "Lotte Zeder"]
    unlisted = mint("person", "QX.ErleJon").value
    assert ask(kg, f"<{unlisted}> kg:identityStatus ?s OPTIONAL {{ <{unlisted}> foaf:name ?name }}", "name") == [("",)]
    assert ask(kg, '?s kg:speakerAsRecorded "Eine Stimme" OPTIONAL { ?s kg:speaker ?p }', "p") == [("",)]


def test_affiliations_are_dated_and_typed(loaded: Loaded) -> None:
    kg, _ = loaded
    person = mint("person", "QX.ZederLotte").value
    pattern = f"?m org:member <{person}> ; org:organization ?o ; org:role ?r ; schema:startDate ?from"
    pattern += " BIND(DATATYPE(?from) AS ?d)"
    found = {tuple(each.rpartition("/")[2] for each in row) for row in ask(kg, pattern, "o", "r", "from", "d")}
    assert found == {
        ("QX.GOV", "minister", "2018-03", "XMLSchema#gYearMonth"),
        ("QX.party.WALD", "member", "2019", "XMLSchema#gYear"),
    }
    [row] = select(
        kg.store.query_sources,
        f"SELECT ?g ?o WHERE {{ GRAPH ?g {{ ?m org:member <{person}> ; kg:affiliationAsRecorded ?o }} }}",
    )
    assert term_text(row["o"]) == "Ministerin für Deiche"
    assert named_node(row["g"]) == mint("graph", "src", "hansard", "parlamint", "QX", "person", "ZederLotte")
    guest = ask(kg, "?m org:role ?r . ?r skos:notation ?code FILTER(?code = 'Guest Speaker')", "code")
    assert guest == [("Guest Speaker",)]
    assert ask(kg, "?m kg:firstSeen ?day", "day") == []


def test_parties_on_the_day_are_derived_and_never_from_uncertain_days(loaded: Loaded) -> None:
    kg, _ = loaded
    found = ask(kg, "GRAPH ?g { ?s kg:party ?p }", "g", "s", "p")
    graphs = {graph for graph, _, _ in found}
    assert graphs == {
        f"https://w3id.org/quadcite/graph/der/party/parlamint/QX/2019-05-14/{each}" for each in ("A012", "A013")
    }
    by_speech = {speech.rpartition("-")[2]: party.rpartition(".")[2] for _, speech, party in found}
    assert by_speech == {"A012.u1": "MEER", "A012.u2": "WALD", "A013.u1": "MEER"}
    speech = get_speech(kg, f"{A012}.u2")
    assert (speech.party, speech.derived_party, speech.chamber) == ("", "Partei der Wälder", "Chamber of Quarzmoor")


def test_callers_are_derived_where_exactly_one_member_fits(loaded: Loaded) -> None:
    kg, _ = loaded
    pattern = (
        "?u kg:utteranceType <https://w3id.org/quadcite/vocab/utteranceType/interjection> ; kg:speakerAsRecorded ?name"
    )
    found = to_dict(
        ask(
            kg,
            pattern + " OPTIONAL { GRAPH ?g { ?u kg:speaker ?p } FILTER(CONTAINS(STR(?g), '/der/caller/')) }",
            "name",
            "p",
        )
    )
    assert {name: person.rpartition(".")[2] for name, person in found.items()} == {
        "Abg. Eiche": "",
        "Abg. Marta Eiche": "EicheMarta",
        "Abg. Ulme": "",
        "Abg. BIRK HOLM": "BirkBruno",
    }
    graph = NamedNode("https://w3id.org/quadcite/graph/der/caller/parlamint/QX/2019-05-14/A012")
    graph_of = "GRAPH <https://w3id.org/quadcite/graph/prov>"
    said = ask(kg, f"{graph_of} {{ <{graph.value}> kg:method ?m ; kg:confidence ?c }}", "m", "c")
    assert said == [("caller-by-name", "0.9")]


def test_a_chunk_in_another_language_says_so(loaded: Loaded) -> None:
    kg, _ = loaded
    found = ask(kg, "?c a kg:SpeechChunk ; schema:inLanguage ?l ; schema:text ?t FILTER(?l = 'fr')", "t")
    assert found == [("Je cite nos voisins : la mer ne lit pas les procès-verbaux.\n",)]


def test_a_chamber_is_found_by_its_names(loaded: Loaded) -> None:
    reader = Reader(loaded[0])
    assert {find_chamber(reader, each) for each in ("Kammer von Quarzmoor", "chamber of quarzmoor", "KQ", "QX.KQ")} == {
        mint("chamber", "QX.KQ")
    }
    with pytest.raises(NotFoundError, match="Quarzmoor"):
        find_chamber(reader, "Storting")
    [listed] = [each for each in list_resources(loaded[0]).resources if each.title.startswith("Filter chamber")]
    assert listed.values == ["Kammer von Quarzmoor"]


def test_loading_again_changes_nothing_and_prune_removes_what_follows(tmp_path: Path) -> None:
    folder = copy_corpus(tmp_path)
    with open_graph(tmp_path / "data") as kg:
        assert load(kg, "hansard", [str(folder / "ParlaMint-QX.xml")], index=False).loaded == 9
        again = load(kg, "parliament", [str(folder)], index=False)
        assert (again.loaded, again.skipped) == (0, 9)
        (folder / f"{A012}.xml").unlink()
        (folder / "ParlaMint-QX_2019-05-21-A014.xml").unlink()
        assert load(kg, "parliament", [str(folder)], prune=True, index=False).removed == 1
        graphs = ask(kg, "GRAPH ?g { ?s ?p ?o } FILTER(CONTAINS(STR(?g), 'A012'))", "g")
        assert [graph for (graph,) in graphs if "/prov" not in graph] == []


def test_a_component_alone_reads_the_lists_of_the_root_beside_it(tmp_path: Path) -> None:
    with open_graph(tmp_path / "data") as kg:
        report = load(kg, "parliament", [str(FIXTURES / f"{A012}.xml")], index=False)
        assert (report.loaded, report.rejected) == (8, 0)
        assert ("Bruno Birk Holm",) in ask(kg, "?p foaf:name ?name", "name")


def test_people_of_a_header_are_used_where_no_list_is(tmp_path: Path) -> None:
    text = (FIXTURES / f"{A012}.xml").read_text()
    people = (FIXTURES / "ParlaMint-QX-listPerson.xml").read_text().partition("?>")[2]
    (tmp_path / f"{A012}.xml").write_text(text.replace("</body>", f"</body><back>{people}</back>"))
    with open_graph(tmp_path / "data") as kg:
        report = load(kg, "parliament", [str(tmp_path / f"{A012}.xml")], index=False)
        assert (report.loaded, report.rejected) == (1, 0)
        found = ask(kg, "GRAPH ?g { ?m org:member ?p } FILTER(CONTAINS(STR(?g), 'BirkBruno'))", "g")
        assert found == [(mint("graph", "ref", "membership", "QX.BirkBruno").value,)]
        assert ask(kg, "?s a kg:Speech ; kg:party ?p FILTER(STRENDS(STR(?s), 'u2'))", "p") == [
            (mint("party", "QX.party.WALD").value,)
        ]


def test_an_include_reads_only_files_below_the_root(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    shutil.copyfile(FIXTURES / f"{A012}.xml", tmp_path / "outside.xml")
    places = ["../outside.xml", "file:///etc/passwd", "/etc/passwd", "https://example.org/a.xml", "a/../../outside.xml"]
    includes = "".join(f'<xi:include xmlns:xi="http://www.w3.org/2001/XInclude" href="{each}"/>' for each in places)
    root = folder / "ParlaMint-QX.xml"
    root.write_text(f'<teiCorpus xmlns="http://www.tei-c.org/ns/1.0" xml:id="ParlaMint-QX">{includes}</teiCorpus>')
    files = find_files([str(folder)], Settings(_env_file=None), FORMATS).files
    items = list(CorpusReader("hansard", {}).read(files))
    assert all(isinstance(each, Notice) for each in items)
    warnings = [each.text for each in items if isinstance(each, Notice) and each.warning]
    assert len(warnings) == len(places)
    assert all(f"{place!r} is not included" in warning for place, warning in zip(places, warnings, strict=True))


@pytest.mark.parametrize(
    ("first", "last", "covered"),
    [
        ("2019-05-14", "2019-05-14", True),
        ("2019-05-15", None, False),
        ("2019-05", None, False),
        ("2019-04", None, True),
        ("2018", "2020", True),
        ("2018", "2019", False),
        (None, None, False),
        (None, "2020-01-01", False),
        ("2018-01-01", "2019-05-13", False),
    ],
)
def test_an_affiliation_covers_a_day_only_if_its_dates_are_certain(
    first: str | None, last: str | None, covered: bool
) -> None:
    assert Affiliation("member", "KQ", first, last).covers(date(2019, 5, 14)) is covered


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("Abg. Dr. Birk", "1"),
        ("Abg. Bruno Birk Holm", "1"),
        ("A señora PONTÓN MONDELO", "2"),
        ("Abg. Rosa Birk", None),
        ("Rufe bei Birk", None),
        ("Gegenruf des Abg. Birk", None),
        ("Abg. Holm", None),
        ("Präsident", None),
    ],
)
def test_a_name_denotes_a_person_by_surname_and_given_names(name: str, found: str | None) -> None:
    people = [Person("1", ("Birk", "Holm"), ("Bruno",)), Person("2", ("Pontón", "Mondelo"), ("Ana Belén",))]
    person = find_person(name, people)
    assert (person.id if person else None) == found


def test_corpora_have_the_places_of_iso_3166() -> None:
    assert [find_place_code(each) for each in ("AT", "ES-GA", "DE", "QX")] == ["AUT", "ES-GA", "DEU", "QX"]


def test_the_real_samples_load_without_losing_a_word(shared: Path, tmp_path: Path) -> None:
    samples = shared / "data" / "parlamint"
    with open_graph(tmp_path / "data") as kg:
        austria = load(kg, "parliament", [str(samples / "at")], index=False)
        galicia = load(kg, "parliament", [str(samples / "es-ga")], index=False)
        assert (austria.loaded, austria.rejected) == (3, 0)
        assert (galicia.loaded, galicia.rejected) == (230, 0)
        assert any("312 included files are not there" in each or "of 3" in each for each in galicia.warnings)
        speeches = ask(kg, "?s a kg:Speech ; kg:jurisdiction ?j", "s", "j")
        counts = {
            place: sum(1 for _, each in speeches if each == mint("place", place).value) for place in ("AUT", "ES-GA")
        }
        assert counts == {"AUT": 159, "ES-GA": 626}
