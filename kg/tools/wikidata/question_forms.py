"""The reviewed table of relations: the properties that answer questions, and the forms of these questions.

A form is a whole question or statement in lower case, without punctuation: ``{s}`` is the item, ``{v}`` the value that
is claimed, ``(a|b)`` one of several words, ``[a]`` words that can be absent, and ``'s`` a possessive. A question is
covered only if a form matches all of it, so no word of it is ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Final, Literal

ValueKind = Literal["date", "place", "item", "quantity", "text"]

SUBJECT: Final = "§"
"""Stands for the item in a question that is compared with the forms."""


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation that questions ask about."""

    properties: tuple[str, ...]
    """The properties that state it, the one that is meant first in most cases."""
    kind: ValueKind
    forms: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    """Names by which forms of any property ask for it, beside those in the graph."""
    single: bool = False
    """Whether there is one true value at a time, so that another one contradicts it."""


_FOUNDED = "(founded|established|created|formed|set up|incorporated|built|constructed|chartered)"
_OUT = "(published|released|issued|first published|first released)"
_WHICH = "(what|which)"
_BE = "(is|was|are|were)"
_PEOPLE = "(people|inhabitants|residents|citizens|persons)"


def _date(*verbs: str) -> tuple[str, ...]:
    """Build the forms of a date by its participles: when something was founded."""
    return tuple(
        form
        for verb in verbs
        for form in (
            f"when {_BE} {{s}} {verb}",
            f"[in] {_WHICH} (year|month|date|day|century|decade) {_BE} {{s}} {verb} [in|on]",
            f"on {_WHICH} (date|day) {_BE} {{s}} {verb}",
            f"in {_WHICH} (year|month|decade|century) {_BE} {{s}} {verb}",
            f"since when has {{s}} been {verb}",
            f"{{s}} {_BE} {verb} [in|on] [the] [year] {{v}}",
            f"{_BE} {{s}} {verb} [in|on] [the] [year] {{v}}",
        )
    )


def _agent(past: str, participle: str, base: str) -> tuple[str, ...]:
    """Build the forms of who did something: who wrote a book."""
    return (
        f"who {past} {{s}}",
        f"who (has|have) {participle} {{s}}",
        f"who {_BE} {{s}} {participle} by",
        f"by whom {_BE} {{s}} {participle}",
        f"{{s}} {_BE} {participle} by (whom|who)",
        f"who did {base} {{s}}",
        f"{{v}} {past} {{s}}",
        f"{{v}} (has|have) {participle} {{s}}",
        f"{{s}} {_BE} {participle} by {{v}}",
        f"{_BE} {{s}} {participle} by {{v}}",
        f"did {{v}} {base} {{s}}",
    )


