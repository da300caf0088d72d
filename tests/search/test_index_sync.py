"""The prelude of units: title and heading, short and part of the meaning where a unit is a piece of running text."""

from __future__ import annotations

from kg.search.index_sync import UnitFacts, build_units
from kg.vocabulary import mint

HEADING = mint("code", "blockType", "sectionHeading").value


def test_what_stands_alone_has_its_title_and_heading_whole():
    title = "An Act " * 40
    facts = [UnitFacts("urn:1", "urn:d", 0, "Scope", HEADING), UnitFacts("urn:2", "urn:d", 1, "It applies.")]
    units = build_units("urn:g", {"urn:d": title}, facts)
    assert [(unit.prelude, unit.in_context) for unit in units] == [(title, False), (f"{title}\nScope", False)]


def test_of_what_a_piece_stands_under_the_start_counts_in_whole_words():
    bills = ", ".join(f"Harbour Amendment Bill {number}" for number in range(40))
    [piece] = build_units("urn:g", {"urn:d": bills}, [UnitFacts("urn:1", "urn:d", 0, "I rise.", is_cut=True)])
    assert piece.in_context
    assert bills.startswith(piece.prelude + " ")
    assert 100 < len(piece.prelude) <= 150
    [short] = build_units("urn:g", {"urn:d": "Roads"}, [UnitFacts("urn:1", "urn:d", 0, "I rise.", is_cut=True)])
    assert (short.prelude, short.in_context) == ("Roads", True)
    [run] = build_units("urn:g", {"urn:d": "x" * 400}, [UnitFacts("urn:1", "urn:d", 0, "I rise.", is_cut=True)])
    assert run.prelude == "x" * 150
