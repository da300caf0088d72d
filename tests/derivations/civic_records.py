"""Small records of each domain, as Hypothesis draws them, and as the files that the loaders read.

The records share their words: a text of any domain may have the name of a concept, the title of a policy family, the
citation of a law, and the name of a person. All of it is fictional.
"""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from hypothesis import strategies as st

Record = tuple[Any, ...]
"""What was drawn for a record; `Domain.write` knows the order."""
Records = Mapping[str, Record]

TITLES: Final = ("Fictional Tidal Power Act", "Clear Streams Act 1974")
PEOPLE: Final = ("Tobias Fennimore", "Marigold Quill")
NAMES: Final = ("tide", "tidal power", "kiln", "Renewable Energy", "Tobias Fennimore")
SENTENCES: Final = (
    "The tides turn the wheels of the Fictional Tidal Power Act, and we praise the US Clear Streams Act 1974.",
    "A kiln burns lime under 42 U.S.C. § 7401, the Paris Agreement and the US Clear Streams Act 1974.",
    "Renewable Energy (RE) pays for tidal power. RE is part of the plan of Upper Feign.",
    "Tobias Fennimore visited the Harbour Board of Upper Feign with Marigold Quill.",
    "La marée fait tourner les roues du moulin, et la commune paie les travaux de la digue.",
)
DISTRICTS: Final = "The town is divided into these districts: R-40 Residence District; VC Village Center District."


@dataclass(frozen=True)
class Domain:
    """A source of records: how they are drawn and written as files, and the options of their load."""

    source: str
    keys: tuple[str, ...]
    records: st.SearchStrategy[Record]
    write: Callable[[Path, Records], None]
    kept: tuple[str, Record]
    """A record that is never deleted, since a folder without any is not loaded."""
    options: Mapping[str, str] = field(default_factory=dict)

    def fill(self, folder: Path, records: Records) -> None:
        """Write the records as the only files of a folder."""
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        self.write(folder, dict([self.kept], **records))
        for path in folder.rglob("*"):
            os.utime(path, (1_000_000_000, 1_000_000_000))  # a file states when it was written


def _write_documents(folder: Path, records: Records) -> None:
    for slug, (title, place, language, texts) in records.items():
        rows = [
            {
                "document_id": f"FICT.legislative.{len(slug)}.1",
                "document_metadata.slug": f"{slug}_br01",
                "document_metadata.document_title": title,
                "document_metadata.family_title": title,
                "document_metadata.geographies": [place],
                "document_metadata.languages": ["English"] if language == "en" else [],
                "document_metadata.corpus_type_name": "Laws and Policies",
                "document_metadata.description": "An invented law.",
                "text_block.index": position,
                "text_block.page_number": 1,
                "text_block.type": "Text",
                "text_block.language": language,
                "text_block.text": text,
            }
            for position, text in enumerate(texts)
        ]
        (folder / f"{slug}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def _write_concepts(folder: Path, records: Records) -> None:
    def say(value: str) -> dict[str, str]:
        return {"language": "en", "value": value}

    def name(number: str, label: str) -> dict[str, Any]:
        return {"type": "property", "datatype": "wikibase-item", "id": number, "labels": {"en": say(label)},
                "descriptions": {}, "aliases": {}, "claims": {}}  # fmt: skip

    items: list[dict[str, Any]] = [name("P2", "subconcept of")]
    for qid, (label, alias, above) in records.items():
        target = {"entity-type": "item", "numeric-id": int(above[1:]), "id": above}
        value = {"value": target, "type": "wikibase-entityid"}
        snak = {"snaktype": "value", "property": "P2", "datavalue": value, "datatype": "wikibase-item"}
        claim = {
            "mainsnak": snak,
            "type": "statement",
            "id": f"{qid}$00000000-0000-4000-8000-000000000001",
            "rank": "normal",
        }
        items.append(
            {"type": "item", "id": qid, "labels": {"en": say(label)}, "descriptions": {}, "sitelinks": {},
             "aliases": {"en": [say(alias)]} if alias else {}, "claims": {} if above == qid else {"P2": [claim]}}
        )  # fmt: skip
    (folder / "concepts.json").write_text(json.dumps(items))


def _write_table(name: str, columns: str) -> Callable[[Path, Records], None]:
    def write(folder: Path, records: Records) -> None:
        table = io.StringIO()
        rows = csv.writer(table)
        rows.writerow(columns.split(","))
        rows.writerows((key, *record) for key, record in records.items())
        (folder / name).write_text(table.getvalue())

    return write


def _write_code(folder: Path, records: Records) -> None:
    text = "CHAPTER 4. ZONING\n\n"
    for number, (heading, item, texts) in sorted(records.items()):
        text += f"Section {number} {heading}\n\n{' '.join(texts)}\n\n"
        text += f"The following uses are permitted in the R-40 district:\nA. {item}.\nB. Duplex.\n\n"
    (folder / "code.txt").write_text(text)


def _write_notes(folder: Path, records: Records) -> None:
    for name, (title, texts) in records.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        own = " ".join(f"{name}{number}" for number in range(60))  # else one may be a near-duplicate of another
        path.write_text(f"# {title}\n\n" + "\n\n".join(texts) + f"\n\n{own}\n")


_texts = st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=3).map(tuple)
_SPEECH: Final = "0b7c1f52-9a3e-4d06-8f21-5c6e7d8a9b0"
_people = st.sampled_from(PEOPLE)
_parties = st.sampled_from(("Greens", "Liberal"))

