"""From the neutral model to graphs: sitting days, people and what else records share, mentions, and the index."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date, time
from itertools import permutations
from pathlib import Path

import pytest
from pyoxigraph import Literal, NamedNode, Quad

from kg.errors import RecordError
from kg.knowledge_graph import KnowledgeGraph
from kg.provenance.explanation import explain_iri
from kg.provenance.load_records import name_source
from kg.search.index_sync import repair_index
from kg.settings import Settings
from kg.shacl.gate import RecordGate
from kg.vocabulary import DCTERMS, FOAF, KG, RDF, SCHEMA, XSD, mint, mint_part, sha256
from loaders import model
from loaders.hansard import sitting_xml
from loaders.hansard.authorities import Authorities, merge_quads
from loaders.hansard.loader import DOMAIN, FORMATS, Reading, cut_records
from loaders.hansard.offices import identifier_of, office_of
from loaders.hansard.sitting_model import Debate, Division, Procedure, Sitting, Speech, Talker, Utterance, Vote
from loaders.hansard.sitting_records import build_sitting_record
from loaders.hansard.speech_records import format_citation
from loaders.model import Origin, Snapshot, SourceGraph
from loaders.quarantine_retry import retry
from loaders.readers.locations import find_files
from loaders.sources import load
from tests.loaders.conftest import MemoryIndex, content, values

HANSARD = Path(__file__).parent.parent.parent.parent / "fixtures" / "hansard"
DAY = date(1998, 3, 2)
HOUSE, SENATE = mint("chamber", "au-representatives"), mint("chamber", "au-senate")
ORIGIN = Origin(Snapshot("0" * 64, "/fictional/day.xml"), (1,))
QUILL = Talker("Ms QUILL", "Quill, Marigold, MP", "fz9", "Lower Tidewater", "AG", None, "Spokesperson", False, True)
FEIGN = Talker("Mr Feign", "Feign, Ulysses, MP", "FZ8")
CHAIR = Talker("The SPEAKER", "SPEAKER, The", "10000")
TEXT = "I begin.\nNonsense!\nOrder!\nI end."


def speech(ordinal: int = 1, text: str = TEXT, **fields: object) -> Speech:
    parts = text.split("\n")
    talkers = [QUILL, FEIGN, CHAIR, QUILL]
    kinds = ["turn", "interjection", "interjection", "continuation"]
    utterances, start = [], 0
    for number, part in enumerate(parts):
        end = start + len(part) + (number + 1 < len(parts))
        utterances.append(Utterance(kinds[number % 4], start, end, talkers[number % 4], time(9, 30), "13"))  # type: ignore[arg-type]
        start = end
    made = Speech(ordinal, "speech", QUILL, text, utterances, (1, 1), time=time(9, 30), page="12", lines=(40, 52))
    return replace(made, **fields)  # type: ignore[arg-type]


SITTING = Sitting(
    "REPS",
    DAY,
    "38",
    "1",
    "6",
    "1",
    proof=False,
    schema_version="2.0",
    debates=[
        Debate((1,), "FICTIONAL TIDES BILL 1998", "Bills", "11", ["Fictional Tides Bill 1998"], ["R9"]),
        Debate((1, 1), "Second Reading", page="12", venue="Main Committee"),
        Debate((2,), "PETITIONS", presenters=[FEIGN], signatures=412),
    ],
    speeches=[speech(), speech(2, "Why?", kind="question"), speech(3, "Because.", kind="answer", answers=2)],
    procedures=[
        Procedure("The SPEAKER took the chair.", 0, lines=(9, 9)),
        Procedure("A pause.", 1, (1, 1), "12", venue="Main Committee"),
    ],
    divisions=[
        Division(
            (1, 1),
            "The House divided.",
            [Vote("aye", "Quill, M.", teller=True, name_id="FZ9"), Vote("no", "Feign, U.")],
            1,
            1,
            "Question negatived.",
            3,
        )
    ],
)


def record(sitting: Sitting = SITTING) -> SourceGraph:
    return build_sitting_record(DOMAIN, sitting, ORIGIN)


def said(graph: Sequence[Quad], subject: NamedNode) -> dict[str, set[str]]:
    """What is said of a thing, by the name of the property."""
    found: dict[str, set[str]] = {}
    for quad in graph:
        if quad.subject == subject and isinstance(quad.object, NamedNode | Literal):
            name = quad.predicate.value.replace("#", "/").rpartition("/")[2]
            found.setdefault(name, set()).add(quad.object.value)
    return found


def blocked(day: SourceGraph) -> list[str]:
    """What the shapes keep a record out for."""
    found = RecordGate().check({model.graph_name(day): model.to_quads(day), **day.shared})
    return [violation.message for each in found.values() for violation in each if violation.blocks]


def test_a_day_is_one_graph_that_says_all_of_the_model_and_breaks_no_shape() -> None:
    day = record()
    assert day.key == ("representatives", "1998-03-02")
    everything = model.to_quads(day)
    assert {quad.graph_name for quad in everything} == {model.graph_name(day)}
    assert blocked(day) == []

    assert said(everything, mint("sitting", *day.key)) == {
        "type": {KG.Sitting.value}, "date": {"1998-03-02"},
        "chamber": {HOUSE.value}, "chamberAsRecorded": {"REPS"}, "jurisdiction": {mint("place", "AUS").value},
        "parliamentNumber": {"38"}, "sessionNumber": {"1"},
        "periodNumber": {"6"}, "proof": {"false"}, "schemaVersion": {"2.0"}, "pageNumber": {"1"},
    }  # fmt: skip
    inner = mint("debate", *day.key, "1.1")
    assert said(everything, mint("debate", *day.key, "1")) == {
        "type": {KG.Debate.value}, "isPartOf": {mint("sitting", *day.key).value}, "position": {"1"},
        "title": {"FICTIONAL TIDES BILL 1998"}, "debateType": {"Bills"}, "pageNumber": {"11"},
        "concernsBill": {mint("bill", "au", "fictional-tides-bill-1998").value},
    }  # fmt: skip
    assert said(everything, inner)["isPartOf"] == {mint("debate", *day.key, "1").value}
    assert said(everything, mint("debate", *day.key, "2"))["signatureCount"] == {"412"}
    assert said(everything, mint("debate", *day.key, "2"))["presenter"] == {mint("person", "aph-FZ8").value}

    first = mint("speech", "1998-03-02-representatives-1")
    assert said(everything, first) == {
        "type": {KG.Speech.value}, "identifier": {"1998-03-02-representatives-1"}, "isPartOf": {inner.value},
        "title": {"FICTIONAL TIDES BILL 1998: Second Reading"}, "date": {"1998-03-02"}, "chamber": {HOUSE.value},
        "venue": {mint("chamber", "au-federation-chamber").value}, "jurisdiction": {mint("place", "AUS").value},
        "debateType": {"Bills"}, "position": {"1"},
        "speechType": {mint("code", "speechType", "speech").value},
        "length": {str(len(TEXT))}, "textSha256": {sha256(TEXT)}, "startTime": {"09:30:00"}, "pageNumber": {"12"},
        "speaker": {mint("person", "aph-FZ9").value}, "speakerAsRecorded": {"Ms QUILL"}, "partyAsRecorded": {"AG"},
        "party": {mint("party", "greens").value}, "electorate": {mint("electorate", "au", "lower-tidewater").value},
        "role": {"Spokesperson"}, "inGovernment": {"false"}, "firstSpeech": {"true"}, "sourceLines": {"40-52"},
        "wordCount": {str(len(TEXT.split()))},
    }  # fmt: skip
    chair = said(everything, mint_part(first, "utterance", 2))
    assert chair == {
        "type": {KG.Utterance.value}, "isPartOf": {first.value}, "start": {"19"}, "end": {"26"},
        "utteranceType": {mint("code", "utteranceType", "interjection").value}, "speakerAsRecorded": {"The SPEAKER"},
        "office": {mint("code", "office", "chair").value}, "startTime": {"09:30:00"}, "pageNumber": {"13"},
    }  # fmt: skip
    answer = said(everything, mint("speech", "1998-03-02-representatives-3"))
    assert answer["answers"] == {mint("speech", "1998-03-02-representatives-2").value}
    opening = said(everything, mint_part(mint("sitting", *day.key), "text", 0))
    assert (opening["text"], opening["position"], opening["sourceLines"]) == (
        {"The SPEAKER took the chair."}, {"0"}, {"9"},
    )  # fmt: skip
    pause = said(everything, mint_part(mint("sitting", *day.key), "text", 1))
    assert (pause["isPartOf"], pause["venue"]) == ({inner.value}, {mint("chamber", "au-federation-chamber").value})

    division = mint("division", *day.key, "1")
    assert said(everything, division) == {
        "type": {KG.Division.value}, "isPartOf": {inner.value}, "chamber": {HOUSE.value}, "position": {"3"},
        "ayeCount": {"1"}, "noCount": {"1"}, "result": {"Question negatived."}, "description": {"The House divided."},
    }  # fmt: skip
    vote = said(everything, mint_part(division, "vote", 0))
    assert (vote["voter"], vote["teller"]) == ({mint("person", "aph-FZ9").value}, {"true"})
    assert "voter" not in said(everything, mint_part(division, "vote", 1))


def test_no_chunk_holds_words_of_two_people() -> None:
    day = record()
    first = [unit for unit in day.units if "representatives-1#" in unit.iri.value]
    assert [unit.text for unit in first] == ["I begin.\n", "Nonsense!\n", "Order!\n", "I end."]
    assert [unit.position for unit in first] == [0, 1, 2, 3]


def test_a_day_that_says_the_same_is_known_by_its_hash_whatever_was_repaired() -> None:
    assert record().source_sha256 == record(replace(SITTING, warnings=["line 9: repaired"])).source_sha256
    assert record().source_sha256 != record(replace(SITTING, speeches=[speech(text="Other.")])).source_sha256
    assert record(replace(SITTING, warnings=["line 9: repaired"])).warnings[0].endswith("line 9: repaired")


@pytest.mark.parametrize("digits", ["9" * 5_000, "9" * 40, "²", "४७"])
def test_numbers_that_nothing_can_count_are_left_out_and_the_day_is_taken(digits: str) -> None:
    numbered = replace(
        SITTING,
        parliament=digits,
        session=digits,
        period=digits,
        page=digits,
        speeches=[speech(page=digits)],
        procedures=[Procedure("A pause.", 1, (1, 1), digits)],
    )
    day = record(numbered)
    assert blocked(day) == []
    assert (
        said(day.quads, day.iri).keys().isdisjoint({"parliamentNumber", "sessionNumber", "periodNumber", "pageNumber"})
    )


def test_a_talker_without_name_and_id_is_nobody_and_the_day_is_taken() -> None:
    nobody = Talker("")
    utterances = [Utterance("turn", 0, 3, nobody), Utterance("interjection", 3, 5, nobody)]
    day = record(replace(SITTING, speeches=[Speech(1, "speech", nobody, "Oh.No", utterances)]))
    assert blocked(day) == []
    assert not any("/ref/person/name-" in graph.value for graph in day.shared)


def test_a_chamber_that_is_neither_is_refused() -> None:
    with pytest.raises(RecordError, match="'Lords'"):
        record(replace(SITTING, chamber="Lords"))


@pytest.mark.parametrize(
    ("chamber", "page", "expected"),
    [
        (HOUSE, "42", "House Hansard, 21 Oct 2024, p. 42"),
        (SENATE, "4971A", "Senate Hansard, 21 Oct 2024, p. 4971A"),
        (SENATE, None, "Senate Hansard, 21 Oct 2024"),
        (HOUSE, "0", "House Hansard, 21 Oct 2024"),
    ],
)
def test_the_citation_is_the_official_one(chamber: NamedNode, page: str | None, expected: str) -> None:
    assert format_citation(chamber, date(2024, 10, 21), page) == expected


# Who and what records share


@pytest.mark.parametrize(
    ("talker", "office"),
    [
        (Talker("The PRESIDENT", name_id="10000"), "chair"),
        (Talker("Mr DEPUTY SPEAKER (Mr Andrews)", "DEPUTY SPEAKER", "10000"), "chair"),
        (Talker("The Clerk", "The CLERK", "10000"), "clerk"),
        (Talker("The Deputy Clerk", name_id="10001"), "clerk"),
        (Talker("Madam Acting Deputy President"), "chair"),
        (Talker("Senator SPEAKERMAN", name_id="FZ7"), None),
        (Talker("Mr Speakman"), None),
        (Talker("Ms QUILL", name_id="FZ9"), None),
        (Talker("The PRESIDENT", name_id="FZ7"), "chair"),
        (Talker("Mr DEPUTY SPEAKER (Mr Andrews)", "Andrews, Anton (The DEPUTY SPEAKER)", "FZ7"), "chair"),
        (Talker("Ms CLERKE", name_id="FZ9"), None),
        (Talker("Mr CLERK", "Clerk, Otis, MP", "FZ9"), None),
    ],
)
def test_an_office_is_told_from_a_person(talker: Talker, office: str | None) -> None:
    assert office_of(talker) == office
    person = Authorities(HOUSE, DAY).person(talker)
    assert (person is None) == (office is not None and identifier_of(talker) is None)


@pytest.mark.parametrize("name", ["Honourable members", "Opposition senators", "An honourable member", "A senator"])
def test_a_crowd_is_nobody(name: str) -> None:
    assert Authorities(SENATE, DAY).person(Talker(name, name_id="UNKNOWN")) is None


def test_whoever_is_said_to_hold_an_office_is_who_speaks() -> None:
    shared = Authorities(HOUSE, DAY)
    chair = Talker("The DEPUTY SPEAKER", "Leigh, A. (The DEPUTY SPEAKER)", "10000", holder_id="fz5")
    assert shared.person(chair) == mint("person", "aph-FZ5")
    graph = mint("graph", "ref", "person", "aph-FZ5")
    assert said([*shared.graphs[graph]], mint("person", "aph-FZ5"))["name"] == {"Leigh, A."}
    unnamed, named = Authorities(HOUSE, DAY), Authorities(HOUSE, DAY)
    unnamed.person(Talker("The PRESIDENT", "PRESIDENT, The", "10000", holder_id="FZ5"))
    named.person(Talker("Mr LEIGH", name_id="FZ5"))
    assert "name" not in said([*unnamed.graphs[graph]], mint("person", "aph-FZ5"))
    # An earlier version stored the id as the name.
    earlier = [*unnamed.graphs[graph], Quad(mint("person", "aph-FZ5"), FOAF.name, Literal("FZ5"), graph)]
    assert set(merge_quads(earlier, unnamed.graphs[graph])) == set(unnamed.graphs[graph])
    assert set(merge_quads(earlier, named.graphs[graph])) == set(named.graphs[graph])
    both = merge_quads(unnamed.graphs[graph], named.graphs[graph])
    assert set(both) == set(merge_quads(named.graphs[graph], unnamed.graphs[graph])) == set(named.graphs[graph])


def test_people_without_an_id_are_told_apart_by_chamber_and_state_but_not_by_case() -> None:
    house, senate = Authorities(HOUSE, DAY), Authorities(SENATE, DAY)
    one = house.person(Talker("Marigold Quill", state="VIC"))
    assert one == house.person(Talker("Marigold  QUILL", state="Victoria"))
    others = {house.person(Talker("Marigold Quill", state="NSW")), senate.person(Talker("Marigold Quill", state="VIC"))}
    assert len({one, *others}) == 3


def test_what_is_known_of_a_person_does_not_depend_on_the_order_of_records() -> None:
    names = ["Ms QUILL", "Quill, Marigold, MP", "Ms Quill", "QUILL, MARIGOLD, MP"]
    results = []
    for order in permutations(names):
        stored: Sequence[Quad] = ()
        for name in order:
            shared = Authorities(HOUSE, DAY)
            shared.person(Talker(name, name_id="FZ9"))
            stored = merge_quads(stored, shared.graphs[mint("graph", "ref", "person", "aph-FZ9")])
        results.append(frozenset(stored))
    assert len(set(results)) == 1
    known = said([*results[0]], mint("person", "aph-FZ9"))
    assert known["name"] == {"Quill, Marigold, MP"}
    assert known["altLabel"] == set(names) - known["name"]
    assert known["identifier"] == {"FZ9"}


def test_an_unknown_form_is_kept_and_told_and_never_guessed() -> None:
    talker = replace(QUILL, party="The Tide Party", state="Atlantis")
    day = record(replace(SITTING, speeches=[speech(talker=talker)]))
    about = said(day.quads, mint("speech", "1998-03-02-representatives-1"))
    assert (about["partyAsRecorded"], about["stateAsRecorded"]) == ({"The Tide Party"}, {"Atlantis"})
    assert not {"party", "state"} & about.keys()
    assert any("'The Tide Party'" in warning for warning in day.warnings)
    assert any("'Atlantis'" in warning for warning in day.warnings)


def test_the_electorate_of_a_senator_is_a_state() -> None:
    talker = replace(QUILL, electorate="Queensland")
    day = record(replace(SITTING, chamber="Senate", speeches=[speech(talker=talker)]))
    about = said(day.quads, mint("speech", "1998-03-02-senate-1"))
    assert about["state"] == {mint("place", "AU-QLD").value}
    assert "electorate" not in about


# In the graph


def test_the_fixtures_load_whole_and_the_index_is_what_healing_would_make(kg: KnowledgeGraph) -> None:
    report = load(kg, "hansard", [str(HANSARD)])
    assert (report.loaded, report.rejections) == (17, [])
    assert load(kg, "hansard", [str(HANSARD)]).skipped == 17
    assert isinstance(kg.search, MemoryIndex)
    units = kg.search.units()
    assert len(units) == report.text_units
    answer = next(unit for unit in units if "four thousand one hundred and six" in unit.text.casefold())
    assert answer.prelude == "QUESTIONS WITHOUT NOTICE: Housing"
    repair_index(kg.store, kg.search, full=True)
    assert kg.search.units() == units


def test_a_speech_of_a_day_is_explained_by_its_lines(kg: KnowledgeGraph) -> None:
    path = HANSARD / "house-2024-03-21.xml"
    load(kg, "hansard", [str(path)])
    lines = path.read_text().splitlines()
    [chunk] = [
        quad.subject
        for quad in content(kg.store)  # type: ignore[arg-type]
        if quad.predicate == SCHEMA.text and isinstance(quad.object, Literal) and "who pays" in quad.object.value
        and "other half?" in quad.object.value
    ]  # fmt: skip
    assert isinstance(chunk, NamedNode)
    [explanation] = explain_iri(kg.store.query, chunk)
    [source] = explanation.sources
    assert source.row is None
    assert source.lines is not None
    first, last = map(int, source.lines.split("-"))
    assert lines[first - 1].strip() == "<speech>"
    assert "I commend the bill to the House." in lines[last - 1]
    assert f"lines     {source.lines}" in str(explanation)


def test_concepts_are_found_in_what_was_said(kg: KnowledgeGraph) -> None:
    load(kg, "wikibase", [str(HANSARD.parent / "wikibase")], base="climate")
    load(kg, "hansard", [str(HANSARD)])
    mentioned = [quad for quad in content(kg.store) if quad.predicate == KG.mentions]  # type: ignore[arg-type]
    speeches = Counter(str(quad.subject).split("#")[0] for quad in mentioned if "/id/speech/" in str(quad.subject))
    assert speeches


def test_a_day_from_another_file_that_differs_is_rejected_and_the_same_day_skipped(
    kg: KnowledgeGraph, tmp_path: Path
) -> None:
    data = (HANSARD / "house-2024-03-21.xml").read_text()
    first, copy, other = (tmp_path / name for name in ("a.xml", "b.xml", "c.xml"))
    first.write_text(data)
    copy.write_text(data)
    other.write_text(data.replace("tide mills", "tide wheels"))
    assert load(kg, "hansard", [str(first)]).loaded == 1
    assert load(kg, "hansard", [str(copy)]).skipped == 1
    [rejection] = load(kg, "hansard", [str(other)]).rejections
    assert name_source(str(first)) in rejection.reason
    assert rejection.source == str(other)
    first.write_text(data.replace("tide mills", "tide wheels"))
    assert load(kg, "hansard", [str(first)]).loaded == 1


def test_a_day_that_breaks_the_shapes_is_kept_whole_and_can_be_tried_again(
    kg: KnowledgeGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "day.xml"
    path.write_bytes((HANSARD / "house-2024-03-21.xml").read_bytes())
    original = build_sitting_record

    def broken(*arguments: object) -> SourceGraph:
        made = original(*arguments)  # type: ignore[arg-type]
        extra = Quad(made.iri, DCTERMS.date, Literal("never", datatype=XSD.date), model.graph_name(made))
        return replace(made, quads=[*made.quads, extra])

    with monkeypatch.context() as patched:
        patched.setattr("loaders.hansard.loader.build_sitting_record", broken)
        report = load(kg, "hansard", [str(path)])
    assert (report.loaded, report.rejected) == (0, 1)
    path.unlink()
    done = retry(kg, None)
    assert [each["outcome"] for each in done["records"]] == ["loaded"]
    assert values(kg.store, mint("sitting", "representatives", "2024-03-21"), DCTERMS.date) == {"2024-03-21"}


def test_an_excerpt_of_an_official_file_is_the_file(tmp_path: Path) -> None:
    path = HANSARD / "house-2024-03-21.xml"
    cut_records(path, {tmp_path / "kept.xml": [1]})
    assert (tmp_path / "kept.xml").read_bytes() == path.read_bytes()


def test_a_bad_file_does_not_keep_the_others_out(kg: KnowledgeGraph, tmp_path: Path) -> None:
    (folder := tmp_path / "days").mkdir()
    (folder / "a.xml").write_text("<html><body>Not found</body></html>")
    (folder / "b.xml").write_text("<hansard><session.header><date>2024-01-01</date>")
    (folder / "c.xml").write_bytes((HANSARD / "house-2024-03-21.xml").read_bytes())
    future = (HANSARD / "house-2024-03-21.xml").read_text().replace("<date>2024-03-21", "<date>2999-03-21")
    (folder / "d.xml").write_text(future)
    report = load(kg, "hansard", [str(folder)])
    assert (report.loaded, report.rejected) == (1, 3)
    reasons = {each.record: each.reason for each in report.rejections}
    assert "HTML" in reasons["a.xml"]
    assert "is in the future" in reasons["d.xml"]


# Real days


def real_days(shared: Path) -> Iterator[Path]:
    yield from sorted((shared / "data" / "hansard").glob("*.xml"))


def test_the_chunks_of_real_days_give_back_the_text_that_was_read(shared: Path) -> None:
    chance = random.Random(0)
    for path in chance.sample([*real_days(shared)], 3):
        sitting = sitting_xml.parse_sitting(path.read_bytes(), path.name)
        files = find_files([str(path)], Settings(_env_file=None), FORMATS).files  # type: ignore[call-arg]
        [day] = [item for item in Reading().read(files) if isinstance(item, SourceGraph)]
        texts: dict[NamedNode, list[str]] = {}
        hashes: dict[NamedNode, str] = {}
        for each in sitting.speeches:
            iri = mint("speech", f"{sitting.date}-{day.key[0]}-{each.ordinal}")
            texts[iri] = ["\0"] * len(each.text)
            hashes[iri] = sha256(each.text)
        for unit in day.units:
            if unit.kind == KG.SpeechChunk:
                start, end = (int(dict(unit.properties)[name].value) for name in (KG.start, KG.end))
                texts[unit.parent][start:end] = unit.text
        for each, text in zip(sitting.speeches, texts.values(), strict=True):
            assert "".join(text) == each.text
        recorded = {quad.subject: quad.object.value for quad in day.quads if quad.predicate == KG.textSha256}  # type: ignore[union-attr]
        assert recorded == hashes
        kinds = Counter(quad.object for quad in day.quads if quad.predicate == RDF.type)
        assert kinds[KG.Speech] == len(sitting.speeches)
        assert kinds[KG.Utterance] == sum(len(each.utterances) for each in sitting.speeches)
        assert kinds[KG.Vote] == sum(len(each.votes) for each in sitting.divisions)


def test_whoever_goes_on_in_a_turn_under_the_name_of_its_speaker_is_its_speaker() -> None:
    """Records have there, now and then, the id of whoever interjected just before."""
    speaker, other = Talker("Mr QUILL", name_id="FZ1"), Talker("Mr Feign", name_id="FZ2")
    slip = Talker("Mr QUILL", "Quill, Marten, MP", "FZ2")
    said_by = [("turn", speaker, 0, 4), ("interjection", other, 4, 8), ("continuation", slip, 8, 12)]
    turn = Speech(1, "speech", speaker, "One.Two.Six.", [Utterance(kind, a, b, who) for kind, who, a, b in said_by])  # type: ignore[arg-type]
    day = record(Sitting("REPS", DAY, speeches=[turn]))
    found = [said(day.quads, mint_part(mint("speech", f"{DAY}-representatives-1"), "utterance", n)) for n in range(3)]
    one, two = mint("person", "aph-FZ1"), mint("person", "aph-FZ2")
    assert [each["speaker"] for each in found] == [{one.value}, {two.value}, {one.value}]
    assert said([*day.shared[mint("graph", "ref", "person", "aph-FZ2")]], two)["name"] == {"Mr Feign"}
