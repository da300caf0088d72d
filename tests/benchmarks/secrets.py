"""Secrets in texts: precision and recall on the corpus of the tests, beside detect-secrets, and the speed.

The project's own chapters and sources, and real texts beside the project where they are, have no secrets but those of
tests: what is found there is printed as it is.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from detect_secrets.core.secrets_collection import SecretsCollection
from detect_secrets.settings import default_settings

from loaders.files.secrets import find_secrets
from tests.benchmarks.comparison import Comparison
from tests.secret_corpus import Case, build_corpus

_ROOT: Final = Path(__file__).parents[2]
_REAL: Final = _ROOT.parent / "shared" / "data" / "nlp"
_LEAST_MB_S: Final = 4.0


def run(arguments: Sequence[str]) -> Iterator[Comparison]:
    """Measure the corpus with values of another seed than that of the tests."""
    cases = build_corpus(seed=2026, rounds=10)
    ours = [[(each.start, each.end) for each in find_secrets(case.text)] for case in cases]
    theirs = _find_with_detect_secrets(cases)
    for name, number in (("precision", 0), ("recall of whole secrets", 1)):
        one, other = (measure(cases, found)[number] for found in (ours, theirs))
        yield Comparison(f"{name}, detect-secrets beside", 100 * one, 100 * other, "%", ">= 95 %", one >= 0.95)
    chapters = [*_ROOT.glob("kg/docs/*.md"), _ROOT / "README.md"]
    yield _count("false positives in the chapters", chapters)
    if _REAL.is_dir():
        yield _count("false positives in real text (CoNLL, Re-DocRED)", list(_REAL.iterdir()))
    text = "\n".join(path.read_text("utf-8") for path in chapters) * 8
    began = time.perf_counter()
    find_secrets(text)
    speed = len(text) / 1e6 / (time.perf_counter() - began)
    yield Comparison("search of the chapters", speed, None, "MB/s", f">= {_LEAST_MB_S:g} MB/s", speed >= _LEAST_MB_S)


def measure(cases: Sequence[Case], found: Sequence[Sequence[tuple[int, int]]]) -> tuple[float, float]:
    """Measure precision and recall. A secret is found if a span covers all of it."""
    right = wrong = missed = 0
    for case, spans in zip(cases, found, strict=True):
        for start, end in case.secrets:
            if any(first <= start and end <= last for first, last in spans):
                right += 1
            else:
                missed += 1
        wrong += sum(not any(first < end and start < last for start, end in case.secrets) for first, last in spans)
    return right / (right + wrong), right / (right + missed)


def _count(name: str, paths: Sequence[Path]) -> Comparison:
    found = sum(len(find_secrets(path.read_text("utf-8"))) for path in paths)
    return Comparison(name, found, None, "found", "0", not found)


def _find_with_detect_secrets(cases: Sequence[Case]) -> list[list[tuple[int, int]]]:
    found = []
    with tempfile.TemporaryDirectory() as folder, default_settings():
        for case in cases:
            (Path(folder) / "a.txt").write_text(case.text)
            secrets = SecretsCollection(root=folder)
            secrets.scan_file("a.txt")
            values = {each.secret_value for _, each in secrets if each.secret_value}
            found.append([(case.text.find(each), case.text.find(each) + len(each)) for each in values])
    return found