DOMAINS: Final = {
    "climate": Domain(
        "climate",
        ("a", "be"),
        st.tuples(st.sampled_from(TITLES), st.just("USA"), st.sampled_from(("en", None)), _texts),
        _write_documents,
        ("see", ("Fictional Register", "BRA", "en", ("Nothing.",))),
    ),
    "concepts": Domain(
        "wikibase",
        ("Q1", "Q2"),
        st.tuples(st.sampled_from(NAMES), st.sampled_from((None, *NAMES)), st.sampled_from(("Q1", "Q2"))),
        _write_concepts,
        ("Q3", ("wheel", None, "Q3")),
        {"base": "climate"},
    ),
    "zoning": Domain(
        "zoning",
        ("4.1", "4.2"),
        st.tuples(
            st.sampled_from(("Definitions.", "Residence districts.")),
            st.sampled_from(("Kiln", "Single-family dwelling")),
            _texts,
        ),
        _write_code,
        ("4.3", ("Districts established.", "Foundry", (DISTRICTS,))),
        {"municipality": "Upper Feign", "state": "CT"},
    ),
    "members": Domain(
        "members",
        ("FZ1", "QX7"),
        st.tuples(_people, st.just("Senate"), st.just("VIC"), _parties, st.just("2019-05-18"), st.just("")),
        _write_table("members.csv", "person_id,name,chamber,state,party,from,to"),
        ("AB1", ("Isolde Farrow", "Senate", "NSW", "Liberal", "2013-09-07", "2021-02-23")),
    ),
    "speeches": Domain(
        "parliament",
        (f"{_SPEECH}2", f"{_SPEECH}3"),
        st.tuples(st.just("Kilns"), _people, _parties, st.just("Senate"), st.just("VIC"), st.just("2024-03-21"),
                  st.sampled_from(SENTENCES)),
        _write_table("speeches.csv", "speech_id,title,speaker,party,chamber,state,date,text"),
        (f"{_SPEECH}4", ("Works", "Isolde Farrow", "Liberal", "Senate", "NSW", "2014-03-21", "No.")),
        {"jurisdiction": "AUS"},
    ),
    "files": Domain(
        "files",
        ("a.md", "b/a.md"),
        st.tuples(st.sampled_from(("Notes", *NAMES)), _texts),
        _write_notes,
        ("c.md", ("Notes", ("Nothing.",))),
    ),
}  # fmt: skip
"""The domains, in the order in which a fresh store loads them."""


def draw_records() -> st.SearchStrategy[tuple[str, Records]]:
    """Draw a domain with its next records. A record that is left out is deleted."""
    return st.sampled_from(list(DOMAINS)).flatmap(
        lambda name: st.tuples(
            st.just(name), st.dictionaries(st.sampled_from(DOMAINS[name].keys), DOMAINS[name].records)
        )
    )
