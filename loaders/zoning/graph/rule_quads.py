"""Rules of a code as quads: uses that a district permits, dimensions that it prescribes, meanings of terms.

Rules stated by a source and rules found in text have the same form. Those found in text also have evidence, method and
confidence. The IRI of a rule is a hash of its graph and content.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Final

from pyoxigraph import Literal, NamedNode, Quad

from kg.vocabulary import BASE, KG, QUDT, RDF, SKOS, UNIT, XSD, Kind, mint, mint_naming, mint_part, sha256
from loaders.citations.graph.claims import Evidence, evidence_quads, method_quads
from loaders.zoning.extraction import measures, permission_levels
from loaders.zoning.extraction.dimensions import find_type
from loaders.zoning.graph.authorities import Authorities

LEVELS: Final = {
    "byRight": ("by right", "by-right", "byright", "permitted", "permitted by right", "allowed", "p", "yes", "y"),
    "conditional": (
        "conditional", "conditional use", "conditionally permitted", "special permit", "special use",
        "special exception", "c", "cu", "cup", "sp", "su", "sup", "se", "public hearing",
    ),
    "byRightWithConditions": (
        "by right with conditions", "byrightwithconditions", "permitted with conditions", "uses subject to conditions",
        "subject to conditions", "limited", "l", "pc",
    ),
    "byRightOrConditional": (
        "by right or conditional", "byrightorconditional", "allowed/conditional", "permitted/conditional",
        "allowed or conditional", "permitted or conditional",
    ),
    "notPermitted": (
        "not permitted", "notpermitted", "prohibited", "not allowed", "forbidden", "n", "no", "np", "x",
        "-", "\u2013", "\u2014",
    ),
}  # fmt: skip
"""Words and letters that sources use for the levels of permission."""

_OF_LEVELS: Final = frozenset(
    re.findall(
        r"\w+",
        "a allowed approval approved as by conditional conditionally conditions exception hearing land limited not of "
        "only permit permits permitted prohibited required right special standards subject to upon use uses with",
    )
)
"""Words that state a level and nothing else."""

UNITS: Final = {
    "FT": ("ft", "ft.", "feet", "foot", "'"),
    "FT2": ("sf", "sqft", "sq ft", "sq. ft.", "square feet", "square foot", "ft2"),
    "AC": ("ac", "ac.", "acre", "acres"),
    "PERCENT": ("%", "percent", "per cent", "pct"),
    "IN": ("in", "in.", "inch", "inches"),
    "YD": ("yd", "yard", "yards"),
    "MI": ("mi", "mile", "miles"),
    "M": ("m", "meter", "meters", "metre", "metres"),
    "dwelling-per-acre": ("units/acre", "units per acre", "dwelling units per acre", "du/ac", "du/acre"),
    "storey": ("story", "stories", "storey", "storeys"),
    "dwelling": ("unit", "units", "dwelling units", "dwelling unit", "du"),
    "bedroom": ("bedroom", "bedrooms"),
    "space": ("space", "spaces", "parking spaces", "parking space"),
    "space-per-dwelling": ("spaces per unit", "spaces/unit", "spaces per dwelling unit"),
    "square-foot-per-dwelling": ("square feet per unit", "sf/unit"),
    "UNITLESS": ("ratio", "far"),
}
"""The words that sources use for a unit, by its local name in QUDT or in our own list of units."""

STANDARD_TYPES: Final = frozenset(
    (
        "lot-area", "lot-area-per-unit", "lot-width", "lot-depth", "lot-frontage", "lot-coverage",
        "impervious-coverage", "open-space", "setback", "front-setback", "side-setback",
        "street-side-setback", "rear-setback",
        "building-separation", "building-height", "building-storeys", "floor-area", "unit-size", "floor-area-ratio",
        "density", "dwelling-units", "bedrooms", "parking", "project-area", "width", "length",
    )
)  # fmt: skip
"""The types that the ontology describes."""

UNNAMED: Final = "unnamed"
"""The type of a standard whose dimension no words name, or only words that are not understood."""
_LEVEL_OF: Final = {word: level for level, words in LEVELS.items() for word in words}
_UNIT_OF: Final = {word: unit for unit, words in UNITS.items() for word in (unit.casefold(), *words)}
_OWN_UNITS: Final = BASE + "vocab/unit/"
_NUMBER: Final = re.compile(r"[+-]?(?:\d{1,3}(?:,\d{3})+|\d+)?(?:\.\d+)?")
_BOUND: Final = re.compile(r"\b(?:(min)(?:imum|\.)?|(max)(?:imum|\.)?)(?=\b|\s|$)", re.IGNORECASE)
_DIGITS: Final = 30


def level_of(raw: str) -> str | None:
    """Parse the words of a source into a level of permission: as listed, or as in text if all of them name levels.

    None for other words, which are stored as recorded: they may contain a condition.
    """
    words = " ".join(raw.split()).casefold()
    if (known := _LEVEL_OF.get(words)) is not None:
        return known
    return permission_levels.level_of(words) if _OF_LEVELS.issuperset(re.split(r"[ -]", words)) else None


def unit_of(words: str) -> NamedNode | None:
    """Parse the words of a source into a unit, alone or as after a number in text. None for an unknown unit."""
    plain = " ".join(words.split()).casefold()
    code = _UNIT_OF.get(plain)
    if code is None and plain and (given := measures.parse_measure(f"1 {plain}")) is not None:
        code = given.unit if given.value == 1 else None
    return None if code is None else unit(code)


def unit(code: str) -> NamedNode:
    """Get the unit with this local name: QUDT's if it is in capitals, else ours."""
    return UNIT[code] if code == code.upper() else NamedNode(_OWN_UNITS + code)


