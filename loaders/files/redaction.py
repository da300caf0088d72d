"""Redaction of files: the secrets in their texts, titles and labels are replaced before anything else reads them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace

from loaders.files.readers.text_model import Block, FileText
from loaders.files.secrets import Redacted, find_secrets, redact


def redact_file(found: FileText) -> tuple[FileText, Counter[str]]:
    """Replace the secrets of a file by their kinds; return the file, and the number of its secrets by kind.

    Lines keep their numbers in formats that have any. A secret in the text and the title counts once.
    """
    text = redact(found.text, keeps_lines=found.first_line is not None)
    kinds = Counter(text.kinds)

    def clean(said: str) -> str:
        secrets = find_secrets(said)
        kinds.update(each.kind for each in secrets if said[each.start : each.end] not in found.text)
        return redact(said).text if secrets else said

    cleaned = replace(
        found,
        title=clean(found.title) if found.title else None,
        language=clean(found.language) if found.language else None,
        security=clean(found.security) if found.security else None,
        tags=[clean(tag) for tag in found.tags],
        warnings=[clean(warning) for warning in found.warnings],
    )
    if not text.kinds:
        return cleaned, kinds
    return replace(
        cleaned,
        text=text.text,
        blocks=list(_move_blocks(found.blocks, text)),
        pages=[text.translate(offset) for offset in found.pages],
    ), kinds


def _move_blocks(blocks: Sequence[Block], text: Redacted) -> Iterator[Block]:
    """Yield the blocks at their offsets in the new text, without those within a secret."""
    for block in blocks:
        start, end = text.translate(block.start), text.translate(block.end)
        if end > start:
            parts = dict.fromkeys(text.translate(part) for part in block.parts)
            yield replace(
                block,
                start=start,
                end=end,
                title=redact(block.title).text if block.title else "",
                parts=[part for part in parts if start < part < end],
            )
