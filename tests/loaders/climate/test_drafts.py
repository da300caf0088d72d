from __future__ import annotations

import pytest
from pyoxigraph import parse

from kg import bundle
from kg.errors import RecordError
from kg.vocabulary import SKOS, mint
from loaders.climate import drafts
from loaders.climate.drafts import parse_date, parse_place_codes


@pytest.mark.parametrize(("scheme", "codes"), [("corpusType", drafts.CORPUS_TYPES), ("blockType", drafts.BLOCK_TYPES)])
def test_the_codes_that_bring_no_graph_are_those_that_the_ontology_describes(scheme: str, codes: tuple[str]) -> None:
    triples = list(parse(path=bundle.folder("ontology") / "climate.ttl"))
    described = {t.subject for t in triples if t.predicate == SKOS.inScheme and t.object == mint("code", scheme)}
    assert described == {mint("code", scheme, code) for code in codes}


def test_places_are_codes_or_the_iso_of_an_object() -> None:
    assert parse_place_codes("{'id': 1, 'iso': 'NZL', 'federal': False}") == ("NZL",)
    assert parse_place_codes('{"iso": "NZL"}') == ("NZL",)
    assert parse_place_codes("dji") == ("DJI",)
    assert parse_place_codes("XAA;XAA") == ("XAA",)
    assert parse_place_codes("nan") == ()
    with pytest.raises(RecordError, match="Invalid geography"):
        parse_place_codes("{broken")


@pytest.mark.parametrize(
    ("text", "day"),
    [
        ("2012-12-01 00:00:00+00", "2012-12-01"),
        ("2019-11-18T00:00:00Z", "2019-11-18"),
        ("18/11/2019", "2019-11-18"),
        ("2019-02-30", None),
        ("last year", None),
        ("2019", None),
    ],
)
def test_dates_are_days_or_nothing(text: str, day: str | None) -> None:
    assert parse_date(text) == day