def number_in(raw: str) -> Decimal | None:
    """Parse a value that is a number and nothing else. None for ``35, or 40 on corners``."""
    text = raw.strip()
    if not text or len(text) > _DIGITS or _NUMBER.fullmatch(text) is None:
        return None
    try:
        return Decimal(text.replace(",", ""))
    except InvalidOperation:
        return None


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
class Rules:
    """Collects the rules of one graph."""

    graph: NamedNode
    shared: Authorities
    quads: list[Quad] = field(default_factory=list)
    known: set[NamedNode] = field(default_factory=set)

    def permission(
        self,
        district: NamedNode,
        use: NamedNode,
        raw: str,
        level: str | None,
        *,
        conditions: Iterable[str] = (),
        review: NamedNode | None = None,
        section: NamedNode | None = None,
        column: str | None = None,
        evidence: Evidence | None = None,
    ) -> NamedNode:
        """Add the level at which a district permits a use."""
        conditions = tuple(conditions)
        node = self._node("permission", district, use, raw, level, conditions, review, section, column)
        said: list[tuple[NamedNode, NamedNode | str | None]] = [
            (RDF.type, KG.UsePermission),
            (KG.district, district),
            (KG.landUse, use),
            (KG.rawLevel, raw),
            (KG.permissionLevel, None if level is None else mint("code", "permissionLevel", level)),
            *((KG.condition, condition) for condition in conditions),
            (KG.reviewSection, review),
            (KG.definedIn, section),
            (KG.recordedIn, column),
        ]
        return self._take(node, said, evidence)

    def standard(
        self,
        district: NamedNode | None,
        kind: str,
        raw: str,
        *,
        bound: str | None = None,
        value: Decimal | None = None,
        measure: NamedNode | None = None,
        raw_unit: str | None = None,
        applies_to: str | None = None,
        conditions: Iterable[str] = (),
        section: NamedNode | None = None,
        column: str | None = None,
        evidence: Evidence | None = None,
    ) -> NamedNode:
        """Add a dimension that a district prescribes. Only a number with its unit becomes a quantity."""
        conditions = tuple(conditions)
        node = self._node("standard", district, kind, raw, bound, raw_unit, applies_to, conditions, section, column)
        first = node not in self.known
        quantity = mint_part(node, "quantity", 0) if value is not None and measure is not None else None
        said: list[tuple[NamedNode, NamedNode | str | None]] = [
            (RDF.type, KG.DimensionalStandard),
            (KG.district, district),
            (KG.standardType, self.shared.code("standardType", kind, STANDARD_TYPES)),
            (KG.bound, None if bound is None else mint("code", "bound", bound)),
            (KG.rawValue, raw),
            (KG.rawUnit, raw_unit),
            (KG.appliesTo, applies_to),
            *((KG.condition, condition) for condition in conditions),
            (KG.quantity, quantity),
            (KG.definedIn, section),
            (KG.recordedIn, column),
        ]
        self._take(node, said, evidence)
        if quantity is not None and value is not None and measure is not None and first:
            number = Literal(format(value, "f"), datatype=XSD.decimal)
            self.quads.append(Quad(quantity, RDF.type, QUDT.QuantityValue, self.graph))
            self.quads.append(Quad(quantity, QUDT.numericValue, number, self.graph))
            self.quads.append(Quad(quantity, QUDT.hasUnit, measure, self.graph))
        return node

    def definition(
        self, term: str, text: str, *, section: NamedNode | None = None, evidence: Evidence | None = None
    ) -> NamedNode:
        """Add the meaning of a term."""
        node = self._node("definition", term, text, section)
        said: list[tuple[NamedNode, NamedNode | str | None]] = [
            (RDF.type, KG.Definition),
            (SKOS.prefLabel, term),
            (SKOS.definition, text),
            (KG.jurisdiction, self.shared.iri),
            (KG.definedIn, section),
        ]
        return self._take(node, said, evidence)

    def naming(self, district: NamedNode, key: str, section: NamedNode, evidence: Evidence) -> NamedNode:
        """Add that the section with this key names a district, in its heading if `evidence` has no words."""
        node = mint_naming(district, key)
        if node not in self.known:
            self.known.add(node)
            said = (RDF.type, KG.DistrictNaming), (KG.namesDistrict, district), (KG.definedIn, section)
            self.quads += [Quad(node, predicate, value, self.graph) for predicate, value in said]
            self.quads += method_quads(node, evidence, self.graph)
            if evidence.exact:
                self.quads += evidence_quads(node, evidence, self.graph, self.known)
        return node

    def _node(self, kind: Kind, *fields: object) -> NamedNode:
        return mint(kind, sha256(repr((self.graph.value, *map(_plain, fields))))[:24])

    def _take(
        self, node: NamedNode, said: Sequence[tuple[NamedNode, NamedNode | str | None]], evidence: Evidence | None
    ) -> NamedNode:
        if node not in self.known:
            self.known.add(node)
            self.quads += [
                Quad(node, predicate, value if isinstance(value, NamedNode) else Literal(value), self.graph)
                for predicate, value in dict.fromkeys(said)
                if value is not None
            ]
            if evidence is not None:
                self.quads += method_quads(node, evidence, self.graph)
        if evidence is not None:
            self.quads += evidence_quads(node, evidence, self.graph, self.known)
        return node


def _plain(value: object) -> object:
    return value.value if isinstance(value, NamedNode) else value
