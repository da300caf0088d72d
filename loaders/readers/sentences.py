"""Sentences of a text, by offsets."""

from __future__ import annotations

from collections.abc import Iterator

from kg.text import find_sentence_ends


def split_sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the offsets of the sentences of ``text[start:end]``, each with the white space after it."""
    plain = text[start:end]
    edge = cut = 0
    for found in find_sentence_ends(plain):
        if found <= cut:  # inside white space that belongs to the previous sentence
            continue
        cut = found
        while cut < len(plain) and plain[cut].isspace():
            cut += 1
        if plain[edge:cut].strip():
            yield start + edge, start + cut
            edge = cut
    if edge < len(plain):
        yield start + edge, start + len(plain)
