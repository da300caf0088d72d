"""Records of codes that are wrong, written by hand against what each class is to have: a shape finds each of them, and
the reference implementation finds what ours does.
"""

from __future__ import annotations

from typing import Any, Final

import pytest
from pyoxigraph import RdfFormat, Triple, parse

from kg import bundle
from kg.shacl.shapes import Shapes
from kg.vocabulary import KGS
from tests.examples import spread
from tests.shacl.test_differential import OURS, assert_agreed

PASSING: Final = bundle.folder("fixtures") / "shapes" / "zoning" / "passing"
PREFIXES: Final = (PASSING / "rules.ttl").read_text(encoding="utf-8").partition("\n\n")[0] + "\n"
RECORD, DATASET = ("record-zoning.ttl",), ("dataset-zoning.ttl", "dataset-text.ttl")

PERMISSION = "<id/permission/2b1f8d3c9a7e5f604d12c8ab>"
STANDARD = "<id/standard/7c2e9b4fd1a8360e5b97c4d2>"
CLAIM = "<id/st/0f3a1c5e7b9d2f4a6c8e0b1d3f5a7c9e>"
SECTION = "<id/section/us-ut-quarry-bend/17.20.040>"
OTHER = "<id/section/us-ut-anvil/17.20.040>"
SPAN = "<id/section/us-ut-quarry-bend/17.20.040#char=11,28>"

WRONG: Final = {
    # what a source states
    "a permission in no district": ("rules", f"{PERMISSION} kg:district", "", "UsePermission-district"),
    "a permission of two levels": (
        "rules", "", f"{PERMISSION} kg:permissionLevel <vocab/permissionLevel/notPermitted> .", "UsePermission-level"),
    "a level that is words": (
        "rules", f"{PERMISSION} kg:permissionLevel", f'{PERMISSION} kg:permissionLevel "byRight" .',
        "UsePermission-level"),
    "a level of another list": (
        "rules", f"{PERMISSION} kg:permissionLevel", f"{PERMISSION} kg:permissionLevel <vocab/bound/max> .",
        "UsePermission-level"),
    "a level without the words of the source": ("rules", f"{PERMISSION} kg:rawLevel", "", "UsePermission-raw"),
    "a permission in a section of another town": (
        "rules", f"{PERMISSION} kg:definedIn", f"{PERMISSION} kg:definedIn {OTHER} .", "Rule-municipality"),
    "a review by a section of another town": (
        "rules", f"{PERMISSION} kg:reviewSection", f"{PERMISSION} kg:reviewSection {OTHER} .", "Rule-municipality"),
    "a use of another town": (
        "rules", f"{PERMISSION} kg:landUse", f"{PERMISSION} kg:landUse <id/landuse/us-ut-anvil/duplex> .",
        "Rule-municipality"),
    "a measure without the words of the source": ("rules", f"{STANDARD} kg:rawValue", "", "DimensionalStandard-raw"),
    "a number without a unit": ("rules", "qudt:hasUnit", "", "Quantity-unit"),
    "a number that is words": (
        "rules", "qudt:numericValue", f'<{STANDARD[1:-1]}#quantity=0> qudt:numericValue "35" .', "Quantity-number"),
    "a measure below nothing": (
        "rules", "qudt:numericValue", f"<{STANDARD[1:-1]}#quantity=0> qudt:numericValue -35.0 .", "Quantity-number"),
    "a bound that is both": ("rules", "", f"{STANDARD} kg:bound <vocab/bound/min> .", "DimensionalStandard-bound"),
    "a term that means two things": (
        "rules", "", '<id/definition/90d4c7e1b2a35f68ce147b0a> skos:definition "A tent." .', "Definition-meaning"),
    "a term of a section of another town": (
        "rules", "<id/definition/90d4c7e1b2a35f68ce147b0a> kg:definedIn",
        f"<id/definition/90d4c7e1b2a35f68ce147b0a> kg:definedIn {OTHER} .", "Definition-place"),
    # sections
    "a section of no level": ("section", f"{SECTION} kg:level", f"{SECTION} kg:level 0 .", "CodeSection-level"),
    "a section within itself": (
        "section", f"{SECTION} dcterms:isPartOf", f"{SECTION} dcterms:isPartOf {SECTION} .", "CodeSection-itself"),
    "a section within two": ("section", "", f"{SECTION} dcterms:isPartOf <id/section/us-ut-quarry-bend/17> .",
        "CodeSection-parent"),
    "a section within another town": (
        "section", f"{SECTION} dcterms:isPartOf", f"{SECTION} dcterms:isPartOf {OTHER} .", "CodeSection-municipality"),
    "a text without its hash": ("section", f"{SECTION} kg:textSha256", "", "CodeSection-hashed"),
    "a subsection that ends beyond the text": (
        "section", "#subsection=a> kg:end", f"<{SECTION[1:-1]}#subsection=a> kg:end 900 .", "Subsection-within"),
    # what a program finds
    "sections within each other": (
        "code", "", f"<id/section/us-ut-quarry-bend/17.20> dcterms:isPartOf {SECTION} .", "CodeHierarchy-cycle"),
    "a section as high as what it is part of": (
        "code", f"{SECTION} kg:level", f"{SECTION} kg:level 1 .", "CodeHierarchy-level"),
    "a section of a town that is none": (
        "code", f"{SECTION} kg:jurisdiction", f"{SECTION} kg:jurisdiction <id/district/us-ut-quarry-bend/R-1> .",
        "CodeMunicipality"),
    "a rule that rests on another section": (
        "code", f"{PERMISSION} kg:definedIn",
        f"{PERMISSION} kg:definedIn <id/section/us-ut-quarry-bend/17.12.010> .", "FoundRule-place"),
    "a rule that was found by nothing": ("code", f"{PERMISSION} kg:method", "", "FoundRule"),
    "a claim by words that stand elsewhere": ("code", f"{SPAN} kg:start", f"{SPAN} kg:start 10 .", "TextSpan-words"),
    "a claim by words that are others": (
        "code", f"{CLAIM} kg:rawCitation", f'{CLAIM} kg:rawCitation "section 99" .', "CrossReference-quoted"),
    "a claim with a sentence from elsewhere": (
        "code", f"{CLAIM} kg:contextSentence", f'{CLAIM} kg:contextSentence "No barn may be built." .',
        "CrossReference-quoted"),
    "a claim of one section by the words of another": (
        "code", f"{CLAIM} rdf:subject", f"{CLAIM} rdf:subject <id/section/us-ut-quarry-bend/17.12.010> .",
        "CrossReference-place"),
    "a section that cites itself": (
        "code", f"{CLAIM} rdf:object", f"{CLAIM} rdf:object {SECTION} .", "CrossReference-itself"),
    "an edge against its type": (
        "code", f"{CLAIM} rdf:predicate", f"{CLAIM} rdf:predicate kg:usesDefinitionIn .", "CrossReference-reads"),
    "an edge that no citation makes": (
        "code", f"{CLAIM} rdf:predicate", f"{CLAIM} rdf:predicate kg:within .", "CrossReference-reads"),
    "a citation of a district": (
        "code", f"{CLAIM} rdf:object", f"{CLAIM} rdf:object <id/district/us-ut-quarry-bend/R-1> .",
        "CrossReference-cited"),
    "a claim surer than sure": ("code", f"{CLAIM} kg:confidence", f"{CLAIM} kg:confidence 1.5 .",
        "Statement-confidence"),
    "a citation of nothing known that rests on nothing": (
        "code", f"{CLAIM} rdf:object|{CLAIM} a kg:Statement|{CLAIM} kg:evidence", "", "CrossReference-found"),
}  # fmt: skip


