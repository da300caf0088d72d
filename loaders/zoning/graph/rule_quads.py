"""Rules of a code as quads: uses that a district permits, dimensions that it prescribes, meanings of terms.

Rules stated by a source and rules found in text have the same form. Those found in text also have evidence, method and
confidence. The IRI of a rule is a hash of its graph and content.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Final, Literal

from pyoxigraph import Literal as Text
from pyoxigraph import NamedNode

from kg.vocabulary import BASE, KG, QUDT, RDF, SKOS, UNIT, XSD, mint, mint_part, sha256
from loaders.citations.graph.claims import CitedNodes, Evidence, Property
from loaders.zoning.extraction import measures, permission_levels
from loaders.zoning.extraction.districts import District
from loaders.zoning.extraction.measures import STOREY, find_type, type_in_unit
from loaders.zoning.graph.authorities import Authorities
from loaders.zoning.readers.code_model import Definition, DimensionalStandard, UsePermission

Entry = UsePermission | DimensionalStandard | Definition
"""An entry of a list."""

LEVELS: Final = {
    "byRight": ("p", "yes", "y"),
    "conditional": ("c", "cu", "cup", "sp", "su", "sup", "se", "public hearing"),
    "byRightWithConditions": ("limited", "l", "pc"),
    "byRightOrConditional": (
        "by right or conditional", "allowed/conditional", "permitted/conditional", "allowed or conditional",
        "permitted or conditional",
    ),
    "notPermitted": ("forbidden", "n", "no", "np", "x", "-", "\u2013", "\u2014"),
}  # fmt: skip
"""Words and letters that lists use for the levels of permission, in addition to those of texts."""

_OF_LEVELS: Final = frozenset(
    re.findall(
        r"\w+",
        "a allowed approval approved as by conditional conditionally conditions exception hearing land limited not of "
        "only permit permits permitted prohibited required right special standards subject to upon use uses with",
    )
)
"""Words that state a level and nothing else."""

UNITS: Final = {
    "FT": (), "FT2": (), "AC": (), "PERCENT": ("pct",), "IN": ("in", "in."), "YD": ("yd", "yard", "yards"),
    "MI": ("mi",), "M": (), "dwelling-per-acre": (), "storey": (), "dwelling": ("du",),
    "bedroom": ("bedroom", "bedrooms"), "space": (),
    "space-per-dwelling": ("spaces per unit", "spaces/unit", "spaces per dwelling unit"),
    "square-foot-per-dwelling": ("square feet per unit", "sf/unit"), "UNITLESS": ("ratio", "far"),
}  # fmt: skip
"""The units of lists by local name in QUDT or in our own list, with words for them in addition to those of texts."""

RuleKind = Literal["permission", "standard", "definition"]
_RULES: Final[Mapping[RuleKind, tuple[NamedNode, str]]] = {
    "permission": (
        KG.UsePermission,
        "district landUse rawLevel permissionLevel condition reviewSection definedIn recordedIn",
    ),
    "standard": (
        KG.DimensionalStandard,
        "district standardType rawValue bound rawUnit appliesTo condition definedIn recordedIn",
    ),
    "definition": (KG.Definition, "prefLabel definition definedIn"),
}
"""The class and the properties of a rule of each kind. They identify it, in this order."""

STANDARD_TYPES: Final = frozenset(
    re.findall(
        r"\S+",
        "lot-area lot-area-per-unit lot-width lot-depth lot-frontage lot-coverage impervious-coverage open-space "
        "setback front-setback side-setback street-side-setback rear-setback building-separation building-height "
        "building-storeys floor-area unit-size floor-area-ratio density dwelling-units bedrooms parking project-area "
        "width length",
    )
)
"""The types that the ontology describes."""

UNNAMED: Final = "unnamed"
"""The type of a standard whose dimension no words name, or only words that are not understood."""
_CODE_LISTS: Final[Mapping[str, Collection[str]]] = {
    "permissionLevel": LEVELS, "bound": ("min", "max"), "standardType": STANDARD_TYPES,
}  # fmt: skip
"""The properties whose values are of a code list, each with the codes that the ontology describes."""
_OF_SKOS: Final = {"prefLabel": SKOS.prefLabel, "definition": SKOS.definition}
_LEVEL_OF: Final = {word: level for level, words in LEVELS.items() for word in (level.casefold(), *words)}
_UNIT_OF: Final = {word: unit for unit, words in UNITS.items() for word in (unit.casefold(), *words)}
_OWN_UNITS: Final = BASE + "vocab/unit/"
_NUMBER: Final = re.compile(r"(?=.{1,30}$)[+-]?(?:(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?|\.\d+)")
_BOUND: Final = re.compile(r"\b(?:(min)(?:imum|\.)?|(max)(?:imum|\.)?)(?=\b|\s|$)", re.IGNORECASE)


def level_of(raw: str) -> str | None:
    """Parse the words of a source into a level of permission: as listed, or as in text if all of them name levels.

    None for other words, which are stored as recorded: they may contain a condition.
    """
    words = " ".join(raw.split()).casefold()
    of_levels = _OF_LEVELS.issuperset(re.split(r"[ -]", words))
    return _LEVEL_OF.get(words) or (permission_levels.level_of(words) if of_levels else None)


def unit_of(words: str) -> NamedNode | None:
    """Parse the words of a source into a unit, alone or as after a number in text. None for an unknown unit."""
    plain = " ".join(words.split()).casefold()
    given = measures.parse_measure(f"1 {plain}") if plain not in _UNIT_OF else None
    code = given.unit if given is not None and given.value == 1 else _UNIT_OF.get(plain)
    return unit(code) if code else None


def unit(code: str) -> NamedNode:
    """Get the unit with this local name: QUDT's if it is in capitals, else ours."""
    return UNIT[code] if code == code.upper() else NamedNode(_OWN_UNITS + code)


