"""Languages of the texts whose source states none, in derived graphs committed together with the texts.

The source comes first: where it states a language of a text unit or of its document, nothing is derived. The text of a
law or of a parliamentary record is in the language of its jurisdiction, unless the text itself is clearly in another
one. The language of any other document is that of its text, and its headings and numbers share it: English by its
function words, else as detected. Where detection is not sure enough, the language is ``und``, and only names that
belong to no language are searched for.

``graph/der/language/jurisdiction/{domain}/{place}/{date}`` has the languages by jurisdiction, and
``graph/der/language/words/{domain}/{place}`` those by function words: one graph for many records, with method and
confidence in ``graph/prov``. ``graph/der/language/detected/{record}`` has the detected ones, each with its
``kg:languageConfidence``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar, cast

from pyoxigraph import Literal, NamedNode, Quad

from kg.languages import SHORT
from kg.provenance.load_records import Derived, RecordOrigin, Rule
from kg.search.index_sync import DERIVED_LANGUAGE
from kg.sparql.terms import bind
from kg.store.ownership import find_described, is_user_graph
from kg.store.protocol import Store, Term, named_node, select, select_each
from kg.vocabulary import BASE, DCTERMS, KG, PROV_GRAPH, RDF, SCHEMA, SOURCED, XSD
from kg.words import STOP_WORDS
from loaders.languages.detection import CERTAIN, MINIMUM, Detection, detect_language, strip_marks
from loaders.languages.jurisdictions import find_language
from loaders.model import RecordQuads

VERSION: Final = "1"
"""The version of the agent that adds languages to texts that were loaded without."""
JURISDICTION: Final = Rule("language-of-jurisdiction", "1", "the language of the place of a law or a debate")
WORDS: Final = Rule("language-by-function-words", "1", "English by the share of function words in a text", "0.25")
DETECTION: Final = Rule("language-detection", "1", "the language detected in a text, if sure enough", str(MINIMUM))

# The language of a section above comes from its own graph, which has its type.
THINGS: Final = """
SELECT DISTINCT ?thing WHERE {
  VALUES ?source { $sources }
  GRAPH ?source {
    { ?thing schema:text ?text }
    UNION { ?unit schema:text ?text ; dcterms:isPartOf ?thing . ?thing a ?type }
    UNION { VALUES ?kind { $official } ?thing a ?kind }
  }
}"""

# In a query of its own: together with the one above, the engine joins each source with all languages in the store.
SAID: Final = """
SELECT DISTINCT ?graph ?thing WHERE {
  VALUES ?thing { $things }
  GRAPH ?graph { ?thing schema:inLanguage ?language }
  FILTER(STRSTARTS(STR(?graph), $prefix))
}"""

SHARED: Final = """
SELECT DISTINCT ?thing ?source WHERE {
  VALUES ?thing { $things } VALUES ?kind { $official }
  GRAPH ?source { ?thing a ?kind } FILTER(STRSTARTS(STR(?source), $sources))
}"""

PREMISES: Final = """
SELECT ?group ?source WHERE { VALUES ?group { $groups } GRAPH $prov { ?group prov:wasDerivedFrom ?source } }"""

_Value = TypeVar("_Value")
_LANGUAGES: Final = DERIVED_LANGUAGE
_BY_PLACE: Final = f"{_LANGUAGES}jurisdiction/"
_BY_WORDS: Final = f"{_LANGUAGES}words/"
_DETECTED: Final = f"{_LANGUAGES}detected/"
_GRAPHS: Final = f"{BASE}graph/"
_THINGS: Final = f"{BASE}id/"
_SURE: Final = Literal("0.99", datatype=XSD.decimal)
_RECORDED: Final = {
    JURISDICTION: ((KG.method, Literal("jurisdiction")), (KG.confidence, _SURE)),
    WORDS: ((KG.method, Literal("function words")), (KG.confidence, _SURE)),
}
"""Method and confidence of every language that a rule gives."""
_OFFICIAL: Final = frozenset({KG.CodeSection, KG.Speech, KG.Sitting, KG.Debate})
"""Kinds of text that an authority publishes in the language of its jurisdiction."""
_FUNCTION_WORDS: Final = 0.2
"""Share of function words by which a text is in a language. English has 0.4; Portuguese has 0.1 of those of English."""
_ALONE: Final = 0.25
"""Share of function words by which a text of unknown language is English. Of 1,494 real passages from 200 characters in
German, French, Spanish, Galician, Thai, Arabic and Chinese none has over 0.17; 94 % of English ones have more."""
_ONLY_ENGLISH: Final = frozenset(
    word
    for word in STOP_WORDS["en"].difference(*(words for language, words in STOP_WORDS.items() if language != "en"))
    if len(word) > 2
)
"""Function words of English that no other language has."""
_ENGLISH_WORDS: Final = 0.04
"""Share of such words by which a text is English. Of German and Galician samples 99 % have at most 0.03."""
_LONG: Final = 4
"""Minimum letters of a word that is compared with those of English texts."""
_KNOWN_WORDS: Final = 0.6
"""Share of the long words of a list or table by which it is English. Few words of other languages are English ones."""
_ENOUGH: Final = 3_000_000
"""Characters of English texts whose words are compared with a list."""
_NO_KINDS: Final[frozenset[NamedNode]] = frozenset()
_SAMPLE: Final = 1_000
"""Characters of a document in which its language is detected."""
_OWN: Final = SHORT
"""Minimum characters of a text that may have another language than its document or jurisdiction. Numbers and marks in
one that contradicts the jurisdiction do not count, as when detection was measured."""


@dataclass(slots=True)
class _Texts:
    """The text units of one graph, with the statements of the graph about them and their documents."""

    texts: dict[NamedNode, str] = field(default_factory=dict)
    parents: dict[NamedNode, NamedNode] = field(default_factory=dict)
    kinds: dict[NamedNode, set[NamedNode]] = field(default_factory=lambda: defaultdict(set))
    places: dict[NamedNode, NamedNode] = field(default_factory=dict)
    dates: dict[NamedNode, str] = field(default_factory=dict)
    stated: set[NamedNode] = field(default_factory=set)
    only_place: NamedNode | None = None
    only_day: str | None = None
    """The jurisdiction and the date that all nodes have which have any."""

    @classmethod
    def collect(cls, quads: Iterable[Quad]) -> _Texts:
        """Collect the texts among `quads`."""
        # By property, and of each quad only the terms that are needed: each access makes a term.
        record = quads if isinstance(quads, RecordQuads) else RecordQuads(quads)
        find = cast("Callable[[Iterable[NamedNode]], Iterator[Any]]", record.find)
        found = cls()
        found.texts = {quad.subject: quad.object.value for quad in find((SCHEMA.text,))}
        found.parents = {quad.subject: quad.object for quad in find((DCTERMS.isPartOf,))}
        for quad in find((RDF.type,)):
            found.kinds[quad.subject].add(quad.object)
        found.places = {quad.subject: quad.object for quad in find((KG.jurisdiction,))}
        found.dates = {quad.subject: quad.object.value for quad in find((DCTERMS.date,))}
        found.stated = {quad.subject for quad in find((SCHEMA.inLanguage,))}
        found.only_place, found.only_day = _get_only(found.places), _get_only(found.dates)
        return found

    def find_silent(self) -> dict[NamedNode, list[NamedNode]]:
        """Return the text units without a stated language, by the node that gets theirs.

        That node is their document; a section of a code, which is part of another section, gets its own. Official
        documents without text of their own are nodes without units.
        """
        found: dict[NamedNode, list[NamedNode]] = {
            thing: [] for thing, kinds in self.kinds.items() if kinds & _OFFICIAL and thing not in self.stated
        }
        for unit in self.texts:
            parent = self.parents.get(unit)
            if unit in self.stated or parent in self.stated:
                continue
            own = parent is None or parent not in self.kinds or KG.CodeSection in self.kinds.get(unit, ())
            found.setdefault(unit if own or parent is None else parent, []).append(unit)
        return found

    def place_of(self, thing: NamedNode) -> NamedNode | None:
        """Return the jurisdiction of a node, or the only one in the graph."""
        return self.places.get(thing) or self.only_place

    def day_of(self, thing: NamedNode) -> str | None:
        """Return the date of a node, or the only one in the graph."""
        return self.dates.get(thing) or self.only_day


def _get_only(values: Mapping[NamedNode, _Value]) -> _Value | None:
    """Get the value that all nodes have; None if they have none or several."""
    first = next(iter(values.values()), None)
    return first if all(value == first for value in values.values()) else None


def derive_languages(store: Store, replace: Mapping[NamedNode, Sequence[Quad]]) -> Derived:
    """Build the graphs of languages that change with a commit that replaces these graphs of texts.

    Texts that people add to nodes of a source change nothing.
    """
    sources = [graph for graph in replace if graph.value.startswith(SOURCED) or is_user_graph(graph)]
    made: dict[NamedNode, tuple[Sequence[Quad], RecordOrigin]] = {}
    grouped: dict[NamedNode, list[Quad]] = defaultdict(list)
    members: dict[NamedNode, set[NamedNode]] = defaultdict(set)
    outdated: dict[NamedNode, set[NamedNode]] = defaultdict(set)
    for row in _load_said(store, sources):
        graph = named_node(row["graph"])
        if graph.value.startswith((_BY_PLACE, _BY_WORDS)):
            outdated[graph].add(named_node(row["thing"]))
        else:
            made[graph] = (), RecordOrigin("", ())
    collected = {source: _Texts.collect(replace[source]) for source in sources}
    english = _EnglishWords(text for found in collected.values() for text in found.texts.values())
    for source, found in collected.items():
        own = NamedNode(_DETECTED + source.value.removeprefix(_GRAPHS).removeprefix("src/"))
        detected: list[Quad] = []
        silent = found.find_silent()
        described = find_described(store.query_sources, silent) if is_user_graph(source) else frozenset()
        for thing, units in silent.items():
            if thing in described:
                continue
            texts = {unit: found.texts[unit] for unit in units}
            sample = _sample(texts.values())
            group, language = _group_of(source, found, thing)
            if language is not None and not _is_in_other(language, sample, english):
                grouped[group].append(Quad(thing, SCHEMA.inLanguage, Literal(language), group))
            elif texts and (group_by_words := _group_by_words(source, found, thing, sample)) is not None:
                grouped[group_by_words].append(Quad(thing, SCHEMA.inLanguage, Literal("en"), group_by_words))
                members[group_by_words].add(source)
                detected += _to_quads(_detect_others(thing, texts, sample, "en"), own)
            elif texts:
                detection = detect_language(sample)
                others = _detect_others(thing, texts, sample, detection.language)
                detected += _to_quads({thing: detection, **others}, own)
        if detected:
            made[own] = detected, RecordOrigin("", (), (source,), DETECTION)
    said = {quad.subject for quads in grouped.values() for quad in quads}
    kept_by_others = _find_in_others(store, {thing for things in outdated.values() for thing in things - said}, replace)
    premises = _load_premises(store, [group for group in {*grouped, *outdated} if group.value.startswith(_BY_WORDS)])
    for group in {*grouped, *outdated}:
        gone = outdated[group] - kept_by_others if group.value.startswith(_BY_PLACE) else outdated[group]
        kept = [quad for quad in store.graph(group) if quad.subject not in gone]
        if group.value.startswith(_BY_WORDS):
            before = {source for source in premises[group] if source not in replace}
            rule, derived_from = WORDS, sorted(before | members[group], key=str)
        else:
            place = NamedNode(f"{_GRAPHS}ref/{'/'.join(group.value.removeprefix(_BY_PLACE).split('/')[1:3])}")
            rule, derived_from = JURISDICTION, [place]
        made[group] = (
            list(dict.fromkeys([*kept, *grouped[group]])),
            RecordOrigin("", (), derived_from, rule, _RECORDED[rule]),
        )
    return made


def _find_in_others(store: Store, things: Collection[NamedNode], replace: Collection[NamedNode]) -> set[NamedNode]:
    """Find the official documents among `things` that other graphs have too, as the chapter of several sections."""
    official, sources = sorted(_OFFICIAL, key=str), Literal(SOURCED)
    rows = select_each(store.query, SHARED, "things", sorted(things, key=str), official=official, sources=sources)
    return {named_node(row["thing"]) for row in rows if row["source"] not in replace}


def _load_premises(store: Store, groups: Sequence[NamedNode]) -> Mapping[NamedNode, set[NamedNode]]:
    """Load the graphs that shared graphs of languages were derived from."""
    found: dict[NamedNode, set[NamedNode]] = defaultdict(set)
    for row in select_each(store.query, PREMISES, "groups", sorted(groups, key=str), prov=PROV_GRAPH):
        found[named_node(row["group"])].add(named_node(row["source"]))
    return found


def _load_said(store: Store, sources: Sequence[NamedNode]) -> Iterator[Mapping[str, Term]]:
    """Load the languages that were derived for texts in the graphs as they are stored."""
    things: set[NamedNode] = set()
    written = [graph for graph in sources if is_user_graph(graph)]
    for graphs in (written, [graph for graph in sources if not is_user_graph(graph)]):
        if graphs:
            query = bind(THINGS, sources=graphs, official=sorted(_OFFICIAL, key=str))
            found = {named_node(row["thing"]) for row in select(store.query, query)}
            things |= found - find_described(store.query_sources, found) if graphs is written else found
    yield from select_each(store.query, SAID, "things", sorted(things, key=str), prefix=Literal(_LANGUAGES))


def _group_of(source: NamedNode, found: _Texts, thing: NamedNode) -> tuple[NamedNode, str | None]:
    """Return the graph for the language of a node by its jurisdiction, and that language, None if there is none."""
    place = found.place_of(thing)
    language = find_language(place) if place is not None and found.kinds.get(thing, _NO_KINDS) & _OFFICIAL else None
    if place is None or language is None:
        return source, None
    day = found.day_of(thing)
    parts = _domain_of(source), place.value.removeprefix(_THINGS), *((day,) if day else ())
    return NamedNode(_BY_PLACE + "/".join(parts)), language


def _group_by_words(source: NamedNode, found: _Texts, thing: NamedNode, sample: str) -> NamedNode | None:
    """Return the graph for the language of a document of a source that is English by its function words, else None."""
    place = found.place_of(thing)
    if place is None or not place.value.startswith(_THINGS) or not source.value.startswith(SOURCED):
        return None
    if len(sample) < _OWN or _share_of_function_words(sample) <= _ALONE:
        return None
    return NamedNode(f"{_BY_WORDS}{_domain_of(source)}/{place.value.removeprefix(_THINGS)}")


def _domain_of(source: NamedNode) -> str:
    return source.value.removeprefix(_GRAPHS).removeprefix("src/").partition("/")[0]


def _sample(texts: Iterable[str]) -> str:
    """Return the beginning of a document."""
    sample: list[str] = []
    length = 0
    for text in texts:
        sample.append(text[: _SAMPLE - length])
        length += len(sample[-1])
        if length >= _SAMPLE:
            break
    return "\n".join(sample)


def _is_in_other(language: str, sample: str, english: _EnglishWords) -> bool:
    """Whether a long text, by its beginning, is clearly in another language than that of its jurisdiction.

    `english` has the words of the English texts in the same commit.
    """
    if len(sample) < _OWN or _has_function_words(sample, language):
        return False
    words = strip_marks(sample)
    if len(words) < _OWN:
        return False
    # A list or a table: its words are those of the texts around it. Reading the model would take half a second.
    if language == "en" and english.contain(words.casefold().split()):
        return False
    found = detect_language(sample)
    return found.probability >= CERTAIN and found.language != language


class _EnglishWords:
    """The long words of the texts that are English by their function words, read as far as a list needs them."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._words: Final[set[str]] = set()
        self._unread: Final = iter(texts)
        self._characters = 0

    def contain(self, words: Iterable[str]) -> bool:
        """Whether these texts have most of the long ones of `words`."""
        long = {word for word in words if len(word) >= _LONG}
        unknown = long - self._words
        while len(long) - len(unknown) < _KNOWN_WORDS * len(long):
            if (text := self._next_english()) is None:
                return False
            self._words.update(word for word in strip_marks(text).casefold().split() if len(word) >= _LONG)
            unknown -= self._words
        return True

    def _next_english(self) -> str | None:
        if self._characters < _ENOUGH:
            for text in self._unread:
                beginning = text[:_SAMPLE]
                if len(beginning) >= _OWN and _has_function_words(beginning, "en"):
                    self._characters += len(text)
                    return text
        return None


