"""The child processes of `loaders.files.readers.office`: limits and properties of a file, and errors as replies."""

from __future__ import annotations

import gc
import io
import json
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, Final
from xml.etree import ElementTree
from xml.parsers.expat import ExpatError

from lxml import etree

from kg.processes import task

_LARGEST: Final = 128 << 20
"""Maximum size of the XML of a document, in bytes."""
_LARGEST_MEDIA: Final = 512 << 20
"""Maximum size of its other parts, which some libraries read into memory."""
_MOST_PARTS: Final = 10_000
_MOST_NAMED: Final = 10
_DUBLIN: Final = "{http://purl.org/dc/elements/1.1/}"
_CORE: Final = "{http://schemas.openxmlformats.org/package/2006/metadata/core-properties}"

Block = dict[str, Any]
"""A heading, paragraph, list or table, as the report of the process has it."""
Convert = Callable[[bytes], tuple[str, dict[str, Any]]]
"""Converts a document to its content as text and further members of the report. Raises UnreadableError."""


class UnreadableError(Exception):
    """The document cannot be read. The message is the cause."""


def run(convert: Convert, main_part: str, what: str) -> None:
    """Run the process: convert a document of the kind `what`, which has the part `main_part`."""
    # Passes of the garbage collector over the elements of a long document take as long as reading it.
    gc.set_threshold(100_000, 50, 100)
    damaged = f"It is damaged or not {what}."

    def work(settings: dict[str, Any], data: bytes) -> dict[str, Any]:
        try:
            report = _describe(data, main_part, damaged)
            content, more = convert(data)
            report["warnings"] += more.pop("warnings", [])
            report |= more
        except UnreadableError as error:
            return {"kind": "invalid", "message": str(error)}
        except RecursionError:
            return {"kind": "invalid", "message": "Its elements nest too deeply."}
        except MemoryError:
            raise
        except Exception:  # noqa: BLE001 -- the libraries raise errors of any kind for damaged documents
            return {"kind": "invalid", "message": damaged}
        encoded = content.encode("utf-8", "replace")
        if len(encoded) > settings["max_bytes"]:
            return {"kind": "size", "message": f"its text has more than {settings['max_bytes'] >> 20} MiB"}
        folder = Path(settings["folder"])
        (folder / settings["content"]).write_bytes(encoded)
        (folder / settings["report"]).write_text(json.dumps(report), encoding="utf-8")
        return {}

    task.main(work)


def get_name(element: etree._Element) -> str:
    """Get the name of an element without its namespace: Office has two for each."""
    return str(element.tag).rpartition("}")[2]


def get_attribute(element: etree._Element, name: str) -> str | None:
    """Get an attribute of an element in any namespace."""
    return next((str(value) for key, value in element.attrib.items() if str(key).rpartition("}")[2] == name), None)


def get_child(element: etree._Element | None, name: str) -> etree._Element | None:
    """Get the first child with a name."""
    return next((each for each in element if get_name(each) == name), None) if element is not None else None


def get_value(element: etree._Element | None, name: str) -> str | None:
    """Get the value of a property: the attribute ``val`` of the first child with a name."""
    child = get_child(element, name)
    return get_attribute(child, "val") if child is not None else None


def is_on(element: etree._Element | None) -> bool:
    """Whether a property that is on or off is on."""
    return element is not None and is_true(get_attribute(element, "val"), default=True)


def is_true(value: str | None, *, default: bool = False) -> bool:
    """Whether the value of an attribute is true; `default` if there is none."""
    return default if value is None else value not in ("0", "false", "off", "none")


def group_items(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield blocks, with the items of a list together, which follow each other as lists of one item each."""
    for is_list, part in groupby(blocks, lambda block: "items" in block):
        if not is_list:
            yield from part
            continue
        items = [(block["kind"], item) for block in part for item in block["items"]]
        least = min(depth for _, (depth, _, _) in items)
        yield {
            "kind": "steps" if any(kind == "steps" for kind, _ in items) else "list",
            "items": [(depth - least, mark, text) for _, (depth, mark, text) in items],
        }


def list_places(places: list[int]) -> str:
    """Format numbers for a message: the first ten."""
    more = len(places) - _MOST_NAMED
    return ", ".join(map(str, places[:_MOST_NAMED])) + (f" and {more:,} more" if more > 0 else "")


def _describe(data: bytes, main_part: str, damaged: str) -> dict[str, Any]:
    """Check the parts of a document and read what it states about itself. Raises UnreadableError."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = archive.infolist()
            if any(part.flag_bits & 1 for part in parts):
                raise UnreadableError("It is encrypted. Remove the password first.")
            xml = [part.filename.lower().endswith((".xml", ".rels")) for part in parts]
            size = sum(part.file_size for part, is_xml in zip(parts, xml, strict=True) if is_xml)
            media = sum(part.file_size for part in parts) - size
            if size > _LARGEST or media > _LARGEST_MEDIA or len(parts) > _MOST_PARTS:
                raise UnreadableError(
                    f"Its {len(parts):,} parts have {size:,} bytes of XML and {media:,} of media. At most "
                    f"{_LARGEST:,} and {_LARGEST_MEDIA:,} in {_MOST_PARTS:,} parts are read. Split the document."
                )
            names = {part.filename for part in parts}
            if main_part not in names and "[Content_Types].xml" not in names:
                raise UnreadableError(damaged)
            core = archive.read("docProps/core.xml") if "docProps/core.xml" in names else b""
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, OSError, ValueError, EOFError):
        raise UnreadableError(damaged) from None
    try:
        root = ElementTree.fromstring(core) if core else None  # noqa: S314 -- in a confined process
    except (ElementTree.ParseError, ExpatError, ValueError):
        root = None

    def get(name: str) -> str | None:
        text = root.findtext(name) if root is not None else None
        return " ".join(text.split()) or None if text else None

    return {
        "title": get(f"{_DUBLIN}title"),
        "language": get(f"{_DUBLIN}language"),
        "tags": [tag for part in (get(f"{_CORE}keywords") or "").replace(";", ",").split(",") if (tag := part.strip())],
        "warnings": [],
    }