RELATIONS: Final[tuple[Relation, ...]] = (
    Relation(
        ("P569",),
        "date",
        (*_date("born"), "when is {s} 's birthday", "when did {s} come into the world", "{s} born [on|in] {v}"),
        ("date of birth", "birth date", "birthday", "birth year", "year of birth"),
        single=True,
    ),
    Relation(
        ("P19",),
        "place",
        (
            f"where {_BE} {{s}} born",
            f"[in] {_WHICH} (city|town|place|village|municipality) {_BE} {{s}} born [in]",
            f"{{s}} {_BE} born (in|at) {{v}}",
            f"{_BE} {{s}} born (in|at) {{v}}",
        ),
        ("place of birth", "birthplace", "birth place"),
        single=True,
    ),
    Relation(
        ("P570",),
        "date",
        (
            "when did {s} (die|pass away)",
            f"[in|on] {_WHICH} (year|month|date|day) did {{s}} die [in|on]",
            "{s} (died|passed away) [in|on] [the] [year] {v}",
            "did {s} (die|pass away) [in|on] [the] [year] {v}",
        ),
        ("date of death", "death date", "year of death"),
        single=True,
    ),
    Relation(
        ("P20",),
        "place",
        (
            "where did {s} (die|pass away)",
            f"[in] {_WHICH} (city|town|place|village|municipality) did {{s}} die [in]",
            "{s} (died|passed away) (in|at) {v}",
            "did {s} die (in|at) {v}",
        ),
        ("place of death", "deathplace"),
        single=True,
    ),
    Relation(
        ("P571",),
        "date",
        (*_date(_FOUNDED), "since when (does|has) {s} (exist|existed)", "{s} (has existed|exists) since {v}"),
        ("inception", "foundation date", "founding date", "date of foundation", "founding year", "year of foundation"),
        single=True,
    ),
    Relation(
        ("P576",),
        "date",
        _date("(dissolved|abolished|disbanded|demolished|closed down)"),
        ("dissolution", "date of dissolution"),
        single=True,
    ),
    Relation(
        ("P577",),
        "date",
        (*_date(_OUT), "when did {s} (come out|appear)", "{s} (came out|appeared) [in|on] {v}"),
        ("publication date", "date of publication", "release date", "publication year"),
    ),
    Relation(
        ("P112",),
        "item",
        _agent("(founded|established|set up)", "(founded|established|set up)", "(found|establish)"),
        ("founder", "founded by"),
    ),
    Relation(
        ("P61",),
        "item",
        _agent("(invented|discovered)", "(invented|discovered)", "(invent|discover)"),
        ("inventor", "discoverer"),
    ),
    Relation(
        ("P50",), "item", _agent("(wrote|authored)", "(written|authored)", "(write|author)"), ("author", "writer")
    ),
    Relation(("P123",), "item", _agent("published", "published", "publish"), ("publisher",)),
    Relation(("P57",), "item", _agent("directed", "directed", "direct"), ("director",)),
    Relation(("P86",), "item", _agent("composed", "composed", "compose"), ("composer",)),
    Relation(
        ("P170",),
        "item",
        _agent("(created|painted|drew|sculpted)", "(created|painted|drawn|sculpted)", "(create|paint|draw|sculpt)"),
        ("creator",),
    ),
    Relation(("P84",), "item", _agent("designed", "designed", "design"), ("architect",)),
    Relation(("P162",), "item", _agent("produced", "produced", "produce"), ("producer",)),
    Relation(("P178",), "item", _agent("developed", "developed", "develop"), ("developer",)),
    Relation(
        ("P176",), "item", _agent("(manufactured|makes|manufactures)", "manufactured", "manufacture"), ("manufacturer",)
    ),
    Relation(
        ("P127",),
        "item",
        ("who (owns|owned) {s}", "{v} (owns|owned) {s}", "{s} (is|was) owned by {v}", "who is {s} owned by"),
        ("owner", "owned by"),
    ),
    Relation(
        ("P161",),
        "item",
        ("who (starred|stars|acted|plays|played) in {s}", "{v} (starred|stars|acted|plays|played) in {s}"),
        ("cast member", "cast"),
    ),
    Relation(
        ("P36",),
        "item",
        ("what city is the capital of {s}", f"{_WHICH} (city|town) is the capital of {{s}}"),
        ("capital", "capital city"),
        single=True,
    ),
    Relation(
        ("P17",),
        "item",
        (
            f"[in] {_WHICH} country (is|was|lies) {{s}} [in|located|situated|located in|situated in]",
            f"{_WHICH} country does {{s}} (belong to|lie in)",
            f"(to|in) {_WHICH} country does {{s}} (belong|lie)",
            "{s} is [located|situated] in the country [of] {v}",
            "{s} belongs to the country [of] {v}",
        ),
        ("country", "sovereign state"),
    ),
    Relation(
        ("P17", "P131", "P276", "P706", "P30"),
        "place",
        (
            "{s} (is|lies|stands) [located|situated] in {v}",
            "(is|does) {s} [located|situated|lie] in {v}",
            "{s} is (a|an|the) (city|town|village|municipality|district|place|river|lake|mountain|site|region) in {v}",
            "is {s} (a|an|the) (city|town|village|municipality|district|place|river|lake|mountain|site|region) in {v}",
        ),
    ),
    Relation(
        ("P131", "P276"),
        "place",
        (
            f"[in] {_WHICH} (state|province|county|region|district|municipality|city) (is|lies) {{s}} "
            "[in|located|situated|located in|situated in]",
            "where (is|lies) {s} [located|situated]",
        ),
        ("location",),
    ),
    Relation(
        ("P30",),
        "item",
        (f"(on|in) {_WHICH} continent is {{s}} [located|situated]", f"{_WHICH} continent is {{s}} (on|in|part of)"),
        ("continent",),
        single=True,
    ),
    Relation(
        ("P27",),
        "item",
        (
            f"{_WHICH} (nationality|citizenship) (is|was) {{s}}",
            f"{_WHICH} (nationality|citizenship) (does|did) {{s}} (have|hold)",
            f"{_WHICH} country (is|was) {{s}} a citizen of",
            "{s} (is|was) a citizen of {v}",
            "is {s} a citizen of {v}",
        ),
        ("nationality", "citizenship", "country of citizenship"),
    ),
    Relation(
        ("P1082",),
        "quantity",
        (
            f"how many {_PEOPLE} (live|lived|reside|resided) in {{s}}",
            f"how many {_PEOPLE} (does|did|do|has|had) {{s}} [have|count]",
            f"how many {_PEOPLE} (are|were) [living] [there] in {{s}}",
            f"how many {_PEOPLE} {{s}} (has|had)",
            f"how (big|large|high) {_BE} the population of {{s}}",
            f"how (big|large|high) {_BE} {{s}} 's population",
            "how populous (is|was) {s}",
            f"{{s}} (has|had|counts|counted) {{v}} {_PEOPLE}",
            "{s} (has|had) a population of {v}",
            f"(does|did|has|had) {{s}} [have] {{v}} {_PEOPLE}",
            f"{{v}} {_PEOPLE} (live|lived) in {{s}}",
        ),
        ("population", "number of inhabitants", "inhabitants", "population size", "number of people"),
        single=True,
    ),
    Relation(
        ("P1128",),
        "quantity",
        (
            "how many (people|employees|workers) (does|did) {s} (employ|have)",
            "how many (people|employees) (work|worked) (at|for|in) {s}",
            "{s} (has|had|employs|employed) {v} employees",
        ),
        ("number of employees",),
    ),
    Relation(
        ("P2046",),
        "quantity",
        (
            "how (big|large) is the (area|surface|territory) of {s}",
            f"{_WHICH} area does {{s}} (cover|have|occupy)",
            "how much (area|land|space) does {s} (cover|have|occupy)",
            "{s} covers [an area of] {v}",
            "{s} has an area of {v}",
        ),
        ("area", "surface area"),
        single=True,
    ),
    Relation(("P2048", "P2044"), "quantity", ("how tall (is|was) {s}", "{s} (is|was) {v} tall"), ("height",)),
    Relation(
        ("P2044",),
        "quantity",
        ("how (high|far) above [the] sea level is {s}", "how high is {s} above [the] sea level"),
        ("elevation", "altitude", "elevation above sea level"),
    ),
    Relation(("P2043",), "quantity", (), ("length",)),
    Relation(("P2047",), "quantity", (), ("duration", "running time")),
    Relation(("P2067",), "quantity", ("how much does {s} weigh", "how heavy is {s}"), ("mass", "weight")),
    Relation(
        ("P1104",), "quantity", ("how many pages (does|has) {s} [have]", "{s} has {v} pages"), ("number of pages",)
    ),
    Relation(("P1113",), "quantity", ("how many episodes (does|has) {s} [have]",), ("number of episodes",)),
    Relation(
        ("P26",),
        "item",
        (
            "who (is|was) {s} married to",
            "who did {s} marry",
            "{s} (is|was) married to {v}",
            "(is|was) {s} married to {v}",
            "{s} married {v}",
        ),
        ("spouse", "wife", "husband"),
    ),
    Relation(("P22",), "item", (), ("father",), single=True),
    Relation(("P25",), "item", (), ("mother",), single=True),
    Relation(("P40",), "item", ("(what|who) children (does|did) {s} have",), ("child", "children")),
    Relation(("P3373",), "item", (), ("sibling", "siblings", "brother", "sister")),
    Relation(
        ("P69",),
        "item",
        (
            "where did {s} (study|go to school|go to university|go to college|attend school)",
            f"{_WHICH} (school|university|college) did {{s}} (attend|go to|graduate from)",
            "where (was|is) {s} educated",
            "{s} (studied|was educated|was a student) at {v}",
            "{s} (attended|graduated from) {v}",
            "did {s} (study at|attend|graduate from) {v}",
        ),
        ("alma mater", "educated at"),
    ),
    Relation(
        ("P106",),
        "item",
        (
            "what (does|did) {s} do for a living",
            "what (is|was) {s} by (profession|occupation|trade)",
            "{s} (is|was|works as|worked as) (a|an) {v} by (profession|occupation|trade)",
            "{s} (works|worked) as (a|an) {v}",
        ),
        ("occupation", "profession", "job"),
    ),
    Relation(
        ("P31", "P106"),
        "item",
        ("{s} (is|was) (a|an) {v}", "(is|was) {s} (a|an) {v}"),
    ),
    Relation(
        ("P31",),
        "item",
        ("what is {s} an instance of", f"{_WHICH} (kind|type|sort) of thing is {{s}}"),
        ("instance of", "class"),
    ),
    Relation(
        ("P39",),
        "item",
        (
            f"{_WHICH} (position|office|post) (did|does|has) {{s}} (hold|held)",
            f"{_WHICH} (positions|offices|posts) (did|does|has) {{s}} (hold|held)",
            "{s} (served as|held the position of|held the office of) [a|an|the] {v}",
        ),
        ("position held", "office held"),
    ),
    Relation(
        ("P102",),
        "item",
        (
            f"{_WHICH} [political] party (is|was) {{s}} (in|a member of|of)",
            f"{_WHICH} [political] party (does|did) {{s}} (belong to|represent)",
            "{s} (is|was) a member of the {v} party",
        ),
        ("party", "political party", "member of political party"),
    ),
    Relation(
        ("P102", "P463"),
        "item",
        ("{s} (is|was) a member of {v}", "(is|was) {s} a member of {v}", "{s} (belongs|belonged) to {v}"),
    ),
    Relation(
        ("P6",),
        "item",
        ("who (governs|runs) {s}",),
        ("head of government", "mayor", "lord mayor", "prime minister", "governor"),
        single=True,
    ),
    Relation(("P35",), "item", (), ("head of state",), single=True),
    Relation(("P190",), "item", (), ("twin town", "twin towns", "sister city", "sister cities", "partner cities")),
    Relation(
        ("P47",),
        "item",
        (f"{_WHICH} (places|countries|municipalities|districts|states) border {{s}}", "{s} borders [on] {v}"),
        ("shares border with", "neighbours", "neighbors"),
    ),
    Relation(
        ("P37",), "item", (f"{_WHICH} language is official in {{s}}",), ("official language", "official languages")
    ),
    Relation(
        ("P1412",),
        "item",
        (f"{_WHICH} (language|languages) (does|did) {{s}} speak", "{s} (speaks|spoke) {v}", "(does|did) {s} speak {v}"),
        ("languages spoken",),
    ),
    Relation(("P103",), "item", (), ("native language", "mother tongue", "first language")),
    Relation(
        ("P407", "P364"),
        "item",
        (f"[in] {_WHICH} language (is|was) {{s}} [written] [in]", "{s} (is|was) written in {v}"),
        ("language", "original language"),
    ),
    Relation(("P136",), "item", (f"{_WHICH} genre (is|does) {{s}} [belong to]",), ("genre",)),
    Relation(
        ("P166",),
        "item",
        (
            f"{_WHICH} (awards|prizes|award|prize) (has|did|have) {{s}} (won|win|received|receive|been awarded)",
            "{s} (won|received|was awarded) [the] {v}",
            "did {s} (win|receive) [the] {v}",
        ),
        ("award received", "awards", "award"),
    ),
    Relation(("P138",), "item", ("(who|what) (is|was) {s} named (after|for)", "{s} is named after {v}"), ("namesake",)),
    Relation(("P509",), "item", ("how did {s} die", "what did {s} die (of|from)"), ("cause of death",)),
    Relation(("P119",), "place", ("where (is|was) {s} buried", "{s} (is|was) buried (in|at) {v}"), ("burial place",)),
    Relation(
        ("P159",),
        "place",
        (
            "where (is|are|was) {s} (headquartered|based)",
            "where (is|are) the headquarters of {s}",
            "{s} (is|are) (headquartered|based) in {v}",
        ),
        ("headquarters", "headquarters location"),
    ),
    Relation(("P21",), "item", (), ("gender", "sex")),
    Relation(("P140",), "item", (f"{_WHICH} religion (is|was|does|did) {{s}} [follow|have]",), ("religion",)),
    Relation(("P856",), "text", (), ("website", "homepage", "official website", "web site")),
    Relation(("P625",), "text", (), ("coordinates", "coordinate location", "geographic coordinates")),
    Relation(("P281",), "text", (), ("postal code", "zip code", "postcode")),
    Relation(("P473",), "text", (), ("dialling code", "area code", "local dialing code")),
    Relation(("P421",), "item", (f"{_WHICH} (time zone|timezone) is {{s}} in",), ("time zone", "timezone")),
    Relation(("P580",), "date", ("when did {s} (start|begin)",), ("start date", "start time")),
    Relation(("P582",), "date", ("when did {s} (end|finish)",), ("end date", "end time")),
    Relation(("P585",), "date", ("when did {s} (happen|take place|occur)", "when was {s} held"), ("date",)),
)
"""Reviewed: each form asks for these properties and for nothing else."""

