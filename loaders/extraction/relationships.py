"""What a citation is for, by the sentence around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from loaders.extraction.citations import Citation


@dataclass(frozen=True, slots=True)
class Relationship:
    """How a section relates to what it cites, read from the citing one to the cited one."""

    citation: Citation
    type: str
    """defines, constrains, requires, excepts, supersedes, authorizes, delegates, supplements, incorporates, references,
    unknown."""
    property: str
    """usesDefinitionIn, subjectTo, mustComplyWith, exceptAsProvidedIn, notwithstanding, supersedes, authorizedBy,
    defersTo, supplements, incorporates, references, cites: the direction is that from the citing section."""
    start: int
    """The sentence around the citation is the code points [start, end) of the text."""
    end: int
    context: str
    """That sentence, verbatim."""
    cue: str
    """The words that say so, verbatim; empty for unknown."""
    confidence: float
    method: str = "sentence"


def relationships(text: str, citations: Sequence[Citation]) -> Sequence[Relationship]:
    """Return what each of `citations` in `text` is for, in their order."""
    raise NotImplementedError