def number_in(raw: str) -> Decimal | None:
    """Parse a value that is a number and nothing else. None for ``35, or 40 on corners``."""
    text = raw.strip()
    return Decimal(text.replace(",", "")) if _NUMBER.fullmatch(text) else None


def quantity_of(raw: str, words: str) -> tuple[Decimal | None, NamedNode | None]:
    """Parse a value into its number and its unit, which is given by `words` or by the value itself: ``35 feet``."""
    number, measure = number_in(raw), unit_of(words)
    given = measures.parse_measure(raw) if number is None else None
    if given is None or given.value is None or (words.strip() and unit(given.unit) != measure):
        return number, measure
    return given.value, unit(given.unit)


def type_and_bound(words: str) -> tuple[str, str | None]:
    """Parse the name of a standard into type and bound: ``Minimum lot area`` is lot-area, min.

    A name that is only a dimension as in text has the type of that: ``Max. height`` is building-height.
    """
    words = re.sub(r"([a-z])([A-Z])", r"\1 \2", words)
    match = _BOUND.search(words)
    rest = " ".join((words if match is None else f"{words[: match.start()]} {words[match.end() :]}").split())
    code = "-".join(re.findall(r"[a-z0-9]+", rest.casefold()))
    if code not in STANDARD_TYPES:
        code = find_type(rest) or code
    bound = None if match is None else "min" if match[1] else "max"
    return code or "-".join(re.findall(r"\w+", words.casefold())) or UNNAMED, bound


@dataclass(slots=True)
class Rules(CitedNodes):
    """Collects the rules of one graph. `districts` are those of the code, whose names they have."""

    shared: Authorities
    districts: Mapping[str, District] = field(default_factory=dict)

    def district(self, code: str) -> NamedNode:
        """Add a district and get its IRI."""
        known = self.districts.get(code)
        return self.shared.district(code, None if known is None else known.name or None)

    def state(
        self, entry: Entry, section: Callable[[str | None], NamedNode | None], evidence: Sequence[Evidence] = ()
    ) -> None:
        """Add an entry of a list. `section` finds the IRI of a reference. Raises RecordError for an empty name."""
        defined_in = section(entry.section_ref)
        match entry:
            case UsePermission():
                self.add_rule(
                    "permission",
                    evidence,
                    district=self.district(entry.district),
                    landUse=self.shared.land_use(entry.use),
                    rawLevel=entry.permission,
                    permissionLevel=level_of(entry.permission),
                    condition=tuple(entry.conditions),
                    reviewSection=section(entry.review_section),
                    definedIn=defined_in,
                )
            case DimensionalStandard():
                kind, bound = type_and_bound(entry.standard_type)
                value, measure = quantity_of(entry.value, entry.unit)
                self.add_rule(
                    "standard",
                    evidence,
                    (value, measure),
                    district=self.district(entry.district),
                    standardType=type_in_unit(kind, STOREY) if measure == unit(STOREY) else kind,
                    rawValue=entry.value,
                    bound=bound,
                    rawUnit=entry.unit or None,
                    definedIn=defined_in,
                    recordedIn=entry.standard_type,
                )
            case Definition():
                self.add_rule(
                    "definition", evidence, prefLabel=entry.term, definition=entry.definition_text, definedIn=defined_in
                )

    def add_rule(
        self,
        kind: RuleKind,
        evidence: Sequence[Evidence] = (),
        quantity: tuple[Decimal | None, NamedNode | None] = (None, None),
        **said: str | NamedNode | tuple[str, ...] | None,
    ) -> None:
        """Add a rule with its properties by local name. Of a standard, only a number with its unit is a quantity."""
        class_, names = _RULES[kind]
        values = {name: said.get(name, () if name == "condition" else None) for name in names.split()}
        plain = (each.value if isinstance(each, NamedNode) else each for each in values.values())
        node = mint(kind, sha256(repr((self.graph.value, *plain)))[:24])
        properties: list[Property] = [(RDF.type, class_)]
        if kind == "definition":
            properties.append((KG.jurisdiction, self.shared.iri))
        for name, value in values.items():
            if isinstance(value, str) and name in _CODE_LISTS:
                value = self.shared.code(name, value, _CODE_LISTS[name])
            property_ = _OF_SKOS.get(name) or KG[name]
            properties += ((property_, each) for each in (value if isinstance(value, tuple) else (value,)))
        number, measure = quantity
        if number is None or measure is None:
            self.add_node(node, properties, evidence)
            return
        part = mint_part(node, "quantity", 0)
        if self.add_node(node, [*properties, (KG.quantity, part)], evidence):
            amount = Text(format(number, "f"), datatype=XSD.decimal)
            self.add_node(part, [(RDF.type, QUDT.QuantityValue), (QUDT.numericValue, amount), (QUDT.hasUnit, measure)])