GENERIC: Final[tuple[str, ...]] = (
    f"[what|who|which|where|when] {_BE} [the|a|an] {{p}} (of|for) {{s}}",
    "[the] {p} of {s}",
    "{s} 's {p}",
    f"(what|who|which|where|when) {_BE} {{s}} 's {{p}}",
    "{s} {p}",
    f"{_WHICH} {{p}} (does|did|do) {{s}} have",
    f"{_WHICH} {{p}} (has|had|have) {{s}}",
    f"[the] {{p}} of {{s}} {_BE} {{v}}",
    f"{{s}} 's {{p}} {_BE} {{v}}",
    f"{{v}} {_BE} [the|a|an] {{p}} of {{s}}",
    f"{{v}} {_BE} {{s}} 's {{p}}",
    "{s} (has|had) (the|a|an) {p} of {v}",
    f"{_BE} {{v}} [the|a|an] {{p}} of {{s}}",
    f"{_BE} {{v}} {{s}} 's {{p}}",
)
"""Forms that name a property, ``{p}``."""

_PIECE: Final = re.compile(r"\[([^\[\]]+)\]|\(([^()]+)\)|\{(\w)\}|(\S+)")
_POLITE: Final = (
    r"(?:(?:please|so|and|well|hi|hello) )*(?:(?:can|could|would) you (?:please )?)?"
    r"(?:(?:tell me|do you know|i want to know|find out|check whether|check if|is it true that|verify that) )?"
)


