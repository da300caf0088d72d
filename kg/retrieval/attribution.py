"""The person who said the text of a chunk. The record of a speech includes words of others, and editorial remarks."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final, NamedTuple

from pyoxigraph import Literal, NamedNode

from kg.retrieval.reader import Reader, iri_of
from kg.sparql.terms import bind
from kg.store.protocol import term_text
from kg.vocabulary import mint

REMARK: Final = "a remark of the record"
UNNAMED: Final = "somebody who is not named"

# The properties of the speech in patterns of their own: inside the first one, the engine reads those of all speeches.
VOICES: Final = """
SELECT DISTINCT ?chunk ?utterance ?type ?name ?person ?speaker ?recorded WHERE {
  VALUES (?chunk ?speech ?first ?last) { $chunks }
  GRAPH ?graph {
    ?speech a kg:Speech . ?utterance dcterms:isPartOf ?speech .
    ?utterance kg:utteranceType ?type ; kg:start ?start ; kg:end ?end
    OPTIONAL { ?utterance kg:speakerAsRecorded ?name } OPTIONAL { ?utterance kg:speaker ?person }
  }
  OPTIONAL { GRAPH ?graph { ?speech kg:speakerAsRecorded ?recorded } }
  OPTIONAL { GRAPH ?graph { ?speech kg:speaker ?speaker } }
  FILTER(?start <= ?first && ?last <= ?end)
}"""

_TURN, _CONTINUATION, _REMARK = (
    mint("code", "utteranceType", code).value for code in ("turn", "continuation", "remark")
)


class Chunk(NamedTuple):
    """A chunk: its IRI, its speech, and its offsets in the text of the speech, zero-based, end-exclusive."""

    iri: str
    speech: str
    start: int
    end: int


class Voice(NamedTuple):
    """The utterance that contains a chunk, and the name of the person; `other` is that name if not the speaker."""

    utterance: str
    name: str
    other: str | None


def other_voice(
    kind: str, name: str | None, person: str | None, recorded: str | None, speaker: str | None
) -> str | None:
    """Name the person who said an utterance of the type `kind`; None for the speaker of the speech.

    `name` and `person` belong to the utterance, `recorded` and `speaker` to the speech. A continuation can be by
    another person: the IRIs are compared or, if one is unknown, the names.
    """
    if kind == _REMARK:
        return REMARK
    if kind == _TURN:
        return None
    if kind == _CONTINUATION:
        if person and speaker:
            same = person == speaker
        else:
            same = name is None or recorded is None or name.casefold() == recorded.casefold()
        if same:
            return None
    return name or UNNAMED


def load_voices(reader: Reader, chunks: Collection[Chunk]) -> dict[str, Voice]:
    """Load the utterance and person of each chunk, by IRI. Chunks without utterances (from tables) are absent.

    Cached until a commit changes statements with the properties of the query.
    """
    if not chunks:
        return {}
    # By their offsets too, which a commit may change without an utterance.
    known = {f"{each.start}-{each.end} {each.speech} {each.iri}": each for each in chunks}

    def load(missing: list[str]) -> dict[str, tuple[Voice, ...]]:
        wanted = [known[key] for key in missing]
        found: dict[str, tuple[Voice, ...]] = {each.iri: () for each in wanted}
        listed = [
            (NamedNode(each.iri), NamedNode(each.speech), Literal(each.start), Literal(each.end)) for each in wanted
        ]
        for row in reader.rows("who said them", bind(VOICES, chunks=listed)):
            name, person, recorded, speaker = (
                term_text(row[key]) if key in row else None for key in ("name", "person", "recorded", "speaker")
            )
            other = other_voice(iri_of(row["type"]), name, person, recorded, speaker)
            voice = Voice(iri_of(row["utterance"]), other or name or recorded or UNNAMED, other)
            found[iri_of(row["chunk"])] = (voice,)
        return {key: found[known[key].iri] for key in missing}

    kept = reader.kept_by_iri("voices", known, load, query=VOICES)
    return {known[key].iri: each[0] for key, each in kept.items() if each}
