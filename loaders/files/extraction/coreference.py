"""Short references to entities: pronouns, and nouns with an article, resolved within a section."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from kg.words import to_word_set
from loaders.files.extraction.entity_model import SCORES, EntityType, Key
from loaders.files.extraction.sentence_relations import Spot

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

_THINGS: Final[frozenset[EntityType]] = frozenset({"product", "term", "api", "organization", "regulation", "place"})
_PEOPLE: Final[frozenset[EntityType]] = frozenset({"person"})
_PRONOUNS: Final = {"it": _THINGS, "he": _PEOPLE, "she": _PEOPLE}
_DEFINITE: Final = to_word_set("the this that")
_SUBJECTS: Final = ("nsubj", "nsubjpass")


class Section:
    """The mentions of a section so far, by sentence."""

    def __init__(self) -> None:
        self.earlier: list[list[Spot]] = []
        self.names: dict[Key, str] = {}

    def resolve(self, doc: Doc, spots: Sequence[Spot], names: dict[Key, str]) -> list[Spot]:
        """Find the references in a snippet to entities of the section so far, which its own mentions then join."""
        self.names.update(names)
        found: list[Spot] = []
        for sentence in doc.sents:
            own = [spot for spot in spots if sentence.start_char <= spot.start < sentence.end_char]
            for token in sentence:
                if token.dep_ in _SUBJECTS and not any(spot.start <= token.idx < spot.end for spot in own):
                    before = [spot for spot in own if spot.end <= token.idx]
                    if (spot := self._resolve(token, before)) is not None:
                        found.append(spot)
            self.earlier.append(own)
        return found

    def _resolve(self, token: Token, before: Sequence[Spot]) -> Spot | None:
        word = token.lower_
        start, end = token.idx, token.idx + len(token)
        if (types := _PRONOUNS.get(word)) is not None:
            key = self._find_only(types, before)
        else:
            article = next((child for child in token.children if child.dep_ == "det"), None)
            if article is None or article.lower_ not in _DEFINITE or any(child.dep_ != "det" for child in token.lefts):
                return None
            start = article.idx
            key = self._find_by_noun(word, before)
        return None if key is None else Spot(start, end, key, SCORES["coreference"])

    def _find_only(self, types: frozenset[EntityType], before: Sequence[Spot]) -> Key | None:
        """Find the entity of the previous sentence that a pronoun can mean. None if there are several, or none."""
        previous = self.earlier[-1] if self.earlier else []
        keys = {spot.key for spot in (*previous, *before) if spot.key[0] in types}
        return next(iter(keys)) if len(keys) == 1 else None

    def _find_by_noun(self, noun: str, before: Sequence[Spot]) -> Key | None:
        """Find the only entity so far whose name ends with a noun: ``the gateway`` is the ``Tide Gateway``."""
        found = set()
        for key in {spot.key for sentence in (*self.earlier, before) for spot in sentence}:
            words = self.names.get(key, "").casefold().split()
            if len(words) > 1 and words[-1] == noun:
                found.add(key)
        return found.pop() if len(found) == 1 else None
