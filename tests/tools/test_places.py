"""The place filter over all domains: one hierarchy for laws, speeches and zoning codes.

All records are fictional; the countries and states are real, so that their codes mean something.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from pathlib import Path

import pytest

from kg import bundle, iso3166
from kg.errors import InvalidInputError, NotFoundError
from kg.knowledge_graph import KnowledgeGraph
from kg.retrieval.facets import name_places
from kg.retrieval.filters import BY_STATE
from kg.retrieval.places import PLACES, Place, Places, find_place, load_places, load_territory
from kg.retrieval.reader import Reader, recording
from kg.retrieval.results import SearchFilters
from kg.settings import Settings
from kg.tools.catalog.resources import list_resources
from kg.tools.climate.families import family_overview
from kg.tools.climate.jurisdictions import compare_jurisdictions, jurisdiction_overview
from kg.tools.concepts.mentions import concept_mentions
from kg.tools.parliament.search import search_speeches
from kg.tools.parliament.speakers import speech_stats
from kg.tools.parliament.speeches import get_speech
from kg.tools.search.passages import search
from kg.tools.zoning.provisions import kg_query_permissions
from kg.vocabulary import BASE, KG, mint
from loaders.sources import load
from loaders.zoning.graph.authorities import Authorities, merge
from tests.folders import open_graph

LAWS = (
    ("us-water-act", "Fictional Water Act", "USA", "United States of America"),
    ("ca-water-act", "Fictional Coast Act", "US-CA", "California"),
    ("au-water-act", "Fictional Harbour Act", "AUS", "Australia"),
    ("ge-water-act", "Fictional Mountain Act", "GEO", "Georgia"),
    ("eu-water-act", "Fictional Union Act", "EUR", "European Union"),
)
SPEECHES = (
    ("house-nsw", "House", "Fern Ashby", "Newcastle", ""),
    ("house-vic", "House", "Otto Brook", "Kooyong", ""),
    ("house-unknown", "House", "Ines Calder", "Lower Tidewater", ""),
    ("senate-nsw", "Senate", "Hugo Dell", "", "NSW"),
)
TOWNS = (
    ("Victoria", "TX", ""),
    ("Georgia", "VT", ""),
    ("Oak City", "UT", "Saltbush"),
    ("Two Forks", "UT", "Saltbush"),
    ("Two Forks", "UT", "Gypsum"),
)
TEXT = "The harbour water level is surveyed every year by the fictional surveyor."


def write(path: Path, head: str, rows: list[tuple[str, ...]]) -> str:
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([head.split(","), *rows])
    return str(path)


@pytest.fixture(scope="module")
def kg(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KnowledgeGraph]:
    folder = tmp_path_factory.mktemp("places")
    settings = Settings(data_dir=folder / "data", models_dir=folder / "none", _env_file=None)  # type: ignore[call-arg]
    laws = [
        (f"F.{slug}", slug, title, code, name, f"{slug}-family", title, "Policy", "en", "0", "0", "Text", TEXT)
        for slug, title, code, name in LAWS
    ]
    said = [
        (key, "2022-03-08", chamber, name, "ALP", seat, state, TEXT, "On water", "Made up")
        for key, chamber, name, seat, state in SPEECHES
    ]
    with KnowledgeGraph.open(folder / "data", settings) as opened:
        head = (
            "document_id,document_slug,document_name,geography_iso,geography,family_slug,family_name,category,language"
        )
        path = write(folder / "laws.csv", f"{head},block_index,page_number,type,text", laws)
        assert load(opened, "climate", [path]).rejected == 0
        head = "speech_id,date,chamber,speaker,party,electorate,state,text,title,hansard_reference"
        assert load(opened, "hansard", [write(folder / "said.csv", head, said)]).rejected == 0
        assert (
            load(opened, "zoning", [str(bundle.folder("fixtures") / "zoning" / "title_17_zoning.html")]).rejected == 0
        )
        mapping = folder / "towns.toml"
        mapping.write_text(
            'name = "made-up"\n[jurisdiction]\ncolumn = "Town"\nstate_column = "State"\ncounty_column = "County"\n'
            '[district]\ncode = "District"\n[levels]\n"Allowed" = "byRight"\n[[use]]\ncolumn = "House"\n'
        )
        rows = [(*town, f"R{number}", "Allowed") for number, town in enumerate(TOWNS)]
        path = write(folder / "towns.csv", "Town,State,County,District,House", rows)
        assert load(opened, "zoning", [path], mapping=str(mapping)).rejected == 0
        load(opened, "wikibase", [str(bundle.folder("fixtures") / "wikibase")], base="climate")
        yield opened


def found(kg: KnowledgeGraph, *places: str, query: str = "harbour water level", **filters: list[str]) -> set[str]:
    hits = search(kg, query, SearchFilters(place=list(places), **filters), limit=200).results  # type: ignore[arg-type]
    return {hit.id for hit in hits}


def law(slug: str) -> str:
    return f"{mint('document', slug).value}#p=0"


def kinds(ids: set[str]) -> set[str]:
    kinds = {"cpr:": "law", f"{BASE}id/speech/": "speech", f"{BASE}id/section/": "section"}
    return {next(kind for root, kind in kinds.items() if each.startswith(root)) for each in ids}


@pytest.mark.parametrize(
    "text",
    [
        "USA",
        "usa",
        "US",
        "United States",
        "United States of America",
        "U.S.",
        f"{BASE}id/place/USA",
        f"<{BASE}id/place/USA>",
    ],
)
def test_country_filter_finds_its_states_and_municipalities(kg: KnowledgeGraph, text: str) -> None:
    ids = found(kg, text, query="harbour water level minimum lot area")
    assert {law("us-water-act"), law("ca-water-act")} <= ids
    assert kinds(ids) == {"law", "section"}
    assert not {law("au-water-act"), law("ge-water-act")} & ids


@pytest.mark.parametrize("text", ["Utah", "US-UT", "us-ut", "UT", "Utah, USA", f"{BASE}id/place/US-UT"])
def test_state_filter_finds_only_what_is_inside_the_state(kg: KnowledgeGraph, text: str) -> None:
    ids = found(kg, text, query="minimum lot area")
    assert ids
    assert kinds(ids) == {"section"}
    assert all("/us-ut-quarry-bend/" in each for each in ids)


@pytest.mark.parametrize("text", ["Quarry Bend", "Quarry Bend, Utah", "quarry bend, UT, USA", "us-ut-quarry-bend"])
def test_municipality_filter_finds_its_sections(kg: KnowledgeGraph, text: str) -> None:
    assert found(kg, text, query="minimum lot area") == found(kg, "Utah", query="minimum lot area")


def test_places_and_states_of_speakers_are_alternatives(kg: KnowledgeGraph) -> None:
    assert found(kg, "NSW", "GEO") == found(kg, "NSW") | {law("ge-water-act")}


def test_iso3_filter_takes_places_too_and_adds_to_place(kg: KnowledgeGraph) -> None:
    assert found(kg, iso3=["AUS"]) == found(kg, "AUS")
    assert found(kg, "GEO", iso3=["US-CA"]) == {law("ge-water-act"), law("ca-water-act")}
    assert found(kg, "EUR") == found(kg, "European Union") == {law("eu-water-act")}


def test_australian_state_finds_the_speeches_of_its_members_and_senators(kg: KnowledgeGraph) -> None:
    nsw = search(kg, "harbour water level", SearchFilters(place=["NSW"]))
    assert {hit.id.partition("#")[0].rpartition("/")[2] for hit in nsw.results} == {"house-nsw", "senate-nsw"}
    assert any("derived" in note for note in nsw.notes)
    speeches = {key for key, *_ in SPEECHES}
    whole = {each.partition("#")[0].rpartition("/")[2] for each in found(kg, "Australia")}
    assert speeches <= whole
    assert law("au-water-act") in found(kg, "AUS")
    assert law("au-water-act") not in found(kg, "New South Wales")


@pytest.mark.parametrize("state", ["NSW", "nsw", "New South Wales", "AU-NSW", f"{BASE}id/place/AU-NSW"])
def test_speech_tools_take_the_same_names_of_states(kg: KnowledgeGraph, state: str) -> None:
    found = search_speeches(kg, "harbour", state=state)
    assert {each.speech_id for each in found.results} == {"house-nsw", "senate-nsw"}
    assert any("derived" in note for note in found.notes)
    stats = speech_stats(kg, group_by="chamber", state=state)
    assert stats.totals.speeches == 2


def test_speech_says_which_state_is_derived(kg: KnowledgeGraph) -> None:
    house, senate, unknown = (get_speech(kg, key) for key in ("house-nsw", "senate-nsw", "house-unknown"))
    assert (house.state, house.derived_state) == ("", "NSW")
    assert (senate.state, senate.derived_state) == ("NSW", None)
    assert (unknown.state, unknown.derived_state) == ("", None)


def test_speech_state_victoria_is_the_australian_one(kg: KnowledgeGraph) -> None:
    assert {each.speech_id for each in search_speeches(kg, "harbour", state="Victoria").results} == {"house-vic"}
    with pytest.raises(NotFoundError, match="Available: ACT, NSW"):
        search_speeches(kg, "harbour", state="Utah")


@pytest.mark.parametrize(
    ("text", "choices"),
    [
        ("Georgia", ("(GEO)", "'Georgia, United States' (US-GA)", "('us-vt-georgia')")),
        ("Victoria", ("'Victoria, Australia' (AU-VIC)", "'Victoria, Texas, United States' ('us-tx-victoria')")),
        ("CA", ("(CAN)", "(US-CA)")),
        ("SA", ("(SAU)", "(AU-SA)")),
    ],
)
def test_ambiguous_name_is_an_error_with_the_choices(kg: KnowledgeGraph, text: str, choices: tuple[str, ...]) -> None:
    calls = (
        lambda: search(kg, "water", SearchFilters(place=[text])),
        lambda: family_overview(kg, place=[text]),
        lambda: concept_mentions(kg, ["Q1012"], place=[text]),
        lambda: jurisdiction_overview(kg, text),
        lambda: compare_jurisdictions(kg, "AUS", text),
    )
    for call in calls:
        with pytest.raises(InvalidInputError) as error:
            call()
        assert all(choice in str(error.value) for choice in choices)


@pytest.mark.parametrize(
    ("text", "iri"),
    [
        ("Georgia, USA", f"{BASE}id/place/US-GA"),
        ("Georgia, Vermont", f"{BASE}id/municipality/us-vt-georgia"),
        ("Victoria, Australia", f"{BASE}id/place/AU-VIC"),
        ("Victoria, TX", f"{BASE}id/municipality/us-tx-victoria"),
        ("GEO", f"{BASE}id/place/GEO"),
        ("Korea, Republic of", f"{BASE}id/place/KOR"),
        ("Puerto Rico", f"{BASE}id/place/PRI"),
        ("Oak, Utah", f"{BASE}id/municipality/us-ut-oak-city"),
        ("Djibouti", f"{BASE}id/place/DJI"),
        ("Guatemala", f"{BASE}id/place/GTM"),
    ],
)
def test_qualified_name_is_not_ambiguous(kg: KnowledgeGraph, text: str, iri: str) -> None:
    place = find_place(Reader(kg), "place", text)
    assert place.iri == iri or {place.code, iri.rpartition("/")[2]} == {"US-PR", "PRI"}


@pytest.mark.parametrize(
    "text", ["Atlantis", "XXX", "US-ZZ", "Utha", "Quarry Bend, Ohio", "} #", ",", f"{BASE}id/place/%20"]
)
def test_unknown_place_is_named_with_similar_ones(kg: KnowledgeGraph, text: str) -> None:
    with pytest.raises(NotFoundError, match=r"iso3: Unknown place .* (Similar|Available): "):
        jurisdiction_overview(kg, text)
    with pytest.raises(NotFoundError, match=r"place: Unknown place .* (Similar|Available): "):
        search(kg, "water", SearchFilters(place=[text]))
    result = search(kg, "harbour", SearchFilters(place=[text, "GEO"]))
    assert [hit.id for hit in result.results] == [law("ge-water-act")]
    assert any(note.startswith("place: Unknown place") for note in result.notes)


def test_misspelt_state_is_suggested(kg: KnowledgeGraph) -> None:
    with pytest.raises(NotFoundError, match=r"Similar: 'Utah, United States' \(US-UT\)"):
        jurisdiction_overview(kg, "Utha")


@pytest.mark.parametrize("text", ["Fiji", "US-GA", "AU-TAS", f"{BASE}id/place/FJI"])
def test_known_place_without_records_is_told_apart(kg: KnowledgeGraph, text: str) -> None:
    result = search(kg, "water", SearchFilters(place=[text]))
    assert result.results == []
    assert result.notes[0].startswith("place: Nothing is loaded for ")
    assert "'United States' (USA)" in result.notes[0]
    overview = jurisdiction_overview(kg, text)
    assert overview.kinds == []
    assert overview.notes[0].startswith("iso3: Nothing is loaded for ")


def test_overview_counts_all_domains_by_kind(kg: KnowledgeGraph) -> None:
    usa = jurisdiction_overview(kg, "USA")
    sections = kg.store.query("SELECT (COUNT(*) AS ?n) { ?section a kg:CodeSection }").rows[0][0]  # type: ignore[union-attr]
    districts = kg.store.query("SELECT (COUNT(*) AS ?n) { ?district a kg:ZoningDistrict }").rows[0][0]  # type: ignore[union-attr]
    assert {each.kind: each.records for each in usa.kinds} == {
        "policy documents": 2,
        "code sections": int(sections.value),  # type: ignore[union-attr]
        "zoning districts": int(districts.value),  # type: ignore[union-attr]
    }
    assert (usa.iso3, usa.name, usa.within) == ("USA", "United States", [])
    assert [part.code for part in usa.parts] == ["US-CA", "US-TX", "US-UT", "US-VT"]
    aus = jurisdiction_overview(kg, place="Australia")
    assert {each.kind: each.records for each in aus.kinds} == {"policy documents": 1, "speeches": 4}
    nsw = jurisdiction_overview(kg, place="NSW")
    assert {each.kind: each.records for each in nsw.kinds} == {"speeches": 2}
    assert [each.code for each in nsw.within] == ["AUS"]


def test_overview_names_places_that_every_tool_takes(kg: KnowledgeGraph) -> None:
    usa = jurisdiction_overview(kg, "USA")
    for part in usa.parts:
        again = jurisdiction_overview(kg, place=part.id)
        assert (again.id, again.iso3) == (part.id, part.code)
        assert again.kinds
        assert again.within[-1].id == usa.id
        assert found(kg, part.code, query="water lot") == found(kg, part.id, query="water lot")
        for town in again.parts:
            assert jurisdiction_overview(kg, town.code).id == town.id


@pytest.mark.parametrize("text", ["Saltbush County", "Saltbush County, Utah", "US-UT-saltbush-county"])
def test_county_is_between_a_municipality_and_its_state(kg: KnowledgeGraph, text: str) -> None:
    county = jurisdiction_overview(kg, place=text)
    assert [part.name for part in county.parts] == ["Oak City"]
    assert [outer.code for outer in county.within] == ["US-UT", "USA"]
    assert [(each.kind, each.records) for each in county.kinds] == [("zoning districts", 1)]
    town = jurisdiction_overview(kg, place="Oak City")
    assert [outer.name for outer in town.within] == ["Saltbush County", "Utah", "United States"]
    assert [part.name for part in jurisdiction_overview(kg, "Utah").parts] == [
        "Quarry Bend", "Saltbush County", "Two Forks",
    ]  # fmt: skip


def test_municipality_whose_rows_name_two_counties_is_in_neither(kg: KnowledgeGraph) -> None:
    assert [outer.code for outer in jurisdiction_overview(kg, "Two Forks").within] == ["US-UT", "USA"]


def test_zoning_tools_find_a_municipality_in_a_county_by_its_state(kg: KnowledgeGraph) -> None:
    found = kg_query_permissions(kg, "Oak City", "Utah", use="House")
    assert [each.district for each in found.permissions] == ["R2"]
    again = kg_query_permissions(kg, "Oak City", "UT", use="House")
    assert again.permissions == found.permissions


def test_county_is_kept_when_a_record_without_county_follows(kg: KnowledgeGraph) -> None:
    stored, county = Authorities("Oak City", "UT", "Saltbush"), mint("place", "US-UT-saltbush-county")
    graph = mint("graph", "ref", "municipality", "us-ut-oak-city")
    for first, second in ((stored, Authorities("Oak City", "UT")), (Authorities("Oak City", "UT"), stored)):
        merged = merge(first.own[graph], second.own[graph])
        assert [quad.object for quad in merged if quad.predicate == KG.within] == [county]


def test_comparison_of_a_state_and_a_country_counts_records(kg: KnowledgeGraph) -> None:
    both = compare_jurisdictions(kg, "Utah", "AUS", by="kind")
    counts = dict(zip(both.bins, zip(both.a, both.b, strict=True), strict=True))
    assert counts["speeches"] == (0, 4)
    assert counts["policy documents"] == (0, 1)
    assert counts["code sections"][0] > 0
    assert both.counted == "records"


def test_families_of_a_country_include_its_states(kg: KnowledgeGraph) -> None:
    families = {family.family_title for family in family_overview(kg, place=["United States"]).families}
    assert families == {"Fictional Water Act", "Fictional Coast Act"}
    assert [family.family_title for family in family_overview(kg, iso3=["California"]).families] == [
        "Fictional Coast Act"
    ]


def test_seats_of_speakers_are_not_noted_where_no_speech_is_counted(kg: KnowledgeGraph) -> None:
    seats = BY_STATE
    assert seats in compare_jurisdictions(kg, "NSW", "AUS", by="kind").notes
    assert seats not in compare_jurisdictions(kg, "NSW", "AUS").notes
    assert seats not in family_overview(kg, place=["NSW"]).notes
    assert seats in search(kg, "water", SearchFilters(place=["NSW"])).notes
    assert seats not in search(kg, "water", SearchFilters(place=["NSW"], domain=["climate"])).notes


def test_a_comparison_of_policies_without_a_policy_names_the_one_of_all_records(kg: KnowledgeGraph) -> None:
    both = compare_jurisdictions(kg, "NSW", "Utah")
    assert both.bins == []
    assert any("by=kind" in note for note in both.notes)


def test_mentions_are_filtered_by_place(kg: KnowledgeGraph) -> None:
    rows = kg.store.query(
        "SELECT ?c (COUNT(*) AS ?n) { ?u kg:mentions ?c ; a kg:CodeSection } GROUP BY ?c ORDER BY DESC(?n)"
    )
    concept = rows.rows[0][0].value  # type: ignore[union-attr]
    whole = concept_mentions(kg, [concept], limit=200).evidence
    usa = concept_mentions(kg, [concept], place=["USA"], limit=200).evidence
    aus = concept_mentions(kg, [concept], place=["AUS"], limit=200).evidence
    assert usa
    assert {each.id for each in usa} | {each.id for each in aus} <= {each.id for each in whole}
    assert kinds({each.id for each in usa}) <= {"law", "section"}
    assert jurisdiction_overview(kg, "Utah").top_concepts


def test_absent_mentions_are_explained_by_what_is_loaded(kg: KnowledgeGraph) -> None:
    [note] = jurisdiction_overview(kg, "EUR").notes
    assert "kg load wikibase" not in note
    assert "EUR" in note


def test_list_resources_lists_countries_and_states_with_records(kg: KnowledgeGraph) -> None:
    resources = {resource.title: resource for resource in list_resources(kg).resources}
    assert resources["Filter iso3: values in use"].values == [
        "AU-NSW", "AU-VIC", "AUS", "EUR", "GEO", "US-CA", "US-TX", "US-UT", "US-UT-saltbush-county", "US-VT", "USA",
    ]  # fmt: skip


def test_hierarchy_is_read_once_per_generation(kg: KnowledgeGraph) -> None:
    first = load_places(Reader(kg))
    search(kg, "water", SearchFilters(place=["USA"]))
    assert load_places(Reader(kg)) is first
    with recording() as ran:
        search(kg, "water", SearchFilters(place=["USA"]))
    assert ran
    assert not any("within" in statement.sparql for statement in ran if statement.sparql != PLACES.strip())


@pytest.mark.long
def test_store_of_the_old_layout_answers_by_iso_3166(kg: KnowledgeGraph, tmp_path: Path) -> None:
    """Before, a state in the laws was within no place, and countries had no label."""
    with open_graph(tmp_path) as old:
        head = (
            "document_id,document_slug,document_name,geography_iso,geography,family_slug,family_name,category,language"
        )
        rows = [("F.1", "coast", "Coast Act", "US-CA", "", "coast", "Coast", "Policy", "en", "0", "0", "Text", TEXT)]
        load(old, "climate", [write(tmp_path / "l.csv", f"{head},block_index,page_number,type,text", rows)])
        for code, term in (("US-CA", "kg:within"), ("US-CA", "skos:prefLabel"), ("USA", "skos:prefLabel")):
            graph = mint("graph", "ref", "place", code).value
            old.store.update(f"DELETE WHERE {{ GRAPH <{graph}> {{ ?place {term} ?value }} }}")
        assert found(old, "USA") == found(old, "California") == {"cpr://doc/coast#p=0"}
        assert jurisdiction_overview(old, "USA").documents == 1


def test_claim_from_a_text_does_not_move_a_place(kg: KnowledgeGraph) -> None:
    graph = mint("graph", "der", "promote", "made-up")
    triple = f"<{BASE}id/place/GEO> <{KG.within.value}> <{BASE}id/place/USA>"
    kg.store.update(f"INSERT DATA {{ GRAPH <{graph.value}> {{ {triple} }} }}")
    try:
        assert law("ge-water-act") not in found(kg, "USA")
    finally:
        kg.store.update(f"DELETE DATA {{ GRAPH <{graph.value}> {{ {triple} }} }}")


def test_use_of_places_that_the_store_does_not_describe_is_looked_up_at_once(kg: KnowledgeGraph) -> None:
    reader = Reader(kg)
    places = [find_place(reader, "place", code) for code in ("BRA", "FRA", "DEU", "CHL")]
    assert len(load_territory(reader, "place", places).empty) == len(places)
    assert sum("?role" in statement.sparql for statement in reader.ran) <= 2


def test_a_state_and_its_municipality_with_one_name_are_told_apart() -> None:
    country, state = (mint("place", code).value for code in ("USA", "US-DC"))
    town, other = (mint("municipality", key).value for key in ("us-dc", "us-ut-oak-city"))
    places = Places(
        {
            state: Place(state, "US-DC", ("District of Columbia",), (country,)),
            town: Place(town, "us-dc", ("District of Columbia",), (state,)),
            other: Place(other, "us-ut-oak-city", ("Oak City",), (mint("place", "US-UT").value,)),
        }
    )
    found = {code: places.find_by_code(code) for code in ("US-DC", "us-dc", "us-ut-oak-city")}
    assert [place and place.iri for place in found.values()] == [state, town, other]
    assert len({*name_places(places, places.stored).values()}) == 3
    assert [place.iri for place in places.get_chain(places.stored[town])] == [state, country]
    assert places.find("US-Dc")  # in any other case one of them


def test_a_name_in_another_language_is_a_name_of_its_own() -> None:
    area = iso3166.find_area("ES-CT")
    assert area is not None
    assert area.names[:2] == ("Catalunya", "Cataluña")
    assert not [each for each in iso3166.load_areas().values() if each.name.endswith("]")]
    assert iso3166.split_names("Oak [") == ("Oak [",)
