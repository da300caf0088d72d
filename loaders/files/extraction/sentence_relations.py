"""Relations that a sentence states: by the dependencies of its verbs, and by the words between two mentions.

Denied, asked, assumed and merely possible relations are left out. Those of the past and the future have a low
confidence, so that they are listed for review and not asserted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from kg.words import to_word_set
from loaders.files.extraction.entity_model import EntityType, Key, Relation

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.matcher import DependencyMatcher
    from spacy.tokens import Doc, Token


@dataclass(frozen=True, slots=True)
class Spot:
    """A mention in a snippet, by the offsets in its plain text. `score` is how sure it is."""

    start: int
    end: int
    key: Key
    score: float


@dataclass(frozen=True, slots=True)
class Stated:
    """A relation between two mentions, stated by the characters `start` to `end` of a snippet."""

    subject: Spot
    relation: Relation
    object: Spot
    start: int
    end: int
    confidence: float
    method: str


@dataclass(frozen=True, slots=True)
class VerbPattern:
    """Verbs with their object: direct (``dobj``), the agent of a passive (``agent``), or after a preposition.

    A pattern that is `reversed` has the subject of the verb as the object of the relation.
    """

    relation: Relation
    weight: float
    verbs: frozenset[str]
    arm: str
    prepositions: frozenset[str] = frozenset()
    reversed: bool = False


def _verbs(
    relation: Relation, weight: float, verbs: str, arm: str, prepositions: str = "", *, reverse: bool = False
) -> VerbPattern:
    return VerbPattern(relation, weight, to_word_set(verbs), arm, to_word_set(prepositions), reverse)


_TIMED: Final = "runs run starts start happens happen comes come"
_PATTERNS: Final = (
    _verbs("uses", 0.95, "use uses used using employs employ leverages utilizes invokes calls consumes adopts", "dobj"),
    _verbs("uses", 0.95, "integrates integrate integrated integrating", "prep", "with"),
    _verbs("uses", 0.95, "powered backed driven", "agent"),
    _verbs("uses", 0.95, "used", "agent", reverse=True),
    _verbs("uses", 0.9, "built based runs run running builds", "prep", "on atop"),
    _verbs("uses", 0.9, "configured accessed controlled", "prep", "via through with"),
    _verbs("depends_on", 0.95, "depends depend depending relies rely relying", "prep", "on"),
    _verbs("depends_on", 0.95, "requires require required requiring needs need", "dobj"),
    _verbs("depends_on", 0.9, "required needed", "agent", reverse=True),
    _verbs("part_of", 0.95, "belongs belong", "prep", "to"),
    _verbs("part_of", 0.9, "included contained bundled embedded", "prep", "in with"),
    _verbs("part_of", 0.9, "consists consist composed", "prep", "of", reverse=True),
    _verbs("part_of", 0.9, "includes include comprises comprise contains contain", "dobj", reverse=True),
    _verbs("owned_by", 0.95, "owned maintained operated managed run administered", "agent"),
    _verbs("owned_by", 0.9, "owns own maintains maintain operates operate manages manage", "dobj", reverse=True),
    _verbs(
        "located_in",
        0.95,
        "located situated based housed installed sits hosted headquartered",
        "prep",
        "in at on near within inside",
    ),
    _verbs("precedes", 0.95, "precedes precede preceded", "dobj"),
    _verbs("precedes", 0.9, _TIMED, "prep", "before"),
    _verbs("precedes", 0.9, _TIMED, "prep", "after", reverse=True),
    _verbs("cites", 0.95, "cites cite cited quotes quote", "dobj"),
    _verbs("refers_to", 0.95, "refers refer points links link", "prep", "to"),
    _verbs("refers_to", 0.9, "references reference mentions mention", "dobj"),
    _verbs("defines", 0.9, "defines define defined specifies specify", "dobj"),
    _verbs("defines", 0.9, "defined specified", "prep", "in by", reverse=True),
)
_PAST_OR_FUTURE: Final = 0.7
"""Factor for statements about the past or the future."""
_FAR: Final = 0.02
"""Loss of confidence for each token between two mentions from the sixth."""
_NEAR: Final = 5

_WHOLE_WORDS: Final = "part|component|module|member|subsystem|division|unit|branch"
_SITED: Final = "located|situated|housed|installed|based|headquartered"
_LINKING: Final[Sequence[tuple[Relation, float, bool, str]]] = (
    ("uses", 0.95, False, r"uses?|integrates? with|(?:is |are )?built (?:on|with)|(?:is |are )?powered by|runs? on"),
    ("uses", 0.9, False, r"(?:is |are )?configured (?:via|through)"),
    ("uses", 0.95, True, r"(?:is|are) used by"),
    ("depends_on", 0.95, False, r"depends? (?:up)?on|relies on|rely on|requires?|needs?"),
    ("depends_on", 0.9, True, r"(?:is|are) (?:required|needed) by"),
    ("part_of", 0.95, False, rf"(?:is|are) (?:a |an |the )?(?:{_WHOLE_WORDS}) of|belongs? to"),
    ("part_of", 0.9, True, r"consists? of|comprises?|includes?|contains?"),
    ("owned_by", 0.95, False, r"(?:is|are) (?:owned|maintained|operated|run|managed|administered) by"),
    ("owned_by", 0.9, True, r"owns?|maintains?|operates?|manages?"),
    ("located_in", 0.95, False, rf"(?:(?:is|are) )?(?:{_SITED}) (?:in|at|on|near)|(?:is|are|sits?|lies) (?:in|at)"),
    ("cites", 0.95, False, r"cites?|quotes?"),
    ("refers_to", 0.95, False, r"refers? to|references|mentions|links? to"),
    ("precedes", 0.95, False, r"precedes?|comes? before|runs? before"),
    ("precedes", 0.9, True, r"comes? after|runs? after"),
    ("defines", 0.9, False, r"defines?|specif(?:y|ies)"),
    ("defines", 0.9, True, r"(?:is|are) (?:defined|specified) (?:in|by)"),
)
"""Words between two names, with their weight, and whether the second name is the subject."""
_BETWEEN: Final = tuple(
    (
        relation,
        weight,
        is_reversed,
        re.compile(
            rf"[\s,]*(?:(?:which|that|also|currently|directly)\s+)*(?:{words})(?:\s+(?:the|an?|its|our|their))?\s*",
            re.IGNORECASE,
        ),
    )
    for relation, weight, is_reversed, words in _LINKING
)
_PREPOSITIONS: Final = to_word_set("of in on for with from by to at without like unlike than")
_WHOLES: Final = to_word_set("part component module member subsystem division unit branch piece element section")
_DENYING: Final = to_word_set("not n't never no without neither nor cannot hardly")
_DENIAL: Final = ("det", "neg", "preconj", "cc", "amod", "predet")
_SUPPOSING: Final = to_word_set("would could might may")
_FUTURE: Final = to_word_set("will shall plans planned")
_CONDITIONS: Final = to_word_set("if unless whether")
_PRONOUNS: Final = to_word_set("which that who")
_PLAIN: Final = to_word_set(
    "use employ depend rely require need include comprise contain consist own maintain operate manage precede cite"
    " quote refer point link reference mention define specify integrate run start happen come belong"
)
"""Verbs in the form of the plural, the infinitive and the imperative."""
_PAST: Final = to_word_set("used required depended relied included contained integrated preceded cited")
_NO_LONGER: Final = re.compile(
    r"\bno longer\b|\bused to\b|\binstead of\b|\brather than\b|\bformerly\b|\bpreviously\b", re.I
)

_THINGS: Final[frozenset[EntityType]] = frozenset({"product", "term", "api", "organization", "regulation"})
_OWNERS: Final[frozenset[EntityType]] = frozenset({"organization", "person", "term"})
_SYSTEMS: Final[frozenset[EntityType]] = frozenset({"product", "term", "api", "regulation", "organization", "person"})


def is_possible(subject: Key, relation: Relation, object_: Key) -> bool:
    """Whether entities of these types can have this relation."""
    one, other = subject[0], object_[0]
    if subject == object_ or {one, other} & {"date", "version"}:
        return False
    if relation in ("uses", "depends_on"):
        return one in _SYSTEMS and other in _THINGS
    if relation == "owned_by":
        return one not in ("person",) and other in _OWNERS
    if relation == "located_in":
        return other == "place"
    if relation == "precedes":
        return not {one, other} & {"regulation", "person", "place"}
    if relation == "part_of":
        return (other != "person" and one != "person") or other == "organization"
    return relation != "defines" or other != "person"


def find_relations(
    doc: Doc, spots: Sequence[Spot], matcher: DependencyMatcher, code: Sequence[tuple[int, int]] = ()
) -> list[Stated]:
    """Find the relations between mentions in the sentences of a snippet. Words in the spans `code` are no verbs."""
    return list(_Sentences(doc, spots, matcher, code).find())


@lru_cache(maxsize=4)
def build_matcher(pipeline: Language) -> DependencyMatcher:
    """Build the matcher of verbs with their objects."""
    from spacy.matcher import DependencyMatcher

    matcher = DependencyMatcher(pipeline.vocab)
    for number, pattern in enumerate(_PATTERNS):
        verb = {"RIGHT_ID": "verb", "RIGHT_ATTRS": {"LOWER": {"IN": sorted(pattern.verbs)}}}
        if pattern.arm == "dobj":
            arms = [_arm("verb", "object", {"DEP": {"IN": ["dobj", "obj"]}})]
        elif pattern.arm == "agent":
            arms = [
                _arm("verb", "by", {"DEP": {"IN": ["agent", "prep"]}, "LOWER": "by"}),
                _arm("by", "object", {"DEP": "pobj"}),
            ]
        else:
            prep = {"LOWER": {"IN": sorted(pattern.prepositions)}, "DEP": {"IN": ["prep", "agent"]}}
            arms = [_arm("verb", "prep", prep), _arm("prep", "object", {"DEP": "pobj"})]
        matcher.add(str(number), [[verb, *arms]])
    whole = {"RIGHT_ID": "verb", "RIGHT_ATTRS": {"LOWER": {"IN": ["is", "are"]}}}
    part = _arm("verb", "part", {"DEP": "attr", "LOWER": {"IN": sorted(_WHOLES)}})
    where = {"LOWER": {"IN": ["in", "near", "at"]}, "DEP": "prep"}
    kind = _arm("verb", "kind", {"DEP": "attr"})
    matcher.add("place", [[whole, kind, _arm("kind", "in", where), _arm("in", "object", {"DEP": "pobj"})]])
    matcher.add("part", [[whole, part, _arm("part", "of", {"LOWER": "of"}), _arm("of", "object", {"DEP": "pobj"})]])
    return matcher


def _arm(left: str, right: str, attributes: Mapping[str, object]) -> dict[str, object]:
    return {"LEFT_ID": left, "REL_OP": ">", "RIGHT_ID": right, "RIGHT_ATTRS": attributes}


_OF_NOUNS: Final = {
    "part": VerbPattern("part_of", 0.95, frozenset(), "attr"),
    "place": VerbPattern("located_in", 0.95, frozenset(), "attr"),
}
"""Patterns of a noun after ``is``: ``a part of``, ``a village in``."""


class _Sentences:
    def __init__(
        self, doc: Doc, spots: Sequence[Spot], matcher: DependencyMatcher, code: Sequence[tuple[int, int]]
    ) -> None:
        self.doc: Final = doc
        self.code: Final = code
        self.spots: Final = sorted(spots, key=lambda spot: spot.start)
        self.matcher: Final = matcher
        self.covering: Final[dict[int, Spot]] = {}
        at = 0
        for token in doc:
            while at < len(self.spots) and self.spots[at].end <= token.idx:
                at += 1
            if (
                at < len(self.spots)
                and self.spots[at].start < token.idx + len(token)
                and token.idx < self.spots[at].end
            ):
                self.covering[token.i] = self.spots[at]

    def find(self) -> Iterator[Stated]:
        done: set[tuple[Key, Relation, Key, int]] = set()
        for each in (*self.find_between(), *self.find_by_verbs()):
            triple = each.subject.key, each.relation, each.object.key, each.start
            if triple not in done:
                done.add(triple)
                yield each

    def find_by_verbs(self) -> Iterator[Stated]:
        """Find relations by the dependencies of verbs."""
        for number, tokens in self.matcher(self.doc):
            name = self.doc.vocab.strings[number]
            pattern = _OF_NOUNS.get(name) or _PATTERNS[int(name)]
            verb, target = self.doc[tokens[0]], self.doc[tokens[-1]]
            if verb.i in self.covering or any(start <= verb.idx < end for start, end in self.code):
                continue
            factor = self.rate(verb, target)
            if not factor:
                continue
            passive = pattern.arm == "agent" or (pattern.arm == "prep" and self.is_passive(verb))
            subjects = [spot for token in self.find_subjects(verb, passive) for spot in self.spots_of(token)]
            if len(subjects) == 1 and not passive and self.is_imperative(verb, subjects[0]):
                continue
            objects = list(self.spots_of(target))
            for subject in subjects:
                for object_ in objects:
                    one, other = (object_, subject) if pattern.reversed else (subject, object_)
                    if subject.start != object_.start and is_possible(one.key, pattern.relation, other.key):
                        yield self.build(one, pattern.relation, other, verb, pattern.weight * factor, "verb pattern")

    def find_between(self) -> Iterator[Stated]:
        """Find relations by all the words between two mentions."""
        text = self.doc.text
        for one, other in zip(self.spots, self.spots[1:], strict=False):
            between = text[one.end : other.start]
            if not 3 < len(between) < 60:
                continue
            for relation, weight, is_reversed, pattern in _BETWEEN:
                if pattern.fullmatch(between) is None:
                    continue
                first, last = (other, one) if is_reversed else (one, other)
                token = self.token_at(other.start)
                verb = self.token_at(one.end + len(between) - len(between.lstrip()))
                if is_possible(first.key, relation, last.key) and (factor := self.rate(verb, token)):
                    # An object before these words is not their subject: "of the Council owns".
                    if self.is_inner(one):
                        continue
                    yield self.build(first, relation, last, token, weight * factor, "words between names")
                break

    def is_inner(self, spot: Spot) -> bool:
        """Whether a mention is the complement of a preposition, so that the words after it have another subject."""
        token = self.token_at(spot.start)
        if self.token_at(spot.end - 1).dep_ in ("dobj", "obj", "pobj") and not self.is_followed_by_clause(spot):
            return True
        if not token.i:
            return False
        before = self.doc[token.i - 1]
        if before.lower_ in ("the", "a", "an", "our", "its") and before.i:
            before = self.doc[before.i - 1]
        return before.lower_ in (
            "of",
            "in",
            "on",
            "for",
            "with",
            "from",
            "by",
            "to",
            "at",
            "without",
            "like",
            "unlike",
            "than",
        )

    def is_followed_by_clause(self, spot: Spot) -> bool:
        """Whether a relative clause follows a mention: ``the gateway, which uses``."""
        return re.match(r"[\s,]*(?:which|that)\b", self.doc.text[spot.end :]) is not None

    def token_at(self, offset: int) -> Token:
        """Return the token at an offset."""
        low, high = 0, len(self.doc) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self.doc[middle].idx <= offset:
                low = middle
            else:
                high = middle - 1
        return self.doc[low]

    def rate(self, verb: Token, target: Token) -> float:
        """Return the factor of the relations of a verb: 0 if they are denied, asked or assumed."""
        sentence = verb.sent
        words = sentence.text
        if words.rstrip().endswith("?") or _NO_LONGER.search(words):
            return 0.0
        factor = 1.0
        chain = [verb]
        while chain[-1].dep_ in ("conj", "xcomp", "acl", "relcl", "auxpass", "ccomp", "advcl") and len(chain) < 4:
            chain.append(chain[-1].head)
        for each in chain:
            for child in (*each.children, *([each.head] if each.dep_ in ("aux", "auxpass") else ())):
                word = child.lower_
                if child.dep_ in ("neg", "det", "aux", "mark", "advmod", "preconj", "cc") and word in _DENYING:
                    return 0.0
                if child.dep_ == "mark" and word in _CONDITIONS:
                    return 0.0
                if child.dep_ == "aux" and word in _SUPPOSING:
                    return 0.0
                if child.dep_ == "aux" and word in _FUTURE:
                    factor = min(factor, _PAST_OR_FUTURE)
        if any(child.lower_ in _DENYING for child in target.children if child.dep_ in _DENIAL):
            return 0.0
        if verb.lower_ in _PAST and not self.is_passive(verb) and verb.dep_ not in ("acl",):
            factor = min(factor, _PAST_OR_FUTURE)
        if any(child.dep_ in ("auxpass", "cop") and child.lower_ in ("was", "were") for child in verb.children):
            factor = min(factor, _PAST_OR_FUTURE)
        if verb.lower_ in ("was", "were"):
            factor = min(factor, _PAST_OR_FUTURE)
        return factor

    def is_passive(self, verb: Token) -> bool:
        """Whether a verb is a participle of the passive."""
        return any(child.dep_ in ("nsubjpass", "auxpass") for child in verb.children) or verb.dep_ == "acl"

    def is_imperative(self, verb: Token, subject: Spot) -> bool:
        """Whether a verb without ``-s`` after a single name is an order to the reader: ``x was None: use y``."""
        if verb.lower_ not in _PLAIN or any(child.dep_ in ("aux", "auxpass") for child in verb.children):
            return False
        # A name in code is single, with any last letter.
        return subject.key[0] == "api" or not self.token_at(subject.end - 1).lower_.endswith("s")

    def find_subjects(self, verb: Token, passive: bool) -> Iterator[Token]:
        """Find the subjects of a verb: its own, those of the verb that it continues, the noun that it describes."""
        wanted = ("nsubjpass", "nsubj") if passive else ("nsubj",)
        first = verb.i
        for _ in range(4):
            # A subject behind the first verb is that of another clause: "Use the store: the gate is ..."
            own = [child for child in verb.children if child.dep_ in wanted and child.i < first]
            if own:
                for each in own:
                    if each.lower_ in _PRONOUNS and verb.dep_ in ("relcl", "acl"):
                        yield verb.head
                    else:
                        yield each
                return
            if verb.dep_ in ("acl", "relcl"):
                yield verb.head
                return
            if verb.dep_ not in ("conj", "xcomp", "advcl", "pcomp"):
                return
            verb = verb.head
            wanted = ("nsubj", "nsubjpass")

    def spots_of(self, token: Token, depth: int = 0) -> Iterator[Spot]:
        """Find the mentions that a noun is the head of, and those that it is joined with by ``and``."""
        spot = self.covering.get(token.i)
        if spot is not None:
            yield spot
        else:
            for child in token.children:
                if child.dep_ in ("compound", "appos", "nmod") and child.i in self.covering:
                    yield self.covering[child.i]
                    break
        if depth < 6:
            for child in token.children:
                if child.dep_ == "conj":
                    yield from self.spots_of(child, depth + 1)

    def build(self, one: Spot, relation: Relation, other: Spot, token: Token, weight: float, method: str) -> Stated:
        """Build a relation with its confidence: weight, distance and scores of both mentions."""
        first, last = (one, other) if one.start < other.start else (other, one)
        between = max(0, len(self.doc.text[first.end : last.start].split()))
        near = max(0.6, 1.0 - _FAR * max(0, between - _NEAR))
        confidence = round(weight * near * (one.score * other.score) ** 0.5, 4)
        sentence = token.sent
        return Stated(one, relation, other, sentence.start_char, sentence.end_char, confidence, method)
