"""Which standards are told as law, and which are listed as unsure. The texts are our own."""

from __future__ import annotations

import pytest

from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.standards import find_standards
from loaders.zoning.readers.code_model import Section

KNOWN = {"R-1": District("R-1", "", "0", None, None, 0.9, "list")}
SURE = 0.7
"""The threshold of `QUADCITE_RULE_CONFIDENCE`, from which a standard is told as law."""


def confidences(text: str, title: str) -> list[float]:
    section = Section("1", "1", title, "section", 1, None, 0, text, (), ())
    return [each.confidence for each in find_standards(section, KNOWN)]


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("The front yard shall be at least 25 feet.", "R-1 District"),
        ("In the R-1 district a lot shall have an area of at least 9,000 square feet.", "Lots"),
        ("A kennel shall have a lot area of at least 5 acres.", "Animals"),
        ("A gas pump shall be set back at least 30 feet from the front lot line.", "Filling stations"),
    ],
)
def test_a_limit_of_a_district_or_of_a_named_thing_is_told_as_law(text: str, title: str) -> None:
    found = confidences(text, title)
    assert found
    assert min(found) >= SURE


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("The minimum front yard setback is 10 feet.", "Fences"),
        ("In the R-1 district the combined floor area may be up to 2,000 square feet.", "Accessory structures"),
        ("The lot area shall be no smaller than 5 acres if created after January 1, 2000.", "Septic systems"),
        ("A kennel shall have a lot area of at least 5 acres if dogs are boarded.", "Animals"),
        ("Sheds must be set back at least 5 feet from the side lot line if they have a door.", "Sheds"),
    ],
)
def test_a_limit_without_district_and_subject_or_of_a_case_of_its_subject_is_unsure(text: str, title: str) -> None:
    found = confidences(text, title)
    assert found
    assert max(found) < SURE
