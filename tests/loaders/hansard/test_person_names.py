"""Names in lists and names of people: which agree, how far, and which do not."""

from __future__ import annotations

import pytest

from loaders.hansard.person_names import Agreement, compare, read_listed, strip_titles

WHOLE, PART, NONE = Agreement.WHOLE, Agreement.PART, Agreement.NONE


@pytest.mark.parametrize(
    ("listed", "names", "agreement"),
    [
        ("Fennimore, TE", ["Tobias Edwin Fennimore"], WHOLE),
        ("Fennimore, T. E.", ["Fennimore, Tobias Edwin, MP"], WHOLE),
        ("FENNIMORE, T.E.", ["Dr Tobias Edwin Fennimore"], WHOLE),
        ("Fennimore, T.", ["Tobias Edwin Fennimore"], PART),
        ("Fennimore, TE", ["Fennimore, Tobias, MP"], PART),
        ("Fennimore, Tobias", ["Tobias Edwin Fennimore"], PART),
        ("Fennimore, Otto", ["Tobias Edwin Fennimore"], NONE),
        ("Fennimore, TJ", ["Tobias Edwin Fennimore"], NONE),
        ("Fennimore, E", ["Tobias Edwin Fennimore"], NONE),
        ("Fennimore,", ["Tobias Edwin Fennimore"], NONE),
        ("Fenn, TE", ["Tobias Edwin Fennimore"], NONE),
        ("Fennimore, BE", ["Tobias Edwin Fennimore", "Bias Edwin Fennimore"], WHOLE),
        ("van der Pell, AJ", ["Anna Johanna van der Pell"], WHOLE),
        ("Blackwood-Pell, HQ", ["Hieronymus Quentin Blackwood-Pell"], WHOLE),
        ("O’Quill, MR", ["Marigold Rose O'Quill"], WHOLE),
        ("Núñez, AB", ["Ana Bela Nunez"], WHOLE),
        ("Quill, M", ["Senator QUILL"], NONE),
        ("Quill, MR", ["Quill, Hon. Marigold Rose, AM, MP"], WHOLE),
    ],
)
def test_a_listed_name_agrees_with_the_names_of_a_person(listed: str, names: list[str], agreement: Agreement) -> None:
    assert compare(read_listed(listed), names) is agreement


def test_titles_are_stripped_from_names_but_not_from_surnames() -> None:
    assert strip_titles("The Hon. Dr Marigold Quill") == "Marigold Quill"
    assert strip_titles("Senatore Quill") == "Senatore Quill"
    assert strip_titles("Mr") == "Mr"