def _has_function_words(text: str, language: str) -> bool:
    """Whether a text has so many function words of a language that it is not in another one.

    Counting them takes a tenth of the time of detection, and most loads never need the model, which takes 0.5 s to
    read. Only English: related languages, such as Spanish and Galician, share too many of these words.
    """
    if language != "en":
        return False
    if _share_of_function_words(text) > _FUNCTION_WORDS:
        return True
    # Numbers, marks and names, as in a table or a list, leave fewer of them.
    words = strip_marks(text).casefold().split()
    return sum(map(_ONLY_ENGLISH.__contains__, words)) > _ENGLISH_WORDS * len(words)


def _share_of_function_words(text: str) -> float:
    words = text.casefold().split()
    return sum(map(STOP_WORDS["en"].__contains__, words)) / len(words) if words else 0.0


def _detect_others(
    thing: NamedNode, texts: Mapping[NamedNode, str], sample: str, language: str
) -> dict[NamedNode, Detection]:
    """Detect the languages of the long text units of a document that are clearly in another language than it.

    `sample` is the beginning of the document.
    """
    found: dict[NamedNode, Detection] = {}
    for unit, text in texts.items():
        if unit == thing or len(text) < _OWN:
            continue
        beginning = text[:_SAMPLE]
        if beginning != sample and not _has_function_words(beginning, language):
            own = detect_language(beginning)
            if own.probability >= CERTAIN and own.language != language:
                found[unit] = own
    return found


def _to_quads(found: Mapping[NamedNode, Detection], graph: NamedNode) -> Iterator[Quad]:
    for each, (language, probability) in found.items():
        yield Quad(each, SCHEMA.inLanguage, Literal(language), graph)
        confidence = Literal(f"{probability:.3f}", datatype=XSD.decimal)
        yield Quad(each, KG.languageConfidence, confidence, graph)