def altered(name: str, without: str, added: str) -> list[Triple]:
    """A passing fixture without the lines that have one of these words, and with others."""
    gone = [words for words in without.split("|") if words]
    text = (PASSING / f"{name}.ttl").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if not any(words in line for words in gone)]
    assert len(lines) == len(text.splitlines()) - len(gone)
    whole = "\n".join([*lines, added])
    return [quad.triple for quad in parse(whole, RdfFormat.TURTLE)]


def suite_of(name: str) -> list[Any]:
    return [triple for file in (DATASET if name == "code" else RECORD) for triple in OURS[file]]


@pytest.mark.parametrize("name", ["rules", "section", "code"])
def test_what_is_right_passes(name: str) -> None:
    assert Shapes(suite_of(name)).check(altered(name, "", "")) == []


@pytest.mark.long
@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_found_by_its_shape(case: str) -> None:
    name, without, added, shape = WRONG[case]
    data, suite = altered(name, without, added), suite_of(name)
    found = {str(each.shape).strip("<>").removeprefix(KGS.iri) for each in Shapes(suite).check(data) if each.blocks}
    assert shape in found


@pytest.mark.long
@pytest.mark.parametrize("case", spread(list(WRONG), 8))
def test_the_reference_agrees_on_what_is_wrong(case: str) -> None:
    name, without, added, _ = WRONG[case]
    assert_agreed(suite_of(name), altered(name, without, added))