def compile_form(form: str, *, free: bool = False) -> re.Pattern[str]:
    """Compile a form for a text in which a blank follows each word. With `free`, the item can be any words."""
    parts = [_POLITE]
    for optional, choice, slot, word in _PIECE.findall(form):
        if optional:
            parts.append(f"(?:{_words(optional)})?")
        elif choice:
            parts.append(f"(?:{_words(choice)})")
        elif slot == "s" and not free:
            parts.append(f"(?:the )?{SUBJECT} ")
        elif slot:
            parts.append(rf"(?P<{slot}>(?:\S+ )+?)")
        else:
            parts.append(re.escape(word) + " ")
    return re.compile("".join(parts))


def _words(choices: str) -> str:
    return "|".join(re.escape(each) + " " for each in choices.split("|"))


@dataclass(frozen=True, slots=True)
class Form:
    """A form of a relation; of any property without one."""

    relation: Relation | None
    pattern: re.Pattern[str]
    free: re.Pattern[str]


@cache
def get_forms() -> Sequence[Form]:
    """Compile the forms, those of reviewed relations first."""
    return tuple(_compile())


def _compile() -> Iterator[Form]:
    for relation in RELATIONS:
        for form in relation.forms:
            yield Form(relation, compile_form(form), compile_form(form, free=True))
    for form in GENERIC:
        yield Form(None, compile_form(form), compile_form(form, free=True))


@cache
def get_relations_by_name() -> Mapping[str, Sequence[Relation]]:
    """Get the relations of each name."""
    found: dict[str, list[Relation]] = {}
    for relation in RELATIONS:
        for name in relation.names:
            found.setdefault(name, []).append(relation)
    return found


@cache
def is_single(property_id: str) -> bool:
    """Whether a property has one true value at a time, as reviewed."""
    return any(relation.single for relation in RELATIONS if property_id in relation.properties[:1])
