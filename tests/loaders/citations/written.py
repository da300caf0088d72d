"""Small files of all domains, each with one text."""

from __future__ import annotations

import csv
from pathlib import Path


def write_policy(
    folder: Path,
    slug: str,
    text: str,
    *,
    iso: str = "USA",
    family: str = "",
    title: str = "",
    day: str = "2020-03-14",
    member_of: str = "",
) -> str:
    path = folder / f"{slug}.csv"
    row = {
        "document_id": f"FICT.{slug}", "document_slug": slug, "document_name": title or slug, "geography_iso": iso,
        "geography": "", "family_slug": member_of or f"family-{slug}", "family_name": family or f"Family of {slug}",
        "category": "executive", "language": "en", "publication_ts": f"{day} 00:00:00+00:00", "translated": "False",
        "block_index": "0", "page_number": "0", "type": "Text", "text": text,
    }  # fmt: skip
    write_rows(path, row)
    return str(path)


def write_speech(folder: Path, name: str, text: str) -> str:
    path = folder / f"{name}.csv"
    row = {
        "speech_id": f"0b7c1f52-9a3e-4d06-8f21-5c6e7d8a{len(name):04x}", "title": name, "speaker": "Tilda Fenwright",
        "party": "Greens", "chamber": "Senate", "state": "VIC", "date": "2024-10-15",
        "hansard_reference": f"Senate Hansard, 15 Oct 2024, p. {len(name)}", "text": text,
    }  # fmt: skip
    write_rows(path, row)
    return str(path)


def write_code(folder: Path, text: str) -> str:
    path = folder / "quillpoint.json"
    path.write_text(
        '{"municipality": "Quillpoint", "state": "UT", "sections": [{"section_id": "17.04.010", "title": "Streams",'
        f' "raw_content": "{text}", "level": 1}}]}}'
    )
    return str(path)


def write_rows(path: Path, *rows: dict[str, str]) -> None:
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
